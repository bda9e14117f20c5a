"""Ranks against a plain-Python count, and the properties that counting in tiles must keep."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from near_ties import near_ties, whole_products

from pipeline_lib.compute.exact import on_grid
from pipeline_lib.evaluation.retrieval import ranking
from pipeline_lib.evaluation.retrieval.ranking import bidirectional_ranks, ranks
from pipeline_lib.evaluation.retrieval.scores import order_scores


def brute_force(queries, candidates, query_group, candidate_group):
    """Rank by the definition: 1 + wrong candidates at least as good as the best right one."""
    result = []
    for query, group in zip(queries.tolist(), query_group, strict=True):
        right, wrong = [], []
        for candidate, other in zip(candidates.tolist(), candidate_group, strict=True):
            score = sum(x * y for x, y in zip(query, candidate, strict=True))
            (right if other == group else wrong).append(score)
        result.append(1 + sum(score >= max(right) for score in wrong))
    return result


def pool(images=37, captions=150, dim=12, seed=0):
    """Draw vectors whose dot products are exact in float32, with a signal, captions shuffled."""
    generator = np.random.default_rng(seed)
    image = generator.integers(-8, 9, (images, dim)).astype(np.float32)
    index = generator.permutation(np.arange(captions) % images)
    noise = generator.integers(-14, 15, (captions, dim)).astype(np.float32)
    return image, image[index] + noise, index


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 100, 5120])
def test_both_directions_match_brute_force(chunk):
    images, captions, index = pool()
    rows = np.arange(len(images))
    image_ranks, caption_ranks = bidirectional_ranks(images, captions, index, chunk=chunk)
    assert image_ranks.tolist() == brute_force(images, captions, rows, index)
    assert caption_ranks.tolist() == brute_force(captions, images, index, rows)
    assert len(set(image_ranks)) > 5, "the pool is too easy to tell right ranks from wrong ones"
    assert len(set(caption_ranks)) > 5


@pytest.mark.parametrize("chunk", [1, 5, 64, 5120])
def test_one_direction_matches_brute_force_with_several_positives_and_distractors(chunk):
    generator = np.random.default_rng(1)
    queries = generator.integers(-5, 6, (40, 6)).astype(np.float32)
    candidates = generator.integers(-5, 6, (90, 6)).astype(np.float32)
    query_group = generator.integers(0, 12, 40)
    candidate_group = np.concatenate([np.arange(12), generator.integers(0, 30, 78)])
    found = ranks(queries, candidates, query_group, candidate_group, chunk=chunk)
    assert found.dtype == np.int64
    assert found.tolist() == brute_force(queries, candidates, query_group, candidate_group)


@given(
    vectors=npst.arrays(
        np.int8, st.tuples(st.integers(2, 14), st.just(2)), elements=st.integers(-2, 2)
    ),
    chunk=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_many_exact_ties_match_brute_force(vectors, chunk, seed):
    vectors = vectors.astype(np.float64)
    groups = np.random.default_rng(seed).integers(-3, 3, len(vectors))
    found = ranks(vectors, vectors, groups, groups, chunk=chunk)
    assert found.tolist() == brute_force(vectors, vectors, groups, groups)


def test_two_single_calls_equal_one_bidirectional_call():
    images, captions, index = pool(images=300, captions=1100, dim=40)
    rows = np.arange(len(images))
    image_ranks, caption_ranks = bidirectional_ranks(images, captions, index, chunk=130)
    np.testing.assert_array_equal(image_ranks, ranks(images, captions, rows, index))
    np.testing.assert_array_equal(caption_ranks, ranks(captions, images, index, rows))


def test_permuting_candidates_and_queries_changes_nothing():
    images, captions, index = pool(images=200, captions=900)
    rows = np.arange(len(images))
    order, shuffled = np.random.default_rng(2).permutation(900), np.random.default_rng(3)
    queries = shuffled.permutation(200)
    expected = ranks(images, captions, rows, index, chunk=70)
    found = ranks(images[queries], captions[order], rows[queries], index[order], chunk=70)
    np.testing.assert_array_equal(found, expected[queries])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("dim", "chunk"), [(3, 90), (300, 177), (1024, 333)])
def test_collapsed_space_ranks_last(dtype, dim, chunk):
    """Equal vectors tie exactly in whatever tile they stand, although no product is exact."""
    generator = np.random.default_rng(4)
    images = np.tile(generator.standard_normal(dim).astype(dtype), (211, 1))
    captions = np.tile(generator.standard_normal(dim).astype(dtype), (700, 1))
    index = np.arange(700) % 211
    image_ranks, caption_ranks = bidirectional_ranks(images, captions, index, chunk=chunk)
    np.testing.assert_array_equal(image_ranks, 1 + 700 - np.bincount(index))
    np.testing.assert_array_equal(caption_ranks, np.full(700, 211))


@pytest.mark.parametrize("chunk", [9, 500])
def test_score_function_is_used_in_the_order_images_captions(chunk):
    def negative_order_violation(a, b):  # [n, d], [m, d] -> [n, m], not symmetric
        return -(np.maximum(0, b[None] - a[:, None]) ** 2).sum(axis=2)

    images, captions, index = pool(images=25, captions=60, dim=5)
    found, _ = bidirectional_ranks(images, captions, index, negative_order_violation, chunk)
    scores = negative_order_violation(images, captions)
    best = np.where(index == np.arange(25)[:, None], scores, -np.inf).max(axis=1)
    wrong = (index != np.arange(25)[:, None]) & (scores >= best[:, None])
    np.testing.assert_array_equal(found, 1 + wrong.sum(axis=1))


def near_tie_pool(dtype=np.float32):
    """Return images, captions and their images, and both directions' ranks by integers."""
    index = np.random.default_rng(6).permutation(np.arange(450) % 150)
    images, captions = near_ties(150, 300, 1, dtype), near_ties(450, 300, 2, dtype)
    scores = whole_products(on_grid(images), on_grid(captions))
    right = index == np.arange(150)[:, None]
    expected = []
    for side, own in ((scores, right), (scores.T, right.T)):
        best = np.where(own, side, -np.inf).max(axis=1)
        expected.append(1 + (~own & (side >= best[:, None])).sum(axis=1))
    return images, captions, index, expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("chunk", [7, 64, 177, 5120])
