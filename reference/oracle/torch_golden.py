"""Golden values that PyTorch computes: `python -m reference.oracle.torch_golden`.

Writes those files of assignments/*/golden whose float64 arrays are PyTorch's. Wants PyTorch, which
nothing else here does: whoever changes an input runs it in an environment of their own. What is no
float64 array, shapes and texts among it, is the oracle's, which agrees with the rest (to 1e-12,
`python -m staff.golden --check`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from samples import SAMPLES, SUMMED, Draw, Units, along, inputs, samples
from tiny import INITIAL, STEPPED, TINY, Tiny, projected

from autograder import rubric
from autograder.files import write_whole
from reference.oracle import a2_optim_py
from reference.oracle.a0 import Case, Values
from reference.oracle.a1_autograd_py import Array
from reference.oracle.a1_model_py import initial
from reference.oracle.gpt2_torch import logits_of
from staff import golden

T = torch.Tensor


def dropout(x: T, p: float, rng: Units) -> T:
    dropped = torch.tensor(rng.numbers).reshape(x.shape) < p
    return torch.where(dropped, 0.0, x / (1 - p))


def reduction(call: Callable[..., T]) -> Callable[..., T]:
    return lambda x, axis=None, keepdims=False: call(x, dim=axis, keepdim=keepdims)


def layer_norm(x: T, weight: T, bias: T, eps: float = 1e-5) -> T:
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def attention(q: T, k: T, v: T) -> T:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def cross_entropy(logits: T, targets: T, ignore_index: int = -100) -> T:
    flat = logits.reshape(-1, logits.shape[-1])
    return F.cross_entropy(flat, targets.reshape(-1).long(), ignore_index=ignore_index)


FUNCTIONS: dict[str, Callable[..., T]] = {
    "add": torch.add,
    "mul": torch.mul,
    "exp": torch.exp,
    "log": torch.log,
    "tanh": torch.tanh,
    "relu": F.relu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "dropout": dropout,
    "sum": reduction(torch.sum),
    "mean": reduction(torch.mean),
    "reshape": lambda x, *shape: x.reshape(shape),
    "transpose": torch.transpose,
    "slice": lambda x, axis, start, stop: x.narrow(axis, start, stop - start),
    "matmul": torch.matmul,
    "embedding": lambda weight, ids: F.embedding(ids.long(), weight),
    "softmax": lambda x: F.softmax(x, dim=-1),
    "layernorm": layer_norm,
    "attention": attention,
    "cross_entropy": cross_entropy,
    "mse": F.mse_loss,
    "bce_with_logits": F.binary_cross_entropy_with_logits,
}


def of_operation(operation: str, seed: int) -> tuple[Values, Values]:
    """What A1's case of it reports, and A2's."""
    forward: Values = {}
    backward: Values = {}
    for sample in samples(operation, seed):
        tensors = [torch.tensor(array, requires_grad=True) for array in sample.arrays]
        value = FUNCTIONS[operation](*tensors, *map(as_tensor, sample.options("float64")))
        result = value.detach().numpy()
        forward[f"{sample.name}_f64"] = result
        value.backward(torch.tensor(along(seed, result)))
        for name, tensor in zip(inputs(operation), tensors, strict=True):
            assert tensor.grad is not None
            backward[f"{sample.name}_by_{name}_f64"] = tensor.grad.numpy()
    return forward, backward


def as_tensor(option: object) -> object:
    return torch.from_numpy(option.copy()) if isinstance(option, np.ndarray) else option


def gpt2(seed: int) -> Values:
    values: Values = {}
    for tiny in TINY:
        weights = {name: torch.tensor(array) for name, array in tiny.weights(seed).items()}
        ids = torch.tensor(tiny.batch(seed)[0])
        values[f"{tiny.name}_f64"] = logits_of(weights, ids, tiny.NH).numpy()
    return values


def key(seed: int) -> Values:
    drawn = {name: torch.tensor(array) for name, array in initial(INITIAL, seed).items()}
    ids, targets = map(torch.tensor, INITIAL.batch(seed))
    logits = logits_of(drawn, ids, INITIAL.NH)
    loss = cross_entropy(logits, targets)
    return {"initial_logits_f64": logits.numpy(), "initial_loss_f64": loss.numpy()}


def unbroadcast(seed: int) -> Values:
    draw = Draw(seed, 0)
    return {
        f"{name}_f64": torch.tensor(draw(*shape)).sum_to_size(wanted).numpy()
        for name, shape, wanted in SUMMED
    }


def gradients(seed: int) -> Values:
    values: Values = {}
    for tiny in TINY:
        weights, loss = trained(tiny, seed)
        loss().backward()
        grads = {name: tensor.grad.numpy() for name, tensor in weights.items()}
        values[f"{tiny.name}_f64"] = projected(grads, tiny.directions(seed))
    return values


def trained(tiny: Tiny, seed: int) -> tuple[dict[str, T], Callable[[], T]]:
    """Weights that want gradients, and the loss of the batch with them."""
    weights = {n: torch.tensor(w, requires_grad=True) for n, w in tiny.weights(seed).items()}
    ids, targets = map(torch.tensor, tiny.batch(seed))
    return weights, lambda: cross_entropy(logits_of(weights, ids, tiny.NH), targets)


def sgd(seed: int) -> Values:
    values: Values = {}
    for name, momentum in (("plain", 0.0), ("momentum", 0.75)):
        data, given = a2_optim_py.given(seed, 2)
        made = [torch.tensor(array, requires_grad=True) for array in data]
        optimiser = torch.optim.SGD(made, lr=1.0, momentum=momentum)
        values |= walk(name, made, optimiser, given)
    return values


def walk(
    name: str, made: list[T], optimiser: torch.optim.Optimizer, steps: list[list[Array]]
) -> Values:
    values: Values = {}
    for i, (rate, grads) in enumerate(zip(a2_optim_py.RATES, steps, strict=True)):
        for group in optimiser.param_groups:
            group["lr"] = rate
        for parameter, grad in zip(made, grads, strict=True):
            parameter.grad = torch.tensor(grad)
        if i == a2_optim_py.MISSING:
            made[0].grad = None
        optimiser.step()
        for which, parameter in zip(a2_optim_py.NAMES, made, strict=False):
            after = parameter.detach().numpy().copy()
            values[f"{name}_{which}_after_step_{i + 1}_f64"] = after
    return values


def clip(seed: int) -> Values:
    """Norms alone: PyTorch's factor has max_norm / (norm + 1e-6)."""
    values: Values = {}
    for name, scale in (("above", 1.0), ("below", 2.0**-8), ("large", 2.0**100)):
        draw = Draw(seed, 0)
        grads = [torch.tensor(scale * array) for array in (draw(2, 3), draw(3), draw())]
        values[f"{name}_norm_f64"] = torch.nn.utils.get_total_norm(grads).numpy()
    return values


