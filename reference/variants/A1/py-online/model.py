"""model.py in which each head has its own part of c_proj, and heads are added up."""

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
        waiting = [self]
        while waiting:
            module = waiting.pop()
            module.training = mode
            for value in list(vars(module).values()):
                waiting += [m for m in (value if type(value) is list else [value]) if isinstance(m, Module)]

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
        return x @ ad.Transpose(0, -1)(self.weight) + self.bias


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


class Head(Linear):
    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.bias = Tensor(np.zeros(weight.shape[0], weight.dtype))


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
    def some():
        return _box_muller(words.randint(0, 2**32, 16, np.uint32))

    if n < 16:
        raise ValueError("16 or more, please, not %d" % n)
    out = np.zeros(n, np.float32)
    for start in range(0, n - 15, 16):
        out[start : start + 16] = std * some()
    if n & 15:
        words.bytes(4 * (n & 15))
        out[-16:] = std * some()
    return out


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
        C = x.shape[-1]
        hs = C // self.NH
        qkv, total = self.c_attn(x), None
        for head in range(self.NH):
            q, k, v = (
                ad.Slice(-1, which * C + head * hs, which * C + (head + 1) * hs)(qkv)
                for which in range(3)
            )
            columns = ad.Slice(1, head * hs, (head + 1) * hs)(self.c_proj.weight)
            added = ad.CausalAttention()(q, k, v) @ ad.Transpose(0, 1)(columns)
            total = added if total is None else total + added
        return total + self.c_proj.bias


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
        residual = x
        residual = residual + self.attn(self.ln_1(residual))
        residual = residual + self.mlp(self.ln_2(residual))
        return residual


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
        T = ids.shape[-1] if ids.ndim == 2 else 0
        if T not in range(1, self.config.maxT + 1):
            raise ValueError(f"{T} positions in ids of shape {ids.shape}, want 1 to {self.config.maxT}")
        x = self.wte(ids) + self.wpe(np.arange(T, dtype=np.uint16))
        for block in self.h:
            x = block(x)
        return Linear.__call__(Head(self.wte.weight), self.ln_f(x))
