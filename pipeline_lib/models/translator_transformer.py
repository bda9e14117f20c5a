"""The Transformer of Vaswani et al. 2017 with layer normalisation before each sublayer.

The decoder has two ways through the same layers: all positions at once to train, and one position
of many hypotheses, with the keys and values of the earlier ones kept, to search.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline_lib.compute.device import summing_type
from pipeline_lib.models.dropout import Dropout
from pipeline_lib.settings.synthesis import TransformerRecipe
from pipeline_lib.text.vocabulary import PAD

_LONGEST_WAVE = 10_000
"""Base of the wavelengths of positions (§3.5)."""


class TransformerNetwork(nn.Module):
    """Encoder, decoder and the one table of subword vectors that input and output share."""

    def __init__(self, recipe: TransformerRecipe, words: int) -> None:
        """Make an untrained network for a vocabulary of so many ``words``."""
        super().__init__()
        self.dim = recipe.dim
        self.words = nn.Embedding(words, recipe.dim)
        self.dropout = Dropout(recipe.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(recipe) for _ in range(recipe.layers))
        self.decoder = nn.ModuleList(DecoderLayer(recipe) for _ in range(recipe.layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(recipe.dim), nn.LayerNorm(recipe.dim)

    def encode(self, source: Tensor) -> dict[str, Tensor]:
        """Read sentences ``[sentences, steps]``, padded at the end.

        Returns:
            What the decoder attends to: a mask and, per decoder layer, keys and values; each with
            the sentences first.
        """
        mask = (source != PAD)[:, None, None, :]
        x = self._embed(source, 0)
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.encoder_norm(x)
        memory = {"mask": mask}
        for number, layer in enumerate(self.decoder):
            memory[f"keys{number}"], memory[f"values{number}"] = layer.cross.keys_values(x)
        return memory

    def hidden(self, memory: dict[str, Tensor], target: Tensor) -> Tensor:
        """Return the last layer at each position of ``target [sentences, steps]``."""
        x = self._embed(target, 0)
        for number, layer in enumerate(self.decoder):
            x = layer(x, *_of_layer(memory, number))
        return self.decoder_norm(x)

    def initial_state(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the state of one hypothesis per sentence before its first word.

        Returns:
            Keys and values of earlier positions per layer ``[sentences, 1, heads, 0, size]``.
        """
        sentences, heads, _, size = memory["keys0"].shape
        empty = memory["keys0"].new_empty(sentences, 1, heads, 0, size)
        names = ("past_keys", "past_values")
        return {f"{name}{number}": empty for number in range(len(self.decoder)) for name in names}

    def step(
        self, memory: dict[str, Tensor], state: dict[str, Tensor], words: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Read one word of each hypothesis.

        Args:
            memory: Of :meth:`encode`, for these sentences.
            state: Of the hypotheses before the word.
            words: ``[sentences, hypotheses]``.

        Returns:
            The last layer ``[sentences, hypotheses, dim]``, and the state after the word.
        """
        # Hypotheses of a sentence stand where a sequence has its positions, at one and the same
        # position; so they share the sentence's keys and values.
        x = self._embed(words[..., None], state["past_keys0"].shape[3]).squeeze(2)
        after = {}
        for number, layer in enumerate(self.decoder):
            past = state[f"past_keys{number}"], state[f"past_values{number}"]
            x, keys, values = layer.step(x, *past, *_of_layer(memory, number))
            after[f"past_keys{number}"], after[f"past_values{number}"] = keys, values
        return self.decoder_norm(x), after

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the scores of all words ``[.., words]`` from the last layer ``[.., dim]``."""
        return hidden @ self.words.weight.T

    def _embed(self, ids: Tensor, first: int) -> Tensor:
        words = self.words(ids)
        return self.dropout(words * math.sqrt(self.dim) + _positions(first, words))


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward sublayer."""

    def __init__(self, recipe: TransformerRecipe) -> None:
        super().__init__()
        self.own, self.own_norm = Attention(recipe.dim, recipe.heads), nn.LayerNorm(recipe.dim)
        self.feed_forward = _feed_forward(recipe)
        self.dropout = Dropout(recipe.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map ``[sentences, steps, dim]`` to the same shape."""
        normal = self.own_norm(x)
        x = x + self.dropout(self.own.attend(normal, *self.own.keys_values(normal), mask))
        return x + self.dropout(self.feed_forward(x))


class DecoderLayer(nn.Module):
    """Self-attention to earlier positions, attention to the source, and a feed-forward sublayer."""

    def __init__(self, recipe: TransformerRecipe) -> None:
        super().__init__()
        self.own, self.own_norm = Attention(recipe.dim, recipe.heads), nn.LayerNorm(recipe.dim)
        self.cross, self.cross_norm = Attention(recipe.dim, recipe.heads), nn.LayerNorm(recipe.dim)
        self.feed_forward = _feed_forward(recipe)
        self.dropout = Dropout(recipe.dropout)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Map all positions ``[sentences, steps, dim]`` to the same shape."""
        normal = self.own_norm(x)
        own = self.own.attend(normal, *self.own.keys_values(normal), None, causal=True)
        return self._rest(x + self.dropout(own), keys, values, mask)

    def step(
        self, x: Tensor, past_keys: Tensor, past_values: Tensor, *source: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Map one position ``[sentences, hypotheses, dim]``; return all keys and values too."""
        own, keys, values = self.own.extend(self.own_norm(x), past_keys, past_values)
        return self._rest(x + own, *source), keys, values

    def _rest(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        x = x + self.dropout(self.cross.attend(self.cross_norm(x), keys, values, mask))
        return x + self.dropout(self.feed_forward(x))


class Attention(nn.Module):
    """Attention with several heads (§3.2)."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.output = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.keys, self.values = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values ``[sentences, heads, steps, size]`` of ``[.., steps, dim]``."""
        return self._split(self.keys(x)), self._split(self.values(x))

    def attend(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool = False
    ) -> Tensor:
        """Look from each position of ``[sentences, steps, dim]`` at those that ``mask`` allows."""
        queries = self._split(self.queries(x))
        # The gradient of the CPU's bfloat16 kernel is many times slower than that of float32.
        with torch.autocast(x.device.type, enabled=False):
            each = (side.to(summing_type(side.dtype)) for side in (queries, keys, values))
            found = F.scaled_dot_product_attention(*each, mask, is_causal=causal)
        return self.output(found.transpose(1, 2).flatten(2))

    def extend(
        self, x: Tensor, past_keys: Tensor, past_values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Look from one position per hypothesis ``[sentences, hypotheses, dim]`` at it and before.

        Returns:
            What was seen, of the same shape; keys and values of all positions so far
            ``[sentences, hypotheses, heads, steps, size]``.
        """
        queries, keys, values = (
            layer(x).unflatten(-1, (self.heads, 1, -1))
            for layer in (self.queries, self.keys, self.values)
        )
        keys = torch.cat([past_keys, keys], dim=3)
        values = torch.cat([past_values, values], dim=3)
        found = F.scaled_dot_product_attention(queries, keys, values)
        return self.output(found.flatten(2)), keys, values

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def _feed_forward(recipe: TransformerRecipe) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(recipe.dim),
        nn.Linear(recipe.dim, recipe.feed_forward),
        nn.ReLU(),
        nn.Linear(recipe.feed_forward, recipe.dim),
    )


def _of_layer(memory: dict[str, Tensor], number: int) -> tuple[Tensor, Tensor, Tensor]:
    return memory[f"keys{number}"], memory[f"values{number}"], memory["mask"]


def _positions(first: int, words: Tensor) -> Tensor:
    """Return sines and cosines of the positions of ``words [.., count, dim]`` ``[count, dim]``."""
    count, dim = words.shape[-2:]
    place = torch.arange(first, first + count).to(words)[:, None]
    rates = _LONGEST_WAVE ** (-torch.arange(0, dim, 2).to(words) / dim)
    return torch.cat([(place * rates).sin(), (place * rates).cos()], dim=1)[:, :dim]
