"""autograd.py whose engine counts uses (Kahn 1962) and adds into arrays of its own; lists for tuples."""

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


def used_by(last: Tensor) -> dict[int, int]:
    counts, waiting = {id(last): 0}, [last]
    while waiting:
        tensor = waiting.pop()
        for source in sources(tensor):
            if id(source) not in counts:
                counts[id(source)] = 0
                waiting.append(source)
            counts[id(source)] += 1
    return counts


def sources(tensor: Tensor) -> list[Tensor]:
    if tensor.creator is None:
        return []
    return [source for source in tensor.creator.inputs if source.requires_grad]


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
        if not self.requires_grad:
            raise ValueError("nothing here requires a gradient")
        if grad is None:
            if self.data.size > 1 or self.data.size == 0:
                raise ValueError(f"backward() of {self.data.size} elements wants their gradient")
            grad = np.ones(self.shape, self.dtype)
        elif grad.shape != self.shape:
            raise ValueError(f"grad {grad.shape}, data {self.shape}")
        elif grad.dtype != self.dtype:
            raise TypeError(f"grad {grad.dtype}, data {self.dtype}")
        missing, sums, ready = used_by(self), {id(self): grad.copy()}, [self]
        while ready:
            tensor = ready.pop()
            total = sums.pop(id(tensor))
            if tensor.creator is None:
                if tensor.grad is None:
                    tensor.grad = np.zeros_like(tensor.data)
                tensor.grad = tensor.grad + total
                if not isinstance(tensor.grad, np.ndarray):  # of an array without axes numpy makes a number
                    tensor.grad = np.array(tensor.grad)
                continue
            for source, part in zip(tensor.creator.inputs, tensor.creator.gradients(total)):
                if not source.requires_grad:
                    continue
                if id(source) in sums:
                    sums[id(source)] += part
                else:
                    sums[id(source)] = np.array(part)
                missing[id(source)] -= 1
                if missing[id(source)] == 0:
                    ready.append(source)

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
    before = RECORDING.get()
    RECORDING.set(False)
    try:
        yield
    finally:
        RECORDING.set(before)


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
    missing, order, ready = used_by(last), [], [last]
    while ready:
        order.append(ready.pop(0))
        for source in sources(order[-1]):
            missing[id(source)] -= 1
            if not missing[id(source)]:
                ready.append(source)
    return list(reversed(order))


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    while grad.ndim > len(shape):
        grad = np.add.reduce(grad, axis=0)
    for axis in range(len(shape)):
        if shape[axis] < grad.shape[axis]:
            grad = np.add.reduce(grad, axis=axis, keepdims=True)
    return grad


# ---------------------------------------------------------------- element by element


