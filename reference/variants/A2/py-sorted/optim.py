"""optim.py by generators and exact sums; the running average remembers all numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import math
from operator import attrgetter
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
    found = [[], []]
    for parameter in parameters:
        found[parameter.data.ndim < 2].append(parameter)
    return [Group(part, decay) for part, decay in zip(found, (weight_decay, 0.0))]


class SGD:
    """Gradient descent with momentum: v = momentum v + g;  θ = θ - lr v, with v = 0 at first.

    Parameters without a gradient are left alone. A step makes new arrays: whoever holds a
    parameter's old `data` keeps the old numbers.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = [np.zeros_like(parameter.data) for parameter in self.parameters]

    def step(self) -> None:
        # TODO (A2): SGD.step
        # HINT: the velocity is kept from step to step.
        def stepped(parameter, velocity):
            if parameter.grad is None:
                return velocity
            velocity = velocity * self.momentum + parameter.grad
            parameter.data = np.subtract(parameter.data, np.multiply(self.lr, velocity))
            return velocity

        self.velocities = list(map(stepped, self.parameters, self.velocities))


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
        # TODO (A2): AdamW.step
        # HINT: eps is added to the root, and the decay is no part of the gradient.
        self.t = self.t + 1
        for group, moments in zip(self.groups, self.moments):
            for p, (m, v) in zip(group.parameters, moments):
                if p.grad is not None:
                    np.add(self.betas[0] * m, (1 - self.betas[0]) * p.grad, out=m)
                    np.add(self.betas[1] * v, (1 - self.betas[1]) * np.square(p.grad), out=v)
                    m_hat = m / -math.expm1(self.t * math.log(self.betas[0])) if self.betas[0] else m
                    v_hat = v / -math.expm1(self.t * math.log(self.betas[1])) if self.betas[1] else v
                    update = m_hat / (np.sqrt(v_hat) + self.eps)
                    update = update + group.weight_decay * p.data
                    p.data = p.data + -self.lr * update


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Gives each parameter its gradient times max_norm / norm, if norm = √Σ g², over all elements
    of all gradients, is larger than max_norm and finite.

    Returns the norm before that. Parameters without a gradient are left alone. Raises ValueError
    for a max_norm that is not positive.
    """
    # TODO (A2): clip_grad_norm_
    # HINT: one norm over all of them, one factor for all; a float32 sum of squares overflows.
    if not max_norm > 0:
        raise ValueError(f"a norm of {max_norm} at most? it must be positive")
    parameters = list(parameters)
    grads = list(filter(lambda g: g is not None, map(attrgetter("grad"), parameters)))
    squares = (float(number) ** 2 for g in grads for number in g.flat)
    norm = math.sqrt(math.fsum(squares))
    if norm > max_norm and not math.isinf(norm):
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad = np.true_divide(parameter.grad, norm / max_norm)
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
        # TODO (A2): EMA.update
        # HINT: count the updates.
        vars(self).setdefault("numbers", []).append(x)
        self.t = len(self.numbers)
        weights = [(1 - self.beta) * self.beta**age for age in range(self.t)]
        self.value = math.fsum(w * number for w, number in zip(weights, reversed(self.numbers)))

    def value_debiased(self) -> float:
        """a / (1 - beta^t): after t numbers the average that forgot that it began with 0.

        Raises ValueError before the first.
        """
        # TODO (A2): EMA.value_debiased
        # HINT: after one number it is that number.
        if self.t == 0:
            raise ValueError("nothing to average")
        total = math.fsum((1 - self.beta) * self.beta**age for age in range(self.t))
        return self.value / total
