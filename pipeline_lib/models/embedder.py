"""A trained model in use: from sentences and photos straight to vectors of the joint space."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.images.encoding import PhotoEncoder
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.text.tokenizers import Tokenize, build_tokenizer


class Embedder:
    """A joint space with the tokenisers and the backbone that its study gave it.

    Needs nothing of the study but the model's folder (and backbone weights that the user named, if
    they did not come in a package).
    """

    def __init__(self, model: JointSpace, preprocessing: Preprocessing) -> None:
        """Put a trained model behind its preprocessing."""
        self.model, self.preprocessing = model, preprocessing

    @classmethod
    def load(cls, folder: Path | str) -> "Embedder":
        """Read a model of one seed, such as ``data/models/kadar_en/seed-1``.

        Raises:
            ContractError: If the folder does not hold one.
        """
        folder = Path(folder)
        missing = [
            f"no {name}"
            for name in ("weights.safetensors", "vocabulary.json", "preprocessing.json")
            if not (folder / name).is_file()
        ]
        raise_problems(f"{folder} holds no model: name data/models/RECIPE/seed-N", missing)
        text = (folder / "preprocessing.json").read_text(encoding="utf-8")
        model = JointSpace.load(folder).to_best_device()
        return cls(model, Preprocessing.model_validate(json.loads(text)))

    @property
    def languages(self) -> list[str]:
        """The languages it embeds."""
        return sorted(self.model.architecture.languages)

    def embed_sentences(self, sentences: Sequence[str], language: str) -> np.ndarray:
        """Return the vectors of raw sentences ``float32 [sentences, embed_dim]``.

        Raises:
            ContractError: If the model does not know the language, or a sentence is empty, or one
                sentence is given where a list of them is expected.
        """
        if isinstance(sentences, str):
            raise ContractError(f"sentences: expected a list of them, found {sentences!r}")
        if language not in self._tokenize:
            raise ContractError(
                f"language: expected one of {', '.join(self.languages)}; found {language!r}"
            )
        if not len(sentences):
            return self._no_vectors
        tokens = [self._tokenize[language](sentence) for sentence in sentences]
        raise_problems("sentences", [f"no word in {i}" for i, t in enumerate(tokens) if not t])
        ids, lengths = self.model.vocabulary.encode_all(tokens, language)
        tensors = (torch.from_numpy(array.astype(np.int64)) for array in (ids, lengths))
        return self.model.embed_tokens(*tensors, language).numpy()

    def embed_images(self, paths: Sequence[Path | str]) -> np.ndarray:
        """Return the vectors of photos ``float32 [photos, embed_dim]``.

        Raises:
            ContractError: Lists every photo that cannot be read; or if one path is given where a
                list of them is expected.
        """
        if isinstance(paths, (str, Path)):
            raise ContractError(f"paths: expected a list of them, found {str(paths)!r}")
        if not len(paths):
            return self._no_vectors
        features = torch.from_numpy(self._photos.encode([Path(path) for path in paths]))
        return self.model.embed_features(features).numpy()

    def scores(self, images: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        """Return the model's similarity of all pairs of vectors ``[images, sentences]``."""
        return self.model.scores(torch.from_numpy(images), torch.from_numpy(sentences)).numpy()

    @property
    def _no_vectors(self) -> np.ndarray:
        return np.empty((0, self.model.architecture.embed_dim), np.float32)

    @cached_property
    def _tokenize(self) -> dict[str, Tokenize]:
        return {
            language: build_tokenizer(language, **settings.model_dump())
            for language, settings in self.preprocessing.tokenizers.items()
        }

    @cached_property
    def _photos(self) -> PhotoEncoder:
        return PhotoEncoder(self.preprocessing.extractor)
