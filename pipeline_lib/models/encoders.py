"""Encoders of images and of sentences into the joint space, by their names in a recipe.

A text encoder or an image head is added by a class here, and by its keys under the same name in
settings/architecture.py.
"""

from collections.abc import Mapping
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline_lib.compute.arithmetic.mode import F64
from pipeline_lib.models.recurrent import SentenceLayer
from pipeline_lib.settings.architecture import Architecture
from pipeline_lib.text.vocabulary import Vocabulary

ALL = "all"
"""Name of a layer that all languages share."""


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation; a batch of one image has no variance, and takes running statistics."""

    def forward(self, values: Tensor) -> Tensor:
        """Normalise values ``[images, dim]``."""
        alone = self.training and len(values) == 1
        return self.by_running_statistics(values) if alone else super().forward(values)

    def by_running_statistics(self, values: Tensor) -> Tensor:
        """Normalise values ``[images, dim]`` as evaluation does, by operations with gradients."""
        deviations = values - self.running_mean
        return self.scaled(deviations / (self.running_var + self.eps).sqrt())

    def scaled(self, values: Tensor) -> Tensor:
        """Return standardised values ``[images, dim]`` by the layer's own scale, if it has one."""
        return values if self.weight is None else values * self.weight + self.bias


class MLPHead(nn.Module):
    """Affine maps from CNN features to the joint space, with rectified layers between, if any.

    One map in Kiros et al. 2014, Calixto et al. 2017 and Kádár et al. 2019; the two-branch network
    of Wang et al. 2019 has one hidden layer, normalised over the batch.
    """

    def __init__(self, feature_dim: int, architecture: Architecture) -> None:
        """Make the layers."""
        super().__init__()
        self.normalize_features = architecture.normalize_features
        dims = [feature_dim, *architecture.image_hidden_dims]
        self.hidden = nn.Sequential(
            *(nn.Sequential(nn.Linear(a, b), BatchNorm(b), nn.ReLU()) for a, b in pairwise(dims))
        )
        self.dropout = nn.Dropout(architecture.image_dropout)
        self.linear = nn.Linear(dims[-1], architecture.embed_dim)

    def forward(self, features: Tensor) -> Tensor:
        """Map features ``[images, feature_dim]`` to vectors ``[images, embed_dim]``."""
        if self.normalize_features:
            features = F.normalize(features, dim=1)
        return self.linear(self.dropout(self.hidden(features)))


class ResidualHead(nn.Module):
    """An affine map of standardised features, plus a network with one hidden layer."""

    def __init__(self, feature_dim: int, architecture: Architecture) -> None:
        """Make the layers, of features that hold the vectors of several crops side by side."""
        super().__init__()
        self.crops, hidden = architecture.image_crops, architecture.image_hidden_dim
        dim = feature_dim // self.crops
        self.standardize = BatchNorm(dim)
        self.dropout = nn.Dropout(architecture.image_dropout)
        self.linear = nn.Linear(dim, architecture.embed_dim)
        self.hidden = nn.Linear(dim, hidden)
        self.correction = nn.Linear(hidden, architecture.embed_dim)

    def forward(self, features: Tensor) -> Tensor:
        """Map features ``[images, feature_dim]`` to vectors ``[images, embed_dim]``."""
        dim = features.shape[1] // self.crops
        crops = features.unflatten(1, (self.crops, dim))
        if self.training:
            chosen = torch.randint(self.crops, (len(features),)).to(features.device)
            one = crops[torch.arange(len(features), device=features.device), chosen]
        else:
            one = crops.mean(dim=1)
        x = self.dropout(self.standardize(one))
        return self.linear(x) + self.correction(self.dropout(torch.relu(self.hidden(x))))


