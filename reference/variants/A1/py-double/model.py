"""model.py without annotations or docstrings; attention is composed of smaller operations."""
from __future__ import annotations
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
import numpy as np
from numpy.typing import DTypeLike, NDArray
from . import autograd as ad
from .autograd import Array, Ints, Tensor
from .rand import PCG32
INIT_SEED = 42
INIT_STD = 0.02

class Module:
    training = True

    def modules(self):
        yield ('', self)
        for name, value in vars(self).items():
            children = value if isinstance(value, list) else [value]
            for i, child in enumerate(children):
                if isinstance(child, Module):
                    place = f'{name}.{i}' if isinstance(value, list) else name
                    for below, module in child.modules():
                        yield (f'{place}.{below}'.rstrip('.'), module)

    def named_parameters(self):
        found = {}
        known = set()
        for name, module in self.modules():
            for last, value in vars(module).items():
                is_new = isinstance(value, Tensor) and id(value) not in known
                if is_new and value.requires_grad and (value.creator is None):
                    known.add(id(value))
                    found[f'{name}.{last}'.lstrip('.')] = value
        return found

    def parameters(self):
        return list(self.named_parameters().values())

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def train(self, mode=True):

        def visit(module):
            module.training = mode
            for value in list(module.__dict__.values()):
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, Module):
                        visit(child)
        visit(self)

    def eval(self):
        self.train(False)

    def state_dict(self):
        return {name: p.data.copy() for name, p in self.named_parameters().items()}

    def load_state_dict(self, state):
        parameters = self.named_parameters()
        for names, what in ((parameters.keys() - state.keys(), 'missing'), (state.keys() - parameters.keys(), 'not a parameter')):
            if names:
                raise ValueError(f'{min(names)} is {what}, one of {len(names)}')
        for name, tensor in parameters.items():
            if state[name].shape != tensor.shape:
                raise ValueError(f'{name}: shape {state[name].shape}, want {tensor.shape}')
        copies = {name: np.array(state[name], t.dtype) for name, t in parameters.items()}
        for name, tensor in parameters.items():
            tensor.data = copies[name]

def parameter(array):
    return Tensor(array, requires_grad=True)

class Linear(Module):

    def __init__(self, weight, bias):
        self.weight, self.bias = (parameter(weight), parameter(bias))

    def __call__(self, x):
        w = ad.Transpose(1, 0)(self.weight)
        return x @ w + self.bias

class LayerNorm(Module):

    def __init__(self, C, dtype=np.float32):
        self.weight, self.bias = (parameter(np.ones(C, dtype)), parameter(np.zeros(C, dtype)))

    def __call__(self, x):
        return ad.LayerNorm()(x, self.weight, self.bias)

class Embedding(Module):

    def __init__(self, weight):
        self.weight = parameter(weight)

    def __call__(self, ids):
        return ad.Embedding(ids)(self.weight)

class Dropout(Module):

    def __init__(self, p, rng):
        self.p, self.rng = (p, rng)

    def __call__(self, x):
        return ad.Dropout(self.p, self.rng)(x) if self.training and self.p > 0 else x

class Residual:

    def __init__(self, norm, part):
        self.norm, self.part = (norm, part)

    def __call__(self, x):
        return x + self.part(self.norm(x))

@dataclass(frozen=True)
class Config:
    maxT: int = 1024
    V: int = 50257
    L: int = 12
    NH: int = 12
    C: int = 768

    def __post_init__(self):
        if min(self.maxT, self.V, self.L, self.NH, self.C) < 1 or self.C % self.NH:
            raise ValueError(f'{self}: want sizes of 1 or more, of which NH divides C')
        if self.C * min(self.maxT, self.V, self.C) < 16:
            raise ValueError(f'{self}: want matrices of 16 numbers or more')
CONFIGS = {'d2': Config(L=2, NH=2, C=128), 'd4': Config(L=4, NH=4, C=256), 'd6': Config(L=6, NH=6, C=384), 'd12': Config(), 'd24': Config(L=24, NH=16, C=1024)}

def normals(n, std, words):
    if n < 16:
        raise ValueError('n = ' + str(n))
    r = n % 16
    whole = words.randint(0, 2 ** 32, n, np.uint32)
    made = list(_box_muller(whole[:n - r]))
    if r:
        last = words.randint(0, 2 ** 32, 16, np.uint32)
        made[n - 16:] = _box_muller(last)
    return np.array([float(std) * number for number in made]).astype(np.float32)

def _box_muller(words):
    units = (words & 16777215).reshape(-1, 2, 8) / 2 ** 24
    radius, angle = (np.sqrt(-2 * np.log(1 - units[:, 0])), 2 * math.pi * units[:, 1])
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)

class Attention(Module):

    def __init__(self, config, qkv, proj):
        self.NH = config.NH
        self.c_attn = Linear(qkv, np.zeros(3 * config.C, qkv.dtype))
        self.c_proj = Linear(proj, np.zeros(config.C, proj.dtype))

    def __call__(self, x):
        B, T, C = x.shape
        hs = C // self.NH
        q, k, v = [ad.Transpose(1, 2)(ad.Reshape(B, T, self.NH, hs)(y)) for y in ad.split(self.c_attn(x), 3)]
        past = np.where(np.tri(T, dtype=bool), 0.0, -np.inf).astype(x.dtype)
        scores = q * (1 / math.sqrt(hs)) @ ad.Transpose(2, 3)(k) + Tensor(past)
        y = ad.Softmax()(scores) @ v
        return self.c_proj(ad.Reshape(B, T, C)(ad.Transpose(1, 2)(y)))

class MLP(Module):

    def __init__(self, config, fc, proj):
        self.c_fc = Linear(fc, np.zeros(4 * config.C, fc.dtype))
        self.c_proj = Linear(proj, np.zeros(config.C, proj.dtype))

    def __call__(self, x):
        return self.c_proj(ad.GELU()(self.c_fc(x)))

class Block(Module):

    def __init__(self, config, attn, mlp, dtype):
        self.ln_1, self.attn = (LayerNorm(config.C, dtype), attn)
        self.ln_2, self.mlp = (LayerNorm(config.C, dtype), mlp)

    def __call__(self, x):
        return Residual(self.ln_2, self.mlp)(Residual(self.ln_1, self.attn)(x))

class GPT2(Module):

    def __init__(self, config, dtype=np.float32, seed=INIT_SEED):
        words = np.random.RandomState(seed)

        def drawn(rows, columns, std=INIT_STD):
            made = normals(rows * columns, std, words).reshape(rows, columns)
            return made.astype(dtype, copy=False)
        self.config = config
        C, residual = (config.C, INIT_STD / math.sqrt(2 * config.L))
        self.wte = Embedding(drawn(config.V, C))
        self.wpe = Embedding(drawn(config.maxT, C))
        self.h = []
        for _ in range(config.L):
            attn = Attention(config, drawn(3 * C, C), drawn(C, C, residual))
            mlp = MLP(config, drawn(4 * C, C), drawn(C, 4 * C, residual))
            self.h.append(Block(config, attn, mlp, dtype))
        self.ln_f = LayerNorm(C, dtype)

    def __call__(self, ids):
        shape = np.shape(ids)
        if len(shape) != 2:
            raise ValueError('ids: ' + repr(shape))
        if shape[1] < 1 or shape[1] > self.config.maxT:
            raise ValueError('T: ' + repr(shape[1]) + ' of ' + repr(self.config.maxT))
        positions = np.arange(self.config.maxT)[:shape[1]]
        x = self.wte(ids) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        x = self.ln_f(x)
        return x @ ad.Transpose(-1, -2)(self.wte.weight)
