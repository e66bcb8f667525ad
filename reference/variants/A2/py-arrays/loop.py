"""loop.py: index arrays cut by np.array_split, one vector of all gradients, np.average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .autograd import Tensor, no_grad
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
        lengths = np.unique([len(array) for array in arrays.values()])
        if lengths.size != 1:
            raise ValueError(f"lengths {lengths.tolist()}, want arrays of one length")
        if batch_size < 1:
            raise ValueError(f"batch_size {batch_size} is below 1")
        if shuffle and rng is None:
            raise ValueError("shuffle wants an rng")
        self.arrays = dict(arrays)
        self.n, self.batch_size, self.drop_last = int(lengths[0]), batch_size, drop_last
        self.rng = rng if shuffle else None

    def __len__(self) -> int:
        """Batches of an epoch."""
        padding = 0 if self.drop_last else self.batch_size - 1
        return (self.n + padding) // self.batch_size

    def __iter__(self) -> Iterator[dict[str, NDArray]]:
        """The batches of one epoch, each name → (batch_size, ...), copies."""
        order = np.arange(self.n)
        if self.rng is not None:
            self.rng.shuffle(order)
        cuts = np.arange(self.batch_size, self.n, self.batch_size)
        for rows in np.array_split(order, cuts)[: len(self)]:
            yield {name: np.take(array, rows, axis=0) for name, array in self.arrays.items()}


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
    model.zero_grad()
    loss, metrics = _loss_and_metrics(loss_fn(model, batch))
    value = float(loss.data.reshape(()))
    if not np.isfinite(value):
        raise FloatingPointError(f"loss {value}")
    loss.backward()
    reached = [p for p in model.parameters() if p.grad is not None]
    parts = [np.ravel(p.grad) for p in reached] or [np.zeros(0)]
    norm = float(np.linalg.norm(np.concatenate(parts).astype(np.float64)))
    if clip is not None and np.isfinite(norm):
        scale = clip / max(norm, clip)
        for p in reached:
            p.grad = (p.grad * scale).astype(p.dtype)
    opt.step()
    out = {"loss": value, "grad_norm": norm, **metrics}
    if ema is not None:
        ema.update(value)
        out["loss_ema"] = ema.value_debiased()
    return out


def evaluate(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> dict[str, float]:
    """The mean of loss and metrics over all rows of a loader, and "n", how many there were.

    Runs in eval mode, without a graph; whatever happens, each module is left in the mode in which
    it was. Raises ValueError if there is no row.
    """
    modules = [module for _, module in model.modules()]
    training = [module.training for module in modules]
    rows: list[int] = []
    values: list[dict[str, float]] = []
    model.eval()
    try:
        for batch in loader:
            with no_grad():
                loss, metrics = _loss_and_metrics(loss_fn(model, batch))
            values.append({"loss": float(loss.data.reshape(())), **metrics})
            rows.append(min(map(len, batch.values())))
    finally:
        for module, mode in zip(modules, training, strict=True):
            module.training = mode
    if sum(rows) == 0:
        raise ValueError("not a single row")
    means = {
        name: float(np.average([value[name] for value in values], weights=rows))
        for name in values[0]
    }
    return means | {"n": sum(rows)}


def _loss_and_metrics(found: Tensor | tuple[Tensor, Metrics]) -> tuple[Tensor, dict[str, float]]:
    """What a loss function gave, as a pair. Raises ValueError for several numbers. Given."""
    loss, metrics = found if isinstance(found, tuple) else (found, {})
    if loss.data.size != 1:
        raise ValueError(f"a loss of shape {loss.shape}, want a single number")
    return loss, {name: float(np.asarray(value)) for name, value in metrics.items()}
