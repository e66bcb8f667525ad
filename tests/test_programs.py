"""train_gpt2.c and generate.c with the reference: against Python's twins, and what they refuse."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from autograder.rubric import ROOT
from reference.llmc import autograd as ad
from reference.llmc import exam, optim
from reference.llmc.dataloader import DistributedDataLoader
from reference.llmc.model import GPT2, Config
from reference.llmc.sampler import random_f32, sample_softmax

CONFIG = Config(maxT=24, V=150, L=2, NH=2, C=16)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, built as `make` does, with a model and shards."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("Makefile", "train_gpt2.c", "generate.c"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "reference" / "llmc", folder / "llmc")
    command = ["make", "-s", "train_gpt2", "generate"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    exam.write_model(folder / "model.bin", lively())
    for kind, seed in (("train", 1), ("val", 2)):
        tokens = np.random.RandomState(seed).zipf(1.5, 4000) % CONFIG.V
        head = np.zeros(256, "<i4")
        head[:3] = 20240520, 1, tokens.size
        content = head.tobytes() + tokens.astype("<u2").tobytes()
        (folder / f"text_{kind}_000.bin").write_bytes(content)
    return folder


def lively(dtype: str = "float32") -> GPT2:
    """A model whose predictions differ from token to token."""
    model = GPT2(CONFIG, dtype)
    for name, tensor in model.named_parameters().items():
        if ".ln" not in name:
            tensor.data = (8 * tensor.data).astype(np.float32).astype(dtype)
    return model


def run(folder: Path, program: str, *words: str, **more: object) -> subprocess.CompletedProcess:
    command = [folder / "build" / program, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)


def error_of(seen: subprocess.CompletedProcess) -> str:
    """The one line, but for the one that says that there is no vocabulary."""
    (line,) = (each for each in seen.stderr.splitlines() if "tokenizer.bin" not in each)
    return line


def ids_in_python(prompt: Sequence[int], count: int, state: int) -> list[int]:
    model, ids = lively("float64"), list(prompt)
    for _ in range(count):
        with ad.no_grad():
            logits = model(np.array([ids])).data[0, -1].astype(np.float32)
        coin, state = random_f32(state)
        ids.append(sample_softmax(logits, coin))
    return ids[len(prompt) :]


@pytest.mark.parametrize(("prompt", "seed"), [([149], 1), ([3, 1, 4, 1, 5], 7), ([0], 123456)])
def test_generate_gives_the_ids_of_pythons_sampler(
    programs: Path, prompt: list[int], seed: int
) -> None:
    count = CONFIG.maxT - len(prompt)
    words = ("--model", "model.bin", "--ids", "1", "--seed", str(seed), "--tokens", "99")
    seen = run(programs, "generate", *words, "--prompt", "-", input=" ".join(map(str, prompt)))
    assert seen.returncode == 0
    # as many as there are positions, and one more: the last position predicts a token, too
    assert list(map(int, seen.stdout.split()))[:count] == ids_in_python(prompt, count, seed)
    assert len(seen.stdout.split()) == count + 1


@pytest.mark.parametrize(
    ("words", "prompt", "said"),
    [
        (("--seed", "0"), "", "seed 0 stays 0 for ever"),
        (("--prompt", "-"), "1 150", "id 150 is outside 0..149"),
        (("--prompt", "-"), "1 -1", "id -1 is outside 0..149"),
        (("--prompt", "-"), "1 x", "-: x is no id"),
        (("--prompt", "-"), "1 " * 25, "-: more than 24 ids"),
        (("--prompt", "nowhere"), "", "nowhere: cannot open"),
        (("--model", "nowhere"), "", "nowhere: cannot open"),
    ],
)
def test_generate_refuses_in_one_line(
    programs: Path, words: tuple[str, ...], prompt: str, said: str
) -> None:
    seen = run(programs, "generate", "--model", "model.bin", *words, input=prompt)
    assert seen.returncode == 1
    assert error_of(seen).startswith(f"error: {said}")


TRAINING = ("--model", "model.bin", "--data", "*_train_*.bin", "--val", "*_val_*.bin", "--out", ".")


def test_training_takes_pythons_steps(programs: Path) -> None:
    words = ("-B", "2", "-T", "8", "--steps", "11", "--lr", "0.01", "--decay", "0.1")
    seen = run(programs, "train_gpt2", *TRAINING, *words, "--checkpoint", "after.bin")
    assert seen.returncode == 0
    log = (programs / "main.log").read_text().splitlines()
    losses = [float(line.split()[3]) for line in log if " train " in line]
    model = lively()
    loader = DistributedDataLoader(str(programs / "*_train_*.bin"), 2, 8, shuffle=True)
    optimiser, wanted = optim.AdamW(optim.decay_groups(model.parameters(), 0.1), 0.01), []
    for _ in range(11):
        x, y = loader.next_batch()
        model.zero_grad()
        loss = ad.CrossEntropy(y)(model(x))
        loss.backward()
        optimiser.step()
        wanted.append(float(loss.data))
    assert len(losses) == 11
    assert losses == pytest.approx(wanted, rel=1e-3)
    assert [line.split()[1] for line in log if " val " in line] == ["1", "11"]
    exam.write_model(programs / "python.bin", model)
    c, python = (
        np.frombuffer((programs / name).read_bytes(), "<f4", offset=1024)
        for name in ("after.bin", "python.bin")
    )
    assert np.linalg.norm(c - python) < 1e-2 * np.linalg.norm(python - np.mean(python))


def test_the_number_of_threads_changes_no_bit(programs: Path) -> None:
    written = []
    for threads in ("1", "2", "3"):
        name = f"threads-{threads}.bin"
        words = ("-B", "2", "-T", "8", "--steps", "3", "--checkpoint", name)
        env = os.environ | {"OMP_NUM_THREADS": threads}
        assert run(programs, "train_gpt2", *TRAINING, *words, env=env).returncode == 0
        written.append((programs / name).read_bytes())
    assert written[0] == written[1] == written[2]


def test_a_line_for_each_step_and_a_sample(programs: Path) -> None:
    seen = run(programs, "train_gpt2", *TRAINING, "-B", "2", "-T", "8", "--steps", "2")
    lines = seen.stdout.splitlines()
    assert lines[0].startswith("model.bin: ") and lines[0].endswith(" parameters")
    steps = [line for line in lines if line.startswith("step ")]
    for number, line in enumerate(steps, 1):
        pattern = rf"step +{number}/2  loss \d+\.\d+ +\d+ ms +\d+ tokens/s"
        assert re.fullmatch(pattern, line), line
    assert [line.split()[0] for line in lines if line.startswith("val")] == ["val", "val"]
    assert len(lines[-1].split()) == 7  # no vocabulary: ids


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--data", "nowhere*"), 1, "error: nowhere*: no shard (run `make data`)"),
        (("--out", "nowhere"), 1, "error: nowhere/main.log: cannot open"),
        (("-B", "0"), 1, "error: a batch (0,8)"),
        (("--lr", "1e9", "--steps", "9"), 1, "error: the loss is "),
        (("--steps", "5000000000"), 2, "error: --steps 5000000000: no such option or value"),
        (("--steps", "many"), 2, "error: --steps many: no such option or value (--help"),
        (("--frob", "1"), 2, "error: --frob 1: no such option or value"),
        (("--lr",), 2, "error: --lr : no such option or value"),
    ],
)
def test_training_refuses_in_one_line(
    programs: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    seen = run(programs, "train_gpt2", *TRAINING, "-B", "2", "-T", "8", *words)
    assert seen.returncode == status
    assert error_of(seen).startswith(said)


@pytest.mark.parametrize("program", ["train_gpt2", "generate"])
def test_help_lists_every_option_with_its_default(programs: Path, program: str) -> None:
    seen = run(programs, program, "--help")
    assert seen.returncode == 0
    source = (ROOT / f"{program}.c").read_text()
    for name in re.findall(r'\{"(-+\w+)",', source):
        assert re.search(rf"^  {name} ", seen.stdout, re.MULTILINE), name
