"""What autograd_py.py of A1 must report: each operation as a formula, in float64 or complex128.

The formulas hold for complex numbers, too, as far as an operation's is analytic: their derivatives
then are imaginary parts (a2_autograd_py.py). PyTorch's values of the same samples (torch_golden.py)
are what students' code is held to on the public seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from samples import SAMPLES, Units, samples

from reference.oracle.a0 import Case, Values

ORIGIN = "formulas in float64, numpy"
Array = np.ndarray


def gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def above_0(x: Array) -> Array:
    return np.where(x.real > 0, x, 0)


def dropout(x: Array, p: float, rng: Units) -> Array:
    return np.where(rng.numbers.reshape(x.shape) < p, 0, x / (1 - p))


def total(x: Array, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims))


def mean(x: Array, *options: object) -> Array:
    return total(x, *options) / total(np.ones(x.shape), *options)


def sliced(x: Array, axis: int, start: int, stop: int) -> Array:
    return x.take(range(start, stop), axis)


def normed(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> Array:
    centred = x - mean(x, -1, True)
    return centred / np.sqrt(mean(centred**2, -1, True) + eps) * weight + bias


def log_shares(x: Array) -> Array:
    """Logarithms of the softmax."""
    shifted = x - x.real.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def attention(q: Array, k: Array, v: Array) -> Array:
    T, hs = q.shape[-2:]
    scores = np.einsum("...ti,...si->...ts", q, k) / math.sqrt(hs)
    rows = [np.exp(log_shares(scores[..., t, : t + 1])) for t in range(T)]
    return np.stack([np.einsum("...s,...si->...i", r, v[..., : r.shape[-1], :]) for r in rows], -2)


def cross_entropy(logits: Array, targets: Array, ignore_index: int = -100) -> Array:
    logs = log_shares(logits)
    losses = [-logs[at][y] for at, y in np.ndenumerate(targets) if y != ignore_index]
    return sum(losses) / len(losses)


def bce(x: Array, targets: Array) -> Array:
    """-log p = log(1 + e^-x), and -log(1 - p) = x - log p."""
    turned = np.where(x.real < 0, x, -x)
    minus_log_p = np.log1p(np.exp(turned)) + np.where(x.real < 0, -x, 0)
    return np.mean(minus_log_p + (1 - targets) * x)


FORMULAS: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "relu": above_0,
    "gelu": gelu,
    "dropout": dropout,
    "sum": total,
    "mean": mean,
    "reshape": lambda x, *shape: x.reshape(shape),
    "transpose": np.swapaxes,
    "slice": sliced,
    "matmul": lambda a, b: np.einsum("...nk,...km->...nm", a, b),
    "embedding": lambda weight, ids: weight[ids],
    "softmax": lambda x: np.exp(log_shares(x)),
    "layernorm": normed,
    "attention": attention,
    "cross_entropy": cross_entropy,
    "mse": lambda a, b: np.mean((a - b) ** 2),
    "bce_with_logits": bce,
}


def tensor(name: str, value: Array) -> Values:
    """As observe.py's `tensor` reports it."""
    value = np.asarray(value, np.float64)
    return {name: value.ravel(), f"{name}_shape": np.array(value.shape, np.int64)}


def said(text: str) -> Array:
    return np.frombuffer(text.encode(), np.uint8)


def forward(operation: str, seed: int) -> Values:
    """Values of all samples."""
    values: Values = {}
    for sample in samples(operation, seed):
        options = sample.options("float64")
        value = FORMULAS[operation](*sample.arrays, *options)
        values[f"{sample.name}_text"] = said(sample.text)
        values |= tensor(f"{sample.name}_f64", value)
        for units in options:
            if isinstance(units, Units):
                values[f"{sample.name}_f64_used"] = np.array([units.numbers.size])
    return values


def case(operation: str) -> Case:
    return lambda seed: forward(operation, seed)


CASES = {"autograd_py": {name: (ORIGIN, case(name)) for name in SAMPLES}}
