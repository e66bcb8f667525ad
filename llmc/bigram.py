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
    raise NotImplementedError("A2: pair_counts")


def floor_nll(counts: Counts) -> float:
    """-Σ C_ij log(C_ij / R_i) / N, R_i a row's sum, N that of all, in nats and float64: no table
    has a lower mean loss on these pairs, of which there is one at least."""
    # TODO (A2): floor_nll
    # HINT: a pair that never came adds nothing; 0 log 0 would be nan.
    raise NotImplementedError("A2: floor_nll")


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
        raise NotImplementedError("A2: BigramLM.from_counts")

    def nll(self, ids: Ints) -> float:
        """The mean of -log p(next token) over the T - 1 predictions in ids (T,), in nats; computed
        in float64. Raises as `pair_counts` does."""
        # TODO (A2): BigramLM.nll
        # HINT: trained rows are no log-probabilities: take the log of Σ e^z off, with z's maximum.
        raise NotImplementedError("A2: BigramLM.nll")

    def logits(self, ids: Ints) -> Floats:
        """(..., V) float32 for ids (...): one-hot rows times the table, by C's matmul_forward.

        Raises ValueError for an id outside 0 .. V-1.
        """
        # TODO (A2): BigramLM.logits
        # HINT: matmul_forward wants matrices, and its weight as (out, in).
        raise NotImplementedError("A2: BigramLM.logits")

    def sample(self, start: int, n: int, seed: int, temperature: float = 1.0) -> list[int]:
        """The n ids that follow `start`, as generate.c draws them.

        One PCG32(seed), stream 54, for all, and one of its uniform() for each: the first j at which
        the running sum of w_j = e^(z_j - max z), z = row / temperature, exceeds uniform() Σ w, in
        float64 and in the order of ids. Temperature is above 0, n is 0 or more. Raises ValueError
        for a start outside 0 .. V-1.
        """
        # TODO (A2): BigramLM.sample
        # HINT: A0's sampler draws one; the generator is made once.
        raise NotImplementedError("A2: BigramLM.sample")

    def save(self, folder: Path | str) -> None:
        """Makes a model directory, with those above it: `model.safetensors` with the table as
        "bigram.weight", and `config.json` with "tl_arch": "bigram" and "vocab_size"."""
        # TODO (A2): BigramLM.save
        # HINT: safetensors.numpy.save_file takes arrays by name, and their memory as it lies.
        raise NotImplementedError("A2: BigramLM.save")

    @classmethod
    def load(cls, folder: Path | str) -> BigramLM:
        """Reads what `save` made. Raises OSError where a file is missing, ValueError for files that
        are no bigram's: another tl_arch, weights cut short or without the tensor, or one that is
        not float32 or not (V, V), V the config's vocab_size."""
        # TODO (A2): BigramLM.load
        # HINT: look at the config first; the file of weights may hold anything. What is none raises
        # safetensors.SafetensorError in safetensors.numpy.load, which takes bytes.
        raise NotImplementedError("A2: BigramLM.load")


class BigramLogits(Module):
    """The table as a parameter: `weight` (V, V), zeros at first, when all tokens are as likely."""

    def __init__(self, vocab: int = 256) -> None:
        self.weight = parameter(np.zeros((vocab, vocab), np.float32))

    def __call__(self, ids: Ints) -> Tensor:
        """Logits (..., V): the table's rows for ids (...). Raises IndexError for an id outside."""
        # TODO (A2): BigramLogits.__call__
        # HINT: no one-hot rows are needed to pick one.
        raise NotImplementedError("A2: BigramLogits.__call__")

    def to_lm(self) -> BigramLM:
        """A BigramLM with a float32 copy of the table: training on leaves it as it is."""
        # TODO (A2): BigramLogits.to_lm
        # HINT: a model may be trained in float64. astype copies, unless it is told not to.
        raise NotImplementedError("A2: BigramLogits.to_lm")


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
