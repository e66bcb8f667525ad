"""loop.py: an epoch is an object with __next__, what must be undone stands on an ExitStack."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
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
        heights = {array.shape[0] for array in arrays.values()}
        complaints = {
            "no arrays": not heights,
            f"arrays of {sorted(heights)} rows": len(heights) > 1,
            f"batches of {batch_size}": batch_size < 1,
            "shuffle without a generator": shuffle and rng is None,
        }
        for complaint, is_so in complaints.items():
            if is_so:
                raise ValueError(complaint)
        self._arrays, self._n = arrays, heights.pop()
        self._size, self._drop_last = batch_size, drop_last
        self._shuffle, self._rng = shuffle, rng

    def __len__(self) -> int:
        """Batches of an epoch."""
        batches, rest = divmod(self._n, self._size)
        return batches + bool(rest and not self._drop_last)

    def __iter__(self) -> Iterator[dict[str, NDArray]]:
        """The batches of one epoch, each name → (batch_size, ...), copies."""
        order = [*range(self._n)]
        if self._shuffle and self._rng:
            self._rng.shuffle(order)
        return _Epoch(self._arrays, order, self._size, len(self))


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
    if not np.isfinite(loss.data).all():
        raise FloatingPointError(f"a loss of {loss.data}")
    loss.backward()
    norm = clip_grad_norm_(model.parameters(), math.inf if clip is None else clip)
    opt.step()
    log = {"loss": loss.data.item(), "grad_norm": norm}
    if ema is not None:
        ema.update(log["loss"])
        log |= {"loss_ema": ema.value_debiased()}
    return log | metrics


def evaluate(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> dict[str, float]:
    """The mean of loss and metrics over all rows of a loader, and "n", how many there were.

    Runs in eval mode, without a graph; whatever happens, each module is left in the mode in which
    it was. Raises ValueError if there is no row.
    """
    seen: defaultdict[str, list[float]] = defaultdict(list)
    with ExitStack() as undo:
        for _, module in model.modules():
            undo.callback(setattr, module, "training", module.training)
        model.eval()
        undo.enter_context(no_grad())
        for batch in loader:
            rows = next(len(array) for array in batch.values())
            loss, metrics = _loss_and_metrics(loss_fn(model, batch))
            seen["n"].append(rows)
            for name, value in {"loss": loss.data.item(), **metrics}.items():
                seen[name].append(value * rows)
    n = sum(seen.pop("n", []))
    if not n:
        raise ValueError("nothing to evaluate")
    return {"n": n} | {name: math.fsum(values) / n for name, values in seen.items()}


def _loss_and_metrics(found: Tensor | tuple[Tensor, Metrics]) -> tuple[Tensor, dict[str, float]]:
    """What a loss function gave, as a pair. Raises ValueError for several numbers. Given."""
    loss, metrics = found if isinstance(found, tuple) else (found, {})
    if loss.data.size != 1:
        raise ValueError(f"a loss of shape {loss.shape}, want a single number")
    return loss, {name: float(np.asarray(value)) for name, value in metrics.items()}


class _Epoch:
    """The batches of one epoch, in an order that is settled."""

    def __init__(self, arrays: Batch, order: list[int], size: int, batches: int) -> None:
        self.arrays, self.rows, self.size, self.left = arrays, iter(order), size, batches

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> dict[str, NDArray]:
        if not self.left:
            raise StopIteration
        self.left -= 1
        rows = list(islice(self.rows, self.size))
        return {name: array[rows] for name, array in self.arrays.items()}
