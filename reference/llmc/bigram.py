"""bigram.py: the smallest language model, a table: row i holds the logits after token i.

It can be counted, or trained by gradients: the loss is convex and its minimum is what counting
gives, so the answer is known to many digits before the first step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from . import autograd as ad
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
    # TODO (A2): pair_counts
    # HINT: np.bincount counts numbers, and a pair is a number: i V + j. uint8 is too small for it.
    # BEGIN SOLUTION
    if ids.ndim != 1 or ids.size < 2:
        raise ValueError(f"ids of shape {ids.shape}, want (T,) with T of 2 or more")
    if not 0 <= ids.min() <= ids.max() < vocab:
        raise ValueError(f"ids from {ids.min()} to {ids.max()}, want 0 .. {vocab - 1}")
    wide = ids.astype(np.int64)
    return np.bincount(wide[:-1] * vocab + wide[1:], minlength=vocab**2).reshape(vocab, vocab)
    # END SOLUTION


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs, of which there is one at least."""
    # TODO (A2): floor_nll
    # HINT: a pair that never came adds nothing; 0 log 0 would be nan.
    # BEGIN SOLUTION
    i, j = np.nonzero(counts)
    seen = counts[i, j].astype(np.float64)
    return float(-(seen * np.log(seen / counts.sum(axis=1)[i])).sum() / counts.sum())
    # END SOLUTION


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
        # TODO (A2): BigramLM.from_counts
        # HINT: each row's probabilities add up to 1, also those of a token that never came.
        # BEGIN SOLUTION
        counts = pair_counts(ids, vocab) + 1
        return cls(np.log(counts / counts.sum(axis=1, keepdims=True)).astype(np.float32))
        # END SOLUTION

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        # TODO (A2): BigramLM.nll
        # HINT: trained rows are no log-probabilities: take the log of Σ e^z off, with z's maximum.
        # BEGIN SOLUTION
        counts = pair_counts(ids, self.vocab)
        z = self.weight.astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
        i, j = np.nonzero(counts)
        return float(-(counts[i, j] * z[i, j]).sum() / counts.sum())
        # END SOLUTION

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        # TODO (A2): BigramLM.logits
        # HINT: matmul_forward wants matrices, and its weight as (out, in).
        # BEGIN SOLUTION
        from .native import matmul_forward

        flat = np.asarray(ids).reshape(-1)
        if flat.size and not 0 <= flat.min() <= flat.max() < self.vocab:
            raise ValueError(f"ids from {flat.min()} to {flat.max()}, want 0 .. {self.vocab - 1}")
        one_hot = np.zeros((flat.size, self.vocab), np.float32)
        one_hot[np.arange(flat.size), flat] = 1
        return matmul_forward(one_hot, self.weight.T).reshape(*np.shape(ids), self.vocab)
        # END SOLUTION

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Temperature is above 0, n is 0 or more. Raises ValueError
        for a start outside 0 .. V-1.
        """
        # TODO (A2): BigramLM.sample
        # HINT: A0's sampler draws one; the generator is made once.
        # BEGIN SOLUTION
        from .rand import PCG32
        from .sampler import sample_pcg

        if not 0 <= start < self.vocab:
            raise ValueError(f"start is {start}, want 0 .. {self.vocab - 1}")
        rng, ids = PCG32(seed), [start]
        for _ in range(n):
            ids.append(sample_pcg(self.weight[ids[-1]], temperature, rng))
        return ids[1:]
        # END SOLUTION

    def save(self, folder: Path | str) -> None:
        """Makes a model directory, with those above it: `model.safetensors` with the table as
        "bigram.weight", and `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        # TODO (A2): BigramLM.save
        # HINT: safetensors.numpy.save_file takes arrays by name, and their memory as it lies.
        # BEGIN SOLUTION
        import json

        from safetensors.numpy import save_file

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_file({TENSOR: np.ascontiguousarray(self.weight)}, folder / WEIGHTS)
        config = {"tl_arch": ARCHITECTURE, "vocab_size": self.vocab}
        (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        # END SOLUTION

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError where a file is missing, ValueError for files that
        are no bigram's: another tl_arch, weights cut short or without the tensor, or one that is
        not float32 or not (V, V), V the config's vocab_size."""
        # TODO (A2): BigramLM.load
        # HINT: look at the config first; the file of weights may hold anything. What is none raises
        # safetensors.SafetensorError in safetensors.numpy.load, which takes bytes.
        # BEGIN SOLUTION
        import json

        from safetensors import SafetensorError
        from safetensors.numpy import load

        folder = Path(folder)
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if not isinstance(config, dict) or config.get("tl_arch") != ARCHITECTURE:
            raise ValueError(f"{folder / CONFIG}: tl_arch is not {ARCHITECTURE}")
        raw = (folder / WEIGHTS).read_bytes()
        try:
            table = load(raw)[TENSOR]
        except (SafetensorError, KeyError) as fault:
            raise ValueError(f"{folder / WEIGHTS}: no {TENSOR} in it ({fault!r})") from None
        V = config.get("vocab_size")
        if table.dtype != np.float32 or table.shape != (V, V):
            raise ValueError(f"{TENSOR} is {table.shape} {table.dtype}, want ({V}, {V}) float32")
        return cls(table)
        # END SOLUTION


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        # TODO (A2): BigramLogits.__call__
        # HINT: no one-hot rows are needed to pick one.
        # BEGIN SOLUTION
        return ad.Embedding(np.asarray(ids))(self.weight)
        # END SOLUTION

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        # TODO (A2): BigramLogits.to_lm
        # HINT: a model may be trained in float64. astype copies, unless it is told not to.
        # BEGIN SOLUTION
        return BigramLM(self.weight.data.astype(np.float32))
        # END SOLUTION


def counted_loss(rows: Tensor, shares: Floats) -> Tensor:
    """The mean of -log p(j | i) over all pairs of a text, each of which is looked at once: rows
    (V, V) are the logits after each token; shares (V, V), of their dtype, say how often j followed
    i, over the number of all pairs. Given.

    Equal to CrossEntropy over the text, pair by pair. A row's maximum is taken off first, which
    changes no gradient: softmax does not depend on it.
    """
    z = rows + Tensor(-rows.data.max(axis=1, keepdims=True))
    log_sums = ad.Log()(ad.Sum(axis=1, keepdims=True)(ad.Exp()(z)))
    after = Tensor(shares.sum(axis=1, keepdims=True))
    return ad.Sum()(log_sums * after) - ad.Sum()(z * Tensor(shares))
