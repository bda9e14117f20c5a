"""Vectors of a whole split under one trained model, with their ids."""

import numpy as np
import pandas as pd
import torch

from pipeline_lib.contract import ContractError, Embeddings, Features
from pipeline_lib.models.embedder import Embedder


def embed_split(
    model: Embedder, captions: pd.DataFrame, images: pd.DataFrame, features: Features
) -> Embeddings:
    """Embed all images of a split, and its captions in the model's languages.

    Args:
        model: A trained model.
        captions: Captions of the split (contract.CAPTIONS); other languages are left out.
        images: Images of the split (contract.IMAGES).
        features: Features of at least these images.

    Raises:
        ContractError: If an image has no features.
    """
    rows = pd.Index(features.image_ids).get_indexer(images["image_id"])
    if (rows < 0).any():
        absent = images["image_id"][rows < 0]
        raise ContractError(
            f"{len(absent)} images to evaluate on have no features (first: {absent.iloc[0]!r}). "
            "The recipe's features or more_features must be those of its dataset."
        )
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


def _embed_language(model: Embedder, captions: pd.DataFrame, language: str) -> np.ndarray:
    token_ids, lengths = model.vocabulary.encode_all(list(captions["tokens"]), language)
    tensors = (torch.from_numpy(array.astype(np.int64)) for array in (token_ids, lengths))
    return model.embed_tokens(*tensors, language).numpy()
