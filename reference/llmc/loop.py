"""loop.py: batches in an order that can be repeated, a training step, and an evaluation that does
not train."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from .autograd import Tensor
from .model import Module
from .optim import EMA
from .rand import PCG32

Batch = Mapping[str, np.ndarray]  # name → rows
Metrics = Mapping[str, float]
Losses = Callable[[Any, Batch], Tensor | tuple[Tensor, Metrics]]


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
        arrays: Mapping[str, np.ndarray],
        batch_size: int,
        shuffle: bool,
        rng: PCG32 | None = None,
        drop_last: bool = True,
    ) -> None:
        # TODO (A2): DataLoader.__init__
        # HINT: two arrays of different lengths pair rows with the wrong labels.
        # BEGIN SOLUTION
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"arrays of lengths {lengths}, want one length")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, want 1 or more")
        if shuffle and rng is None:
            raise ValueError("shuffle wants a generator: an unseeded order cannot be repeated")
        self.arrays, self.batch_size, self.drop_last = dict(arrays), batch_size, drop_last
        self.rng = rng if shuffle else None
        self.n = next(iter(lengths.values()))
        # END SOLUTION

    def __len__(self) -> int:
        """Batches of an epoch."""
        # TODO (A2): DataLoader.__len__
        # HINT: n / batch_size, rounded down, or up.
        # BEGIN SOLUTION
        whole, left = divmod(self.n, self.batch_size)
        return whole + (left > 0 and not self.drop_last)
        # END SOLUTION

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        """The batches of one epoch, each name → (batch_size, ...), copies."""
        # TODO (A2): DataLoader.__iter__
        # HINT: one order for all arrays; an array takes a list of row numbers in brackets.
        # BEGIN SOLUTION
        order = list(range(self.n))
        if self.rng is not None:
            self.rng.shuffle(order)
        for at in range(0, len(self) * self.batch_size, self.batch_size):
            rows = order[at : at + self.batch_size]
            yield {name: array[rows] for name, array in self.arrays.items()}
        # END SOLUTION


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
    most that. The mode of the model, training or eval, is the caller's.

    Returns "loss"; "grad_norm", of all gradients before clipping; "loss_ema" with `ema`, which
    takes in the loss and gives its debiased average; and the metrics. Raises ValueError for a loss
    of several numbers, FloatingPointError for one that is not finite: nothing is updated then, nor
    is the average.
    """
    # TODO (A2): train_step
    # HINT: gradients add up from call to call. clip_grad_norm_ returns the norm it found; a limit
    # of infinity never scales.
    # BEGIN SOLUTION
    import math

    from .optim import clip_grad_norm_

    model.zero_grad()
    loss, metrics = _loss_and_metrics(loss_fn(model, batch))
    value = loss.data.item()
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss is {value}: nothing was updated")
    loss.backward()
    norm = clip_grad_norm_(model.parameters(), math.inf if clip is None else clip)
    opt.step()
    found = {"loss": value, "grad_norm": norm}
    if ema is not None:
        ema.update(value)
        found["loss_ema"] = ema.value_debiased()
    return found | metrics
    # END SOLUTION


def evaluate(model: Module, loader: Iterable[Batch], loss_fn: Losses) -> dict[str, float]:
    """The mean of loss and metrics over all rows of a loader, and "n", how many there were.

    Runs in eval mode, without a graph; whatever happens, each module is left in the mode in which
    it was. A loader is gone through once. Raises ValueError if there is no row.
    """
    # TODO (A2): evaluate
    # HINT: a batch of two rows counts as two, whatever its arrays are called. A part of a model
    # may be in eval mode all along.
    # BEGIN SOLUTION
    from .autograd import no_grad

    modes = [(module, module.training) for _, module in model.modules()]
    sums: dict[str, float] = {}
    n = 0
    model.eval()
    try:
        with no_grad():
            for batch in loader:
                rows = len(next(iter(batch.values())))
                loss, metrics = _loss_and_metrics(loss_fn(model, batch))
                for name, value in {"loss": loss.data.item(), **metrics}.items():
                    sums[name] = sums.get(name, 0.0) + rows * value
                n += rows
    finally:
        for module, mode in modes:
            module.training = mode
    if n == 0:
        raise ValueError("the loader has no rows")
    return {name: total / n for name, total in sums.items()} | {"n": n}
    # END SOLUTION


def _loss_and_metrics(found: Tensor | tuple[Tensor, Metrics]) -> tuple[Tensor, dict[str, float]]:
    """What a loss function gave, as a pair. Raises ValueError for several numbers. Given."""
    loss, metrics = found if isinstance(found, tuple) else (found, {})
    if loss.data.size != 1:
        raise ValueError(f"a loss of shape {loss.shape}, want a single number")
    return loss, {name: float(np.asarray(value)) for name, value in metrics.items()}