class TextEncoder(nn.Module):
    """Word vectors; what makes a sentence of them is the matter of a subclass.

    With a pooled vocabulary a form that occurs in two languages has one vector (Kádár et al. 2019,
    §3.1).
    """

    def __init__(self, vocabulary: Vocabulary, architecture: Architecture) -> None:
        """Make the word vectors, of ``word_dim`` numbers each."""
        super().__init__()
        languages = architecture.languages
        tables = [ALL] if architecture.vocabulary == "pooled" else languages
        sizes = {name: vocabulary.size(languages[0] if name == ALL else name) for name in tables}
        self.words = nn.ModuleDict(
            {name: nn.Embedding(size, architecture.word_dim) for name, size in sizes.items()}
        )
        for table in self.words.values():
            table.weight.requires_grad_(architecture.tune_words)

    def forward(self, token_ids: Tensor, lengths: Tensor, language: str) -> Tensor:
        """Encode ``token_ids [sentences, steps]`` of one language to ``[sentences, embed_dim]``."""
        raise NotImplementedError

    def together(self, sentences: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """Encode token ids and lengths of several languages as :meth:`forward` does each."""
        return {language: self(*each, language) for language, each in sentences.items()}

    def embed(self, ids: Tensor, language: str) -> Tensor:
        """Return the vectors of words ``[words]`` as the encoder reads them."""
        return self.word_table(language)(ids)

    def word_table(self, language: str) -> nn.Embedding:
        """Return the word vectors of a language."""
        return _of(self.words, language)


class RecurrentEncoder(TextEncoder):
    """Word vectors, their map into one space, a recurrent layer, and a projection of its state.

    Each of them is shared by all languages or one per language, as the architecture says.
    """

    def __init__(self, vocabulary: Vocabulary, architecture: Architecture) -> None:
        """Make the layers."""
        super().__init__(vocabulary, architecture)
        each, shared = architecture.languages, [ALL]
        self.rotations = nn.ParameterDict(
            {k: _rotation(architecture.word_dim) for k in each[1:] if architecture.orthogonal_map}
        )
        input_dim = architecture.word_dim
        self.universal_maps = nn.ModuleDict()
        if architecture.universal_dim != "none":
            input_dim = architecture.universal_dim
            self.universal_maps.update(
                {k: nn.Linear(architecture.word_dim, input_dim) for k in each}
            )
        readers = shared if architecture.recurrent_sharing == "shared" else each
        self.recurrent = nn.ModuleDict(
            {
                k: SentenceLayer(
                    architecture.recurrent,
                    input_dim,
                    architecture.hidden_dim,
                    architecture.precision,
                )
                for k in readers
            }
        )
        self.dropout = nn.Dropout(architecture.sentence_dropout)
        projections = {"none": [], "shared": shared, "per_language": each}[architecture.projection]
        self.projections = nn.ModuleDict(
            {k: nn.Linear(architecture.hidden_dim, architecture.embed_dim) for k in projections}
        )

    def forward(self, token_ids: Tensor, lengths: Tensor, language: str) -> Tensor:
        """See :class:`TextEncoder`."""
        read = _of(self.recurrent, language)
        states = self.dropout(read(lambda ids: self.embed(ids, language), token_ids, lengths))
        return _of(self.projections, language)(states) if self.projections else states

    def together(self, sentences: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """Encode token ids and lengths of several languages as :meth:`forward` does each.

        On the CPU a layer that they share reads them all at once, which takes as many steps as the
        language with the longest sentence, not the sum.
        """
        on_cpu = not any(ids.is_cuda for ids, _ in sentences.values())
        if ALL not in self.recurrent or not on_cpu or not sentences:
            return super().together(sentences)
        steps = max(ids.shape[1] for ids, _ in sentences.values())
        first = [0, *accumulate(self.word_table(k).num_embeddings for k in sentences)]
        token_ids = torch.cat(
            [
                F.pad(ids, (0, steps - ids.shape[1])) + start
                for (ids, _), start in zip(sentences.values(), first, strict=False)
            ]
        )
        lengths = torch.cat([each for _, each in sentences.values()])

        def embed(types: Tensor) -> Tensor:
            """Return vectors of ids in ascending order, those of a language after another's."""
            places = torch.searchsorted(types, torch.tensor(first)).diff().tolist()
            parts = zip(sentences, types.split(places), first, strict=False)
            return torch.cat([self.embed(ids - start, language) for language, ids, start in parts])

        states = self.dropout(self.recurrent[ALL](embed, token_ids, lengths))
        counts = [len(each) for _, each in sentences.values()]
        return {
            language: _of(self.projections, language)(own) if self.projections else own
            for language, own in zip(sentences, states.split(counts), strict=True)
        }

    def embed(self, ids: Tensor, language: str) -> Tensor:
        """Return the vectors of words ``[words]`` as the encoder reads them."""
        words = super().embed(ids, language)
        if language in self.rotations:
            words = words @ self.rotations[language].T
        return self.universal_maps[language](words) if self.universal_maps else words

    def average(self, token_ids: Tensor, lengths: Tensor, language: str) -> Tensor:
        """Return the mean of each sentence's word vectors, pads left out (MULE's u)."""
        inside = torch.arange(token_ids.shape[1])[None, :] < lengths[:, None]
        inside = inside.to(token_ids.device)
        types, occurrence = token_ids[inside].unique(return_inverse=True)
        rows = torch.repeat_interleave(lengths.to(token_ids.device))
        weight = self.word_table(language).weight
        counts = weight.new_zeros(len(lengths), len(types))
        counts.index_put_((rows, occurrence), torch.ones_like(rows, dtype=counts.dtype), True)
        return counts @ self.embed(types, language) / counts.sum(dim=1, keepdim=True)


class BagEncoder(TextEncoder):
    """The words of a sentence in any order, as the mean of their vectors and their maximum.

    The mean keeps what most words say; the maximum, over words after an affine map and a rectified
    layer, what one of them says. Both pass through affine maps into the joint space, which all
    languages share.
    """

    def __init__(self, vocabulary: Vocabulary, architecture: Architecture) -> None:
        """Make the layers."""
        super().__init__(vocabulary, architecture)
        for table in self.words.values():
            # Few of its words stand in a batch. In f64 gradients are dense, whose sums are known.
            table.sparse = architecture.precision != F64
        self.dropout = nn.Dropout(architecture.sentence_dropout)
        self.hidden = nn.Linear(architecture.word_dim, architecture.embed_dim)
        self.of_mean = nn.Linear(architecture.word_dim, architecture.embed_dim)
        self.of_maximum = nn.Linear(architecture.embed_dim, architecture.embed_dim)

    def forward(self, token_ids: Tensor, lengths: Tensor, language: str) -> Tensor:
        """See :class:`TextEncoder`."""
        there = torch.arange(token_ids.shape[1], device=token_ids.device)[None, :]
        there = there < lengths.to(token_ids.device)[:, None]
        if torch.compiler.is_exporting():
            return self._padded(token_ids, there[:, :, None], language)
        types, occurrence = token_ids.unique(return_inverse=True)
        words = self.embed(types, language)
        share = there.to(words.dtype) / there.sum(dim=1, keepdim=True)
        shares = words.new_zeros(len(token_ids), len(types)).scatter_add_(1, occurrence, share)
        hidden, counts = torch.relu(self.hidden(words)), there.sum(dim=1)
        starts = counts.cumsum(0) - counts
        outstanding = F.embedding_bag(occurrence[there], hidden, starts, mode="max")
        return self.of_mean(self.dropout(shares @ words)) + self.of_maximum(
            self.dropout(outstanding)
        )

    def _padded(self, token_ids: Tensor, there: Tensor, language: str) -> Tensor:
        """Encode as :meth:`forward` does, by operations that other formats know."""
        words = self.embed(token_ids.flatten(), language).unflatten(0, token_ids.shape)
        there = there.to(words.dtype)
        mean = (words * there).sum(dim=1) / there.sum(dim=1)
        outstanding = (torch.relu(self.hidden(words)) * there).amax(dim=1)
        return self.of_mean(mean) + self.of_maximum(outstanding)


TEXT_ENCODERS: dict[str, type[TextEncoder]] = {
    "bag": BagEncoder,
    "recurrent": RecurrentEncoder,
}
IMAGE_HEADS: dict[str, type[nn.Module]] = {"mlp": MLPHead, "residual": ResidualHead}


def _of(layers: nn.ModuleDict, language: str) -> nn.Module:
    return layers[ALL] if ALL in layers else layers[language]


def _rotation(dim: int) -> nn.Parameter:
    # Saved with the weights; moved by its own rule, never by the optimiser.
    return nn.Parameter(torch.eye(dim), requires_grad=False)
