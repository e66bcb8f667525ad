"""optim.py that keeps its moments and takes its steps in float64, and rounds parameters."""
from __future__ import annotations
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import numpy as np
from .autograd import Tensor

@dataclass(frozen=True)
class Group:
    parameters: Sequence[Tensor]
    weight_decay: float = 0.0

def decay_groups(parameters, weight_decay):
    groups = {True: [], False: []}
    for p in parameters:
        groups[np.ndim(p.data) >= 2].append(p)
    return [Group(groups[True], weight_decay), Group(groups[False], 0)]

class SGD:

    def __init__(self, parameters, lr, momentum=0.0):
        self.parameters, self.lr, self.momentum = (list(parameters), lr, momentum)
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self):
        self.velocities = [v if p.grad is None else self.momentum * v.astype('f8') + p.grad for p, v in zip(self.parameters, self.velocities)]
        for p, v in zip(self.parameters, self.velocities):
            if p.grad is not None:
                p.data = (p.data - self.lr * v).astype(p.dtype)

class AdamW:

    def __init__(self, groups, lr=0.001, betas=(0.9, 0.999), eps=1e-08):
        self.groups, self.lr, self.betas, self.eps = (list(groups), lr, betas, eps)
        self.t = 0
        self.moments = [[(np.zeros_like(p.data), np.zeros_like(p.data)) for p in group.parameters] for group in self.groups]

    def step(self):
        self.t += 1
        beta1, beta2 = self.betas
        for group, moments in zip(self.groups, self.moments):
            for i, p in enumerate(group.parameters):
                if p.grad is not None:
                    g = p.grad.astype(np.float64)
                    m, v = moments[i]
                    m = m * beta1 + g * (1 - beta1)
                    v = v * beta2 + g ** 2 * (1 - beta2)
                    moments[i] = (m, v)
                    step = m / (1 - beta1 ** self.t) / ((v / (1 - beta2 ** self.t)) ** 0.5 + self.eps)
                    p.data = (p.data - self.lr * (step + group.weight_decay * p.data)).astype(p.dtype)

def clip_grad_norm_(parameters, max_norm):
    if max_norm <= 0:
        raise ValueError(max_norm)
    parameters = [p for p in parameters if p.grad is not None]
    norm = float(np.sqrt(sum((np.einsum('i,i->', g, g) for g in (np.ravel(p.grad).astype('f8') for p in parameters)))))
    if max_norm < norm < np.inf:
        for p in parameters:
            p.grad = (p.grad / (norm / max_norm)).astype(p.dtype)
    return norm

class EMA:

    def __init__(self, beta):
        if not 0 <= beta < 1:
            raise ValueError(f'beta is {beta}, not within [0, 1)')
        self.beta, self.value, self.t = (beta, 0.0, 0)

    def update(self, x):
        self.t += 1
        self.value = np.dot([self.beta, 1 - self.beta], [self.value, x])

    def value_debiased(self):
        if self.t < 1:
            raise ValueError('empty')
        return self.value / (1 - self.beta ** self.t)
