"""Runs the modules of llmc/model.py on weights that are given, and prints what comes back."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from observe import DTYPES, array, number, numbers, outcome, tensor, text
from samples import Array, Draw
from tiny import INITIAL, LAYERS, PARTS, TINY, Tiny, assembled


def case_train(seed: int) -> None:
    """Modules in attributes, in lists, and within each other."""
    from llmc.model import Module

    def module(**attributes: object) -> Module:
        made = Module()
        vars(made).update(attributes)
        return made

    leaves = [module() for _ in range(4)]
    inner = module(deep=leaves[0])
    root = module(inner=inner, several=[leaves[1], module(last=leaves[2])], size=3)
    every = [root, inner, root.several[1], *leaves[:3]]

    def flags() -> list[int]:
        return [int(bool(each.training)) for each in every]

    root.eval()
    root.eval()
    numbers("eval", flags())
    root.train()
    numbers("train", flags())
    root.train(False)
    inner.train()
    numbers("part", flags())
    number("outside", int(bool(leaves[3].training)))
    number("others", int(bool(Module().training)))


def case_linear(seed: int) -> None:
    draw = Draw(seed, 0)

    def linear(x: Array, weight: Array, bias: Array) -> Array:
        from llmc import autograd, model

        return model.Linear(weight, bias)(autograd.Tensor(x)).data

    for name, shape, out in LAYERS:
        arrays = draw(*shape), draw(out, shape[-1]), draw(out)
        in_both(name, f"{shape} to {out}".replace(", ", ","), linear, *arrays)


def in_both(name: str, said: str, call: Callable[..., Array], *arrays: Array) -> None:
    """What a call makes of the arrays, in both dtypes."""
    text(f"{name}_text", said)
    for kind, dtype in DTYPES.items():
        tensor(f"{name}_{kind}", call(*(each.astype(dtype) for each in arrays)), kind)


def case_normals(seed: int) -> None:
    from llmc.model import normals

    for n in (16, 48, 20, 31):
        words = np.random.RandomState(seed % 2**32)
        array(f"n_{n}", normals(n, 0.5, words), "f32")
        number(f"after_{n}", int(words.randint(0, 2**32, None, np.uint32)))
    words = np.random.RandomState(seed % 2**32)
    normals(17, 1.0, words)
    array("second", normals(32, 0.02, words), "f32")
    outcome("few", normals, 15, 1.0, words)
    outcome("none", normals, 0, 1.0, words)


def case_heads(seed: int) -> None:
    for tiny in PARTS:
        run_part(tiny, seed, lambda model: model.h[0].attn)


def case_block(seed: int) -> None:
    for tiny in PARTS:
        run_part(tiny, seed, lambda model: model.h[0])


def run_part(tiny: Tiny, seed: int, part: Callable[[Any], Any]) -> None:
    def call(x: Array) -> Array:
        from llmc import autograd, model

        whole = assembled(model, tiny, tiny.weights(seed), x.dtype)
        return part(whole)(autograd.Tensor(x)).data

    x = Draw(seed, 0)(tiny.B, tiny.T, tiny.C)
    in_both(tiny.name, tiny.text, call, x)


def case_gpt2(seed: int) -> None:
    from llmc import model

    refused(model, seed)
    for tiny in TINY:
        text(f"{tiny.name}_text", tiny.text)
        for kind, dtype in DTYPES.items():
            made = assembled(model, tiny, tiny.weights(seed), dtype)
            tensor(f"{tiny.name}_{kind}", made(tiny.batch(seed)[0]).data, kind)


def refused(model: ModuleType, seed: int) -> None:
    tiny = TINY[0]
    made = assembled(model, tiny, tiny.weights(seed), np.float64)
    outcome("good", made, np.zeros((1, tiny.maxT), np.int64))
    outcome("long", made, np.zeros((1, tiny.maxT + 1), np.int64))
    outcome("empty", made, np.zeros((2, 0), np.int64))
    outcome("row", made, np.zeros(3, np.int64))
    outcome("beyond", made, np.array([[0, tiny.V]]))
    outcome("negative", made, np.array([[-1, 0]]))


def case_key(seed: int) -> None:
    """GPT-2 as its seed makes it, and the loss that it begins with."""
    from llmc.autograd import CrossEntropy
    from llmc.model import GPT2, Config

    ids, targets = INITIAL.batch(seed)
    text("initial_text", INITIAL.text)
    for kind, dtype in DTYPES.items():
        model = GPT2(Config(**INITIAL.sizes), dtype, seed % 2**32)
        logits = model(ids)
        tensor(f"initial_logits_{kind}", logits.data, kind)
        tensor(f"initial_loss_{kind}", CrossEntropy(targets)(logits).data, kind)


CASES = {
    "train": case_train,
    "linear": case_linear,
    "normals": case_normals,
    "heads": case_heads,
    "block": case_block,
    "gpt2": case_gpt2,
    "key": case_key,
}
