"""autograd.py that stays with logarithms: softmax, attention, GELU and losses by logaddexp."""

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


def log_softmax(x):
    return x - np.logaddexp.reduce(x, axis=-1, keepdims=True)


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


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
        return np.add(a, b)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Add.backward
        # HINT: unbroadcast.
        raise NotImplementedError("A2: Add.backward")


class Mul(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        self.pair = (a, b)
        return np.multiply(a, b)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Mul.backward
        # HINT: the product rule.
        raise NotImplementedError("A2: Mul.backward")


class Exp(Operation):
    def forward(self, x: Array) -> Array:
        self.y = math.e**x
        return self.y

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Exp.backward
        # HINT: its own derivative.
        raise NotImplementedError("A2: Exp.backward")


class Log(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.log10(x) / math.log10(math.e)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Log.backward
        # HINT: the derivative of the logarithm, times what arrived: the chain rule.
        raise NotImplementedError("A2: Log.backward")


class Tanh(Operation):
    def forward(self, x: Array) -> Array:
        self.less = np.expm1(-2 * np.abs(x))
        return -np.sign(x) * self.less / (2 + self.less)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Tanh.backward
        # HINT: nothing needs to be computed again.
        raise NotImplementedError("A2: Tanh.backward")


class ReLU(Operation):
    def forward(self, x: Array) -> Array:
        return np.where(x > 0, x, 0)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): ReLU.backward
        # HINT: only where the result is above 0 does anything pass.
        raise NotImplementedError("A2: ReLU.backward")


class GELU(Operation):
    def forward(self, x: Array) -> Array:
        self.x, self.u = x, GELU_SCALE * x * (1 + GELU_CUBIC * x * x)
        return x * np.exp(log_sigmoid(2 * self.u))

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
        self.dropped = self.rng.uniforms(x.size).reshape(x.shape) < self.p
        return np.where(self.dropped, 0, x / (1 - self.p))

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Dropout.backward
        # HINT: no new uniforms.
        raise NotImplementedError("A2: Dropout.backward")


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        self.x_shape = x.shape
        return np.add.reduce(x, axis=self.axis, keepdims=self.keepdims)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Sum.backward
        # HINT: each summand gets the gradient of its sum; put axes that are gone back first.
        raise NotImplementedError("A2: Sum.backward")


class Mean(Sum):
    def forward(self, x: Array) -> Array:
        return x.mean(axis=self.axis, keepdims=self.keepdims)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Mean.backward
        # HINT: a sum, divided.
        raise NotImplementedError("A2: Mean.backward")


class Reshape(Operation):
    def __init__(self, *shape: int) -> None:
        self.wanted = shape

    def forward(self, x: Array) -> Array:
        return x.copy().reshape(self.wanted)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Reshape.backward
        # HINT: back again.
        raise NotImplementedError("A2: Reshape.backward")


class Transpose(Operation):
    def __init__(self, first: int, second: int) -> None:
        self.axes = first, second

    def forward(self, x: Array) -> Array:
        first, second = (axis % x.ndim for axis in self.axes)
        order = [{first: second, second: first}.get(i, i) for i in range(x.ndim)]
        return np.transpose(x, order)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Transpose.backward
        # HINT: what undoes an exchange?
        raise NotImplementedError("A2: Transpose.backward")


class Slice(Operation):
    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        return np.take(x, range(self.start, self.stop), axis=self.axis)

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
        self.a, self.b = a, b
        if a.ndim == 1 or b.ndim == 1 or not a.ndim or not b.ndim:
            raise ValueError("want matrices")
        return np.matmul(a, b)

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
        check_ids("id", self.ids, weight.shape[0])
        return np.take(weight, self.ids, axis=0)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Embedding.backward
        # HINT: an id that occurs twice gets both gradients; `whole[ids] += grad` gives it one.
        raise NotImplementedError("A2: Embedding.backward")


class Softmax(Operation):
    def forward(self, x: Array) -> Array:
        self.log_y = log_softmax(x)
        return np.exp(self.log_y)

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): Softmax.backward
        # HINT: the derivative of y_i by x_j is y_i (1 - y_i) for i = j, else -y_i y_j; no (V, V)
        # matrix is needed.
        raise NotImplementedError("A2: Softmax.backward")


class LayerNorm(Operation):
    def __init__(self, eps: float = 1e-5) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        self.mean, self.variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        normed = (x - self.mean) * np.exp(-0.5 * np.log(self.variance + self.eps))
        return bias + weight * normed

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): LayerNorm.backward
        # HINT: mean and variance depend on x, too: two means along the axis are taken off.
        raise NotImplementedError("A2: LayerNorm.backward")


class CausalAttention(Operation):
    def forward(self, q: Array, k: Array, v: Array) -> Array:
        T, hs = q.shape[-2:]
        scores = (q @ np.swapaxes(k, -1, -2)) / hs**0.5
        scores[..., np.arange(T)[:, None] < np.arange(T)] = -np.inf
        self.log_weights = log_softmax(scores)
        return np.exp(self.log_weights) @ v

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): CausalAttention.backward
        # HINT: what has weight 0 has gradient 0, so that the mask needs no second look.
        raise NotImplementedError("A2: CausalAttention.backward")


# ---------------------------------------------------------------- losses


class CrossEntropy(Operation):
    def __init__(self, targets: Ints, ignore_index: int = -100) -> None:
        self.targets, self.ignore_index = targets, ignore_index

    def forward(self, logits: Array) -> Array:
        if logits.shape[:-1] != self.targets.shape:
            raise ValueError(f"{self.targets.shape} targets for {logits.shape[:-1]} predictions")
        mask = self.targets == self.ignore_index
        if mask.all():
            raise ValueError("no target left")
        targets = self.targets[~mask]
        check_ids("target", targets, logits.shape[-1])
        self.log_p = log_softmax(logits)
        chosen = np.take_along_axis(self.log_p[~mask], targets[:, None].astype(np.intp), axis=1)
        return -chosen.mean()

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): CrossEntropy.backward
        # HINT: what softmax says, and what it should have said; ignored rows take no part, neither
        # here nor in the mean.
        raise NotImplementedError("A2: CrossEntropy.backward")


class MSE(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"{a.shape} vs {b.shape}")
        return np.square(a - b).mean()

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): MSE.backward
        # HINT: b goes the other way.
        raise NotImplementedError("A2: MSE.backward")


class BCEWithLogits(Operation):
    def __init__(self, targets: Array) -> None:
        self.targets = targets

    def forward(self, x: Array) -> Array:
        if self.targets.shape != x.shape:
            raise ValueError(f"{self.targets.shape} vs {x.shape}")
        t = self.targets
        return -np.mean(t * log_sigmoid(x) + (1 - t) * log_sigmoid(-x))

    def backward(self, grad: Array) -> Gradients:
        # TODO (A2): BCEWithLogits.backward
        # HINT: as short as that of cross-entropy; e^-|x| never overflows, and p = e^x / (1 + e^x).
        raise NotImplementedError("A2: BCEWithLogits.backward")
