"""Recurrent layers from words to one vector per sentence: the state after the last word."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from pipeline_lib.compute.device import TYPES, precision_on, summing_type
from pipeline_lib.models.gru import GRUStates
from pipeline_lib.models.lstm import LSTMStates
from pipeline_lib.models.prefixes import PrefixTree
from pipeline_lib.settings.strict import Precision

LAYERS = {"gru": (nn.GRU, GRUStates), "lstm": (nn.LSTM, LSTMStates)}
"""PyTorch's layer, which holds the weights and runs on CUDA, and ours, which runs on the CPU."""


class SentenceLayer(nn.Module):
    """A one-layer forward GRU or LSTM that reads sentences of different lengths."""

    def __init__(self, kind: str, word_dim: int, dim: int, precision: Precision) -> None:
        """Make the layer.

        Args:
            kind: A key of :data:`LAYERS`.
            word_dim: Size of the words' vectors.
            dim: Size of the state.
            precision: Of the matrix products, as far as the device has it.
        """
        super().__init__()
        layer, self.states = LAYERS[kind]
        self.layer = layer(word_dim, dim, batch_first=True)
        self.precision = precision

    def forward(
        self, embed: Callable[[Tensor], Tensor], token_ids: Tensor, lengths: Tensor
    ) -> Tensor:
        """Encode sentences.

        Args:
            embed: From ids of words ``[words]`` to their vectors ``[words, word_dim]``.
            token_ids: ``[sentences, steps]``, padded at the end with any id.
            lengths: Words per sentence ``[sentences]``, each at least 1.

        Returns:
            Final states ``[sentences, dim]`` in the type of the weights, in the order given.
        """
        if torch.compiler.is_exporting():
            return self._padded(embed, token_ids, lengths)
        kind = TYPES[precision_on(self.precision, token_ids.device)]
        if token_ids.is_cuda:
            words = embed(token_ids.flatten()).unflatten(0, token_ids.shape)
            return self.packed(words.to(kind), lengths)
        tree = PrefixTree.of(token_ids, lengths)
        # A batch repeats its words (1,600 tokens, some 450 types): project each type once.
        types, occurrence = tree.tokens.unique(return_inverse=True)
        of_words = self.layer.weight_ih_l0, self.layer.bias_ih_l0
        projected = F.linear(embed(types).to(kind), *(weight.to(kind) for weight in of_words))
        if projected.requires_grad:
            # The gradients of a word's steps are summed: in bf16 those of frequent words stall.
            projected = projected.to(summing_type(kind))
        inputs = F.embedding(occurrence, projected).to(kind)
        recurrence = self.layer.weight_hh_l0, self.layer.bias_hh_l0
        return self.states.apply(inputs, *recurrence, tree)[tree.whole]

    def _padded(
        self, embed: Callable[[Tensor], Tensor], token_ids: Tensor, lengths: Tensor
    ) -> Tensor:
        """Encode as :meth:`forward` does, by operations that other formats know."""
        words = embed(token_ids.flatten()).unflatten(0, token_ids.shape)
        states, _ = self.layer(words)
        last = (lengths - 1)[:, None, None].expand(-1, 1, states.shape[2])
        return states.gather(1, last)[:, 0]

    def packed(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Encode sentences by PyTorch's own layer, which is cuDNN's on CUDA.

        On an H100 it is faster than the tree of prefixes, which has fewer products in more steps:
        1.7 times for MULE's batches.

        Args:
            words: Vectors ``[sentences, steps, word_dim]``, in the type of the products.
            lengths: Words per sentence ``[sentences]``.

        Returns:
            As :meth:`forward`.
        """
        packed = nn.utils.rnn.pack_padded_sequence(
            words, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        if words.dtype == self.layer.weight_hh_l0.dtype:  # which lie together as cuDNN wants them
            _, state = self.layer(packed)
        else:
            # Not autocast: whatever type it is asked for, it runs cuDNN's layers in float16.
            weights = {name: w.to(words.dtype) for name, w in self.layer.named_parameters()}
            _, state = functional_call(self.layer, weights, (packed,))
        final = state if isinstance(state, Tensor) else state[0]
        return final[0].float()
