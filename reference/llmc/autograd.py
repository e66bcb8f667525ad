"""autograd.py: arrays that remember how they were made, and so find the gradient of a loss.

An operation is a class. `forward` computes a numpy array from numpy arrays and keeps in `self` what
`backward` will need; `backward` turns the gradient of the loss by the result into the gradients by
the inputs, in their order. Calling an operation with tensors runs `forward` and remembers it:

    y = GELU()(x @ w + b)                       x, w, b, y: tensors
    CrossEntropy(targets)(y).backward()         now w.grad and b.grad are there

An instance of an operation is one node of the graph: it is called once. The graph, with all that
its operations keep, lives as long as the tensor at its end. Gradients add up until `grad` is set to
None. Arrays are float32 or float64; those of one operation have one dtype, which the result has,
too.
"""

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
        # TODO (A2): Tensor.backward
        # HINT: a tensor used twice gets two gradients. Operations may hand out one array twice, or
        # one that must not be written: what ends up in `grad` is a copy.
        # BEGIN SOLUTION
        if not self.requires_grad:
            raise ValueError(f"{self!r} was not made from anything that requires a gradient")
        if grad is None and self.data.size != 1:
            raise ValueError(f"{self!r} is not a single number: say which gradient to begin with")
        start = np.ones_like(self.data) if grad is None else grad
        if start.shape != self.shape:
            raise ValueError(f"a gradient of shape {start.shape} for {self!r}")
        if start.dtype != self.dtype:
            raise TypeError(f"a gradient of {start.dtype} for {self!r}")
        pending = {id(self): start}
        for tensor in reversed(topological_order(self)):
            arrived = pending.pop(id(tensor))
            if tensor.creator is None:
                tensor.grad = np.array(arrived if tensor.grad is None else tensor.grad + arrived)
                continue
            gradients = tensor.creator.gradients(arrived)
            for source, one in zip(tensor.creator.inputs, gradients, strict=True):
                if source.requires_grad:
                    other = pending.get(id(source))
                    pending[id(source)] = one if other is None else other + one
        # END SOLUTION

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
    # TODO (A2): no_grad
    # HINT: RECORDING.set returns what RECORDING.reset wants; an error must not leave it off.
    # BEGIN SOLUTION
    token = RECORDING.set(False)
    try:
        yield
    finally:
        RECORDING.reset(token)
    # END SOLUTION


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
        wanted = [(tensor.shape, tensor.dtype) for tensor in self.inputs]
        if [(array.shape, array.dtype) for array in found] != wanted:
            got = ", ".join(f"{array.shape} {array.dtype}" for array in found)
            want = ", ".join(f"{shape} {dtype}" for shape, dtype in wanted)
            raise TypeError(f"{type(self).__name__}.backward returned {got}; want {want}")
        return found


def topological_order(last: Tensor) -> list[Tensor]:
    """All tensors that require a gradient and that `last` was made from, `last` at the end; each
    stands once, behind all that it was made from."""
    # TODO (A2): topological_order
    # HINT: Python allows about a thousand nested calls, and graphs are deeper: keep your own stack.
    # BEGIN SOLUTION
    order: list[Tensor] = []
    seen: set[int] = set()
    stack = [(last, False)]
    while stack:
        tensor, is_done = stack.pop()
        if is_done:
            order.append(tensor)
        elif id(tensor) not in seen and tensor.requires_grad:
            seen.add(id(tensor))
            stack.append((tensor, True))
            if tensor.creator is not None:
                stack += [(source, False) for source in tensor.creator.inputs]
    return order
    # END SOLUTION


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    """The gradient by an array of `shape` that numpy broadcast to grad's shape: the sum over the
    axes that were put in front and over those of size 1 that were stretched."""
    # TODO (A2): unbroadcast
    # HINT: (3,) broadcast to (2, 3) lost its gradient's axis 0; (2, 1) must keep its axis 1.
    # BEGIN SOLUTION
    front = grad.ndim - len(shape)
    stretched = [front + i for i, n in enumerate(shape) if n == 1 and grad.shape[front + i] != 1]
    axes = (*range(front), *stretched)
    return grad.sum(axis=axes, keepdims=True).reshape(shape) if axes else grad
    # END SOLUTION


# ---------------------------------------------------------------- element by element


class Add(Operation):
    """a + b, broadcast as numpy does."""

    def forward(self, a: Array, b: Array) -> Array:
        # TODO (A1): Add.forward
        # HINT: nothing but the shapes will be needed again.
        # BEGIN SOLUTION
        self.shapes = a.shape, b.shape
        return a + b
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Add.backward
        # HINT: unbroadcast.
        # BEGIN SOLUTION
        return unbroadcast(grad, self.shapes[0]), unbroadcast(grad, self.shapes[1])
        # END SOLUTION


