"""loop.py: batches gathered before the first is given, scaling by a copy, means from two lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import fsum, hypot, isfinite
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
        def want(fine: bool, what: str) -> None:
            if not fine:
                raise ValueError(f"DataLoader: {what}")

        counts = [array.shape[0] for array in arrays.values()]
        want(len(counts) > 0, "no arrays")
        want(counts == counts[:1] * len(counts), f"arrays of {counts} rows")
        want(batch_size > 0, f"a batch_size of {batch_size}")
        want(not shuffle or rng is not None, "a shuffle without a generator")
        self.names, self.columns = tuple(arrays), tuple(arrays.values())
        self.count, self.batch_size = counts[0], batch_size
        self.shuffle, self.rng, self.drop_last = shuffle, rng, drop_last

    def __len__(self) -> int:
        """Batches of an epoch."""
        if self.drop_last:
            return self.count // self.batch_size
        return -(-self.count // self.batch_size)

    def __iter__(self) -> Iterator[dict[str, NDArray]]:
        """The batches of one epoch, each name → (batch_size, ...), copies."""
        order = list(range(self.count))
        if self.shuffle and self.rng is not None:
            self.rng.shuffle(order)
        batches: list[list[int]] = []
        for place, row in enumerate(order):
            if place % self.batch_size == 0:
                batches.append([])
            batches[-1].append(row)
        if self.drop_last and batches and len(batches[-1]) < self.batch_size:
            batches.pop()
        return map(self._rows, batches)

    def _rows(self, rows: list[int]) -> dict[str, NDArray]:
        stacks = [np.stack([column[row] for row in rows]) for column in self.columns]
        return dict(zip(self.names, stacks, strict=True))


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
    for parameter in model.parameters():
        parameter.grad = None

    answer = loss_fn(model, batch)
    loss, metrics = _loss_and_metrics(answer)
    if not isfinite(loss.data.item()):
        raise FloatingPointError(f"{loss} holds {loss.data.item()}")
    loss.backward()

    learnt = [parameter for parameter in model.parameters() if parameter.grad is not None]
    lengths = [np.linalg.norm(np.asarray(parameter.grad, np.float64)) for parameter in learnt]
    norm = hypot(*lengths)
    if clip is not None and isfinite(norm) and norm > clip:
        for parameter in learnt:
            parameter.grad = parameter.grad / (norm / clip)
    opt.step()

    done = dict(metrics)
    done.update(loss=loss.data.item(), grad_norm=norm)
    if ema is not None:
        ema.update(done["loss"])
        done.update(loss_ema=ema.value_debiased())
    return done


def evaluate(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> dict[str, float]:
    """The mean of loss and metrics over all rows of a loader, and "n", how many there were.

    Runs in eval mode, without a graph; whatever happens, each module is left in the mode in which
    it was. Raises ValueError if there is no row.
    """
    before = {id(module): (module, module.training) for _, module in model.modules()}

    def measure(batch: Batch) -> tuple[int, dict[str, float]]:
        loss, metrics = _loss_and_metrics(loss_fn(model, batch))
        sizes = {len(array) for array in batch.values()}
        return sizes.pop(), {**metrics, "loss": loss.data.item()}

    try:
        with no_grad():
            model.train(False)
            measured = [measure(batch) for batch in loader]
    finally:
        for module, training in before.values():
            module.training = training
    n = sum(rows for rows, _ in measured)
    if n == 0:
        raise ValueError("the loader gave no rows")
    names = measured[0][1]
    means = {name: fsum(rows * found[name] for rows, found in measured) / n for name in names}
    return {**means, "n": float(n)}


def _loss_and_metrics(found: Tensor | tuple[Tensor, Metrics]) -> tuple[Tensor, dict[str, float]]:
    """What a loss function gave, as a pair. Raises ValueError for several numbers. Given."""
    loss, metrics = found if isinstance(found, tuple) else (found, {})
    if loss.data.size != 1:
        raise ValueError(f"a loss of shape {loss.shape}, want a single number")
    return loss, {name: float(np.asarray(value)) for name, value in metrics.items()}
