"""Speed of beam search: many sentences at once against one at a time, in sentences per second.

``python -m benchmarks.translation`` translates the same sentences, as long as Multi30k's, twice
with a small Transformer: with this library's search, and with the plain one that is written here:
one sentence at a time, the whole decoder again for each word. The two alternate, the ratio is that
of the medians, and both must find translations of the same scores. Weights are random, so that a
translation ends where it has to: here at the length of its source.
"""

import statistics
import time
from collections.abc import Callable

import click
import torch
from torch import Tensor

from pipeline_lib.models.beam_search import beam_search
from pipeline_lib.models.translator import pad
from pipeline_lib.models.translator_transformer import TransformerNetwork
from pipeline_lib.settings.synthesis import TransformerRecipe
from pipeline_lib.text.vocabulary import END, PAD, START, UNK

WORDS, SENTENCES, BATCH, BEAM, ALPHA = 10_000, 100, 100, 5, 1.0
LENGTH = 15.0, 4.4
"""Mean and standard deviation of subwords per English sentence of Multi30k, end marker included."""

RECIPE = TransformerRecipe(
    dataset="synthetic", source_language="en", target_language="de", exclude_images="none",
    exclude_pairs="none", subwords=WORDS, dropout=0.3, label_smoothing=0.1, learning_rate=5e-3,
    warmup_updates=2000, clip_norm="none", batch_tokens=4096, max_updates=1,
    validate_every_updates=1,
    patience_validations=1, averaged_checkpoints=1, beam=BEAM, length_normalization=ALPHA,
    n_best=1, precision="f32", seed=1, architecture="transformer", layers=4, dim=128,
    feed_forward=256, heads=4,
)  # fmt: skip


@click.command(help=__doc__)
@click.option("--rounds", default=3, help="Rounds; the two searches take turns.")
def main(rounds: int) -> None:
    """Print a table and the ratio."""
    network, sources = make_network(), make_sources()
    searches: dict[str, Callable[[], list[float]]] = {
        "one at a time, no kept states": lambda: [one_by_one(network, each) for each in sources],
        "ours, one at a time": lambda: [
            score for each in sources for score in batched(network, [each])
        ],
        "ours, batches": lambda: batched(network, sources),
    }
    rates: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(rounds):
        scores = {}
        for name, search in searches.items():
            start = time.perf_counter()
            scores[name] = search()
            rates[name].append(len(sources) / (time.perf_counter() - start))
        check_same(*scores.values())
    medians = {name: statistics.median(values) for name, values in rates.items()}
    reference = medians["one at a time, no kept states"]
    print(f"{'search':<34} sentences/s   ratio   ({torch.get_num_threads()} threads)")
    for name, rate in medians.items():
        print(f"{name:<34} {rate:11.1f} {rate / reference:7.2f}")
    print(f"translation ratio={medians['ours, batches'] / reference:.2f}")


def make_network() -> TransformerNetwork:
    """Return an untrained network: what it says is no matter, each sentence ends at its bound."""
    torch.manual_seed(RECIPE.seed)
    return TransformerNetwork(RECIPE, WORDS).eval()


def make_sources() -> list[list[int]]:
    """Return sentences of random words; translations are as long as they are."""
    random = torch.Generator().manual_seed(RECIPE.seed)
    lengths = torch.empty(SENTENCES).normal_(*LENGTH, generator=random).round().clip(4, 40).int()
    return [
        [*torch.randint(END + 1, WORDS, (length - 1,), generator=random).tolist(), END]
        for length in lengths.tolist()
    ]


def batched(network: TransformerNetwork, sources: list[list[int]]) -> list[float]:
    """Translate with this library's search; return the score of each best translation."""
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    scores: dict[int, float] = {}
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        ids = [sources[row] for row in rows]
        longest = torch.tensor([len(each) for each in ids])
        found = beam_search(network, pad(ids), beam=BEAM, n_best=1, alpha=ALPHA, longest=longest)
        scores.update(zip(rows, found.scores[:, 0].tolist(), strict=True))
    return [scores[row] for row in range(len(sources))]


@torch.inference_mode()
def one_by_one(network: TransformerNetwork, ids: list[int]) -> float:
    """Translate one sentence with the plain search; return the score of the best translation."""
    memory = network.encode(torch.tensor([ids]))
    hypotheses, best = [(0.0, [START])], float("-inf")
    for length in range(1, len(ids) + 1):
        words = torch.tensor([words for _, words in hypotheses])
        repeated = {name: value.expand(len(words), *value.shape[1:]) for name, value in
                    memory.items()}  # fmt: skip
        last = network.hidden(repeated, words)[:, -1]
        scores = network.logits(last).log_softmax(dim=1)
        forbid(scores, length, len(ids))
        totals = torch.tensor([total for total, _ in hypotheses])[:, None] + scores
        best_places = totals.flatten().topk(2 * BEAM)
        candidates = [
            (total, [*hypotheses[place // WORDS][1], place % WORDS])
            for total, place in zip(*map(Tensor.tolist, best_places), strict=True)
        ]
        ended = [total for total, words in candidates[:BEAM] if words[-1] == END]
        best = max([best, *(total / ((5 + length) / 6) ** ALPHA for total in ended)])
        hypotheses = [each for each in candidates if each[1][-1] != END][:BEAM]
    return best


def forbid(scores: Tensor, length: int, longest: int) -> None:
    """Rule out what a translation may not say at this length."""
    scores[:, [PAD, UNK, START]] = float("-inf")
    if length == 1:
        scores[:, END] = float("-inf")
    if length == longest:
        scores[:, END + 1 :] = float("-inf")


def check_same(*found: list[float]) -> None:
    """Raise unless all searches found translations of the same scores."""
    for others in found[1:]:
        torch.testing.assert_close(torch.tensor(others), torch.tensor(found[0]), rtol=1e-4, atol=0)


if __name__ == "__main__":
    main()
