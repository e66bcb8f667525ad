"""autograd.py by the definition: Jacobian matrices, one-hot matrices, and a vector times them."""

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


def one_hot(ids, n, dtype):
    return (np.expand_dims(ids, -1) == np.arange(n)).astype(dtype)


def through(grad, jacobian):
    """grad (..., n) times a matrix (..., n, m) for each row: (..., m)."""
    return (grad[..., None, :] @ jacobian)[..., 0, :]


class Tensor:
    """An array of floats. `grad`, of the same shape, is what `backward` found for a tensor that
    `requires_grad` and was not made by an operation.

    Raises TypeError for data of another type than float32 or float64.
    """

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
        """Adds d self / d t to `t.grad` for each t that self was made from, that requires a
        gradient and has no creator. `grad`, the gradient by self, is 1 if self is a single number.

        Raises ValueError if self requires no gradient, if it has several elements and no `grad` is
        given, and for a `grad` of another shape; TypeError for one of another dtype.
        """
        if not self.requires_grad:
            raise ValueError(f"{self} is a constant")
        if grad is None and self.shape != (1,) * self.data.ndim:
            raise ValueError(f"{self} has no derivative without a direction")
        grad = np.full_like(self.data, 1) if grad is None else grad
        if grad.shape != self.shape:
            raise ValueError(f"the direction is {grad.shape}, not {self.shape}")
        if grad.dtype != self.dtype:
            raise TypeError(f"the direction is {grad.dtype}, not {self.dtype}")
        order = topological_order(self)
        found = [None] * len(order)
        place = {id(tensor): i for i, tensor in enumerate(order)}
        found[-1] = grad
        for i in range(len(order) - 1, -1, -1):
            tensor = order[i]
            if tensor.creator is None:
                tensor.grad = found[i].copy() if tensor.grad is None else np.array(tensor.grad + found[i])
            else:
                for source, one in zip(tensor.creator.inputs, tensor.creator.gradients(found[i])):
                    j = place.get(id(source))
                    if j is not None:
                        found[j] = one if found[j] is None else found[j] + one
            found[i] = None

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
    """Inside, no operation is remembered: results require no gradient. Decorates functions, too."""
    token = RECORDING.set(False)
    try:
        yield
    except BaseException:
        RECORDING.reset(token)
        raise
    else:
        RECORDING.reset(token)


class Operation:
    """What operations share: `inputs`, and what a call does."""

    inputs: tuple[Tensor, ...] = ()
    called = False
    forward: Callable[..., Array]
    backward: Callable[[Array], Gradients]

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Raises TypeError for inputs of different dtypes, RuntimeError if it was called before."""
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
        """What `backward` says. Raises TypeError unless it has an array for each input, of the
        input's shape and dtype."""
        found = self.backward(grad)
        got = [(array.shape, str(array.dtype)) for array in found]
        want = [(tensor.shape, str(tensor.dtype)) for tensor in self.inputs]
        if got != want:
            raise TypeError(f"{type(self).__name__}.backward returned {got}, want {want}")
        return found


def topological_order(last: Tensor) -> list[Tensor]:
    """All tensors that require a gradient and that `last` was made from, `last` at the end; each
    stands once, behind all that it was made from."""
    # Visited depth first; a generator of the inputs that are left stands for a nested call.
    order, seen = [], {id(last)}

    def inputs(tensor):
        return iter(() if tensor.creator is None else tensor.creator.inputs)

    path = [(last, inputs(last))]
    while path:
        tensor, left = path[-1]
        for source in left:
            if source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                path.append((source, inputs(source)))
                break
        else:
            order.append(tensor)
            path.pop()
    return order


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    """The gradient by an array of `shape` that numpy broadcast to grad's shape: the sum over the
    axes that were put in front and over those of size 1 that were stretched."""
    # The matrix of zeros and ones by which an array of `shape` is broadcast, transposed.
    places = np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), grad.shape)
    copies = one_hot(places.ravel(), math.prod(shape), grad.dtype)
    return (grad.reshape(-1) @ copies).reshape(shape)


# ---------------------------------------------------------------- element by element


class Add(Operation):
    """a + b, broadcast as numpy does."""

    def forward(self, a: Array, b: Array) -> Array:
        self.shapes = a.shape, b.shape
        return a + b

    def backward(self, grad: Array) -> Gradients:
        by_a, by_b = (unbroadcast(grad, shape) for shape in self.shapes)
        return by_a, by_b


class Mul(Operation):
    """a * b element by element, broadcast as numpy does."""

    def forward(self, a: Array, b: Array) -> Array:
        self.a, self.b = a, b
        return a * b

    def backward(self, grad: Array) -> Gradients:
        by_a, by_b = grad * self.b, grad * self.a
        return unbroadcast(by_a, self.a.shape), unbroadcast(by_b, self.b.shape)


