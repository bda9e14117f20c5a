"""The reference arithmetic: correct, exact in any order, and equal bits under all kernels."""

import hashlib
import math
from fractions import Fraction
from functools import cache

import pytest
import torch
from shell import python
from torch import nn
from torch.nn import functional as F

from pipeline_lib.compute.arithmetic import functions, grid, matrices
from pipeline_lib.compute.arithmetic.mode import Exact
from pipeline_lib.compute.arithmetic.mode import arithmetic as in_precision
from pipeline_lib.models.similarity import SIMILARITIES

KERNELS = {
    "as it is": {},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    "sse": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Prescott",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA",
    },
}


def numbers(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    spread = torch.rand(shape, generator=generator, dtype=torch.float64).mul(6).sub(3)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * 10**spread


@pytest.mark.parametrize("terms", [1, 2, 3, 128, 2048])
def test_a_product_is_the_exact_one_of_rounded_factors(terms):
    a, b = numbers(3, terms), numbers(terms, 2, seed=1)
    bits = grid.bits_of_factors(terms)
    left, right = grid.to_grid(a, bits, 1), grid.to_grid(b, bits, 0)
    for i in range(3):
        for j in range(2):
            terms_of = zip(left[i].tolist(), right[:, j].tolist(), strict=True)
            assert Fraction(grid.product(a, b)[i, j].item()) == sum(
                Fraction(x) * Fraction(y) for x, y in terms_of
            )


def test_a_product_has_the_accuracy_of_float32():
    a, b = torch.randn(64, 512).double(), torch.randn(512, 64).double()
    ours = (grid.product(a, b) - a @ b).abs().amax()
    theirs = ((a.float() @ b.float()).double() - a @ b).abs().amax()
    assert ours < 2 * theirs
    assert (grid.precise_product(a, b) - a @ b).abs().amax() < 1e-9


def test_a_product_does_not_depend_on_what_is_multiplied_beside_it():
    a, b = numbers(50, 300), numbers(300, 40, seed=1)
    whole = grid.product(a, b)
    assert torch.equal(whole, torch.cat([grid.product(row[None], b) for row in a]))
    order = torch.randperm(300)
    assert torch.equal(whole, grid.product(a[:, order], b[order]))


def test_long_products_are_cut():
    a, b = torch.randn(2, 5000).double(), torch.randn(5000, 3).double()
    torch.testing.assert_close(grid.product(a, b), a @ b, rtol=1e-5, atol=1e-3)


def test_sums_are_exact_in_any_order():
    x = numbers(1000, 7)
    assert torch.equal(grid.total(x, 0), grid.total(x[torch.randperm(1000)], 0))
    torch.testing.assert_close(grid.total(x), x.sum())
    assert grid.total(x, [0, 1], keepdim=True).shape == (1, 1)
    assert grid.total(torch.zeros(0, 3).double(), 0).tolist() == [0, 0, 0]


def test_numbers_that_are_none_stay_visible():
    for bad in (float("nan"), float("inf")):
        assert not grid.total(torch.tensor([1.0, bad]).double()).isfinite()
        assert not grid.product(torch.tensor([[1.0, bad]]).double(), numbers(2, 1)).isfinite()
        assert not functions.tanh(torch.tensor([float("nan")]).double()).isfinite()


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [("exp", -700, 700), ("sigmoid", -800, 800), ("tanh", -400, 400), ("cos", -4e3, 4e3),
     ("sin", -4e3, 4e3), ("log", 1e-300, 1e300)],
)  # fmt: skip
def test_functions_are_those_of_pytorch(name, lowest, highest):
    wide = torch.linspace(lowest, highest, 10_001, dtype=torch.float64)
    near = torch.linspace(max(lowest, -3), 3, 10_001, dtype=torch.float64).clamp(min=lowest)
    for x in (wide, near):
        ours, theirs = getattr(functions, name)(x), getattr(torch, name)(x)
        torch.testing.assert_close(ours, theirs, rtol=5e-11, atol=5e-12)


def test_the_logarithm_of_one_and_powers_of_two():
    x = torch.tensor([0.25, 0.5, 1, 2, 1024]).double()
    torch.testing.assert_close(functions.log(x), x.log(), rtol=1e-15, atol=0)


def test_the_polar_factor_is_the_nearest_orthogonal_matrix():
    left, right = (torch.linalg.qr(torch.randn(20, 20).double())[0] for _ in range(2))
    matrix = left @ torch.diag(torch.logspace(0, -2, 20).double()) @ right
    torch.testing.assert_close(matrices.polar_factor(matrix), left @ right, rtol=0, atol=1e-6)


def test_the_polar_factor_of_a_singular_matrix_is_orthogonal_and_fits_best():
    matrix = torch.randn(20, 4).double() @ torch.randn(4, 20).double()
    found = matrices.polar_factor(matrix)
    torch.testing.assert_close(found.T @ found, torch.eye(20).double(), rtol=0, atol=1e-9)
    torch.testing.assert_close((found * matrix).sum(), torch.linalg.svdvals(matrix).sum())


