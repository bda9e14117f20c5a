import numpy as np
import pytest
import torch

from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.models.losses import (
    bidirectional_hinge,
    drawn_negatives,
    neighbourhood_hinge,
    ranking_hinge,
    reverse_gradient,
)
from pipeline_lib.models.similarity import SIMILARITIES

MATRIX = torch.tensor([[0.9, 0.8, 0.1], [0.3, 0.5, 0.6], [0.2, 0.0, 0.4]], dtype=torch.float64)
EYE = torch.eye(3, dtype=torch.bool)
VIOLATIONS = ["sum", "max", 2, 100]


def hinge(scores, violations, margin=0.2):
    return ranking_hinge(scores, scores.diagonal(), EYE, margin, violations)


def double_loop(scores, group, margin, violations):
    """Written from Eq. 1 of Kádár et al. 2019 and Eq. 1 of Calixto et al. 2017."""
    total = 0.0
    for matrix in (scores, scores.T):
        for i in range(len(matrix)):
            terms = [
                max(0.0, margin - float(matrix[i, i]) + float(matrix[i, j]))
                for j in range(len(matrix))
                if group[j] != group[i]
            ]
            # A candidate that is no negative costs nothing, and is there to be averaged.
            terms = sorted([*terms, *[0.0] * (len(matrix) - len(terms))], reverse=True)
            hardest = terms[: violations if isinstance(violations, int) else 1]
            total += sum(terms) if violations == "sum" else sum(hardest) / len(hardest)
    return total


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
    assert bidirectional_hinge(scores, group, 0.3, violations).item() == pytest.approx(expected)


@pytest.mark.parametrize("violations", VIOLATIONS)
def test_captions_of_one_image_are_never_negatives(violations):
    scores = torch.full((4, 4), 1.0)
    one_image = torch.zeros(4, dtype=torch.int64)
    assert bidirectional_hinge(scores, one_image, 0.2, violations).item() == 0


@pytest.mark.parametrize("violations", VIOLATIONS)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_gradient_step_helps_each_similarity(violations, similarity):
    generator = torch.Generator().manual_seed(3)
    vectors = [torch.randn(6, 8, generator=generator).requires_grad_() for _ in range(2)]

    def loss():
        a, b = (torch.nn.functional.normalize(v, dim=1) for v in vectors)  # [pairs, dim]
        return bidirectional_hinge(SIMILARITIES[similarity](a, b), torch.arange(6), 0.2, violations)

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
        assert bidirectional_hinge(torch.ones(1, 1), torch.zeros(1), 0.2, violations) == 0


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
    drawn = torch.stack([bidirectional_hinge(scores, group, 0.2, "sum", 2) for _ in range(4000)])
    whole = bidirectional_hinge(scores, group, 0.2, "sum")
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


@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarities_and_their_gradients_are_their_formulas(name):
    generator = torch.Generator().manual_seed(2)
    a, b = (
        torch.nn.functional.normalize(torch.randn(n, 5, generator=generator), dim=1).abs()
        for n in (3, 4)
    )
    weights = torch.randn(3, 4, generator=generator)
    results = []
    for similarity in (SIMILARITIES[name], FORMULAS[name]):
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        scores = similarity(x, y)
        (scores * weights).sum().backward()
        results.append((scores.detach(), x.grad, y.grad))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-4, atol=1e-5)
    if "order" in name:  # the others are equal on the unit sphere only, and so are their slopes
        torch.testing.assert_close(results[0][1:], results[1][1:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_evaluation_ranks_as_training_scores(name):
    generator = torch.Generator().manual_seed(5)
    a, b = (
        torch.nn.functional.normalize(torch.randn(n, 8, generator=generator), dim=1).abs()
        for n in (20, 300)
    )
    trained = SIMILARITIES[name](a, b).argsort(dim=1)
    evaluated = torch.from_numpy(SCORES[name](a.numpy(), b.numpy())).argsort(dim=1)
    assert torch.equal(trained, evaluated)
