"""autograd.py in the manner of JAX: forward leaves a function behind, and backward calls it."""

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
            raise ValueError("of a constant")
        if grad is None and self.data.size != 1:
            raise ValueError(f"of {self.data.size} numbers")
        grad = np.ones_like(self.data) if grad is None else grad
        match grad.shape == self.shape, grad.dtype == self.dtype:
            case False, _:
                raise ValueError(f"{grad.shape} for {self.shape}")
            case True, False:
                raise TypeError(f"{grad.dtype} for {self.dtype}")
        flows = {self: grad}
        for tensor in reversed(topological_order(self)):
            flow = flows.pop(tensor)
            if tensor.creator is None:
                before = 0 if tensor.grad is None else tensor.grad
                tensor.grad = np.asarray(before + flow)
                continue
            for source, part in zip(tensor.creator.inputs, tensor.creator.gradients(flow)):
                if source.requires_grad:
                    flows[source] = flows.get(source, 0) + part

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
    token = RECORDING.set(False)
    try:
        yield
    finally:
        RECORDING.reset(token)


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
    # Depth first, twice on the stack: a tensor opens, and closes when all below it has closed.
    opened, closed, stack = set(), [], [last]
    while stack:
        tensor = stack.pop()
        if isinstance(tensor, tuple):
            closed += tensor
        elif tensor not in opened:
            opened.add(tensor)
            stack.append((tensor,))
            below = tensor.creator.inputs if tensor.creator else ()
            stack.extend(source for source in below if source.requires_grad)
    return closed


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    return np.sum(
        grad,
        axis=tuple(
            axis
            for axis in range(grad.ndim)
            if axis < grad.ndim - len(shape) or shape[axis - grad.ndim] == 1
        ),
        keepdims=True,
    ).reshape(shape)


def elementwise(operation: Operation, slope: Array) -> None:
    operation.vjp = lambda grad: [slope * grad]


# ---------------------------------------------------------------- element by element


class Add(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.vjp = lambda grad: [unbroadcast(grad, a.shape), unbroadcast(grad, b.shape)]
        return a + b

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Mul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.vjp = lambda grad: [unbroadcast(grad * b, a.shape), unbroadcast(grad * a, b.shape)]
        return a * b

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Exp(Operation):
    def forward(self, x: Array) -> Array:
        elementwise(self, np.exp(x))
        return np.exp(x)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Log(Operation):
    def forward(self, x: Array) -> Array:
        elementwise(self, 1 / x)
        return np.log(x)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Tanh(Operation):
    def forward(self, x: Array) -> Array:
        y = np.tanh(x)
        elementwise(self, 1 - y * y)
        return y

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class ReLU(Operation):
    def forward(self, x: Array) -> Array:
        elementwise(self, (x > 0).astype(x.dtype))
        return np.maximum(x, 0)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class GELU(Operation):
    def forward(self, x: Array) -> Array:
        t = np.tanh(GELU_SCALE * (x + GELU_CUBIC * x**3))
        du = GELU_SCALE * (1 + 3 * GELU_CUBIC * x**2)
        elementwise(self, ((1 + t) + x * (1 - t * t) * du) / 2)
        return x * (1 + t) / 2

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Dropout(Operation):
    def __init__(self, p: float, rng: PCG32) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"p is {p}, not within [0, 1)")
        self.p, self.rng = p, rng

    def forward(self, x: Array) -> Array:
        kept = self.rng.uniforms(x.size).reshape(x.shape) >= self.p
        factors = np.where(kept, 1 / (1 - self.p), 0).astype(x.dtype)
        elementwise(self, factors)
        return factors * x

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        kept = x.sum(axis=self.axis, keepdims=True)
        self.vjp = lambda grad: [np.broadcast_to(grad.reshape(kept.shape), x.shape)]
        return x.sum(axis=self.axis, keepdims=self.keepdims)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Mean(Sum):
    def forward(self, x: Array) -> Array:
        total = super().forward(x)
        self.n = x.size // total.size
        return total / self.n

    def backward(self, grad: Array) -> Gradients:
        return [each / self.n for each in super().backward(grad)]


class Reshape(Operation):
    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        self.vjp = lambda grad: [grad.reshape(x.shape)]
        return x.reshape(self.wanted)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Transpose(Operation):
    def __init__(self, first: int, second: int) -> None:
        self.axes = first, second

    def forward(self, x: Array) -> Array:
        self.vjp = lambda grad: [grad.swapaxes(*self.axes)]
        return x.swapaxes(*self.axes)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Slice(Operation):
    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        along = [1] * x.ndim
        along[self.axis] = -1
        where = np.arange(self.start, self.stop).reshape(along)

        def vjp(grad: Array) -> list[Array]:
            whole = np.zeros_like(x)
            np.put_along_axis(whole, where, grad, self.axis)
            return [whole]

        self.vjp = vjp
        return np.take_along_axis(x, where, self.axis)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


