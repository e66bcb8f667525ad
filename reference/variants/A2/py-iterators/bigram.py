"""bigram.py: counters, neighbours from itertools.pairwise, and a sampler that is a generator."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

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
    counts = np.zeros((vocab, vocab), np.int64)
    for pair, times in _pairs(ids, vocab).items():
        counts[pair] = times
    return counts


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs."""
    sums = counts.sum(axis=1)
    terms = (counts[i, j] * math.log(sums[i] / counts[i, j]) for i, j in np.argwhere(counts))
    return math.fsum(terms) / int(sums.sum())


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
        counts = pair_counts(ids, vocab)
        totals = counts.sum(axis=1) + vocab
        return cls((np.log(counts + 1) - np.log(totals)[:, None]).astype(np.float32))

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        pairs = _pairs(ids, self.vocab)
        log_sums = {i: _log_sum(self.weight[i].tolist()) for i in {i for i, _ in pairs}}
        terms = (n * (log_sums[i] - float(self.weight[i, j])) for (i, j), n in pairs.items())
        return math.fsum(terms) / pairs.total()

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        flat = np.ravel(ids)
        if not all(0 <= token < self.vocab for token in flat):
            raise ValueError(f"an id outside 0 .. {self.vocab - 1}")
        columns = np.ascontiguousarray(self.weight.T)
        out = np.empty((flat.size, self.vocab), np.float32)
        for first in range(0, flat.size, 256):
            some = flat[first : first + 256]
            hot = (some[:, None] == np.arange(self.vocab)).astype(np.float32)
            out[first : first + 256] = native.matmul_forward(hot, columns)
        return out.reshape((*np.shape(ids), self.vocab))

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Raises ValueError for a start outside 0 .. V-1.
        """
        if not 0 <= start < self.vocab:
            raise ValueError(f"{start} is no id of {self.vocab}")
        return list(islice(self._walk(start, PCG32(seed), temperature), n))

    def _walk(self, token: int, rng: PCG32, temperature: float) -> Iterator[int]:
        while True:
            z = [float(logit) / temperature for logit in self.weight[token]]
            top = max(z)
            running = list(accumulate(math.exp(value - top) for value in z))
            goal = rng.uniform() * running[-1]
            token = next(j for j, reached in enumerate(running) if reached > goal)
            yield token

    def save(self, folder: Path | str) -> None:
        """Makes a model directory: `model.safetensors` with the table as "bigram.weight", and
        `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        os.makedirs(folder, exist_ok=True)
        data = save({TENSOR: np.ascontiguousarray(self.weight)})
        text = json.dumps({"tl_arch": ARCHITECTURE, "vocab_size": self.vocab})
        for name, content in ((WEIGHTS, data), (CONFIG, text.encode())):
            unfinished = os.path.join(folder, f".{name}.part")
            with open(unfinished, "wb") as file:
                file.write(content)
            os.replace(unfinished, os.path.join(folder, name))

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError for missing files, ValueError for others that are
        no bigram's: another tl_arch, no such tensor, another shape or type."""
        with open(os.path.join(folder, CONFIG), encoding="utf-8") as file:
            config = json.load(file)
        with open(os.path.join(folder, WEIGHTS), "rb") as file:
            data = file.read()
        match config:
            case {"tl_arch": "bigram", "vocab_size": int(V)}:
                pass
            case _:
                raise ValueError(f"{folder}: the config is no bigram's: {config}")
        try:
            table = load(data)[TENSOR]
        except Exception as error:
            raise ValueError(f"{folder}: no {TENSOR} to read") from error
        if (table.dtype, table.shape) != (np.float32, (V, V)):
            raise ValueError(f"{folder}: {TENSOR} is {table.dtype} of {table.shape}, V is {V}")
        return cls(table)


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        return ad.Embedding(ids)(self.weight)

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        return BigramLM(self.weight.data.astype("float32", copy=True))


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


def _pairs(ids: Ints, vocab: int) -> Counter[tuple[int, int]]:
    """How often each pair of neighbours came. Raises as `pair_counts` does."""
    tokens = ids.tolist()
    if len(tokens) < 2:
        raise ValueError(f"{len(tokens)} ids have no neighbours")
    if min(tokens) < 0 or max(tokens) >= vocab:
        raise ValueError(f"ids {min(tokens)} .. {max(tokens)}, want 0 .. {vocab - 1}")
    return Counter(pairwise(tokens))


def _log_sum(row: list[float]) -> float:
    """log Σ e^z."""
    top = max(row)
    return top + math.log(math.fsum(math.exp(z - top) for z in row))
