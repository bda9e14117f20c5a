"""The joint space: a model of images and of sentences in several languages; save and load."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline_lib.arithmetic import arithmetic
from pipeline_lib.device import TYPES, best_device, cores_for, precision_on
from pipeline_lib.models.encoders import ImageEncoder, SentenceEncoder
from pipeline_lib.models.initialization import INITIALIZATIONS, WordVectors, set_words
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.models.similarity import SIMILARITIES
from pipeline_lib.settings.recipes import RECIPE, AnyRecipe
from pipeline_lib.settings.strict import Precision
from pipeline_lib.text.vocabulary import Vocabulary


class JointSpace(nn.Module):
    """The two encoders of one recipe and the similarity between their vectors."""

    def __init__(
        self,
        recipe: AnyRecipe,
        vocabulary: Vocabulary,
        feature_dim: int,
        seed: int,
        word_vectors: WordVectors | None = None,
    ) -> None:
        """Make an untrained model.

        Args:
            recipe: Sizes and options.
            vocabulary: Of the training captions.
            feature_dim: Size of image features.
            seed: Of the initial weights.
            word_vectors: What words start from; drawn like the other weights if None.
        """
        super().__init__()
        self.recipe, self.vocabulary, self.feature_dim = recipe, vocabulary, feature_dim
        with arithmetic(recipe.precision):
            self._make(seed, word_vectors)

    def _make(self, seed: int, word_vectors: WordVectors | None) -> None:
        recipe, generator = self.recipe, torch.Generator().manual_seed(seed)
        self.image_encoder = ImageEncoder(self.feature_dim, recipe)
        self.sentence_encoder = SentenceEncoder(self.vocabulary, recipe)
        if recipe.objective == "two_branch" and recipe.classifier_weight:
            dim = recipe.word_dim if recipe.universal_dim == "none" else recipe.universal_dim
            self.language_classifier = nn.Linear(dim, len(recipe.languages))
        self.to(TYPES["f64" if recipe.precision == "f64" else "f32"])
        INITIALIZATIONS[recipe.initialization](self.image_encoder, self.sentence_encoder, generator)
        if hasattr(self, "language_classifier"):
            nn.init.xavier_uniform_(self.language_classifier.weight, generator=generator)
            nn.init.zeros_(self.language_classifier.bias)
        if word_vectors is not None:
            set_words(self.sentence_encoder, self.vocabulary, word_vectors, generator)

    @property
    def device(self) -> torch.device:
        """Where the model's weights lie."""
        return self.image_encoder.linear.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the model's weights and vectors: float32, or float64 in the precision f64."""
        return self.image_encoder.linear.weight.dtype

    def to_best_device(self) -> Self:
        """Move to where its precision is computed."""
        return self.to(best_device(self.recipe.precision))

    @property
    def precision(self) -> Precision:
        """What the recurrent layer's products, or all numbers, are computed in."""
        return precision_on(self.recipe.precision, self.device)

    def image_vectors(self, features: Tensor) -> Tensor:
        """Embed features ``[images, feature_dim]`` as unit vectors ``[images, embed_dim]``."""
        return self._unit(self.image_encoder(features))

    def sentence_vectors(self, token_ids: Tensor, lengths: Tensor, language: str) -> Tensor:
        """Embed sentences ``[sentences, steps]`` as unit vectors ``[sentences, embed_dim]``."""
        return self._unit(self.sentence_encoder(token_ids, lengths, language))

    def sentence_vectors_of_all(
        self, sentences: Mapping[str, tuple[Tensor, Tensor]]
    ) -> dict[str, Tensor]:
        """Embed token ids and lengths of several languages: see :meth:`sentence_vectors`."""
        states = self.sentence_encoder.together(sentences)
        return {language: self._unit(vectors) for language, vectors in states.items()}

    def _unit(self, vectors: Tensor) -> Tensor:
        unit = F.normalize(vectors, dim=1)
        return unit.abs() if self.recipe.absolute else unit

    def scores(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the recipe's similarity of vectors ``[n, dim]`` and ``[m, dim]``: ``[n, m]``."""
        return SIMILARITIES[self.recipe.similarity](a, b)

    @torch.inference_mode()
    def embed_features(self, features: Tensor, batch_size: int = 4096) -> Tensor:
        """Embed any number of image features, on the CPU ``[images, embed_dim]``."""
        with arithmetic(self.recipe.precision):
            batches = (part.to(self.device, self.dtype) for part in features.split(batch_size))
            return torch.cat([self.image_vectors(batch).cpu() for batch in batches])

    @torch.inference_mode()
    def embed_tokens(
        self, token_ids: Tensor, lengths: Tensor, language: str, batch_size: int = 512
    ) -> Tensor:
        """Embed any number of encoded sentences, on the CPU ``[sentences, embed_dim]``.

        Sentences are taken in the order of their length, so that a batch is short or long as one.
        """
        vectors = torch.empty(len(token_ids), self.recipe.embed_dim, dtype=self.dtype)
        numbers = batch_size * self.recipe.hidden_dim
        with arithmetic(self.recipe.precision), cores_for(numbers):
            for rows in lengths.argsort(stable=True).split(batch_size):
                longest = int(lengths[rows].max())
                ids = token_ids[rows, :longest].to(self.device)
                vectors[rows] = self.sentence_vectors(ids, lengths[rows], language).cpu()
        return vectors

    @torch.inference_mode()
    def embed_words(self, language: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the words of one language and their vectors, as the recurrent layer reads them.

        A pooled vocabulary holds the words of all its languages.

        Returns:
            Words, unique ``[words]``, and their vectors ``[words, dim]``.
        """
        table = next(table for table in self.vocabulary.tables if language in table.languages)
        ids = torch.from_numpy(self.vocabulary.word_ids(table.words, language))
        with arithmetic(self.recipe.precision):
            vectors = self.sentence_encoder.embed(ids.to(self.device), language)
        return np.array(table.words, object), vectors.cpu().numpy()

    def save(self, folder: Path, preprocessing: Preprocessing) -> None:
        """Write the model, and what stands before it, into a new folder.

        weights.safetensors, recipe.json, vocabulary.json, preprocessing.json: no code, and all that
        :class:`~pipeline_lib.models.embedder.Embedder` needs.
        """
        folder.mkdir(parents=True)
        weights = {name: value.contiguous().cpu() for name, value in self.state_dict().items()}
        save_file(weights, folder / "weights.safetensors")
        description = {"feature_dim": self.feature_dim, **self.recipe.model_dump()}
        _write_json(folder / "recipe.json", description)
        _write_json(folder / "vocabulary.json", self.vocabulary.to_json())
        _write_json(folder / "preprocessing.json", preprocessing.model_dump())

    @classmethod
    def load(cls, folder: Path) -> "JointSpace":
        """Read a model that :meth:`save` wrote; nothing else of its study is needed."""
        folder = Path(folder)
        description = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
        feature_dim = description.pop("feature_dim")
        vocabulary = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
        model = cls(
            RECIPE.validate_python(description),
            Vocabulary.from_json(vocabulary),
            feature_dim,
            seed=0,
        )
        model.load_state_dict(load_file(folder / "weights.safetensors"))
        return model.eval()


def _write_json(path: Path, content: dict) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
