"""./grade milestone A2: trains models with a student's code, and measures what they left.

The code runs in the sandbox and leaves files; what decides is computed here, in float64, from the
weights in them. What to run stands in assignments/*/milestone.toml.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from autograder import compare, observe, sandbox
from autograder.rubric import Rubric

LIMITS = sandbox.Limits(cpu_seconds=300, wall_seconds=1800, memory_mib=4096)
ROUNDING = 1e-9  # nats: what float64 sums over a text may be off
BYTES = 256
PIXELS, HIDDEN, DIGITS = 64, 64, 10

Tensors = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Step:
    """One model: the words for `python -m llmc`, the data that it needs, and how it is measured."""

    id: str
    says: str
    needs: str
    command: str
    measure: str
    within: float


@dataclass(frozen=True)
class Reached:
    """A step's verdict (ok, FAIL, todo or skip), what was measured, and what was wanted."""

    step: Step
    verdict: str
    got: str
    wanted: str = ""


class NotMeasured(Exception):
    """What a step left cannot be measured; the message says why."""


def steps(loaded: Rubric) -> tuple[str, list[Step]]:
    """An assignment's title and steps; none where it has no milestone."""
    path = loaded.folder / "milestone.toml"
    if not path.exists():
        return "", []
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    return raw["title"], [Step(**entry) for entry in raw["step"]]


def reach(loaded: Rubric, step: Step, student: Path, build: Path, data: Path) -> Reached:
    """Runs a step in an empty folder, and measures what it left."""
    if not (data / step.needs).exists():
        return Reached(step, "skip", f"run `make data`: there is no {step.needs}")
    content = (data / step.needs).read_bytes()
    with empty_folder(build) as folder:
        try:
            return _judged(loaded, step, trained(step, student, folder, content), content)
        except NotMeasured as fault:
            unwritten = str(fault).endswith("is not written yet")
            return Reached(step, "todo" if unwritten else "FAIL", str(fault))


@contextmanager
def empty_folder(build: Path) -> Iterator[Path]:
    """A folder for student code to work in, removed afterwards, whatever was done to it."""
    scratch = build / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=scratch))
    try:
        yield folder
    finally:
        observe.remove(folder)


def trained(
    step: Step, student: Path, folder: Path, content: bytes, more: Sequence[str] = ()
) -> Tensors:
    """The tensors of the model that a step left, trained on a copy of the data. Raises
    NotMeasured."""
    (folder / step.needs).write_bytes(content)
    (folder / "llmc").symlink_to(student.resolve() / "llmc")
    places = {"data": step.needs, "out": "model"}
    words = [word.format(**places) for word in step.command.split()]
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    command = (sys.executable, "-m", "llmc", *words, *more)
    outcome = sandbox.run_all([sandbox.Job(command, folder, env, LIMITS)], 1)[0]
    if outcome.stopped:
        raise NotMeasured(f"it ran out of {outcome.stopped}")
    if outcome.status != 0:
        said = outcome.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise NotMeasured(said[-1].removeprefix("llmc: ")[:200] or f"status {outcome.status}")
    try:
        return load(_read(folder / "model" / "model.safetensors"))
    except (OSError, SafetensorError, KeyError, ValueError, MemoryError, OverflowError):
        raise NotMeasured("it left no model.safetensors that can be read") from None


