"""What layers.c and adamw.c of A2 must report: complex steps through A1's formulas, added up."""

from __future__ import annotations

import numpy as np
from samples import Draw

from reference.oracle.a0 import Values
from reference.oracle.a1_autograd_py import gelu, normed, said
from reference.oracle.a1_layers import (
    FAR,
    HEADS,
    PRODUCTS,
    SHAPES,
    attended,
    by_heads,
    f32,
    heads_text,
    product_text,
    shape_text,
)
from reference.oracle.a2_autograd_py import ORIGIN, slopes
from reference.oracle.a2_optim_py import Adam

NORMED = (
    ("plain", "", (2, 3, 8), 0.0, 4.0),
    ("edge_odd", "", (2, 5, 7), 0.0, 4.0),
    ("edge_small", ", below 0.1", (1, 2, 6), 0.0, 0.125),
    ("edge_far", ", mean 4", (1, 3, 16), 4.0, 4.0),
    ("edge_one", "", (1, 1, 1), 0.0, 4.0),
)
LOGITS = (("plain", 2, 3, 5, 5), ("edge_padded", 1, 4, 5, 8), ("edge_one", 1, 1, 1, 128))


def encoder(seed: int) -> Values:
    values: Values = {}
    for i, (name, B, T, C) in enumerate(SHAPES):
        draw = Draw(seed, 10_000 * i)
        ids = draw.ids(5, B, T)
        ids[0, 0] = ids[-1, -1]
        dout, dwte, dwpe = draw(B, T, C), draw(5, C), draw(T + 2, C)
        for b, t in np.ndindex(B, T):
            dwte[ids[b, t]] += dout[b, t]
            dwpe[t] += dout[b, t]
        values[f"{name}_text"] = said(shape_text(B, T, C))
        values |= {f"{name}_dwte_f64": dwte.ravel(), f"{name}_dwpe_f64": dwpe.ravel()}
    return values


def layernorm(seed: int) -> Values:
    values: Values = {}
    for i, (name, more, shape, offset, scale) in enumerate(NORMED):
        draw, C = Draw(seed, 10_000 * i), shape[-1]
        x, weight = f32(draw(*shape, scale=scale) + offset), draw(C)
        dout, before = draw(*shape), (draw(*shape), draw(C), draw(C))
        found = slopes(normed, (x, weight, np.zeros(C)), dout)
        values[f"{name}_text"] = said(shape_text(*shape) + more)
        for tensor, old, new in zip(("dinp", "dweight", "dbias"), before, found, strict=True):
            values[f"{name}_{tensor}_f64"] = (old + new).ravel()
    return values


def matmul(seed: int) -> Values:
    values: Values = {}
    for i, (name, shape, OC, has_bias) in enumerate(PRODUCTS):
        draw, C = Draw(seed, 10_000 * i), shape[-1]
        x, weight, dout = draw(*shape), draw(OC, C), draw(*shape[:-1], OC)
        before = draw(*shape), draw(OC, C), draw(OC)
        found = [
            np.einsum("bto,oc->btc", dout, weight),
            np.einsum("bto,btc->oc", dout, x),
            dout.sum((0, 1)) * has_bias,
        ]
        values[f"{name}_text"] = said(product_text(shape, OC, has_bias))
        for tensor, old, new in zip(("dinp", "dweight", "dbias"), before, found, strict=True):
            values[f"{name}_{tensor}_f64"] = (old + new).ravel()
    return values


def attention(seed: int) -> Values:
    """datt and dpreatt are gradients, too: of what the values make of att, and att of preatt."""
    values: Values = {}
    for i, (name, more, (B, T, C), NH, _) in enumerate(HEADS[:4]):
        draw = Draw(seed, 10_000 * i)
        inp, dout, before = draw(B, T, 3 * C), draw(B, T, C), draw(B, T, 3 * C)
        att, seen = attended(inp, NH)[1], np.tril(np.ones((T, T), bool))
        values_, d = by_heads(inp[..., 2 * C :], NH), by_heads(dout, NH)
        datt = np.where(seen, np.einsum("bhti,bhsi->bhts", d, values_), 0)
        dpreatt = att * (datt - np.sum(att * datt, -1, keepdims=True))
        (dinp,) = slopes(lambda x, NH=NH: attended(x, NH)[2], (inp,), dout)
        values[f"{name}_text"] = said(heads_text((B, T, C), NH, more))
        for tensor, value in (("datt", datt), ("dpreatt", dpreatt), ("dinp", before + dinp)):
            values[f"{name}_{tensor}_f64"] = value.ravel()
    return values


