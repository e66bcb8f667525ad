"""bigram.py: the course's own parts: CrossEntropy, Embedding, check_ids, sample_pcg."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from . import autograd as ad
from .autograd import Ints, Tensor
from .model import Module, parameter
from .native import matmul_forward
from .rand import PCG32
from .sampler import sample_pcg

Counts = NDArray[np.int64]
Floats = NDArray[np.float32]

TENSOR = "bigram.weight"  # the table's name in the file of weights
ARCHITECTURE = "bigram"  # what the config calls `tl_arch`
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def pair_counts(ids: Ints, vocab: int) -> Counts:
    """(V, V) int64: how often token j follows token i in ids (T,), V = vocab.

    Raises ValueError for fewer than two ids, and for an id outside 0 .. V-1.
    """
    _check(ids, vocab, 2)
    codes = ids[:-1].astype(np.int64) * vocab + ids[1:].astype(np.int64)
    return np.bincount(codes, minlength=vocab * vocab).reshape(vocab, vocab).astype(np.int64)


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs."""
    rows, columns = counts.nonzero()
    came = counts[rows, columns].astype(np.float64)
    row_sums = counts.sum(axis=1)[rows]
    return float(np.average(np.log(row_sums) - np.log(came), weights=came))


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
        smoothed = pair_counts(ids, vocab).astype(np.float64) + 1
        logs = np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True))
        return cls(logs.astype(np.float32))

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        _check(ids, self.vocab, 2)
        table = Tensor(self.weight.astype(np.float64))
        total = 0.0
        for first in range(0, len(ids) - 1, 4096):  # so that memory does not grow with the text
            part = ids[first : first + 4097]
            loss = ad.CrossEntropy(part[1:])(ad.Embedding(part[:-1])(table))
            total += float(loss.data) * (len(part) - 1)
        return total / (len(ids) - 1)

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        ids = np.asarray(ids)
        _check(ids, self.vocab)
        hot = np.zeros((ids.size, self.vocab), np.float32)
        np.put_along_axis(hot, ids.reshape(-1, 1).astype(np.int64), 1, axis=1)
        return matmul_forward(hot, self.weight.T).reshape(*ids.shape, -1)

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Raises ValueError for a start outside 0 .. V-1.
        """
        _check(np.array([start]), self.vocab)
        rng, found = PCG32(seed, 54), []
        for _ in range(n):
            start = sample_pcg(self.weight[start], temperature, rng)
            found.append(start)
        return found

    def save(self, folder: Path | str) -> None:
        """Makes a model directory: `model.safetensors` with the table as "bigram.weight", and
        `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        table = np.require(self.weight, np.float32, ["C"])
        save_file({TENSOR: table}, folder / WEIGHTS, metadata={"format": "np"})
        config = {"tl_arch": ARCHITECTURE, "vocab_size": self.vocab, "dtype": "float32"}
        (folder / CONFIG).write_text(json.dumps(config, indent=4, sort_keys=True))

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError for missing files, ValueError for others that are
        no bigram's: another tl_arch, no such tensor, another shape or type."""
        folder = Path(folder)
        config = json.loads((folder / CONFIG).read_text())
        try:
            arch, V = config["tl_arch"], config["vocab_size"]
            with safe_open(folder / WEIGHTS, framework="numpy") as file:
                entry = file.get_slice(TENSOR)
                fits = entry.get_dtype() == "F32" and entry.get_shape() == [V, V]
                if arch != ARCHITECTURE or not fits:
                    raise ValueError(f"{folder} is a {arch} of {V}, with another table or none")
                return cls(file.get_tensor(TENSOR))
        except (KeyError, TypeError, SafetensorError) as error:
            raise ValueError(f"{folder} holds no bigram: {error}") from None


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        return ad.Embedding(ids)(self.weight)

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        return BigramLM(self.state_dict()["weight"].astype(np.float32, copy=False))


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


def _check(ids: Ints, vocab: int, least: int = 0) -> None:
    """Raises ValueError for fewer than `least` ids, and for one outside 0 .. vocab - 1."""
    if ids.size < least:
        raise ValueError(f"{ids.size} ids, want {least} or more")
    try:
        ad.check_ids("id", ids, vocab)
    except IndexError as error:
        raise ValueError(str(error)) from None
