import math

import numpy as np
import pytest
import tiny
import torch
from pydantic import ValidationError
from tiny_models import double_loop

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.models import similarity
from pipeline_lib.models.losses import (
    HIGHEST_LOG_SCALE,
    Candidates,
    Hinge,
    InfoNCE,
    drawn_negatives,
    neighbourhood_hinge,
    ranking_hinge,
    reverse_gradient,
)
from pipeline_lib.models.similarity import SIMILARITIES
from pipeline_lib.settings.losses import LOWEST_TEMPERATURE

MATRIX = torch.tensor([[0.9, 0.8, 0.1], [0.3, 0.5, 0.6], [0.2, 0.0, 0.4]], dtype=torch.float64)
EYE = torch.eye(3, dtype=torch.bool)
VIOLATIONS = ["sum", "max", 2, 100]


def hinge(scores, violations, margin=0.2):
    return ranking_hinge(scores, scores.diagonal(), EYE, margin, violations)


def both_ways(scores, group, margin, violations, negatives=None):
    return Hinge(margin, violations)(Candidates.paired(scores, group, negatives))["hinge"]


def test_sum_by_hand():
    # Row 1: .2 - .9 + .8 = .1; row 2: .2 - .5 + (.3, .6) = 0, .3; row 3: .2 - .4 + .2 = 0.
    assert hinge(MATRIX, "sum").tolist() == pytest.approx([0.1, 0.3, 0.0])


def test_max_by_hand():
    scores = torch.tensor([[0.5, 0.6, 0.4], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9]])
    # Row 1 violates by .3 and .1: the sum is .4, the hardest .3.
    assert hinge(scores, "sum").tolist() == pytest.approx([0.4, 0, 0])
    assert hinge(scores, "max").tolist() == pytest.approx([0.3, 0, 0])
    assert hinge(scores, 2).tolist() == pytest.approx([0.2, 0, 0])


@pytest.mark.parametrize("violations", VIOLATIONS)
@pytest.mark.parametrize("seed", range(5))
def test_equals_a_double_loop_with_sibling_captions(violations, seed):
    random = np.random.default_rng(seed)
    scores = torch.from_numpy(random.normal(size=(9, 9)))
    group = torch.from_numpy(random.integers(0, 5, size=9))
    expected = double_loop(scores, group.tolist(), 0.3, violations)
    assert both_ways(scores, group, 0.3, violations).item() == pytest.approx(expected)


@pytest.mark.parametrize("violations", VIOLATIONS)
def test_captions_of_one_image_are_never_negatives(violations):
    scores = torch.full((4, 4), 1.0)
    one_image = torch.zeros(4, dtype=torch.int64)
    assert both_ways(scores, one_image, 0.2, violations).item() == 0


@pytest.mark.parametrize("violations", VIOLATIONS)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_gradient_step_helps_each_similarity(violations, similarity):
    generator = torch.Generator().manual_seed(3)
    vectors = [torch.randn(6, 8, generator=generator).requires_grad_() for _ in range(2)]

    def loss():
        a, b = (torch.nn.functional.normalize(v, dim=1) for v in vectors)  # [pairs, dim]
        return both_ways(SIMILARITIES[similarity](a, b), torch.arange(6), 0.2, violations)

    before = loss()
    before.backward()
    with torch.no_grad():
        for v in vectors:
            v -= 0.05 * v.grad
    assert loss() < before


def test_gradient_pulls_the_pair_and_pushes_the_violator():
    scores = MATRIX.clone().requires_grad_()
    hinge(scores, "sum").sum().backward()
    assert scores.grad[0, 0] == -1
    assert scores.grad[0, 1] == 1
    assert scores.grad[0, 2] == 0  # far enough below the pair


