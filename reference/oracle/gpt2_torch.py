"""GPT-2 as PyTorch computes it, for tests/gpt2_torch.json: `python -m reference.oracle.gpt2_torch`.

Wants PyTorch, which nothing else here does; whoever changes this file runs it in an environment of
their own. Weights and ids come from numpy's legacy generator, so that the tests can draw the same.
"""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

L, NH, C, T, V, B = 2, 3, 12, 7, 19, 2
STEPS, LR, DECAY, MAX_NORM = 3, 0.01, 0.1, 0.5


def shapes() -> dict[str, tuple[int, ...]]:
    """Name → shape, weights of linear layers as (out, in)."""
    found: dict[str, tuple[int, ...]] = {"wte.weight": (V, C), "wpe.weight": (T, C)}
    linear = {"attn.c_attn": (3 * C, C), "attn.c_proj": (C, C)}
    linear |= {"mlp.c_fc": (4 * C, C), "mlp.c_proj": (C, 4 * C)}
    norms = [*(f"h.{i}.ln_{n}" for i in range(L) for n in (1, 2)), "ln_f"]
    for name in norms:
        found |= {f"{name}.weight": (C,), f"{name}.bias": (C,)}
    for i in range(L):
        for name, shape in linear.items():
            found |= {f"h.{i}.{name}.weight": shape, f"h.{i}.{name}.bias": shape[:1]}
    return found


def drawn() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Weights that are neither small nor zero, as if trained; and ids (B, T + 1)."""
    random = np.random.RandomState(7)
    weights = {name: 0.3 * random.standard_normal(shape) for name, shape in shapes().items()}
    return weights, random.randint(0, V, (B, T + 1))


def logits_of(w: dict[str, torch.Tensor], ids: torch.Tensor, NH: int = NH) -> torch.Tensor:
    """Logits (B, T, V) of ids (B, T), for weights of any size."""
    C = w["wte.weight"].shape[1]

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (C,), w[f"{name}.weight"], w[f"{name}.bias"])

    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.view(len(ids), -1, NH, C // NH).transpose(1, 2)

    x = w["wte.weight"][ids] + w["wpe.weight"][: ids.shape[1]]
    for i in range(sum(name.endswith("ln_1.bias") for name in w)):
        q, k, v = map(heads, linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        x = x + linear(y.reshape(x.shape), f"h.{i}.attn.c_proj")
        hidden = F.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(hidden, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def main() -> None:
    weights, drawn_ids = drawn()
    w = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    ids = torch.tensor(drawn_ids)

    def loss_of() -> tuple[torch.Tensor, torch.Tensor]:
        logits = logits_of(w, ids[:, :-1])
        return logits, F.cross_entropy(logits.reshape(-1, V), ids[:, 1:].reshape(-1))

    logits, loss = loss_of()
    loss.backward()
    random = np.random.RandomState(8)
    grads = {}
    for name, tensor in w.items():
        along = torch.tensor(random.standard_normal(tensor.shape))
        grads[name] = [float(tensor.grad.norm()), float((tensor.grad * along).sum())]
    groups = [
        {"params": [t for t in w.values() if t.ndim >= 2], "weight_decay": DECAY},
        {"params": [t for t in w.values() if t.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=LR)
    losses, norms = [], []
    for _ in range(STEPS):
        optimiser.zero_grad()
        _, loss = loss_of()
        loss.backward()
        norms.append(float(torch.nn.utils.get_total_norm([t.grad for t in w.values()])))
        for tensor in w.values():  # clip_grad_norm_ would divide by norm + 1e-6
            tensor.grad *= min(1.0, MAX_NORM / norms[-1])
        optimiser.step()
        losses.append(loss.item())
    assert all(map(math.isfinite, losses))
    torch.manual_seed(42)
    normal = torch.empty(40).normal_()  # 40: a tail that is drawn again
    document = {
        "origin": f"torch {torch.__version__}, float64: python -m reference.oracle.gpt2_torch",
        "logits": logits.reshape(-1).tolist(),
        "gradients: norm, and product with normals of RandomState(8)": grads,
        "losses before each step of AdamW": losses,
        "norms before clipping": norms,
        "normal_ of 40 after manual_seed(42)": normal.tolist(),
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
