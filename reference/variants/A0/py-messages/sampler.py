"""sampler.py in float32 and percent signs where that says the same; its own class of errors."""
from __future__ import annotations

import math

import numpy as np


class Refused(ValueError):
    """Input that cannot be answered."""

    def __init__(self, said: str, *values: object) -> None:
        super().__init__(said % values)


def random_u32(state: int) -> tuple[int, int]:
    if state <= 0 or state.bit_length() > 64:
        raise Refused("state %#x", state)
    bits = np.array([state], np.uint64)
    bits ^= bits >> 12
    bits ^= bits << 25
    bits ^= bits >> 27
    return int((bits * 0x2545F4914F6CDD1D >> 32)[0]), int(bits[0])


def random_f32(state: int) -> tuple[float, int]:
    value, state = random_u32(state)
    return math.ldexp(value >> 8, -24), state


def sample_softmax(logits: np.ndarray, coin: float) -> int:
    if not logits.size or not np.isfinite(logits).all():
        raise Refused("%d logits, largest %g", logits.size, logits.max(initial=-math.inf))
    if coin < 0 or coin >= 1:
        raise Refused("coin %g", coin)
    left = coin * _total(map(math.exp, logits))
    running = 0.0
    for i, logit in enumerate(logits):
        running += math.exp(logit)
        if running > left:
            break
    return i


def _total(values) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def check_sampling(logits, temperature, top_k, top_p) -> None:
    if logits.shape != (len(logits),) or len(logits) == 0:
        raise Refused("logits of %d dimensions, of size %d", logits.ndim, logits.size)
    largest = float(np.max(logits))  # NaN if there is one
    if not math.isfinite(largest):
        raise Refused("largest logit %g", largest)
    if not (math.isfinite(temperature) and temperature >= 0):
        raise Refused("temperature %g", temperature)
    if top_k is not None and top_k <= 0:
        raise Refused("top_k %i", top_k)
    if top_p is not None and not (top_p > 0 and top_p <= 1):
        raise Refused("top_p %g", top_p)


def softmax_weights(logits, temperature):
    with np.errstate(all="ignore"):
        z = np.divide(logits, temperature, dtype=np.float64)
        z -= z.max()
    if np.isnan(z).any():
        raise Refused("temperature %g", temperature)
    return np.exp(z, out=z)


def cut(weights, top_k=None, top_p=None):
    """Ranks by counting: how many weights come before each."""
    w = np.asarray(weights)
    ids = np.arange(w.size)
    before = (w > w[:, None]) | ((w == w[:, None]) & (ids < ids[:, None]))
    rank = before.sum(1)
    kept = w * (rank < (w.size if top_k is None else top_k))
    if top_p is None or top_p == 1:
        return kept
    ordered = np.zeros(w.size)
    ordered[rank] = kept
    sums = np.cumsum(ordered)
    missing = np.concatenate(([True], sums[:-1] < top_p * sums[-1]))
    return kept * missing[rank]


def sample_pcg(logits, temperature, rng, top_k=None, top_p=None) -> int:
    check_sampling(logits, temperature, top_k, top_p)
    if temperature == 0:
        return int(np.flatnonzero(logits == logits.max())[0])
    weights = cut(softmax_weights(logits, temperature), top_k, top_p)
    limit = rng.uniform() * _total(weights)
    running = 0.0
    for i in np.flatnonzero(weights):
        running += weights[i]
        if running > limit:
            return int(i)
    raise AssertionError