def test_near_ties_are_those_of_integers_in_every_chunk(dtype, chunk):
    images, captions, index, expected = near_tie_pool(dtype)
    found = bidirectional_ranks(images, captions, index, chunk=chunk)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    assert len(set(expected[1])) > 40, "the pool has no near ties to tell apart"


def test_near_ties_are_the_same_in_every_order():
    images, captions, index, expected = near_tie_pool()
    generator = np.random.default_rng(7)
    rows, columns = generator.permutation(150), generator.permutation(450)
    found = bidirectional_ranks(images[rows], captions[columns], np.argsort(rows)[index[columns]])
    np.testing.assert_array_equal(found[0], expected[0][rows])
    np.testing.assert_array_equal(found[1], expected[1][columns])


@pytest.mark.parametrize("scale", [2.0**-66, 2.0**20])
def test_length_changes_no_rank(scale):
    """Nor does it where products in float32 underflow."""
    images, captions, index, expected = near_tie_pool()
    images, captions = np.float32(scale) * images, np.float32(scale) * captions
    found = bidirectional_ranks(images, captions, index)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("share", [0.02, 1])
def test_no_rounding_within_the_bound_changes_a_rank(share, monkeypatch):
    """Of few pairs that are uncertain each is scored again, of many all at once."""
    images, captions, index, expected = near_tie_pool()
    monkeypatch.setattr(ranking, "_MOST_UNCERTAIN", share)
    error = ranking._product_error(images, captions)
    generator = np.random.default_rng(8)

    def rounded(a, b):
        exact = whole_products(a, b)
        return (exact + generator.uniform(-0.99, 0.99, exact.shape) * error).astype(np.float32)

    monkeypatch.setattr(ranking, "_rounded_products", rounded)
    found = bidirectional_ranks(images, captions, index, chunk=100)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("scale", [1, 2.0**-66], ids=["unit", "underflow"])
