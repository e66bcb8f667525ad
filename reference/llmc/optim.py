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
    # BEGIN SOLUTION
    every = list(parameters)
    matrices = [parameter for parameter in every if len(parameter.shape) >= 2]
    vectors = [parameter for parameter in every if len(parameter.shape) < 2]
    return [Group(matrices, weight_decay), Group(vectors)]
    # END SOLUTION


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
        # BEGIN SOLUTION
        for parameter, velocity in zip(self.parameters, self.velocities, strict=True):
            if parameter.grad is not None:
                velocity *= self.momentum
                velocity += parameter.grad
                parameter.data = parameter.data - float(self.lr) * velocity
        # END SOLUTION


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
        # BEGIN SOLUTION
        self.t += 1
        beta1, beta2 = map(float, self.betas)
        for group, moments in zip(self.groups, self.moments, strict=True):
            decay = float(self.lr * group.weight_decay)
            scale = float(self.lr) / (1 - beta1**self.t)
            for parameter, (m, v) in zip(group.parameters, moments, strict=True):
                if parameter.grad is None:
                    continue
                m *= beta1
                m += (1 - beta1) * parameter.grad
                v *= beta2
                v += (1 - beta2) * parameter.grad**2
                root = np.sqrt(v / (1 - beta2**self.t)) + self.eps
                parameter.data = parameter.data - (scale * m / root + decay * parameter.data)
        # END SOLUTION


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Gives each parameter its gradient times max_norm / norm, if norm = √Σ g², over all elements
    of all gradients, is larger than max_norm and finite.

    Returns the norm before that. Parameters without a gradient are left alone. Raises ValueError
    for a max_norm that is not positive.
    """
    # TODO (A2): clip_grad_norm_
    # HINT: one norm over all of them, one factor for all; a float32 sum of squares overflows.
    # BEGIN SOLUTION
    import math

    if not max_norm > 0:
        raise ValueError(f"max_norm is {max_norm}, want above 0")
    pairs = [(p, p.grad) for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float(np.square(grad, dtype=np.float64).sum()) for _, grad in pairs))
    if max_norm < norm < math.inf:
        for parameter, grad in pairs:
            parameter.grad = grad * (max_norm / norm)
    return norm
    # END SOLUTION


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
        # BEGIN SOLUTION
        self.t += 1
        self.value = self.beta * self.value + (1 - self.beta) * x
        # END SOLUTION

    def value_debiased(self) -> float:
        """a / (1 - beta^t): after t numbers the average that forgot that it began with 0.

        Raises ValueError before the first.
        """
        # TODO (A2): EMA.value_debiased
        # HINT: after one number it is that number.
        # BEGIN SOLUTION
        if self.t == 0:
            raise ValueError("no number yet, so no average")
        return self.value / (1 - self.beta**self.t)
        # END SOLUTION
