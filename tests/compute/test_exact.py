"""Exact products against Python's fractions, and what makes them exact; sums in one order."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
import torch

from pipeline_lib.compute.exact import (
    dot_products,
    grid_products,
    lengths,
    on_grid,
    ordered_sum,
    paired_grid_products,
    summable,
)
from pipeline_lib.synthesis.rounding import Gridded


def fraction_products(a, b):
    """Multiply and add fractions: nothing is rounded."""
    left, right = ([[Fraction(x) for x in row] for row in side.tolist()] for side in (a, b))
    return [[sum(x * y for x, y in zip(r, s, strict=True)) for s in right] for r in left]


def unit(count, dim, seed, dtype):
    vectors = np.random.default_rng(seed).standard_normal((count, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 2, 7, 300, 1024])
def test_products_are_those_of_fractions_to_the_last_bit(dtype, dim):
    a, b = unit(3, dim, 0, dtype), unit(5, dim, 1, dtype)
    a[1] *= dtype(1e5)
    b[2], b[3], b[4] = a[0], 0, dtype(3e-7) * b[4]
    expected = fraction_products(on_grid(a), on_grid(b))
    found = dot_products(a, b)
    assert found.dtype == np.float64
    assert [[Fraction(x) for x in row] for row in found.tolist()] == expected
    rows, columns = np.repeat(np.arange(3), 5), np.tile(np.arange(5), 3)
    paired = paired_grid_products(on_grid(a), rows, on_grid(b), columns)
    assert np.array_equal(paired.reshape(3, 5), found)


@pytest.mark.parametrize("dim", [2, 1000])
@pytest.mark.parametrize("length", [0.6251, 1, 1.2499])
def test_products_are_exact_in_any_order_however_long_the_vector_is_on_its_grid(dim, length):
    """Of one sign and of the most length, partial sums are largest."""
    vectors = abs(unit(4, dim, 2, np.float64)) * length
    gridded = on_grid(vectors)
    assert (gridded * 2**26 == np.rint(gridded * 2**26)).all()
    expected = fraction_products(gridded, gridded)
    for order in (slice(None), slice(None, None, -1), np.random.default_rng(3).permutation(dim)):
        part = gridded[:, order]
        one_by_one = np.cumsum(part[:, None] * part[None], axis=2)[:, :, -1]
        for found in (grid_products(part, part), one_by_one):
            assert [[Fraction(x) for x in row] for row in found.tolist()] == expected


@pytest.mark.parametrize("scale", [2.0**-40, 1, 2.0**33])
def test_the_grid_is_the_vectors_own_and_float32_holds_it(scale):
    vectors = scale * unit(50, 384, 4, np.float64)
    gridded = on_grid(vectors)
    steps = gridded / scale * 2**26
    assert (steps == np.rint(steps)).all()
    assert abs(gridded - vectors).max() <= scale * 2**-27
    assert np.array_equal(gridded.astype(np.float32), gridded)
    assert np.array_equal(on_grid(gridded.astype(np.float32)), gridded)
    assert np.array_equal(on_grid(vectors[7:8]), gridded[7:8])


def test_vectors_without_length_are_zero():
    assert not on_grid(np.zeros((2, 3))).any()
    assert not Gridded(torch.zeros(2, 3))[:].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors_are_put_on_the_same_grid(dtype):
    vectors = unit(300, 41, 5, dtype) * np.linspace(0.1, 9, 300, dtype=dtype)[:, None]
    rows = torch.tensor([299, 4, 4])
    gridded = Gridded(torch.from_numpy(vectors))
    assert np.array_equal(gridded[:].numpy(), on_grid(vectors))
    assert np.array_equal(gridded[rows].numpy(), on_grid(vectors)[rows.numpy()])


def halves(terms):
    """Add the second half to the first, one number at a time."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    added = [x + y for x, y in zip(terms[:half], terms[half : 2 * half], strict=True)]
    if len(terms) % 2:
        added[0] += terms[-1]
    return halves(added)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1001])
def test_sums_have_one_order(count):
    terms = np.random.default_rng(6).standard_normal((count, 4))
    before = terms.copy()
    found = ordered_sum(terms)
    assert found.tolist() == [halves(column) for column in terms.T.tolist()]
    assert torch.equal(ordered_sum(torch.from_numpy(terms)), torch.from_numpy(found))
    np.testing.assert_allclose(found, [fsum(column) for column in terms.T], rtol=1e-12)
    assert np.array_equal(terms, before)


def test_lengths_are_roots_of_sums_of_squares():
    vectors = unit(600, 9, 7, np.float32) * np.float32(3)
    expected = [fsum(x * x for x in row) ** 0.5 for row in vectors.tolist()]
    np.testing.assert_allclose(lengths(vectors), expected, rtol=1e-15)


def test_summable_numbers_add_up_exactly_in_any_order():
    values = np.random.default_rng(0).normal(size=(1000, 2)) * [1e-3, 1e6]
    rounded = summable(values, len(values))
    np.testing.assert_allclose(rounded, values, rtol=0, atol=1e-12 * abs(values).max(axis=0).max())
    orders = [rounded, rounded[::-1], rounded[np.random.default_rng(1).permutation(1000)]]
    assert len({order.sum(axis=0).tobytes() for order in orders}) == 1
    assert rounded[:, 0].sum() == fsum(rounded[:, 0])
    counts = np.arange(30).reshape(10, 3).astype(float)
    assert (summable(counts, 10) == counts).all()