class Exp(Operation):
    """e^x."""

    def forward(self, x: Array) -> Array:
        self.y = np.exp(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        return ((grad.reshape(-1) @ np.diag(self.y.reshape(-1))).reshape(self.y.shape),)


class Log(Operation):
    """The natural logarithm."""

    def forward(self, x: Array) -> Array:
        self.x = x
        return np.log(x)

    def backward(self, grad: Array) -> Gradients:
        return (np.true_divide(grad, self.x),)


class Tanh(Operation):
    """tanh x."""

    def forward(self, x: Array) -> Array:
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        return (grad * (1 + self.y) * (1 - self.y),)


class ReLU(Operation):
    """max(x, 0); the derivative at 0 is 0."""

    def forward(self, x: Array) -> Array:
        self.y = np.maximum(x, 0)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        return (grad * np.heaviside(self.y, 0),)


class GELU(Operation):
    """x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), the form that GPT-2 was trained with."""

    def forward(self, x: Array) -> Array:
        self.x = x
        self.t: Array = np.tanh(GELU_SCALE * (x + GELU_CUBIC * (x * x * x)))
        return 0.5 * x * (1 + self.t)

    def backward(self, grad: Array) -> Gradients:
        x, t = self.x, self.t
        by_u = x * (1 - np.square(t)) / 2
        by_x = GELU_SCALE * (1 + 3 * GELU_CUBIC * np.square(x))
        return (grad * ((1 + t) / 2 + by_u * by_x),)


class Dropout(Operation):
    """Zeroes each element with probability p and divides the others by 1 - p.

    One uniform of `rng` for each element, in row-major order; an element is zeroed where that is
    below p. Raises ValueError for a p outside [0, 1).
    """

    def __init__(self, p: float, rng: PCG32) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"p is {p}, not within [0, 1)")
        self.p, self.rng = p, rng

    def forward(self, x: Array) -> Array:
        kept = self.rng.uniforms(x.size).reshape(x.shape) >= self.p
        self.factor = kept.astype(x.dtype) / (1 - self.p)
        return x * self.factor

    def backward(self, grad: Array) -> Gradients:
        return (np.where(self.factor > 0, grad / (1 - self.p), 0),)


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    """The sum over one axis, over several, or, with None, over all; `keepdims` as in numpy."""

    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return np.asarray(x.sum(axis=self.axis, keepdims=self.keepdims))

    def backward(self, grad: Array) -> Gradients:
        axes = tuple(range(len(self.shape))) if self.axis is None else self.axis
        if not self.keepdims:
            grad = np.expand_dims(grad, axes)
        return (grad + np.zeros(self.shape, grad.dtype),)


class Mean(Sum):
    """The mean over one axis, over several, or, with None, over all; `keepdims` as in numpy."""

    def forward(self, x: Array) -> Array:
        total = super().forward(x)
        self.count = x.size // total.size
        return total / self.count

    def backward(self, grad: Array) -> Gradients:
        return tuple(by_x / self.count for by_x in Sum.backward(self, grad))


class Reshape(Operation):
    """The same elements in the same order, in another shape; one size may be -1."""

    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return x.reshape(self.wanted)

    def backward(self, grad: Array) -> Gradients:
        return (grad.ravel().reshape(self.shape),)


class Transpose(Operation):
    """Two axes exchanged."""

    def __init__(self, first: int, second: int) -> None:
        self.axes = first, second

    def forward(self, x: Array) -> Array:
        return x.swapaxes(*self.axes)

    def backward(self, grad: Array) -> Gradients:
        i, j = self.axes
        return (grad.swapaxes(j, i),)


class Slice(Operation):
    """Elements start to stop - 1 of one axis; start and stop lie within it."""

    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        self.index = [slice(None)] * x.ndim
        self.index[self.axis] = slice(self.start, self.stop)
        return x[tuple(self.index)]

    def backward(self, grad: Array) -> Gradients:
        n = self.shape[self.axis]
        rows = one_hot(np.arange(self.start, self.stop), n, grad.dtype)
        return ((grad.swapaxes(self.axis, -1) @ rows).swapaxes(self.axis, -1),)


def split(x: Tensor, parts: int, axis: int = -1) -> list[Tensor]:
    """Equal parts of one axis, in order. Raises ValueError if it cannot be divided like that."""
    if parts < 1 or x.shape[axis] % parts:
        raise ValueError(f"{x!r}: axis {axis} has no {parts} equal parts")
    size = x.shape[axis] // parts
    return [Slice(axis, i * size, (i + 1) * size)(x) for i in range(parts)]


class MatMul(Operation):
    """a (..., n, k) @ b (..., k, m) -> (..., n, m), the axes in front broadcast as numpy does.

    Raises ValueError for an array of fewer than two axes.
    """

    def forward(self, a: Array, b: Array) -> Array:
        if a.ndim < 2 or b.ndim < 2:
            raise ValueError(f"matrices of shape {a.shape} and {b.shape}, want two axes or more")
        self.a, self.b = a, b
        if b.ndim == 2:
            return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
        return a @ b

    def backward(self, grad: Array) -> Gradients:
        a, b = self.a, self.b
        by_a = (grad[..., :, None, :] * b[..., None, :, :]).sum(-1)
        by_b = (a[..., :, :, None] * grad[..., :, None, :]).sum(-3)
        return unbroadcast(by_a, a.shape), unbroadcast(by_b, b.shape)


