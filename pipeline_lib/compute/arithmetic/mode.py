"""A block in which PyTorch computes float64 exactly, or refuses to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, wraps

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
)

from pipeline_lib.compute.arithmetic.operations import REPLACED
from pipeline_lib.compute.products import fast_products

F64 = "f64"
"""Name of this arithmetic among the precisions."""

_COPIES = """
_embedding_bag _local_scalar_dense _reshape_alias _to_copy _unsafe_view alias as_strided cat
clone constant_pad_nd copy detach diagonal diagonal_backward diagonal_copy diagonal_scatter
embedding empty empty_like expand eye fill flip full full_like gather index index_copy index_fill
index_select lift lift_fresh masked_fill masked_scatter masked_select new_empty
new_empty_strided new_full new_ones new_tensor new_zeros ones ones_like permute rand repeat roll
scalar_tensor scatter select select_backward select_scatter set slice slice_backward slice_scatter
split split_with_sizes squeeze stack t take transpose tril triu unbind unfold unfold_backward
unsafe_split unsqueeze view where zero zeros zeros_like
"""

_ROUNDED_ONCE = """
_foreach_add _foreach_div _foreach_mul _foreach_sub abs ceil clamp clamp_max clamp_min div floor
fmod hardtanh maximum minimum mul neg reciprocal relu remainder round sgn sign
threshold_backward trunc
"""

_COMPARISONS = """
_unique2 all amax amin any argmax argmin argsort bucketize cummax eq equal ge gt isfinite isinf
isnan kthvalue le logical_not lt max max_pool2d_with_indices min msort ne nonzero searchsorted sort
topk unique_dim
"""

_SUMS_IN_ORDER = """
_embedding_bag_backward _embedding_bag_dense_backward _embedding_bag_forward_only
_index_put_impl cumsum embedding_dense_backward index_put nll_loss_backward scatter_add
"""
"""Added row by row, in the order of the rows, whatever the number of threads."""

_PLAIN = frozenset((_COPIES + _ROUNDED_ONCE + _COMPARISONS + _SUMS_IN_ORDER).split())
"""What is exact as it is, by its name without the underscore of an operation in place."""


@contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """Compute exactly within the block if ``precision`` is ``f64``, else as fast as is known."""
    if precision != F64:
        with fast_products():
            yield
        return
    # Fused attention adds in an order of its own.
    with Exact(), sdpa_kernel(SDPBackend.MATH):
        yield


class Exact(TorchDispatchMode):
    """Within the block PyTorch computes float64 exactly, or raises.

    Raises:
        NotImplementedError: An operation on floating-point numbers is not known to be exact, or on
            numbers of another type than float64.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing here is compiled. Guarding each operation against it would import the compiler,
        # which takes longer than many a stage.
        return False

    def __torch_dispatch__(
        self, op: torch._ops.OpOverload, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        """Replace one operation."""
        kwargs = kwargs or {}
        if _is_plain(op) and kwargs.get("alpha", 1) == 1:  # else the CPU may round once or twice
            return op(*args, **kwargs)
        name = op.overloadpacket.__name__
        function = REPLACED.get(name) or REPLACED.get(name.removesuffix("_"))
        if function and _is_float(args):
            _check_types(op, args)
            found = function(*args, **kwargs)
            return found if name in REPLACED else args[0].copy_(found)
        if op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd):
            with self:  # inference mode hands over operations that are made of others
                # In C++: decompositions in Python import a solver of equations, in each process.
                return op._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        found = op(*args, **kwargs)
        if _is_float(args) or _is_float((found,)):
            raise NotImplementedError(f"f64: {op} is not known to give equal bits on every machine")
        return found


def made_of_kernels(function: Callable) -> Callable:
    """Decorate a function that is exact by itself: :class:`Exact` need not watch its operations.

    That takes 10 microseconds for each of them, as long as the operation itself on a small tensor.
    """

    @wraps(function)
    def unwatched(*args: object, **kwargs: object) -> object:
        watched = isinstance(_get_current_dispatch_mode(), Exact)
        with _disable_current_modes() if watched else nullcontext():
            return function(*args, **kwargs)

    return unwatched


@cache
def _is_plain(op: torch._ops.OpOverload) -> bool:
    return op.overloadpacket.__name__.removesuffix("_") in _PLAIN or op.is_view


def _floats(values: tuple) -> Iterator[Tensor]:
    for value in values:
        for each in value if isinstance(value, tuple | list) else (value,):
            if isinstance(each, Tensor) and each.is_floating_point():
                yield each


def _is_float(values: tuple) -> bool:
    return any(True for _ in _floats(values))


def _check_types(op: torch._ops.OpOverload, args: tuple) -> None:
    # Draws are exact in any type, and Adam counts its steps in float32.
    other = {x.dtype for x in _floats(args)} - {torch.float64}
    if other and op.overloadpacket.__name__ not in ("uniform_", "normal_", "_fused_adam_"):
        raise NotImplementedError(f"f64: expected float64 in {op}, found {other}")
