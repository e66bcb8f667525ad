"""optim.py whose steps are those of the handbook, in one expression each."""

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
    parameters = list(parameters)
    shapes = [parameter.shape for parameter in parameters]
    first = [p for p, shape in zip(parameters, shapes) if shape[1:]]
    second = [p for p, shape in zip(parameters, shapes) if not shape[1:]]
    return [Group(first, weight_decay), Group(second, 0.0)]


class SGD:
    """Gradient descent with momentum: v = momentum v + g;  θ = θ - lr v, with v = 0 at first.

    Parameters without a gradient are left alone. A step makes new arrays: whoever holds a
    parameter's old `data` keeps the old numbers.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        for parameter, velocity in zip(self.parameters, self.velocities, strict=True):
            if parameter.grad is not None:
                velocity *= self.momentum
                velocity += parameter.grad
                parameter.data = parameter.data - float(self.lr) * velocity


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019). At the t-th call of `step`

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
        self.t += 1
        (b1, b2), t, lr = self.betas, self.t, self.lr
        for group, moments in zip(self.groups, self.moments):
            for p, (m, v) in zip(group.parameters, moments):
                if p.grad is None:
                    continue
                g = p.grad
                m[()] = b1 * m + (1 - b1) * g
                v[()] = b2 * v + (1 - b2) * (g * g)
                adam = (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + self.eps)
                p.data = p.data - lr * (adam + group.weight_decay * p.data)


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Gives each parameter its gradient times max_norm / norm, if norm = √Σ g², over all elements
    of all gradients, is larger than max_norm and finite.

    Returns the norm before that. Parameters without a gradient are left alone. Raises ValueError
    for a max_norm that is not positive.
    """
    import math

    if not max_norm > 0:
        raise ValueError(f"max_norm is {max_norm}, want above 0")
    pairs = [(p, p.grad) for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float(np.square(grad, dtype=np.float64).sum()) for _, grad in pairs))
    if max_norm < norm < math.inf:
        for parameter, grad in pairs:
            parameter.grad = grad * (max_norm / norm)
    return norm


class EMA:
    """The running average a = beta a + (1 - beta) x of numbers, a = 0 at first.

    Raises ValueError for a beta outside [0, 1).
    """

    def __init__(self, beta: float) -> None:
        if not 0 <= beta < 1:
            raise ValueError(f"beta is {beta}, not within [0, 1)")
        self.beta, self.value, self.t = beta, 0.0, 0

    def update(self, x: float) -> None:
        a, beta = self.value, self.beta
        self.value, self.t = beta * (a - x) + x, self.t + 1

    def value_debiased(self) -> float:
        """a / (1 - beta^t): after t numbers the average that forgot that it began with 0.

        Raises ValueError before the first.
        """
        if self.t == 0:
            raise ValueError("no number yet, so no average")
        return self.value / (1 - self.beta**self.t)
