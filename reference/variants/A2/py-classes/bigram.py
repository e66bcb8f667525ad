"""bigram.py: an own operation picks rows; distributions row by row, draws by a scalar walk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from . import autograd as ad
from .autograd import Ints, Tensor
from .model import Module, parameter
from .native import matmul_forward
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
    if ids.size < 2:
        raise ValueError(f"only {ids.size} ids")
    if ids.min() < 0 or ids.max() > vocab - 1:
        raise ValueError(f"{ids.min()} or {ids.max()} is no id of a vocabulary of {vocab}")
    before, after = ids[:-1], ids[1:]
    rows = [np.bincount(after[before == i], minlength=vocab) for i in range(vocab)]
    return np.array(rows, np.int64)


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs."""

    def row(counted: Counts) -> float:
        """What one row adds: R log R - Σ C log C."""
        some = counted[counted > 0].astype(np.float64)
        return float(some.sum() * np.log(some.sum()) - some @ np.log(some)) if some.size else 0.0

    return sum(row(counted) for counted in counts) / float(np.sum(counts, dtype=np.float64))


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
        table = np.zeros((vocab, vocab), np.float32)
        for row, counted in zip(table, pair_counts(ids, vocab), strict=True):
            row[:] = np.log((counted + 1) / (counted.sum() + vocab))
        return cls(table)

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        counts = pair_counts(ids, self.vocab)
        total = 0.0
        for row, counted in zip(self.weight.astype(np.float64), counts, strict=True):
            if counted.any():
                top = row.max()
                log_sum = top + np.log(np.sum(np.exp(row - top)))
                met = counted > 0
                total += counted[met] @ (log_sum - row[met])
        return float(total / counts.sum())

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        if ids.size and not (ids.min() >= 0 and ids.max() < self.vocab):
            raise ValueError(f"ids {ids.min()} .. {ids.max()} for {self.vocab} rows")
        out = np.empty((*ids.shape, self.vocab), np.float32)
        eye = np.identity(self.vocab, np.float32)
        for place in np.ndindex(ids.shape):
            one = int(ids[place])
            out[place] = matmul_forward(eye[one : one + 1], self.weight.T)[0]
        return out

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Raises ValueError for a start outside 0 .. V-1.
        """
        if start < 0 or start >= self.vocab:
            raise ValueError(f"cannot start with {start}")
        rng = PCG32(seed, seq=54)
        ids: list[int] = []
        token = start
        while len(ids) < n:
            z = self.weight[token].astype(np.float64) / temperature
            w = np.exp(z - z.max()).tolist()
            total = 0.0
            for weight in w:
                total += weight
            goal, running, token = rng.uniform() * total, w[0], 0
            while running <= goal:
                token += 1
                running += w[token]
            ids.append(token)
        return ids

    def save(self, folder: Path | str) -> None:
        """Makes a model directory: `model.safetensors` with the table as "bigram.weight", and
        `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        config = {"tl_arch": ARCHITECTURE, "vocab_size": len(self.weight)}
        (path / CONFIG).write_text(json.dumps(config), encoding="utf-8")
        save_file({TENSOR: np.ascontiguousarray(self.weight)}, str(path / WEIGHTS))

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError for missing files, ValueError for others that are
        no bigram's: another tl_arch, no such tensor, another shape or type."""
        path = Path(folder)
        text, _ = (path / CONFIG).read_text(encoding="utf-8"), (path / WEIGHTS).stat()
        config = json.loads(text)
        try:
            assert config["tl_arch"] == ARCHITECTURE, config["tl_arch"]
            lm = cls(load_file(str(path / WEIGHTS))[TENSOR])
            assert lm.vocab == config["vocab_size"], lm.vocab
        except OSError:
            raise
        except Exception as error:
            raise ValueError(f"{folder} is no bigram's: {error!r}") from error
        return lm


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        return _Rows(ids)(self.weight)

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        return BigramLM(np.array(self.weight.data, np.float32))


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


class _Rows(ad.Operation):
    """Rows of a table; its gradient is summed row by row."""

    def __init__(self, ids: Ints) -> None:
        self.ids = ids

    def forward(self, table: ad.Array) -> ad.Array:
        self.vocab = len(table)
        ad.check_ids("id", self.ids, self.vocab)
        return np.take(table, self.ids, axis=0)

    def backward(self, grad: ad.Array) -> ad.Gradients:
        by_row = grad.reshape(-1, grad.shape[-1])
        flat = self.ids.ravel()
        sums = [by_row[flat == i].sum(axis=0) for i in range(self.vocab)]
        return (np.stack(sums).astype(grad.dtype),)