@pytest.mark.parametrize("matrix", [torch.eye(8).roll(3, 0)[:, :3], torch.full((8, 3), math.inf)])
def test_a_matrix_without_one_polar_factor_is_refused(matrix):
    """Of the first, which takes three axes to three others, no orthogonal one is the nearest."""
    square = torch.cat([matrix, torch.zeros(8, 5)], dim=1).double()
    with pytest.raises(FloatingPointError, match="expected vectors that an orthogonal map"):
        matrices.polar_factor(square)


def test_orthogonal_weights():
    with Exact():
        weight = nn.init.orthogonal_(torch.empty(30, 30, dtype=torch.float64))
    torch.testing.assert_close(weight.T @ weight, torch.eye(30).double(), rtol=0, atol=1e-9)


class Everything(nn.Module):
    """Layers and losses as models have them."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 12)
        self.linear, self.norm = nn.Linear(12, 8), nn.LayerNorm(8)
        self.batch_norm, self.gru = nn.BatchNorm1d(8), nn.GRU(8, 6, batch_first=True)

    def forward(self, ids):
        x = self.norm(self.linear(self.words(ids)))
        x = self.batch_norm(x.flatten(0, 1)).relu().view(*ids.shape, 8)
        states, _ = self.gru(x)
        unit = F.normalize(states[:, -1], dim=1)
        scores = unit @ unit.T
        found = F.scaled_dot_product_attention(states[:, None], states[:, None], states[:, None])
        loss = (0.2 + scores - scores.diagonal()[:, None]).clamp(min=0).sum()
        loss = loss + F.cross_entropy(5 * scores, torch.arange(len(ids))) + found.mean()
        return loss + scores.logsumexp(dim=1).sum()


def gradients(model, ids):
    model.zero_grad()
    loss = model(ids)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def test_losses_and_gradients_are_those_of_pytorch():
    model, ids = Everything().double(), torch.randint(11, (9, 5))
    with in_precision("f64"):
        ours = gradients(model, ids)
    for mine, theirs in zip(ours, gradients(model, ids), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_similarities_and_gradients_are_those_of_pytorch(similarity):
    a, b = (F.normalize(torch.randn(n, 8).double(), dim=1).requires_grad_() for n in (5, 7))
    compare = SIMILARITIES[similarity]
    with in_precision("f64"):
        ours = compare(a, b)
        ours_of = torch.autograd.grad(ours.sum(), (a, b))
    theirs = compare(a, b)
    theirs_of = torch.autograd.grad(theirs.sum(), (a, b))
    for mine, other in zip((ours, *ours_of), (theirs, *theirs_of), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_a_tensor_is_subtracted_times_alpha():
    a, b = numbers(5), numbers(5, seed=1)
    with in_precision("f64"):
        ours = torch.rsub(a, b, alpha=3)
    torch.testing.assert_close(ours, b - 3 * a, rtol=1e-12, atol=1e-12)


def test_adam_is_that_of_pytorch():
    # The same gradients for both: where one is near zero, Adam makes rounding as large as a step.
    gradients = [numbers(100, 300, seed=step) for step in range(1, 6)]
    ours, theirs = (nn.Parameter(numbers(100, 300)) for _ in range(2))
    for weight, precision in ((ours, "f64"), (theirs, "f32")):
        optimizer = torch.optim.Adam([weight], lr=1e-2, fused=True)
        with in_precision(precision):
            for weight.grad in gradients:
                optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("exponent", [4, 5, -1, -2, 0, 0.5, 1.5])
def test_powers_are_those_of_pytorch_also_of_negative_numbers(exponent):
    x = torch.tensor([-2.0, 3.0, 0.5], dtype=torch.float64)
    with in_precision("f64"):
        found = x**exponent
    torch.testing.assert_close(found, x**exponent, rtol=1e-11, atol=0, equal_nan=True)


def test_logarithms_of_what_is_not_positive_are_those_of_pytorch():
    x = torch.tensor([math.nan, -1.0, 0.0, math.inf, 2.0, -math.inf], dtype=torch.float64)
    with in_precision("f64"):
        found = torch.log(x)
    torch.testing.assert_close(found, x.log(), equal_nan=True)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: torch.linspace(0, 1, 7, dtype=torch.float64),
        lambda x: torch.arange(0, 1, 0.1, dtype=torch.float64),
        lambda x: torch._foreach_add([x], [x], alpha=0.3),
        lambda x: torch._foreach_sub_([x], [x], alpha=0.3),
        lambda x: F.conv2d(x.expand(1, 4, 5, 5), numbers(8, 2, 3, 3), groups=2),
        lambda x: F.conv2d(x.expand(1, 4, 5, 5), numbers(8, 1, 3, 3), groups=4),
        lambda x: torch.float_power(torch.tensor(-2.0), x[0]),
    ],
)
def test_what_differs_between_cpus_or_is_not_known_is_refused(compute):
    with Exact(), pytest.raises(NotImplementedError):
        compute(numbers(4, 5, 5))


@pytest.mark.parametrize("option", ["amsgrad", "maximize"])
def test_what_adam_has_besides_is_refused(option):
    weight = nn.Parameter(numbers(3))
    weight.grad = numbers(3, seed=1)
    optimizer = torch.optim.Adam([weight], fused=True, **{option: True})
    with Exact(), pytest.raises(NotImplementedError, match=option):
        optimizer.step()


@pytest.mark.parametrize(("side", "cells"), [(7, 7), (2, 7), (9, 4), (5, 1)])
def test_maps_are_averaged_as_by_pytorch(side, cells):
    x = numbers(2, 3, side, side + 1)
    with in_precision("f64"):
        found = F.adaptive_avg_pool2d(x, cells)
    torch.testing.assert_close(found, F.adaptive_avg_pool2d(x, cells), rtol=1e-12, atol=1e-12)


def test_draws_have_their_distributions():
    with Exact():
        uniform = torch.empty(20_000, dtype=torch.float64).uniform_(-2, 4)
        normal = torch.empty(20_000, dtype=torch.float64).normal_(3, 0.5)
        dropped = F.dropout(torch.ones(20_000, dtype=torch.float64), 0.25)
    assert (uniform.min(), uniform.max()) == pytest.approx((-2, 4), abs=0.01)
    assert uniform.mean().item() == pytest.approx(1, abs=0.05)
    assert (normal.mean().item(), normal.std().item()) == pytest.approx((3, 0.5), abs=0.02)
    assert (dropped == 0).double().mean().item() == pytest.approx(0.25, abs=0.02)
    assert dropped.max().item() == pytest.approx(4 / 3)


def test_an_operation_that_is_not_known_to_be_exact_raises():
    x = numbers(3)
    with Exact(), pytest.raises(NotImplementedError, match="erf"):
        torch.erf(x)


def test_it_does_not_import_the_compiler():
    program = """
