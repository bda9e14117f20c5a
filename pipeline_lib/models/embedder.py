"""A trained model in use: from sentences and photos straight to vectors of the joint space."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch

from pipeline_lib.compute.arithmetic.mode import F64
from pipeline_lib.contract.digests import SUMS, reading
from pipeline_lib.contract.problems import ContractError, named, raise_problems
from pipeline_lib.images.decoding import ImageError
from pipeline_lib.images.encoding import Photo, PhotoEncoder
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.places import study_folder
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.running.publishing import file_sha256, tree_sha256
from pipeline_lib.settings.images import Extractor, GivenFeatures
from pipeline_lib.text.tokenizers import Tokenize, build_tokenizer
from pipeline_lib.text.vocabulary import UNK


class WordlessError(ContractError):
    """Sentences have no word.

    Attributes:
        places: Which, from 0.
    """

    def __init__(self, sentences: Sequence[str], places: Sequence[int]) -> None:
        """Name the first of them."""
        said = [f"number {n + 1}: expected words, found {sentences[n]!r}" for n in places]
        super().__init__("; ".join(["sentences", *named(said)]))
        self.places = places


def model_digest(model: Path) -> str:
    """Return what tells a model from others, whatever else lies in its folder."""
    sums = model / SUMS
    return file_sha256(sums) if sums.is_file() else tree_sha256(model)


class Embedder:
    """A joint space with the tokenisers and the backbone that its study gave it.

    Needs nothing of the study but the model's folder (and backbone weights that the user named, if
    they did not come in a package).
    """

    def __init__(
        self,
        model: JointSpace,
        preprocessing: Preprocessing,
        folder: Path | str = ".",
        digest: str = "",
    ) -> None:
        """Put a trained model, which lies in a folder, behind its preprocessing.

        The digest tells the model from others (:func:`model_digest`).
        """
        self.model, self.preprocessing, self.folder = model, preprocessing, Path(folder)
        self.digest = digest

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
        below = next(iter(sorted(folder.glob("seed-*"))), None)
        meant = f"did you mean {below}?" if below else "name data/models/RECIPE/seed-N"
        raise_problems(f"{folder} holds no model: {meant}", missing)
        digest = model_digest(folder)  # first: what replaces the model later has another one
        model = JointSpace.load(folder).to_best_device()
        with reading(folder / "preprocessing.json", "a model's preprocessing"):
            text = (folder / "preprocessing.json").read_text(encoding="utf-8")
            return cls(model, Preprocessing.model_validate(json.loads(text)), folder, digest)

    def __reduce__(self) -> tuple:
        """Load it again from its folder, where a copy is asked for: also in another process."""
        return type(self).load, (self.folder,)

    @property
    def languages(self) -> list[str]:
        """The languages it embeds."""
        return sorted(self.model.architecture.languages)

    def embed_sentences(self, sentences: Sequence[str], language: str) -> np.ndarray:
        """Return the vectors of raw sentences ``float32 [sentences, embed_dim]``.

        Raises:
            ContractError: If the model does not know the language, or one sentence is given where
                a list of them is expected.
            WordlessError: If sentences have no word.
        """
        return self.embed_tokens(self.tokens(sentences, language), language)

    def tokens(self, sentences: Sequence[str], language: str) -> list[list[str]]:
        """Return the tokens of raw sentences, also those that the model reads no more.

        Raises:
            ContractError: As :meth:`embed_sentences` does.
            WordlessError: If sentences have no word.
        """
        # Of a table and a dictionary a loop would yield the names of columns, and the keys.
        if isinstance(sentences, (str, Mapping)) or getattr(sentences, "ndim", 1) != 1:
            found = repr(sentences) if isinstance(sentences, str) else type(sentences).__name__
            raise ContractError(f"sentences: expected a list of them, found {found}")
        sentences = list(sentences)  # a column of pandas, too, which finds rows by other names
        raise_problems("sentences", named([*_no_text(sentences)]))
        tokenize = self._tokenizer(language)
        tokens = [tokenize(sentence) for sentence in sentences]
        if wordless := [i for i, words in enumerate(tokens) if not words]:
            raise WordlessError(sentences, wordless)
        return tokens

    def embed_tokens(self, tokens: Sequence[Sequence[str]], language: str) -> np.ndarray:
        """Return the vectors of tokenised sentences ``float32 [sentences, embed_dim]``."""
        if not tokens:
            return self._no_vectors
        return self.model.embed_sentences(tokens, language).float().numpy()

    @property
    def max_tokens(self) -> int:
        """Of a sentence, so many tokens are read: the first ones."""
        return self.model.vocabulary.max_tokens

    def words(self, sentence: str, language: str) -> dict[str, bool]:
        """Return the words of a raw sentence, and whether the vocabulary has them.

        Tokens without a letter or a digit do not count as words. Moses writes & as ``&amp;``: words
        are named as they stand in the sentence.

        Raises:
            ContractError: If the model does not know the language.
        """
        raise_problems("sentence", _no_text([sentence]))
        tokens = {token: unescape(token) for token in self._tokenizer(language)(sentence)}
        tokens = {token: word for token, word in tokens.items() if any(map(str.isalnum, word))}
        ids = self.model.vocabulary.word_ids([*tokens], language)
        return dict(zip(tokens.values(), (ids != UNK).tolist(), strict=True))

    def embed_images(self, photos: Iterable[os.PathLike | str | BinaryIO]) -> np.ndarray:
        """Return the vectors of photos ``float32 [photos, embed_dim]``.

        Args:
            photos: Paths, or open files.

        Raises:
            ContractError: Lists every photo that cannot be read; or if one is given where a list of
                them is expected.
        """
        if isinstance(photos, (str, os.PathLike)) or hasattr(photos, "read"):
            raise ContractError(f"photos: expected a list of them, found {str(photos)!r}")
        photos = [*photos]
        if not photos:
            return self._no_vectors
        raise_problems("photos", _neither_path_nor_file(photos))
        found = [*self.embed_each([p if hasattr(p, "read") else Path(p) for p in photos])]
        problems = (
            f"{f'number {number}' if hasattr(photo, 'read') else photo}: {each}"
            for number, (photo, each) in enumerate(zip(photos, found, strict=True), 1)
            if isinstance(each, ImageError)
        )
        raise_problems("photos", problems)
        return np.stack(found)

    def embed_features(self, features: np.ndarray) -> np.ndarray:
        """Return the vectors of features of photos ``float32 [photos, embed_dim]``.

        Args:
            features: ``[photos, dim]``, of the kind that the model has learnt: of its extractor, or
                of the network whose features were given.

        Raises:
            ContractError: If they are of another size, or not numbers.
        """
        features, dim = np.asarray(features), self.model.feature_dim
        if features.ndim != 2 or features.shape[1] != dim or features.dtype.kind not in "fiu":
            raise ContractError(
                f"features: expected numbers [images, {dim}], found {features.dtype} "
                f"{[*features.shape]}"
            )
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and found so
            features = features.astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(features).all(axis=1)) + 1
        raise_problems("features", named([f"row {row}: NaN or infinity" for row in wrong]))
        if not len(features):
            return self._no_vectors
        return self.model.embed_features(torch.from_numpy(features)).float().numpy()

    def embed_each(self, photos: Sequence[Photo]) -> Iterator[np.ndarray | ImageError]:
        """Yield each photo's vector ``float32 [embed_dim]`` in order, or why it cannot be read.

        Raises:
            ContractError: If the model's features were given: it has no network to make some.
        """
        self.check_sees_photos()
        few = len(photos) < self._extractor.batch_size
        encoder = self._single if few else self._batches
        for each in encoder.encode_each(photos):
            if isinstance(each, ImageError):
                yield each
            else:
                yield self.model.embed_features(torch.from_numpy(each[None])).float().numpy()[0]

    def check_sees_photos(self) -> None:
        """Raise :class:`ContractError` if the model has no network that reads photos."""
        if isinstance(self.preprocessing.extractor, GivenFeatures):
            raise ContractError(
                f"{self.folder}: expected a model with a network for photos, found one that learnt "
                "from features that were given (backbone: given). Make features of your photos as "
                "those were made, and embed them: polyview embed MODEL features.h5 vectors.parquet"
            )

    def scores(self, images: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        """Return the model's similarity of all pairs of vectors ``[images, sentences]``."""
        sides = (torch.from_numpy(np.asarray(side, np.float32)) for side in (images, sentences))
        return self.model.scores(*sides).numpy()

    def _tokenizer(self, language: str) -> Tokenize:
        if not isinstance(language, str):  # a column of languages, for one
            found = type(language).__name__
            raise ContractError(f"language: expected one, of all the sentences; found {found}")
        if language not in self._tokenize:
            raise ContractError(
                f"language: expected one of {', '.join(self.languages)}; found {language!r}"
            )
        return self._tokenize[language]

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
    def _batches(self) -> PhotoEncoder:
        return self._photo_encoder(self._extractor.batch_size)

    @cached_property
    def _single(self) -> PhotoEncoder:
        """Return what encodes one photo at a time: a batch is filled up, and would take longer."""
        return self._photo_encoder(1)

    @property
    def _extractor(self) -> Extractor:
        return self.preprocessing.extractor

    def _photo_encoder(self, batch_size: int) -> PhotoEncoder:
        extractor = self._extractor
        # Seconds a photo for bits that only the comparison of experiments needs.
        precision = "f32" if extractor.precision == F64 else extractor.precision
        changes = {"batch_size": batch_size, "precision": precision}
        changes["weights"] = weights_of(extractor, self.folder)
        return PhotoEncoder(extractor.model_copy(update=changes))


