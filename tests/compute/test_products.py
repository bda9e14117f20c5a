"""Products by oneDNN are products, and stand in for PyTorch's only where and while they should."""

import threading

import pytest
import torch
from shell import python

from pipeline_lib.compute import products
from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.compute.products import by_mkl_at_half_speed, fast_products

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN"
)


@pytest.fixture(autouse=True)
def everywhere(monkeypatch):
    """Take products as they are on AMD's CPUs with AVX-512, whatever this one is."""
    monkeypatch.setattr(products, "by_mkl_at_half_speed", lambda: True)


@pytest.fixture
def taken(monkeypatch):
    """Return a list that grows with each product of oneDNN."""
    by_onednn, found = products._affine, []
    monkeypatch.setattr(
        products, "_affine", lambda a, b, bias: found.append(bias) or by_onednn(a, b, bias)
    )
    return found


def matrix(rows, columns, transposed, seed):
    drawn = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    return drawn.T.contiguous().T if transposed else drawn


@pytest.mark.parametrize("a_transposed", [False, True])
@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize("shape", [(128, 300, 256), (4, 2000, 333), (900, 3, 700)], ids=str)
def test_products_and_affine_maps_in_every_layout(shape, a_transposed, b_transposed, taken):
    rows, terms, columns = shape
    a, b = matrix(rows, terms, a_transposed, 0), matrix(terms, columns, b_transposed, 1)
    bias = torch.randn(2 * columns)[::2]
    expected = a.double() @ b.double()
    with fast_products():
        found, mapped = a @ b, torch.addmm(bias, a, b)
    assert len(taken) == 2
    torch.testing.assert_close(found.double(), expected, atol=2e-4, rtol=1e-5)
    torch.testing.assert_close(mapped.double(), expected + bias, atol=2e-4, rtol=1e-5)


def test_a_layer_has_the_gradients_of_one_in_float64(taken):
    layer, x = torch.nn.Linear(300, 256), matrix(128, 300, False, 2).requires_grad_()
    with fast_products():
        (layer(x) ** 2).sum().backward()
    assert len(taken) == 3  # forward, and the gradients of the input and the weight
    found = [x.grad.double(), layer.weight.grad.double(), layer.bias.grad.double()]
    exact, y = layer.double(), x.detach().double().requires_grad_()
    layer.zero_grad()
    (exact(y) ** 2).sum().backward()
    for one, other in zip(found, [y.grad, exact.weight.grad, exact.bias.grad], strict=True):
        torch.testing.assert_close(one, other, atol=1e-2, rtol=1e-4)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (torch.randn(64, 64), torch.randn(64, 64)),
        (torch.randn(3, 2000), torch.randn(2000, 2000)),
        (torch.randn(2000, 2000), torch.randn(2000, 1)),
        (torch.randn(0, 2000), torch.randn(2000, 2000)),
        (torch.randn(2000, 0), torch.randn(0, 2000)),
        (torch.randn(200, 200).double(), torch.randn(200, 200).double()),
        (torch.randn(200, 200).bfloat16(), torch.randn(200, 200).bfloat16()),
        (torch.arange(40000).view(200, 200), torch.arange(40000).view(200, 200)),
    ],
    ids=lambda x: f"{x.dtype} {tuple(x.shape)}",
)
def test_what_is_small_or_of_another_type_stays_as_it_was(a, b, taken):
    before = a @ b
    with fast_products():
        assert torch.equal(a @ b, before)
    assert not taken


def test_sums_with_weights_and_of_matrices_stay_as_they_were(taken):
    a, b, c = (matrix(200, 200, False, seed) for seed in range(3))
    cases = [((c, a, b), {}), ((c[0], a, b), {"beta": 0.5}), ((c[0], a, b), {"alpha": 2})]
    before = [torch.addmm(*args, **kwargs) for args, kwargs in cases]
    with fast_products():
        after = [torch.addmm(*args, **kwargs) for args, kwargs in cases]
    assert all(map(torch.equal, before, after))
    assert not taken


@pytest.mark.parametrize("shape", [(300, 200), (300,), (1, 300, 2000)], ids=str)
def test_wrong_shapes_are_refused_as_before(shape):
    a, b = torch.randn(2000, 200), torch.randn(shape)
    with pytest.raises(RuntimeError) as before:
        torch.mm(a, b)
    with fast_products(), pytest.raises(RuntimeError) as after:
        torch.mm(a, b)
    assert str(after.value).splitlines()[0] == str(before.value).splitlines()[0]


def test_they_end_with_the_last_block_also_where_threads_overlap_and_one_fails(taken):
    a = matrix(200, 200, False, 0)
    inside, leave = threading.Event(), threading.Event()

    def other():
        with fast_products():
            inside.set()
            leave.wait()

    def fail():
        thread.start()
        inside.wait()
        raise ZeroDivisionError

    thread = threading.Thread(target=other)
    with pytest.raises(ZeroDivisionError), arithmetic("f32"), fast_products():
        fail()
    a @ a
    assert len(taken) == 1
    leave.set()
    thread.join()
    before = torch.mm(a, a)
    assert len(taken) == 1
    with arithmetic("bf16"):
        assert not torch.equal(a @ a, torch.zeros(200, 200))
    assert len(taken) == 2
    assert torch.equal(a @ a, before)
    assert len(taken) == 2


@pytest.mark.parametrize(
    ("name", "capability", "expected"),
    [
        ("AMD EPYC 9B14", "AVX512", True),
        ("AMD EPYC 7B13", "AVX2", False),
        ("Intel(R) Xeon(R)", "AVX512", False),
        (None, "AVX512", False),
    ],
)
def test_they_are_for_amds_cpus_with_avx512(name, capability, expected, monkeypatch):
    by_mkl_at_half_speed.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": name} if name else {})
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert by_mkl_at_half_speed() is expected
    by_mkl_at_half_speed.cache_clear()


def test_pytorch_says_nothing_of_the_change():
    code = (
        "import torch, pipeline_lib.compute.products as p; p.by_mkl_at_half_speed = lambda: True\n"
        "a = torch.ones(200, 200)\n"
        "for _ in range(2):\n"
        "    with p.fast_products(): print(float((a @ a).sum()))\n"
    )
    ran = python(code)
    assert (ran.stdout.split(), ran.stderr) == (["8000000.0"] * 2, "")
