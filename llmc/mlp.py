"""mlp.py: a multilayer perceptron, the model that the training loop is tried on. Given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike

from .autograd import Operation, ReLU, Tensor
from .model import Dropout, Linear, Module
from .rand import PCG32


class MultilayerPerceptron(Module):
    """Linear layers with an activation, and dropout, between them: (B, sizes[0]) → (B, sizes[-1]).

    Weights are uniform on ±√(3 / in), whose variance is 1 / in, and biases 0. They come from
    PCG32(seed)'s sub-stream "init", what is dropped from its sub-stream "dropout": the weights are
    the same with dropout and without.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: type[Operation] = ReLU,
        dropout: float = 0.0,
        seed: int = 0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        rng = PCG32(seed)
        init = rng.substream("init")
        self.activation = activation
        self.layers = []
        for inputs, outputs in pairwise(sizes):
            bound = math.sqrt(3 / inputs)
            weight = bound * (2 * init.uniforms(outputs * inputs).reshape(outputs, inputs) - 1)
            self.layers.append(Linear(weight.astype(dtype), np.zeros(outputs, dtype)))
        self.dropout = Dropout(dropout, rng.substream("dropout"))

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = self.dropout(self.activation()(layer(x)))
        return self.layers[-1](x)
