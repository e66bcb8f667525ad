"""loop.py: plain loops over lists of row numbers, every swap, sum and reset written out."""

from __future__ import annotations

import math
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
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, want at least 1")
        if not arrays:
            raise ValueError("no arrays to load from")
        lengths = {name: len(array) for name, array in arrays.items()}
        if min(lengths.values()) != max(lengths.values()):
            raise ValueError(f"arrays of different lengths: {lengths}")
        if shuffle and rng is None:
            raise ValueError("shuffling needs a generator")
        self.arrays = arrays
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.rng = rng
        self.drop_last = drop_last
        self.n = min(lengths.values())

    def __len__(self) -> int:
        """Batches of an epoch."""
        full = self.n // self.batch_size
        if self.n % self.batch_size and not self.drop_last:
            return full + 1
        return full

    def __iter__(self) -> Iterator[dict[str, NDArray]]:
        """The batches of one epoch, each name → (batch_size, ...), copies."""
        order = list(range(self.n))
        if self.shuffle and self.rng is not None:
            last = self.n - 1
            while last > 0:
                other = self.rng.below(last + 1)
                order[last], order[other] = order[other], order[last]
                last -= 1
        for number in range(len(self)):
            rows = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield {name: array[rows] for name, array in self.arrays.items()}


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
    parameters = model.parameters()
    for parameter in parameters:
        parameter.grad = None

    loss, metrics = _loss_and_metrics(loss_fn(model, batch))
    value = loss.data.item()
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss is {value}")
    loss.backward()

    squares = 0.0
    for parameter in parameters:
        if parameter.grad is not None:
            squares += float((parameter.grad.astype(np.float64) ** 2).sum())
    norm = math.sqrt(squares)
    if clip is not None and clip < norm < math.inf:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad = parameter.grad * (clip / norm)
    opt.step()

    result = {"loss": value, "grad_norm": norm}
    if ema is not None:
        ema.update(value)
        result["loss_ema"] = ema.value_debiased()
    result.update(metrics)
    return result


def evaluate(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> dict[str, float]:
    """The mean of loss and metrics over all rows of a loader, and "n", how many there were.

    Runs in eval mode, without a graph; whatever happens, each module is left in the mode in which
    it was. Raises ValueError if there is no row.
    """
    modes = []
    for _, module in model.modules():
        modes.append((module, module.training))
    sums: dict[str, float] = {}
    n = 0
    try:
        model.eval()
        with no_grad():
            for batch in loader:
                rows = len(next(iter(batch.values())))
                loss, metrics = _loss_and_metrics(loss_fn(model, batch))
                metrics["loss"] = loss.data.item()
                for name, value in metrics.items():
                    sums[name] = sums.get(name, 0.0) + rows * value
                n += rows
    finally:
        for module, mode in modes:
            module.training = mode
    if n == 0:
        raise ValueError("the loader has no row")
    means = {name: total / n for name, total in sums.items()}
    means["n"] = n
    return means


def _loss_and_metrics(found: Tensor | tuple[Tensor, Metrics]) -> tuple[Tensor, dict[str, float]]:
    """What a loss function gave, as a pair. Raises ValueError for several numbers. Given."""
    loss, metrics = found if isinstance(found, tuple) else (found, {})
    if loss.data.size != 1:
        raise ValueError(f"a loss of shape {loss.shape}, want a single number")
    return loss, {name: float(np.asarray(value)) for name, value in metrics.items()}
