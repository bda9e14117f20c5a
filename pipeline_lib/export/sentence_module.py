"""The text side of a joint space as a module of sentence-transformers.

Its own modules cannot carry one: they have no GRU, no tokeniser of Moses, MeCab or jieba, and no
markers around a sentence. So modules.json names this class of the installed package.
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

from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.search.languages import LanguageDetector

_FILES = ("weights.safetensors", "architecture.json", "vocabulary.json", "preprocessing.json")
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

    @property
    def max_seq_length(self) -> int:
        """Words of a sentence that are read."""
        return self.space.vocabulary.max_tokens

    def get_embedding_dimension(self) -> int:
        """Return the size of the joint space."""
        return self.space.architecture.embed_dim

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **_options: object
    ) -> dict[str, Any]:
        """Return the vectors of sentences, which :meth:`forward` hands on."""
        texts = [(prompt or "") + text for text in inputs]
        vectors = torch.empty(len(texts), self.get_embedding_dimension())
        rows: dict[str, list[int]] = {}
        sentences = []
        for row, text in enumerate(texts):
            language, sentence = self._with_language(text)
            rows.setdefault(language, []).append(row)
            sentences.append(sentence)
        for language, own in rows.items():
            found = self.embedder.embed_sentences([sentences[row] for row in own], language)
            vectors[own] = torch.from_numpy(found).float()
        return {"sentence_embedding": vectors}

    def _with_language(self, text: str) -> tuple[str, str]:
        """Return the language of a text, and the text without the prompt that named it."""
        named = _PROMPT.fullmatch(text)
        if named and named[1] in self.embedder.languages:  # others, such as <br>, are text
            return named[1], named[2]
        return self.languages.detect(text), text

    def forward(self, features: dict[str, Tensor], **_options: object) -> dict[str, Tensor]:
        """Return the features: they are the vectors."""
        return features

    def save(self, output_path: str, *_arguments: object, **_options: object) -> None:
        """Copy the model into a folder."""
        for name in _FILES:
            shutil.copyfile(self.folder / name, Path(output_path) / name)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_options: object) -> Self:
        """Read the model from the folder of sentence-transformers."""
        folder = Path(model_name_or_path) / subfolder
        return cls(Embedder.load(folder), folder)


def write_folder(model: Path, folder: Path) -> None:
    """Write what ``SentenceTransformer(folder, trust_remote_code=True)`` loads."""
    embedder = Embedder.load(model)
    for name in _FILES:
        shutil.copyfile(model / name, folder / name)
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
