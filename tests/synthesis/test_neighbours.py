import numpy as np
import pytest
import torch
from near_ties import near_ties, whole_products
from refusals import refused

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.synthesis import neighbours
from pipeline_lib.synthesis.neighbours import nearest, nearest_both_ways, pair_scores, score_tiles
from pipeline_lib.synthesis.rounding import Gridded, candidate_floor, score_error

BF16, F32 = torch.bfloat16, torch.float32


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Cut tiles so small that a few hundred vectors need many, the last of them partly filled."""
    for name, value in {
        "_ROWS": 16,
        "_COLUMNS": 320,
        "_GROUP": 8,
        "_QUERIES": 50,
        "_PAIRS": 64,
    }.items():
        monkeypatch.setattr(neighbours, name, value)


@pytest.fixture(params=[BF16, F32], ids=["bf16", "f32"])
def precision(request, monkeypatch):
    monkeypatch.setattr(neighbours, "fast_precision", lambda device: request.param)
    return request.param


def on_grid(vectors):
    """Make unit vectors of multiples of 2^-11, so that float32 adds their products exactly."""
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    return (unit * 2**11).round() / 2**11


def spread(count, seed, dim=48):
    return on_grid(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)))


def crowded(count, seed, dim=48):
    """Draw vectors so close to five centres that bfloat16 cannot tell them apart."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(5, dim, generator=torch.Generator().manual_seed(0))
    noise = 0.01 * torch.randn(count, dim, generator=generator)
    return on_grid(centres[torch.arange(count) % 5] + noise)


def brute_force(queries, base, count, offset=None):
    """Sort the whole matrix; equal scores stay in the order of the base."""
    scores = queries.double().numpy() @ base.double().numpy().T
    scores = scores if offset is None else scores + offset.double().numpy()
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(scores, order, axis=1)


def assert_found(found, expected):
    """Assert that these are the expected indices and scores."""
    indices, scores = expected
    assert np.array_equal(found.indices.numpy(), indices)
    assert np.array_equal(found.scores.numpy(), scores)


@pytest.mark.parametrize("draw", [spread, crowded])
@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("sizes", [(75, 1003), (33, 640), (2, 9), (1, 33)])
def test_neighbours_are_those_of_the_whole_matrix(precision, draw, count, sizes):
    queries, base = draw(sizes[0], 1), draw(sizes[1], 2)
    count = min(count, sizes[1])
    assert_found(nearest(queries, base, count), brute_force(queries, base, count))


def near_tie_sides(dtype=np.float32):
    """Return two sides, and their products by integers."""
    a, b = near_ties(75, 48, 1, dtype), near_ties(1003, 48, 2, dtype)
    products = whole_products(*(Gridded(torch.from_numpy(side))[:].numpy() for side in (a, b)))
    return torch.from_numpy(a), torch.from_numpy(b), products


def in_order(products, count):
    order = np.argsort(-products, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(products, order, axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 40])
def test_near_ties_are_those_of_integers(precision, dtype, count):
    """More vectors than there are candidates are equal or cannot be told apart by float32."""
    a, b, products = near_tie_sides(dtype)
    of_a, of_b = nearest_both_ways(a, b, count)
    for found, expected in (
        (nearest(a, b, count), products),
        (of_a, products),
        (of_b, products.T),
    ):
        assert_found(found, in_order(expected, count))


def test_near_ties_are_told_apart_after_the_offset_is_added(precision):
    a, b, products = near_tie_sides()
    offset = torch.from_numpy(np.random.default_rng(4).integers(-2, 3, 1003) * 2.0**-45)
    expected = in_order(products + offset.numpy(), 9)
    assert_found(nearest(a, b, 9, offset), expected)
    assert not np.array_equal(expected[0], in_order(products, 9)[0])


def test_the_order_of_vectors_changes_no_score(precision):
    a, b, products = near_tie_sides()
    order = torch.from_numpy(np.random.default_rng(5).permutation(1003))
    _, scores = in_order(products, 9)
    assert_found(nearest(a, b[order], 9), (in_order(products[:, order], 9)[0], scores))


def test_no_rounding_within_the_bound_changes_a_neighbour(precision, monkeypatch):
    a, b = spread(75, 1), spread(1003, 2)
    expected = brute_force(a, b, 5)
    error = score_error(a, b, torch.zeros(1003), precision)
    generator = torch.Generator().manual_seed(6)

    def tiles(queries, base, offset, used):
        for rows, columns, tile in score_tiles(queries, base, offset, torch.float64):
            noise = 1.98 * torch.rand(tile.shape, generator=generator) - 0.99
            most = error.min() if used == precision else 0
            yield rows, columns, (tile + noise * most).to(used)

    monkeypatch.setattr(neighbours, "score_tiles", tiles)
    assert_found(nearest(a, b, 5), expected)


