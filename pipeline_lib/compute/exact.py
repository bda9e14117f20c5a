"""Sums that are the same on every machine, in numpy.

Floating-point sums are rounded, so they depend on the order of their terms, which a BLAS chooses
by CPU, threads and the shape of the matrices. Two ways around that:

**Exact products.** A dot product is defined by its vectors rounded to a grid: multiples of 2^-26
times the power of two 2^e nearest above .8 times the vector's length (2^e = 1 for unit vectors).
Every product of two coordinates is then a multiple of 2^(e + f - 52), and so is every partial sum
of them, in any order. By Cauchy-Schwarz none is larger than the product of both lengths, which is
below 1.26^2 * 2^(e + f) < 2 * 2^(e + f): a float64, which has 53 bits, holds each of them. So
float64 rounds nowhere, in any kernel, with fused multiplications or without, on any number of
threads. The grid is the vector's own: a product depends on its two vectors and on nothing else.
float32 holds such a coordinate as well: one of 2^(e - 2) or more has no finer digits, and a
smaller one needs 24 bits or less on the grid.

**Sums in one order**, where terms cannot be put on a grid: :func:`ordered_sum`.

All else here is one rounded operation on each number (add, multiply, divide, root), which
IEEE 754 determines.
"""

import numpy as np

GRID_BITS = 26
"""A unit vector's coordinates become multiples of ``2^-GRID_BITS``."""

LENGTH_SCALE = 0.8
"""Keeps lengths of about 1, as of unit vectors, far from where the grid's exponent changes."""

_ROWS = 256
"""Vectors, or pairs of vectors, that are worked on at a time: they stay in the cache."""

_COLUMNS = 4096


def dot_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the exact dot product of every pair, on the grids of the vectors.

    Equal vectors have equal products wherever they stand.

    Args:
        a: Vectors ``[n, dim]``, float32 or float64, finite, of length 0 or 2^-90 to 2^120.
        b: Vectors ``[m, dim]``, likewise.

    Returns:
        ``float64 [n, m]``.
    """
    products, left = np.empty((len(a), len(b))), on_grid(a)
    for start in range(0, len(b), _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        np.copyto(products[:, columns], grid_products(left, on_grid(b[columns])))
    return products


def on_grid(vectors: np.ndarray) -> np.ndarray:
    """Round coordinates ``[n, dim]`` to the grid of their vector; the type remains."""
    exponent = np.frexp(LENGTH_SCALE * lengths(vectors))[1]
    spacing = np.ldexp(1.0, exponent - GRID_BITS).astype(vectors.dtype)[:, None]
    rounded = vectors / spacing  # by a power of two: exact
    np.rint(rounded, out=rounded)
    rounded *= spacing
    return rounded


def grid_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return :func:`dot_products` of vectors that are on their grids, ``float64 [n, m]``."""
    return a.astype(np.float64, copy=False) @ b.astype(np.float64, copy=False).T


def paired_grid_products(
    a: np.ndarray, rows: np.ndarray, b: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return the product of ``a[rows[i]]`` and ``b[columns[i]]``, as above, ``float64 [pairs]``."""
    products = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS):
        pairs = slice(start, start + _ROWS)
        terms = np.multiply(a[rows[pairs]], b[columns[pairs]], dtype=np.float64)
        products[pairs] = terms.sum(axis=1)
    return products


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the length of each vector ``[n, dim]``, summed in one order, ``float64 [n]``."""
    found = np.empty(len(vectors))
    for start in range(0, len(vectors), _ROWS):
        block = vectors[start : start + _ROWS].astype(np.float64)
        found[start : start + _ROWS] = np.sqrt(ordered_sum((block * block).T))
    return found


def summable(values: np.ndarray, terms: int) -> np.ndarray:
    """Round numbers ``[n, columns]`` so that float64 adds so many of a column without rounding.

    Whole numbers stay what they are as long as their sums are below 2^53.
    """
    exponent = np.frexp(abs(values).max(axis=0, initial=0))[1] + (terms - 1).bit_length()
    spacing = np.ldexp(1.0, exponent - 53)
    return np.rint(values / spacing) * spacing


def ordered_sum(terms: np.ndarray) -> np.ndarray:
    """Sum over the first axis in one order: the second half is added to the first, again and again.

    Args:
        terms: Array or tensor ``[n, ...]``, one or more.
    """
    while len(terms) > 1:
        half, odd = divmod(len(terms), 2)
        last = terms[2 * half :]
        terms = terms[:half] + terms[half : 2 * half]
        terms[:odd] += last
    return terms[0]
