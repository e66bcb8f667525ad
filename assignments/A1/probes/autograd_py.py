"""Calls the forward half of each operation of llmc/autograd.py and prints what comes back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from observe import DTYPES, number, outcome, tensor, text
from samples import SAMPLES, Draw, Units, class_of, samples

Case = Callable[[int], None]


def nothing(seed: int) -> None:
    """What most operations refuse."""


def forward(operation: str, refused: Case) -> Case:
    """A case: what the operation refuses, then its value on each of its samples in both dtypes."""

    def case(seed: int) -> None:
        from llmc import autograd as ad

        refused(seed)
        changed = 0
        for sample in samples(operation, seed):
            text(f"{sample.name}_text", sample.text)
            for kind, dtype in DTYPES.items():
                arrays = [array.astype(dtype) for array in sample.arrays]
                options = sample.options(dtype)
                made = getattr(ad, class_of(operation))(*options)
                tensor(f"{sample.name}_{kind}", made(*map(ad.Tensor, arrays)).data, kind)
                for after, before in zip(arrays, sample.arrays, strict=True):
                    changed += not np.array_equal(after, before)
                for units in options:
                    if isinstance(units, Units):
                        number(f"{sample.name}_{kind}_used", units.used)
        number("changed", changed)

    return case


def refused_matmul(seed: int) -> None:
    from llmc import autograd as ad

    draw = Draw(seed, 0)
    matrix, vector = ad.Tensor(draw(3, 3)), ad.Tensor(draw(3))
    outcome("left_vector", lambda: ad.MatMul()(vector, matrix))
    outcome("right_vector", lambda: ad.MatMul()(matrix, vector))


def refused_embedding(seed: int) -> None:
    from llmc import autograd as ad

    weight = ad.Tensor(Draw(seed, 0)(5, 2))
    for name, ids in (
        ("negative", np.array([2, -1])),
        ("beyond", np.array([[0], [5]])),
        ("floats", np.array([1.0])),
    ):
        outcome(name, lambda ids=ids: ad.Embedding(ids)(weight))


def refused_cross_entropy(seed: int) -> None:
    from llmc import autograd as ad

    logits = ad.Tensor(Draw(seed, 0)(2, 5))
    for name, targets in (
        ("shape", np.array([1, 2, 3])),
        ("column", np.array([[1], [2]])),
        ("ignored", np.array([-100, -100])),
        ("negative", np.array([0, -1])),
        ("beyond", np.array([5, -100])),
        ("floats", np.array([1.0, 2.0])),
    ):
        outcome(name, lambda targets=targets: ad.CrossEntropy(targets)(logits))


def refused_mse(seed: int) -> None:
    from llmc import autograd as ad

    draw = Draw(seed, 0)
    outcome("shape", lambda: ad.MSE()(ad.Tensor(draw(2, 3)), ad.Tensor(draw(3))))


def refused_bce(seed: int) -> None:
    from llmc import autograd as ad

    draw = Draw(seed, 0)
    outcome("shape", lambda: ad.BCEWithLogits(draw(2, 1))(ad.Tensor(draw(2))))


REFUSED = {
    "matmul": refused_matmul,
    "embedding": refused_embedding,
    "cross_entropy": refused_cross_entropy,
    "mse": refused_mse,
    "bce_with_logits": refused_bce,
}
CASES = {name: forward(name, REFUSED.get(name, nothing)) for name in SAMPLES}
