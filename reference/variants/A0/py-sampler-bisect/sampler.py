"""sampler.py by bisection of accumulated weights; the largest logit is taken away first."""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from heapq import nlargest
from itertools import accumulate
from math import exp, inf, isfinite, isnan

import numpy as np


def random_u32(state: int) -> tuple[int, int]:
    word = ctypes.c_uint64(state)
    if state == 0 or word.value != state:
        raise ValueError(f"no state: {state}")
    for change in (lambda x: x >> 12, lambda x: x << 25, lambda x: x >> 27):
        word.value ^= change(word.value)
    product = ctypes.c_uint64(word.value * 2685821657736338717)
    return product.value >> 32, word.value


def random_f32(state: int) -> tuple[float, int]:
    (value, state), unit = random_u32(state), 2.0**-24
    return unit * (value // 256), state


def _walk(sums: list[float], u: float) -> int:
    return bisect_right(sums, u * sums[-1])


def sample_softmax(logits: np.ndarray, coin: float) -> int:
    values: list[float] = list(map(float, logits))
    if not values or any(map(isnan, values)):
        raise ValueError(f"{len(values)} logits, nan: {list(map(isnan, values)).count(True)}")
    if coin < 0 or not coin < 1:
        raise ValueError(f"coin: {coin}")
    return _walk(list(accumulate(map(exp, values))), coin)


def check_sampling(logits, temperature, top_k, top_p) -> None:
    fine: list[tuple[Callable[[], bool], str]] = [
        (lambda: logits.shape == (logits.size,) != (0,), f"logits {logits.shape}"),
        (lambda: not np.isnan(logits).any(), "logits have nan"),
        (lambda: logits.max() != inf, "logits reach inf"),
        (lambda: logits.max() != -inf, "logits are all -inf"),
        (lambda: isfinite(temperature) and temperature >= 0, f"temperature {temperature!r}"),
        (lambda: top_k is None or top_k > 0, f"top_k {top_k!r}"),
        (lambda: top_p is None or 0 < top_p <= 1, f"top_p {top_p!r}"),
    ]
    for test, what in fine:
        if not test():
            raise ValueError(what)


def softmax_weights(logits, temperature):
    logits = np.asarray(logits, np.float64)
    if not isfinite(float(logits.max()) / float(temperature)):
        raise ValueError(f"temperature {temperature}: too cold")
    with np.errstate(over="ignore"):
        return np.exp((logits - logits.max()) / temperature)


def cut(weights, top_k=None, top_p=None):
    ids = range(len(weights))
    if top_k is not None:
        ids = nlargest(top_k, ids, key=lambda i: (weights[i], -i))
    if top_p is not None and top_p < 1:
        ids = sorted(ids, key=lambda i: (-weights[i], i))
        sums = list(accumulate(weights[i] for i in ids))
        ids = ids[: bisect_left(sums, top_p * sums[-1]) + 1]
    keep = set(ids)
    return np.array([w if i in keep else 0.0 for i, w in enumerate(weights)], float)


def sample_pcg(logits, temperature, rng, top_k=None, top_p=None) -> int:
    check_sampling(logits, temperature, top_k, top_p)
    if not temperature:
        return max(range(len(logits)), key=lambda i: (logits[i], -i))
    weights = cut(softmax_weights(logits, temperature), top_k, top_p)
    return _walk(list(accumulate(weights.tolist())), rng.uniform())
