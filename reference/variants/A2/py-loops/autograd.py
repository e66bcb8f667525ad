"""autograd.py with a loop for each sum on the way back, over rows, heads, positions and ids."""

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
            raise ValueError("requires_grad is False")
        if grad is None:
            if np.prod(self.shape) != 1:
                raise ValueError("grad is missing")
            grad = np.array([1.0], self.dtype).reshape(self.shape)
        if len(grad.shape) != len(self.shape) or any(n != m for n, m in zip(grad.shape, self.shape)):
            raise ValueError("grad has shape " + str(grad.shape))
        if grad.dtype != self.dtype:
            raise TypeError("grad is of " + str(grad.dtype))
        order = topological_order(self)
        gradients = {}
        for tensor in order:
            gradients[tensor] = np.zeros(tensor.shape, tensor.dtype)
        gradients[self] += grad
        for i in range(len(order) - 1, -1, -1):
            tensor = order[i]
            if tensor.creator is None:
                continue
            found = tensor.creator.gradients(gradients[tensor])
            for j in range(len(found)):
                source = tensor.creator.inputs[j]
                if source.requires_grad:
                    gradients[source] += found[j]
        for tensor in order:
            if tensor.creator is None:
                if tensor.grad is not None:
                    gradients[tensor] += tensor.grad
                tensor.grad = gradients[tensor]

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
    old = RECORDING.get()
    RECORDING.set(False)
    try:
        yield
    finally:
        RECORDING.set(old)


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
    # Who still waits for how many, and who waits for whom.
    waiting, waiters = {}, {}
    todo = [last]
    while len(todo) > 0:
        tensor = todo.pop()
        if tensor in waiting:
            continue
        waiting[tensor] = 0
        if tensor.creator is not None:
            for source in tensor.creator.inputs:
                if source.requires_grad:
                    waiting[tensor] += 1
                    waiters.setdefault(source, []).append(tensor)
                    todo.append(source)
    order = []
    ready = [tensor for tensor in waiting if waiting[tensor] == 0]
    while len(ready) > 0:
        tensor = ready.pop()
        order.append(tensor)
        for waiter in waiters.get(tensor, []):
            waiting[waiter] -= 1
            if waiting[waiter] == 0:
                ready.append(waiter)
    return order


def unbroadcast(grad: Array, shape: tuple[int, ...]) -> Array:
    result = np.zeros(shape, grad.dtype)
    front = grad.ndim - len(shape)
    for place in np.ndindex(grad.shape):
        origin = []
        for i in range(len(shape)):
            origin.append(0 if shape[i] == 1 else place[front + i])
        result[tuple(origin)] += grad[place]
    return result


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
        by_a = unbroadcast(grad * self.b, self.a.shape)
        return by_a, unbroadcast(grad * self.a, self.b.shape)