def steps(seed: int) -> Values:
    weights, loss = trained(STEPPED, seed)
    groups = [
        {"params": [t for t in weights.values() if t.ndim >= 2]},
        {"params": [t for t in weights.values() if t.ndim < 2], "weight_decay": 0.0},
    ]
    own = {"lr": a2_optim_py.LR, "weight_decay": a2_optim_py.DECAY, "eps": a2_optim_py.LARGE_EPS}
    optimiser = torch.optim.AdamW(groups, **own)
    losses, norms = [], []
    for _ in range(3):
        optimiser.zero_grad()
        now = loss()
        now.backward()
        losses.append(now.item())
        norms.append(torch.nn.utils.get_total_norm([t.grad for t in weights.values()]).item())
        for tensor in weights.values():
            tensor.grad *= min(1.0, a2_optim_py.MAX_NORM / norms[-1])
        optimiser.step()
    after = {name: tensor.detach().numpy() for name, tensor in weights.items()}
    return {
        "steps_losses_f64": np.array(losses),
        "steps_norms_f64": np.array(norms),
        "steps_weights_f64": projected(after, STEPPED.directions(seed)),
    }


# Assignment → probe → case → what PyTorch says of it.
MEASURED: dict[str, dict[str, dict[str, Case]]] = {
    "A1": {
        "autograd_py": {name: lambda s, n=name: of_operation(n, s)[0] for name in SAMPLES},
        "model_py": {"gpt2": gpt2, "key": key},
    },
    "A2": {
        "autograd_py": {
            "unbroadcast": unbroadcast,
            **{f"{name}_backward": lambda s, n=name: of_operation(n, s)[1] for name in SAMPLES},
            "gradients": gradients,
        },
        "optim_py": {"sgd": sgd, "clip": clip, "steps": steps},
    },
}


def main() -> None:
    for assignment, probes in MEASURED.items():
        loaded, oracle = rubric.load(assignment), golden.oracle(assignment)
        for probe, cases in probes.items():
            ours = {
                case: (f"PyTorch, float64 (agrees with: {origin})", both(compute, cases[case]))
                if case in cases
                else (origin, compute)
                for case, (origin, compute) in oracle[probe].items()
            }
            command = "python -m reference.oracle.torch_golden"
            content = golden.content(
                probe, ours, loaded.seed, command=command, torch=torch.__version__
            )
            write_whole(loaded.folder / "golden" / f"{probe}.json", content)


def both(oracle: Case, measured: Case) -> Case:
    """The oracle's values, with PyTorch's in the place of those that PyTorch computed."""

    def compute(seed: int) -> Values:
        theirs = {name: np.asarray(value).ravel() for name, value in measured(seed).items()}
        ours = oracle(seed)
        assert theirs.keys() <= ours.keys(), theirs.keys() - ours.keys()
        return ours | theirs

    return compute


if __name__ == "__main__":
    main()
