"""loop.py: what the course has already: clip_grad_norm_, zero_grad, no_grad as a decorator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .autograd import Tensor, no_grad
from .model import Module
from .optim import EMA, clip_grad_norm_
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
        if not arrays or batch_size < 1 or (shuffle and rng is None):
            raise ValueError("want an array, a batch_size of 1 or more, and to shuffle an rng")
        first, *others = (len(array) for array in arrays.values())
        if any(other != first for other in others):
            raise ValueError(f"arrays of lengths {first} and {others}")
        self.arrays = {name: np.array(array) for name, array in arrays.items()}
        self.shuffle, self.rng = shuffle, rng
        stops = range(batch_size, first + 1, batch_size)
        self.slices = [slice(stop - batch_size, stop) for stop in stops]
        if first % batch_size and not drop_last:
            self.slices.append(slice(first - first % batch_size, first))
        self.n = first

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self.slices)

    def __iter__(self) -> Iterator[dict[str, NDArray]]:
        """The batches of one epoch, each name → (batch_size, ...), copies."""
        if not self.shuffle:
            return iter([self._cut(self.arrays, part) for part in self.slices])
        assert self.rng is not None
        order = list(range(self.n))
        self.rng.shuffle(order)
        mixed = {name: array[order] for name, array in self.arrays.items()}
        return (self._cut(mixed, part) for part in self.slices)

    @staticmethod
    def _cut(arrays: Batch, part: slice) -> dict[str, NDArray]:
        return {name: array[part].copy() for name, array in arrays.items()}


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
    parameters = model.named_parameters().values()
    model.zero_grad()
    loss, report = _loss_and_metrics(loss_fn(model, batch))
    (value,) = loss.data.ravel().tolist()
    if not abs(value) < float("inf"):
        raise FloatingPointError(f"loss is {value}: no step")
    if ema is not None:
        ema.update(value)
        report["loss_ema"] = ema.value_debiased()
    loss.backward()
    report["grad_norm"] = clip_grad_norm_(parameters, float("inf") if clip is None else clip)
    report["loss"] = value
    opt.step()
    return report


def evaluate(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> dict[str, float]:
    """The mean of loss and metrics over all rows of a loader, and "n", how many there were.

    Runs in eval mode, without a graph; whatever happens, each module is left in the mode in which
    it was. Raises ValueError if there is no row.
    """
    modes = {module: module.training for _, module in model.modules()}
    try:
        model.eval()
        n, means = _means(model, loader, loss_fn)
    finally:
        for module in modes:
            module.training = modes[module]
    if n < 1:
        raise ValueError("evaluate wants a row at least")
    means["n"] = n
    return means


def _loss_and_metrics(found: Tensor | tuple[Tensor, Metrics]) -> tuple[Tensor, dict[str, float]]:
    """What a loss function gave, as a pair. Raises ValueError for several numbers. Given."""
    loss, metrics = found if isinstance(found, tuple) else (found, {})
    if loss.data.size != 1:
        raise ValueError(f"a loss of shape {loss.shape}, want a single number")
    return loss, {name: float(np.asarray(value)) for name, value in metrics.items()}


@no_grad()
def _means(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> tuple[int, dict[str, float]]:
    """Rows seen, and running means over them."""
    n, means = 0, dict[str, float]()
    for batch in loader:
        rows = max(len(array) for array in batch.values())
        if rows == 0:
            continue
        loss, found = _loss_and_metrics(loss_fn(model, batch))
        found["loss"] = loss.data.item()
        n += rows
        for name, value in found.items():
            before = means.get(name, 0.0)
            means[name] = before + (value - before) * (rows / n)
    return n, means