def residual(seed: int) -> Values:
    values: Values = {}
    for name, n in (("edge_one", 1), ("plain", 17)):
        draw = Draw(seed, 1000 * n)
        dout = draw(n)
        values[f"{name}_text"] = said(f"N {n}")
        values |= {f"{name}_{each}_f64": draw(n) + dout for each in ("dinp1", "dinp2")}
    return values


def gelu_backward(seed: int) -> Values:
    values: Values = {}
    for name, n in (("edge_one", 1), ("plain", 17)):
        draw = Draw(seed, 1000 * n)
        x, dout, before = draw(n, scale=8), draw(n), draw(n)
        values[f"{name}_text"] = said(f"N {n}")
        values[f"{name}_dinp_f64"] = before + slopes(gelu, (x,), dout)[0]
    far = slopes(gelu, (np.array(FAR),), np.ones(4))[0]
    return values | {"edge_far_text": said("-20, 20, 0, -1000"), "edge_far_dinp_f64": far}


def crossentropy_softmax(seed: int) -> Values:
    """The loss as a function of logits that have these probabilities, but for a factor: they are
    not divided by their sum, and the gradient is what the formula makes of them."""
    values: Values = {}
    for i, (name, B, T, V, Vp) in enumerate(LOGITS):
        draw, rows = Draw(seed, 10_000 * i), B * T
        probs, dlogits = f32(draw(rows, Vp, scale=1) + 0.5)[:, :V], draw(rows, Vp)
        dlosses, targets = draw(rows), draw.ids(V, rows)
        targets[-1] = V - 1
        dlogits[:, :V] += (probs - np.eye(V)[targets]) * dlosses[:, None]
        values[f"{name}_text"] = said(f"B {B}, T {T}, V {V}, Vp {Vp}")
        values[f"{name}_dlogits_f64"] = dlogits.ravel()
    return values


STEPS = (
    ("plain", "lr 1/4, betas 0.875 and 0.96875, eps 2^-20", 7, (0.875, 0.96875), 2.0**-20, 0.0),
    ("decay", "the same, decay 1/2", 7, (0.875, 0.96875), 2.0**-20, 0.5),
    ("edge_eps", "lr 1/4, betas 1/2 and 3/4, eps 1/4", 5, (0.5, 0.75), 0.25, 0.0),
    ("edge_one", "one number, decay 1/2", 1, (0.875, 0.96875), 2.0**-20, 0.5),
)


def adamw_steps(seed: int) -> Values:
    values: Values = {}
    for i, (name, text, count, betas, eps, decay) in enumerate(STEPS):
        draw, states = Draw(seed, 10_000 * i), [Adam(betas, eps) for _ in range(count)]
        params = draw(count)
        values[f"{name}_text"] = said(text)
        for t in (1, 2, 3):
            old = zip(states, params, draw(count), strict=True)
            params = np.array([s.step(theta, g, t, 0.25, decay) for s, theta, g in old])
            values[f"{name}_after_step_{t}_f64"] = params
        values[f"{name}_m_f64"] = np.array([state.m for state in states])
        values[f"{name}_v_f64"] = np.array([state.v for state in states])
    return values


CASES = {
    "layers": {
        "encoder": ("sums, one position at a time", encoder),
        "layernorm": (ORIGIN, layernorm),
        "matmul": ("float64, numpy's einsum", matmul),
        "attention": (ORIGIN, attention),
        "residual": ("sums", residual),
        "gelu": (ORIGIN, gelu_backward),
        "crossentropy_softmax": ("float64, the formula", crossentropy_softmax),
    },
    "adamw": {"steps": ("the formula of the paper, number by number", adamw_steps)},
}