def split(x: Tensor, parts: int, axis: int = -1) -> list[Tensor]:
    if parts < 1 or x.shape[axis] % parts:
        raise ValueError(f"{x!r}: axis {axis} has no {parts} equal parts")
    size = x.shape[axis] // parts
    return [Slice(axis, i * size, (i + 1) * size)(x) for i in range(parts)]


class MatMul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if min(a.ndim, b.ndim) < 2:
            raise ValueError(f"{a.shape} and {b.shape}")
        self.vjp = lambda grad: [
            unbroadcast(np.matmul(grad, np.swapaxes(b, -1, -2)), a.shape),
            unbroadcast(np.matmul(np.swapaxes(a, -1, -2), grad), b.shape),
        ]
        return np.matmul(a, b)

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


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
        check_ids("id", self.ids, weight.shape[0])

        def vjp(grad: Array) -> list[Array]:
            whole = np.zeros_like(weight)
            for id_ in set(self.ids.ravel().tolist()):
                whole[id_] = grad[self.ids == id_].sum(axis=0)
            return [whole]

        self.vjp = vjp
        return weight[self.ids]

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class Softmax(Operation):
    def forward(self, x: Array) -> Array:
        y = np.exp(x - x.max(axis=-1, keepdims=True))
        y = y / y.sum(axis=-1, keepdims=True)
        self.vjp = lambda grad: [y * (grad - np.vecdot(grad, y)[..., None])]
        return y

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class LayerNorm(Operation):
    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        mean, std = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) + self.eps)
        normed = (x - mean) / std

        def vjp(grad: Array) -> list[Array]:
            g = grad * weight / std
            g = g - normed * (g * normed).mean(-1, keepdims=True)
            return [
                g - g.mean(-1, keepdims=True),
                unbroadcast(grad * normed, weight.shape),
                unbroadcast(grad, bias.shape),
            ]

        self.vjp = vjp
        return normed * weight + bias

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class CausalAttention(Operation):
    def forward(self, q: Array, k: Array, v: Array) -> Array:
        scale, softmax, T = q.shape[-1] ** -0.5, Softmax(), q.shape[-2]
        future = np.arange(T) > np.arange(T)[:, None]
        scores = np.ma.array(q @ k.mT * scale)
        scores[..., future] = np.ma.masked
        y = softmax.forward(scores.filled(-np.inf))

        def vjp(grad: Array) -> list[Array]:
            (by_scores,) = softmax.vjp(grad @ v.mT)
            return [by_scores @ k * scale, by_scores.mT @ q * scale, y.mT @ grad]

        self.vjp = vjp
        return y @ v

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


# ---------------------------------------------------------------- losses


class CrossEntropy(Operation):
    def __init__(self, targets: Ints, ignore_index: int = -100) -> None:
        self.targets, self.ignore_index = targets, ignore_index

    def forward(self, logits: Array) -> Array:
        if logits.shape[:-1] != self.targets.shape:
            raise ValueError(f"{logits.shape} and {self.targets.shape}")
        kept = self.targets != self.ignore_index
        n = int(kept.sum())
        if n == 0:
            raise ValueError(f"{self.targets.size} targets, none of them to learn from")
        check_ids("target", self.targets[kept], logits.shape[-1])
        chosen = np.where(kept, self.targets, 0)[..., None].astype(np.int64)
        softmax = Softmax()
        y = softmax.forward(logits)
        z = logits - logits.max(-1, keepdims=True)
        losses = np.log(np.exp(z).sum(-1)) - np.take_along_axis(z, chosen, -1)[..., 0]

        def vjp(grad: Array) -> list[Array]:
            one_hot = np.zeros_like(logits)
            np.put_along_axis(one_hot, chosen, 1, -1)
            return [(y - one_hot) * kept[..., None] * (grad / n)]

        self.vjp = vjp
        return losses.sum(where=kept) / n

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class MSE(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"{a.shape} and {b.shape}")
        d = a - b
        self.vjp = lambda grad: [d * (2 * grad / d.size), d * (-2 * grad / d.size)]
        return (d * d).mean()

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)


class BCEWithLogits(Operation):
    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        if x.shape != self.targets.shape:
            raise ValueError(f"{x.shape} and {self.targets.shape}")
        elementwise(self, (np.tanh(x / 2) / 2 + 0.5 - self.targets) / x.size)
        return (np.logaddexp(0, x) - x * self.targets).mean()

    def backward(self, grad: Array) -> Gradients:
        return self.vjp(grad)