def test_a_single_pair_has_no_loss():
    for violations in VIOLATIONS:
        assert both_ways(torch.ones(1, 1), torch.zeros(1), 0.2, violations) == 0


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_infonce_equals_a_double_loop_with_sibling_captions(name):
    random = np.random.default_rng(6)
    scores = random.normal(size=(9, 9))
    group = random.integers(0, 5, size=9)
    expected = {"rows": 0.0, "columns": 0.0}
    for side, matrix in zip(expected, (scores, scores.T), strict=True):
        for i, row in enumerate(matrix / 0.5):
            rivals = [row[j] for j in range(9) if j == i or group[j] != group[i]]
            expected[side] -= row[i] - np.log(np.sum(np.exp(rivals)))
    loss = InfoNCE(temperature=0.5, tune_temperature=True)
    kind = torch.float64 if name == "f64" else torch.float32
    with arithmetic(name):
        batch = Candidates.paired(torch.from_numpy(scores).to(kind), torch.from_numpy(group))
        found = loss.to(kind)(batch)
        sum(found.values()).backward()
    assert {side: term.item() for side, term in found.items()} == pytest.approx(expected, rel=1e-5)
    assert torch.isfinite(loss.log_scale.grad)
    assert loss.log_scale.grad != 0


def test_a_temperature_at_its_bound_can_rise_again():
    """Clamped in the loss alone it had no gradient there, and stayed for ever."""
    loss = InfoNCE(temperature=0.0101, tune_temperature=True)
    optimizer = torch.optim.Adam(loss.parameters(), lr=0.01)
    right = torch.eye(8) * 0.05  # a lower temperature makes each pair likelier
    scales = []
    for sign in (1, -1):
        for _ in range(100):
            optimizer.zero_grad()
            sum(loss(Candidates.paired(sign * right, torch.arange(8))).values()).backward()
            optimizer.step()
        scales.append(loss.log_scale.exp().item())
    assert scales[0] == pytest.approx(100, rel=0.02)
    assert scales[1] < 90


def test_similarities_are_scaled_by_a_hundred_at_most():
    scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    batch = Candidates.paired(scores, torch.arange(6))
    loss = InfoNCE(temperature=0.01, tune_temperature=True)
    expected = sum(loss(batch).values()).item()
    with torch.no_grad():
        loss.log_scale += 3
    assert sum(loss(batch).values()).item() == pytest.approx(expected)


def test_a_temperature_below_its_bound_is_refused():
    with pytest.raises(ValidationError, match=r"greater than or equal to 0\.01"):
        tiny.polyview(temperature=0.009)
    assert tiny.polyview(temperature=0.01).temperature == 0.01
    assert math.exp(-HIGHEST_LOG_SCALE) == pytest.approx(LOWEST_TEMPERATURE)


def test_infonce_of_so_many_negatives_is_less_than_of_all():
    scores, group = torch.randn(6, 6, generator=torch.Generator().manual_seed(1)), torch.arange(6)
    loss = InfoNCE(temperature=0.1, tune_temperature=False)
    assert not loss.log_scale.requires_grad
    some, whole = (
        sum(loss(Candidates.paired(scores, group, count)).values()) for count in (2, None)
    )
    assert some < whole
    one_image = Candidates.paired(scores, torch.zeros(6))
    assert sum(loss(one_image).values()) == 0


def test_drawn_negatives_are_so_many_and_none_is_right():
    same = torch.tensor([[True, True, False, False, False]] * 2 + [[False] * 4 + [True]] * 3)
    torch.manual_seed(0)
    drawn = [drawn_negatives(same, 2) for _ in range(200)]
    assert all((d.sum(dim=1) == 2).all() and not (d & same).any() for d in drawn)
    share = torch.stack(drawn).float().mean(dim=0)[0, 2:]
    assert share.tolist() == pytest.approx([2 / 3] * 3, abs=0.12)
    assert torch.equal(drawn_negatives(same, 100), ~same)


def test_resampled_contrast_is_the_whole_one_on_average():
    scores, group = torch.randn(6, 6, generator=torch.Generator().manual_seed(1)), torch.arange(6)
    torch.manual_seed(0)
    drawn = torch.stack([both_ways(scores, group, 0.2, "sum", 2) for _ in range(4000)])
    whole = both_ways(scores, group, 0.2, "sum")
    assert drawn.mean().item() == pytest.approx(whole.item() * 2 / 5, rel=0.03)


