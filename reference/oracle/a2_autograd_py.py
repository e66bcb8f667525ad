"""What autograd_py.py of A2 must report: derivatives of A1's formulas, by complex steps.

f(x + ih) = f(x) + ih f'(x) + O(h²): with h = 1e-100 the imaginary part over h is f'(x) to the last
bit or two, for nothing is subtracted (Squire and Trapp 1998). One evaluation for each element.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from samples import SAMPLES, along, inputs, samples

from reference.oracle.a0 import Case, Values
from reference.oracle.a1_autograd_py import FORMULAS, Array, said, tensor

STEP = 1e-100
ORIGIN = "complex steps through formulas in float64, numpy"


def slopes(call: Callable[..., Array], arrays: tuple[Array, ...], grad: Array) -> list[Array]:
    """The derivatives of Σ grad * call(arrays) by each element of each array."""
    found = []
    for which, array in enumerate(arrays):
        by_array = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            moved = np.array(array, np.complex128)
            moved[place] += 1j * STEP
            value = call(*arrays[:which], moved, *arrays[which + 1 :])
            by_array[place] = np.sum(grad * np.imag(value)) / STEP
        found.append(by_array)
    return found


def backward(operation: str, seed: int) -> Values:
    values: Values = {}
    for sample in samples(operation, seed):
        options = sample.options("float64")

        def call(*arrays: Array, options: tuple[object, ...] = options) -> Array:
            return np.asarray(FORMULAS[operation](*arrays, *options))

        grad = along(seed, call(*sample.arrays))
        values[f"{sample.name}_text"] = said(sample.text)
        found = slopes(call, sample.arrays, grad)
        for name, by_input in zip(inputs(operation), found, strict=True):
            values |= tensor(f"{sample.name}_{name}_f64", by_input)
    return values


def case(operation: str) -> Case:
    return lambda seed: backward(operation, seed)


CASES = {"autograd_py": {f"{name}_backward": (ORIGIN, case(name)) for name in SAMPLES}}
