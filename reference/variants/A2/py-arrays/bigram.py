"""bigram.py: everything is a matrix: what depends on a text goes through its pair counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from . import autograd as ad
from . import native
from .autograd import Ints, Tensor
from .model import Module, parameter
from .rand import PCG32

Counts = NDArray[np.int64]
Floats = NDArray[np.float32]

TENSOR = "bigram.weight"  # the table's name in the file of weights
ARCHITECTURE = "bigram"  # what the config calls `tl_arch`
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def pair_counts(ids: Ints, vocab: int) -> Counts:
    """(V, V) int64: how often token j follows token i in ids (T,), V = vocab.

    Raises ValueError for fewer than two ids, and for an id outside 0 .. V-1.
    """
    if len(ids) < 2:
        raise ValueError(f"no pair in {len(ids)} ids")
    if np.any(ids < 0) or np.any(ids >= vocab):
        raise ValueError(f"ids from {ids.min()} to {ids.max()}, want 0 .. {vocab - 1}")
    counts = np.zeros((vocab, vocab), np.int64)
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    return counts


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs."""
    came = counts > 0
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return float(-np.sum(counts * np.log(np.where(came, share, 1.0))) / counts.sum())


class BigramLM:
    """A table of logits (V, V) float32, to count, sample from and save.

    Raises TypeError for a table of another type, ValueError for one that is not square.
    """

    def __init__(self, weight: Floats) -> None:
        if weight.dtype != np.float32:
            raise TypeError(f"a table of {weight.dtype}, want float32")
        if weight.ndim != 2 or weight.shape[0] != weight.shape[1]:
            raise ValueError(f"a table of shape {weight.shape}, want (V, V)")
        self.weight = weight

    @property
    def vocab(self) -> int:
        return len(self.weight)

    @classmethod
    def from_counts(cls, ids: Ints, vocab: int = 256) -> BigramLM:
        """Add-one counts: logits log((C_ij + 1) / (R_i + V)), computed in float64. Raises as
        `pair_counts` does."""
        smooth = pair_counts(ids, vocab) + 1.0
        return cls(np.log(smooth / smooth.sum(axis=1, keepdims=True)).astype(np.float32))

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        counts = pair_counts(ids, self.vocab)
        return float(np.sum(counts * -_log_softmax(self.weight), where=counts > 0) / counts.sum())

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        ids = np.asarray(ids)
        if np.any(ids < 0) or np.any(ids >= self.vocab):
            raise ValueError(f"ids from {ids.min()} to {ids.max()}, want 0 .. {self.vocab - 1}")
        hot = np.eye(self.vocab, dtype=np.float32)[ids.reshape(-1)]
        return native.matmul_forward(hot, self.weight.T).reshape((*ids.shape, self.vocab))

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Raises ValueError for a start outside 0 .. V-1.
        """
        if start not in range(self.vocab):
            raise ValueError(f"start {start} is no id below {self.vocab}")
        z = self.weight.astype(np.float64) / temperature
        running = np.cumsum(np.exp(z - z.max(axis=1, keepdims=True)), axis=1)
        ids = [start]
        for u in PCG32(seed).uniforms(n):
            row = running[ids[-1]]
            ids.append(int(np.searchsorted(row, u * row[-1], side="right")))
        return ids[1:]

    def save(self, folder: Path | str) -> None:
        """Makes a model directory: `model.safetensors` with the table as "bigram.weight", and
        `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_file({TENSOR: self.weight.copy(order="C")}, folder / WEIGHTS)
        config = {"tl_arch": ARCHITECTURE, "vocab_size": self.vocab}
        (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError for missing files, ValueError for others that are
        no bigram's: another tl_arch, no such tensor, another shape or type."""
        config = json.loads(Path(folder, CONFIG).read_text(encoding="utf-8"))
        if not isinstance(config, dict) or config.get("tl_arch") != ARCHITECTURE:
            raise ValueError(f"{folder}: tl_arch is not {ARCHITECTURE}")
        try:
            weight = load_file(Path(folder, WEIGHTS))[TENSOR]
        except (SafetensorError, KeyError) as error:
            raise ValueError(f"{folder}: no {TENSOR} in {WEIGHTS}: {error}") from error
        V = config.get("vocab_size")
        if weight.dtype != np.float32 or weight.shape != (V, V):
            raise ValueError(f"{folder}: {weight.dtype} {weight.shape} for a vocabulary of {V}")
        return cls(weight)


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        return ad.Embedding(ids)(self.weight)

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        return BigramLM(np.array(self.weight.data, dtype=np.float32, copy=True))


def counted_loss(rows: Tensor, counts: Counts) -> Tensor:
    """The mean of -log p(j | i) over all pairs, each of which is looked at once: rows (V, V) are
    the logits after each token, counts (V, V) how often j followed i. Given.

    Equal to CrossEntropy over the text, pair by pair. A row's maximum is taken off first, which
    changes no gradient: softmax does not depend on it.
    """
    share = counts / counts.sum()
    largest = rows.data.max(axis=1, keepdims=True)
    z = rows - Tensor(largest)
    after = Tensor(share.sum(axis=1, keepdims=True).astype(rows.dtype))
    log_sums = ad.Log()(ad.Sum(axis=1, keepdims=True)(ad.Exp()(z)))
    pairs = Tensor(share.astype(rows.dtype))
    return ad.Sum()(log_sums * after) - ad.Sum()(z * pairs)


def _log_softmax(rows: Floats) -> NDArray[np.float64]:
    """Logarithms of probabilities (V, V), row by row."""
    z = rows.astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))