class Mul(Operation):
    """a * b element by element, broadcast as numpy does."""

    def forward(self, a: Array, b: Array) -> Array:
        # TODO (A1): Mul.forward
        # HINT: backward needs both.
        # BEGIN SOLUTION
        self.a, self.b = a, b
        return a * b
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Mul.backward
        # HINT: the product rule.
        # BEGIN SOLUTION
        by_a = unbroadcast(grad * self.b, self.a.shape)
        return by_a, unbroadcast(grad * self.a, self.b.shape)
        # END SOLUTION


class Exp(Operation):
    """e^x."""

    def forward(self, x: Array) -> Array:
        # TODO (A1): Exp.forward
        # HINT: keep what backward will want; here that is the result.
        # BEGIN SOLUTION
        self.y = np.exp(x)
        return self.y
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Exp.backward
        # HINT: its own derivative.
        # BEGIN SOLUTION
        return (grad * self.y,)
        # END SOLUTION


class Log(Operation):
    """The natural logarithm."""

    def forward(self, x: Array) -> Array:
        # TODO (A1): Log.forward
        # HINT: numpy has it; keep what backward will want.
        # BEGIN SOLUTION
        self.x = x
        return np.log(x)
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Log.backward
        # HINT: the derivative of the logarithm, times what arrived: the chain rule.
        # BEGIN SOLUTION
        return (grad / self.x,)
        # END SOLUTION


class Tanh(Operation):
    """tanh x."""

    def forward(self, x: Array) -> Array:
        # TODO (A1): Tanh.forward
        # HINT: its derivative can be written with its result alone.
        # BEGIN SOLUTION
        self.y = np.tanh(x)
        return self.y
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Tanh.backward
        # HINT: nothing needs to be computed again.
        # BEGIN SOLUTION
        return (grad * (1 - self.y * self.y),)
        # END SOLUTION


class ReLU(Operation):
    """max(x, 0); the derivative at 0 is 0."""

    def forward(self, x: Array) -> Array:
        # TODO (A1): ReLU.forward
        # HINT: of two numbers the larger.
        # BEGIN SOLUTION
        self.y = np.maximum(x, 0)
        return self.y
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): ReLU.backward
        # HINT: only where the result is above 0 does anything pass.
        # BEGIN SOLUTION
        return (grad * (self.y > 0),)
        # END SOLUTION


class GELU(Operation):
    """x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), the form that GPT-2 was trained with."""

    def forward(self, x: Array) -> Array:
        # TODO (A1): GELU.forward
        # HINT: the tanh is the costly part, and backward needs it again.
        # BEGIN SOLUTION
        self.x = x
        self.t: Array = np.tanh(GELU_SCALE * (x + GELU_CUBIC * (x * x * x)))
        return 0.5 * x * (1 + self.t)
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): GELU.backward
        # HINT: a product of x/2 and (1 + tanh u), and u depends on x, too.
        # BEGIN SOLUTION
        x, t = self.x, self.t
        slope = GELU_SCALE * (1 + 3 * GELU_CUBIC * (x * x))
        return (grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope),)
        # END SOLUTION


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
        # TODO (A1): Dropout.forward
        # HINT: backward has to know which elements were zeroed.
        # BEGIN SOLUTION
        kept = self.rng.uniforms(x.size).reshape(x.shape) >= self.p
        self.factor = kept.astype(x.dtype) / (1 - self.p)
        return x * self.factor
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Dropout.backward
        # HINT: no new uniforms.
        # BEGIN SOLUTION
        return (grad * self.factor,)
        # END SOLUTION


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    """The sum over one axis, over several, or, with None, over all; `keepdims` as in numpy."""

    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        # TODO (A1): Sum.forward
        # HINT: backward needs a shape.
        # BEGIN SOLUTION
        self.shape = x.shape
        return np.asarray(x.sum(axis=self.axis, keepdims=self.keepdims))
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Sum.backward
        # HINT: each summand gets the gradient of its sum; put axes that are gone back first.
        # BEGIN SOLUTION
        if self.axis is not None and not self.keepdims:
            grad = np.expand_dims(grad, self.axis)
        return (np.broadcast_to(grad, self.shape),)
        # END SOLUTION


class Mean(Sum):
    """The mean over one axis, over several, or, with None, over all; `keepdims` as in numpy."""

    def forward(self, x: Array) -> Array:
        # TODO (A1): Mean.forward
        # HINT: how many elements there are for each of the result.
        # BEGIN SOLUTION
        total = super().forward(x)
        self.count = x.size // total.size
        return total / self.count
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Mean.backward
        # HINT: a sum, divided.
        # BEGIN SOLUTION
        return super().backward(grad / self.count)
        # END SOLUTION


