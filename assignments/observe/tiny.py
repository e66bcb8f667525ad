"""Tiny GPT-2s with weights as if trained, and batches for them: what rows compute on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from samples import Array, Draw

LINEAR = {"attn.c_attn": (3, 1), "attn.c_proj": (1, 1), "mlp.c_fc": (4, 1), "mlp.c_proj": (1, 4)}


@dataclass(frozen=True)
class Tiny:
    """Sizes of a model, as llmc/model.py calls them, and of a batch; `text` says it to people."""

    name: str
    maxT: int
    V: int
    L: int
    NH: int
    C: int
    B: int
    T: int

    @property
    def sizes(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("maxT", "V", "L", "NH", "C")}

    @property
    def text(self) -> str:
        return f"L {self.L}, NH {self.NH}, C {self.C}, V {self.V}, B {self.B}, T {self.T}"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of each parameter, in the order of the model file."""
        C = self.C
        layer = {"ln_1.weight": (C,), "ln_1.bias": (C,)}
        for name, (rows, columns) in LINEAR.items():
            if name == "mlp.c_fc":
                layer |= {"ln_2.weight": (C,), "ln_2.bias": (C,)}
            layer |= {f"{name}.weight": (rows * C, columns * C), f"{name}.bias": (rows * C,)}
        found = {"wte.weight": (self.V, C), "wpe.weight": (self.maxT, C)}
        found |= {f"h.{i}.{n}": shape for n, shape in layer.items() for i in range(self.L)}
        return found | {"ln_f.weight": (C,), "ln_f.bias": (C,)}

    def weights(self, seed: int) -> dict[str, Array]:
        """Float64 that float32 holds exactly: norms near 1, the rest within ±1/2."""
        draw = Draw(seed, 100_000)
        found = {name: draw(*shape, scale=1) for name, shape in self.shapes.items()}
        return {
            n: w + 1 if ".ln_" in f".{n}" and n.endswith("weight") else w for n, w in found.items()
        }

    def batch(self, seed: int) -> tuple[Array, Array]:
        """Ids x and targets y, both (B, T)."""
        ids = Draw(seed, 200_000).ids(self.V, self.B, self.T + 1)
        ids[-1, -1] = self.V - 1
        return ids[:, :-1], ids[:, 1:]

    def directions(self, seed: int) -> dict[str, Array]:
        """For each parameter two arrays of its shape, to look at its gradient along."""
        draw = Draw(seed, 300_000)
        return {name: draw(2, *shape) for name, shape in self.shapes.items()}


TINY = (
    Tiny("plain", maxT=7, V=19, L=2, NH=3, C=12, B=2, T=7),
    Tiny("edge_short", maxT=9, V=131, L=1, NH=2, C=6, B=3, T=4),
    Tiny("edge_one", maxT=4, V=7, L=1, NH=1, C=5, B=1, T=1),
)
EXAMS = (  # C's: T below maxT, V a multiple of 128 or not, one head, one position
    *TINY,
    Tiny("heads", maxT=5, V=128, L=3, NH=4, C=8, B=2, T=5),
    Tiny("odd", maxT=6, V=129, L=1, NH=3, C=9, B=1, T=5),
    Tiny("row", maxT=16, V=5, L=2, NH=1, C=8, B=1, T=16),
)
FRESH = Tiny("fresh", maxT=5, V=7, L=2, NH=2, C=4, B=1, T=5)  # drawn as GPT-2 is, in C
STEPPED = Tiny("steps", maxT=4, V=5, L=1, NH=2, C=4, B=2, T=4)  # trained for three steps
INITIAL = Tiny("initial", maxT=8, V=131, L=2, NH=2, C=8, B=2, T=6)  # drawn as GPT-2 is
PARTS = (  # for one block or a part of it
    Tiny("plain", maxT=4, V=4, L=1, NH=2, C=6, B=2, T=4),
    Tiny("edge_heads", maxT=4, V=4, L=1, NH=3, C=9, B=1, T=3),
    Tiny("edge_one", maxT=4, V=4, L=1, NH=1, C=5, B=3, T=2),
    Tiny("edge_T_1", maxT=4, V=4, L=1, NH=4, C=4, B=2, T=1),
)
LAYERS = (  # name, x's shape, outputs
    ("plain", (2, 3), 4),
    ("plain_batch", (2, 5, 3), 4),
    ("plain_square", (2, 4), 4),
    ("edge_one", (1, 1), 1),
    ("edge_row", (1, 1, 4), 1),
    ("edge_four", (2, 1, 3, 2), 5),
)


def assembled(module: Any, tiny: Tiny, weights: dict[str, Array], dtype: Any) -> Any:
    """A GPT2 of `module`, llmc/model.py, with these weights. It is put together by hand, so that
    the row does not wait for the code that draws weights."""
    made = {name: weight.astype(dtype) for name, weight in weights.items()}
    config = module.Config(**tiny.sizes)
    model = module.GPT2.__new__(module.GPT2)
    model.config = config
    model.wte = module.Embedding(made["wte.weight"])
    model.wpe = module.Embedding(made["wpe.weight"])
    model.h = []
    for i in range(tiny.L):
        qkv, proj, fc, fcproj = (made[f"h.{i}.{name}.weight"] for name in LINEAR)
        attn, mlp = module.Attention(config, qkv, proj), module.MLP(config, fc, fcproj)
        model.h.append(module.Block(config, attn, mlp, dtype))
    model.ln_f = module.LayerNorm(tiny.C, dtype)
    for name, parameter in model.named_parameters().items():
        parameter.data = made[name]
    return model


def projected(gradients: dict[str, Array], directions: dict[str, Array]) -> Array:
    """(parameters, 2) float64: each gradient along its two directions."""
    return np.array(
        [
            [np.sum(gradients[n].astype(np.float64) * one) for one in both]
            for n, both in directions.items()
        ]
    )
