"""The joint space: a model of images and of sentences in several languages; save and load."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.compute.device import cores_for, weight_type
from pipeline_lib.contract.digests import check_sums, reading, write_sums
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.models.encoders import IMAGE_HEADS, TEXT_ENCODERS
from pipeline_lib.models.precise import PreciseModule
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.models.similarity import SIMILARITIES
from pipeline_lib.settings.architecture import Architecture, architecture_form
from pipeline_lib.text.vocabulary import Vocabulary


class JointSpace(PreciseModule):
    """Two encoders and the similarity between their vectors."""

    def __init__(
        self, architecture: Architecture, vocabulary: Vocabulary, feature_dim: int
    ) -> None:
        """Make the layers; models.initialization draws their weights.

        Args:
            architecture: Parts, sizes and options.
            vocabulary: Of the training captions.
            feature_dim: Size of image features.
        """
        super().__init__(architecture.precision)
        self.architecture, self.vocabulary = architecture, vocabulary
        self.feature_dim = feature_dim
        image_head = IMAGE_HEADS[architecture.image_head]
        text_encoder = TEXT_ENCODERS[architecture.text_encoder]
        with arithmetic(architecture.precision):
            self.image_encoder = image_head(feature_dim, architecture)
            self.sentence_encoder = text_encoder(vocabulary, architecture)
            self.to(weight_type(architecture.precision))

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
        return unit.abs() if self.architecture.absolute else unit

    def scores(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the similarity of vectors ``[n, dim]`` and ``[m, dim]``: ``[n, m]``."""
        return SIMILARITIES[self.architecture.similarity](a, b)

    @torch.inference_mode()
    def embed_features(self, features: Tensor, batch_size: int = 4096) -> Tensor:
        """Embed any number of image features, on the CPU ``[images, embed_dim]``."""
        with arithmetic(self.architecture.precision):
            batches = (part.to(self.device, self.dtype) for part in features.split(batch_size))
            return torch.cat([self.image_vectors(batch).cpu() for batch in batches])

    def embed_sentences(self, sentences: Sequence[Sequence[str]], language: str) -> Tensor:
        """Embed any number of tokenised sentences, on the CPU ``[sentences, embed_dim]``."""
        token_ids, lengths = map(torch.from_numpy, self.vocabulary.encode_all(sentences, language))
        return self.embed_tokens(token_ids, lengths, language)

    @torch.inference_mode()
    def embed_tokens(
        self, token_ids: Tensor, lengths: Tensor, language: str, batch_size: int = 512
    ) -> Tensor:
        """Embed any number of encoded sentences, on the CPU ``[sentences, embed_dim]``.

        Sentences are taken in the order of their length, so that a batch is short or long as one.
        """
        vectors = torch.empty(len(token_ids), self.architecture.embed_dim, dtype=self.dtype)
        numbers = batch_size * self.architecture.text_width
        with arithmetic(self.architecture.precision), cores_for(numbers):
            for rows in lengths.argsort(stable=True).split(batch_size) if len(lengths) else ():
                longest = int(lengths[rows].max())
                ids = token_ids[rows, :longest].to(self.device)
                vectors[rows] = self.sentence_vectors(ids, lengths[rows], language).cpu()
        return vectors

    @torch.inference_mode()
    def embed_words(self, language: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the words of one language and their vectors, as the sentence encoder reads them.

        A pooled vocabulary holds the words of all its languages.

        Returns:
            Words, unique ``[words]``, and their vectors ``[words, dim]``.
        """
        words = self.vocabulary.table(language).words
        ids = torch.from_numpy(self.vocabulary.word_ids(words, language))
        with arithmetic(self.architecture.precision):
            vectors = self.sentence_encoder.embed(ids.to(self.device), language)
        return np.array(words, object), vectors.cpu().numpy()

    def save(
        self, folder: Path, preprocessing: Preprocessing, provenance: Mapping[str, object]
    ) -> None:
        """Write the model, and what stands before it, into a new folder.

        weights.safetensors, architecture.json, vocabulary.json, preprocessing.json: no code, and
        all that :class:`~pipeline_lib.models.embedder.Embedder` needs. recipe.json says how it
        learnt: for people, a model's card, and whoever looks for what it has seen.

        Args:
            folder: Is made here.
            preprocessing: How sentences become tokens and photos features.
            provenance: Settings of its training.
        """
        folder.mkdir(parents=True)
        weights = {name: value.contiguous().cpu() for name, value in self.state_dict().items()}
        save_file(weights, folder / "weights.safetensors")
        architecture = {"feature_dim": self.feature_dim, **self.architecture.model_dump()}
        _write_json(folder / "architecture.json", architecture)
        _write_json(folder / "vocabulary.json", self.vocabulary.to_json())
        _write_json(folder / "recipe.json", provenance)
        write_preprocessing(folder, preprocessing)

    @classmethod
    def load(cls, folder: Path) -> "JointSpace":
        """Read a model that :meth:`save` wrote, or a version before it; it is in evaluation mode.

        Nothing else of its study is needed.

        Raises:
            ContractError: If the folder holds no model, or another than its digests say.
        """
        folder = Path(folder)
        check_sums(folder, _NEEDED)
        weights = read_weights(folder / "weights.safetensors")
        own = {name: value for name, value in weights.items() if name.startswith(_ENCODERS)}
        with reading(folder / "vocabulary.json", "a model's vocabulary"):
            vocabulary = Vocabulary.from_json(_read_json(folder / "vocabulary.json"))
        description = _architecture(folder)
        with reading(folder / "weights.safetensors", "the weights of architecture.json"):
            feature_dim = description.pop("feature_dim")
            architecture = architecture_form(description).model_validate(description)
            raise_problems(folder / "vocabulary.json", _without_words(architecture, vocabulary))
            model = cls(architecture, vocabulary, feature_dim)
            model.load_state_dict(own)
        return model.eval()


LEARNT = ("weights.safetensors", "vocabulary.json", "architecture.json")
"""Files of what a model has learnt; the others say how its inputs are made, and how it learnt."""

_NEEDED = ("weights.safetensors", "vocabulary.json")
"""Files without which there is no model."""

_ENCODERS = ("image_encoder.", "sentence_encoder.")
"""What names of weights start with; earlier versions saved layers of the training beside them."""

_FIRST_PARTS = {"text_encoder": "recurrent", "image_head": "mlp"}
"""What all models had before architecture.json named them."""

_FORMER_KEYS = {"word_dropout"}
"""Of training alone, in models saved by earlier versions."""


def _without_words(architecture: Architecture, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield which languages of a model have no words."""
    for language in architecture.languages:
        if language not in vocabulary.languages:
            yield f"expected words of {language}, a language of architecture.json, found none"


def _architecture(folder: Path) -> dict:
    """Return a saved model's architecture; before it had a file of its own, it was in recipe.json.

    Raises:
        ContractError: If that file lacks keys of it.
    """
    path = folder / "architecture.json"
    if path.is_file():
        return {k: v for k, v in _read_json(path).items() if k not in _FORMER_KEYS}
    found = _FIRST_PARTS | _read_json(folder / "recipe.json")
    keys = ["feature_dim", *architecture_form(found).model_fields]
    missing = [f"{key} is missing" for key in keys if key not in found]
    raise_problems(f"{folder / 'recipe.json'} describes no model", missing)
    return {key: found[key] for key in keys}


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a file of weights, which can hold nothing but numbers."""
    with reading(path, "weights in safetensors' form"):
        return load_file(path)


def _read_json(path: Path) -> dict:
    with reading(path, "an object in JSON"):
        return {**json.loads(path.read_text(encoding="utf-8"))}


def write_preprocessing(folder: Path, preprocessing: Preprocessing) -> None:
    """Write what stands before a model into its folder, in place of what stood before it."""
    _write_json(folder / "preprocessing.json", preprocessing.model_dump())
    write_sums(folder)


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")
