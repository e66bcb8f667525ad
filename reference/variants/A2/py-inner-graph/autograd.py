"""autograd.py whose larger operations are graphs of smaller ones, which go back by themselves."""

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
            raise ValueError("no input of this tensor wants a gradient")
        if grad is None:
            if self.data.size != 1:
                raise ValueError(f"{self!r}: one number, or a gradient")
            grad = np.ones(self.shape, self.dtype)
        if grad.shape != self.shape:
            raise ValueError(f"{self!r}: not {grad.shape}")
        if grad.dtype != self.dtype:
            raise TypeError(f"{self!r}: not {grad.dtype}")
        arrived = {}

        def arrive(tensor, gradient):
            arrived[id(tensor)] = arrived[id(tensor)] + gradient if id(tensor) in arrived else gradient

        arrive(self, grad)
        for tensor in reversed(topological_order(self)):
            total = arrived[id(tensor)]
            if tensor.creator is None:
                tensor.grad = np.array(total if tensor.grad is None else total + tensor.grad)
            else:
                inputs = tensor.creator.inputs
                for source, gradient in zip(inputs, tensor.creator.gradients(total), strict=True):
                    if source.requires_grad:
                        arrive(source, gradient)

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
    context = RECORDING.set(False)
    try:
        yield
    finally:
        RECORDING.reset(context)


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
    # Ranks: the longest way down to a leaf; who has a higher one comes later.
    rank, stack = {}, [last]
    while stack:
        tensor = stack[-1]
        below = [] if tensor.creator is None else tensor.creator.inputs
        below = [source for source in below if source.requires_grad]
        unknown = [source for source in below if source not in rank]
        if unknown:
            stack.extend(unknown)
        else:
            rank[tensor] = 1 + max((rank[source] for source in below), default=-1)
            stack.pop()
    return sorted(rank, key=rank.__getitem__)


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    front = len(grad.shape) - len(shape)
    if front > 0:
        grad = np.add.reduce(grad, axis=tuple(range(front)))
    ones = tuple(axis for axis, n in enumerate(shape) if n == 1)
    return np.add.reduce(grad, axis=ones, keepdims=True) if ones else grad


class Composed(Operation):
    def forward(self, *arrays: Array) -> Array:
        self.leaves = [Tensor(array, requires_grad=True) for array in arrays]
        self.end = self.compose(*self.leaves)
        return self.end.data

    def backward(self, grad: Array) -> Gradients:
        for leaf in self.leaves:
            leaf.grad = None
        self.end.backward(grad)
        return tuple(leaf.grad for leaf in self.leaves)


