"""What optim_py.py of A2 must report: the optimisers' formulas, number by number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from samples import Draw
from tiny import STEPPED, projected

from reference.oracle.a0 import Values
from reference.oracle.a1_autograd_py import Array, cross_entropy, said, tensor
from reference.oracle.a1_model_py import gpt2
from reference.oracle.a2_autograd_py import STEP

LR, DECAY, MAX_NORM, LARGE_EPS = 2.0**-6, 0.125, 0.5, 2.0**-8
RATES = (0.25, 0.25, 0.125, 0.125)
NAMES = ("matrix", "vector", "second_matrix")
MISSING = 2
SHAPES = ((2, 3), (3,), (2, 2))  # of AdamW; SGD has the first two
BETAS, EPS = (0.9, 0.999), 1e-8


def many(*values: int) -> Array:
    return np.array(values, np.int64)


def groups(seed: int) -> Values:
    """Of (3,4), (4), (2,1,2), () and (1,5)."""
    return {
        "groups": many(2),
        "group_0": many(0, 2, 4),
        "decay_0": np.array([0.1]),
        "group_1": many(1, 3),
        "decay_1": np.array([0.0]),
    }


def given(seed: int, count: int) -> tuple[list[Array], list[list[Array]]]:
    """Of the first shapes: values, and gradients for each step."""
    draw, shapes = Draw(seed, 0), SHAPES[:count]
    return [draw(*s) for s in shapes], [[draw(*s) for s in shapes] for _ in RATES]


def sgd(seed: int) -> Values:
    values: Values = {}
    for name, momentum in (("plain", 0.0), ("momentum", 0.75)):
        values[f"{name}_text"] = said(f"lr 1/4, 1/4, 1/8, 1/8, momentum {momentum}")
        data, steps = given(seed, 2)
        velocities = [np.zeros(shape) for shape in SHAPES[:2]]
        for i, rate in enumerate(RATES):
            for which, grad in enumerate(steps[i]):
                if not (which == 0 and i == MISSING):
                    velocities[which] = momentum * velocities[which] + grad
                    data[which] = data[which] - rate * velocities[which]
                values |= tensor(f"{name}_{NAMES[which]}_after_step_{i + 1}_f64", data[which])
        values[f"{name}_touched_f64"] = many(0)
    return values


class Adam:
    """One number's state; t counts the optimiser's steps, not the number's."""

    def __init__(self, betas: tuple[float, float] = BETAS, eps: float = EPS) -> None:
        self.betas, self.eps, self.m, self.v = betas, eps, 0.0, 0.0

    def step(self, theta: float, g: float, t: int, lr: float, decay: float) -> float:
        first, second = self.betas
        self.m = first * self.m + (1 - first) * g
        self.v = second * self.v + (1 - second) * g * g
        m_hat, v_hat = self.m / (1 - first**t), self.v / (1 - second**t)
        return theta - lr * (m_hat / (math.sqrt(v_hat) + self.eps) + decay * theta)


def adamw(seed: int) -> Values:
    values: Values = {}
    for name, decay, betas, eps in (
        ("plain", 0.0, BETAS, EPS),
        ("decay", 0.5, BETAS, EPS),
        ("eps", 0.0, (0.5, 0.75), 0.25),
    ):
        text = f"lr 1/4, 1/4, 1/8, 1/8, decay {decay}, betas {betas}, eps {eps}"
        values[f"{name}_text"] = said(text)
        data, steps = given(seed, 3)
        states = [[Adam(betas, eps) for _ in range(array.size)] for array in data]
        for i, rate in enumerate(RATES):
            for which, grad in enumerate(steps[i]):
                if not (which == 0 and i == MISSING):
                    old = zip(states[which], data[which].ravel(), grad.ravel(), strict=True)
                    own = 0.0 if which == 1 else decay
                    new = [s.step(theta, g, i + 1, rate, own) for s, theta, g in old]
                    data[which] = np.array(new).reshape(SHAPES[which])
                values |= tensor(f"{name}_{NAMES[which]}_after_step_{i + 1}_f64", data[which])
        values[f"{name}_touched_f64"] = many(0)
    return values


