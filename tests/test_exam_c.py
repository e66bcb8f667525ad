"""The exam: C against Python's float64 and float32, on models fresh and as if trained."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from autograder.rubric import ROOT
from reference.llmc import autograd as ad
from reference.llmc import exam, optim
from reference.llmc.model import GPT2, Config

SHAPES = {  # sizes, B, T
    "whole rows": (Config(maxT=8, V=128, L=2, NH=2, C=8), 2, 8),
    "T below maxT": (Config(maxT=12, V=130, L=2, NH=2, C=8), 3, 5),
    "one head": (Config(maxT=6, V=31, L=1, NH=1, C=6), 2, 6),
    "one token": (Config(maxT=4, V=40, L=2, NH=2, C=8), 1, 1),
    "odd": (Config(maxT=7, V=257, L=3, NH=3, C=9), 1, 7),
    "wide": (Config(maxT=16, V=300, L=2, NH=4, C=64), 2, 16),
}
BOUND, STEPS_BOUND = 2e-5, 1e-4
LR, DECAY = 1e-3, 0.1


@pytest.fixture(scope="module")
def test_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The program, with the reference's headers."""
    folder = tmp_path_factory.mktemp("exam")
    for name in ("dev", "reference"):
        shutil.copytree(ROOT / name, folder / name)
    command = ["make", "-s", "LLMC=../../reference", "test_gpt2"]
    made = subprocess.run(command, cwd=folder / "dev" / "test", capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    yield folder / "dev" / "test" / "test_gpt2"


def model_of(shape: str, kind: str, dtype: str) -> tuple[GPT2, np.ndarray, np.ndarray]:
    """A model and a batch. As if trained: eight times the initial weights, and biases."""
    config, B, T = SHAPES[shape]
    model, random = GPT2(config, dtype), np.random.RandomState(3)
    for name, tensor in model.named_parameters().items():
        if kind == "trained":
            spread = 0.2 * random.standard_normal(tensor.shape).astype(np.float32)
            tensor.data = 8 * tensor.data if ".ln" not in name else tensor.data
            tensor.data = (tensor.data + spread if tensor.data.ndim == 1 else tensor.data) * 1
            tensor.data = tensor.data.astype(np.float32).astype(dtype)
    ids = random.randint(0, config.V, (B, T + 1))
    return model, ids[:, :-1], ids[:, 1:]


def write(folder: Path, shape: str, kind: str) -> tuple[str, str]:
    """The exam, from float64."""
    model, x, y = model_of(shape, kind, "float64")
    logits = model(x)
    loss = ad.CrossEntropy(y)(logits)
    loss.backward()
    exam.write_model(folder / "model.bin", model)
    exam.write_state(folder / "state.bin", model, x, y, logits.data, float(loss.data))
    return str(folder / "model.bin"), str(folder / "state.bin")


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


KINDS = pytest.mark.parametrize("kind", ["fresh", "trained"])


@KINDS
@pytest.mark.parametrize("shape", SHAPES)
def test_c_passes(test_gpt2: Path, tmp_path: Path, shape: str, kind: str) -> None:
    seen = run(test_gpt2, *write(tmp_path, shape, kind))
    assert seen.returncode == 0, seen.stdout
    verdicts = [line.split()[0] for line in seen.stdout.splitlines()]
    assert verdicts == ["ok"] * 18 + ["passed"]


@KINDS
@pytest.mark.parametrize("shape", SHAPES)
def test_float32_agrees_with_float64(shape: str, kind: str) -> None:
    found = []
    for dtype in ("float32", "float64"):
        model, x, y = model_of(shape, kind, dtype)
        logits = model(x)
        ad.CrossEntropy(y)(logits).backward()
        grads = {name: tensor.grad for name, tensor in model.named_parameters().items()}
        found.append({"logits": logits.data, **grads})
    for name, want in found[1].items():
        assert np.linalg.norm(found[0][name] - want) <= BOUND * max(np.linalg.norm(want), 1e-7), (
            name
        )


@pytest.mark.parametrize("shape", ["T below maxT", "one head", "wide"])
def test_ten_steps_agree(test_gpt2: Path, tmp_path: Path, shape: str) -> None:
    files = write(tmp_path, shape, "trained")
    words = ("--steps", "10", "--lr", str(LR), "--decay", str(DECAY))
    seen = run(test_gpt2, *files, *words)
    assert seen.returncode == 0
    losses = [float(line) for line in seen.stdout.splitlines()]
    model, x, y = model_of(shape, "trained", "float64")
    optimiser, wanted = optim.AdamW(optim.decay_groups(model.parameters(), DECAY), LR), []
    for _ in range(10):
        model.zero_grad()
        loss = ad.CrossEntropy(y)(model(x))
        loss.backward()
        optimiser.step()
        wanted.append(float(loss.data))
    assert np.abs(np.array(losses) / np.array(wanted) - 1).max() <= STEPS_BOUND
    assert losses[-1] < losses[0]


FIRST_FLOAT = 1024 + 2 * 4 * 3 * 5  # of the state of "T below maxT"
CONFIG, B, T = SHAPES["T below maxT"]
LOSS = FIRST_FLOAT + 4 * B * T * CONFIG.V


@pytest.mark.parametrize(
    ("place", "value", "row"),
    [
        (FIRST_FLOAT, 1.0, "logits"),
        (LOSS, 4.0, "loss"),
        (LOSS, np.nan, "loss"),
        (LOSS + 4, 0.1, "wte"),
        (LOSS + 4, np.inf, "wte"),
        (-4, 0.1, "lnfb"),
    ],
)
def test_another_key_is_not_passed(
    test_gpt2: Path, tmp_path: Path, place: int, value: float, row: str
) -> None:
    files = write(tmp_path, "T below maxT", "fresh")
    raw = bytearray((tmp_path / "state.bin").read_bytes())
    at = place % len(raw)
    raw[at : at + 4] = np.float32(value).tobytes()
    (tmp_path / "state.bin").write_bytes(raw)
    seen = run(test_gpt2, *files)
    failed = [line.split()[1] for line in seen.stdout.splitlines() if line.startswith("FAIL ")]
    assert (failed, seen.returncode) == ([row], 1)


def test_gradients_of_zero_are_not_passed(test_gpt2: Path, tmp_path: Path) -> None:
    """What an absolute bound lets through."""
    files = write(tmp_path, "T below maxT", "fresh")
    raw = bytearray((tmp_path / "state.bin").read_bytes())
    raw[LOSS + 4 :] = bytes(len(raw) - LOSS - 4)
    (tmp_path / "state.bin").write_bytes(raw)
    seen = run(test_gpt2, *files)
    assert (seen.stdout.count("FAIL "), seen.returncode) == (16, 1)


@pytest.mark.parametrize(
    ("file", "place", "word", "said"),
    [
        ("model.bin", 0, 1, "model.bin: no checkpoint (is it the right file?)"),
        ("model.bin", 4, 2, "model.bin: version 2, not 3 (run train_gpt2.py again)"),
        ("model.bin", 16, 0, "model.bin: a size of 0 (run train_gpt2.py again)"),
        ("model.bin", 8, 13, "bytes, not"),
        ("state.bin", 0, 1, "state.bin: no exam (is it the right file?)"),
        ("state.bin", 4, 1, "state.bin: version 1, not 2 (run train_gpt2.py again)"),
        ("state.bin", 12, 99, "state.bin: a batch (3,99) (run train_gpt2.py again)"),
        ("state.bin", 8, 4, "state.bin: cut short (was it written to the end?)"),
        ("state.bin", 8, 2, "state.bin: longer than its model says (is it this model's?)"),
        ("state.bin", 1024, 130, "token 0 of a batch is outside 0..129"),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_one_line(
    test_gpt2: Path, tmp_path: Path, file: str, place: int, word: int, said: str
) -> None:
    files = write(tmp_path, "T below maxT", "fresh")
    raw = bytearray((tmp_path / file).read_bytes())
    raw[place : place + 4] = np.int32(word).tobytes()
    (tmp_path / file).write_bytes(raw)
    seen = run(test_gpt2, *files)
    assert (seen.returncode, seen.stdout, seen.stderr.count("\n")) == (1, "", 1)
    assert seen.stderr.startswith("error: ") and said in seen.stderr


@pytest.mark.parametrize("words", [("a", "b", "c"), ("--steps",), ("--lr", "x"), ("--frob", "1")])
def test_usage(test_gpt2: Path, words: tuple[str, ...]) -> None:
    seen = run(test_gpt2, *words)
    assert (seen.returncode, seen.stderr.startswith("usage: ")) == (2, True)
