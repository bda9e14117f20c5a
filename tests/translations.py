"""Random sentences with translations of every quality, for the tests that score translations."""

import numpy as np

from pipeline_lib.evaluation.machine_translation.bleu import bleu_statistics

WORDS = [
    "a",
    "the",
    "dog",
    "man",
    "runs",
    "sits",
    "on",
    "in",
    "red",
    "big",
    "park",
    "street",
    "with",
    ".",
]


def sentences(generator, count):
    lengths = generator.integers(3, 12, count)
    return [" ".join(generator.choice(WORDS, length)) for length in lengths]


def garbled(generator, sentence, share):
    """Replace or drop a share of the words."""
    words = [
        w if generator.random() > share else generator.choice(["", *WORDS])
        for w in sentence.split()
    ]
    return " ".join(filter(None, words)) or "a"


def draw_lists(seed, lists, size):
    """Return references, hypotheses by row, their list, and the statistics of each."""
    generator = np.random.default_rng(seed)
    references = sentences(generator, lists)
    sentence = np.repeat(np.arange(lists), size)
    hypotheses = [garbled(generator, references[i], generator.random()) for i in sentence]
    statistics = bleu_statistics(hypotheses, [references[i] for i in sentence], "13a")
    return references, hypotheses, sentence, statistics