# ---------------------------------------------------------------- what a transformer is made of


def check_ids(what: str, ids: Ints, V: int) -> None:
    """Raises TypeError unless ids are integers, IndexError for one outside 0..V-1. Given."""
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{what}s of type {ids.dtype}, want integers")
    for id_ in (int(ids.min()), int(ids.max())) if ids.size else ():
        if not 0 <= id_ < V:
            raise IndexError(f"{what} {id_} is outside 0..{V - 1}")


class Embedding(Operation):
    """Rows `ids` (...) of a weight (V, C): (..., C). Raises as check_ids does."""

    def __init__(self, ids: Ints) -> None:
        self.ids = ids

    def forward(self, weight: Array) -> Array:
        check_ids("id", self.ids, len(weight))
        self.shape = weight.shape
        return weight[self.ids]

    def backward(self, grad: Array) -> Gradients:
        V, C = self.shape
        return (one_hot(self.ids.reshape(-1), V, grad.dtype).T @ grad.reshape(-1, C),)


class Softmax(Operation):
    """e^x / Σ e^x along the last axis."""

    def forward(self, x: Array) -> Array:
        y: Array = np.exp(x - x.max(axis=-1, keepdims=True))
        y /= y.sum(axis=-1, keepdims=True)
        self.y = y
        return y

    def backward(self, grad: Array) -> Gradients:
        y = self.y
        jacobian = y[..., :, None] * (np.eye(y.shape[-1], dtype=y.dtype) - y[..., None, :])
        return (through(grad, jacobian),)


class LayerNorm(Operation):
    """(x - mean) / √(variance + eps) along x's last axis (..., C), times weight, plus bias (C,).

    The variance is the mean of squares, not divided by C - 1.
    """

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
        n, C = self.normed, self.normed.shape[-1]
        centre = np.eye(C, dtype=n.dtype) - n.dtype.type(1 / C)
        jacobian = self.rstd[..., None] * (centre - n[..., :, None] * n[..., None, :] / C)
        ones = np.ones(grad.size // C, grad.dtype)
        by_weight, by_bias = ones @ (grad * n).reshape(-1, C), ones @ grad.reshape(-1, C)
        return through(grad * self.weight, jacobian), by_weight, by_bias


class CausalAttention(Operation):
    """softmax(q kᵀ / √hs) v for q, k, v (..., T, hs); position t sees positions 0..t only."""

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
        by_y = np.einsum("...ti,...si->...ts", grad, self.v)
        (by_scores,) = Softmax.backward(self.softmax, by_y)
        by_q = np.einsum("...ts,...si->...ti", by_scores, self.k) * self.scale
        by_k = np.einsum("...ts,...ti->...si", by_scores, self.q) * self.scale
        by_v = np.einsum("...ts,...ti->...si", y, grad)
        return by_q, by_k, by_v


# ---------------------------------------------------------------- losses


class CrossEntropy(Operation):
    """The mean of -log softmax(logits)[target] over the targets that are not `ignore_index`.

    logits (..., V), targets (...) of integers. Raises ValueError for shapes that do not fit and if
    all targets are to be ignored; else as check_ids does.
    """

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
        _, learnt = self.at
        y = np.exp(self.shifted) / self.sums
        difference = y - one_hot(learnt, y.shape[1], y.dtype)
        rows = one_hot(np.flatnonzero(self.rows), self.rows.size, y.dtype)
        return ((rows.T @ difference * (grad / len(learnt))).reshape(self.shape),)


class MSE(Operation):
    """The mean of (a - b)², both of one shape; raises ValueError if they are not."""

    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape}")
        self.difference = a - b
        return np.asarray(np.mean(self.difference * self.difference))

    def backward(self, grad: Array) -> Gradients:
        by_a = grad * (self.difference + self.difference) / self.difference.size
        return by_a, by_a * -1


class BCEWithLogits(Operation):
    """The mean of -(t log p + (1 - t) log(1 - p)), p = 1 / (1 + e^-x), for logits x and targets t
    of one shape. Raises ValueError for other shapes.
    """

    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        if x.shape != self.targets.shape:
            raise ValueError(f"targets of shape {self.targets.shape} for logits {x.shape}")
        self.x, self.t = x, self.targets.astype(x.dtype)
        losses = np.maximum(x, 0) - x * self.t + np.log1p(np.exp(-np.abs(x)))
        return np.asarray(losses.mean())

    def backward(self, grad: Array) -> Gradients:
        p = (1 + np.tanh(self.x / 2)) / 2
        return (grad * (p - self.t) / self.t.size,)
