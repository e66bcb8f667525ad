"""What model_py.py of A1 must report: GPT-2 as one formula, and its weights drawn from MT19937."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from samples import Draw
from tiny import INITIAL, LAYERS, PARTS, TINY, Tiny

from reference.oracle.a0 import Case, Values, Words
from reference.oracle.a1_autograd_py import (
    ORIGIN,
    Array,
    attention,
    cross_entropy,
    gelu,
    normed,
    said,
    tensor,
)

Weights = Mapping[str, Array]


def many(*values: int) -> Array:
    return np.array(values, np.int64)


# ---------------------------------------------------------------- the forward pass


def linear(x: Array, w: Weights, name: str) -> Array:
    return np.einsum("...i,oi->...o", x, w[f"{name}.weight"]) + w[f"{name}.bias"]


def norm(x: Array, w: Weights, name: str) -> Array:
    return normed(x, w[f"{name}.weight"], w[f"{name}.bias"])


def heads(x: Array, w: Weights, NH: int, name: str) -> Array:
    C = x.shape[-1]
    qkv = linear(x, w, f"{name}.c_attn")
    size = C // NH
    each = [
        attention(*(qkv[..., C * part + size * head :][..., :size] for part in range(3)))
        for head in range(NH)
    ]
    return linear(np.concatenate(each, -1), w, f"{name}.c_proj")


def block(x: Array, w: Weights, NH: int, i: int) -> Array:
    x = x + heads(norm(x, w, f"h.{i}.ln_1"), w, NH, f"h.{i}.attn")
    hidden = gelu(linear(norm(x, w, f"h.{i}.ln_2"), w, f"h.{i}.mlp.c_fc"))
    return x + linear(hidden, w, f"h.{i}.mlp.c_proj")


def gpt2(tiny: Tiny, w: Weights, ids: Array) -> Array:
    """Logits (B, T, V)."""
    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in range(tiny.L):
        x = block(x, w, tiny.NH, i)
    return np.einsum("btc,vc->btv", norm(x, w, "ln_f"), w["wte.weight"])


# ---------------------------------------------------------------- initial weights


def normals(n: int, std: float, words: Words) -> Array:
    """Blocks of 16, of which elements t and t + 8 are a pair (Box and Muller 1958)."""
    made = np.empty(n)
    for i in range(0, n - n % 16, 16):
        made[i : i + 16] = block_of_16(words)
    if n % 16:
        words.draw(n % 16)  # are drawn, too, and then not used
        made[-16:] = block_of_16(words)
    return (std * made).astype(np.float32)


def block_of_16(words: Words) -> Array:
    units = [int(word) % 2**24 / 2**24 for word in words.draw(16)]
    radii = [math.sqrt(-2 * math.log(1 - u)) for u in units[:8]]
    angles = [2 * math.pi * u for u in units[8:]]
    ends = [f(a) for f in (math.cos, math.sin) for a in angles]
    return np.array([r * end for r, end in zip(radii * 2, ends, strict=True)])


def initial(tiny: Tiny, seed: int) -> dict[str, Array]:
    """GPT-2's: matrices in the order of the model file, but layer by layer."""
    words, w = Words(seed), {}
    for name, shape in tiny.shapes.items():
        w[name] = np.full(shape, 1.0 if "ln_" in name and name.endswith("weight") else 0.0)
    matrices = ["attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"]
    order = ["wte", "wpe", *(f"h.{i}.{name}" for i in range(tiny.L) for name in matrices)]
    for name in (f"{each}.weight" for each in order):
        std = 0.02 / math.sqrt(2 * tiny.L) if "c_proj" in name else 0.02
        w[name] = normals(w[name].size, std, words).reshape(w[name].shape).astype(np.float64)
    return w


# ---------------------------------------------------------------- cases


def case_train(seed: int) -> Values:
    return {
        "eval": many(0, 0, 0, 0, 0, 0),
        "train": many(1, 1, 1, 1, 1, 1),
        "part": many(0, 1, 0, 1, 0, 0),  # root, inner, in a list, inner's, the list's other, its
        "outside": many(1),
        "others": many(1),
    }


def case_linear(seed: int) -> Values:
    draw, values = Draw(seed, 0), {}
    for name, shape, out in LAYERS:
        x, weight, bias = draw(*shape), draw(out, shape[-1]), draw(out)
        values[f"{name}_text"] = said(f"{shape} to {out}".replace(", ", ","))
        values |= tensor(f"{name}_f64", np.einsum("...i,oi->...o", x, weight) + bias)
    return values


def case_normals(seed: int) -> Values:
    values = {}
    for n in (16, 48, 20, 31):
        words = Words(seed % 2**32)
        values[f"n_{n}"] = normals(n, 0.5, words)
        values[f"after_{n}"] = words.draw(1).astype(np.int64)
    words = Words(seed % 2**32)
    normals(17, 1.0, words)
    return values | {"second": normals(32, 0.02, words)}


def case_heads(seed: int) -> Values:
    return of_parts(seed, lambda x, w, tiny: heads(x, w, tiny.NH, "h.0.attn"))


def case_block(seed: int) -> Values:
    return of_parts(seed, lambda x, w, tiny: block(x, w, tiny.NH, 0))


def of_parts(seed: int, call: Case) -> Values:
    values = {}
    for tiny in PARTS:
        x = Draw(seed, 0)(tiny.B, tiny.T, tiny.C)
        values[f"{tiny.name}_text"] = said(tiny.text)
        values |= tensor(f"{tiny.name}_f64", call(x, tiny.weights(seed), tiny))
    return values


def case_gpt2(seed: int) -> Values:
    values = {}
    for tiny in TINY:
        values[f"{tiny.name}_text"] = said(tiny.text)
        logits = gpt2(tiny, tiny.weights(seed), tiny.batch(seed)[0])
        values |= tensor(f"{tiny.name}_f64", logits)
    return values


def case_key(seed: int) -> Values:
    ids, targets = INITIAL.batch(seed)
    logits = gpt2(INITIAL, initial(INITIAL, seed % 2**32), ids)
    loss = cross_entropy(logits, targets)
    return {
        "initial_text": said(INITIAL.text),
        **tensor("initial_logits_f64", logits),
        **tensor("initial_loss_f64", loss),
    }


DRAWN = "numpy's legacy MT19937, Box-Muller by math.log, math.cos and math.sin"
CASES = {
    "model_py": {
        "train": ("by hand", case_train),
        "linear": (ORIGIN, case_linear),
        "normals": (DRAWN, case_normals),
        "heads": (ORIGIN, case_heads),
        "block": (ORIGIN, case_block),
        "gpt2": (ORIGIN, case_gpt2),
        "key": (f"{DRAWN}; {ORIGIN}", case_key),
    }
}
