"""optim.py number by number: Python's floats, rounded when they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .autograd import Tensor


@dataclass(frozen=True)
class Group:
    parameters: Sequence[Tensor]
    weight_decay: float = 0.0


def decay_groups(parameters: Iterable[Tensor], weight_decay: float) -> list[Group]:
    first = []
    second = []
    for parameter in parameters:
        if len(parameter.shape) >= 2:
            first.append(parameter)
        else:
            second.append(parameter)
    return [Group(first, weight_decay), Group(second, 0.0)]


class SGD:
    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        for i in range(len(self.parameters)):
            parameter = self.parameters[i]
            if parameter.grad is None:
                continue
            new = np.zeros(parameter.shape, parameter.dtype)
            for place in np.ndindex(parameter.shape):
                v = self.momentum * float(self.velocities[i][place]) + float(parameter.grad[place])
                self.velocities[i][place] = v
                new[place] = float(parameter.data[place]) - self.lr * v
            parameter.data = new


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
        beta1, beta2 = self.betas
        for group, moments in zip(self.groups, self.moments):
            for parameter, (ms, vs) in zip(group.parameters, moments):
                if parameter.grad is None:
                    continue
                new = np.empty_like(parameter.data)
                for place, theta in np.ndenumerate(parameter.data):
                    g, theta = float(parameter.grad[place]), float(theta)
                    ms[place] = m = beta1 * float(ms[place]) + (1 - beta1) * g
                    vs[place] = v = beta2 * float(vs[place]) + (1 - beta2) * g**2
                    m_hat = m / (1 - beta1**self.t)
                    v_hat = v / (1 - beta2**self.t)
                    step = m_hat / (v_hat**0.5 + self.eps) + group.weight_decay * theta
                    new[place] = theta - self.lr * step
                parameter.data = new


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    if max_norm <= 0:
        raise ValueError("max_norm " + str(max_norm))
    parameters = list(parameters)
    total = 0.0
    for parameter in parameters:
        if parameter.grad is not None:
            for number in np.nditer(parameter.grad):
                total += float(number) ** 2
    norm = total**0.5
    if norm > max_norm and norm != float("inf"):
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad = max_norm / norm * parameter.grad
    return norm


class EMA:
    def __init__(self, beta: float) -> None:
        if not 0 <= beta < 1:
            raise ValueError(f"beta is {beta}, not within [0, 1)")
        self.beta, self.value, self.t = beta, 0.0, 0

    def update(self, x: float) -> None:
        self.t += 1
        self.value *= self.beta
        self.value += (1 - self.beta) * x

    def value_debiased(self) -> float:
        if self.t == 0:
            raise ValueError("no value")
        power = 1.0
        for _ in range(self.t):
            power *= self.beta
        return self.value / (1 - power)
