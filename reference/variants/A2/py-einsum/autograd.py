"""autograd.py with einsum for each gradient, without annotations or docstrings."""
from __future__ import annotations
from contextlib import ExitStack
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
LETTERS = 'abcdefghijklmnopqrstuvwxyz'

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
        if not self.requires_grad:
            raise ValueError('no gradient')
        if grad is None:
            if self.data.size != 1:
                raise ValueError('of which of %d?' % self.data.size)
            grad = np.array(1, self.dtype).reshape(self.shape)
        if grad.shape != self.shape or grad.dtype != self.dtype:
            kind = ValueError if grad.shape != self.shape else TypeError
            raise kind('%s %s for %s %s' % (grad.dtype, grad.shape, self.dtype, self.shape))
        arrived = {id(self): [grad]}
        for tensor in topological_order(self)[::-1]:
            grads = arrived.pop(id(tensor))
            if tensor.creator is not None:
                total = sum(grads[1:], grads[0])
                for source, found in zip(tensor.creator.inputs, tensor.creator.gradients(total)):
                    arrived.setdefault(id(source), []).append(found)
            else:
                if tensor.grad is not None:
                    grads.insert(0, tensor.grad)
                tensor.grad = np.sum(grads, axis=0).reshape(tensor.shape)

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
    with ExitStack() as stack:
        stack.callback(RECORDING.reset, RECORDING.set(False))
        yield

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
    order = {}
    stack = [last]
    while stack:
        tensor = stack[-1]
        below = tensor.creator.inputs if tensor.creator else ()
        waiting = [t for t in below if t.requires_grad and t not in order]
        stack += waiting
        if not waiting:
            order[stack.pop()] = True
    return list(order)

def unbroadcast(grad, shape):
    letters = LETTERS[:grad.ndim]
    front = grad.ndim - len(shape)
    kept = ''.join((letter for letter, n in zip(letters[front:], shape) if n != 1))
    return np.einsum(letters + '->' + kept, grad).reshape(shape)

class Add(Operation):

    def forward(self, a, b):
        self.shapes = (a.shape, b.shape)
        return a + b

    def backward(self, grad):
        return tuple((unbroadcast(grad, shape) for shape in self.shapes))

class Mul(Operation):

    def forward(self, a, b):
        self.a, self.b = (a, b)
        return a * b

    def backward(self, grad):
        by_a = np.einsum('...,...->...', grad, self.b)
        by_b = np.einsum('...,...->...', grad, self.a)
        return (unbroadcast(by_a, self.a.shape), unbroadcast(by_b, self.b.shape))

class Exp(Operation):

    def forward(self, x):
        self.y = np.exp(x)
        return self.y

    def backward(self, grad):
        return (np.einsum('...,...->...', grad, self.y),)

class Log(Operation):

    def forward(self, x):
        self.x = x
        return np.log(x)

    def backward(self, grad):
        return (np.einsum('...,...->...', grad, 1 / self.x),)

class Tanh(Operation):

    def forward(self, x):
        self.y = np.tanh(x)
        return self.y

    def backward(self, grad):
        return (grad - np.einsum('...,...,...->...', grad, self.y, self.y),)

class ReLU(Operation):

    def forward(self, x):
        self.y = np.maximum(x, 0)
        return self.y

    def backward(self, grad):
        return (np.einsum('...,...->...', grad, (self.y > 0).astype(grad.dtype)),)

class GELU(Operation):

    def forward(self, x):
        self.x = x
        self.t = np.tanh(GELU_SCALE * (x + GELU_CUBIC * (x * x * x)))
        return 0.5 * x * (1 + self.t)

    def backward(self, grad):
        u = GELU_SCALE * (self.x + GELU_CUBIC * self.x ** 3)
        sech2 = 1 / np.cosh(np.minimum(np.abs(u), 40)) ** 2
        slope = GELU_SCALE * (1 + 3 * GELU_CUBIC * self.x ** 2)
        inside = np.einsum('...,...,...->...', self.x, sech2, slope)
        return (np.einsum('...,...->...', grad, (1 + self.t + inside) / 2),)

