"""What sampler_py.py must report: Vigna's recurrence, and distributions by sorting and fsum."""

from __future__ import annotations

import math

import numpy as np

from reference.oracle.a0 import Case, Values, given_int, given_u64, given_unit, u32, xorshift


def many(values: object) -> np.ndarray:
    return np.array(values, np.int64).ravel()


def f64(values: object) -> np.ndarray:
    return np.array(values, np.float64).ravel()


def logits_of(seed: int, place: int, size: int) -> list[float]:
    return [float(np.float32(4 * (given_unit(seed, place + i) - 0.5))) for i in range(size)]


def xorshift_u32(seed: int) -> Values:
    values: Values = {}
    for name, start in (("1", 1), ("seed", given_u64(seed, 0) | 1)):
        values[f"draws_{name}"] = u32(xorshift(start, 8)[0])
        states = [xorshift(start, count)[1] for count in range(1, 9)]
        values[f"states_{name}"] = np.array(states, np.uint64)
    return values


def xorshift_f32(seed: int) -> Values:
    draws, state = xorshift(given_u64(seed, 1) | 1, 8)
    return {"draws": f64([(d >> 8) / 2**24 for d in draws]), "state": np.array([state], np.uint64)}


def pick(weights: list[float], u: float) -> int:
    """The first id whose share, summed exactly, exceeds u."""
    goal = u * math.fsum(weights)
    return next(i for i in range(len(weights)) if math.fsum(weights[: i + 1]) > goal)


def coin_walk(seed: int) -> Values:
    weights = [math.exp(z) for z in logits_of(seed, 0, given_int(seed, 99, 10, 20))]
    ids = [pick(weights, float(given_unit(seed, 100 + i))) for i in range(500)]
    same = {"on_boundary": many(range(8)), "between": many(range(8)), "peaked": many([2] * 4)}
    near = [index for i in range(500, 4000, 500) for index in (i - 1, i)]  # below a boundary, above
    return same | {"ids": many(ids), "many": many(near)}


def weights_of(logits: list[float], temperature: float) -> list[float]:
    return [math.exp((z - max(logits)) / temperature) for z in logits]


def pcg_weights(seed: int) -> Values:
    logits = logits_of(seed, 0, given_int(seed, 99, 20, 30))
    large = [float(np.float32(z) + np.float32(2000)) for z in logits]
    masked = list(logits)
    masked[given_int(seed, 98, 0, 20)] = -math.inf
    temperatures = {"low": 0.25, "one": 1.0, "high": 1.7}
    return {name: f64(weights_of(logits, tau)) for name, tau in temperatures.items()} | {
        "large": f64(weights_of(large, 0.5)),
        "masked": f64(weights_of(masked, 0.5)),
        "logits_after": np.array(logits, np.float32),
    }


def cut(weights: list[float], k: int | None = None, p: float = 1.0) -> list[float]:
    """Largest first, of equals the lower id, until k are kept or p of those k is reached."""
    order = sorted(range(len(weights)), key=lambda i: (-weights[i], i))[:k]
    total = math.fsum(weights[i] for i in order)
    kept: set[int] = set()
    for i in order:
        if p < 1 and math.fsum(weights[j] for j in kept) >= p * total:
            break
        kept.add(i)
    return [w if i in kept else 0.0 for i, w in enumerate(weights)]


def pcg_cut(seed: int) -> Values:
    size = given_int(seed, 99, 20, 30)
    weights = [float(given_int(seed, i, 1, 12)) for i in range(size)]
    sizes = {"1": 1, "5": 5, "minus_1": size - 1, "0": size, "7": size + 7}
    values = {f"top_k_{name}": f64(cut(weights, k)) for name, k in sizes.items()}
    total = int(sum(weights))
    for name, share in (("little", 0.01), ("some", 0.4), ("most", 0.9)):
        values[f"top_p_{name}"] = f64(cut(weights, None, (int(share * total) + 0.5) / total))
    left = int(sum(sorted(weights)[-9:]))
    return values | {
        "top_p_1": f64(weights),
        "neither": f64(weights),
        "weights_after": f64(weights),
        "both": f64(cut(weights, 9, (left // 2 + 0.5) / left)),
        "equal_k_3": f64([1] * 3 + [0] * 5),
        "equal_p_half": f64([1] * 4 + [0] * 4),
        "equal_p_most": f64([1, 1]),
        "tail_p_1": f64([1.0, 1e-18, 1e-18]),
    }


def pcg_walk(seed: int) -> Values:
    return {"on_boundary": many(range(8)), "last": many([7]), "calls": many([3])}


def pcg_greedy(seed: int) -> Values:
    logits = logits_of(seed, 0, 30)
    largest = [logits.index(max(logits[:n])) for n in range(1, 31)]
    first = given_int(seed, 50, 0, 15)
    return {"largest": many(largest), "of_equals": many([first]), "calls": many([0])}


def pcg_ids(seed: int) -> Values:
    logits = logits_of(seed, 0, given_int(seed, 99, 20, 30))
    runs = {
        "plain": weights_of(logits, 0.7),
        "hot": weights_of(logits, 2.5),
        "top_k": cut(weights_of(logits, 1.0), 6),
        "top_p": cut(weights_of(logits, 1.0), None, 0.75),
        "both": cut(weights_of(logits, 1.0), 6, 0.75),
    }
    values: Values = {"calls": many([400])}
    for run, (name, weights) in enumerate(runs.items()):
        coins = [float(given_unit(seed, 100 + 80 * run + i)) for i in range(80)]
        values[name] = many([pick(weights, u) for u in coins])
    return values


VIGNA = "Vigna's published recurrence in Python integers"
EXACT = "math.exp and math.fsum in Python"
CASES: dict[str, dict[str, Case]] = {
    "sampler_py": {
        "xorshift_u32": (VIGNA, xorshift_u32),
        "xorshift_f32": (VIGNA, xorshift_f32),
        "coin_walk": (EXACT, coin_walk),
        "pcg_weights": (EXACT, pcg_weights),
        "pcg_cut": (EXACT, pcg_cut),
        "pcg_walk": ("by definition", pcg_walk),
        "pcg_greedy": ("by definition", pcg_greedy),
        "pcg_ids": (EXACT, pcg_ids),
    }
}
