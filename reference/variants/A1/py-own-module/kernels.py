"""kernels.py: a module of the student's own: all formulas, as functions of arrays alone."""

import numpy as np

ROOT_2_OVER_PI = 0.7978845608028654


class Unfit(ValueError):
    """Shapes that do not belong together."""


def gelu(x):
    inner = ROOT_2_OVER_PI * (x + 0.044715 * x**3)
    return x * (np.tanh(inner) + 1) / 2


def softmax(x, seen=True):
    """Of the places that are seen; 0 at the others."""
    top = np.max(x, axis=-1, keepdims=True, where=seen, initial=-np.inf)
    powers = np.zeros_like(x)
    np.exp(x - top, out=powers, where=np.broadcast_to(seen, x.shape))
    return np.divide(powers, np.sum(powers, axis=-1, keepdims=True))


def layernorm(x, weight, bias, eps):
    centred = x - np.average(x, axis=-1)[..., None]
    length = np.linalg.norm(centred, axis=-1, keepdims=True)
    return weight * (centred / np.sqrt(length**2 / x.shape[-1] + eps)) + bias


def attention(q, k, v):
    T = q.shape[-2]
    scores = np.matmul(q, k.swapaxes(-2, -1)) / np.sqrt(q.shape[-1]).astype(q.dtype)
    return np.matmul(softmax(scores, np.tril(np.ones((T, T), bool))), v)


def nll(logits, targets):
    """(n, V) and (n,) to (n,)."""
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    picked = shifted[range(len(targets)), targets]
    return np.log(np.sum(np.exp(shifted), axis=1)) - picked


def bce(x, t):
    """(1 - t) x + log(1 + e^-x), the latter in two ways."""
    positive = x >= 0
    small = np.exp(np.where(positive, -x, x))
    return (1 - t) * x + np.log1p(small) - np.where(positive, 0, x)


def fit(what, one, other):
    if one != other:
        raise Unfit(f"{what}: {one} and {other}")


def normal_blocks(words):
    """(16 n,) words to (16 n,) numbers, as points on circles."""
    u = (words % 2**24).reshape(-1, 2, 8) / 2.0**24
    points = np.sqrt(-2 * np.log1p(-u[:, 0])) * np.exp(2j * np.pi * u[:, 1])
    return np.concatenate((points.real, points.imag), axis=1).ravel()
