"""What autograd_py.py of A2 must report: derivatives of A1's formulas, by complex steps.

f(x + ih) = f(x) + ih f'(x) + O(h²): with h = 1e-100 the imaginary part over h is f'(x) to the last
bit or two, for nothing is subtracted (Squire and Trapp 1998). One evaluation for each element.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from samples import SAMPLES, SUMMED, Draw, along, inputs, samples
from tiny import TINY, Tiny

from reference.oracle.a0 import Case, Values
from reference.oracle.a1_autograd_py import FORMULAS, Array, cross_entropy, said, tensor
from reference.oracle.a1_model_py import gpt2

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
            values |= tensor(f"{sample.name}_by_{name}_f64", by_input)
    return values


def case(operation: str) -> Case:
    return lambda seed: backward(operation, seed)


def unbroadcast(seed: int) -> Values:
    draw, values = Draw(seed, 0), {}
    for name, shape, wanted in SUMMED:
        grad, found = draw(*shape), np.zeros(wanted)
        for place, number in np.ndenumerate(grad):
            behind = place[len(shape) - len(wanted) :]
            found[tuple(i if n > 1 else 0 for i, n in zip(behind, wanted, strict=True))] += number
        values[f"{name}_text"] = said(f"from {shape} to {wanted}".replace(", ", ","))
        values |= tensor(f"{name}_f64", found)
    return values


def exact(*values: float, shape: tuple[int, ...] | None = None) -> Array:
    return np.array(values, np.float64).reshape(shape or (len(values),))


def engine(seed: int) -> Values:
    """z = 3 (a + 2 b) + 2 c along (1, 10); and 4 x along 1."""
    return {
        **tensor("a_f64", exact(3, 30)),
        **tensor("b_f64", exact(6, 60)),
        "without_f64": np.array([4]),
        **tensor("one_f64", exact(4, shape=(1, 1))),
    }


def twice(seed: int) -> Values:
    """2 a + 2 (2 a); 6 a + 2 (2 a); 2 a + 2 (6 a); 2 b + 2 (3 b), and once more; 3^12 c."""
    return {
        **tensor("used", exact(6)),
        **tensor("long_first", exact(10)),
        **tensor("short_first", exact(14)),
        **tensor("diamond", exact(8)),
        **tensor("again", exact(16)),
        **tensor("paths", exact(3**12)),
        "calls": np.array([12]),
    }


def copies(seed: int) -> Values:
    ends = {**tensor("other", exact(1, 10)), **tensor("start", exact(1, 10))}
    return {**tensor("both", exact(2)), **ends}


def no_grad(seed: int) -> Values:
    flags = {"with": [0, 1], "nested": [0, 0, 1], "decorated": [0, 1, 0], "after_error": [1]}
    return {name: np.array(values) for name, values in flags.items()}


def directional(tiny: Tiny, seed: int) -> Array:
    """(parameters, 2): the derivative of the loss as one parameter moves along a direction."""
    weights, (ids, targets) = tiny.weights(seed), tiny.batch(seed)
    found = []
    for name, both in tiny.directions(seed).items():
        for one in both:
            moved = weights | {name: weights[name] + 1j * STEP * one}
            found.append(np.imag(cross_entropy(gpt2(tiny, moved, ids), targets)) / STEP)
    return np.array(found).reshape(-1, 2)


def gradients(seed: int) -> Values:
    values = {}
    for tiny in TINY:
        values[f"{tiny.name}_text"] = said(tiny.text)
        values |= tensor(f"{tiny.name}_f64", directional(tiny, seed))
    return values


BY_HAND = "by hand"
CASES = {
    "autograd_py": {
        "unbroadcast": ("sums element by element", unbroadcast),
        **{f"{name}_backward": (ORIGIN, case(name)) for name in SAMPLES},
        "backward": (BY_HAND, engine),
        "twice": (BY_HAND, twice),
        "copies": (BY_HAND, copies),
        "deep": (BY_HAND, lambda seed: tensor("grad", exact(1))),
        "no_grad": (BY_HAND, no_grad),
        "gradients": (ORIGIN, gradients),
    }
}
