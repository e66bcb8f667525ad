"""autograd.py without annotations or docstrings; computes in float64, or wider, and rounds at the end."""
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
RECORDING = ContextVar('RECORDING', default=True)
GELU_SCALE = math.sqrt(2 / math.pi)
GELU_CUBIC = 0.044715
WIDE = np.longdouble

def widened(forward):

    def narrow(self, *arrays):
        result = forward(self, *(array.astype(WIDE) for array in arrays))
        return np.asarray(result).astype(arrays[0].dtype)
    return narrow

class Tensor:
    __array_ufunc__ = None

    def __init__(self, data, requires_grad=False):
        array = np.asarray(data)
        if array.dtype not in FLOATS:
            raise TypeError(f'{array.dtype} data, want float32 or float64')
        self.data = array
        self.requires_grad = requires_grad
        self.grad = None
        self.creator = None

    @property
    def shape(self):
        return self.data.shape

    @property
    def dtype(self):
        return self.data.dtype

    def __repr__(self):
        return f'Tensor{self.shape} of {self.dtype}'

    def backward(self, grad=None):
        raise NotImplementedError('A2: Tensor.backward')

    def __add__(self, other):
        return Add()(self, self._like(other))

    def __mul__(self, other):
        return Mul()(self, self._like(other))

    def __matmul__(self, other):
        return MatMul()(self, other)

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -self._like(other)

    def __rsub__(self, other):
        return -self + other
    __radd__, __rmul__ = (__add__, __mul__)

    def _like(self, other):
        if isinstance(other, np.ndarray):
            raise TypeError(f'an array {other.shape} beside {self!r}: make it a Tensor')
        return other if isinstance(other, Tensor) else Tensor(np.asarray(other, self.dtype))

@contextmanager
def no_grad():
    raise NotImplementedError('A2: no_grad')

class Operation:
    inputs = ()
    called = False
    forward: Callable[..., Array]
    backward: Callable[[Array], Gradients]

    def __call__(self, *inputs):
        name, dtypes = (type(self).__name__, {tensor.dtype for tensor in inputs})
        if self.called:
            raise RuntimeError(f'this {name} was called before: each call wants its own {name}()')
        if len(dtypes) != 1:
            raise TypeError(f"{' and '.join(sorted(map(str, dtypes)))} in {name}")
        self.called = True
        result = Tensor(self.forward(*(tensor.data for tensor in inputs)))
        if RECORDING.get() and any((tensor.requires_grad for tensor in inputs)):
            self.inputs = inputs
            result.requires_grad, result.creator = (True, self)
        return result

    def gradients(self, grad):
        found = self.backward(grad)
        got = [(array.shape, str(array.dtype)) for array in found]
        want = [(tensor.shape, str(tensor.dtype)) for tensor in self.inputs]
        if got != want:
            raise TypeError(f'{type(self).__name__}.backward returned {got}, want {want}')
        return found

def topological_order(last):
    raise NotImplementedError('A2: topological_order')

def unbroadcast(grad, shape):
    raise NotImplementedError('A2: unbroadcast')

class Add(Operation):

    def forward(self, a, b):
        return sum((a, b))

    def backward(self, grad):
        raise NotImplementedError('A2: Add.backward')

class Mul(Operation):

    def forward(self, a, b):
        return math.prod((a, b))

    def backward(self, grad):
        raise NotImplementedError('A2: Mul.backward')

