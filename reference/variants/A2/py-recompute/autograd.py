"""autograd.py whose operations keep their inputs only, and compute the rest once more on the way back."""

from __future__ import annotations

import sys
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
            raise ValueError(f"backward: requires_grad is {self.requires_grad}")
        if grad is None and self.data.size != 1:
            raise ValueError(f"backward: grad is {grad}, and there are {self.data.size} elements")
        g = np.asarray(1 if grad is None else grad, self.dtype if grad is None else None)
        if grad is None:
            g = g.reshape(self.shape)
        if g.shape != self.shape:
            raise ValueError(f"backward: shape {g.shape} is not {self.shape}")
        if g.dtype != self.dtype:
            raise TypeError(f"backward: dtype {g.dtype} is not {self.dtype}")
        todo = topological_order(self)
        sums = dict.fromkeys(map(id, todo))
        sums[id(self)] = np.array(g)
        while todo:
            t = todo.pop()
            g = sums[id(t)]
            if t.creator is None:
                t.grad = g if t.grad is None else t.grad + g
                if np.isscalar(t.grad):
                    t.grad = np.asarray(t.grad)
                continue
            del sums[id(t)]
            for x, gx in zip(t.creator.inputs, t.creator.gradients(g)):
                if x.requires_grad:
                    if sums[id(x)] is None:
                        sums[id(x)] = np.zeros(x.shape, x.dtype)
                    sums[id(x)] += gx

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
    was_recording = RECORDING.get()
    try:
        RECORDING.set(False)
        yield None
    finally:
        RECORDING.set(was_recording)


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
    order: list[Tensor] = []
    seen: set[int] = set()

    def visit(tensor: Tensor) -> None:
        if tensor.requires_grad and id(tensor) not in seen:
            seen.add(id(tensor))
            for source in tensor.creator.inputs if tensor.creator else ():
                visit(source)
            order.append(tensor)

    limit = sys.getrecursionlimit()  # Python's own frames need none of C's stack
    sys.setrecursionlimit(1_000_000)
    try:
        visit(last)
    finally:
        sys.setrecursionlimit(limit)
    return order


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    if grad.shape == shape:
        return grad
    if grad.ndim > len(shape):
        return unbroadcast(grad.sum(0), shape)
    axis = next(i for i in range(grad.ndim) if grad.shape[i] != shape[i])
    return unbroadcast(grad.sum(axis, keepdims=True), shape)


# ---------------------------------------------------------------- element by element


