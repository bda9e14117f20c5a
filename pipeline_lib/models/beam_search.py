"""Beam search for many sentences at once, with kept states, length normalisation and n-best lists.

All hypotheses of a batch have the same number of words, so that a step is one pass of the network.
A sentence leaves the batch as soon as none of its open hypotheses can still enter its n-best list.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pipeline_lib.compute.device import summing_type
from pipeline_lib.text.vocabulary import END, PAD, START, UNK

NEVER = float("-inf")
State = dict[str, Tensor]


class Network(Protocol):
    """What the search needs of a translator; all tensors have the sentences first."""

    def encode(self, source: Tensor) -> State:
        """Read source sentences ``[sentences, steps]``."""

    def initial_state(self, memory: State) -> State:
        """Return the state of one hypothesis per sentence ``[sentences, 1, ...]``."""

    def step(self, memory: State, state: State, words: Tensor) -> tuple[Tensor, State]:
        """Read one word of each hypothesis ``[sentences, hypotheses]``; return layer and state."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the scores of all words ``[sentences, hypotheses, words]`` from that layer."""


@dataclass(frozen=True)
class NBestWords:
    """The best translations of each sentence, best first; where there are fewer, scores are -inf.

    Attributes:
        words: ``int64 [sentences, n, longest]``, padded after the end marker.
        log_likelihoods: Natural logarithm of the probability, end marker included
            ``[sentences, n]``.
        scores: The same, divided by the length penalty ``[sentences, n]``.
    """

    words: Tensor
    log_likelihoods: Tensor
    scores: Tensor


@torch.inference_mode()
def beam_search(
    network: Network, source: Tensor, *, beam: int, n_best: int, alpha: float, longest: Tensor
) -> NBestWords:
    """Find the best translations of a batch of sentences.

    A translation has one word or more, never an unknown one. The score of a translation Y of
    ``|Y|`` words, end marker included, is ``log P(Y) / ((5 + |Y|) / 6) ** alpha`` (Wu et al. 2016,
    Eq. 14). The search ends when the rest cannot be better, which is sure since log P only falls.

    Args:
        network: An eval-mode translator.
        source: ``[sentences, steps]``, padded at the end.
        beam: Open hypotheses per sentence; 1 with ``alpha`` 0 is greedy search.
        n_best: Translations per sentence.
        alpha: Exponent of the length penalty.
        longest: Most words of a translation, end marker included ``int64 [sentences]``, each at
            least 2.
    """
    longest = longest.to(source.device)
    found = _nothing_found(len(source), n_best, int(longest.max()), source.device)
    search = _Search.start(network, source, found, longest)
    while len(search.rows):
        search = search.advance(network, beam, alpha)
    return found


@dataclass
class _Search:
    """Sentences whose search goes on.

    ``rows`` are their places in ``found`` and ``history`` the words of their open hypotheses
    ``[sentences, hypotheses, words so far]``, start marker first.
    """

    memory: State
    state: State
    rows: Tensor
    longest: Tensor
    history: Tensor
    totals: Tensor
    found: NBestWords

    @classmethod
    def start(
        cls, network: Network, source: Tensor, found: NBestWords, longest: Tensor
    ) -> "_Search":
        memory, one = network.encode(source), (len(source), 1)
        return cls(
            memory=memory,
            state=network.initial_state(memory),
            rows=torch.arange(len(source), device=source.device),
            longest=longest,
            history=torch.full((*one, 1), START, device=source.device),
            totals=found.log_likelihoods.new_zeros(one),
            found=found,
        )

    def advance(self, network: Network, beam: int, alpha: float) -> "_Search":
        """Add one word to every hypothesis and drop the sentences that are done."""
        hidden, state = network.step(self.memory, self.state, self.history[:, :, -1])
        totals, parents, words = self._candidates(network.logits(hidden), 2 * beam)
        ends = words == END
        length = self.history.shape[2]
        history = torch.cat([_pick(self.history, parents), words[:, :, None]], dim=2)
        self._note_found(history[:, :beam, 1:], totals[:, :beam], ends[:, :beam], alpha)
        totals, kept = totals.masked_fill(ends, NEVER).topk(min(beam, totals.shape[1]))
        # No later score is above this: totals fall, and no penalty is above that of the longest.
        bound = totals[:, 0] / _penalty(self.longest, alpha)
        going = (bound > self.found.scores[self.rows, -1]) & (length < self.longest)
        parents, history = parents.gather(1, kept), _pick(history, kept)
        return _Search(
            memory={name: each[going] for name, each in self.memory.items()},
            state={name: _pick(each[going], parents[going]) for name, each in state.items()},
            rows=self.rows[going],
            longest=self.longest[going],
            history=history[going],
            totals=totals[going],
            found=self.found,
        )

    def _candidates(self, logits: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return total, parent and word of the best continuations ``[sentences, count]``."""
        scores = logits.to(summing_type(logits.dtype)).log_softmax(dim=2).double()
        length = self.history.shape[2]
        scores[:, :, [PAD, UNK, START]] = NEVER
        if length == 1:
            scores[:, :, END] = NEVER
        last = (self.longest == length).nonzero()[:, 0]
        if len(last):  # these must end now
            ending = scores[last, :, END]
            scores[last] = NEVER
            scores[last, :, END] = ending
        # The best of a sentence are among the best of each of its hypotheses.
        each, words = scores.topk(min(count, scores.shape[2]))
        totals = (self.totals[:, :, None] + each).flatten(1)
        totals, places = totals.topk(min(count, totals.shape[1]))
        return totals, places // each.shape[2], words.flatten(1).gather(1, places)

    def _note_found(self, history: Tensor, totals: Tensor, ends: Tensor, alpha: float) -> None:
        """Merge the hypotheses that have just ended into the n-best lists."""
        found, n = self.found, self.found.scores.shape[1]
        if not ends.any():
            return
        length = torch.tensor(history.shape[2], device=history.device)
        scores = (totals / _penalty(length, alpha)).masked_fill(~ends, NEVER)
        scores, best = torch.cat([found.scores[self.rows], scores], dim=1).topk(n)
        words = torch.full((*totals.shape, found.words.shape[2]), PAD, device=history.device)
        words[:, :, : history.shape[2]] = history
        words = torch.cat([found.words[self.rows], words], dim=1)
        likelihoods = torch.cat([found.log_likelihoods[self.rows], totals], dim=1)
        found.scores[self.rows] = scores
        found.words[self.rows] = _pick(words, best)
        found.log_likelihoods[self.rows] = likelihoods.gather(1, best)


def _penalty(length: Tensor, alpha: float) -> Tensor:
    return ((5 + length.double()) / 6) ** alpha


def _pick(values: Tensor, hypotheses: Tensor) -> Tensor:
    """Return ``values[i, hypotheses[i]]`` for each sentence i."""
    sentences = torch.arange(len(values), device=values.device)[:, None]
    return values[sentences, hypotheses]


def _nothing_found(sentences: int, n: int, longest: int, device: torch.device) -> NBestWords:
    return NBestWords(
        words=torch.full((sentences, n, longest), PAD, device=device),
        log_likelihoods=torch.full((sentences, n), NEVER, dtype=torch.float64, device=device),
        scores=torch.full((sentences, n), NEVER, dtype=torch.float64, device=device),
    )