class Divide(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.a, self.b = a, b
        return a / b

    def backward(self, grad: Array) -> Gradients:
        return grad / self.b, unbroadcast(-grad * self.a / self.b**2, self.b.shape)


class Shift(Operation):
    def __init__(self, by: Array) -> None:
        self.by = by

    def forward(self, x: Array) -> Array:
        return x - self.by

    def backward(self, grad: Array) -> Gradients:
        return (grad,)


class Pick(Operation):
    def __init__(self, index: object) -> None:
        self.index = index

    def forward(self, x: Array) -> Array:
        self.like = x
        return x[self.index]

    def backward(self, grad: Array) -> Gradients:
        whole = np.zeros_like(self.like)
        whole[self.index] = grad
        return (whole,)


def shifted(x: Tensor) -> Tensor:
    return Shift(x.data.max(axis=-1, keepdims=True))(x)


def shares(x: Tensor) -> Tensor:
    powers = Exp()(shifted(x))
    return Divide()(powers, Sum(-1, True)(powers))


def sigmoid(x: Tensor) -> Tensor:
    return Tanh()(x * 0.5) * 0.5 + 0.5


# ---------------------------------------------------------------- element by element


class Add(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.shapes = a.shape, b.shape
        return a + b

    def backward(self, grad: Array) -> Gradients:
        return unbroadcast(grad, self.shapes[0]), unbroadcast(grad, self.shapes[1])


class Mul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.a, self.b = a, b
        return a * b

    def backward(self, grad: Array) -> Gradients:
        a, b = self.a, self.b
        return unbroadcast(b * grad, a.shape), unbroadcast(a * grad, b.shape)


class Exp(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.exp(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        return (grad * self.y,)


class Log(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.log(x)

    def backward(self, grad: Array) -> Gradients:
        return (grad / self.x,)


class Tanh(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        return (grad * (1 - self.y * self.y),)


class ReLU(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.maximum(x, 0)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        grad = np.array(grad)
        grad[self.y == 0] = 0
        return (grad,)


class GELU(Operation):
    def forward(self, x: Array) -> Array:
        self.x = Tensor(x, requires_grad=True)
        cube = self.x * self.x * self.x
        self.end = self.x * 0.5 * (Tanh()((self.x + cube * GELU_CUBIC) * GELU_SCALE) + 1)
        return self.end.data

    def backward(self, grad: Array) -> Gradients:
        self.x.grad = None
        self.end.backward(grad)
        return (self.x.grad,)


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
        return (grad * self.factor,)


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return np.asarray(x.sum(axis=self.axis, keepdims=self.keepdims))

    def backward(self, grad: Array) -> Gradients:
        kept = grad
        if not self.keepdims:
            axes = self.axis if self.axis is not None else tuple(range(len(self.shape)))
            kept = np.expand_dims(grad, axes)
        return (np.broadcast_to(kept, self.shape).copy(),)


class Mean(Sum):
    def forward(self, x: Array) -> Array:
        self.inner = Sum(self.axis, self.keepdims)
        total = np.asarray(self.inner.forward(x))
        self.times = total.size / x.size
        return total * self.times

    def backward(self, grad: Array) -> Gradients:
        (by_x,) = self.inner.backward(np.asarray(grad))
        return (by_x * self.times,)


class Reshape(Operation):
    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return x.reshape(self.wanted)

    def backward(self, grad: Array) -> Gradients:
        return (grad.reshape(self.shape),)


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
        self.shape = x.shape
        self.index = [slice(None)] * x.ndim
        self.index[self.axis] = slice(self.start, self.stop)
        return x[tuple(self.index)]

    def backward(self, grad: Array) -> Gradients:
        pick = Pick(tuple(self.index))
        pick.like = np.zeros(self.shape, grad.dtype)
        return pick.backward(grad)


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
        a, b = self.a, self.b
        turned = MatMul().forward(grad, np.swapaxes(b, -1, -2)), MatMul().forward(np.swapaxes(a, -1, -2), grad)
        return tuple(unbroadcast(by, x.shape) for by, x in zip(turned, (a, b)))


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
        by_weight = np.zeros(self.shape, grad.dtype)
        ids, inverse = np.unique(self.ids, return_inverse=True)
        rows = grad.reshape(-1, self.shape[1])
        for place, id_ in enumerate(ids):
            by_weight[id_] = rows[inverse.reshape(-1) == place].sum(axis=0)
        return (by_weight,)


class Softmax(Composed):
    compose = staticmethod(shares)

    def forward(self, x: Array) -> Array:
        return super().forward(x)

    def backward(self, grad: Array) -> Gradients:
        return super().backward(grad)


class LayerNorm(Composed):
    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        def compose(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            centred = x - Mean(-1, True)(x)
            variance = Mean(-1, True)(centred * centred)
            rstd = Exp()(Log()(variance + self.eps) * -0.5)
            return centred * rstd * weight + bias

        self.compose = compose
        return super().forward(x, weight, bias)

    def backward(self, grad: Array) -> Gradients:
        return super().backward(grad)


class CausalAttention(Composed):
    def forward(self, q: Array, k: Array, v: Array) -> Array:
        T, hs = q.shape[-2:]

        def compose(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            hidden = Tensor(np.where(np.tri(T) == 1, 0, -np.inf).astype(q.dtype))
            scores = (q * hs**-0.5) @ Transpose(-1, -2)(k) + hidden
            return shares(scores) @ v

        self.compose = compose
        return super().forward(q, k, v)

    def backward(self, grad: Array) -> Gradients:
        return super().backward(grad)


# ---------------------------------------------------------------- losses


class CrossEntropy(Composed):
    def __init__(self, targets: Ints, ignore_index: int = -100) -> None:
        self.targets, self.ignore_index = targets, ignore_index

    def forward(self, logits: Array) -> Array:
        if logits.shape[:-1] != self.targets.shape:
            raise ValueError(f"{logits.shape} logits and {self.targets.shape} targets")
        rows = np.nonzero(self.targets != self.ignore_index)
        if not len(rows[0]):
            raise ValueError("all targets are ignored")
        learnt = self.targets[rows]
        check_ids("target", learnt, logits.shape[-1])

        def compose(logits: Tensor) -> Tensor:
            z = shifted(Pick(rows)(logits))
            log_sums = Log()(Sum(-1)(Exp()(z)))
            return Mean()(log_sums - Pick((np.arange(len(learnt)), learnt))(z))

        self.compose = compose
        return super().forward(logits)

    def backward(self, grad: Array) -> Gradients:
        return super().backward(grad)


class MSE(Composed):
    @staticmethod
    def compose(a: Tensor, b: Tensor) -> Tensor:
        return Mean()((a - b) * (a - b))

    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"{a.shape} and {b.shape}")
        return super().forward(a, b)

    def backward(self, grad: Array) -> Gradients:
        return super().backward(grad)


class BCEWithLogits(Operation):
    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        if x.shape != self.targets.shape:
            raise ValueError(f"{x.shape} logits and {self.targets.shape} targets")
        self.x = x
        t = self.targets
        return np.mean(np.maximum(x, 0) - x * t + np.log1p(np.exp(-abs(x))))

    def backward(self, grad: Array) -> Gradients:
        p = sigmoid(Tensor(self.x)).data
        return (grad / p.size * (p - self.targets),)