def _read(path: Path) -> bytes:
    """An ordinary file that student code left, and nothing else. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LIMITS.file_mib * sandbox.MIB:
            raise OSError(f"{path.name} is no ordinary file, or too large")
        return file.read()


def _judged(loaded: Rubric, step: Step, tensors: Tensors, content: bytes) -> Reached:
    with np.errstate(all="ignore"):
        found = MEASURES[step.measure](loaded, step, tensors, content)
    fine = found.least - ROUNDING <= found.got <= found.most + ROUNDING
    got, wanted = f"{found.got:.6f} {found.unit}", f"{found.least:.6f} to {found.most:.6f}"
    return Reached(step, "ok" if fine else "FAIL", got, wanted)


# ---------------------------------------------------------------- measures


@dataclass(frozen=True)
class Measured:
    """A loss, between what it may be, and what it is counted in."""

    got: float
    least: float
    most: float
    unit: str


Measure = Callable[[Rubric, Step, Tensors, bytes], Measured]
NATS = "nats a byte"


def pairs(text: bytes) -> NDArray[np.float64]:
    """How often byte j follows byte i, (256, 256)."""
    ids = np.frombuffer(text, np.uint8).astype(np.int64)
    found = np.bincount(BYTES * ids[:-1] + ids[1:], minlength=BYTES**2)
    return found.reshape(BYTES, BYTES).astype(np.float64)


def nll(pairs: NDArray[np.float64], logits: NDArray[np.float64]) -> float:
    """The mean of -log p over all pairs, where row i of logits says what follows i."""
    z = logits - logits.max(axis=-1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    seen = pairs > 0
    return float(-(pairs[seen] * logs[seen]).sum() / pairs.sum())


def add_one(loaded: Rubric, step: Step, tensors: Tensors, text: bytes) -> Measured:
    """Beside what the counts of the text give, one added to each."""
    counted = pairs(text)
    wanted = nll(counted, np.log(counted + 1))
    return Measured(nll(counted, table(tensors)), wanted - step.within, wanted + step.within, NATS)


def floor(loaded: Rubric, step: Step, tensors: Tensors, text: bytes) -> Measured:
    """Above the least that any table can reach."""
    counted = pairs(text)
    seen = counted > 0
    shares = (counted / np.maximum(counted.sum(axis=1, keepdims=True), 1))[seen]
    least = float(-(counted[seen] * np.log(shares)).sum() / counted.sum())
    return Measured(nll(counted, table(tensors)), least, least + step.within, NATS)


def table(tensors: Tensors) -> NDArray[np.float64]:
    """The bigram's. Raises NotMeasured."""
    return _tensor(tensors, "bigram.weight", (BYTES, BYTES))


def _tensor(tensors: Tensors, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """One of them, as float64. Raises NotMeasured unless it is float32, so shaped and finite."""
    found = tensors.get(name)
    if found is None or found.dtype != np.float32 or found.shape != shape:
        raise NotMeasured(f"its model has no float32 tensor {name} of shape {shape}")
    if not np.isfinite(found).all():
        raise NotMeasured(f"its {name} is not finite")
    return found.astype(np.float64)


def digits(loaded: Rubric, step: Step, tensors: Tensors, content: bytes) -> Measured:
    """Below the bar, on digits of people whom training never saw."""
    loss, right = digits_loss(tensors, content)
    bar = compare.bar(str(loaded.folder / "golden" / "bars.tsv"), step.id)
    return Measured(loss, 0.0, bar + step.within, f"nats, {right:.1%} right")


def digits_loss(tensors: Tensors, content: bytes) -> tuple[float, float]:
    """Loss and accuracy on the digits for testing. Raises NotMeasured."""
    mean, std = (_tensor(tensors, name, (PIXELS,)) for name in ("mean", "std"))
    w0 = _tensor(tensors, "layers.0.weight", (HIDDEN, PIXELS))
    b0 = _tensor(tensors, "layers.0.bias", (HIDDEN,))
    w1 = _tensor(tensors, "layers.1.weight", (DIGITS, HIDDEN))
    b1 = _tensor(tensors, "layers.1.bias", (DIGITS,))
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        x, y = file["x_test"].astype(np.float64), file["y_test"]
    logits = np.maximum((x - mean) / std @ w0.T + b0, 0) @ w1.T + b1
    if not np.isfinite(logits).all():
        raise NotMeasured("its logits are not finite")
    right = float((logits.argmax(axis=1) == y).mean())
    return nll(np.eye(DIGITS)[y], logits), right


MEASURES: Mapping[str, Measure] = {"add_one": add_one, "floor": floor, "digits": digits}
