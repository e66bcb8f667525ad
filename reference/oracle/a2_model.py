"""What model.c of A2 must report: complex steps through GPT-2's formula, and ten steps of AdamW."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from samples import Draw
from tiny import EXAMS, STEPPED, Tiny

from reference.oracle.a0 import Values, i32
from reference.oracle.a1_autograd_py import Array, cross_entropy, said
from reference.oracle.a1_model import in_file, kinds
from reference.oracle.a1_model_py import gpt2, many
from reference.oracle.a2_autograd_py import ORIGIN, STEP
from reference.oracle.a2_optim_py import DECAY, LR, Adam, gradients

FIRST = EXAMS[0]
KINDS = 16  # tensors in a file
DECAYS = (0, 1, 4, 6, 10, 12)  # of them: wte wpe qkvw attprojw fcw fcprojw
BETAS, EPS = (0.875, 0.96875), 2.0**-20


def zero_grad(seed: int) -> Values:
    counts = {name: many(0) for name in ("first", "grads", "activations")}
    return counts | {"same_memory": many(1), "places": i32([0, 0, 0, 0])}


def kind_of(name: str) -> str:
    return ".".join(part for part in name.split(".") if not part.isdigit())


def projected(tiny: Tiny, seed: int, ids: Array, targets: Array) -> Array:
    """(16,2): the derivative of the loss as a tensor, all its layers, moves along a direction."""
    weights, sums = tiny.weights(seed), {}
    for name, both in tiny.directions(seed).items():
        for which, one in enumerate(both):
            moved = weights | {name: weights[name] + 1j * STEP * one}
            slope = np.imag(cross_entropy(gpt2(tiny, moved, ids), targets)) / STEP
            sums.setdefault(kind_of(name), np.zeros(2))[which] += slope
    return np.array(list(sums.values()))


@functools.cache
def of_exam(tiny: Tiny, seed: int) -> Array:
    return projected(tiny, seed, *tiny.batch(seed))


def backward(seed: int) -> Values:
    x, y = FIRST.batch(seed)
    whole = of_exam(FIRST, seed)
    few = projected(FIRST, seed, x[1:, :4], y[1:, :4])
    return {
        "plain_text": said(FIRST.text),
        "plain_gradients_f64": whole.ravel(),
        "padding": many(0),
        "edge_added_text": said("to gradients that are there: 1/16 everywhere"),
        "edge_added_gradients_f64": whole.ravel(),
        "edge_smaller_text": said("the same model, then a batch (1,4)"),
        "edge_smaller_gradients_f64": few.ravel(),
    }


def update(seed: int) -> Values:
    values: Values = {}
    sizes = kinds(STEPPED)
    decays = np.repeat([i in DECAYS for i in range(KINDS)], sizes)
    for name, text, decay in (
        ("plain", "two steps, decay 0", 0.0),
        ("decay", "two steps, decay 1/2", 0.5),
    ):
        params = in_file(STEPPED, STEPPED.weights(seed)).astype(np.float64)
        draw, states = Draw(seed, 0), [Adam(BETAS, EPS) for _ in range(params.size)]
        values[f"{name}_text"] = said(text)
        for t in (1, 2):
            grads = draw(params.size)
            grads[STEPPED.V * STEPPED.C : sizes[0]] = 0
            old = zip(states, params, grads, decays, strict=True)
            params = np.array([s.step(p, g, t, 0.25, decay * d) for s, p, g, d in old])
            values[f"{name}_parameters_after_step_{t}_f64"] = params
    return values


def exam(first: int, last: int, name: str, seed: int) -> Values:
    values: Values = {}
    for tiny in EXAMS:
        values[f"{tiny.name}_text"] = said(tiny.text)
        found = of_exam(tiny, seed)[first:last]
        values[f"{tiny.name}_{name}_f64"] = found.ravel()
    return values


def exam_norms(seed: int) -> Values:
    values: Values = {}
    for first, name in ((2, "ln1"), (8, "ln2"), (14, "lnf")):
        values |= exam(first, first + 2, name, seed)
    return values


def exam_steps(seed: int) -> Values:
    x, y = STEPPED.batch(seed)
    weights, losses = STEPPED.weights(seed), []
    states = {name: [Adam() for _ in range(array.size)] for name, array in weights.items()}

    def loss(w: Mapping[str, Array]) -> Array:
        return cross_entropy(gpt2(STEPPED, w, x), y)

    for t in range(1, 11):
        losses.append(float(np.real(loss(weights))))
        grads = gradients(weights, loss)
        for each, array in weights.items():
            own = DECAY if array.ndim >= 2 else 0.0
            old = zip(states[each], array.ravel(), grads[each].ravel(), strict=True)
            new = [s.step(p, g, t, LR, own) for s, p, g in old]
            weights[each] = np.array(new).reshape(array.shape)
    return {"steps_text": said(STEPPED.text), "steps_losses_f64": np.array(losses)}


def life(seed: int) -> Values:
    return {"params": in_file(STEPPED, STEPPED.weights(seed))}  # of this form


CASES = {
    "model": {
        "zero_grad": ("by hand", zero_grad),
        "backward": (ORIGIN, backward),
        "update": ("the formula of the paper, number by number", update),
        "exam_embeddings": (ORIGIN, lambda seed: exam(0, 2, "gradients", seed)),
        "exam_attention": (ORIGIN, lambda seed: exam(4, 8, "gradients", seed)),
        "exam_mlp": (ORIGIN, lambda seed: exam(10, 14, "gradients", seed)),
        "exam_norms": (ORIGIN, exam_norms),
        "exam_steps": (f"{ORIGIN}; AdamW number by number", exam_steps),
        "life": ("by hand", life),
    }
}
