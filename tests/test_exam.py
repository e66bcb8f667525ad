"""The files that C takes its exam from, read back by a reader of their own."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from autograder.rubric import ROOT
from reference.llmc import autograd as ad
from reference.llmc import exam
from reference.llmc.model import GPT2, Config

CONFIG = Config(maxT=6, V=130, L=2, NH=2, C=8)
L, C, Vp = CONFIG.L, CONFIG.C, 256
SIZES = {  # of each tensor of `Parameters` in llmc/model.h
    "wte": Vp * C, "wpe": CONFIG.maxT * C, "ln1w": L * C, "ln1b": L * C, "qkvw": L * 3 * C * C,
    "qkvb": L * 3 * C, "attprojw": L * C * C, "attprojb": L * C, "ln2w": L * C, "ln2b": L * C,
    "fcw": L * 4 * C * C, "fcb": L * 4 * C, "fcprojw": L * C * 4 * C, "fcprojb": L * C,
    "lnfw": C, "lnfb": C,
}  # fmt: skip
NAMES = {
    "ln1": "ln_1", "qkv": "attn.c_attn", "attproj": "attn.c_proj", "ln2": "ln_2", "fc": "mlp.c_fc",
    "fcproj": "mlp.c_proj",
}  # fmt: skip


def tensors(raw: bytes) -> dict[str, np.ndarray]:
    """Of the bytes behind the header, in the order in which C's struct has them."""
    text = (ROOT / "reference" / "llmc" / "model.h").read_text()
    struct_of = text[: text.index("} Parameters;")].rpartition("typedef struct {")[2]
    order = re.findall(r"float \*(\w+);", struct_of)
    assert set(order) == set(SIZES)
    floats, found, at = np.frombuffer(raw, "<f4"), {}, 0
    for name in order:
        found[name] = floats[at : at + SIZES[name]]
        at += SIZES[name]
    assert at == floats.size
    return found


def same_as(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> bool:
    """Whether a tensor of each kind is what the parameters of that name are, layer by layer."""
    pairs = [("wpe", ["wpe.weight"]), ("lnfw", ["ln_f.weight"]), ("lnfb", ["ln_f.bias"])]
    for short, long in NAMES.items():
        for letter, which in (("w", "weight"), ("b", "bias")):
            pairs.append((short + letter, [f"h.{i}.{long}.{which}" for i in range(L)]))
    wte = found["wte"].reshape(Vp, C)
    return (
        np.array_equal(wte[: CONFIG.V], wanted["wte.weight"])
        and not wte[CONFIG.V :].any()
        and all(
            np.array_equal(found[name], np.concatenate([wanted[n].reshape(-1) for n in names]))
            for name, names in pairs
        )
    )


@pytest.fixture
def network() -> GPT2:
    made = GPT2(CONFIG)
    random = np.random.RandomState(3)
    made.load_state_dict({n: random.standard_normal(a.shape) for n, a in made.state_dict().items()})
    return made


def test_the_model_file_has_every_tensor_in_cs_order(network: GPT2, tmp_path: Path) -> None:
    exam.write_model(tmp_path / "m.bin", network)
    raw = (tmp_path / "m.bin").read_bytes()
    head = struct.unpack("<256i", raw[:1024])
    assert head == (20240326, 3, 6, 130, 2, 2, 8, 256, *[0] * 248)
    assert same_as(tensors(raw[1024:]), network.state_dict())


def test_the_state_file_has_batch_logits_loss_and_gradients(network: GPT2, tmp_path: Path) -> None:
    ids = np.random.RandomState(4).randint(0, CONFIG.V, (3, 6))
    x, y = ids[:, :-1], ids[:, 1:]
    logits = network(x)
    with pytest.raises(ValueError, match=r"wte\.weight has no gradient"):
        exam.write_state(tmp_path / "s.bin", network, x, y, logits.data, 0.0)
    loss = ad.CrossEntropy(y)(logits)
    loss.backward()
    exam.write_state(tmp_path / "s.bin", network, x, y, logits.data, float(loss.data))
    raw = (tmp_path / "s.bin").read_bytes()
    assert struct.unpack("<256i", raw[:1024]) == (20240327, 2, 3, 5, *[0] * 252)
    words = np.frombuffer(raw[1024:], "<i4")
    assert np.array_equal(words[:15], x.reshape(-1))
    assert np.array_equal(words[15:30], y.reshape(-1))
    floats = np.frombuffer(raw[1024 + 4 * 30 :], "<f4")
    count = 15 * CONFIG.V
    assert np.array_equal(floats[:count], logits.data.reshape(-1))
    assert floats[count] == loss.data
    grads = {n: t.grad for n, t in network.named_parameters().items() if t.grad is not None}
    assert same_as(tensors(floats[count + 1 :].tobytes()), grads)


def test_float64_is_rounded_to_float32(tmp_path: Path) -> None:
    for dtype in (np.float32, np.float64):
        exam.write_model(tmp_path / f"{np.dtype(dtype)}.bin", GPT2(CONFIG, dtype))
    assert (tmp_path / "float32.bin").read_bytes() == (tmp_path / "float64.bin").read_bytes()


@pytest.mark.parametrize(
    ("V", "Vp"), [(1, 128), (127, 128), (128, 128), (129, 256), (50257, 50304)]
)
def test_wte_has_a_multiple_of_128_rows(V: int, Vp: int) -> None:
    assert exam.padded(V) == Vp
