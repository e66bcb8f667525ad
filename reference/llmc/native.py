"""native.py: a C function of llmc/ for Python to call, from a shared library. Given.

    make native                 builds build/libllmc.so of your layers.h

The environment's LLMC_NATIVE names another library. Without one, numpy stands in.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LIBRARY = Path(__file__).resolve().parent.parent / "build" / "libllmc.so"
FLOATS = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, or None where there is none. Raises OSError for a file that is no library."""
    path = os.environ.get("LLMC_NATIVE") or (str(LIBRARY) if LIBRARY.exists() else "")
    if not path:
        return None
    found = ctypes.CDLL(path)
    sizes = [ctypes.c_int] * 4
    found.llmc_matmul_forward.argtypes = [FLOATS, FLOATS, FLOATS, ctypes.c_void_p, *sizes]
    found.llmc_matmul_forward.restype = None
    return found


def matmul_forward(x: Floats, weight: Floats) -> Floats:
    """x weightᵀ (N, OC) for x (N, C) and weight (OC, C), all float32: layers.h's function of that
    name, without a bias. Raises ValueError for other shapes, TypeError for other types."""
    if x.ndim != 2 or weight.ndim != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"x {x.shape} and weight {weight.shape}, want (N, C) and (OC, C)")
    if x.dtype != np.float32 or weight.dtype != np.float32:
        raise TypeError(f"x of {x.dtype} and weight of {weight.dtype}, want float32")
    found = library()
    if found is None:
        return x @ weight.T
    (N, C), OC = x.shape, len(weight)
    out = np.empty((N, OC), np.float32)
    x, weight = np.ascontiguousarray(x), np.ascontiguousarray(weight)
    found.llmc_matmul_forward(out, x, weight, None, 1, N, C, OC)
    return out
