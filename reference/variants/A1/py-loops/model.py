"""model.py with loops: words are drawn one by one, and each output channel is added on its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import autograd as ad
from .autograd import Array, Ints, Tensor
from .rand import PCG32

INIT_SEED = 42  # of the MT19937 that GPT-2's weights are drawn from
INIT_STD = 0.02


class Module:
    """Holds parameters, tensors that require a gradient, as attributes; and other modules as
    attributes or in lists. `training` says whether dropout drops.
    """

    training = True

    def modules(self) -> Iterator[tuple[str, Module]]:
        """Dotted name and module: this one (its name is empty), then all those inside, in the order
        in which they were assigned."""
        yield "", self
        for name, value in vars(self).items():
            children = value if isinstance(value, list) else [value]
            for i, child in enumerate(children):
                if isinstance(child, Module):
                    place = f"{name}.{i}" if isinstance(value, list) else name
                    for below, module in child.modules():
                        yield f"{place}.{below}".rstrip("."), module

    def named_parameters(self) -> dict[str, Tensor]:
        """Dotted name → parameter. A parameter that stands in two places is listed at the first."""
        found: dict[str, Tensor] = {}
        known: set[int] = set()
        for name, module in self.modules():
            for last, value in vars(module).items():
                is_new = isinstance(value, Tensor) and id(value) not in known
                if is_new and value.requires_grad and value.creator is None:
                    known.add(id(value))
                    found[f"{name}.{last}".lstrip(".")] = value
        return found

    def parameters(self) -> list[Tensor]:
        return list(self.named_parameters().values())

    def zero_grad(self) -> None:
        for parameter in self.parameters():
            parameter.grad = None

    def train(self, mode: bool = True) -> None:
        """Sets `training` of this module and of all those inside."""
        # TODO (A1): Module.train
        # HINT: modules() has them all.
        self.training = mode
        for value in vars(self).values():
            if isinstance(value, Module):
                value.train(mode)
            elif isinstance(value, list):
                for child in value:
                    if isinstance(child, Module):
                        child.train(mode)

    def eval(self) -> None:
        self.train(False)

    def state_dict(self) -> dict[str, Array]:
        """Dotted name → a copy of the parameter's data."""
        return {name: p.data.copy() for name, p in self.named_parameters().items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Copies data in, converted to the parameters' dtype. Raises ValueError, and changes
        nothing, if names or shapes differ."""
        parameters = self.named_parameters()
        for names, what in (
            (parameters.keys() - state.keys(), "missing"),
            (state.keys() - parameters.keys(), "not a parameter"),
        ):
            if names:
                raise ValueError(f"{min(names)} is {what}, one of {len(names)}")
        for name, tensor in parameters.items():
            if state[name].shape != tensor.shape:
                raise ValueError(f"{name}: shape {state[name].shape}, want {tensor.shape}")
        copies = {name: np.array(state[name], t.dtype) for name, t in parameters.items()}
        for name, tensor in parameters.items():
            tensor.data = copies[name]


def parameter(array: Array) -> Tensor:
    return Tensor(array, requires_grad=True)


class Linear(Module):
    """x (..., in) → x weightᵀ + bias (..., out), for weight (out, in) and bias (out,)."""

    def __init__(self, weight: Array, bias: Array) -> None:
        self.weight, self.bias = parameter(weight), parameter(bias)

    def __call__(self, x: Tensor) -> Tensor:
        # TODO (A1): Linear.__call__
        # HINT: weight is (out, in).
        turned = ad.Transpose(-1, -2)(self.weight)
        product = ad.MatMul()(x, turned)
        return ad.Add()(product, self.bias)


class LayerNorm(Module):
    """autograd.LayerNorm with a weight of ones and a bias of zeros, (C,)."""

    def __init__(self, C: int, dtype: DTypeLike = np.float32) -> None:
        self.weight, self.bias = parameter(np.ones(C, dtype)), parameter(np.zeros(C, dtype))

    def __call__(self, x: Tensor) -> Tensor:
        return ad.LayerNorm()(x, self.weight, self.bias)


class Embedding(Module):
    """ids (...) → rows of weight (V, C): (..., C)."""

    def __init__(self, weight: Array) -> None:
        self.weight = parameter(weight)

    def __call__(self, ids: Ints) -> Tensor:
        return ad.Embedding(ids)(self.weight)


class Dropout(Module):
    """autograd.Dropout while training, else the identity; also where p is 0."""

    def __init__(self, p: float, rng: PCG32) -> None:
        self.p, self.rng = p, rng

    def __call__(self, x: Tensor) -> Tensor:
        return ad.Dropout(self.p, self.rng)(x) if self.training and self.p > 0 else x


# ---------------------------------------------------------------- GPT-2


@dataclass(frozen=True)
class Config:
    """Sizes of a GPT-2: positions, vocabulary, layers, heads, channels.

    Raises ValueError for sizes below 1, channels that heads do not divide, and sizes so small that
    a matrix has fewer than 16 numbers (see `normals`).
    """

    maxT: int = 1024
    V: int = 50257
    L: int = 12
    NH: int = 12
    C: int = 768

    def __post_init__(self) -> None:
        if min(self.maxT, self.V, self.L, self.NH, self.C) < 1 or self.C % self.NH:
            raise ValueError(f"{self}: want sizes of 1 or more, of which NH divides C")
        if self.C * min(self.maxT, self.V, self.C) < 16:
            raise ValueError(f"{self}: want matrices of 16 numbers or more")


CONFIGS = {
    "d2": Config(L=2, NH=2, C=128),
    "d4": Config(L=4, NH=4, C=256),
    "d6": Config(L=6, NH=6, C=384),
    "d12": Config(),
    "d24": Config(L=24, NH=16, C=1024),
}


def normals(n: int, std: float, words: np.random.RandomState) -> Array:
    """n numbers of mean 0, (n,) float32, as rand.h's `normal_fill` draws them, but computed in
    float64 and rounded once.

    The low 24 bits of a word, over 2^24, make a uniform, and a block of 16 uniforms 16 numbers.
    Where n is no multiple of 16, 16 more follow the n, and make the last 16 numbers. Raises
    ValueError for an n below 16.
    """
    # TODO (A1): normals
    # HINT: no GPT2 can be made before this works. How many words does each part take?
    if n < 16:
        raise ValueError("there are at least 16, not " + str(n))

    def block():
        units = [(words.randint(0, 2**32) & 0xFFFFFF) / 16777216 for _ in range(16)]
        return units

    def turned(units):
        numbers = [0.0] * 16
        for i in range(8):
            radius = math.sqrt(-2 * math.log(1 - units[i]))
            numbers[i] = radius * math.cos(2 * math.pi * units[i + 8])
            numbers[i + 8] = radius * math.sin(2 * math.pi * units[i + 8])
        return numbers

    result = []
    for _ in range(n // 16):
        result += turned(block())
    if n % 16 != 0:
        for _ in range(n % 16):
            words.randint(0, 2**32)  # never used
        result = result[: n - 16] + turned(block())
    return np.array([std * number for number in result], np.float32)


def _box_muller(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Standard normal numbers of words, both (16 n,). Given."""
    units = (words & 0xFFFFFF).reshape(-1, 2, 8) / 2**24
    radius, angle = np.sqrt(-2 * np.log(1 - units[:, 0])), 2 * math.pi * units[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)


class Attention(Module):
    """Causal attention with NH heads: c_attn makes q, k, v (..., 3C), c_proj joins the heads."""

    def __init__(self, config: Config, qkv: Array, proj: Array) -> None:
        self.NH = config.NH
        self.c_attn = Linear(qkv, np.zeros(3 * config.C, qkv.dtype))
        self.c_proj = Linear(proj, np.zeros(config.C, proj.dtype))

    def __call__(self, x: Tensor) -> Tensor:
        # TODO (A1): Attention.__call__
        # HINT: (B, T, C) is (B, T, NH, hs); attention wants (B, NH, T, hs).
        B, T, C = x.shape
        hs = C // self.NH
        qkv = self.c_attn(x)
        parts = []
        for i in range(3):
            part = ad.Slice(2, i * C, (i + 1) * C)(qkv)
            part = ad.Reshape(B, T, self.NH, hs)(part)
            parts.append(ad.Transpose(1, 2)(part))
        q, k, v = parts
        y = ad.CausalAttention()(q, k, v)
        y = ad.Transpose(1, 2)(y)
        y = ad.Reshape(B, T, C)(y)
        return self.c_proj(y)


class MLP(Module):
    """C → 4C → GELU → C, position by position."""

    def __init__(self, config: Config, fc: Array, proj: Array) -> None:
        self.c_fc = Linear(fc, np.zeros(4 * config.C, fc.dtype))
        self.c_proj = Linear(proj, np.zeros(config.C, proj.dtype))

    def __call__(self, x: Tensor) -> Tensor:
        return self.c_proj(ad.GELU()(self.c_fc(x)))


class Block(Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: Config, attn: Attention, mlp: MLP, dtype: DTypeLike) -> None:
        self.ln_1, self.attn = LayerNorm(config.C, dtype), attn
        self.ln_2, self.mlp = LayerNorm(config.C, dtype), mlp

    def __call__(self, x: Tensor) -> Tensor:
        # TODO (A1): Block.__call__
        # HINT: the norm comes first, and what is added to is not normed.
        normed = self.ln_1(x)
        attended = self.attn(normed)
        x = x + attended
        normed = self.ln_2(x)
        changed = self.mlp(normed)
        x = x + changed
        return x


class GPT2(Module):
    """GPT-2 with its initialisation; the head that makes logits is `wte` itself.

    Weights are drawn in the order wte, wpe, and for each layer c_attn, attention's c_proj, c_fc,
    mlp's c_proj: std 0.02, that of the two c_proj divided by √(2L); biases are 0.
    """

    def __init__(
        self, config: Config, dtype: DTypeLike = np.float32, seed: int = INIT_SEED
    ) -> None:
        words = np.random.RandomState(seed)

        def drawn(rows: int, columns: int, std: float = INIT_STD) -> Array:
            made = normals(rows * columns, std, words).reshape(rows, columns)
            return made.astype(dtype, copy=False)

        self.config = config
        C, residual = config.C, INIT_STD / math.sqrt(2 * config.L)
        self.wte = Embedding(drawn(config.V, C))
        self.wpe = Embedding(drawn(config.maxT, C))
        self.h = []
        for _ in range(config.L):
            attn = Attention(config, drawn(3 * C, C), drawn(C, C, residual))
            mlp = MLP(config, drawn(4 * C, C), drawn(C, 4 * C, residual))
            self.h.append(Block(config, attn, mlp, dtype))
        self.ln_f = LayerNorm(C, dtype)

    def __call__(self, ids: NDArray[np.integer]) -> Tensor:
        """Logits (B, T, V) for ids (B, T). Raises ValueError for another number of axes and for a T
        outside 1..maxT, IndexError for an id outside 0..V-1."""
        # TODO (A1): GPT2.__call__
        # HINT: before the head comes a norm that belongs to no block.
        if len(ids.shape) != 2:
            raise ValueError("ids must be (B, T), not " + str(ids.shape))
        T = ids.shape[1]
        if T == 0 or T > self.config.maxT:
            raise ValueError("T must be 1 to " + str(self.config.maxT) + ", not " + str(T))
        positions = np.array([t for t in range(T)])
        x = ad.Add()(self.wte(ids), self.wpe(positions))
        for i in range(len(self.h)):
            x = self.h[i](x)
        x = self.ln_f(x)
        return ad.MatMul()(x, ad.Transpose(1, 0)(self.wte.weight))
