"""What model.c of A1 must report: the Python half's formulas and draws, and the file's format."""

from __future__ import annotations

import itertools

import numpy as np
from tiny import EXAMS, FRESH, INITIAL, Tiny

from reference.oracle.a0 import Values, Words, i32
from reference.oracle.a1_autograd_py import (
    ORIGIN,
    Array,
    cross_entropy,
    gelu,
    log_shares,
    said,
)
from reference.oracle.a1_layers import attended
from reference.oracle.a1_model_py import (
    DRAWN,
    Weights,
    gpt2,
    initial,
    linear,
    many,
    norm,
    normals,
)

MAGIC, VERSION = 20240326, 3
MULTIPLE = 128
FIRST = EXAMS[0]


def padded(V: int, multiple: int = MULTIPLE) -> int:
    return -(-V // multiple) * multiple


def kinds(tiny: Tiny, multiple: int = MULTIPLE) -> list[int]:
    """Elements of each of the 16 tensors, all layers together, wte with its padding."""
    sizes: dict[str, int] = {}
    for name, shape in tiny.shapes.items():
        kind = ".".join(part for part in name.split(".") if not part.isdigit())
        sizes[kind] = sizes.get(kind, 0) + int(np.prod(shape))
    return [padded(tiny.V, multiple) * tiny.C, *list(sizes.values())[1:]]


def in_file(tiny: Tiny, weights: Weights, multiple: int = MULTIPLE) -> Array:
    """All parameters as they lie in a checkpoint, float32."""
    wte = np.zeros((padded(tiny.V, multiple), tiny.C))
    wte[: tiny.V] = weights["wte.weight"]
    rest = [weights[name] for name in list(tiny.shapes)[1:]]
    return np.concatenate([array.ravel() for array in (wte, *rest)]).astype(np.float32)


def layout(tiny: Tiny, multiple: int = MULTIPLE) -> Values:
    sizes = kinds(tiny, multiple)
    Vp = padded(tiny.V, multiple)
    return {
        "config": i32([tiny.maxT, tiny.V, Vp, tiny.L, tiny.NH, tiny.C]),
        "places": i32([0, *itertools.accumulate(sizes[:-1])]),
        "not_empty": many(0),
    }


def build(seed: int) -> Values:
    params = in_file(FIRST, FIRST.weights(seed))
    return layout(FIRST) | {"num_parameters": many(params.size), "params": params}


def write(seed: int) -> Values:
    params = in_file(FIRST, FIRST.weights(seed))
    head = np.zeros(256, np.int32)
    sizes = FIRST.maxT, FIRST.V, FIRST.L, FIRST.NH, FIRST.C, padded(FIRST.V)
    head[:8] = MAGIC, VERSION, *sizes
    counts = {"read": many(256 + params.size), "beyond": many(0), "unchanged": many(1)}
    older = np.frombuffer(b"older", np.uint8)
    return counts | {"older": older} | {"header": head, "params": params}


def normals_in_c(seed: int) -> Values:
    values = {}
    for n in (16, 48, 20, 31):
        words = Words(seed % 2**32)
        values[f"n_{n}"] = normals(n, 0.5, words)
        values[f"after_{n}"] = words.draw(1)
    return values


def init(seed: int) -> Values:
    return layout(FRESH, 8) | {"params": in_file(FRESH, initial(FRESH, seed % 2**32), 8)}


def kept(tiny: Tiny, weights: Weights, ids: Array) -> dict[str, list[Array]]:
    """What the backward pass finds of each layer, by the names of Activations."""
    found: dict[str, list[Array]] = {}

    def keep(name: str, x: Array) -> Array:
        found.setdefault(name, []).append(x)
        return x

    def keep_norm(name: str, weight: str, x: Array) -> Array:
        keep(f"{name}_mean", x.mean(-1))
        keep(f"{name}_rstd", 1 / np.sqrt(x.var(-1) + 1e-5))
        return keep(name, norm(x, weights, weight))

    x = weights["wte.weight"][ids] + weights["wpe.weight"][: ids.shape[1]]
    keep("encoded", x)
    for i in range(tiny.L):
        ln1 = keep_norm("ln1", f"h.{i}.ln_1", x)
        qkv = keep("qkv", linear(ln1, weights, f"h.{i}.attn.c_attn"))
        _, att, atty = attended(qkv, tiny.NH)
        keep("att", att)
        x = keep("residual2", x + linear(keep("atty", atty), weights, f"h.{i}.attn.c_proj"))
        ln2 = keep_norm("ln2", f"h.{i}.ln_2", x)
        hidden = keep("fch_gelu", gelu(keep("fch", linear(ln2, weights, f"h.{i}.mlp.c_fc"))))
        x = keep("residual3", x + linear(hidden, weights, f"h.{i}.mlp.c_proj"))
    keep_norm("lnf", "ln_f", x)
    return found


def squares(sample: str, tiny: Tiny, weights: Weights, ids: Array) -> Values:
    return {
        f"{sample}_{name}_squares_f64": np.array([np.sum(layer**2) for layer in layers])
        for name, layers in kept(tiny, weights, ids).items()
    }


def forward(seed: int) -> Values:
    weights, (x, y) = FIRST.weights(seed), FIRST.batch(seed)
    logits, Vp = gpt2(FIRST, weights, x), padded(FIRST.V)
    probs = np.zeros((*x.shape, Vp))
    probs[..., : FIRST.V] = np.exp(log_shares(logits))
    losses = -np.take_along_axis(log_shares(logits), y[..., None], -1)
    # the batch (1,4) is the first four of all tokens
    few = gpt2(FIRST, weights, x.reshape(1, -1)[:, :4])
    few_loss = cross_entropy(few, y.reshape(1, -1)[:, :4])
    return {
        "plain_text": said(FIRST.text),
        "plain_logits_f64": logits.ravel(),
        "plain_probs_f64": probs.ravel(),
        "plain_losses_f64": losses.ravel(),
        "plain_mean_loss_f64": np.array([losses.mean()]),
        "edge_kept_text": said("the same, squares of what a layer keeps, added up"),
        **squares("edge_kept", FIRST, weights, x),
        "edge_smaller_text": said("the same model, then a batch (1,4)"),
        "edge_smaller_logits_f64": few.ravel(),
        "edge_smaller_mean_loss_f64": np.array([few_loss]),
        **squares("edge_smaller", FIRST, weights, x.reshape(1, -1)[:, :4]),
        "edge_bare_text": said("the same without targets"),
        "edge_bare_logits_f64": logits.ravel(),
        "edge_bare_mean_loss_f64": np.array([-1.0]),
        "padding": i32([0]),
    }


ONE = Tiny("initial_one", **INITIAL.sizes, B=1, T=1)


def exam(seed: int) -> Values:
    values: Values = {}
    for tiny in (*EXAMS, INITIAL, ONE):
        is_drawn = tiny.name.startswith("initial")
        weights = initial(tiny, seed % 2**32) if is_drawn else tiny.weights(seed)
        x, y = tiny.batch(seed)
        logits = gpt2(tiny, weights, x)
        values[f"{tiny.name}_text"] = said(tiny.text)
        values[f"{tiny.name}_logits_f64"] = logits.ravel()
        values[f"{tiny.name}_loss_f64"] = np.array([cross_entropy(logits, y)])
    return values


def life(seed: int) -> Values:
    return {"logits": np.zeros(FIRST.B * FIRST.T * FIRST.V, np.float32)}  # of this form


FORMAT = "the file's format, by hand"
CASES = {
    "model": {
        "build": (FORMAT, build),
        "write": (FORMAT, write),
        "normals": (DRAWN, normals_in_c),
        "init": (DRAWN, init),
        "forward": (ORIGIN, forward),
        "exam": (ORIGIN, exam),
        "life": ("by hand", life),
    }
}
