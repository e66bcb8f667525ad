"""optim.py: SGD, AdamW, clipping by the global norm, and a running average."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .autograd import Tensor


@dataclass(frozen=True)
class Group:
    """Parameters that share a weight decay."""

    parameters: Sequence[Tensor]
    weight_decay: float = 0.0


def decay_groups(parameters: Iterable[Tensor], weight_decay: float) -> list[Group]:
    """Two groups: tensors of two axes or more (matrices, embeddings), which decay; then those of
    fewer (biases, norms), which do not."""
    # TODO (A2): decay_groups
    # HINT: the length of a shape.
    raise NotImplementedError("A2: decay_groups")


class SGD:
    """Gradient descent with momentum: v = momentum v + g;  θ = θ - lr v, with v = 0 at first.

    Parameters without a gradient are left alone. A step makes new arrays: whoever holds a
    parameter's old `data` keeps the old numbers, and gradients stay as they are.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        # TODO (A2): SGD.step
        # HINT: the velocity is kept from step to step.
        raise NotImplementedError("A2: SGD.step")


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    At the t-th call of `step`:
    m = β1 m + (1 - β1) g;  v = β2 v + (1 - β2) g², both 0 at first;
    θ = θ - lr (m / (1 - β1^t) / (√(v / (1 - β2^t)) + eps) + weight_decay θ).

    Parameters without a gradient are left alone. A step makes new arrays, as SGD's does.
    """

    def __init__(
        self,
        groups: Iterable[Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.groups, self.lr, self.betas, self.eps = list(groups), lr, betas, eps
        self.t = 0
        self.moments = [
            [(np.zeros_like(p.data), np.zeros_like(p.data)) for p in group.parameters]
            for group in self.groups
        ]

    def step(self) -> None:
        # TODO (A2): AdamW.step
        # HINT: eps is added to the root, and the decay is no part of the gradient.
        raise NotImplementedError("A2: AdamW.step")


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Gives each parameter its gradient times max_norm / norm, if norm = √Σ g², over all elements
    of all gradients, is larger than max_norm and finite.

    Returns the norm before that. Parameters without a gradient are left alone. Raises ValueError
    for a max_norm that is not positive.
    """
    # TODO (A2): clip_grad_norm_
    # HINT: one norm over all of them, one factor for all; a float32 sum of squares overflows.
    raise NotImplementedError("A2: clip_grad_norm_")


class EMA:
    """The running average a = beta a + (1 - beta) x of numbers, a = 0 at first.

    Raises ValueError for a beta outside [0, 1).
    """

    def __init__(self, beta: float) -> None:
        if not 0 <= beta < 1:
            raise ValueError(f"beta is {beta}, not within [0, 1)")
        self.beta, self.value, self.t = beta, 0.0, 0

    def update(self, x: float) -> None:
        # TODO (A2): EMA.update
        # HINT: count the updates.
        raise NotImplementedError("A2: EMA.update")

    def value_debiased(self) -> float:
        """a / (1 - beta^t): after t numbers the average that forgot that it began with 0.

        Raises ValueError before the first.
        """
        # TODO (A2): EMA.value_debiased
        # HINT: after one number it is that number.
        raise NotImplementedError("A2: EMA.value_debiased")
