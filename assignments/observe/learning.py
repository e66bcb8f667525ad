"""Small tasks that a network must learn: their data, their first weights, and how to train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from samples import Array, Draw

Data = dict[str, Array]


@dataclass(frozen=True)
class Task:
    """A network of `inputs`, `hidden` and one unit, trained by AdamW."""

    inputs: int
    hidden: int
    rate: float
    batch: int
    epochs: int
    clip: float
    data: Callable[[int], Data]  # of a seed: x (n, inputs), y (n, 1) of 0 and 1

    def weights(self, seed: int) -> tuple[Array, Array]:
        """(hidden, inputs) and (1, hidden): uniform, of variance 1 / inputs and 1 / hidden."""
        draw = Draw(seed, 600_000)
        first, last = draw.units(self.hidden, self.inputs), draw.units(1, self.hidden)
        return (2 * first - 1) * (3 / self.inputs) ** 0.5, (2 * last - 1) * (3 / self.hidden) ** 0.5

    def shortened(self, epochs: int) -> Task:
        return replace(self, epochs=epochs)


def xor(seed: int) -> Data:
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return {"x": x, "y": np.array([[0.0], [1.0], [1.0], [0.0]])}


POINTS = 200


def moons(seed: int) -> Data:
    """Two half circles that reach into each other, with noise: row i belongs to i mod 2."""
    draw = Draw(seed, 610_000)
    lower = np.arange(POINTS) % 2
    angle = np.pi * draw.units(POINTS)
    x = np.where(lower == 0, np.cos(angle), 1 - np.cos(angle))
    y = np.where(lower == 0, np.sin(angle), 0.5 - np.sin(angle))
    noise = sum(draw(POINTS, 2, scale=0.125) for _ in range(3))
    return {"x": np.stack([x, y], axis=1) + noise, "y": lower[:, None].astype(np.float64)}


XOR = Task(2, 8, 0.05, 4, 300, 1.0, xor)
MOONS = Task(2, 16, 0.05, 32, 40, 1.0, moons)