class Reshape(Operation):
    """The same elements in the same order, in another shape; one size may be -1."""

    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        # TODO (A1): Reshape.forward
        # HINT: backward needs a shape.
        # BEGIN SOLUTION
        self.shape = x.shape
        return x.reshape(self.wanted)
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Reshape.backward
        # HINT: back again.
        # BEGIN SOLUTION
        return (grad.reshape(self.shape),)
        # END SOLUTION


class Transpose(Operation):
    """Two axes exchanged."""

    def __init__(self, first: int, second: int) -> None:
        self.axes = first, second

    def forward(self, x: Array) -> Array:
        # TODO (A1): Transpose.forward
        # HINT: numpy swaps axes without copying.
        # BEGIN SOLUTION
        return x.swapaxes(*self.axes)
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Transpose.backward
        # HINT: what undoes an exchange?
        # BEGIN SOLUTION
        return (grad.swapaxes(*self.axes),)
        # END SOLUTION


class Slice(Operation):
    """Elements start to stop - 1 of one axis; start and stop lie within it."""

    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        # TODO (A1): Slice.forward
        # HINT: an index for each axis: slice(None) takes all of one.
        # BEGIN SOLUTION
        self.shape = x.shape
        self.index = [slice(None)] * x.ndim
        self.index[self.axis] = slice(self.start, self.stop)
        return x[tuple(self.index)]
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Slice.backward
        # HINT: what was left out has no influence.
        # BEGIN SOLUTION
        whole = np.zeros(self.shape, grad.dtype)
        whole[tuple(self.index)] = grad
        return (whole,)
        # END SOLUTION


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
        # TODO (A1): MatMul.forward
        # HINT: numpy broadcasts the axes in front by itself; but it takes vectors, too.
        # BEGIN SOLUTION
        if a.ndim < 2 or b.ndim < 2:
            raise ValueError(f"matrices of shape {a.shape} and {b.shape}, want two axes or more")
        self.a, self.b = a, b
        return a @ b
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): MatMul.backward
        # HINT: the shapes leave one way to multiply grad with the other; the axes in front may have
        # been broadcast.
        # BEGIN SOLUTION
        a, b = self.a, self.b
        if b.ndim == 2:
            rows, by_rows = a.reshape(-1, a.shape[-1]), grad.reshape(-1, grad.shape[-1])
            # b is mostly a weight (m, k) transposed: so is this, and has the weight's memory order
            return (by_rows @ b.T).reshape(a.shape), (by_rows.T @ rows).T
        by_a = unbroadcast(grad @ b.swapaxes(-1, -2), a.shape)
        return by_a, unbroadcast(a.swapaxes(-1, -2) @ grad, b.shape)
        # END SOLUTION


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
        # TODO (A1): Embedding.forward
        # HINT: numpy takes -1 for the last row; it is no id.
        # BEGIN SOLUTION
        check_ids("id", self.ids, len(weight))
        self.shape = weight.shape
        return weight[self.ids]
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Embedding.backward
        # HINT: an id that occurs twice gets both gradients; `whole[ids] += grad` gives it one.
        # BEGIN SOLUTION
        whole = np.zeros(self.shape, grad.dtype)
        np.add.at(whole, self.ids, grad)
        return (whole,)
        # END SOLUTION


class Softmax(Operation):
    """e^x / Σ e^x along the last axis."""

    def forward(self, x: Array) -> Array:
        # TODO (A1): Softmax.forward
        # HINT: without x - max, e^89 is too much for a float32.
        # BEGIN SOLUTION
        y: Array = np.exp(x - x.max(axis=-1, keepdims=True))
        y /= y.sum(axis=-1, keepdims=True)
        self.y = y
        return y
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Softmax.backward
        # HINT: the derivative of y_i by x_j is y_i (1 - y_i) for i = j, else -y_i y_j; no (V, V)
        # matrix is needed.
        # BEGIN SOLUTION
        y = self.y
        return (y * (grad - (grad * y).sum(axis=-1, keepdims=True)),)
        # END SOLUTION