class Dropout(Operation):

    def __init__(self, p, rng):
        if not 0 <= p < 1:
            raise ValueError(f'p is {p}, not within [0, 1)')
        self.p, self.rng = (p, rng)

    def forward(self, x):
        kept = self.rng.uniforms(x.size).reshape(x.shape) >= self.p
        self.factor = kept.astype(x.dtype) / (1 - self.p)
        return x * self.factor

    def backward(self, grad):
        return (np.einsum('...,...->...', grad, self.factor),)

class Sum(Operation):

    def __init__(self, axis=None, keepdims=False):
        self.axis, self.keepdims = (axis, keepdims)

    def forward(self, x):
        self.shape = x.shape
        return np.asarray(x.sum(axis=self.axis, keepdims=self.keepdims))

    def backward(self, grad):
        all_letters = LETTERS[:len(self.shape)]
        axes = range(len(self.shape)) if self.axis is None else self.axis
        axes = [axis % len(self.shape) for axis in ((axes,) if isinstance(axes, int) else axes)]
        left = ''.join((letter for i, letter in enumerate(all_letters) if i not in axes))
        grad = grad.reshape([n for i, n in enumerate(self.shape) if i not in axes])
        ones = [np.ones(self.shape[axis], grad.dtype) for axis in axes]
        return (np.einsum(','.join([left, *(all_letters[axis] for axis in axes)]) + '->' + all_letters, grad, *ones),)

class Mean(Sum):

    def forward(self, x):
        total = super().forward(x)
        self.count = x.size // total.size
        return total / self.count

    def backward(self, grad):
        return super().backward(np.array(grad / self.count))

class Reshape(Operation):

    def __init__(self, *shape):
        self.wanted = shape

    def forward(self, x):
        self.shape = x.shape
        return x.reshape(self.wanted)

    def backward(self, grad):
        return (grad.reshape(*self.shape) if self.shape else grad.reshape(()),)

class Transpose(Operation):

    def __init__(self, first, second):
        self.axes = (first, second)

    def forward(self, x):
        return x.swapaxes(*self.axes)

    def backward(self, grad):
        order = list(range(grad.ndim))
        i, j = self.axes
        order[i], order[j] = (order[j], order[i])
        return (np.einsum(grad, order, list(range(grad.ndim))),)

class Slice(Operation):

    def __init__(self, axis, start, stop):
        self.axis, self.start, self.stop = (axis, start, stop)

    def forward(self, x):
        self.shape = x.shape
        self.index = [slice(None)] * x.ndim
        self.index[self.axis] = slice(self.start, self.stop)
        return x[tuple(self.index)]

    def backward(self, grad):
        eye = np.eye(self.shape[self.axis], dtype=grad.dtype)[self.start:self.stop]
        moved = np.einsum('...s,sn->...n', np.moveaxis(grad, self.axis, -1), eye)
        return (np.moveaxis(moved, -1, self.axis),)

def split(x, parts, axis=-1):
    if parts < 1 or x.shape[axis] % parts:
        raise ValueError(f'{x!r}: axis {axis} has no {parts} equal parts')
    size = x.shape[axis] // parts
    return [Slice(axis, i * size, (i + 1) * size)(x) for i in range(parts)]

class MatMul(Operation):

    def forward(self, a, b):
        if a.ndim < 2 or b.ndim < 2:
            raise ValueError(f'matrices of shape {a.shape} and {b.shape}, want two axes or more')
        self.a, self.b = (a, b)
        if b.ndim == 2:
            return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
        return a @ b

    def backward(self, grad):
        by_a = np.einsum('...nm,...km->...nk', grad, self.b)
        by_b = np.einsum('...nm,...nk->...km', grad, self.a)
        return (unbroadcast(by_a, self.a.shape), unbroadcast(by_b, self.b.shape))

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
        self.shape = weight.shape
        return weight[self.ids]

    def backward(self, grad):
        places = self.ids.ravel() == np.arange(self.shape[0])[:, None]
        return (np.einsum('vn,nc->vc', places.astype(grad.dtype), grad.reshape(-1, grad.shape[-1])),)

class Softmax(Operation):

    def forward(self, x):
        y = np.exp(x - x.max(axis=-1, keepdims=True))
        y /= y.sum(axis=-1, keepdims=True)
        self.y = y
        return y

    def backward(self, grad):
        dots = np.einsum('...v,...v->...', grad, self.y)
        return (np.einsum('...v,...v->...v', self.y, grad - dots[..., None]),)

