import numpy as np
import pytest
import torch

from pipeline_lib.models.losses import VIOLATIONS, bidirectional_hinge, ranking_hinge
from pipeline_lib.models.similarity import SIMILARITIES

SCORES = torch.tensor([[0.9, 0.8, 0.1], [0.3, 0.5, 0.6], [0.2, 0.0, 0.4]], dtype=torch.float64)
EYE = torch.eye(3, dtype=torch.bool)


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
            total += sum(terms) if violations == "sum" else max(terms, default=0.0)
    return total


def test_sum_by_hand():
    # Row 1: .2 - .9 + .8 = .1; row 2: .2 - .5 + (.3, .6) = 0, .3; row 3: .2 - .4 + .2 = 0.
    assert ranking_hinge(SCORES, EYE, 0.2, "sum").item() == pytest.approx(0.4)


def test_max_by_hand():
    scores = torch.tensor([[0.5, 0.6, 0.4], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9]])
    # Row 1 violates by .3 and .1: the sum is .4, the hardest .3.
    assert ranking_hinge(scores, EYE, 0.2, "sum").item() == pytest.approx(0.4)
    assert ranking_hinge(scores, EYE, 0.2, "max").item() == pytest.approx(0.3)


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
        a, b = (torch.nn.functional.normalize(v, dim=1) for v in vectors)
        return bidirectional_hinge(SIMILARITIES[similarity](a, b), torch.arange(6), 0.2, violations)

    before = loss()
    before.backward()
    with torch.no_grad():
        for v in vectors:
            v -= 0.05 * v.grad
    assert loss() < before


def test_gradient_pulls_the_pair_and_pushes_the_violator():
    scores = SCORES.clone().requires_grad_()
    ranking_hinge(scores, EYE, 0.2, "sum").backward()
    assert scores.grad[0, 0] == -1
    assert scores.grad[0, 1] == 1
    assert scores.grad[0, 2] == 0  # far enough below the pair


def test_a_single_pair_has_no_loss():
    for violations in VIOLATIONS:
        assert bidirectional_hinge(torch.ones(1, 1), torch.zeros(1), 0.2, violations) == 0
