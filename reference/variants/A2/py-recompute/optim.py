"""optim.py with dictionaries and small functions, math.hypot, and momentum by lerp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import math
import numpy as np

from .autograd import Tensor


def lerp(a, b, weight):
    return a + weight * (b - a)


def corrected(average, beta, t):
    return average / (1.0 - math.pow(beta, t))


@dataclass(frozen=True)
class Group:
    parameters: Sequence[Tensor]
    weight_decay: float = 0.0


def decay_groups(parameters: Iterable[Tensor], weight_decay: float) -> list[Group]:
    by_kind = {"matrices": [], "vectors": []}
    for p in parameters:
        by_kind["vectors" if len(p.shape) in (0, 1) else "matrices"].append(p)
    return [
        Group(parameters=by_kind["matrices"], weight_decay=weight_decay),
        Group(parameters=by_kind["vectors"], weight_decay=0.0),
    ]


class SGD:
    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        for p, v in zip(self.parameters, self.velocities):
            if p.grad is not None:
                v[...] = p.grad + self.momentum * v
                p.data = -self.lr * v + p.data


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
            state = dict(zip(map(id, group.parameters), range(len(moments))))
            for p in filter(lambda p: p.grad is not None, group.parameters):
                i = state[id(p)]
                first = lerp(moments[i][0], p.grad, 1 - self.betas[0])
                second = lerp(moments[i][1], p.grad**2, 1 - self.betas[1])
                moments[i] = first, second
                new = p.data.copy()
                new -= self.lr * group.weight_decay * p.data
                root = corrected(second, self.betas[1], self.t) ** 0.5
                new -= self.lr * corrected(first, self.betas[0], self.t) / (root + self.eps)
                p.data = new


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    if max_norm <= 0:
        raise ValueError(f"clip_grad_norm_: max_norm = {max_norm:.3f}")
    with_grads = [p for p in parameters if p.grad is not None]
    norm = math.hypot(*(math.hypot(*p.grad.ravel().tolist()) for p in with_grads))
    if math.isfinite(norm) and norm > max_norm:
        for p in with_grads:
            p.grad *= max_norm / norm
    return norm


class EMA:
    def __init__(self, beta: float) -> None:
        if not 0 <= beta < 1:
            raise ValueError(f"beta is {beta}, not within [0, 1)")
        self.beta, self.value, self.t = beta, 0.0, 0

    def update(self, x: float) -> None:
        self.value = lerp(self.value, x, 1 - self.beta)
        self.t += 1

    def value_debiased(self) -> float:
        if self.t <= 0:
            raise ValueError("EMA: t = 0")
        return corrected(self.value, self.beta, self.t)
