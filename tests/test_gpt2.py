"""GPT-2, its optimisers and its initialisation: against PyTorch's record, and by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from autograder.rubric import ROOT
from reference.llmc import autograd as ad
from reference.llmc import model, optim
from reference.llmc.autograd import Array, Tensor
from reference.llmc.model import GPT2, Config
from reference.llmc.rand import PCG32

TORCH = json.loads((ROOT / "tests" / "gpt2_torch.json").read_text())
GRADIENTS = TORCH["gradients: norm, and product with normals of RandomState(8)"]
CONFIG = Config(maxT=7, V=19, L=2, NH=3, C=12)
BOUND = 1e-12  # float64 on both sides; sums of a few hundred terms in another order


def trained() -> tuple[GPT2, Array]:
    """The weights and ids that reference/oracle/gpt2_torch.py drew, in the same order."""
    random = np.random.RandomState(7)
    network = GPT2(CONFIG, dtype=np.float64)
    shapes = {name: tensor.shape for name, tensor in network.named_parameters().items()}
    assert shapes.keys() == GRADIENTS.keys()
    network.load_state_dict(
        {name: 0.3 * random.standard_normal(shapes[name]) for name in GRADIENTS}
    )
    return network, random.randint(0, CONFIG.V, (2, CONFIG.maxT + 1))


def loss_of(network: GPT2, ids: Array) -> Tensor:
    return ad.CrossEntropy(ids[:, 1:])(network(ids[:, :-1]))


def test_logits_are_pytorchs() -> None:
    network, ids = trained()
    got, wanted = network(ids[:, :-1]).data.reshape(-1), np.array(TORCH["logits"])
    assert np.linalg.norm(got - wanted) <= BOUND * np.linalg.norm(wanted)


def test_gradients_are_pytorchs() -> None:
    network, ids = trained()
    loss_of(network, ids).backward()
    random = np.random.RandomState(8)
    parameters = network.named_parameters()
    for name, (norm, product) in GRADIENTS.items():
        grad = parameters[name].grad
        assert grad is not None
        along = random.standard_normal(grad.shape)
        assert abs(np.linalg.norm(grad) - norm) <= BOUND * norm, name
        assert abs((grad * along).sum() - product) <= BOUND * norm * np.linalg.norm(along), name


def test_clipped_steps_of_adamw_are_pytorchs() -> None:
    network, ids = trained()
    optimiser = optim.AdamW(optim.decay_groups(network.parameters(), 0.1), lr=0.01)
    losses, norms = [], []
    for _ in TORCH["losses before each step of AdamW"]:
        network.zero_grad()
        loss = loss_of(network, ids)
        loss.backward()
        losses.append(float(loss.data))
        norms.append(optim.clip_grad_norm_(network.parameters(), 0.5))
        optimiser.step()
    assert np.allclose(losses, TORCH["losses before each step of AdamW"], rtol=1e-10, atol=0)
    assert np.allclose(norms, TORCH["norms before clipping"], rtol=1e-10, atol=0)


# ---------------------------------------------------------------- modules


def test_the_head_is_wte_and_is_listed_once() -> None:
    names = list(GPT2(CONFIG).named_parameters())
    block = ["ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"]
    inside = [f"h.{i}.{name}" for i in range(2) for name in block]
    both = [f"{name}.{which}" for name in inside for which in ("weight", "bias")]
    assert names == ["wte.weight", "wpe.weight", *both, "ln_f.weight", "ln_f.bias"]


def test_a_parameter_in_two_places_is_listed_once() -> None:
    class Tied(model.Module):
        def __init__(self) -> None:
            self.first = model.Embedding(np.ones((2, 3)))
            self.second = model.Module()
            self.second.weight = self.first.weight  # type: ignore[attr-defined]

    assert list(Tied().named_parameters()) == ["first.weight"]


def test_train_and_eval_reach_every_module() -> None:
    class Inner(model.Module):
        def __init__(self) -> None:
            self.drop = [model.Dropout(0.5, PCG32(1))]

    class Outer(model.Module):
        def __init__(self) -> None:
            self.inner = Inner()

    outer, x = Outer(), Tensor(np.ones(100))
    assert (outer.inner.drop[0](x).data == 0).any()
    outer.eval()
    assert not any(module.training for _, module in outer.modules())
    assert outer.inner.drop[0](x) is x
    outer.train()
    assert all(module.training for _, module in outer.modules())


def test_a_state_is_a_copy_and_is_taken_whole_or_not_at_all() -> None:
    network = GPT2(CONFIG)
    state = network.state_dict()
    state["ln_f.bias"] += 1
    assert not network.ln_f.bias.data.any()
    network.load_state_dict(state)
    state["ln_f.bias"] += 1
    assert network.ln_f.bias.data.tolist() == [1.0] * 12
    before = network.state_dict()
    with pytest.raises(ValueError, match=r"wte.weight: shape \(18, 12\), want \(19, 12\)"):
        network.load_state_dict(
            state | {"wte.weight": np.zeros((18, 12)), "wpe.weight": state["wpe.weight"] * 2}
        )
    with pytest.raises(ValueError, match="lm_head is not a parameter, one of 1"):
        network.load_state_dict(state | {"lm_head": np.zeros(1)})
    with pytest.raises(ValueError, match=r"ln_f\.weight is missing, one of 1"):
        network.load_state_dict({n: a for n, a in state.items() if n != "ln_f.weight"})
    with pytest.raises(ValueError, match="could not convert"):
        network.load_state_dict(
            {n: a * 2 for n, a in state.items()} | {"ln_f.bias": np.array(["x"] * 12)}
        )
    network.load_state_dict({n: a.astype(np.float64) for n, a in before.items()})
    assert network.wte.weight.dtype == np.float32
    assert all(np.array_equal(value, before[name]) for name, value in network.state_dict().items())


def test_gpt2_refuses_what_it_has_no_row_for() -> None:
    network = GPT2(CONFIG)
    for shape in ((1, 8), (1, 0), (3,), (1, 2, 3)):
        with pytest.raises(ValueError, match=r"ids \(.*\), want \(B, T\) with T in 1\.\.7"):
            network(np.zeros(shape, np.int64))
    with pytest.raises(IndexError, match=r"id 19 is outside 0\.\.18"):
        network(np.full((1, 3), 19))
    assert network(np.zeros((1, 1), np.int64)).shape == (1, 1, 19)
    for sizes in ({"NH": 5}, {"NH": 0}, {"V": 0}, {"L": -1}):
        with pytest.raises(ValueError, match="NH divides C"):
            Config(**({"C": 12, "NH": 3} | sizes))
    with pytest.raises(ValueError, match="matrices of 16 numbers or more"):
        Config(maxT=3, NH=1, C=5)


def test_the_published_sizes_have_the_published_numbers_of_parameters() -> None:
    for name, published in (("d12", 124_439_808), ("d24", 354_823_168)):
        c = model.CONFIGS[name]
        block = 12 * c.C**2 + 13 * c.C  # 3 + 1 + 4 + 4 matrices, biases, two norms
        assert (c.V + c.maxT) * c.C + c.L * block + 2 * c.C == published
        assert c.C == 64 * c.NH


def test_an_activation_that_a_module_keeps_is_no_parameter() -> None:
    class Keeps(model.Module):
        def __init__(self) -> None:
            self.inner = model.Embedding(np.ones((2, 3)))

        def __call__(self, ids: Array) -> Tensor:
            self.last = self.inner(ids)
            return self.last

    keeps = Keeps()
    keeps(np.array([1]))
    assert list(keeps.named_parameters()) == ["inner.weight"]


# ---------------------------------------------------------------- initialisation


def normals_by_hand(words: list[int], std: float) -> list[np.float32]:
    """rand.h's normal_fill_16 on 16 words, in Python's float64."""
    units = [(word & 0xFFFFFF) / 2**24 for word in words]
    made = [0.0] * 16
    for t in range(8):
        radius, angle = math.sqrt(-2 * math.log(1 - units[t])), 2 * math.pi * units[t + 8]
        made[t], made[t + 8] = radius * math.cos(angle), radius * math.sin(angle)
    return [np.float32(std * number) for number in made]


def test_weights_are_drawn_in_the_order_of_the_contract() -> None:
    config = Config(maxT=5, V=7, L=2, NH=1, C=4)  # 28, 20, 48, 16, 64, 64 numbers
    parameters = GPT2(config).named_parameters()
    words = np.random.RandomState(42)
    order = ["wte.weight", "wpe.weight"]
    linear = ["attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"]
    order += [f"h.{i}.{name}.weight" for i in range(2) for name in linear]
    for name in order:
        std = 0.02 / math.sqrt(2 * 2) if name.endswith("c_proj.weight") else 0.02
        got = parameters[name].data.reshape(-1)
        drawn = words.randint(0, 2**32, got.size, np.uint32).tolist()
        whole = got.size - got.size % 16
        wanted = [n for i in range(0, whole, 16) for n in normals_by_hand(drawn[i : i + 16], std)]
        if whole < got.size:
            again = normals_by_hand(words.randint(0, 2**32, 16, np.uint32).tolist(), std)
            wanted = [*wanted[: got.size - 16], *again]
        ulps = np.abs(got - np.array(wanted, np.float32)) / np.spacing(np.abs(got))
        assert got.dtype == np.float32
        assert ulps.max() <= 1, name  # cos and sin of numpy and of libm
    for name, tensor in parameters.items():
        if name not in order:
            assert (tensor.data == (1 if "ln_" in name and "weight" in name else 0)).all()


def test_normals_are_pytorchs() -> None:
    wanted = np.array(TORCH["normal_ of 40 after manual_seed(42)"])
    got = model.normals(40, 1.0, np.random.RandomState(42))
    assert np.abs(got - wanted).max() <= 2e-6  # PyTorch computes them in float32


def test_a_uniform_of_0_makes_a_number() -> None:
    class Zeros:
        def randint(self, low: int, high: int, size: int, dtype: object) -> Array:
            return np.zeros(size, np.uint32)

    made = model.normals(16, 0.02, Zeros())  # type: ignore[arg-type]
    assert made.tolist() == [0.0] * 16
    with pytest.raises(ValueError, match="15 numbers, want 16 or more"):
        model.normals(15, 0.02, Zeros())  # type: ignore[arg-type]


# ---------------------------------------------------------------- optimisers


def with_grad(data: list[float], grad: list[float]) -> Tensor:
    tensor = Tensor(data, requires_grad=True)
    tensor.grad = np.array(grad)
    return tensor


def test_sgd_keeps_its_velocity() -> None:
    x = with_grad([1.0], [2.0])
    still = Tensor([5.0], requires_grad=True)
    sgd = optim.SGD([x, still], lr=0.1, momentum=0.5)
    sgd.step()
    assert x.data.tolist() == [0.8]
    sgd.step()  # v = 0.5 * 2 + 2
    assert np.allclose(x.data, [0.5], rtol=1e-15)
    assert still.data.tolist() == [5.0]


def test_steps_make_new_arrays_of_the_same_dtype_whatever_lr_is() -> None:
    lr = 0.1 * np.cos(0.3)  # a float64, as schedules give
    for make in (
        lambda p: optim.SGD([p], lr, np.float64(0.9)),
        lambda p: optim.AdamW([optim.Group([p], np.float64(0.1))], lr, (np.float64(0.9), 0.99)),
    ):
        for shape in ((3,), ()):
            parameter = Tensor(np.ones(shape, np.float32), requires_grad=True)
            parameter.grad = np.ones(shape, np.float32)
            before = parameter.data
            make(parameter).step()
            assert (parameter.dtype, parameter.shape) == (np.float32, shape)
            assert (before == 1).all()
            assert (parameter.data < 1).all()


def test_adamws_first_step_is_lr_whatever_the_gradient() -> None:
    x, still = with_grad([1.0, 1.0], [1e-3, -1e3]), Tensor([5.0], requires_grad=True)
    optim.AdamW([optim.Group([x, still], 0.5)], lr=0.1, eps=1e-12).step()
    assert np.allclose(x.data, [1 - 0.1 - 0.05, 1 + 0.1 - 0.05], rtol=1e-8)
    assert still.data.tolist() == [5.0]


def test_only_matrices_decay() -> None:
    matrix, vector = Tensor(np.ones((2, 2))), Tensor(np.ones(2))
    first, second = optim.decay_groups([vector, matrix], 0.1)
    assert (first.parameters, first.weight_decay) == ([matrix], 0.1)
    assert (second.parameters, second.weight_decay) == ([vector], 0.0)


def test_one_norm_over_all_gradients_is_reported_before_clipping() -> None:
    a, b, still = with_grad([0.0], [3.0]), with_grad([0.0, 0.0], [0.0, 4.0]), Tensor([1.0])
    assert optim.clip_grad_norm_([a, b, still], 1.0) == 5.0
    assert a.grad is not None
    assert b.grad is not None
    assert np.allclose([*a.grad, *b.grad], [0.6, 0.0, 0.8], rtol=1e-15)
    assert math.isclose(optim.clip_grad_norm_([a, b], 2.0), 1.0, rel_tol=1e-15)
    assert np.allclose([*a.grad, *b.grad], [0.6, 0.0, 0.8], rtol=1e-15), "not made larger"
    with pytest.raises(ValueError, match="max_norm is 0"):
        optim.clip_grad_norm_([a], 0)
    for bad in (math.inf, math.nan):
        a.grad = np.array([bad])
        assert not math.isfinite(optim.clip_grad_norm_([a, b], 1.0))
        assert np.allclose(b.grad, [0.0, 0.8], rtol=1e-15), "left alone"


def test_a_norm_beyond_float32_is_none_the_less_finite() -> None:
    a = Tensor(np.zeros(2, np.float32), requires_grad=True)
    a.grad = np.full(2, 1e30, np.float32)
    assert math.isclose(optim.clip_grad_norm_([a], 1.0), math.sqrt(2) * 1e30, rel_tol=1e-6)
    assert np.allclose(a.grad, math.sqrt(0.5), rtol=1e-6)


def test_the_average_is_debiased() -> None:
    average = optim.EMA(0.9)
    with pytest.raises(ValueError, match="no number yet"):
        average.value_debiased()
    average.update(1.0)
    assert math.isclose(average.value_debiased(), 1.0)
    average.update(0.145)
    assert math.isclose(average.value_debiased(), 0.55)
    with pytest.raises(ValueError, match=r"beta is 1, not within \[0, 1\)"):
        optim.EMA(1)