def norm(grads: Iterable[Array]) -> float:
    return math.sqrt(math.fsum(float(g) ** 2 for grad in grads for g in np.ravel(grad)))


def clip(seed: int) -> Values:
    values: Values = {}
    for name, scale, limit in (
        ("above", 1.0, 0.5),
        ("below", 2.0**-8, 0.5),
        ("large", 2.0**100, 1.0),
    ):
        draw = Draw(seed, 0)
        grads = [scale * draw(2, 3), scale * draw(3), scale * draw()]
        length = norm(grads)
        values[f"{name}_text"] = said(f"gradients of about {scale:g}, max_norm {limit:g}")
        values |= tensor(f"{name}_norm_f64", np.array(length))
        for i, grad in enumerate(grads):
            values |= tensor(f"{name}_gradient_{i}_f64", grad * min(1.0, limit / length))
        values[f"{name}_without_f64"] = many(1)
    return values | {"infinite": many(1), **tensor("infinite_grad", np.array([1.0]))}


def ema(seed: int) -> Values:
    """Averages as sums of all that came before, each with its weight."""
    values: Values = {}
    draws = Draw(seed, 0)(6).tolist()
    for name, beta in (("slow", 0.75), ("none", 0.0)):
        weights = [[(1 - beta) * beta ** (t - i) for i in range(t + 1)] for t in range(6)]
        sums = [math.fsum(w * x for w, x in zip(row, draws, strict=False)) for row in weights]
        values[f"{name}_values"] = np.array(sums)
        values[f"{name}_debiased"] = np.array(
            [total / math.fsum(row) for total, row in zip(sums, weights, strict=True)]
        )
    return values


def steps(seed: int) -> Values:
    tiny = STEPPED
    weights, (ids, targets) = tiny.weights(seed), tiny.batch(seed)
    states = {
        name: [Adam(eps=LARGE_EPS) for _ in range(array.size)] for name, array in weights.items()
    }
    losses, norms = [], []
    for t in (1, 2, 3):
        losses.append(float(np.real(cross_entropy(gpt2(tiny, weights, ids), targets))))
        grads = gradients(weights, lambda w: cross_entropy(gpt2(tiny, w, ids), targets))
        norms.append(norm(grads.values()))
        factor = min(1.0, MAX_NORM / norms[-1])
        weights = {
            name: np.array(
                [
                    state.step(theta, g * factor, t, LR, DECAY if array.ndim >= 2 else 0.0)
                    for state, theta, g in zip(
                        states[name], array.ravel(), grads[name].ravel(), strict=True
                    )
                ]
            ).reshape(array.shape)
            for name, array in weights.items()
        }
    text = f"{tiny.text}, lr {LR}, decay {DECAY}, eps {LARGE_EPS}, clipped to {MAX_NORM}"
    return {
        "steps_text": said(text),
        **tensor("steps_losses_f64", np.array(losses)),
        **tensor("steps_norms_f64", np.array(norms)),
        **tensor("steps_weights_f64", projected(weights, tiny.directions(seed))),
    }


def gradients(weights: Mapping[str, Array], loss: object) -> dict[str, Array]:
    """By complex steps: an evaluation for each of the numbers."""
    found = {}
    for name, array in weights.items():
        found[name] = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            moved = array.astype(np.complex128)
            moved[place] += 1j * STEP
            found[name][place] = np.imag(loss({**weights, name: moved})) / STEP
    return found


FORMULAS = "the formulas of the papers, number by number, in Python floats"
CASES = {
    "optim_py": {
        "groups": ("by hand", groups),
        "sgd": (FORMULAS, sgd),
        "adamw": (FORMULAS, adamw),
        "clip": (FORMULAS, clip),
        "ema": ("weighted sums by math.fsum", ema),
        "steps": (f"complex steps; {FORMULAS}", steps),
    }
}
