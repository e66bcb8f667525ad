"""train_gpt2.py as people run it, on a model, shards and a vocabulary of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from autograder.rubric import ROOT
from reference.llmc import exam
from reference.llmc.model import GPT2, Config
from reference.llmc.tokenizer import write_vocab

CONFIG = Config(maxT=16, V=257, L=2, NH=1, C=64)
FILES = ("gpt2_small.bin", "gpt2_small_debug_state.bin")


def run(folder: Path, *words: str, code: Path = ROOT / "reference") -> subprocess.CompletedProcess:
    given = ["--data", str(folder / "*.shard"), "--tokenizer", str(folder / "vocab.bin")]
    given += ["--out", str(folder), "-B", "2", "-T", "8", *words]
    return subprocess.run(
        [sys.executable, "-P", str(ROOT / "train_gpt2.py"), *given],
        env=os.environ | {"PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        check=False,
    )


def safetensors(state: dict[str, np.ndarray]) -> bytes:
    """As GPT-2 was published: with a mask, the head once more, and (in, out) for linear layers."""
    linear = re.compile(r"(c_attn|c_proj|c_fc)\.weight$")
    tensors = {f"transformer.{n}": a.T if linear.search(n) else a for n, a in state.items()}
    tensors |= {"transformer.h.0.attn.bias": np.ones((1, 1, 2, 2), np.float32)}
    tensors |= {"lm_head.weight": state["wte.weight"]}
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array, "<f4").tobytes()
        place = [len(body), len(body) + len(raw)]
        entries[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": place}
        body += raw
    head = json.dumps(entries).encode()
    return len(head).to_bytes(8, "little") + head + body


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokens = np.random.RandomState(1).randint(0, 256, 400).astype("<u2")
    head = np.zeros(256, "<i4")
    head[:3] = 20240520, 1, tokens.size
    (tmp_path / "a.shard").write_bytes(head.tobytes() + tokens.tobytes())
    write_vocab(tmp_path / "vocab.bin", [*(bytes([b]) for b in range(256)), b"<|endoftext|>"], 256)
    (tmp_path / "small.safetensors").write_bytes(safetensors(GPT2(CONFIG).state_dict()))
    return tmp_path


def losses(said: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"loss (\S+)", said)]


def test_it_overfits_a_batch_and_leaves_an_exam(folder: Path) -> None:
    seen = run(folder, "--init-from", str(folder / "small.safetensors"), "--steps", "5")
    assert seen.returncode == 0, seen.stderr
    fell = losses(seen.stdout)
    assert len(fell) == 5
    assert fell == sorted(fell, reverse=True)
    exam.write_model(folder / "wanted.bin", GPT2(CONFIG))
    assert (folder / FILES[0]).read_bytes() == (folder / "wanted.bin").read_bytes()
    state = np.frombuffer((folder / FILES[1]).read_bytes(), "<f4")
    assert state[256 + 2 * 16 + 16 * CONFIG.V] == pytest.approx(fell[0], rel=1e-6)


def test_float64_starts_from_the_same_loss_and_other_batches_differ(folder: Path) -> None:
    words = ("--init-from", str(folder / "small.safetensors"), "--steps", "2", "--lr", "0")
    single, double = run(folder, *words), run(folder, *words, "--dtype", "float64")
    assert losses(single.stdout) == pytest.approx(losses(double.stdout), rel=1e-6)
    assert losses(single.stdout)[0] == losses(single.stdout)[1]
    river = losses(run(folder, *words, "--overfit_single_batch", "0").stdout)
    assert river[0] == losses(single.stdout)[0] != river[1]


def test_what_goes_wrong_is_one_line(folder: Path) -> None:
    weights = str(folder / "small.safetensors")
    (folder / "no.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0no such header..")
    for words, message in (
        (("--init-from", str(folder / "no.safetensors")), "no safetensors file"),
        (("--init-from", str(folder / "none.safetensors")), "No such file"),
        (("--init-from", weights, "--data", str(folder / "none*")), "no file matches"),
        (("--init-from", weights, "-T", "999"), "400 tokens, a batch needs"),
        (("--init-from", weights, "--lr", "1e30", "--steps", "9"), "a smaller --lr?"),
    ):
        seen = run(folder, *words)
        assert (seen.returncode, seen.stderr.count("\n")) == (1, 1), seen.stderr
        assert message in seen.stderr


def test_stubs_say_what_is_missing(folder: Path) -> None:
    seen = run(folder, code=ROOT)
    assert (seen.returncode, seen.stderr) == (1, "train_gpt2: A1: normals is not written yet\n")