def test_bfloat16_alone_would_be_wrong_where_vectors_are_crowded(monkeypatch):
    queries, base = crowded(75, 1), crowded(1003, 2)
    order, _ = brute_force(queries, base, 1)
    alone = (queries.bfloat16() @ base.bfloat16().T).argmax(dim=1).numpy()
    assert (alone != order[:, 0]).mean() > 0.5
    searched = []

    def tiles(*arguments):
        searched.append((len(arguments[0]), arguments[3]))
        return score_tiles(*arguments)

    monkeypatch.setattr(neighbours, "score_tiles", tiles)
    monkeypatch.setattr(neighbours, "fast_precision", lambda device: BF16)
    nearest(queries, base, 1)
    nearest(spread(75, 1), spread(1003, 2), 1)
    # The crowded ones are all searched again; of the spread ones at most a few.
    assert searched[:4] == [(75, BF16), (50, F32), (25, F32), (75, BF16)]
    assert sum(count for count, _ in searched[4:]) < 10


def test_neighbours_by_score_and_offset(precision):
    queries, base = spread(75, 1), spread(1003, 2)
    offset = torch.randint(-900, 900, (1003,), generator=torch.Generator().manual_seed(3)) / 2**11
    expected = brute_force(queries, base, 5, offset)
    assert_found(nearest(queries, base, 5, offset), expected)
    assert not np.array_equal(expected[0], brute_force(queries, base, 5)[0])


@pytest.mark.parametrize("draw", [spread, crowded])
def test_both_ways_at_once_are_each_way_alone(precision, draw):
    a, b = draw(75, 1), draw(1003, 2)
    of_a, of_b = nearest_both_ways(a, b, 10)
    for found, (queries, base) in ((of_a, (a, b)), (of_b, (b, a))):
        assert_found(found, brute_force(queries, base, 10))
        at = pair_scores(
            Gridded(queries),
            torch.arange(len(queries)).repeat_interleave(10),
            Gridded(base),
            found.indices.flatten(),
        )
        assert torch.equal(at.view(-1, 10), found.scores)


def test_of_equal_vectors_the_first_is_the_nearest(precision):
    queries, base = spread(20, 1), spread(700, 2)
    for copy in (650, 300, 41):
        base[copy] = queries[3]
    found = nearest(queries, base, 4)
    assert found.indices[3, :3].tolist() == [41, 300, 650]


def test_more_equal_vectors_than_candidates(precision):
    base = spread(700, 2)
    base[100:400] = base[100]
    found = nearest(base[100:101], base, 3)
    assert found.indices[0].tolist() == [100, 101, 102]


def test_a_collapsed_space_still_has_neighbours(precision):
    base = torch.ones(700, 16) / 4
    found = nearest(base[:40], base, 2)
    assert torch.equal(found.scores, torch.ones(40, 2, dtype=torch.float64))
    assert torch.equal(found.indices, torch.tensor([[0, 1]] * 40))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("used", "unit", "most"), [(BF16, 2**-8, 0.03), (F32, 2**-24, 1e-4)])
def test_rounded_scores_stay_within_the_bound(used, unit, most, dtype):
    generator = torch.Generator().manual_seed(7)
    queries, base = crowded(60, 1), torch.cat([crowded(400, 2), 3 * spread(400, 4)])
    queries, base = (  # on no grid
        side.to(dtype) + 1e-5 * torch.randn(side.shape, generator=generator, dtype=dtype)
        for side in (queries, base)
    )
    offset = torch.linspace(-2, 2, 800, dtype=dtype)
    error = score_error(queries, base, offset, used)
    exact = Gridded(queries)[:] @ Gridded(base)[:].T + offset
    for rows, columns, tile in score_tiles(queries, base, offset, used):
        rounding = unit * (tile.double().abs() + error[rows, None])
        assert ((tile.double() - exact[rows, columns]).abs() <= error[rows, None] + rounding).all()
    assert (error < most).all()  # a bound that says something


