"""Where the work is done, and in which numbers."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from pipeline_lib.compute.forks import cores
from pipeline_lib.settings.strict import Precision

if torch.get_num_threads() > cores():
    # PyTorch counts a machine's cores; in a container that gets a share of them (docker --cpus)
    # more threads than that wait for each other.
    torch.set_num_threads(cores())

SMALL = 2**16
"""Numbers in the result of an operation below which cores lose more by waiting than they gain."""

TYPES = {"bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


def weight_type(precision: Precision) -> torch.dtype:
    """Return the type of a model's weights, which ``bf16`` leaves in single precision."""
    return TYPES["f64" if precision == "f64" else "f32"]


def best_device(precision: Precision = "f32") -> torch.device:
    """Return the first CUDA device; the CPU where there is none, and for the reference ``f64``.

    From then on float32 is float32: by default cuDNN rounds its factors to 10 bits (TF32).
    """
    torch.backends.cudnn.allow_tf32 = False
    if precision == "f64" or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda")


def precision_on(asked: Precision, device: torch.device) -> Precision:
    """Return the precision that is computed in: ``f32`` for ``bf16`` where that is emulated.

    Without instructions for it a product in bfloat16 takes 8 to 100 times as long as in float32.
    """
    return "f32" if asked == "bf16" and not multiplies_bf16(device) else asked


def multiplies_bf16(device: torch.device) -> bool:
    """Return whether a device has instructions that multiply bfloat16 (and may use them)."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    native = any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16"))
    # What ONEDNN_MAX_CPU_ISA or ATEN_CPU_CAPABILITY withholds counts as absent.
    withheld = torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2")
    return native and not withheld and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def cpu_kernels() -> list[str]:
    """Return what decides which kernels a CPU computes with, and so the last bits of float32."""
    known = torch.cpu.get_capabilities()
    instructions = sorted(name for name, there in known.items() if there is True)
    # By the caches' sizes products are cut into blocks.
    sizes = [
        f"{name} {known.get(name)}" for name in ("cpu_name", "l1d_cache_size", "l2_cache_size")
    ]
    allowed = torch.backends.cpu.get_cpu_capability(), os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    return [*allowed, *sizes, *instructions]


def summing_type(kind: torch.dtype) -> torch.dtype:
    """Return the type that states and sums have where products are of type ``kind``."""
    return torch.promote_types(kind, torch.float32)


def cores_for(numbers: int) -> AbstractContextManager[None]:
    """Compute on one core within the block if operations are small, else on as many as before.

    Args:
        numbers: In the result of a typical operation.
    """
    return one_core_each() if numbers < SMALL else nullcontext()


@contextmanager
def one_core_each() -> Iterator[None]:
    """Compute each operation on one core within the block, also in threads that begin in it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
