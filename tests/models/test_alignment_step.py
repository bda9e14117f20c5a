"""Maps between word spaces: against scipy, loops over the formula and finite differences."""

from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from scipy.linalg import orthogonal_procrustes
from tiny_models import pairs_in, prepare
from torch.nn import functional as F

from pipeline_lib.evaluation.words.translation import translation_precision
from pipeline_lib.models import alignment
from pipeline_lib.models.alignment import (
    AlignmentStep,
    Translations,
    nearest_orthogonal,
    procrustes,
    rcsls_loss,
    rcsls_step,
)
from pipeline_lib.training.rotations import Aligner


def unit(generator, *shape):
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def random_rotation(generator, dim):
    return nearest_orthogonal(torch.randn(dim, dim, generator=generator, dtype=torch.float64))


def random_words(seed, source=40, target=50, dim=6, pairs=30):
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(0, n, (pairs,), generator=generator) for n in (source, target)]
    return (
        Translations(
            unit(generator, source, dim), unit(generator, target, dim), torch.stack(rows, 1)
        ),
        random_rotation(generator, dim),
    )


def noisy_rotation(seed, words=300, dim=30, noise=1.0, offset=0.7):
    """Return words that are each other's rotation but for noise; the first half is the lexicon."""
    generator = torch.Generator().manual_seed(seed)
    true = random_rotation(generator, dim)
    source = offset + torch.randn(words, dim, generator=generator, dtype=torch.float64)
    target = source @ true.T
    target += noise * torch.randn(words, dim, generator=generator, dtype=torch.float64)
    half = torch.arange(words // 2)
    return (
        Translations(
            F.normalize(source, dim=1), F.normalize(target, dim=1), torch.stack([half, half], 1)
        ),
        true,
        generator,
    )


def p1(rotation, words, rows):
    names = [str(i) for i in range(len(words.source))]
    found = translation_precision(
        (names, (words.source @ rotation.T).numpy()),
        (names, words.target.numpy()),
        [(str(int(i)), str(int(i))) for i in rows],
        csls_neighbours=10,
        resamples=2,
        confidence=0.95,
        seed=0,
    )
    return found["csls"]["p1"]


def descend(rotation, words, steps, step_size=2.0):
    for _ in range(steps):
        step = rcsls_step(rotation, words, 5, step_size)
        rotation, step_size = step.rotation, step.step_size
    return rotation


def loss_by_loops(rotation, words, neighbours):
    """Return Eq. 4 of Joulin et al. 2018, one pair and one neighbour at a time."""
    w, source, target = rotation.numpy(), words.source.numpy(), words.target.numpy()
    total = 0.0
    for i, j in words.pairs.tolist():
        to_targets = sorted((float((w @ source[i]) @ y) for y in target), reverse=True)
        to_sources = sorted((float((w @ x) @ target[j]) for x in source), reverse=True)
        total += -2 * float((w @ source[i]) @ target[j])
        total += sum(to_targets[:neighbours]) / neighbours
        total += sum(to_sources[:neighbours]) / neighbours
    return total / len(words.pairs)


def test_procrustes_recovers_a_rotation():
    generator = torch.Generator().manual_seed(0)
    true, source = random_rotation(generator, 8), unit(generator, 30, 8)
    torch.testing.assert_close(procrustes(source, source @ true.T), true)
    assert not torch.allclose(true, true.T), "a symmetric map does not tell W from its transpose"


def test_procrustes_equals_scipy_under_noise():
    generator = torch.Generator().manual_seed(1)
    source, target = unit(generator, 30, 8), unit(generator, 30, 8)
    expected, _ = orthogonal_procrustes(source.numpy(), target.numpy())
    torch.testing.assert_close(procrustes(source, target), torch.from_numpy(expected.T))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fewer_pairs_than_dimensions_leave_aligned_words_aligned(dtype):
    """LAPACK completes a singular map with whatever basis it finds: others then lose their way."""
    generator = torch.Generator().manual_seed(0)
    source = unit(generator, 200, 64)
    target = F.normalize(source + 0.02 * unit(generator, 200, 64), dim=1)
    found = procrustes(source[:30].to(dtype), target[:30].to(dtype)).double()
    torch.testing.assert_close(found @ found.T, torch.eye(64).double(), atol=1e-5, rtol=0)
    exact = procrustes(source[:30], target[:30])
    torch.testing.assert_close(found, exact, atol=1e-3, rtol=0)
    nearest = (source[30:] @ found.T @ target.T).argmax(dim=1)
    assert torch.equal(nearest, torch.arange(30, 200))


def test_loss_by_hand():
    """x = (1, 0) maps to (0, 1); its y is (0, 1): -2, nearest target 1, nearest source of y 1.

    With two neighbours the means are (1 + 0) / 2, over targets, and (1 + 0.8) / 2, over sources.
    """
    quarter = torch.tensor([[0.0, -1], [1, 0]])
    words = Translations(
        torch.tensor([[1.0, 0], [0.8, 0.6]]),
        torch.tensor([[0.0, 1], [1, 0]]),
        torch.tensor([[0, 0]]),
    )
    assert float(rcsls_loss(quarter, words, 1)) == pytest.approx(-2 + 1 + 1)
    assert float(rcsls_loss(quarter, words, 2)) == pytest.approx(-2 + 0.5 + 0.9)
    assert float(rcsls_loss(quarter, words, 10)) == pytest.approx(-2 + 0.5 + 0.9)


@pytest.mark.parametrize("seed", range(3))
def test_loss_equals_loops_over_the_formula(seed, monkeypatch):
    monkeypatch.setattr(alignment, "_CHUNK", 7)
    words, rotation = random_words(seed)
    expected = loss_by_loops(rotation, words, 4)
    assert float(rcsls_loss(rotation, words, 4)) == pytest.approx(expected)
    assert len(words.pairs[:, 0].unique()) < len(words.pairs), "no source word is repeated"


@pytest.mark.parametrize("seed", range(3))
def test_gradient_equals_finite_differences(seed):
    words, rotation = random_words(seed, dim=4)
    variable = rotation.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(rcsls_loss(variable, words, 3), variable)
    step = 1e-7
    for i, j in np.ndindex(4, 4):
        shift = torch.zeros(4, 4, dtype=torch.float64)
        shift[i, j] = step
        ahead, behind = (rcsls_loss(rotation + sign * shift, words, 3) for sign in (1, -1))
        assert float(gradient[i, j]) == pytest.approx(float(ahead - behind) / 2 / step, abs=1e-6)


def test_a_step_lowers_the_loss_and_stays_orthogonal():
    words, rotation = random_words(0)
    before = float(rcsls_loss(rotation, words, 5))
    step = rcsls_step(rotation, words, 5, 0.5)
    assert step.loss < before
    assert step.loss == float(rcsls_loss(step.rotation, words, 5))
    assert step.step_size == 0.5
    identity = torch.eye(6, dtype=torch.float64)
    torch.testing.assert_close(step.rotation @ step.rotation.T, identity)


def test_alias_revert_a_refused_step_gives_back_the_map_as_it_was():
    """AME-CMR kept its "old" matrix as another name of the one that it then changed in place."""
    words, true, _ = noisy_rotation(0)
    rotation = descend(true, words, 30)
    kept = rotation.clone()
    step = rcsls_step(rotation, words, 5, 1e4)
    assert step.step_size == 5e3, "the step was not refused"
    assert torch.equal(step.rotation, kept)
    assert torch.equal(rotation, kept)
    assert step.loss == float(rcsls_loss(kept, words, 5))
    step.rotation.zero_()
    assert torch.equal(rotation, kept)


def test_int_halving_a_step_size_of_3_becomes_a_half_not_nothing():
    """AME-CMR halved an int: 12, 6, 3, 1, 0, and its maps never moved again."""
    words, true, _ = noisy_rotation(0)
    rotation, size, sizes = descend(true, words, 30), 30_000, []
    for _ in range(12):
        step = rcsls_step(rotation, words, 5, size)
        rotation, size = step.rotation, step.step_size
        sizes.append(size)
    assert sizes[:5] == [15_000, 7_500, 3_750, 1_875, 937.5]
    assert sizes[-1] > 0


def test_a_refused_step_of_one_map_leaves_the_other_its_step_size():
    words, true, _ = noisy_rotation(0)
    back = Translations(words.target, words.source, words.pairs.flip(1))
    refused = rcsls_step(descend(true, words, 30), words, 5, 1e4)
    taken = rcsls_step(torch.eye(30, dtype=torch.float64), back, 5, 2.0)
    assert (refused.step_size, taken.step_size) == (5e3, 2.0)


def test_each_map_of_a_model_has_a_step_size_of_its_own(monkeypatch):
    """AME-CMR's maps shared one, an int: what one refused slowed the other, to 0 (finding 6)."""
    lexicon = torch.tensor([[3, 3], [4, 4]])
    corpus = SimpleNamespace(lexicon={"de": lexicon, "fr": lexicon})
    recipe = tiny.recipe("mixed", languages=["en", "de", "fr"], alignment_learning_rate=3)
    model = prepare("mixed", pairs_in("en", "de", "fr"), languages=["en", "de", "fr"],
                    orthogonal_map=False, alignment_every_updates="never")[0]  # fmt: skip
    for language in ("de", "fr"):
        model.sentence_encoder.rotations[language] = torch.nn.Parameter(torch.eye(8), False)
    moves = {"de": 0.5, "fr": 1.0}
    taken, order = [], iter(["de", "fr"] * 3)

    def step(rotation, words, neighbours, size):
        taken.append(size)
        assert neighbours == recipe.alignment_neighbours > 1
        return AlignmentStep(rotation, size * moves[next(order)], 0.0)

    monkeypatch.setattr("pipeline_lib.training.rotations.rcsls_step", step)
    aligner, state = Aligner(corpus, recipe), {}
    for _ in range(3):
        aligner.step(model, state)
    assert taken == [3, 3, 1.5, 3, 0.75, 3]
    assert sorted(value for (value,) in state.values()) == [0.375, 3]


@pytest.mark.parametrize("seed", range(3))
def test_steps_repair_a_map_for_words_that_they_never_saw(seed):
    words, true, generator = noisy_rotation(seed)
    unseen = torch.arange(150, 300)
    noise = torch.randn(30, 30, generator=generator, dtype=torch.float64)
    broken = nearest_orthogonal(true + 0.35 * noise)
    assert p1(broken, words, unseen) < 20
    assert p1(descend(broken, words, 60), words, unseen) > 70


def test_steps_improve_on_procrustes_for_the_words_of_the_lexicon():
    """RCSLS minimises what CSLS retrieval measures; squared distance does not (noise 1.5)."""
    gains = []
    for seed in range(4):
        words, _, _ = noisy_rotation(seed, noise=1.5, offset=0.0)
        start, seen = procrustes(*(words.source[:150], words.target[:150])), torch.arange(150)
        gains.append(p1(descend(start, words, 60), words, seen) - p1(start, words, seen))
    assert np.mean(gains) > 1


def test_words_get_no_gradient_from_alignment():
    words, rotation = random_words(0)
    words.source.requires_grad_()
    rcsls_step(rotation, words, 5, 1.0)
    assert words.source.grad is None


def test_a_lexicon_without_a_known_pair_is_refused():
    with pytest.raises(ValueError, match="no pair of the lexicon"):
        Translations(torch.eye(2), torch.eye(2), torch.empty(0, 2, dtype=torch.int64))
