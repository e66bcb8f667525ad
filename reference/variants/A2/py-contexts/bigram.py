"""bigram.py: pairs as sorted codes (np.unique), masked arrays, logaddexp, atomic weights."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save_file

from . import autograd as ad
from . import native, rand
from .autograd import Ints, Tensor
from .model import Module, parameter

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
        raise ValueError("a pair needs two ids")
    wide = _wide(ids, vocab)
    codes, times = np.unique(wide[:-1] * vocab + wide[1:], return_counts=True)
    counts = np.zeros(vocab * vocab, np.int64)
    counts[codes] = times
    return counts.reshape(vocab, vocab)


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs."""
    seen = np.ma.masked_equal(counts, 0).astype(np.float64)
    row_sums = counts.sum(axis=1, keepdims=True)
    total = -(seen * np.ma.log(seen / row_sums)).sum()
    return float(total) / float(counts.sum())


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
        C = pair_counts(ids, vocab)
        R = np.sum(C, axis=1)
        logits = np.log((C + 1.0) / (R[:, np.newaxis] + float(vocab)))
        return cls(np.float32(logits))

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        if len(ids) < 2:
            raise ValueError("nothing to predict")
        wide = _wide(ids, self.vocab)
        z = self.weight.astype(np.float64)
        normalisers = np.logaddexp.reduce(z, axis=1)
        return float(np.mean(normalisers[wide[:-1]] - z[wide[:-1], wide[1:]]))

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        wide = _wide(ids, self.vocab)
        hot = np.zeros((wide.size, self.vocab), np.float32)
        hot[np.arange(wide.size), wide.ravel()] = 1.0
        rows = native.matmul_forward(hot, np.transpose(self.weight))
        return rows.reshape([*wide.shape, self.vocab])

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Raises ValueError for a start outside 0 .. V-1.
        """
        _wide(np.asarray(start), self.vocab)
        rng = rand.PCG32(seed)
        known: dict[int, NDArray[np.float64]] = {}  # running sums of the rows that were needed

        def running(token: int) -> NDArray[np.float64]:
            if token not in known:
                z = np.divide(self.weight[token], temperature, dtype=np.float64)
                known[token] = np.add.accumulate(np.exp(z - np.max(z)))
            return known[token]

        def follow(token: int) -> int:
            sums = running(token)
            return int(np.flatnonzero(sums > rng.uniform() * sums[-1])[0])

        ids = []
        for _ in range(n):
            ids.append(follow(ids[-1] if ids else start))
        return ids

    def save(self, folder: Path | str) -> None:
        """Makes a model directory: `model.safetensors` with the table as "bigram.weight", and
        `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / (WEIGHTS + ".part")
        save_file({TENSOR: np.array(self.weight, order="C")}, part)
        os.replace(part, folder / WEIGHTS)
        with (folder / CONFIG).open("w") as file:
            json.dump({"vocab_size": self.vocab, "tl_arch": ARCHITECTURE}, file)

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError for missing files, ValueError for others that are
        no bigram's: another tl_arch, no such tensor, another shape or type."""
        folder = Path(folder)
        with (folder / CONFIG).open("rb") as file:
            config = json.load(file)
        arch = config.get("tl_arch") if isinstance(config, dict) else None
        if arch != ARCHITECTURE:
            raise ValueError(f"{folder}: tl_arch {arch!r}, want {ARCHITECTURE!r}")
        try:
            tensors = dict(safetensors.deserialize((folder / WEIGHTS).read_bytes()))
        except safetensors.SafetensorError as error:
            raise ValueError(f"{folder / WEIGHTS}: {error}") from error
        entry = tensors.get(TENSOR, {"dtype": "none", "shape": []})
        V = config.get("vocab_size")
        if entry["dtype"] != "F32" or entry["shape"] != [V, V]:
            raise ValueError(f"{TENSOR}: {entry['dtype']} {entry['shape']}, want F32 {[V, V]}")
        table = np.frombuffer(entry["data"], np.float32).reshape(V, V)
        return cls(table.copy())


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        ad.check_ids("id", ids, len(self.weight.data))
        hot = np.eye(len(self.weight.data), dtype=self.weight.dtype)[ids.reshape(-1)]
        rows = Tensor(hot) @ self.weight
        return ad.Reshape(*ids.shape, len(self.weight.data))(rows)

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        table = np.empty(self.weight.shape, np.float32)
        table[...] = self.weight.data
        return BigramLM(table)


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


def _wide(ids: Ints, vocab: int) -> NDArray[np.int64]:
    """The ids as int64. Raises ValueError for one outside 0 .. vocab - 1."""
    outside = (ids < 0) | (ids >= vocab)
    if outside.any():
        raise ValueError(f"id {ids[outside].flat[0]} is not within 0 .. {vocab - 1}")
    return ids.astype(np.int64)
