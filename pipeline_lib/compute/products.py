"""Matrix products in float32 on AMD's CPUs with AVX-512, at twice PyTorch's speed.

PyTorch leaves them to MKL, which gives AMD's CPUs its kernels of AVX2 whatever they have: 100
GFLOPS of a core of an EPYC (Zen 5), where oneDNN, which comes with PyTorch too, makes 215. Sums are
rounded in another order, as between any two CPUs.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor
from torch._C import DispatchKeySet
from torch.library import Library, get_kernel

_FEWEST_MULTIPLICATIONS, _FEWEST_ROWS = 2**20, 4
"""Of a product, and of either side of its result: smaller ones MKL makes as fast (measured)."""


@cache
def by_mkl_at_half_speed() -> bool:
    """Return whether this CPU is AMD's with AVX-512, and PyTorch may use that."""
    name = torch.cpu.get_capabilities().get("cpu_name", "")
    allowed = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return name.startswith("AMD") and allowed and torch.backends.mkldnn.is_available()


class _OneDNN:
    """Stands in for PyTorch's kernels while a block asks for it, in any thread.

    It is put in their place by the first block and stays, for all of the process: a kernel cannot
    safely be taken away while another thread may be in it. Outside blocks it hands all on.
    """

    def __init__(self) -> None:
        self.blocks, self._lock = 0, threading.Lock()
        self._library: Library | None = None

    def begin(self) -> None:
        with self._lock:
            self.blocks += 1
            if self._library is None:
                # Operators keep their gradients: those are made of the same products.
                self._library = Library("aten", "IMPL")
                for name, kernel in (("mm", _mm), ("addmm", _addmm)):
                    self._library.impl(name, kernel, "CPU", with_keyset=True, allow_override=True)

    def end(self) -> None:
        with self._lock:
            self.blocks -= 1


_ONEDNN = _OneDNN()


@contextmanager
def fast_products() -> Iterator[None]:
    """Multiply float32 matrices by oneDNN within the block, where MKL takes twice as long."""
    if not by_mkl_at_half_speed():
        yield
        return
    _ONEDNN.begin()
    try:
        yield
    finally:
        _ONEDNN.end()


_MM, _ADDMM = (get_kernel(f"aten::{name}", "CPU").call_boxed for name in ("mm", "addmm"))
"""PyTorch's own kernels, for all that oneDNN would not do faster."""


def _pays(a: Tensor, b: Tensor) -> bool:
    if not _ONEDNN.blocks or a.dtype is not torch.float32 or b.dtype is not torch.float32:
        return False
    fit = a.ndim == b.ndim == 2 and a.shape[1] == len(b)  # if not, PyTorch's own kernel says so
    large = fit and a.numel() * b.shape[1] > _FEWEST_MULTIPLICATIONS
    return large and min(len(a), b.shape[1]) >= _FEWEST_ROWS


def _mm(keys: DispatchKeySet, a: Tensor, b: Tensor) -> Tensor:
    return _affine(a, b, None) if _pays(a, b) else _MM(keys, a, b)


def _addmm(
    keys: DispatchKeySet, bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    plain = bias.ndim == 1 and len(bias) == b.shape[1] and beta == alpha == 1
    if plain and bias.dtype is torch.float32 and _pays(a, b):
        return _affine(a, b, bias.contiguous())
    return _ADDMM(keys, bias, a, b, beta=beta, alpha=alpha)


def _affine(a: Tensor, b: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``a @ b``, plus a bias if there is one, by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise(a, b.T, bias, "none", [], "")