def test_the_bound_holds_for_the_worst_order_of_a_sum():
    a, offset = torch.full((1, 2**14), 0.7 / 2**7), torch.zeros(1)
    one_by_one = np.cumsum(a[0].numpy() ** 2)[-1]
    error = abs(float(one_by_one) - float((a.double() ** 2).sum()))
    assert 1e-5 < error <= score_error(a, a, offset, F32).item()


def test_the_bound_is_attained():
    rounded_down = torch.full((1, 64), (1 + 2**-8) / 8)  # half way between two numbers of bfloat16
    exact = torch.full((1, 64), 0.125)
    zero = torch.zeros(1)
    for a, b in ((rounded_down, exact), (exact, rounded_down)):
        cast = a.bfloat16().double() @ b.bfloat16().double().T
        error = (a.double() @ b.double().T - cast).abs().item()
        assert error <= score_error(a, b, zero, BF16).item() <= 1.02 * error


def test_the_floor_lies_below_all_that_rounding_can_bring_down():
    generator = torch.Generator().manual_seed(5)
    scores = 0.6 + 0.02 * torch.rand(20_000, 12, generator=generator)
    error = 0.002
    shifts = error * (2 * torch.randint(0, 2, scores.shape, generator=generator) - 1)
    rounded = (scores + shifts).bfloat16().float()
    floor = candidate_floor(rounded.sort(dim=1).values[:, -3], torch.full((20_000,), error), BF16)
    lowest = rounded.gather(1, scores.topk(3, dim=1).indices).min(dim=1).values
    assert (lowest >= floor).all()
    assert (lowest < floor + 2**-8).any()  # and not by more than a unit


def test_an_offset_is_added_before_the_score_is_rounded():
    queries, base = torch.eye(20), 0.75 * torch.eye(20)
    offset = torch.linspace(-0.7501, -0.7499, 20)
    tiles = [tile for _, _, tile in score_tiles(queries, base, offset, BF16)]
    found = torch.cat(tiles).float().diagonal()
    assert torch.allclose(found, 0.75 + offset, atol=2**-16, rtol=0)


def test_no_neighbour_scores_below_the_floor():
    queries, base = crowded(60, 1), crowded(800, 2)
    offset = torch.linspace(0, 0.2, 800)
    error = score_error(queries, base, offset, BF16)
    order, _ = brute_force(queries, base, 10, offset)
    tiles = [tile for _, _, tile in score_tiles(queries, base, offset, BF16)]
    rounded = torch.cat([torch.cat(tiles[i : i + 3], 1) for i in range(0, len(tiles), 3)]).float()
    floor = candidate_floor(rounded.sort(dim=1).values[:, -10], error, BF16)
    assert (rounded.gather(1, torch.from_numpy(order)) >= floor[:, None]).all()
    assert (rounded < floor[:, None]).float().mean() > 0.5


def test_no_tile_is_larger_than_its_limit():
    tiles = [*score_tiles(spread(75, 1), spread(1003, 2), torch.zeros(1003), BF16)]
    assert {tile.shape for *_, tile in tiles} <= {(r, c) for r in (16, 11) for c in (320, 43)}
    assert sum(tile.numel() for *_, tile in tiles) == 75 * 1003


def test_faiss_finds_the_same():
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is in the group benchmark")
    queries, base = spread(300, 1, 128), spread(2000, 2, 128)
    index = faiss.IndexFlatIP(128)
    index.add(base.numpy())
    scores, _ = index.search(queries.numpy(), 10)
    assert np.array_equal(nearest(queries, base, 10).scores.numpy(), scores)


def test_everything_that_is_wrong_is_listed():
    broken = spread(5, 1)
    broken[2, 3] = torch.nan
    with refused(
        "[5, 48] and [4, 7]",
        "from 1 to 4",
        "base in float32 or float64, found torch.float16",
        "finite queries",
    ):
        nearest(broken, spread(4, 1, 7).half(), 9)
    with pytest.raises(ContractError, match="one query or more"):
        nearest(broken[:0], spread(4, 1), 1)
    with pytest.raises(ContractError, match="4 offsets"):
        nearest(spread(5, 1), spread(4, 1), 1, torch.zeros(3))
    with pytest.raises(ContractError, match="finite base"):
        nearest_both_ways(spread(5, 2), broken, 1)


@pytest.mark.gpu
def test_a_gpu_finds_the_same():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    for queries, base in ((spread(75, 1), spread(1003, 2)), near_tie_sides()[:2]):
        here, there = nearest(queries, base, 10), nearest(queries, base.cuda(), 10)
        assert torch.equal(here.indices, there.indices)
        assert torch.equal(here.scores, there.scores)