_SURROGATE = re.compile("[\ud800-\udfff]")
"""What no encoding can write, and JSON can hold."""


def _no_text(sentences: Sequence[object]) -> Iterator[str]:
    for number, sentence in enumerate(sentences, 1):
        if not isinstance(sentence, str):
            yield f"number {number}: expected text, found {type(sentence).__name__}"
        elif half := _SURROGATE.search(sentence):
            yield f"number {number}: expected Unicode text, found half a character, {half[0]!r}"


def _neither_path_nor_file(photos: Sequence[object]) -> Iterator[str]:
    for number, photo in enumerate(photos, 1):
        if not isinstance(photo, (str, os.PathLike)) and not hasattr(photo, "read"):
            yield (
                f"number {number}: expected a path or an open file, found "
                f"{type(photo).__name__}. Give its path, or its file's bytes in an io.BytesIO"
            )


def weights_of(extractor: Extractor, model: Path) -> str:
    """Return the backbone weights of a model in a folder: a name, or a path that is found.

    Weights of one's own are looked for from the current folder, then from the model's study.

    Raises:
        ContractError: If they are in neither.
    """
    if extractor.weights_are_named:
        return extractor.weights
    weights = Path(extractor.weights)
    folders = [Path.cwd(), study_folder(model)]
    found = next((folder / weights for folder in folders if (folder / weights).is_file()), None)
    if not found:
        looked_in = " or ".join(dict.fromkeys(map(str, folders)))
        raise ContractError(
            f"weights of {extractor.backbone}: expected {weights} in {looked_in}, found none. "
            "Put the file there, or run the command in the folder that has it"
        )
    return str(found)
