"""What bigram_py.py of A2 must report: counts pair by pair, logarithms by math.fsum, and draws of
the published PCG32."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from given import given_u64
from samples import Draw

from reference.oracle.a0 import Values
from reference.oracle.a0_rand_py import Pcg
from reference.oracle.a1_autograd_py import Array
from reference.oracle.a2_loop_py import reals
from reference.oracle.a2_optim_py import many

ABBACAB = (0, 1, 1, 0, 2, 0, 1)
V = 7


def written(seed: int, n: int, vocab: int) -> list[int]:
    ids, at = [], 0
    for i in range(n):
        at = (at + (1, 1, 1, 2, 2, 3)[given_u64(seed, 500_000 + i) % 6]) % (vocab - 1)
        ids.append(at)
    ids[-1] = vocab - 1
    return ids


def table(seed: int) -> Array:
    return Draw(seed, 510_000)(V, V, scale=8).astype(np.float32)


def pairs(ids: Sequence[int], vocab: int) -> list[list[int]]:
    found = Counter(pairwise(ids))
    return [[found[i, j] for j in range(vocab)] for i in range(vocab)]


def flat(rows: Sequence[Sequence[int]]) -> Array:
    return many(*(count for row in rows for count in row))


def counts(seed: int) -> Values:
    text = flat(pairs(written(seed, 300, 17), 17))
    last = np.zeros((6, 256), np.int64)  # of the tokens 250 to 255
    last[5, 254] = last[4, 255] = 1
    return {
        "abbacab": flat(pairs(ABBACAB, 3)),
        "more": flat(pairs(ABBACAB, 4)),
        "two": many(0, 0, 1, 0),
        "wide": many(0, 0, 1, 0, 0, 1, 2, 1, 0),
        "text_int64": text,
        "text_uint8": text,
        "bytes": last.reshape(-1),
    }


def floor(seed: int) -> Values:
    """Of abbacab 3 log 3 / 6, as the handout finds by hand; and of 1 2 / 0 3."""
    uneven = (math.log(3) + 2 * math.log(1.5)) / 6
    return {
        "abbacab": reals(math.log(3) / 2),
        "certain": reals(0.0),
        "empty": reals(0.0),
        "uneven": reals(uneven),
    }


def add_one(seed: int) -> Values:
    values: Values = {}
    for name, ids, vocab in (("abbacab", ABBACAB, 3), ("text", written(seed, 90, V), V)):
        rows = pairs(ids, vocab)
        found = [math.log((count + 1) / (sum(row) + vocab)) for row in rows for count in row]
        values[name] = np.array(found, np.float32)
    return values | {"default": many(256)}


def mean_nll(rows: Sequence[Sequence[float]], ids: Sequence[int]) -> Array:
    """Prediction by prediction."""
    losses = []
    for before, after in pairwise(ids):
        z = rows[before]
        largest = max(z)
        losses.append(math.log(math.fsum(math.exp(x - largest) for x in z)) + largest - z[after])
    return reals(math.fsum(losses) / len(losses))


def nll(seed: int) -> Values:
    rows = table(seed).tolist()
    return {
        "text": mean_nll(rows, written(seed, 90, V)),
        "two": mean_nll(rows, (3, 5)),
        "even": reals(math.log(3)),
        "large": reals(300.0),  # (600 + 0) / 2, to the last bit
    }


SHAPED = {"line": [3, 0, 6, 3], "block": [[1, 2, 0], [6, 5, 4]], "single": 2}


def looked_up(seed: int) -> Values:
    values: Values = {}
    for name, ids in SHAPED.items():
        found = table(seed)[np.array(ids)]
        values[f"{name}_f32"] = found.reshape(-1)
        values[f"{name}_f32_shape"] = many(*found.shape)
    return values


def logits(seed: int) -> Values:
    return {**looked_up(seed), "all_in_c": many(1, 1, 1)}


def rows(seed: int) -> Values:
    return {
        **looked_up(seed),
        "start": np.zeros(V * V, np.float32),
        "trained": many(1, 1),
        "default": many(256),
    }


def first_gradient(seed: int) -> Values:
    """(p - next) / 6, p = 1/3, summed over the predictions in each row."""
    sixths = [[1, -1, 0], [-1 / 3, -1 / 3, 2 / 3], [-2 / 3, 1 / 3, 1 / 3]]
    return {
        "loss_f32": np.array([math.log(3)], np.float32),
        "loss_f32_shape": many(),
        "gradient_f32": np.array(sixths, np.float32).reshape(-1) / np.float32(6),
        "gradient_f32_shape": many(3, 3),
    }


def trained(seed: int) -> Values:
    return {"text": many(*written(seed, 400, V))}


def to_lm(seed: int) -> Values:
    flat_table = table(seed).reshape(-1)
    return {
        "converted": flat_table,
        "copy": flat_table,
        "after_training": flat_table,
        "of_the_model": flat_table + np.float32(1),
        "class": many(1),
    }


def drawn(rows: Sequence[Sequence[float]], start: int, n: int, seed: int, heat: float) -> Array:
    """One walk along each row's weights, one double of the stream 54 a token."""
    coins, ids = Pcg.seeded(seed).units(n).tolist(), [start]
    for u in coins:
        z = [x / heat for x in rows[ids[-1]]]
        weights = [math.exp(x - max(z)) for x in z]
        rest, total = 0.0, sum(weights)
        for j, weight in enumerate(weights):
            rest += weight
            if rest > u * total:
                ids.append(j)
                break
    return many(*ids[1:])


def sample(seed: int) -> Values:
    rows = table(seed).tolist()
    values = {
        f"ids_{i}": drawn(rows, i, 40, seed + i, heat) for i, heat in enumerate((0.5, 1.0, 2.0))
    }
    values["default"] = values["again"] = drawn(rows, 0, 20, seed, 1.0)
    values["none"] = many()
    far = (table(seed) + np.float32(2**22)).tolist()
    values["far"] = drawn(far, 0, 60, seed, 0.75)
    return values | {"large": drawn([[1000.0, 1000.5], [0.0, 0.0]], 0, 30, seed, 1.0)}


def save(seed: int) -> Values:
    return {"table": table(seed).reshape(-1)}


def load(seed: int) -> Values:
    return {"table": table(seed).reshape(-1), "more": table(seed).reshape(-1)}


FSUM = "logarithms in Python, sums by math.fsum"
CASES = {
    "bigram_py": {
        "counts": ("pair by pair", counts),
        "floor": ("by hand", floor),
        "add_one": (FSUM, add_one),
        "nll": (FSUM, nll),
        "logits": ("rows of the table", logits),
        "rows": ("rows of the table", rows),
        "first_gradient": ("by hand", first_gradient),
        "trained": ("the text alone", trained),
        "to_lm": ("the table", to_lm),
        "sample": ("O'Neill's pcg32 and math.exp, a walk along each row", sample),
        "save": ("the table", save),
        "load": ("the table", load),
    }
}
