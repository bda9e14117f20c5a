"""Training of translators: batches, schedule, averaging, resumption, and that they learn."""

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_translation import recipe, toy_pairs, toy_subwords

from pipeline_lib.models.translator import Translator
from pipeline_lib.synthesis.validation import best_texts, greedy_bleu
from pipeline_lib.training.loop import average_weights
from pipeline_lib.training.translation import fit_translator, warmup_factor
from pipeline_lib.training.translation_batches import TokenBatches, encode_pairs

TRAIN = toy_pairs(1000)
VAL = pd.DataFrame(toy_pairs(30, seed=1), columns=["source", "target"])


def lengths(count=500):
    return np.random.default_rng(3).integers(2, 30, (count, 2))


def test_an_epoch_has_each_pair_once_in_batches_within_the_bound():
    sizes = lengths()
    batches = TokenBatches(sizes, 100, seed=1)
    per_epoch = batches.batches_per_epoch
    for epoch in range(2):
        chosen = [batches[epoch * per_epoch + number] for number in range(per_epoch)]
        assert sorted(np.concatenate(chosen)) == list(range(len(sizes)))
        assert max(sizes[rows].max() * len(rows) for rows in chosen) <= 100
        # A batch could not have taken the next pair: all but the last are nearly full.
        assert np.median([sizes[rows].max() * (len(rows) + 1) for rows in chosen]) > 100


def test_batches_are_functions_of_their_number_and_differ_between_epochs():
    first, second = (TokenBatches(lengths(), 100, seed=1) for _ in range(2))
    per_epoch = first.batches_per_epoch
    numbers = [0, per_epoch + 3, 2, 5 * per_epoch]
    for number in numbers:
        np.testing.assert_array_equal(first[number], second[number])
    epochs = [
        {tuple(sorted(first[epoch * per_epoch + number])) for number in range(per_epoch)}
        for epoch in range(2)
    ]
    assert epochs[0] != epochs[1]
    other = TokenBatches(lengths(), 100, seed=2)
    assert any(not np.array_equal(first[number], other[number]) for number in range(5))


def test_a_pair_longer_than_the_bound_stands_alone():
    batches = TokenBatches(np.array([[3, 3], [50, 4], [3, 3]]), 10, seed=1)
    chosen = [sorted(batches[number].tolist()) for number in range(batches.batches_per_epoch)]
    assert sorted(chosen) == [[0, 2], [1]]


def test_padding_is_cut_to_the_batch():
    translator = Translator(recipe("transformer"), toy_subwords())
    pairs = encode_pairs(translator, *(list(side) for side in zip(*TRAIN, strict=True)))
    rows = np.flatnonzero(pairs.lengths[:, 0] <= 3)[:4]
    source, target = pairs.batch(rows, torch.device("cpu"))
    assert source.shape == (4, pairs.lengths[rows, 0].max())
    assert target.shape == (4, pairs.lengths[rows, 1].max())
    decoded = translator.subwords.decode(target.tolist())
    assert decoded == [TRAIN[row][1] for row in rows]


def test_rate_rises_to_one_and_falls_with_the_inverse_square_root():
    assert warmup_factor(0, 100) == pytest.approx(0.01)
    assert warmup_factor(49, 100) == pytest.approx(0.5)
    assert warmup_factor(99, 100) == 1
    assert warmup_factor(399, 100) == pytest.approx(0.5)


def test_averaging_takes_the_mean_of_each_weight():
    checkpoints = [{"a": torch.tensor([float(k), 2.0])} for k in (1, 2, 6)]
    assert average_weights(checkpoints)["a"].tolist() == [3.0, 2.0]


def fit(translator, resume, validate=None):
    pairs = encode_pairs(translator, *(list(side) for side in zip(*TRAIN, strict=True)))
    validate = validate or (lambda each: greedy_bleu(each, VAL))
    return fit_translator(translator, pairs, validate, resume, "toy")


@pytest.mark.parametrize(
    ("architecture", "sizes"),
    [("transformer", {"dim": 32, "feed_forward": 64}), ("gru_attention", {"hidden_dim": 32})],
)
def test_a_toy_language_is_learnt(architecture, sizes, tmp_path):
    changes = {
        "max_updates": 350, "validate_every_updates": 350, "batch_tokens": 400,
        "dropout": 0.0, "label_smoothing": 0.0, "averaged_checkpoints": 1, **sizes,
    }  # fmt: skip
    translator = Translator(recipe(architecture, **changes), toy_subwords())
    history = fit(translator, tmp_path)
    assert history[-1]["update"] == 350
    found = best_texts(translator.translate(VAL["source"].tolist(), beam=3, n_best=1, alpha=1.0))
    # Sentences it has not seen, word by word in another order: not by heart, and not by chance.
    assert np.mean(np.array(found) == VAL["target"]) >= 0.8


@pytest.mark.parametrize(("precision", "rate"), [("f32", 1e8), ("f64", 1e100)])
def test_a_translator_that_diverged_says_so(tmp_path, precision, rate):
    changes = {"learning_rate": rate, "warmup_updates": 1, "clip_norm": "none", "max_updates": 3}
    changes |= {"precision": precision, "validate_every_updates": 1}
    translator = Translator(recipe("transformer", **changes), toy_subwords())
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        fit(translator, tmp_path)


def test_the_best_validations_are_averaged_and_patience_ends_the_run(tmp_path):
    scores = iter([5.0, 7.0, 6.0, 1.0, 1.0, 99.0])
    seen = []

    def validate(translator):
        seen.append({name: value.clone() for name, value in translator.state_dict().items()})
        return next(scores)

    changes = {"max_updates": 600, "patience_validations": 3, "validate_every_updates": 2}
    translator = Translator(recipe("transformer", **changes), toy_subwords())
    history = fit(translator, tmp_path, validate)
    assert [row["bleu"] for row in history] == [5.0, 7.0, 6.0, 1.0, 1.0]
    assert [row["update"] for row in history] == [2, 4, 6, 8, 10]
    expected = average_weights(seen[1:3])
    for name, value in translator.state_dict().items():
        torch.testing.assert_close(value, expected[name])


def test_an_interrupted_run_continues_to_the_same_weights(tmp_path):
    """One loop trains all: what a kill or a damaged checkpoint leave is tested in test_training."""
    whole = Translator(recipe("transformer"), toy_subwords())
    expected, calls = fit(whole, tmp_path / "whole"), iter(range(9))

    def dying(translator):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return greedy_bleu(translator, VAL)

    with pytest.raises(KeyboardInterrupt):
        fit(Translator(recipe("transformer"), toy_subwords()), tmp_path / "killed", dying)
    resumed = Translator(recipe("transformer"), toy_subwords())
    assert fit(resumed, tmp_path / "killed") == expected
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
