"""optim.py on one long vector for each group: parameters are joined, stepped, and cut up again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import math
import numpy as np

from .autograd import Tensor


def joined(arrays):
    return np.concatenate([np.reshape(array, -1) for array in arrays])


def cut(vector, arrays):
    """The vector in the arrays' shapes; none of them is a view of another."""
    ends = np.cumsum([array.size for array in arrays])[:-1]
    parts = zip(np.split(vector, ends), arrays)
    return [part.reshape(array.shape).copy() for part, array in parts]


@dataclass(frozen=True)
class Group:
    """Parameters that share a weight decay."""

    parameters: Sequence[Tensor]
    weight_decay: float = 0.0


def decay_groups(parameters: Iterable[Tensor], weight_decay: float) -> list[Group]:
    """Two groups: tensors of two axes or more (matrices, embeddings), which decay; then those of
    fewer (biases, norms), which do not."""
    all_of_them = tuple(parameters)
    is_matrix = [len(parameter.shape) > 1 for parameter in all_of_them]
    return [
        Group([p for p, yes in zip(all_of_them, is_matrix) if yes], weight_decay=weight_decay),
        Group([p for p, yes in zip(all_of_them, is_matrix) if not yes]),
    ]


class SGD:
    """Gradient descent with momentum: v = momentum v + g;  θ = θ - lr v, with v = 0 at first.

    Parameters without a gradient are left alone. A step makes new arrays: whoever holds a
    parameter's old `data` keeps the old numbers.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        at = [i for i, parameter in enumerate(self.parameters) if parameter.grad is not None]
        if not at:
            return
        values = [self.parameters[i].data for i in at]
        velocity = self.momentum * joined(self.velocities[i] for i in at)
        velocity += joined(self.parameters[i].grad for i in at)
        new = cut(joined(values) - self.lr * velocity, values)
        for i, value, kept in zip(at, new, cut(velocity, values)):
            self.parameters[i].data, self.velocities[i] = value, kept


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
        for group, moments in zip(self.groups, self.moments):
            at = [i for i, p in enumerate(group.parameters) if p.grad is not None]
            if not at:
                continue
            some = [group.parameters[i] for i in at]
            values = [p.data for p in some]
            theta, g = joined(values), joined(p.grad for p in some)
            m, v = (joined(moments[i][which] for i in at) for which in (0, 1))
            m, v = (old + (1 - beta) * (x - old) for old, x, beta in zip((m, v), (g, g * g), self.betas))
            m_hat, v_hat = (x / (1 - beta**self.t) for x, beta in zip((m, v), self.betas))
            theta = theta - self.lr * (m_hat / (np.sqrt(v_hat) + self.eps) + group.weight_decay * theta)
            new = zip(at, some, *(cut(each, values) for each in (theta, m, v)))
            for i, p, p.data, one, other in new:
                moments[i] = (one, other)


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Gives each parameter its gradient times max_norm / norm, if norm = √Σ g², over all elements
    of all gradients, is larger than max_norm and finite.

    Returns the norm before that. Parameters without a gradient are left alone. Raises ValueError
    for a max_norm that is not positive.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be positive, got {max_norm!r}")
    with_grad = [parameter for parameter in parameters if parameter.grad is not None]
    if not with_grad:
        return 0.0
    g = joined(parameter.grad for parameter in with_grad).astype(np.float64)
    norm = math.sqrt(g @ g)
    factor = max_norm / norm if max_norm < norm < float("inf") else None
    for parameter in with_grad if factor is not None else ():
        parameter.grad = np.asarray(factor * parameter.grad)
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
        self.value, self.t = self.beta * self.value + (1 - self.beta) * x, self.t + 1

    def value_debiased(self) -> float:
        """a / (1 - beta^t): after t numbers the average that forgot that it began with 0.

        Raises ValueError before the first.
        """
        try:
            return self.value / (1 - self.beta**self.t)
        except ZeroDivisionError:
            raise ValueError("an average of no numbers") from None
