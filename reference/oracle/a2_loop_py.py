"""What loop_py.py of A2 must report: orders drawn with spec/pcg32.md's Fisher-Yates, and a step by
hand. What a network learns is not here: bars (staff/bars.py) decide it."""

from __future__ import annotations

import math

import numpy as np
from given import given_u64
from samples import Draw

from reference.oracle.a0 import Values
from reference.oracle.a1_autograd_py import Array
from reference.oracle.a2_optim_py import many


def reals(*values: float) -> Array:
    return np.array(values, np.float64)


def epoch(name: str, order: list[int], size: int, drop: bool) -> Values:
    """What an epoch in this order reports: row i is (i, i + 1/2), and 10 i."""
    sizes = [size] * (len(order) // size)
    if not drop and len(order) % size:
        sizes.append(len(order) % size)
    used = np.array(order[: sum(sizes)], np.int64)
    return {
        f"{name}_length": many(len(sizes)),
        f"{name}_sizes": many(*sizes),
        f"{name}_x": np.stack([used, used + 0.5], axis=1).reshape(-1),
        f"{name}_y": 10 * used,
    }


def batches(seed: int) -> Values:
    values: Values = {}
    for name, n, size, drop in (
        ("kept", 7, 3, False),
        ("dropped", 7, 3, True),
        ("whole_kept", 6, 3, False),
        ("whole_dropped", 6, 3, True),
        ("few_kept", 2, 3, False),
        ("few_dropped", 2, 3, True),
        ("one", 3, 1, True),
        ("unused", 7, 3, True),
        ("again", 7, 3, True),
    ):
        values |= epoch(name, list(range(n)), size, drop)
    twice = (0, 10, 20, 0, 10, 20, 30, 40, 50, 30, 40, 50)
    return values | {"default": many(2), "at_once": many(*twice)}


def orders(seed: int, n: int, epochs: int) -> list[list[int]]:
    """Permutations of 0 .. n-1: from the last place to the second, each swapped with a place that
    is not behind it."""
    found, drawn = [], 0
    for _ in range(epochs):
        order = list(range(n))
        for last in reversed(range(1, n)):
            other = (given_u64(seed, 700_000 + drawn) >> 32) % (last + 1)
            order[last], order[other] = order[other], order[last]
            drawn += 1
        found.append(order)
    return found


def shuffled(seed: int) -> Values:
    values: Values = {}
    for name, order in zip(("first", "second", "third"), orders(seed, 11, 3), strict=True):
        values |= epoch(name, order, 4, False)
    return values | epoch("dropped", orders(seed + 1, 11, 1)[0], 4, True)


def step(seed: int) -> Values:
    """From w = 2, b = 0, then from 2.3, 0.2: residuals -1, -1, then -0.5, -0.2."""
    return {
        "first_loss": reals(1.0),
        "first_updates": many(1),
        "first_gradients": reals(-3.0, -2.0),
        "first_parameters": reals(2.3, 0.2),
        "second_loss": reals(0.145),
        "second_updates": many(2),
        "second_gradients": reals(-0.9, -0.7),
        "second_parameters": reals(2.39, 0.27),
        "modes": many(0, 0, 0),
        "metrics": reals(1.0, 0.25, 2.0),
    }


def vector(seed: int) -> Values:
    return {
        "vector_updates": many(0),
        "vector_parameters": reals(2.0, 0.0),
        "row": reals(1.0),
    }


def finite(seed: int) -> Values:
    values = {"after": reals(1.0), "after_gradients": reals(-3.0, -2.0)}
    for name in ("nan", "inf", "minus_inf"):
        values |= {f"{name}_updates": many(0), f"{name}_averaged": many(0)}
        values[f"{name}_backwards"] = many(0)
        values[f"{name}_parameters"] = reals(2.0, 0.0)
    return values


def clip_step(seed: int) -> Values:
    values: Values = {}
    norm = math.sqrt(13)
    for name, factor in (("one", 1 / norm), ("four", 1.0), ("none", 1.0)):
        values[f"{name}_norm"] = reals(norm)
        values[f"{name}_gradients"] = reals(-3 * factor, -2 * factor)
        values[f"{name}_parameters"] = reals(2 + 0.3 * factor, 0.2 * factor)
    return values


def ema_step(seed: int) -> Values:
    return {"said": reals(101.0, 102.0), "averaged": reals(1.0, 0.145), "without": many(0)}


def evaluate(seed: int) -> Values:
    x = Draw(seed, 0)(10)
    return {
        "means": reals(math.fsum(x) / 10, sum(1 for value in x if value < 0) / 10),
        "n": many(10),
        "rows": many(4, 4, 2),
        "modes": many(*[0] * 15),
        "recording": many(0, 0, 0),
        "modes_after": many(1, 0, 1, 1, 0),
        "recording_after": many(1),
        "recording_nested": many(0),
        "modes_of_empty": many(1, 0, 1, 1, 0),
        "modes_of_eval": many(0, 0, 1, 1, 0),
    }


def evaluate_error(seed: int) -> Values:
    values: Values = {}
    for name in ("batch", "loader", "interrupt"):
        values |= {f"{name}_modes": many(1, 0, 1, 1, 0), f"{name}_recording": many(1)}
    return values


def nothing(seed: int) -> Values:
    return {}


CASES = {
    "loop_py": {
        "batches": ("by hand", batches),
        "shuffled": ("spec/pcg32.md's Fisher-Yates", shuffled),
        "loader_refused": ("by hand", nothing),
        "step": ("by hand", step),
        "vector": ("by hand", vector),
        "finite": ("by hand", finite),
        "clip_step": ("by hand", clip_step),
        "ema_step": ("by hand", ema_step),
        "evaluate": ("by hand, means by math.fsum", evaluate),
        "evaluate_error": ("by hand", evaluate_error),
        "xor": ("golden/bars.tsv", nothing),
        "moons": ("golden/bars.tsv", nothing),
        "same_seed": ("one run beside the other", nothing),
    }
}
