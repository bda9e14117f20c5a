"""The GRU with attention of Bahdanau et al. 2015, whose output Calixto et al. 2017 re-rank.

Equations are those of appendix A of "Neural machine translation by jointly learning to align and
translate", but for the gates, which are PyTorch's: they have biases, and the reset gate follows the
product with the state. Here both languages and the output share one table of subword vectors, so
that the maxout layer has their size.
"""

import torch
from torch import Tensor, nn

from pipeline_lib.compute.device import summing_type
from pipeline_lib.models.dropout import Dropout
from pipeline_lib.settings.synthesis import AttentionGRURecipe
from pipeline_lib.text.vocabulary import PAD


class AttentionGRUNetwork(nn.Module):
    """Bidirectional encoder, attention, and a decoder with maxout output."""

    def __init__(self, recipe: AttentionGRURecipe, words: int) -> None:
        """Make an untrained network for a vocabulary of so many ``words``."""
        super().__init__()
        word, dim = recipe.word_dim, recipe.hidden_dim
        self.words = nn.Embedding(words, word)
        self.dropout = Dropout(recipe.dropout)
        self.forwards = nn.GRU(word, dim, batch_first=True)
        self.backwards = nn.GRU(word, dim, batch_first=True)
        self.first_state = nn.Linear(dim, dim)
        self.state_to_attention = nn.Linear(dim, dim)
        self.source_to_attention = nn.Linear(2 * dim, dim, bias=False)
        self.attention = nn.Linear(dim, 1, bias=False)
        self.decoder = nn.GRUCell(word + 2 * dim, dim)
        self.maxout = nn.Linear(dim + word + 2 * dim, 2 * word)

    def encode(self, source: Tensor) -> dict[str, Tensor]:
        """Read sentences ``[sentences, steps]``, padded at the end.

        Returns:
            ``annotations`` (h_j) ``[sentences, steps, 2 dim]``, what the attention makes of them
            (``keys``), the ``mask`` of real words, and the decoder's ``first`` state.
        """
        mask = source != PAD
        lengths = mask.sum(dim=1, keepdim=True)
        place = torch.arange(source.shape[1], device=source.device)
        # Each sentence is turned around in its own length, so that no state has read padding.
        turned = (lengths - 1 - place).where(mask, place)[..., None]
        words = self.dropout(self.words(source))
        onwards, _ = self.forwards(words)
        back, _ = self.backwards(words.take_along_dim(turned, dim=1))
        back = back.take_along_dim(turned, dim=1)
        # In autocast cuDNN's layers return float16, which it refuses to join where bfloat16 is its
        # type.
        kind = summing_type(onwards.dtype)
        annotations = self.dropout(torch.cat([onwards.to(kind), back.to(kind)], dim=2))
        keys = self.source_to_attention(annotations)
        first = torch.tanh(self.first_state(back[:, 0]))
        return {"annotations": annotations, "keys": keys, "mask": mask, "first": first}

    def hidden(self, memory: dict[str, Tensor], target: Tensor) -> Tensor:
        """Return the maxout layer at each position of ``target [sentences, steps]``."""
        state, layers = self.initial_state(memory), []
        for words in target.split(1, dim=1):
            layer, state = self.step(memory, state, words)
            layers.append(layer)
        return torch.cat(layers, dim=1)

    def initial_state(self, memory: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the state s_0 of one hypothesis per sentence ``[sentences, 1, dim]``."""
        return {"state": memory["first"][:, None]}

    def step(
        self, memory: dict[str, Tensor], state: dict[str, Tensor], words: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Read one word of each hypothesis.

        Args:
            memory: Of :meth:`encode`, for these sentences.
            state: Of the hypotheses before the word.
            words: ``[sentences, hypotheses]``.

        Returns:
            The maxout layer ``[sentences, hypotheses, word_dim]``, and the state after the word.
        """
        before, word = state["state"], self.dropout(self.words(words))
        context = self._context(memory, before)
        joined = torch.cat([before, word, context], dim=2)
        layer = self.maxout(joined).unflatten(-1, (-1, 2)).amax(dim=-1)
        read = torch.cat([word, context], dim=2).flatten(0, 1)
        after = self.decoder(read, before.flatten(0, 1)).view_as(before)
        return self.dropout(layer), {"state": after}

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the scores of all words ``[.., words]`` from the layer ``[.., word_dim]``."""
        return hidden @ self.words.weight.T

    def _context(self, memory: dict[str, Tensor], state: Tensor) -> Tensor:
        """Return c_i: the annotations weighted by attention ``[sentences, hypotheses, 2 dim]``."""
        looking = torch.tanh(self.state_to_attention(state)[:, :, None] + memory["keys"][:, None])
        energies = self.attention(looking).squeeze(-1)
        weights = energies.masked_fill(~memory["mask"][:, None], float("-inf")).softmax(dim=-1)
        return weights.to(memory["annotations"].dtype) @ memory["annotations"]