def test_neighbourhood_equals_a_double_loop():
    random = np.random.default_rng(4)
    scores = torch.from_numpy(random.normal(size=(7, 9)))
    rows, columns = random.integers(0, 4, size=7), random.integers(1, 6, size=9)
    expected = []
    for i in range(7):
        right = [float(scores[i, j]) for j in range(9) if columns[j] == rows[i]]
        wrong = [float(scores[i, j]) for j in range(9) if columns[j] != rows[i]]
        if right:
            terms = [max(0, 0.05 + w - min(right)) for w in wrong] + [0.0] * len(right)
            expected.append(np.mean(sorted(terms, reverse=True)[:3]))
    positive = torch.from_numpy(rows[:, None] == columns[None, :])
    found = neighbourhood_hinge(scores, positive, positive, 0.05, 3)
    assert found.item() == pytest.approx(np.mean(expected))
    nobody = torch.zeros_like(positive)
    assert neighbourhood_hinge(scores, nobody, nobody, 0.05, 3).item() == 0


def test_the_gradient_is_reversed_once_and_keeps_its_size():
    """MULE's code scales the reversed gradient by the loss's weight again (audit, finding 4)."""
    values = torch.ones(3, requires_grad=True)
    (reverse_gradient(values) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert values.grad.tolist() == [-1, -2, -3]


def pairwise(function):
    """Apply a similarity of two vectors to all pairs, by autograd alone."""
    return lambda a, b: torch.stack([torch.stack([function(x, y) for y in b]) for x in a])


FORMULAS = {
    "cosine": pairwise(lambda x, y: torch.cosine_similarity(x, y, dim=0)),
    "euclidean": pairwise(lambda x, y: -((x - y).square().sum() + 1e-4).sqrt()),
    "squared_order": pairwise(lambda x, y: -(y - x).clamp(min=0).square().sum()),
    "order": pairwise(lambda x, y: -((y - x).clamp(min=0).square().sum() + 1e-12).sqrt()),
}


def units(generator, dim, *counts):
    """Draw unit vectors without a negative coordinate, so many of each side."""
    drawn = [torch.randn(count, dim, generator=generator) for count in counts]
    return [torch.nn.functional.normalize(side, dim=1).abs() for side in drawn]


@pytest.mark.parametrize("counts", [(3, 4), (6, 2)])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarities_and_their_gradients_are_their_formulas(name, counts):
    generator = torch.Generator().manual_seed(2)
    a, b = units(generator, 5, *counts)
    weights = torch.randn(*counts, generator=generator)
    results = []
    for function in (SIMILARITIES[name], FORMULAS[name]):
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        scores = function(x, y)
        (scores * weights).sum().backward()
        results.append((scores.detach(), x.grad, y.grad))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-4, atol=1e-5)
    if "order" in name:  # the others are equal on the unit sphere only, and so are their slopes
        torch.testing.assert_close(results[0][1:], results[1][1:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("numbers", [1, 70, 10_000])
def test_the_order_by_blocks_is_that_by_rows(monkeypatch, numbers):
    """CUDA takes this way; here it runs on the CPU."""
    monkeypatch.setattr(similarity, "_DIFFERENCES_AT_ONCE", numbers)
    generator = torch.Generator().manual_seed(3)
    a, b = (side.requires_grad_() for side in units(generator, 5, 9, 7))
    weights = torch.randn(9, 7, generator=generator)
    scores = SIMILARITIES["squared_order"](a, b)
    expected = [scores, *torch.autograd.grad((scores * weights).sum(), [a, b])]
    there = a.detach(), b.detach()
    found = [
        similarity._above_in_blocks(*there),
        *similarity._above_in_blocks_backward(*there, weights),
    ]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("counts", [(0, 3), (3, 0), (4, 1)])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_either_side_may_be_empty_or_short(name, counts):
    assert SIMILARITIES[name](*(torch.rand(count, 5) for count in counts)).shape == counts


@pytest.mark.parametrize("name", SIMILARITIES)
def test_equal_vectors_have_finite_gradients(name):
    """A root has none at 0."""
    vectors = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    SIMILARITIES[name](vectors, vectors.detach()).sum().backward()
    assert vectors.grad.isfinite().all()


@pytest.mark.parametrize("name", SIMILARITIES)
def test_evaluation_ranks_as_training_scores(name):
    a, b = units(torch.Generator().manual_seed(5), 8, 20, 300)
    trained = SIMILARITIES[name](a, b).argsort(dim=1)
    evaluated = torch.from_numpy(SCORES[name](a.numpy(), b.numpy())).argsort(dim=1)
    assert torch.equal(trained, evaluated)
