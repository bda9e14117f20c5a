"""Re-ranking: MIRA against hand, plain loops and grid; bounds against enumeration."""

from itertools import product

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from translations import draw_lists

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.machine_translation.bleu import bleu
from pipeline_lib.evaluation.reranking.mira import (
    background_gain,
    best_rows,
    list_bleu,
    mira_step,
    oracle_rows,
    random_bleu,
    tune_weights,
)
from pipeline_lib.evaluation.significance import randomisation_test

MIRA = {"step_cap": 0.01, "decay": 0.999, "epochs": 30, "seed": 0}


def chosen_bleu(hypotheses, references, rows):
    return BLEU().corpus_score([hypotheses[row] for row in rows], [references]).score


def test_best_rows_takes_the_first_of_equals():
    sentence = np.array([0, 0, 0, 3, 5, 5])
    scores = np.array([1.0, 2, 2, -7, 0, 4])
    assert best_rows(scores, sentence).tolist() == [1, 3, 5]


@pytest.mark.parametrize("seed", range(6))
def test_bounds_against_all_choices(seed):
    references, hypotheses, sentence, statistics = draw_lists(seed, 4, 4)
    choices = np.array(list(product(range(4), repeat=4))) + 4 * np.arange(4)
    every = np.array([chosen_bleu(hypotheses, references, rows) for rows in choices])
    oracle = oracle_rows(statistics, sentence)
    assert chosen_bleu(hypotheses, references, oracle) == pytest.approx(every.max())
    draws = random_bleu(statistics, sentence, 4000, seed)
    assert draws.shape == (4000,)
    assert draws.mean() == pytest.approx(every.mean(), abs=4 * every.std() / np.sqrt(4000))
    assert draws.max() <= every.max() + 1e-9


def test_oracle_of_unequal_lists_cannot_be_improved_by_one_change():
    references, hypotheses, sentence, statistics = draw_lists(7, 30, 6)
    kept = np.random.default_rng(0).random(len(sentence)) < 0.7
    kept[::6] = True
    hypotheses = [text for text, keep in zip(hypotheses, kept, strict=True) if keep]
    sentence, statistics = sentence[kept], statistics[kept]
    oracle = oracle_rows(statistics, sentence)
    assert sentence[oracle].tolist() == list(range(30))
    best = chosen_bleu(hypotheses, references, oracle)
    for row, number in enumerate(sentence):
        other = [*oracle[:number], row, *oracle[number + 1 :]]
        assert chosen_bleu(hypotheses, references, other) <= best + 1e-9


def test_one_step_by_hand():
    """Scores 1, 0, 2; gains 5, 0, 3: hope is 0 (1 + 5), fear is 1 (0 - 0), best in score is 2."""
    features = np.array([[1.0, 0], [-1, 1], [0, 2]])
    gain, weights = np.array([5.0, 0, 3]), np.array([1.0, 1])
    hope, step = mira_step(features, gain, weights, 10)
    loss = (5 - 0) - (1 - 0)
    assert hope == 0
    np.testing.assert_allclose(step, loss / 5 * np.array([2, -1]))
    np.testing.assert_allclose(mira_step(features, gain, weights, 0.1)[1], [0.2, -0.1])
    after = weights + step
    assert (features[0] - features[1]) @ after == pytest.approx(5 - 0), "the margin is met exactly"
    assert not mira_step(features[:2], gain[:2], after, 10)[1].any()


def plain_mira(features, statistics, sentence, initial, step_cap, decay, epochs, seed):
    """Return the averaged weights after each epoch, by the algorithm as its paper prints it."""
    lists = [[i for i, number in enumerate(sentence) if number == n] for n in sorted(set(sentence))]
    within = np.concatenate([features[rows] - features[rows].mean(axis=0) for rows in lists])
    spread = within.std(axis=0)
    features, weights = features / spread, initial * spread
    background = np.array([4, 3, 2, 1, 4, 3, 2, 1, 4, 4], float)
    generator, visited, averages = np.random.default_rng(seed), [], []
    for _ in range(epochs):
        for number in generator.permutation(len(lists)):
            gain, score = {}, {}
            for i in lists[number]:
                joined = statistics[i] + background
                log_bleu = np.mean([np.log(joined[n] / joined[n + 4]) for n in range(4)])
                penalty = 1 - joined[9] / joined[8] if joined[8] < joined[9] else 0
                gain[i] = joined[9] * np.exp(log_bleu + penalty)
                score[i] = float(features[i] @ weights)
            hope = max(lists[number], key=lambda i: score[i] + gain[i])
            fear = max(lists[number], key=lambda i: score[i] - gain[i])
            loss = gain[hope] - gain[fear] - (score[hope] - score[fear])
            if hope != fear and loss > 0:
                difference = features[hope] - features[fear]
                weights = weights + min(step_cap, loss / (difference**2).sum()) * difference
            background = decay * background + statistics[hope]
            visited.append(weights)
        averages.append(np.mean(visited, axis=0) / spread)
    return averages


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_tuning_equals_the_algorithm_in_plain_loops(decay):
    _, _, sentence, statistics = draw_lists(8, 15, 6)
    features = np.random.default_rng(8).standard_normal((90, 3)) * [1, 5, 0.2]
    settings = {"step_cap": 0.05, "decay": decay, "epochs": 4, "seed": 3}
    initial = np.array([1.0, 0, 0])
    averages = [initial, *plain_mira(features, statistics, sentence, initial, **settings)]
    expected = [list_bleu(features @ weights, statistics, sentence) for weights in averages]
    tuned = tune_weights(features, statistics, sentence, initial, **settings)
    np.testing.assert_allclose(tuned.bleu, expected)
    assert tuned.epoch == int(np.argmax(expected)) > 0
    np.testing.assert_allclose(tuned.weights, averages[tuned.epoch])