import sys, torch
from pipeline_lib.compute.arithmetic.mode import Exact
x = torch.ones(3, 4, 4, dtype=torch.float64)
with torch.inference_mode(), Exact():
    torch.matmul(x, x[0]).sum()
print(sorted({"torch._dynamo", "sympy"} & set(sys.modules)))
"""
    assert python(program).stdout.strip() == "[]"


def test_another_type_raises():
    with Exact(), pytest.raises(NotImplementedError, match="float64"):
        torch.ones(3, 3) @ torch.ones(3, 3)


def test_without_f64_nothing_changes():
    x = torch.randn(5, 5)
    with in_precision("f32"):
        assert torch.equal(x @ x, torch.mm(x, x))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 6])
def test_convolutions_are_those_of_pytorch(groups, stride):
    layer = nn.Conv2d(6, 12 // 2, 3, stride, padding=1, groups=groups, dtype=torch.float64)
    pixels = torch.randn(2, 6, 9, 8, dtype=torch.float64)
    with torch.inference_mode(), Exact():
        found = layer(pixels)
    torch.testing.assert_close(found, layer(pixels), rtol=1e-5, atol=1e-5)


@cache
def history():
    """Train everything for some updates and return the digest of its weights."""
    torch.manual_seed(3)
    with in_precision("f64"):
        model = Everything().double()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
        for update in range(10):
            torch.manual_seed(update)
            gradients(model, torch.randint(11, (9, 5)))
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        normal = torch.empty(1000, dtype=torch.float64).normal_()
    digest = hashlib.sha256(normal.numpy().tobytes())
    for value in model.state_dict().values():
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("kernels", KERNELS)
def test_weights_are_equal_under_other_kernels_and_threads(kernels, threads):
    code = "from test_arithmetic import history; print(history())"
    printed = python(code, tests=True, **KERNELS[kernels], OMP_NUM_THREADS=threads).stdout
    assert printed.strip() == history()


def test_square_roots_are_rounded_correctly():
    drawn = torch.rand(4000, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) * 10
    with Exact():
        found = {"sqrt": drawn.sqrt(), "pow": drawn**0.5, "in place": drawn.clone().sqrt_()}
    expected = [_nearest_root(x) for x in drawn.tolist()]
    for name, roots in found.items():
        assert roots.tolist() == expected, name


def _nearest_root(x):
    """Return the float64 that is nearest to the root, from whole numbers alone."""
    share, bits = Fraction(x), 128
    return float(
        Fraction(math.isqrt((share.numerator << 2 * bits) // share.denominator), 1 << bits)
    )
