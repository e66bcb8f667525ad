"""Calls llmc/optim.py on parameters whose gradients the probe sets, and prints what it made."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from observe import DTYPES, WrongType, number, numbers, outcome, tensor, text
from samples import Array, Draw
from tiny import STEPPED, assembled, projected

SHAPES = ((3, 4), (4,), (2, 1, 2), (), (1, 5))
LR, DECAY, MAX_NORM = 2.0**-6, 0.125, 0.5  # of the whole steps
EPS = 2.0**-8  # so large that a gradient that should be 0 stays without effect
RATES = (0.25, 0.25, 0.125, 0.125)  # of four steps: a schedule changes it
NAMES = ("matrix", "vector", "second_matrix")
MISSING = 2  # in this step one of the parameters has no gradient


def parameters(dtype: object, arrays: Sequence[Array]) -> list:
    from llmc.autograd import Tensor

    return [Tensor(one.astype(dtype), requires_grad=True) for one in arrays]


def given(seed: int, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Array], list[list[Array]]]:
    """Values, and gradients for each of four steps."""
    draw = Draw(seed, 0)
    return [draw(*s) for s in shapes], [[draw(*s) for s in shapes] for _ in RATES]


def case_groups(seed: int) -> None:
    from llmc import optim

    made = parameters("f8", [np.zeros(shape) for shape in SHAPES])
    place = {id(parameter): i for i, parameter in enumerate(made)}
    groups = optim.decay_groups(iter(made), 0.1)
    number("groups", len(groups))
    for i, group in enumerate(groups):
        numbers(f"group_{i}", [place.get(id(each), -1) for each in group.parameters])
        numbers(f"decay_{i}", [float(group.weight_decay)], "f64")


def walk(name: str, made: list, optimiser: object, steps: list[list[Array]], kind: str) -> None:
    """Four steps; what the parameters are after each, and that their old arrays are untouched."""
    touched = 0
    for i, (rate, grads) in enumerate(zip(RATES, steps, strict=True)):
        optimiser.lr = rate
        for parameter, grad in zip(made, grads, strict=True):
            parameter.grad = grad.astype(parameter.dtype)
        if i == MISSING:
            made[0].grad = None
        held = [(parameter.data, parameter.data.copy()) for parameter in made]
        optimiser.step()
        touched += sum(not np.array_equal(before, copy) for before, copy in held)
        for parameter in made:
            if parameter.grad is not None:
                touched += not any(
                    np.array_equal(parameter.grad, g.astype(parameter.dtype)) for g in grads
                )
        for which, parameter in enumerate(made):
            tensor(f"{name}_{NAMES[which]}_after_step_{i + 1}_{kind}", parameter.data, kind)
    number(f"{name}_touched_{kind}", touched)


def case_sgd(seed: int) -> None:
    from llmc import optim

    values, steps = given(seed, ((2, 3), (3,)))
    for name, momentum in (("plain", 0.0), ("momentum", 0.75)):
        text(f"{name}_text", f"lr 1/4, 1/4, 1/8, 1/8, momentum {momentum}")
        for kind, dtype in DTYPES.items():
            made = parameters(dtype, values)
            walk(name, made, optim.SGD(iter(made), 1.0, momentum), steps, kind)


def case_adamw(seed: int) -> None:
    from llmc import optim

    values, steps = given(seed, ((2, 3), (3,), (2, 2)))
    for name, decay, betas, eps in ADAMW:
        text(f"{name}_text", f"lr 1/4, 1/4, 1/8, 1/8, decay {decay}, betas {betas}, eps {eps}")
        for kind, dtype in DTYPES.items():
            made = parameters(dtype, values)
            groups = [optim.Group([made[0], made[2]], decay), optim.Group([made[1]])]
            walk(name, made, optim.AdamW(groups, 1.0, betas, eps), steps, kind)


# Name, decay, betas, eps: a large eps shows where it stands.
ADAMW = (
    ("plain", 0.0, (0.9, 0.999), 1e-8),
    ("decay", 0.5, (0.9, 0.999), 1e-8),
    ("eps", 0.0, (0.5, 0.75), 0.25),
)


def case_clip(seed: int) -> None:
    from llmc import optim

    for name, scale, max_norm in CLIPPED:
        text(f"{name}_text", f"gradients of about {scale:g}, max_norm {max_norm:g}")
        for kind, dtype in DTYPES.items():
            made = clipped(optim, name, kind, dtype, seed, scale, max_norm)
            for i, parameter in enumerate(made[:3]):
                tensor(f"{name}_gradient_{i}_{kind}", parameter.grad, kind)
            number(f"{name}_without_{kind}", int(made[3].grad is None))
    made = parameters("f8", [np.zeros(2)])
    made[0].grad = np.array([1.0, np.inf])
    number("infinite", int(norm_of(optim.clip_grad_norm_(made, 1.0)) == np.inf))
    tensor("infinite_grad", made[0].grad[:1], "f64")
    outcome("zero", optim.clip_grad_norm_, made, 0.0)
    outcome("negative", optim.clip_grad_norm_, made, -0.5)


CLIPPED = (  # name, size of the gradients, max_norm
    ("above", 1.0, 0.5),
    ("below", 2.0**-8, 0.5),
    ("large", 2.0**100, 1.0),  # its squares are too much for a float32
)


def clipped(
    optim: ModuleType, name: str, kind: str, dtype: object, seed: int, scale: float, limit: float
) -> list:
    draw = Draw(seed, 0)
    arrays = [draw(2, 3), draw(3), draw()]
    made = parameters(dtype, [np.zeros_like(each) for each in (*arrays, arrays[1])])
    for parameter, grad in zip(made, arrays, strict=False):
        parameter.grad = np.array(scale * grad, dtype)
    norm = np.array(norm_of(optim.clip_grad_norm_(iter(made), limit)))
    tensor(f"{name}_norm_{kind}", norm.astype(dtype), kind)
    return made


def norm_of(value: object) -> float:
    if not isinstance(value, float):
        raise WrongType(f"clip_grad_norm_ returned {type(value).__name__}, want a float")
    return float(value)


def case_ema(seed: int) -> None:
    from llmc.optim import EMA

    draws = Draw(seed, 0)(6).tolist()
    for name, beta in (("slow", 0.75), ("none", 0.0)):
        average, values, debiased = EMA(beta), [], []
        for x in draws:
            average.update(x)
            values.append(float(average.value))
            debiased.append(float(average.value_debiased()))
        numbers(f"{name}_values", values, "f64")
        numbers(f"{name}_debiased", debiased, "f64")
    outcome("before", EMA(0.5).value_debiased)


def case_steps(seed: int) -> None:
    """Three whole steps: gradients, clipping, AdamW."""
    from llmc import model, optim
    from llmc.autograd import CrossEntropy

    tiny = STEPPED
    ids, targets = tiny.batch(seed)
    text("steps_text", f"{tiny.text}, lr {LR}, decay {DECAY}, eps {EPS}, clipped to {MAX_NORM}")
    for kind, dtype in DTYPES.items():
        made = assembled(model, tiny, tiny.weights(seed), dtype)
        optimiser = optim.AdamW(optim.decay_groups(made.parameters(), DECAY), LR, eps=EPS)
        losses, norms = [], []
        for _ in range(3):
            made.zero_grad()
            loss = CrossEntropy(targets)(made(ids))
            loss.backward()
            losses.append(float(loss.data))
            norms.append(norm_of(optim.clip_grad_norm_(made.parameters(), MAX_NORM)))
            optimiser.step()
        tensor(f"steps_losses_{kind}", np.array(losses, dtype), kind)
        tensor(f"steps_norms_{kind}", np.array(norms, dtype), kind)
        weights = {name: parameter.data for name, parameter in made.named_parameters().items()}
        along = projected(weights, tiny.directions(seed))
        tensor(f"steps_weights_{kind}", along.astype(dtype), kind)


CASES = {
    "groups": case_groups,
    "sgd": case_sgd,
    "adamw": case_adamw,
    "clip": case_clip,
    "ema": case_ema,
    "steps": case_steps,
}