class Exp(Operation):

    def forward(self, x):
        return np.exp(x, dtype=np.float64).astype(x.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: Exp.backward')

class Log(Operation):

    def forward(self, x):
        return np.log(x, dtype=np.float64).astype(x.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: Log.backward')

class Tanh(Operation):

    def forward(self, x):
        return np.tanh(x, dtype=np.float64).astype(x.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: Tanh.backward')

class ReLU(Operation):

    def forward(self, x):
        return (x + abs(x)) / 2

    def backward(self, grad):
        raise NotImplementedError('A2: ReLU.backward')

class GELU(Operation):

    def forward(self, x):

        @widened
        def forward(self, x):
            u = GELU_SCALE * x * np.polyval([GELU_CUBIC, 0, 1], x)
            return x / (1 + np.exp(-2 * u))
        return forward(self, x)

    def backward(self, grad):
        raise NotImplementedError('A2: GELU.backward')

class Dropout(Operation):

    def __init__(self, p, rng):
        if not 0 <= p < 1:
            raise ValueError(f'p is {p}, not within [0, 1)')
        self.p, self.rng = (p, rng)

    def forward(self, x):
        u = self.rng.uniforms(x.size)
        flat = x.flatten()
        flat /= 1 - self.p
        for i in range(x.size):
            if u[i] < self.p:
                flat[i] = 0
        return flat.reshape(x.shape)

    def backward(self, grad):
        raise NotImplementedError('A2: Dropout.backward')

class Sum(Operation):

    def __init__(self, axis=None, keepdims=False):
        self.axis, self.keepdims = (axis, keepdims)

    def forward(self, x):
        if self.axis is None:
            total = np.array(math.fsum(x.flat), x.dtype)
            return total.reshape((1,) * x.ndim) if self.keepdims else total
        return x.sum(self.axis, dtype=np.float64, keepdims=self.keepdims).astype(x.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: Sum.backward')

class Mean(Sum):

    def forward(self, x):
        return x.mean(self.axis, dtype=np.float64, keepdims=self.keepdims).astype(x.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: Mean.backward')

class Reshape(Operation):

    def __init__(self, *shape):
        self.wanted = shape

    def forward(self, x):
        return np.reshape(x.tolist(), self.wanted).astype(x.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: Reshape.backward')

class Transpose(Operation):

    def __init__(self, first, second):
        self.axes = (first, second)

    def forward(self, x):
        i, j = self.axes
        numbers = list(range(x.ndim))
        numbers[i], numbers[j] = (numbers[j], numbers[i])
        return x.transpose(numbers)

    def backward(self, grad):
        raise NotImplementedError('A2: Transpose.backward')

class Slice(Operation):

    def __init__(self, axis, start, stop):
        self.axis, self.start, self.stop = (axis, start, stop)

    def forward(self, x):
        gone = [i for i in range(x.shape[self.axis]) if not self.start <= i < self.stop]
        return np.delete(x, gone, self.axis)

    def backward(self, grad):
        raise NotImplementedError('A2: Slice.backward')

def split(x, parts, axis=-1):
    if parts < 1 or x.shape[axis] % parts:
        raise ValueError(f'{x!r}: axis {axis} has no {parts} equal parts')
    size = x.shape[axis] // parts
    return [Slice(axis, i * size, (i + 1) * size)(x) for i in range(parts)]

class MatMul(Operation):

    def forward(self, a, b):
        if a.ndim < 2:
            raise ValueError('a: ' + repr(a.shape))
        if b.ndim < 2:
            raise ValueError('b: ' + repr(b.shape))
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: MatMul.backward')

def check_ids(what, ids, V):
    if ids.dtype.kind not in 'iu':
        raise TypeError(f'{what}s of type {ids.dtype}, want integers')
    for id_ in (int(ids.min()), int(ids.max())) if ids.size else ():
        if not 0 <= id_ < V:
            raise IndexError(f'{what} {id_} is outside 0..{V - 1}')

class Embedding(Operation):

    def __init__(self, ids):
        self.ids = ids

    def forward(self, weight):
        check_ids('id', self.ids, len(weight))
        rows = [weight[i] for i in self.ids.ravel()]
        return np.reshape(rows, self.ids.shape + weight.shape[1:]).astype(weight.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: Embedding.backward')

class Softmax(Operation):

    def forward(self, x):

        @widened
        def forward(self, x):
            return np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        return forward(self, x - x.max(-1, keepdims=True))

    def backward(self, grad):
        raise NotImplementedError('A2: Softmax.backward')

class LayerNorm(Operation):

    def __init__(self, eps=1e-05):
        self.eps = eps

    def forward(self, x, weight, bias):

        @widened
        def forward(self, x, weight, bias):
            mean = x.mean(-1, keepdims=True)
            variance = np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0)
            return (x - mean) / np.sqrt(variance + self.eps) * weight + bias
        return forward(self, x, weight, bias)

    def backward(self, grad):
        raise NotImplementedError('A2: LayerNorm.backward')

class CausalAttention(Operation):

    def forward(self, q, k, v):
        T, hs = q.shape[-2:]

        @widened
        def forward(self, q, k, v):
            shape = q.shape
            result = []
            for one_q, one_k, one_v in zip(*(each.reshape(-1, T, hs) for each in (q, k, v))):
                for t in range(T):
                    scores = one_k[:t + 1].dot(one_q[t]) / math.sqrt(hs)
                    powers = np.exp(scores - scores.max())
                    result.append(powers.dot(one_v[:t + 1]) / powers.sum())
            return np.reshape(result, shape)
        return forward(self, q, k, v)

    def backward(self, grad):
        raise NotImplementedError('A2: CausalAttention.backward')

class CrossEntropy(Operation):

    def __init__(self, targets, ignore_index=-100):
        self.targets, self.ignore_index = (targets, ignore_index)

    def forward(self, logits):
        if logits.shape[:-1] != self.targets.shape:
            raise ValueError('targets: ' + repr(self.targets.shape))
        some = self.targets[self.targets != self.ignore_index]
        if len(some) == 0:
            raise ValueError('no targets')
        check_ids('target', some, logits.shape[-1])
        losses = []
        for place, target in np.ndenumerate(self.targets):
            if target != self.ignore_index:
                row = logits[place].astype(np.float64)
                row = row - row.max()
                losses.append(np.log(np.exp(row).sum()) - row[target])
        return np.mean(losses).astype(logits.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: CrossEntropy.backward')

class MSE(Operation):

    def forward(self, a, b):
        if a.shape != b.shape:
            raise ValueError('MSE of ' + repr(a.shape) + ' and ' + repr(b.shape))
        return np.mean((a - b) ** 2, dtype=np.float64).astype(a.dtype)

    def backward(self, grad):
        raise NotImplementedError('A2: MSE.backward')

class BCEWithLogits(Operation):

    def __init__(self, targets):
        self.targets = targets

    def forward(self, x):
        if x.shape != self.targets.shape:
            raise ValueError('targets: ' + repr(self.targets.shape))

        @widened
        def forward(self, x, t):
            p_is_half_or_more = x >= 0
            away = np.exp(-abs(x))
            log_p = np.where(p_is_half_or_more, 0, x) - np.log1p(away)
            log_not_p = np.where(p_is_half_or_more, -x, 0) - np.log1p(away)
            return -(t * log_p + (1 - t) * log_not_p).mean()
        return forward(self, x, self.targets)

    def backward(self, grad):
        raise NotImplementedError('A2: BCEWithLogits.backward')