def test_gain_is_bleu_of_segment_and_background_times_their_length():
    _, _, _, statistics = draw_lists(1, 3, 4)
    background = np.array([40, 30, 20, 10, 60, 55, 50, 45, 60, 66])
    expected = [
        BLEU.compute_bleu(list(t[:4]), list(t[4:8]), t[8], t[9]).score / 100 * t[9]
        for t in (statistics + background).tolist()
    ]
    np.testing.assert_allclose(background_gain(statistics, background), expected)


def test_tuning_recovers_known_weights():
    """Quality is what the known weights of the features say, in features of unlike scale."""
    generator = np.random.default_rng(2)
    known = np.array([0.5, 2, -1, 0])
    _, _, sentence, statistics = draw_lists(3, 150, 12)
    quality = background_gain(statistics, np.full(10, 1.0))
    noise = generator.standard_normal((len(sentence), 4))
    noise -= np.outer(noise @ known, known) / (known @ known)
    features = 3 * noise + np.outer(quality, known) / (known @ known)
    scale = np.array([10, 0.1, 1, 1])
    tuned = tune_weights(features / scale, statistics, sentence, np.eye(4)[0], **MIRA)
    found = tuned.weights / scale
    cosine = found @ known / np.linalg.norm(found) / np.linalg.norm(known)
    assert cosine > 0.97
    assert tuned.bleu[tuned.epoch] > 1.15 * tuned.bleu[0]


@pytest.mark.parametrize("seed", range(3))
def test_tuning_comes_close_to_the_best_direction_of_a_grid(seed):
    _, _, sentence, statistics = draw_lists(seed, 300, 8)
    generator = np.random.default_rng(seed)
    quality = bleu(statistics)[:, None] / 100
    features = np.hstack([quality, -quality]) + generator.standard_normal((len(sentence), 2)) / 3
    angles = np.linspace(0, 2 * np.pi, 360, endpoint=False)
    grid = [list_bleu(features @ [np.cos(a), np.sin(a)], statistics, sentence) for a in angles]
    tuned = tune_weights(features, statistics, sentence, np.array([0.0, 1]), **MIRA)
    found = list_bleu(features @ tuned.weights, statistics, sentence)
    assert max(grid) - 0.4 < found < max(grid) + 0.4  # the grid has steps of 1°
    assert tuned.bleu[tuned.epoch] == max(tuned.bleu)
    assert len(tuned.bleu) == 31
    assert tuned.bleu[0] < max(grid) - 5


def test_tuned_weights_help_on_other_lists():
    def draw(seed):
        _, _, sentence, statistics = draw_lists(seed, 120, 10)
        noise = np.random.default_rng(seed).standard_normal((len(sentence), 3))
        helpful = np.stack([bleu(statistics) / 30, np.zeros(len(sentence)), -statistics[:, 8]], 1)
        return noise + helpful, statistics, sentence

    tuned = tune_weights(*draw(10), np.array([0.0, 1, 0]), **MIRA)
    features, statistics, sentence = draw(11)
    own = list_bleu(features[:, 1], statistics, sentence)
    assert abs(own - random_bleu(statistics, sentence, 500, 0).mean()) < 8
    reranked = list_bleu(features @ tuned.weights, statistics, sentence)
    rows = oracle_rows(statistics, sentence)
    assert own + 5 < reranked < bleu(statistics[rows].sum(axis=0))
    systems = [
        statistics[best_rows(s, sentence)] for s in (features @ tuned.weights, features[:, 1])
    ]
    assert randomisation_test(*systems, bleu, 499, 0) == 1 / 500


def test_tuning_is_seeded_and_never_below_the_initial_weights():
    _, _, sentence, statistics = draw_lists(4, 20, 5)
    perfect = np.stack([bleu(statistics), np.zeros(100)], axis=1)
    best = tune_weights(perfect, statistics, sentence, np.array([1.0, 0]), **MIRA)
    assert best.bleu[best.epoch] >= best.bleu[0]
    features = np.random.default_rng(0).standard_normal((100, 2))
    first, second = (
        tune_weights(features, statistics, sentence, np.ones(2), **MIRA) for _ in range(2)
    )
    np.testing.assert_array_equal(first.weights, second.weights)
    other = tune_weights(features, statistics, sentence, np.ones(2), **{**MIRA, "seed": 1})
    assert first.bleu != other.bleu


def test_lists_that_do_not_fit_are_refused():
    with pytest.raises(ContractError, match="4 problem"):
        tune_weights(
            np.array([[np.nan], [1]]), np.ones((3, 10)), np.array([1, 0]), np.ones(2), **MIRA
        )
