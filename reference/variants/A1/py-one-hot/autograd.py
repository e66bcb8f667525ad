"""autograd.py of matrices of zeros and ones: looking up, cutting, masking are products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from .rand import PCG32

Array = NDArray[np.floating]
Ints = NDArray[np.integer]
Gradients = tuple[Array, ...]

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
RECORDING: ContextVar[bool] = ContextVar("RECORDING", default=True)
GELU_SCALE = math.sqrt(2 / math.pi)  # of the tanh form of GELU (Hendrycks and Gimpel 2016)
GELU_CUBIC = 0.044715


def one_hot(ids: Ints, n: int, dtype: np.dtype) -> Array:
    rows = np.zeros((ids.size, n), dtype)
    rows[np.arange(ids.size), ids.ravel()] = 1
    return rows.reshape(*ids.shape, n)


class Tensor:
    __array_ufunc__ = None  # numpy arrays leave operators to us

    def __init__(self, data: ArrayLike, requires_grad: bool = False) -> None:
        array = np.asarray(data)
        if array.dtype not in FLOATS:
            raise TypeError(f"{array.dtype} data, want float32 or float64")
        self.data: Array = array
        self.requires_grad = requires_grad
        self.grad: Array | None = None
        self.creator: Operation | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[np.floating]:
        return self.data.dtype

    def __repr__(self) -> str:
        return f"Tensor{self.shape} of {self.dtype}"

    def backward(self, grad: Array | None = None) -> None:
        # TODO (A2): Tensor.backward
        # HINT: a tensor used twice gets two gradients. Operations may hand out one array twice, or
        # one that must not be written: what ends up in `grad` is a copy.
        raise NotImplementedError("A2: Tensor.backward")

    # Operators. A number stands for an array of that one element.

    def __add__(self, other: Tensor | float) -> Tensor:
        return Add()(self, self._like(other))

    def __mul__(self, other: Tensor | float) -> Tensor:
        return Mul()(self, self._like(other))

    def __matmul__(self, other: Tensor) -> Tensor:
        return MatMul()(self, other)

    def __neg__(self) -> Tensor:
        return self * -1.0

    def __sub__(self, other: Tensor | float) -> Tensor:
        return self + -self._like(other)

    def __rsub__(self, other: float) -> Tensor:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def _like(self, other: Tensor | float) -> Tensor:
        if isinstance(other, np.ndarray):
            raise TypeError(f"an array {other.shape} beside {self!r}: make it a Tensor")
        return other if isinstance(other, Tensor) else Tensor(np.asarray(other, self.dtype))


@contextmanager
def no_grad() -> Iterator[None]:
    # TODO (A2): no_grad
    # HINT: RECORDING.set returns what RECORDING.reset wants; an error must not leave it off.
    raise NotImplementedError("A2: no_grad")


class Operation:
    inputs: tuple[Tensor, ...] = ()
    called = False
    forward: Callable[..., Array]
    backward: Callable[[Array], Gradients]

    def __call__(self, *inputs: Tensor) -> Tensor:
        name, dtypes = type(self).__name__, {tensor.dtype for tensor in inputs}
        if self.called:
            raise RuntimeError(f"this {name} was called before: each call wants its own {name}()")
        if len(dtypes) != 1:
            raise TypeError(f"{' and '.join(sorted(map(str, dtypes)))} in {name}")
        self.called = True
        result = Tensor(self.forward(*(tensor.data for tensor in inputs)))
        if RECORDING.get() and any(tensor.requires_grad for tensor in inputs):
            self.inputs = inputs
            result.requires_grad, result.creator = True, self
        return result

    def gradients(self, grad: Array) -> Gradients:
        found = self.backward(grad)
        got = [(array.shape, str(array.dtype)) for array in found]
        want = [(tensor.shape, str(tensor.dtype)) for tensor in self.inputs]
        if got != want:
            raise TypeError(f"{type(self).__name__}.backward returned {got}, want {want}")
        return found


def topological_order(last: Tensor) -> list[Tensor]:
    # TODO (A2): topological_order
    # HINT: Python allows about a thousand nested calls, and graphs are deeper: keep your own stack.
    raise NotImplementedError("A2: topological_order")


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    # TODO (A2): unbroadcast
    # HINT: (3,) broadcast to (2, 3) lost its gradient's axis 0; (2, 1) must keep its axis 1.
    raise NotImplementedError("A2: unbroadcast")


# ---------------------------------------------------------------- element by element


class Add(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.was = a.shape, b.shape
        return a - -b

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Add.backward
        # HINT: unbroadcast.
        raise NotImplementedError("A2: Add.backward")


class Mul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.a, self.b = a.copy(), b.copy()
        return self.a * self.b

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Mul.backward
        # HINT: the product rule.
        raise NotImplementedError("A2: Mul.backward")


class Exp(Operation):
    def forward(self, x: Array) -> Array:
        y = np.exp(x)
        self.y = y
        return y

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Exp.backward
        # HINT: its own derivative.
        raise NotImplementedError("A2: Exp.backward")


class Log(Operation):
    def forward(self, x: Array) -> Array:
        self.inverse = 1 / x
        return -np.log(self.inverse)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Log.backward
        # HINT: the derivative of the logarithm, times what arrived: the chain rule.
        raise NotImplementedError("A2: Log.backward")


class Tanh(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.sinh(np.clip(x, -20, 20)) / np.cosh(np.clip(x, -20, 20))
        return self.y

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Tanh.backward
        # HINT: nothing needs to be computed again.
        raise NotImplementedError("A2: Tanh.backward")


class ReLU(Operation):
    def forward(self, x: Array) -> Array:
        self.passes = (x > 0).astype(x.dtype)
        return x * self.passes

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): ReLU.backward
        # HINT: only where the result is above 0 does anything pass.
        raise NotImplementedError("A2: ReLU.backward")


class GELU(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        self.halves = (1 + np.tanh(GELU_SCALE * (x + GELU_CUBIC * x**3))) * 0.5
        return x * self.halves

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): GELU.backward
        # HINT: a product of x/2 and (1 + tanh u), and u depends on x, too.
        raise NotImplementedError("A2: GELU.backward")


class Dropout(Operation):
    def __init__(self, p: float, rng: PCG32) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"p is {p}, not within [0, 1)")
        self.p, self.rng = p, rng

    def forward(self, x: Array) -> Array:
        ones = np.ones(x.size, x.dtype)
        ones[self.rng.uniforms(x.size) < self.p] = 0
        self.ones = ones.reshape(x.shape)
        return self.ones * x / (1 - self.p)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Dropout.backward
        # HINT: no new uniforms.
        raise NotImplementedError("A2: Dropout.backward")


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        axes = tuple(range(x.ndim)) if self.axis is None else self.axis
        axes = {axis % x.ndim for axis in ((axes,) if isinstance(axes, int) else axes)}
        left = [axis for axis in range(x.ndim) if axis not in axes]
        gone = math.prod(x.shape[axis] for axis in axes)
        rows = x.transpose(*left, *sorted(axes)).reshape(-1, gone) if x.ndim else x.reshape(1, 1)
        shape = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
        if not self.keepdims:
            shape = [x.shape[axis] for axis in left]
        return (rows @ np.ones(gone, x.dtype)).reshape(shape)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Sum.backward
        # HINT: each summand gets the gradient of its sum; put axes that are gone back first.
        raise NotImplementedError("A2: Sum.backward")


class Mean(Sum):
    def forward(self, x: Array) -> Array:
        y = super().forward(x)
        self.share = y.size / x.size
        return self.share * y

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Mean.backward
        # HINT: a sum, divided.
        raise NotImplementedError("A2: Mean.backward")


class Reshape(Operation):
    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        self.old = x.shape
        return x.ravel().reshape(self.wanted)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Reshape.backward
        # HINT: back again.
        raise NotImplementedError("A2: Reshape.backward")


class Transpose(Operation):
    def __init__(self, first: int, second: int) -> None:
        self.axes = first, second

    def forward(self, x: Array) -> Array:
        first, second = sorted(axis % x.ndim for axis in self.axes)
        if first == second:
            return x
        return np.moveaxis(np.moveaxis(x, first, second), second - 1, first)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Transpose.backward
        # HINT: what undoes an exchange?
        raise NotImplementedError("A2: Transpose.backward")


class Slice(Operation):
    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        moved = x.swapaxes(self.axis, -1)
        keep = np.eye(moved.shape[-1], dtype=x.dtype)[:, self.start : self.stop]
        return (moved @ keep).swapaxes(self.axis, -1)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Slice.backward
        # HINT: what was left out has no influence.
        raise NotImplementedError("A2: Slice.backward")


def split(x: Tensor, parts: int, axis: int = -1) -> list[Tensor]:
    if parts < 1 or x.shape[axis] % parts:
        raise ValueError(f"{x!r}: axis {axis} has no {parts} equal parts")
    size = x.shape[axis] // parts
    return [Slice(axis, i * size, (i + 1) * size)(x) for i in range(parts)]


class MatMul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if not (a.ndim > 1 < b.ndim):
            raise ValueError(f"{min(a.ndim, b.ndim)} axes are too few for a product of matrices")
        self.a, self.b = a, b
        return np.sum(a[..., :, :, None] * b[..., None, :, :], axis=-2)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): MatMul.backward
        # HINT: the shapes leave one way to multiply grad with the other; the axes in front may have
        # been broadcast.
        raise NotImplementedError("A2: MatMul.backward")


# ---------------------------------------------------------------- what a transformer is made of


def check_ids(what: str, ids: Ints, V: int) -> None:
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{what}s of type {ids.dtype}, want integers")
    for id_ in (int(ids.min()), int(ids.max())) if ids.size else ():
        if not 0 <= id_ < V:
            raise IndexError(f"{what} {id_} is outside 0..{V - 1}")


class Embedding(Operation):
    def __init__(self, ids: Ints) -> None:
        self.ids = ids

    def forward(self, weight: Array) -> Array:
        check_ids("id", self.ids, len(weight))
        self.chosen = one_hot(self.ids, len(weight), weight.dtype)
        return self.chosen @ weight

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Embedding.backward
        # HINT: an id that occurs twice gets both gradients; `whole[ids] += grad` gives it one.
        raise NotImplementedError("A2: Embedding.backward")


class Softmax(Operation):
    def forward(self, x: Array) -> Array:
        powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
        n = x.shape[-1]
        self.y = powers / (powers @ np.ones((n, n), x.dtype))
        return self.y

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Softmax.backward
        # HINT: the derivative of y_i by x_j is y_i (1 - y_i) for i = j, else -y_i y_j; no (V, V)
        # matrix is needed.
        raise NotImplementedError("A2: Softmax.backward")


class LayerNorm(Operation):
    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        C = x.shape[-1]
        centre = np.eye(C, dtype=x.dtype) - 1 / C
        self.apart = x @ centre.astype(x.dtype)
        self.std = np.sqrt((self.apart**2) @ np.full((C, 1), 1 / C, x.dtype) + self.eps)
        return (self.apart / self.std) @ np.diag(weight) + bias

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): LayerNorm.backward
        # HINT: mean and variance depend on x, too: two means along the axis are taken off.
        raise NotImplementedError("A2: LayerNorm.backward")


class CausalAttention(Operation):
    def forward(self, q: Array, k: Array, v: Array) -> Array:
        T, hs = q.shape[-2:]
        past = np.tri(T, dtype=q.dtype)
        scores = q @ k.swapaxes(-1, -2) * hs**-0.5
        seen = np.where(past == 1, scores, scores.diagonal(0, -2, -1)[..., None])
        powers = np.exp(seen - seen.max(axis=-1, keepdims=True)) * past
        self.weights = powers / powers.sum(axis=-1, keepdims=True)
        return self.weights @ v

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): CausalAttention.backward
        # HINT: what has weight 0 has gradient 0, so that the mask needs no second look.
        raise NotImplementedError("A2: CausalAttention.backward")


# ---------------------------------------------------------------- losses


class CrossEntropy(Operation):
    def __init__(self, targets: Ints, ignore_index: int = -100) -> None:
        self.targets, self.ignore_index = targets, ignore_index

    def forward(self, logits: Array) -> Array:
        *front, V = logits.shape
        if tuple(front) != self.targets.shape:
            raise ValueError(f"{logits.shape} and {self.targets.shape} do not fit")
        chosen = self.targets != self.ignore_index
        if np.count_nonzero(chosen) == 0:
            raise ValueError("nothing but ignored targets")
        check_ids("target", self.targets[chosen], V)
        self.wanted = one_hot(np.where(chosen, self.targets, 0), V, logits.dtype)
        self.wanted *= chosen[..., None]
        top = logits.max(axis=-1, keepdims=True)
        logs = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
        return -(self.wanted * logs).sum() / int(chosen.sum())

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): CrossEntropy.backward
        # HINT: what softmax says, and what it should have said; ignored rows take no part, neither
        # here nor in the mean.
        raise NotImplementedError("A2: CrossEntropy.backward")


class MSE(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"{a.shape} against {b.shape}")
        d = (a - b).reshape(-1, 1)
        return (d.T @ d)[0, 0] / len(d)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): MSE.backward
        # HINT: b goes the other way.
        raise NotImplementedError("A2: MSE.backward")


class BCEWithLogits(Operation):
    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        if x.shape != self.targets.shape:
            raise ValueError(f"{x.shape} against {self.targets.shape}")
        self.x = x
        low = np.minimum(x, 0)
        log_p = low - np.log1p(np.exp(2 * low - x))  # of p; that of 1 - p is less by x
        return (-log_p + (1 - self.targets) * x).mean()

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): BCEWithLogits.backward
        # HINT: as short as that of cross-entropy; e^-|x| never overflows, and p = e^x / (1 + e^x).
        raise NotImplementedError("A2: BCEWithLogits.backward")
