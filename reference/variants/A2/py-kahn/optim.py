"""optim.py with the textbook's step size, new moments in each step, and numpy's norm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import math
import numpy as np

from .autograd import Tensor


@dataclass(frozen=True)
class Group:
    parameters: Sequence[Tensor]
    weight_decay: float = 0.0


def decay_groups(parameters: Iterable[Tensor], weight_decay: float) -> list[Group]:
    decaying, others = [], []
    for parameter in parameters:
        (decaying if parameter.data.ndim > 1 else others).append(parameter)
    return [Group(decaying, weight_decay), Group(others, 0.0)]


class SGD:
    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        for i, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            self.velocities[i] = self.momentum * self.velocities[i] + parameter.grad
            parameter.data = parameter.data - self.lr * self.velocities[i]


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
        b1, b2 = self.betas
        root = math.sqrt(1 - b2**self.t)
        alpha = self.lr * root / (1 - b1**self.t)
        for group, moments in zip(self.groups, self.moments):
            for i, p in enumerate(group.parameters):
                if p.grad is None:
                    continue
                m = b1 * moments[i][0] + (1 - b1) * p.grad
                v = b2 * moments[i][1] + (1 - b2) * p.grad * p.grad
                moments[i] = m, v
                decayed = p.data * (1 - self.lr * group.weight_decay)
                p.data = decayed - alpha * m / (np.sqrt(v) + self.eps * root)


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    if max_norm <= 0:
        raise ValueError(f"{max_norm} <= 0")
    some = [p for p in parameters if p.grad is not None]
    flat = np.concatenate([np.ravel(p.grad).astype(np.float64) for p in some] or [np.zeros(0)])
    norm = np.linalg.norm(flat)
    if np.isfinite(norm) and norm > max_norm:
        for p in some:
            p.grad = p.grad * float(max_norm / norm)
    return norm


class EMA:
    def __init__(self, beta: float) -> None:
        if not 0 <= beta < 1:
            raise ValueError(f"beta is {beta}, not within [0, 1)")
        self.beta, self.value, self.t = beta, 0.0, 0

    def update(self, x: float) -> None:
        self.t += 1
        self.value += (1 - self.beta) * (x - self.value)

    def value_debiased(self) -> float:
        if not self.t:
            raise ValueError("update first")
        return self.value / (1 - self.beta**self.t)