class Add(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.a, self.b = a, b
        return a + b

    def backward(self, grad: Array) -> Gradients:
        return unbroadcast(grad, self.a.shape), unbroadcast(grad, self.b.shape)


class Mul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.a, self.b = a, b
        return a * b

    def backward(self, grad: Array) -> Gradients:
        return tuple(
            unbroadcast(grad * other, one.shape) for one, other in ((self.a, self.b), (self.b, self.a))
        )


class Exp(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.exp(x)

    def backward(self, grad: Array) -> Gradients:
        return (grad * np.exp(self.x),)


class Log(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.log(x)

    def backward(self, grad: Array) -> Gradients:
        return (grad * self.x**-1,)


class Tanh(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.tanh(x)

    def backward(self, grad: Array) -> Gradients:
        return (grad / np.cosh(np.clip(self.x, -40, 40)) ** 2,)


class ReLU(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.maximum(0, x)

    def backward(self, grad: Array) -> Gradients:
        return (np.sign(np.maximum(self.x, 0)) * grad,)


class GELU(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return x / 2 * (1 + np.tanh(GELU_SCALE * (x + GELU_CUBIC * x**3)))

    def backward(self, grad: Array) -> Gradients:
        x = self.x
        p = 1 / (1 + np.exp(np.clip(-2 * GELU_SCALE * (x + GELU_CUBIC * x**3), None, 80)))
        return (grad * (p + x * p * (1 - p) * 2 * GELU_SCALE * (1 + 3 * GELU_CUBIC * x**2)),)


class Dropout(Operation):
    def __init__(self, p: float, rng: PCG32) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"p is {p}, not within [0, 1)")
        self.p, self.rng = p, rng

    def forward(self, x: Array) -> Array:
        self.u = self.rng.uniforms(x.size).reshape(x.shape)
        return np.where(self.u < self.p, 0, x) / (1 - self.p)

    def backward(self, grad: Array) -> Gradients:
        g = np.array(grad)
        g /= 1 - self.p
        np.putmask(g, self.u < self.p, 0)
        return (g,)


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        self.x = x
        return x.sum(self.axis, keepdims=self.keepdims)

    def backward(self, grad: Array) -> Gradients:
        kept = np.sum(self.x, self.axis, keepdims=True).shape
        return (np.tile(grad.reshape(kept), [n // m for n, m in zip(self.x.shape, kept)]),)


class Mean(Sum):
    def forward(self, x: Array) -> Array:
        self.x = x
        return x.mean(self.axis, keepdims=self.keepdims)

    def backward(self, grad: Array) -> Gradients:
        (g,) = super().backward(grad)
        return (g * (grad.size / self.x.size),)


class Reshape(Operation):
    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        self.x = x
        return x.reshape(self.wanted)

    def backward(self, grad: Array) -> Gradients:
        return (grad.reshape(self.x.shape),)


class Transpose(Operation):
    def __init__(self, first: int, second: int) -> None:
        self.axes = first, second

    def forward(self, x: Array) -> Array:
        return x.swapaxes(*self.axes)

    def backward(self, grad: Array) -> Gradients:
        return (grad.swapaxes(*self.axes),)


class Slice(Operation):
    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        self.x = x
        return x.swapaxes(0, self.axis)[self.start : self.stop].swapaxes(0, self.axis)

    def backward(self, grad: Array) -> Gradients:
        g = np.zeros_like(self.x)
        g.swapaxes(0, self.axis)[self.start : self.stop] = grad.swapaxes(0, self.axis)
        return (g,)


def split(x: Tensor, parts: int, axis: int = -1) -> list[Tensor]:
    if parts < 1 or x.shape[axis] % parts:
        raise ValueError(f"{x!r}: axis {axis} has no {parts} equal parts")
    size = x.shape[axis] // parts
    return [Slice(axis, i * size, (i + 1) * size)(x) for i in range(parts)]


class MatMul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.ndim < 2 or b.ndim < 2:
            raise ValueError(f"MatMul: {a.shape} @ {b.shape}")
        self.a, self.b = a, b
        return a @ b

    def backward(self, grad: Array) -> Gradients:
        a, b = self.a, self.b
        front = grad.shape[:-2]
        a_all = np.broadcast_to(a, front + a.shape[-2:]).reshape(-1, *a.shape[-2:])
        b_all = np.broadcast_to(b, front + b.shape[-2:]).reshape(-1, *b.shape[-2:])
        g_all = grad.reshape(-1, *grad.shape[-2:])
        by_a = np.stack([g.dot(one.T) for g, one in zip(g_all, b_all)]).reshape(front + a.shape[-2:])
        by_b = np.stack([one.T.dot(g) for g, one in zip(g_all, a_all)]).reshape(front + b.shape[-2:])
        return unbroadcast(by_a, a.shape), unbroadcast(by_b, b.shape)


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
        g = np.zeros(self.shape, grad.dtype)
        for place in np.ndindex(self.ids.shape):
            g[self.ids[place]] += grad[place]
        return (g,)


class Softmax(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def backward(self, grad: Array) -> Gradients:
        y = Softmax().forward(self.x)
        return (y * grad - y * np.sum(y * grad, -1, keepdims=True),)


class LayerNorm(Operation):
    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        self.x, self.weight = x, weight
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.eps) * weight + bias

    def backward(self, grad: Array) -> Gradients:
        x, w = self.x, self.weight
        C, std = x.shape[-1], np.sqrt(self.x.var(-1, keepdims=True) + self.eps)
        d = x - x.mean(-1, keepdims=True)
        by_d = grad * w / std
        by_variance = -0.5 * (grad * w * d).sum(-1, keepdims=True) / std**3
        by_d = by_d + 2 * by_variance * d / C
        by_mean = -by_d.sum(-1, keepdims=True)
        rows = tuple(range(x.ndim - 1))
        return by_d + by_mean / C, (grad * d / std).sum(rows), grad.sum(rows)


class CausalAttention(Operation):
    def forward(self, q: Array, k: Array, v: Array) -> Array:
        self.q, self.k, self.v = q, k, v
        return self.weights() @ v

    def backward(self, grad: Array) -> Gradients:
        q, k, v, y = self.q, self.k, self.v, self.weights()
        by_y = grad @ v.swapaxes(-1, -2)
        # Dao et al. 2022: the sum of y by_y along a row is that of grad and the result
        by_scores = y * (by_y - np.sum(grad * (y @ v), -1, keepdims=True)) / math.sqrt(q.shape[-1])
        return by_scores @ k, by_scores.swapaxes(-1, -2) @ q, y.swapaxes(-1, -2) @ grad


    def weights(self) -> Array:
        T, hs = self.q.shape[-2:]
        scores = self.q @ self.k.swapaxes(-1, -2) / math.sqrt(hs)
        return Softmax().forward(np.where(np.tri(T) > 0, scores, -math.inf))


# ---------------------------------------------------------------- losses


class CrossEntropy(Operation):
    def __init__(self, targets: Ints, ignore_index: int = -100) -> None:
        self.targets, self.ignore_index = targets, ignore_index

    def forward(self, logits: Array) -> Array:
        if logits.shape[:-1] != self.targets.shape:
            raise ValueError(f"CrossEntropy: logits {logits.shape}, targets {self.targets.shape}")
        self.keep = np.flatnonzero(self.targets != self.ignore_index)
        if not self.keep.size:
            raise ValueError(f"CrossEntropy: every target is {self.ignore_index}")
        check_ids("target", self.targets.flat[self.keep], logits.shape[-1])
        self.logits = logits
        return -np.mean([self.log_p(i)[self.targets.flat[i]] for i in self.keep])

    def backward(self, grad: Array) -> Gradients:
        g = np.zeros((self.targets.size, self.logits.shape[-1]), grad.dtype)
        for i in self.keep:
            g[i] = np.exp(self.log_p(i))
            g[i, self.targets.flat[i]] -= 1
        return ((g * grad / len(self.keep)).reshape(self.logits.shape),)


    def log_p(self, row: int) -> Array:
        x = self.logits.reshape(-1, self.logits.shape[-1])[row]
        return x - x.max() - np.log(np.exp(x - x.max()).sum())


class MSE(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"MSE: {a.shape}, {b.shape}")
        self.a, self.b = a, b
        return ((a - b) ** 2).mean()

    def backward(self, grad: Array) -> Gradients:
        g = grad * 2 / self.a.size
        return g * (self.a - self.b), g * (self.b - self.a)


class BCEWithLogits(Operation):
    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        if x.shape != self.targets.shape:
            raise ValueError(f"BCEWithLogits: {x.shape}, {self.targets.shape}")
        self.x = x
        return (np.logaddexp(0, x) - x * self.targets).mean()

    def backward(self, grad: Array) -> Gradients:
        p = np.exp(self.x - np.logaddexp(0, self.x))
        return ((p - self.targets) * (grad / self.x.size),)
