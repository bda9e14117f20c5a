"""The text side of a joint space as a module of sentence-transformers.

Its own modules cannot carry one: they have no GRU, no tokeniser of Moses, MeCab, jieba or
Unicode, and no markers around a sentence. So modules.json names this class of the installed
package.
"""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from sentence_transformers.base.modules.input_module import InputModule
from torch import Tensor

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.models.embedder import Embedder, WordlessError
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.search.languages import LanguageDetector, LanguageError

_FILES = ("weights.safetensors", "vocabulary.json", "preprocessing.json")
_ARCHITECTURE = "architecture.json"
_PROMPT = re.compile(r"<([a-z]{2,3})> (.*)", re.DOTALL)


class JointSpaceSentences(InputModule):
    """Sentences to vectors; a prompt, such as ``encode(sentences, prompt_name="de")``, names their
    language, else it is detected.
    """  # noqa: D205

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        """Take a model and the folder that it lies in."""
        super().__init__()
        self.embedder, self.folder = embedder, folder
        self.space: JointSpace = embedder.model
        self.languages = LanguageDetector(embedder)

    def __reduce__(self) -> tuple:
        """Load it again from its folder in another process, such as each of several that encode."""
        return type(self).load, (str(self.folder),)

    @property
    def max_seq_length(self) -> int:
        """Words of a sentence that are read."""
        return self.embedder.max_tokens

    def get_embedding_dimension(self) -> int:
        """Return the size of the joint space."""
        return self.space.architecture.embed_dim

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **_options: object
    ) -> dict[str, Any]:
        """Return the vectors of sentences, which :meth:`forward` hands on.

        Raises:
            ContractError: Lists all sentences without words or in no language of the model, by
                their text: encode() sorts what it is given, and hands on a batch of it.
        """
        other = [f"expected text, found {each!r}" for each in inputs if not isinstance(each, str)]
        raise_problems("sentences", dict.fromkeys(other))
        texts = [self._named((prompt or "") + text) for text in inputs]
        rows: dict[str, list[int]] = {}
        problems: dict[str, None] = {}  # in order, equal ones once
        for row, (named, text) in enumerate(texts):
            try:
                _check_words(text)
                rows.setdefault(named or self._detected(text), []).append(row)
            except ContractError as error:
                problems[str(error)] = None
        vectors = torch.empty(len(texts), self.get_embedding_dimension())
        for language, own in rows.items():
            sentences = [texts[row][1] for row in own]
            try:
                found = self.embedder.embed_sentences(sentences, language)
            except WordlessError as error:
                problems |= dict.fromkeys(map(_wordless, (sentences[n] for n in error.places)))
            else:
                vectors[own] = torch.from_numpy(found).float()
        raise_problems("sentences", problems)
        return {"sentence_embedding": vectors}

    def _named(self, text: str) -> tuple[str | None, str]:
        """Return the language that a prompt names, and the text without it."""
        named = _PROMPT.fullmatch(text)
        if named and named[1] in self.embedder.languages:  # others, such as <br>, are text
            return named[1], named[2]
        return None, text

    def _detected(self, text: str) -> str:
        try:
            return self.languages.detect(text)
        except LanguageError as error:
            raise ContractError(f"{error}. If it is one of them, name it: prompt_name") from error

    def forward(self, features: dict[str, Tensor], **_options: object) -> dict[str, Tensor]:
        """Return the features: they are the vectors."""
        return features

    def save(self, output_path: str, *_arguments: object, **_options: object) -> None:
        """Copy the model into a folder, which may be its own."""
        for name in (*_FILES, _ARCHITECTURE):
            source, target = self.folder / name, Path(output_path) / name
            if not (target.exists() and target.samefile(source)):
                shutil.copyfile(source, target)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **_options: object,
    ) -> Self:
        """Read the model from a folder of sentence-transformers, or of a hub by its id.

        Raises:
            ContractError: If there is none.
        """
        found = cls.load_dir_path(
            model_name_or_path,
            subfolder=subfolder,
            token=token,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
        )
        if found is None:
            raise ContractError(
                f"{model_name_or_path}: expected a folder of a model, or the id of one on a hub "
                "that can be reached or was fetched before, found neither"
            )
        return cls(Embedder.load(found), Path(found))


def _check_words(text: str) -> None:
    if not text.strip():
        raise ContractError(_wordless(text))


def _wordless(text: str) -> str:
    return f"expected words, found {text!r}"


def write_folder(model: Path, folder: Path) -> None:
    """Write what ``SentenceTransformer(folder, trust_remote_code=True)`` loads."""
    embedder = Embedder.load(model)
    for name in _FILES:
        shutil.copyfile(model / name, folder / name)
    # Models of earlier versions have it in another file.
    space = embedder.model
    own = {"feature_dim": space.feature_dim, **space.architecture.model_dump()}
    _write(folder / _ARCHITECTURE, own)
    kind = f"{JointSpaceSentences.__module__}.{JointSpaceSentences.__qualname__}"
    similarity = {"euclidean": "euclidean"}.get(embedder.model.architecture.similarity, "cosine")
    _write(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": kind}])
    settings = {
        "prompts": {language: f"<{language}> " for language in embedder.languages},
        "default_prompt_name": None,
        "similarity_fn_name": similarity,
    }
    _write(folder / "config_sentence_transformers.json", settings)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
