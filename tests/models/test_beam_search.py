"""Beam search against the enumeration of all translations."""

import itertools

import pytest
import torch
from tiny_translation import recipe

from pipeline_lib.models.beam_search import beam_search
from pipeline_lib.models.translator import NETWORKS, pad
from pipeline_lib.text.vocabulary import END, PAD, START, UNK

WORDS = 7
"""The specials and three words."""

SOURCE = pad([[4, 5, 6, END], [5, END], [6, 6, END]])


@pytest.fixture(params=NETWORKS)
def network(request):
    torch.manual_seed(4)
    net = NETWORKS[request.param](recipe(request.param), WORDS).eval()
    # Peaked enough that rankings are clear, and with translations of all lengths among the best.
    net.words.weight.data.normal_(std=1.5)
    return net


@torch.no_grad()
def log_likelihood(network, source, words):
    begun = torch.tensor([[START, *words[:-1]]])
    logits = network.logits(network.hidden(network.encode(source), begun))
    scores = logits.double().log_softmax(dim=2)
    return sum(scores[0, place, word].item() for place, word in enumerate(words))


def all_translations(longest):
    for count in range(1, longest):
        for words in itertools.product(range(4, WORDS), repeat=count):
            yield (*words, END)


def listed(found, row):
    return [tuple(word for word in words if word != PAD) for words in found.words[row].tolist()]


def search(network, source, longest, **options):
    return beam_search(network, source, longest=torch.full((len(source),), longest), **options)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_that_holds_everything_finds_the_exact_n_best(network, alpha):
    longest, n = 5, 12
    found = search(network, SOURCE, longest, beam=400, n_best=n, alpha=alpha)
    for row, source in enumerate(SOURCE):
        source = source[source != PAD][None]
        totals = {words: log_likelihood(network, source, words) for words in
                  all_translations(longest)}  # fmt: skip
        scores = {words: total / ((5 + len(words)) / 6) ** alpha for words, total in totals.items()}
        best = sorted(scores, key=scores.get, reverse=True)[:n]
        assert listed(found, row) == best
        expected = torch.tensor([scores[words] for words in best], dtype=torch.float64)
        torch.testing.assert_close(found.scores[row], expected, rtol=1e-4, atol=1e-4)
        likelihoods = torch.tensor([totals[words] for words in best], dtype=torch.float64)
        torch.testing.assert_close(found.log_likelihoods[row], likelihoods, rtol=1e-4, atol=1e-4)


def test_beam_of_one_is_greedy(network):
    found = search(network, SOURCE, 9, beam=1, n_best=1, alpha=0.0)
    for row, source in enumerate(SOURCE):
        source, words = source[source != PAD][None], []
        while len(words) < 9 and END not in words:
            begun = torch.tensor([[START, *words]])
            logits = network.logits(network.hidden(network.encode(source), begun))[0, -1]
            allowed = [4, 5, 6, *([END] if words else [])] if len(words) < 8 else [END]
            words.append(max(allowed, key=lambda word, scores=logits: scores[word].item()))
        assert listed(found, row) == [tuple(words)]


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_sentence_is_translated_alike_alone_and_in_any_batch(network, beam):
    random = torch.Generator().manual_seed(5)
    ids = [
        [*torch.randint(4, WORDS, (length,), generator=random).tolist(), END]
        for length in (1, 7, 3, 3, 12, 5)
    ]
    longest = torch.tensor([2 * len(each) + 3 for each in ids])
    options = {"beam": beam, "n_best": beam, "alpha": 1.0}
    together = beam_search(network, pad(ids), longest=longest, **options)
    for row, each in enumerate(ids):
        alone = beam_search(
            network, torch.tensor([each]), longest=longest[row : row + 1], **options
        )
        assert listed(alone, 0) == listed(together, row)
        torch.testing.assert_close(alone.scores[0], together.scores[row], rtol=1e-4, atol=1e-4)


def test_lists_are_sorted_and_hold_no_translation_twice(network):
    found = search(network, SOURCE, 8, beam=6, n_best=6, alpha=0.6)
    assert (found.scores.diff(dim=1) <= 0).all()
    for row in range(len(SOURCE)):
        words = listed(found, row)
        assert len(set(words)) == len(words) == 6
        assert not {PAD, UNK, START} & set(itertools.chain(*words))
        assert all(each[-1] == END and len(each) > 1 for each in words)


def test_where_fewer_translations_exist_than_asked_for_the_rest_is_marked(network):
    found = search(network, SOURCE, 2, beam=10, n_best=5, alpha=0.0)
    assert found.scores.isfinite().sum(dim=1).tolist() == [3, 3, 3]
