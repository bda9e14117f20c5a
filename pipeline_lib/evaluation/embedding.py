"""Vectors of a whole split under one trained model, with their ids."""

import numpy as np
import pandas as pd
import torch

from pipeline_lib.contract.embeddings import Embeddings
from pipeline_lib.contract.features import Features
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.training.corpus import feature_rows


def embed_split(
    model: JointSpace, captions: pd.DataFrame, images: pd.DataFrame, features: Features
) -> Embeddings:
    """Embed all images of a split, and its captions in the model's languages.

    Args:
        model: A trained model.
        captions: Captions of the split (contract.tables.CAPTIONS); other languages are left out.
        images: Images of the split (contract.tables.IMAGES).
        features: Features of at least these images.

    Raises:
        ContractError: If an image has no features.
    """
    rows = feature_rows(pd.Index(images["image_id"]), features)
    captions = captions[captions["language"].isin(model.recipe.languages)]
    image_vectors = model.embed_features(torch.from_numpy(features.vectors[rows]))
    by_language = [
        (group["caption_id"].to_numpy(), _embed_language(model, group, str(language)))
        for language, group in captions.groupby("language", sort=True)
    ]
    return Embeddings(
        image_ids=images["image_id"].to_numpy(),
        images=image_vectors.numpy(),
        caption_ids=np.concatenate([ids for ids, _ in by_language]),
        captions=np.concatenate([vectors for _, vectors in by_language]),
    )


def _embed_language(model: JointSpace, captions: pd.DataFrame, language: str) -> np.ndarray:
    token_ids, lengths = model.vocabulary.encode_all(list(captions["tokens"]), language)
    tensors = (torch.from_numpy(array.astype(np.int64)) for array in (token_ids, lengths))
    return model.embed_tokens(*tensors, language).numpy()
