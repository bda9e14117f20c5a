"""Libraries that multiply by SciPy's OpenBLAS, loaded so that every x86-64 CPU computes alike.

OpenBLAS has kernels that differ in the order of their sums, and chooses one when it is first
loaded: here the one that all CPUs have.
"""

import importlib
import os
from types import ModuleType

_VARIABLE, _COMMON_KERNEL = "OPENBLAS_CORETYPE", "Prescott"


def import_on_common_kernel(module: str) -> ModuleType:
    """Import a module that loads SciPy's OpenBLAS, which keeps the common kernel from then on."""
    chosen = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = _COMMON_KERNEL
    try:
        return importlib.import_module(module)
    finally:
        os.environ.pop(_VARIABLE)
        if chosen is not None:
            os.environ[_VARIABLE] = chosen