class LayerNorm(Operation):

    def __init__(self, eps=1e-05):
        self.eps = eps

    def forward(self, x, weight, bias):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        self.rstd = 1 / np.sqrt(variance + self.eps)
        self.normed = centred * self.rstd
        self.weight = weight
        result = self.normed * weight + bias
        return result

    def backward(self, grad):
        n, C = (self.normed, grad.shape[-1])
        g = np.einsum('...c,c->...c', grad, self.weight)
        g_n = np.einsum('...c,...c->...', g, n)
        inner = g - np.einsum('...c->...', g)[..., None] / C - np.einsum('...,...c->...c', g_n, n) / C
        by_x = np.einsum('...c,...x->...c', inner, self.rstd)
        rows, n = (grad.reshape(-1, C), n.reshape(-1, C))
        return (by_x, np.einsum('rc,rc->c', rows, n), np.einsum('rc->c', rows))

class CausalAttention(Operation):

    def forward(self, q, k, v):
        T, hs = q.shape[-2:]
        self.scale = 1 / math.sqrt(hs)
        scores = q @ k.swapaxes(-1, -2)
        scores *= self.scale
        np.copyto(scores, -np.inf, where=np.triu(np.ones((T, T), bool), 1))
        self.q, self.k, self.v = (q, k, v)
        self.softmax = Softmax()
        return self.softmax.forward(scores) @ v

    def backward(self, grad):
        y = self.softmax.y
        by_y = np.einsum('...ti,...si->...ts', grad, self.v)
        dots = np.einsum('...ts,...ts->...t', by_y, y)
        by_scores = np.einsum('...ts,...ts->...ts', y, by_y - dots[..., None]) * self.scale
        by_q = np.einsum('...ts,...si->...ti', by_scores, self.k)
        by_k = np.einsum('...ts,...ti->...si', by_scores, self.q)
        return (by_q, by_k, np.einsum('...ts,...ti->...si', y, grad))

class CrossEntropy(Operation):

    def __init__(self, targets, ignore_index=-100):
        self.targets, self.ignore_index = (targets, ignore_index)

    def forward(self, logits):
        V = logits.shape[-1]
        if logits.shape[:-1] != self.targets.shape:
            raise ValueError(f'targets of shape {self.targets.shape} for logits {logits.shape}')
        self.shape, self.rows = (logits.shape, self.targets != self.ignore_index)
        learnt = self.targets[self.rows]
        if not learnt.size:
            raise ValueError(f'none of {self.targets.size} targets is to be learnt from')
        check_ids('target', learnt, V)
        self.at = (np.arange(learnt.size), learnt)
        self.shifted = logits[self.rows]
        self.shifted -= self.shifted.max(axis=-1, keepdims=True)
        self.sums = np.exp(self.shifted).sum(axis=-1, keepdims=True)
        losses = np.log(self.sums[:, 0]) - self.shifted[self.at]
        return np.asarray(losses.mean())

    def backward(self, grad):
        y = np.einsum('nv,nx->nv', np.exp(self.shifted), 1 / self.sums)
        y[self.at] -= 1
        whole = np.zeros(self.shape, grad.dtype)
        whole[self.rows] = np.einsum('nv,->nv', y, grad) / len(y)
        return (whole,)

class MSE(Operation):

    def forward(self, a, b):
        if a.shape != b.shape:
            raise ValueError(f'shapes {a.shape} and {b.shape}')
        self.difference = a - b
        return np.asarray(np.mean(self.difference * self.difference))

    def backward(self, grad):
        by_a = np.einsum('...,->...', self.difference, 2 / self.difference.size * grad)
        return (by_a, -by_a)

class BCEWithLogits(Operation):

    def __init__(self, targets):
        self.targets = targets

    def forward(self, x):
        if x.shape != self.targets.shape:
            raise ValueError(f'targets of shape {self.targets.shape} for logits {x.shape}')
        self.x, self.t = (x, self.targets.astype(x.dtype))
        losses = np.maximum(x, 0) - x * self.t + np.log1p(np.exp(-np.abs(x)))
        return np.asarray(losses.mean())

    def backward(self, grad):
        big = self.x > 0
        small = np.exp(np.where(big, -self.x, self.x))
        p = np.where(big, 1 / (1 + small), small / (1 + small))
        return (np.einsum('...,->...', p - self.t, grad / p.size),)