@pytest.mark.parametrize("dim", [1, 30, 1024])
def test_float32_products_are_within_the_bound(dim, scale):
    generator = np.random.default_rng(9)
    signs = generator.standard_normal((90, dim)).astype(np.float32)
    for a in (signs, abs(signs)):  # of one sign, as many as can be are rounded the same way
        a = on_grid(a / np.linalg.norm(a, axis=1, keepdims=True))
        exact, a = scale**2 * whole_products(a, a), np.float32(scale) * a
        one_by_one = sum(a[:, None, i] * a[None, :, i] for i in range(dim))  # the worst order
        for rounded in (ranking._rounded_products(a, a), one_by_one):
            assert abs(rounded - exact).max() <= ranking._product_error(a, a)


def test_order_scores_depend_on_their_two_vectors_alone():
    a, b = (abs(near_ties(n, 77, n)) for n in (9, 600))
    found = order_scores(a, b)
    exact = -(np.maximum(0, b[None].astype(float) - a[:, None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, exact, atol=1e-6)
    for rows, columns in (([4], [599]), ([8, 0], [300, 2, 255])):
        np.testing.assert_array_equal(
            order_scores(a[rows], b[columns]), found[np.ix_(rows, columns)]
        )


def test_order_scores_hold_no_difference_of_every_pair():
    """For 1,000 photos and 5,000 captions of 1,024 numbers they would take 20 GB."""
    a, b = (abs(near_ties(n, 64, n)) for n in (150, 600))
    order_scores(a[:2], b[:2])
    tracemalloc.start()
    try:
        found = order_scores(a, b)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    differences = b[None] - a[:, None]
    expected = -(np.maximum(0, differences) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.nbytes <= peak < differences.nbytes / 20


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_input_is_reported_all_at_once(value):
    images, captions, index = pool()
    images[3, 1] = captions[20, 0] = captions[149, 2] = value
    with pytest.raises(
        ValueError, match=r"1 of the first .*rows 3; 2 of the second .*rows 20, 149"
    ):
        bidirectional_ranks(images, captions, index)


@pytest.mark.filterwarnings("ignore:overflow")
def test_scores_that_overflow_are_refused():
    huge = np.full((2, 2), 3e38, np.float32)
    with pytest.raises(ValueError, match="expected finite scores"):
        bidirectional_ranks(huge, huge, np.arange(2))


@pytest.mark.parametrize("wrong", [lambda a, b: b @ a.T, lambda a, b: (a @ b.T).astype(int)])
def test_score_function_of_another_shape_or_type_is_refused(wrong):
    images, captions, index = pool()
    with pytest.raises(ValueError, match=r"expected scores of shape \(37, 150\) in a float type"):
        bidirectional_ranks(images, captions, index, wrong)


def test_no_query_has_no_rank():
    none = np.empty((0, 3), np.float32)
    found = ranks(none, np.ones((2, 3), np.float32), np.empty(0, np.int64), np.arange(2))
    assert found.shape == (0,)


def test_queries_without_right_candidate_are_listed():
    images, captions, index = pool()
    index[index == 7] = 8
    index[5] = 99
    with pytest.raises(ValueError, match=r"1 images have no .*rows 7; 1 captions .*rows 5"):
        bidirectional_ranks(images, captions, index)


def test_shapes_and_types_that_disagree_are_listed():
    images, captions, index = pool()
    with pytest.raises(ValueError, match=r"found \(37, 12\) and \(150, 9\).*float32 and float64"):
        bidirectional_ranks(images, captions[:, :9].astype(float), index)
    with pytest.raises(ValueError, match=r"expected 150 integers .* found int64 \(140,\)"):
        bidirectional_ranks(images, captions, index[:140])
