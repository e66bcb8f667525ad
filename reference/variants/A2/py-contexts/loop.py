"""loop.py: small helpers: a context manager for modes, a dataclass of sums, one check each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from . import autograd
from .autograd import Tensor
from .model import Module
from .optim import EMA
from .rand import PCG32

Batch = Mapping[str, NDArray]  # name → rows
Metrics = Mapping[str, float]
Losses = Callable[[Module, Batch], Tensor | tuple[Tensor, Metrics]]


class Optimiser(Protocol):
    """What updates parameters: optim.SGD, optim.AdamW. Given."""

    def step(self) -> None: ...


class DataLoader:
    """Batches of rows of named arrays (n, ...); a pass over it is an epoch.

    The order is 0 .. n-1, or with `shuffle` what rng.shuffle makes of the list 0 .. n-1 as an epoch
    begins: each epoch draws on, so each has another permutation. The last batch may be smaller;
    `drop_last` leaves it out then.

    Raises ValueError for no arrays, arrays of different lengths, a batch_size below 1, and for a
    shuffle without a generator.
    """

    def __init__(
        self,
        arrays: Mapping[str, NDArray],
        batch_size: int,
        shuffle: bool,
        rng: PCG32 | None = None,
        drop_last: bool = True,
    ) -> None:
        self.arrays, self.batch_size, self.drop_last = arrays, batch_size, drop_last
        self.generator = self._generator(shuffle, rng)
        self.rows = self._rows()
        if not batch_size >= 1:
            raise ValueError(f"cannot make batches of {batch_size} rows")

    @staticmethod
    def _generator(shuffle: bool, rng: PCG32 | None) -> PCG32 | None:
        if not shuffle:
            return None
        if rng is None:
            raise ValueError("shuffle=True needs rng")
        return rng

    def _rows(self) -> int:
        names = list(self.arrays)
        if names == []:
            raise ValueError("no arrays")
        rows = len(self.arrays[names[0]])
        for name in names[1:]:
            if len(self.arrays[name]) != rows:
                raise ValueError(f"{name} has {len(self.arrays[name])} rows, {names[0]} {rows}")
        return rows

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._starts())

    def _starts(self) -> range:
        last = self.rows - self.batch_size + 1 if self.drop_last else self.rows
        return range(0, max(last, 0), self.batch_size)

    def __iter__(self) -> Iterator[dict[str, NDArray]]:
        """The batches of one epoch, each name → (batch_size, ...), copies."""
        order = list(range(self.rows))
        if self.generator is not None:
            self.generator.shuffle(order)
        index = np.array(order, dtype=np.intp)
        for start in self._starts():
            chosen = index[start : start + self.batch_size]
            yield dict(zip(self.arrays, (a[chosen] for a in self.arrays.values()), strict=True))


def train_step(
    model: Module,
    batch: Batch,
    loss_fn: Losses,
    opt: Optimiser,
    clip: float | None = None,
    ema: EMA | None = None,
) -> dict[str, float]:
    """One step: gradients to nothing, the loss, backward, clipping, the update.

    `loss_fn` gives the loss, one number, or a pair of it and a dictionary of metrics. `opt` updates
    the model's parameters; with `clip` their gradients are scaled so that their global norm is at
    most that.

    Returns "loss"; "grad_norm", of all gradients before clipping; "loss_ema" with `ema`, which
    takes in the loss and gives its debiased average; and the metrics. Raises ValueError for a loss
    of several numbers, FloatingPointError for one that is not finite: nothing is updated then, nor
    is the average.
    """
    params = {id(p): p for p in model.parameters()}.values()
    for p in params:
        p.grad = None
    loss, metrics = _loss_and_metrics(loss_fn(model, batch))
    with np.errstate(all="ignore"):
        number = _finite(loss)
        loss.backward()
        norm = float(np.sqrt(sum(_square(p) for p in params)))
    if clip is not None and clip < norm < np.inf:
        factor = clip / norm
        for p in params:
            if p.grad is not None:
                p.grad = p.grad * factor
    opt.step()
    averages = {}
    if ema is not None:
        ema.update(number)
        averages["loss_ema"] = ema.value_debiased()
    return {"loss": number, "grad_norm": norm, **averages, **metrics}


def evaluate(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> dict[str, float]:
    """The mean of loss and metrics over all rows of a loader, and "n", how many there were.

    Runs in eval mode, without a graph; whatever happens, each module is left in the mode in which
    it was. Raises ValueError if there is no row.
    """
    sums = _Sums()
    with _evaluating(model):
        for batch in loader:
            size = min(len(rows) for rows in batch.values())
            loss, metrics = _loss_and_metrics(loss_fn(model, batch))
            sums.add(size, {**metrics, "loss": float(loss.data.sum())})
    if sums.rows == 0:
        raise ValueError("no row to evaluate on")
    return {**{name: total / sums.rows for name, total in sums.totals.items()}, "n": sums.rows}


def _loss_and_metrics(found: Tensor | tuple[Tensor, Metrics]) -> tuple[Tensor, dict[str, float]]:
    """What a loss function gave, as a pair. Raises ValueError for several numbers. Given."""
    loss, metrics = found if isinstance(found, tuple) else (found, {})
    if loss.data.size != 1:
        raise ValueError(f"a loss of shape {loss.shape}, want a single number")
    return loss, {name: float(np.asarray(value)) for name, value in metrics.items()}


@dataclass
class _Sums:
    """What batches of different sizes add up to."""

    rows: int = 0
    totals: dict[str, float] = field(default_factory=dict)

    def add(self, rows: int, means: Metrics) -> None:
        self.rows += rows
        for name, mean in means.items():
            self.totals.setdefault(name, 0.0)
            self.totals[name] += rows * mean


@contextlib.contextmanager
def _evaluating(model: Module) -> Iterator[None]:
    """Eval mode without a graph; then each module's own mode again."""
    were_training = [module for _, module in model.modules() if module.training]
    model.eval()
    try:
        with autograd.no_grad():
            yield
    finally:
        for module in were_training:
            module.training = True


def _finite(loss: Tensor) -> float:
    number = float(loss.data.sum())
    if np.isnan(number) or np.isinf(number):
        raise FloatingPointError(f"the loss of this batch is {number}")
    return number


def _square(p: Tensor) -> float:
    """Σ g² in float64."""
    if p.grad is None:
        return 0.0
    flat = p.grad.ravel().astype(np.float64)
    return float(flat @ flat)
