"""optim.py of pure functions: from state and gradient to state and update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .autograd import Tensor


def momentum_step(state, grad, momentum):
    return momentum * state + grad


def adam_step(state, grad, betas, eps, t):
    m, v = (beta * old + (1 - beta) * new for beta, old, new in zip(betas, state, (grad, grad**2)))
    unbiased = [x / (1 - beta**t) for x, beta in zip((m, v), betas)]
    return (m, v), unbiased[0] / (eps + unbiased[1] ** 0.5)


def norm_of(arrays):
    largest = max((float(abs(a).max()) for a in arrays), default=0.0)
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(sum(((a / largest) ** 2).sum(dtype=np.float64) for a in arrays)) ** 0.5


@dataclass(frozen=True)
class Group:
    parameters: Sequence[Tensor]
    weight_decay: float = 0.0


def decay_groups(parameters: Iterable[Tensor], weight_decay: float) -> list[Group]:
    parameters = sorted(parameters, key=lambda p: len(p.shape) < 2)  # which keeps the order
    cut = sum(len(p.shape) >= 2 for p in parameters)
    return [Group(parameters[:cut], weight_decay), Group(parameters[cut:])]


class SGD:
    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        for i, p in enumerate(self.parameters):
            if p.grad is not None:
                self.velocities[i] = momentum_step(self.velocities[i], p.grad, self.momentum)
                p.data = p.data - self.lr * self.velocities[i]


class AdamW:
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
            for i, p in enumerate(group.parameters):
                if p.grad is None:
                    continue
                moments[i], update = adam_step(moments[i], p.grad, self.betas, self.eps, self.t)
                p.data = p.data - self.lr * update - self.lr * group.weight_decay * p.data


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    if not 0 < max_norm:
        raise ValueError(f"max_norm {max_norm}")
    parameters = [p for p in parameters if p.grad is not None]
    norm = norm_of([p.grad for p in parameters])
    if max_norm < norm < np.inf:
        for p in parameters:
            p.grad = p.grad / norm * max_norm
    return norm


class EMA:
    def __init__(self, beta: float) -> None:
        if not 0 <= beta < 1:
            raise ValueError(f"beta is {beta}, not within [0, 1)")
        self.beta, self.value, self.t = beta, 0.0, 0

    def update(self, x: float) -> None:
        self.value, self.t = self.value * self.beta + x * (1 - self.beta), self.t + 1

    def value_debiased(self) -> float:
        if self.t == 0:
            raise ValueError("t is 0")
        return self.value / (1 - self.beta**self.t)