class LayerNorm(Operation):
    """(x - mean) / √(variance + eps) along x's last axis (..., C), times weight, plus bias (C,).

    The variance is the mean of squares, not divided by C - 1.
    """

    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        # TODO (A1): LayerNorm.forward
        # HINT: eps stands under the root.
        # BEGIN SOLUTION
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        self.rstd = 1 / np.sqrt(variance + self.eps)
        self.normed: Array = centred * self.rstd
        self.weight = weight
        result: Array = self.normed * weight + bias
        return result
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): LayerNorm.backward
        # HINT: mean and variance depend on x, too: two means along the axis are taken off.
        # BEGIN SOLUTION
        normed = self.normed
        by_normed = grad * self.weight
        along = np.mean(by_normed * normed, axis=-1, keepdims=True)
        by_x = self.rstd * (by_normed - by_normed.mean(axis=-1, keepdims=True) - normed * along)
        shape = self.weight.shape
        return by_x, unbroadcast(grad * normed, shape), unbroadcast(grad, shape)
        # END SOLUTION


class CausalAttention(Operation):
    """softmax(q kᵀ / √hs) v for q, k, v (..., T, hs); position t sees positions 0..t only."""

    def forward(self, q: Array, k: Array, v: Array) -> Array:
        # TODO (A1): CausalAttention.forward
        # HINT: a score of -inf is a weight of 0; position 0 sees itself.
        # BEGIN SOLUTION
        T, hs = q.shape[-2:]
        self.scale = 1 / math.sqrt(hs)
        scores = q @ k.swapaxes(-1, -2)
        scores *= self.scale
        np.copyto(scores, -np.inf, where=np.triu(np.ones((T, T), bool), 1))
        self.q, self.k, self.v = q, k, v
        self.softmax = Softmax()
        return self.softmax.forward(scores) @ v
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): CausalAttention.backward
        # HINT: what has weight 0 has gradient 0, so that the mask needs no second look.
        # BEGIN SOLUTION
        weights = self.softmax.y
        (by_scaled,) = self.softmax.backward(grad @ self.v.swapaxes(-1, -2))
        by_scores = self.scale * by_scaled
        by_k = by_scores.swapaxes(-1, -2) @ self.q
        return by_scores @ self.k, by_k, weights.swapaxes(-1, -2) @ grad
        # END SOLUTION


# ---------------------------------------------------------------- losses


class CrossEntropy(Operation):
    """The mean of -log softmax(logits)[target] over the targets that are not `ignore_index`.

    logits (..., V), targets (...) of integers. Raises ValueError for shapes that do not fit and if
    all targets are to be ignored; else as check_ids does.
    """

    def __init__(self, targets: Ints, ignore_index: int = -100) -> None:
        self.targets, self.ignore_index = targets, ignore_index

    def forward(self, logits: Array) -> Array:
        # TODO (A1): CrossEntropy.forward
        # HINT: log Σ e^z = m + log Σ e^(z - m), with m the maximum.
        # BEGIN SOLUTION
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
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): CrossEntropy.backward
        # HINT: what softmax says, and what it should have said; ignored rows take no part, neither
        # here nor in the mean.
        # BEGIN SOLUTION
        by_row = np.exp(self.shifted)
        by_row /= self.sums
        by_row[self.at] -= 1
        by_row *= grad / len(by_row)
        by_logits = np.zeros(self.shape, grad.dtype)
        by_logits[self.rows] = by_row
        return (by_logits,)
        # END SOLUTION


class MSE(Operation):
    """The mean of (a - b)², both of one shape; raises ValueError if they are not."""

    def forward(self, a: Array, b: Array) -> Array:
        # TODO (A1): MSE.forward
        # HINT: keep the difference.
        # BEGIN SOLUTION
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape}")
        self.difference = a - b
        return np.asarray(np.mean(self.difference * self.difference))
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): MSE.backward
        # HINT: b goes the other way.
        # BEGIN SOLUTION
        by_a = self.difference * (grad * (2 / self.difference.size))
        return by_a, -by_a
        # END SOLUTION


class BCEWithLogits(Operation):
    """The mean of -(t log p + (1 - t) log(1 - p)), p = 1 / (1 + e^-x), for logits x and targets t
    of one shape and dtype. Raises ValueError for other shapes.
    """

    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        # TODO (A1): BCEWithLogits.forward
        # HINT: log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which is never infinite; np.log1p.
        # BEGIN SOLUTION
        if x.shape != self.targets.shape:
            raise ValueError(f"targets of shape {self.targets.shape} for logits {x.shape}")
        self.x, self.t = x, self.targets.astype(x.dtype)
        losses = np.maximum(x, 0) - x * self.t + np.log1p(np.exp(-np.abs(x)))
        return np.asarray(losses.mean())
        # END SOLUTION

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): BCEWithLogits.backward
        # HINT: as short as that of cross-entropy; e^-|x| never overflows, and p = e^x / (1 + e^x).
        # BEGIN SOLUTION
        small = np.exp(-np.abs(self.x))
        p = np.where(self.x >= 0, 1, small) / (1 + small)
        return ((p - self.t) * (grad / self.x.size),)
        # END SOLUTION
