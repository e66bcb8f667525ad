"""What layers.c of A1 must report: the Python half's formulas, on C's samples."""

from __future__ import annotations

import math

import numpy as np
from samples import Draw

from reference.oracle.a0 import Values
from reference.oracle.a1_autograd_py import Array, attention, gelu, log_shares, normed, said

ORIGIN = "formulas in float64, numpy"
SHAPES = (
    ("plain", 2, 3, 8),
    ("edge_one", 1, 1, 1),
    ("edge_odd", 2, 5, 7),
    ("edge_row", 1, 9, 4),
)
NORMED = (
    ("plain", "", (2, 3, 8), 0.0, 4.0),
    ("edge_odd", "", (2, 5, 7), 0.0, 4.0),
    ("edge_small", ", below 0.01", (1, 2, 6), 0.0, 2.0**-6),
    ("edge_far", ", mean 4", (1, 3, 16), 4.0, 4.0),
    ("edge_one", "", (1, 1, 1), 0.0, 4.0),
)
PRODUCTS = (
    ("plain", (2, 3, 8), 4, True),
    ("edge_odd", (1, 5, 7), 9, True),
    ("edge_bare", (2, 9, 3), 5, False),
    ("edge_OC_1", (1, 3, 5), 1, True),
    ("edge_one", (1, 1, 1), 1, False),
)
HEADS = (
    ("plain", "", (2, 4, 6), 2, 4.0),
    ("edge_odd", "", (1, 5, 9), 3, 4.0),
    ("edge_one", "", (1, 1, 1), 1, 4.0),
    ("edge_hs_1", "", (2, 3, 4), 4, 4.0),
    ("edge_large", ", scores of 100s", (1, 6, 4), 1, 32.0),
    ("edge_low", ", scores near -250", (3, 1, 8), 1, 32.0),  # keys are the opposite of queries
)
LOGITS = (
    ("plain", "", (2, 3, 5), 5, 0.0, 4.0, 0.0),
    ("edge_padded", "", (1, 4, 8), 5, 0.0, 4.0, 0.0),
    ("edge_large", ", up to 80", (2, 2, 128), 7, 0.0, 160.0, 0.0),
    ("edge_low", ", near -800", (1, 2, 4), 4, -800.0, 4.0, 0.0),
    ("edge_one", "", (1, 1, 128), 1, 0.0, 4.0, 0.0),
    ("edge_peak", ", 200 at logit t", (1, 4, 4), 4, 0.0, 4.0, 200.0),
)


def shape_text(B: int, T: int, C: int) -> str:
    return f"B {B}, T {T}, C {C}"


def f32(x: Array) -> Array:
    """Rounded as C's arithmetic on floats is."""
    return x.astype(np.float32).astype(np.float64)


def encoder(seed: int) -> Values:
    values: Values = {}
    for i, (name, B, T, C) in enumerate(SHAPES):
        draw = Draw(seed, 10_000 * i)
        ids, wte, wpe = draw.ids(5, B, T), draw(5, C), draw(T + 2, C)
        values[f"{name}_text"] = said(shape_text(B, T, C))
        values[f"{name}_out_f64"] = (wte[ids] + wpe[:T]).ravel()
    return values


def normed_inputs(i: int, seed: int) -> tuple[Array, Array, Array]:
    _, _, shape, offset, scale = NORMED[i]
    draw = Draw(seed, 10_000 * i)
    return f32(draw(*shape, scale=scale) + offset), draw(shape[-1]), draw(shape[-1])


def layernorm(seed: int) -> Values:
    values: Values = {}
    for i, (name, more, shape, *_) in enumerate(NORMED):
        x, weight, bias = normed_inputs(i, seed)
        values[f"{name}_text"] = said(shape_text(*shape) + more)
        values[f"{name}_out_f64"] = normed(x, weight, bias).ravel()
        values[f"{name}_mean_f64"] = x.mean(-1).ravel()
        values[f"{name}_rstd_f64"] = 1 / np.sqrt(x.var(-1) + 1e-5).ravel()
    return values


def product_text(shape: tuple[int, int, int], OC: int, has_bias: bool) -> str:
    return f"{shape_text(*shape)}, OC {OC}" + ("" if has_bias else ", no bias")


def matmul(seed: int) -> Values:
    values: Values = {}
    for i, (name, shape, OC, has_bias) in enumerate(PRODUCTS):
        draw = Draw(seed, 10_000 * i)
        x, weight, bias = draw(*shape), draw(OC, shape[-1]), draw(OC)
        out = np.einsum("btc,oc->bto", x, weight) + (bias if has_bias else 0)
        values[f"{name}_text"] = said(product_text(shape, OC, has_bias))
        values[f"{name}_out_f64"] = out.ravel()
    return values


