"""exam.py: the two files in which GPT-2 goes from Python to C: its weights, and an exam on them.

Given. The model file is what C starts from; the state file holds a batch and what the model makes
of it: logits, loss, and the gradient of the loss by every weight. Whoever computes the same from
the same weights and batch has passed. There are no names in the files: ORDER is the contract, and
`Parameters` in llmc/model.h has the same.

    model file   256 int32: 20240326, 3, maxT, V, L, NH, C, Vp, zeros; then float32 tensors in
                 ORDER, each for all layers, wte (Vp,C) with rows of zeros behind V
    state file   256 int32: 20240327, 2, B, T, zeros; then x (B,T), y (B,T) int32, logits (B,T,V),
                 the loss, and the gradients, as the tensors of the model file, all float32
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike

import numpy as np

from .autograd import Array, Ints
from .model import GPT2, Config
from .tokenizer import write_whole

MODEL_MAGIC, MODEL_VERSION = 20240326, 3
STATE_MAGIC, STATE_VERSION = 20240327, 2
MULTIPLE = 128  # of rows of wte: matrix products on a GPU are cut into tiles
LAYER = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
ORDER = (
    "wte.weight",
    "wpe.weight",
    *(f"h.*.{name}.{which}" for name in LAYER for which in ("weight", "bias")),
    "ln_f.weight",
    "ln_f.bias",
)  # * stands for every layer, one after the other


def padded(V: int) -> int:
    """The next multiple of 128: Vp."""
    return -(-V // MULTIPLE) * MULTIPLE


def write_model(path: str | PathLike[str], model: GPT2) -> None:
    """Writes the weights, rounded to float32 where they are not."""
    c = model.config
    sizes = [c.maxT, c.V, c.L, c.NH, c.C, padded(c.V)]
    head = _header(MODEL_MAGIC, MODEL_VERSION, sizes)
    weights = {name: tensor.data for name, tensor in model.named_parameters().items()}
    write_whole(path, head + b"".join(_in_order(c, weights)))


def write_state(
    path: str | PathLike[str], model: GPT2, x: Ints, y: Ints, logits: Array, loss: float
) -> None:
    """Writes what one forward and backward made of the batch x, y (B,T): the model's gradients are
    those of this batch. Raises ValueError if a parameter has none."""
    missing = [name for name, tensor in model.named_parameters().items() if tensor.grad is None]
    if missing:
        raise ValueError(f"{missing[0]} has no gradient: run backward first")
    grads = {n: t.grad for n, t in model.named_parameters().items() if t.grad is not None}
    write_whole(
        path,
        _header(STATE_MAGIC, STATE_VERSION, list(x.shape))
        + np.stack([x, y]).astype("<i4").tobytes()
        + logits.astype("<f4").tobytes()
        + np.array([loss], "<f4").tobytes()
        + b"".join(_in_order(model.config, grads)),
    )


def _header(magic: int, version: int, sizes: Sequence[int]) -> bytes:
    head = np.zeros(256, "<i4")
    head[: 2 + len(sizes)] = magic, version, *sizes
    return head.tobytes()


def _in_order(config: Config, tensors: Mapping[str, Array]) -> Iterator[bytes]:
    for pattern in ORDER:
        names = [pattern.replace("*", str(i)) for i in range(config.L if "*" in pattern else 1)]
        for name in names:
            yield tensors[name].astype("<f4").tobytes()
        if pattern == "wte.weight":
            yield np.zeros((padded(config.V) - config.V, config.C), "<f4").tobytes()
