"""model.py whose linear layers are an operation of their own, one einsum forwards, three backwards."""

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
    training = True

    def modules(self) -> Iterator[tuple[str, Module]]:
        yield "", self
        for name, value in vars(self).items():
            children = value if isinstance(value, list) else [value]
            for i, child in enumerate(children):
                if isinstance(child, Module):
                    place = f"{name}.{i}" if isinstance(value, list) else name
                    for below, module in child.modules():
                        yield f"{place}.{below}".rstrip("."), module

    def named_parameters(self) -> dict[str, Tensor]:
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
        for _, each in self.modules():
            setattr(each, "training", mode)

    def eval(self) -> None:
        self.train(False)

    def state_dict(self) -> dict[str, Array]:
        return {name: p.data.copy() for name, p in self.named_parameters().items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
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
    def __init__(self, weight: Array, bias: Array) -> None:
        self.weight, self.bias = parameter(weight), parameter(bias)

    def __call__(self, x: Tensor) -> Tensor:
        return Affine()(x, self.weight, self.bias)


class LayerNorm(Module):
    def __init__(self, C: int, dtype: DTypeLike = np.float32) -> None:
        self.weight, self.bias = parameter(np.ones(C, dtype)), parameter(np.zeros(C, dtype))

    def __call__(self, x: Tensor) -> Tensor:
        return ad.LayerNorm()(x, self.weight, self.bias)


class Embedding(Module):
    def __init__(self, weight: Array) -> None:
        self.weight = parameter(weight)

    def __call__(self, ids: Ints) -> Tensor:
        return ad.Embedding(ids)(self.weight)


class Dropout(Module):
    def __init__(self, p: float, rng: PCG32) -> None:
        self.p, self.rng = p, rng

    def __call__(self, x: Tensor) -> Tensor:
        return ad.Dropout(self.p, self.rng)(x) if self.training and self.p > 0 else x


class Affine(ad.Operation):
    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        self.x, self.weight = x, weight
        return np.einsum("...i,oi->...o", x, weight) + bias

    def backward(self, grad: Array) -> ad.Gradients:
        by_weight = np.einsum("...o,...i->oi", grad, self.x)
        return np.einsum("...o,oi->...i", grad, self.weight), by_weight, np.einsum("...o->o", grad)


# ---------------------------------------------------------------- GPT-2


@dataclass(frozen=True)
class Config:
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
    if n < 16:
        raise ValueError(f"normals: n = {n}")
    drawn = words.randint(0, 2**32, size=n, dtype=np.uint64)
    whole, rest = divmod(n, 16)
    z = _box_muller(drawn[: 16 * whole])
    if rest > 0:
        again = _box_muller(words.randint(0, 2**32, size=16, dtype=np.uint64))
        z = np.concatenate((z[: n - 16], again))
    return np.einsum(",n->n", std, z).astype(np.float32)


def _box_muller(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    units = (words & 0xFFFFFF).reshape(-1, 2, 8) / 2**24
    radius, angle = np.sqrt(-2 * np.log(1 - units[:, 0])), 2 * math.pi * units[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)


class Attention(Module):
    def __init__(self, config: Config, qkv: Array, proj: Array) -> None:
        self.NH = config.NH
        self.c_attn = Linear(qkv, np.zeros(3 * config.C, qkv.dtype))
        self.c_proj = Linear(proj, np.zeros(config.C, proj.dtype))

    def __call__(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        split = ad.Reshape(B, T, 3, self.NH, C // self.NH)(self.c_attn(x))
        split = ad.Transpose(1, 3)(split)  # (B, NH, 3, T, hs)
        q, k, v = (ad.Reshape(B, self.NH, T, C // self.NH)(part) for part in ad.split(split, 3, 2))
        joined = ad.Transpose(2, 1)(ad.CausalAttention()(q, k, v))
        return self.c_proj(ad.Reshape(B, T, -1)(joined))


class MLP(Module):
    def __init__(self, config: Config, fc: Array, proj: Array) -> None:
        self.c_fc = Linear(fc, np.zeros(4 * config.C, fc.dtype))
        self.c_proj = Linear(proj, np.zeros(config.C, proj.dtype))

    def __call__(self, x: Tensor) -> Tensor:
        return self.c_proj(ad.GELU()(self.c_fc(x)))


class Block(Module):
    def __init__(self, config: Config, attn: Attention, mlp: MLP, dtype: DTypeLike) -> None:
        self.ln_1, self.attn = LayerNorm(config.C, dtype), attn
        self.ln_2, self.mlp = LayerNorm(config.C, dtype), mlp

    def __call__(self, x: Tensor) -> Tensor:
        middle = x + self.attn(self.ln_1(x))
        return middle + self.mlp(self.ln_2(middle))


class GPT2(Module):
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
        if ids.ndim != 2:
            raise ValueError(f"{ids.ndim} axes of ids, not 2")
        B, T = ids.shape
        if not 0 < T <= self.config.maxT:
            raise ValueError(f"T is {T}, of {self.config.maxT} at most")
        x = self.wte(ids) + self.wpe(np.arange(T)[np.newaxis])
        for block in self.h:
            x = block(x)
        return Affine()(self.ln_f(x), self.wte.weight, Tensor(np.zeros(self.config.V, x.dtype)))