def by_heads(x: Array, NH: int) -> Array:
    """(B,T,C) as (B,NH,T,hs)."""
    hs = x.shape[-1] // NH
    return np.stack([x[..., h * hs : (h + 1) * hs] for h in range(NH)], 1)


def attended(inp: Array, NH: int) -> tuple[Array, Array, Array]:
    """preatt, att and out of (B,T,3C)."""
    q, k, v = (by_heads(part, NH) for part in np.split(inp, 3, -1))
    T, hs = q.shape[-2:]
    scores = np.einsum("bhti,bhsi->bhts", q, k) / math.sqrt(hs)
    seen = np.tril(np.ones((T, T), bool))
    shares = np.zeros(scores.shape, scores.dtype)
    for t in range(T):
        shares[..., t, : t + 1] = np.exp(log_shares(scores[..., t, : t + 1]))
    out = attention(q, k, v)
    return np.where(seen, scores, 0), shares, np.concatenate(list(out.swapaxes(0, 1)), -1)


def heads_text(shape: tuple[int, int, int], NH: int, more: str) -> str:
    return f"{shape_text(*shape)}, NH {NH}{more}"


def attention_forward(seed: int) -> Values:
    values: Values = {}
    for i, (name, more, (B, T, C), NH, scale) in enumerate(HEADS):
        inp = Draw(seed, 10_000 * i)(B, T, 3 * C, scale=scale)
        inp = np.floor(inp) if scale > 4 else inp  # so that large scores are exact
        if name == "edge_low":
            inp[..., C : 2 * C] = -inp[..., :C]
        preatt, att, out = attended(inp, NH)
        values[f"{name}_text"] = said(heads_text((B, T, C), NH, more))
        for tensor, value in (("preatt", preatt), ("att", att), ("out", out)):
            values[f"{name}_{tensor}_f64"] = value.ravel()
    return values


def residual(seed: int) -> Values:
    values: Values = {}
    for name, n in (("edge_one", 1), ("plain", 17)):
        draw = Draw(seed, 1000 * n)
        values[f"{name}_text"] = said(f"N {n}")
        values[f"{name}_out_f64"] = draw(n) + draw(n)
    return values


FAR = (-20.0, 20.0, 0.0, -1000.0)


def gelu_forward(seed: int) -> Values:
    values: Values = {}
    for name, n in (("edge_one", 1), ("plain", 17)):
        values[f"{name}_text"] = said(f"N {n}")
        values[f"{name}_out_f64"] = gelu(Draw(seed, 1000 * n)(n, scale=8))
    far = {"edge_far_text": said("-20, 20, 0, -1000"), "edge_far_out_f64": gelu(np.array(FAR))}
    return values | far


def softmax(seed: int) -> Values:
    values: Values = {}
    for i, (name, more, (B, T, Vp), V, offset, scale, peak) in enumerate(LOGITS):
        drawn = Draw(seed, 10_000 * i)(B, T, Vp, scale=scale)[..., :V]
        z = f32(f32(drawn + offset) + peak * np.eye(T, V))
        probs = np.zeros((B, T, Vp))
        probs[..., :V] = np.exp(log_shares(z))
        values[f"{name}_text"] = said(f"B {B}, T {T}, V {V}, Vp {Vp}{more}")
        values[f"{name}_probs_f64"] = probs.ravel()
    return values


def crossentropy(seed: int) -> Values:
    values: Values = {}
    for i, (name, B, T, C) in enumerate(SHAPES):
        draw = Draw(seed, 10_000 * i)
        probs = f32(draw(B * T, C + 3, scale=1) + 0.5)
        targets = draw.ids(C, B * T)
        targets[-1] = C - 1
        values[f"{name}_text"] = said(shape_text(B, T, C))
        values[f"{name}_losses_f64"] = -np.log(probs[np.arange(B * T), targets])
    return values


CASES = {
    "layers": {
        "encoder": (ORIGIN, encoder),
        "layernorm": (ORIGIN, layernorm),
        "matmul": (ORIGIN, matmul),
        "attention": (ORIGIN, attention_forward),
        "residual": (ORIGIN, residual),
        "gelu": (ORIGIN, gelu_forward),
        "softmax": (ORIGIN, softmax),
        "crossentropy": (ORIGIN, crossentropy),
    }
}