class Exp(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.exp(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        result = np.zeros_like(grad)
        for place in np.ndindex(grad.shape):
            result[place] = grad[place] * self.y[place]
        return (result,)


class Log(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        return np.log(x)

    def backward(self, grad: Array) -> Gradients:
        result = np.zeros_like(grad)
        for place in np.ndindex(grad.shape):
            result[place] = grad[place] / self.x[place]
        return (result,)


class Tanh(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        result = np.zeros_like(grad)
        for place in np.ndindex(grad.shape):
            result[place] = grad[place] * (1 - self.y[place] ** 2)
        return (result,)


class ReLU(Operation):
    def forward(self, x: Array) -> Array:
        self.y = np.maximum(x, 0)
        return self.y

    def backward(self, grad: Array) -> Gradients:
        result = np.zeros_like(grad)
        for place in np.ndindex(grad.shape):
            if self.y[place] > 0:
                result[place] = grad[place]
        return (result,)


class GELU(Operation):
    def forward(self, x: Array) -> Array:
        self.x = x
        self.t: Array = np.tanh(GELU_SCALE * (x + GELU_CUBIC * (x * x * x)))
        return 0.5 * x * (1 + self.t)

    def backward(self, grad: Array) -> Gradients:
        result = np.zeros_like(grad)
        for place in np.ndindex(grad.shape):
            x = float(self.x[place])
            t = math.tanh(GELU_SCALE * (x + GELU_CUBIC * x**3))
            du = GELU_SCALE * (1 + 3 * GELU_CUBIC * x**2)
            result[place] = float(grad[place]) * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * du)
        return (result,)


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
        result = np.zeros_like(grad)
        for place in np.ndindex(grad.shape):
            result[place] = grad[place] * self.factor[place]
        return (result,)


# ---------------------------------------------------------------- sums, shapes, products


class Sum(Operation):
    def __init__(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> None:
        self.axis, self.keepdims = axis, keepdims

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return np.asarray(x.sum(axis=self.axis, keepdims=self.keepdims))

    def backward(self, grad: Array) -> Gradients:
        result = np.zeros(self.shape, grad.dtype)
        axes = self.axis
        if axes is None:
            axes = tuple(range(result.ndim))
        if not isinstance(axes, tuple):
            axes = (axes,)
        axes = [axis % result.ndim for axis in axes]
        for place in np.ndindex(self.shape):
            if self.keepdims:
                origin = [0 if i in axes else at for i, at in enumerate(place)]
            else:
                origin = [at for i, at in enumerate(place) if i not in axes]
            result[place] = grad[tuple(origin)]
        return (result,)


class Mean(Sum):
    def forward(self, x: Array) -> Array:
        total = super().forward(x)
        self.count = x.size // total.size
        return total / self.count

    def backward(self, grad: Array) -> Gradients:
        result = Sum.backward(self, grad)[0]
        result /= self.count
        return (result,)


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
        i, j = self.axes
        shape = list(grad.shape)
        shape[i], shape[j] = shape[j], shape[i]
        result = np.zeros(shape, grad.dtype)
        for place in np.ndindex(grad.shape):
            there = list(place)
            there[i], there[j] = there[j], there[i]
            result[tuple(there)] = grad[place]
        return (result,)


class Slice(Operation):
    def __init__(self, axis: int, start: int, stop: int) -> None:
        self.axis, self.start, self.stop = axis, start, stop

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        self.index = [slice(None)] * x.ndim
        self.index[self.axis] = slice(self.start, self.stop)
        return x[tuple(self.index)]

    def backward(self, grad: Array) -> Gradients:
        result = np.zeros(self.shape, grad.dtype)
        for place in np.ndindex(grad.shape):
            there = list(place)
            there[self.axis] += self.start
            result[tuple(there)] = grad[place]
        return (result,)


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
        by_a, by_b = np.zeros_like(a), np.zeros_like(b)
        for batch in np.ndindex(grad.shape[:-2]):
            # where numpy took these matrices from: an axis of 1 is always at 0, one in front is not there
            of_a = tuple(i if n > 1 else 0 for i, n in zip(batch[len(batch) - a.ndim + 2 :], a.shape))
            of_b = tuple(i if n > 1 else 0 for i, n in zip(batch[len(batch) - b.ndim + 2 :], b.shape))
            by_a[of_a] += grad[batch] @ b[of_b].T
            by_b[of_b] += a[of_a].T @ grad[batch]
        return by_a, by_b


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
        result = np.zeros(self.shape, grad.dtype)
        rows = grad.reshape(self.ids.size, self.shape[1])
        for i, id_ in enumerate(self.ids.flatten()):
            result[id_] += rows[i]
        return (result,)


class Softmax(Operation):
    def forward(self, x: Array) -> Array:
        y: Array = np.exp(x - x.max(axis=-1, keepdims=True))
        y /= y.sum(axis=-1, keepdims=True)
        self.y = y
        return y

    def backward(self, grad: Array) -> Gradients:
        y = self.y.reshape(-1, self.y.shape[-1])
        result = np.zeros_like(y)
        for r, row in enumerate(grad.reshape(y.shape)):
            for i in range(len(row)):
                for j in range(len(row)):
                    slope = y[r, i] * (1 - y[r, i]) if i == j else -y[r, i] * y[r, j]
                    result[r, j] += row[i] * slope
        return (result.reshape(grad.shape),)


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
        by_x, by_weight, by_bias = np.zeros_like(grad), np.zeros(C, grad.dtype), np.zeros(C, grad.dtype)
        for place in np.ndindex(grad.shape[:-1]):
            normed, rstd = self.normed[place], self.rstd[place][0]
            mean = along = 0.0
            for c in range(C):
                by_bias[c] += grad[place][c]
                by_weight[c] += grad[place][c] * normed[c]
                mean += float(grad[place][c] * self.weight[c]) / C
                along += float(grad[place][c] * self.weight[c] * normed[c]) / C
            for c in range(C):
                by_normed = grad[place][c] * self.weight[c]
                by_x[place + (c,)] = (by_normed - mean - normed[c] * along) * rstd
        return by_x, by_weight, by_bias


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
        by_q, by_k, by_v = np.zeros_like(self.q), np.zeros_like(self.k), np.zeros_like(self.v)
        T, hs = self.q.shape[-2:]
        for head in np.ndindex(self.q.shape[:-2]):
            q, k, v, y = self.q[head], self.k[head], self.v[head], self.softmax.y[head]
            for t in range(T):
                by_y = [np.dot(grad[head][t], v[s]) for s in range(t + 1)]
                mean = sum(y[t, s] * by_y[s] for s in range(t + 1))
                for s in range(t + 1):
                    by_score = y[t, s] * (by_y[s] - mean) / math.sqrt(hs)
                    by_v[head][s] += y[t, s] * grad[head][t]
                    by_q[head][t] += by_score * k[s]
                    by_k[head][s] += by_score * q[t]
        return by_q, by_k, by_v


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
        result = np.zeros(self.shape, grad.dtype)
        n = np.count_nonzero(self.rows)
        i = 0
        for place in np.ndindex(self.shape[:-1]):
            if self.rows[place]:
                for c in range(self.shape[-1]):
                    result[place + (c,)] = np.exp(self.shifted[i, c]) / self.sums[i, 0]
                result[place + (self.targets[place],)] -= 1
                result[place] *= grad / n
                i += 1
        return (result,)


class MSE(Operation):
    def forward(self, a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape}")
        self.difference = a - b
        return np.asarray(np.mean(self.difference * self.difference))

    def backward(self, grad: Array) -> Gradients:
        by_a, by_b = np.zeros_like(self.difference), np.zeros_like(self.difference)
        for place in np.ndindex(self.difference.shape):
            by_a[place] = 2 * self.difference[place] * grad / self.difference.size
            by_b[place] = -by_a[place]
        return by_a, by_b


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
        result = np.zeros_like(self.x)
        for place in np.ndindex(self.x.shape):
            x = float(self.x[place])
            if x >= 0:
                p = 1 / (1 + math.exp(-x))
            else:
                p = math.exp(x) / (1 + math.exp(x))
            result[place] = (p - float(self.t[place])) * float(grad) / self.x.size
        return (result,)