class Add(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.shapes = a.shape, b.shape
        return a + b

    def backward(self, grad: Array) -> Gradients:
        return [unbroadcast(grad, shape) for shape in self.shapes]


class Mul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.a, self.b = a, b
        return a * b

    def backward(self, grad: Array) -> Gradients:
        return [unbroadcast(self.b * grad, self.a.shape), unbroadcast(self.a * grad, self.b.shape)]


class Exp(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.exp(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        return [self.y * grad]


class Log(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.log(x)

    def backward(self, grad: Array) -> Gradients:
        return [1 / self.x * grad]


class Tanh(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        return [(1 - self.y**2) * grad]


class ReLU(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.maximum(x, 0)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        result = grad.copy()
        result[self.y <= 0] = 0
        return [result]


class GELU(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        self.t: Array = np.tanh(GELU_SCALE * (x + GELU_CUBIC * (x * x * x)))
        return 0.5 * x * (1 + self.t)

    def backward(self, grad: Array) -> Gradients:
        x, t = self.x, self.t
        du = GELU_SCALE + 3 * GELU_SCALE * GELU_CUBIC * x**2
        return [grad * (1 + t + x * (1 - t**2) * du) / 2]


class Dropout(Operation):
    def __init__(self, p: float, rng: PCG32) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"p is {p}, not within [0, 1)")
        self.p, self.rng = p, rng

    def forward(self, x: Array) -> Array:
        kept = self.rng.uniforms(x.size).reshape(x.shape) >= self.p
        self.factor = kept.astype(x.dtype) / (1 - self.p)
        return x * self.factor

    def backward(self, grad: Array) -> Gradients:
        return [self.factor * grad]


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return np.asarray(x.sum(axis=self.axis, keepdims=self.keepdims))

    def backward(self, grad: Array) -> Gradients:
        if self.axis is not None and not self.keepdims:
            axes = self.axis if isinstance(self.axis, tuple) else (self.axis,)
            gone = [axis % len(self.shape) for axis in axes]
            grad = grad.reshape([1 if i in gone else n for i, n in enumerate(self.shape)])
        return [np.ones(self.shape, grad.dtype) * grad]


class Mean(Sum):
    def forward(self, x: Array) -> Array:
        total = super().forward(x)
        self.count = x.size // total.size
        return total / self.count

    def backward(self, grad: Array) -> Gradients:
        (each,) = Sum.backward(self, grad)
        return [each / self.count]


class Reshape(Operation):
    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return x.reshape(self.wanted)

    def backward(self, grad: Array) -> Gradients:
        return [np.reshape(grad, self.shape)]


class Transpose(Operation):
    def __init__(self, first: int, second: int) -> None:
        self.axes = first, second

    def forward(self, x: Array) -> Array:
        return x.swapaxes(*self.axes)

    def backward(self, grad: Array) -> Gradients:
        return [np.swapaxes(grad, *reversed(self.axes))]


class Slice(Operation):
    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        self.index = [slice(None)] * x.ndim
        self.index[self.axis] = slice(self.start, self.stop)
        return x[tuple(self.index)]

    def backward(self, grad: Array) -> Gradients:
        axis = self.axis % grad.ndim
        edges = [(0, 0)] * grad.ndim
        edges[axis] = self.start, self.shape[axis] - self.stop
        return [np.pad(grad, edges)]


def split(x: Tensor, parts: int, axis: int = -1) -> list[Tensor]:
    if parts < 1 or x.shape[axis] % parts:
        raise ValueError(f"{x!r}: axis {axis} has no {parts} equal parts")
    size = x.shape[axis] // parts
    return [Slice(axis, i * size, (i + 1) * size)(x) for i in range(parts)]


class MatMul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.ndim < 2 or b.ndim < 2:
            raise ValueError(f"matrices of shape {a.shape} and {b.shape}, want two axes or more")
        self.a, self.b = a, b
        if b.ndim == 2:
            return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
        return a @ b

    def backward(self, grad: Array) -> Gradients:
        by_a = np.matmul(grad, np.swapaxes(self.b, -1, -2))
        by_b = np.matmul(np.swapaxes(self.a, -1, -2), grad)
        return [unbroadcast(by_a, self.a.shape), unbroadcast(by_b, self.b.shape)]


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
        self.shape = weight.shape
        return weight[self.ids]

    def backward(self, grad: Array) -> Gradients:
        V, C = self.shape
        columns = grad.reshape(-1, C)
        by_weight = np.empty(self.shape, grad.dtype)
        for c in range(C):
            by_weight[:, c] = np.bincount(self.ids.ravel(), columns[:, c], V)
        return [by_weight]


class Softmax(Operation):
    def forward(self, x: Array) -> Array:
        y: Array = np.exp(x - x.max(axis=-1, keepdims=True))
        y /= y.sum(axis=-1, keepdims=True)
        self.y = y
        return y

    def backward(self, grad: Array) -> Gradients:
        passed = grad * self.y
        return [passed - self.y * passed.sum(-1, keepdims=True)]


class LayerNorm(Operation):
    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        self.rstd = 1 / np.sqrt(variance + self.eps)
        self.normed: Array = centred * self.rstd
        self.weight = weight
        result: Array = self.normed * weight + bias
        return result

    def backward(self, grad: Array) -> Gradients:
        C = grad.shape[-1]
        rows, normed = grad.reshape(-1, C), self.normed.reshape(-1, C)
        g = grad * self.weight
        total, along = g.sum(-1, keepdims=True), (g * self.normed).sum(-1, keepdims=True)
        return [(C * g - total - along * self.normed) * self.rstd / C, (rows * normed).sum(0), rows.sum(0)]


class CausalAttention(Operation):
    def forward(self, q: Array, k: Array, v: Array) -> Array:
        T, hs = q.shape[-2:]
        self.scale = 1 / math.sqrt(hs)
        scores = q @ k.swapaxes(-1, -2)
        scores *= self.scale
        np.copyto(scores, -np.inf, where=np.triu(np.ones((T, T), bool), 1))
        self.q, self.k, self.v = q, k, v
        self.softmax = Softmax()
        return self.softmax.forward(scores) @ v

    def backward(self, grad: Array) -> Gradients:
        y = self.softmax.y
        by_y = grad @ np.swapaxes(self.v, -2, -1)
        by_scores = y * (by_y - np.sum(by_y * y, -1)[..., None]) * self.scale
        return [
            by_scores @ self.k,
            np.swapaxes(by_scores, -2, -1) @ self.q,
            np.swapaxes(y, -2, -1) @ grad,
        ]


# ---------------------------------------------------------------- losses


class CrossEntropy(Operation):
    def __init__(self, targets: Ints, ignore_index: int = -100) -> None:
        self.targets, self.ignore_index = targets, ignore_index

    def forward(self, logits: Array) -> Array:
        V = logits.shape[-1]
        if logits.shape[:-1] != self.targets.shape:
            raise ValueError(f"targets of shape {self.targets.shape} for logits {logits.shape}")
        self.shape, self.rows = logits.shape, self.targets != self.ignore_index
        learnt = self.targets[self.rows]
        if not learnt.size:
            raise ValueError(f"none of {self.targets.size} targets is to be learnt from")
        check_ids("target", learnt, V)
        self.at = np.arange(learnt.size), learnt
        self.shifted = logits[self.rows]  # a copy
        self.shifted -= self.shifted.max(axis=-1, keepdims=True)
        self.sums = np.exp(self.shifted).sum(axis=-1, keepdims=True)
        losses = np.log(self.sums[:, 0]) - self.shifted[self.at]
        return np.asarray(losses.mean())

    def backward(self, grad: Array) -> Gradients:
        share = np.exp(self.shifted) / self.sums
        np.subtract.at(share, self.at, 1)
        whole = np.zeros(self.shape, grad.dtype)
        whole[self.rows] = share / len(share) * grad
        return [whole]


class MSE(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape}")
        self.difference = a - b
        return np.asarray(np.mean(self.difference * self.difference))

    def backward(self, grad: Array) -> Gradients:
        by_a = 2 * grad * self.difference / self.difference.size
        return [by_a, np.negative(by_a)]


class BCEWithLogits(Operation):
    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        if x.shape != self.targets.shape:
            raise ValueError(f"targets of shape {self.targets.shape} for logits {x.shape}")
        self.x, self.t = x, self.targets.astype(x.dtype)
        losses = np.maximum(x, 0) - x * self.t + np.log1p(np.exp(-np.abs(x)))
        return np.asarray(losses.mean())

    def backward(self, grad: Array) -> Gradients:
        p = np.exp(-np.logaddexp(0, -self.x))
        return [grad * (p - self.t) / self.x.size]
