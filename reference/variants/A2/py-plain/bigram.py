"""bigram.py: Python numbers, one token at a time, and the file of weights written by hand."""

from __future__ import annotations

import json
import math
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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
    tokens = _checked(ids, vocab)
    if len(tokens) < 2:
        raise ValueError(f"{len(tokens)} ids, want at least two")
    counts = np.zeros((vocab, vocab), np.int64)
    for before, after in pairwise(tokens):
        counts[before, after] += 1
    return counts


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs."""
    total = 0.0
    for row in counts.tolist():
        row_sum = sum(row)
        for count in row:
            if count > 0:
                total -= count * math.log(count / row_sum)
    return total / int(counts.sum())


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
        table = np.empty((vocab, vocab), np.float32)
        for i in range(vocab):
            row_sum = int(counts[i].sum()) + vocab
            for j in range(vocab):
                table[i, j] = math.log((int(counts[i, j]) + 1) / row_sum)
        return cls(table)

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        tokens = _checked(ids, self.vocab)
        if len(tokens) < 2:
            raise ValueError(f"{len(tokens)} ids, want at least two")
        log_sums: dict[int, float] = {}  # of the rows that were met
        total = 0.0
        for before, after in pairwise(tokens):
            if before not in log_sums:
                row = self.weight[before].tolist()
                largest = max(row)
                log_sums[before] = largest + math.log(sum(math.exp(z - largest) for z in row))
            total += log_sums[before] - float(self.weight[before, after])
        return total / (len(tokens) - 1)

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        tokens = _checked(ids, self.vocab)
        hot = np.zeros((len(tokens), self.vocab), np.float32)
        for row, token in enumerate(tokens):
            hot[row, token] = 1
        found = native.matmul_forward(hot, self.weight.T)
        return found.reshape(*np.shape(ids), self.vocab)

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Raises ValueError for a start outside 0 .. V-1.
        """
        if not 0 <= start < self.vocab:
            raise ValueError(f"start {start} is outside 0 .. {self.vocab - 1}")
        rng = PCG32(seed)
        token = start
        drawn = []
        for _ in range(n):
            z = [logit / temperature for logit in self.weight[token].tolist()]
            largest = max(z)
            weights = [math.exp(value - largest) for value in z]
            total = 0.0
            for weight in weights:
                total += weight
            mark = rng.uniform() * total
            running = 0.0
            for j, weight in enumerate(weights):
                running += weight
                if running > mark:
                    token = j
                    break
            drawn.append(token)
        return drawn

    def save(self, folder: Path | str) -> None:
        """Makes a model directory: `model.safetensors` with the table as "bigram.weight", and
        `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        table = np.ascontiguousarray(self.weight, "<f4").tobytes()
        about = {
            TENSOR: {
                "dtype": "F32",
                "shape": [self.vocab, self.vocab],
                "data_offsets": [0, len(table)],
            }
        }
        header = json.dumps(about).encode()
        header += b" " * (-len(header) % 8)
        with open(folder / WEIGHTS, "wb") as file:
            file.write(struct.pack("<Q", len(header)))
            file.write(header)
            file.write(table)
        config = {"tl_arch": ARCHITECTURE, "vocab_size": self.vocab}
        with open(folder / CONFIG, "w", encoding="utf-8") as file:
            json.dump(config, file)

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError for missing files, ValueError for others that are
        no bigram's: another tl_arch, no such tensor, another shape or type."""
        folder = Path(folder)
        config = json.loads((folder / CONFIG).read_bytes())
        if not isinstance(config, dict) or config.get("tl_arch") != ARCHITECTURE:
            raise ValueError(f"{folder / CONFIG}: no config of a bigram")
        data = (folder / WEIGHTS).read_bytes()
        if len(data) < 8:
            raise ValueError(f"{folder / WEIGHTS}: no header")
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
        if not isinstance(header, dict) or not isinstance(header.get(TENSOR), dict):
            raise ValueError(f"{folder / WEIGHTS}: no {TENSOR}")
        about = header[TENSOR]
        V = config.get("vocab_size")
        if about.get("dtype") != "F32" or about.get("shape") != [V, V]:
            raise ValueError(f"{folder / WEIGHTS}: {about}, want F32 of shape {[V, V]}")
        first, last = about["data_offsets"]
        table = data[8 + length + first : 8 + length + last]
        return cls(np.frombuffer(table, "<f4").reshape(V, V).astype(np.float32))


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        return ad.Embedding(ids)(self.weight)

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        return BigramLM(self.weight.data.astype(np.float32))


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


def _checked(ids: Ints, vocab: int) -> list[int]:
    """All ids in a row, as Python's integers. Raises ValueError for one outside 0 .. vocab - 1."""
    tokens = [int(token) for token in np.asarray(ids).flat]
    for token in tokens:
        if token < 0 or token >= vocab:
            raise ValueError(f"id {token} is outside 0 .. {vocab - 1}")
    return tokens
