"""./grade milestone A2: trains models with a student's code, and measures what they left.

The code runs in the sandbox and leaves files; what decides is computed here, in float64, from the
weights in them. What to run stands in assignments/*/milestone.toml.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from autograder import compare, sandbox
from autograder.files import scratch_folder
from autograder.rubric import Rubric

LIMITS = sandbox.Limits(cpu_seconds=300, wall_seconds=1800, memory_mib=4096)
ROUNDING = 1e-9  # nats: what float64 sums over a text may be off
BYTES = 256

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
    """A step's verdict (ok, FAIL or skip), what was measured, and what was wanted."""

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
    with scratch_folder(build) as folder:
        try:
            return _judged(loaded, step, trained(step, student, folder, data), data)
        except NotMeasured as fault:
            unwritten = str(fault).endswith("is not written yet")
            return Reached(step, "todo" if unwritten else "FAIL", str(fault))


def trained(
    step: Step, student: Path, folder: Path, data: Path, more: Sequence[str] = ()
) -> Tensors:
    """The tensors of the model that a step left. Raises NotMeasured."""
    places = {"data": str((data / step.needs).resolve()), "out": str(folder / "model")}
    words = [word.format(**places) for word in step.command.split()]
    env = {
        **{"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        **{"PYTHONPATH": str(student), "PYTHONDONTWRITEBYTECODE": "1"},
    }
    command = (sys.executable, "-m", "llmc", *words, *more)
    outcome = sandbox.run_all([sandbox.Job(command, folder, env, LIMITS)], 1)[0]
    if outcome.stopped or outcome.status != 0:
        said = outcome.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        why = f"out of {outcome.stopped}" if outcome.stopped else f"status {outcome.status}"
        raise NotMeasured(said[-1].removeprefix("llmc: ")[:200] or why)
    path = folder / "model" / "model.safetensors"
    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError, KeyError):
        raise NotMeasured("it left no model.safetensors that can be read") from None


def _judged(loaded: Rubric, step: Step, tensors: Tensors, data: Path) -> Reached:
    found = MEASURES[step.measure](loaded, step, tensors, data / step.needs)
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


Measure = Callable[[Rubric, Step, Tensors, Path], Measured]
NATS = "nats a byte"


def pairs(path: Path) -> NDArray[np.float64]:
    """How often byte j follows byte i in a file, (256, 256)."""
    ids = np.frombuffer(path.read_bytes(), np.uint8).astype(np.int64)
    found = np.bincount(BYTES * ids[:-1] + ids[1:], minlength=BYTES**2)
    return found.reshape(BYTES, BYTES).astype(np.float64)


def nll(pairs: NDArray[np.float64], logits: NDArray[np.float64]) -> float:
    """The mean of -log p over all pairs, where row i of logits says what follows i."""
    z = logits - logits.max(axis=-1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    seen = pairs > 0
    return float(-(pairs[seen] * logs[seen]).sum() / pairs.sum())


def add_one(loaded: Rubric, step: Step, tensors: Tensors, text: Path) -> Measured:
    """Beside what the counts of the text give, one added to each."""
    counted = pairs(text)
    wanted = nll(counted, np.log(counted + 1))
    return Measured(nll(counted, table(tensors)), wanted - step.within, wanted + step.within, NATS)


def floor(loaded: Rubric, step: Step, tensors: Tensors, text: Path) -> Measured:
    """Above the least that any table can reach."""
    counted = pairs(text)
    seen = counted > 0
    shares = (counted / np.maximum(counted.sum(axis=1, keepdims=True), 1))[seen]
    least = float(-(counted[seen] * np.log(shares)).sum() / counted.sum())
    return Measured(nll(counted, table(tensors)), least, least + step.within, NATS)


def table(tensors: Tensors) -> NDArray[np.float64]:
    """The bigram's. Raises NotMeasured."""
    found = tensors.get("bigram.weight")
    if found is None or found.shape != (BYTES, BYTES) or not np.isfinite(found).all():
        raise NotMeasured("its model has no finite bigram.weight (256, 256)")
    return found.astype(np.float64)


def digits(loaded: Rubric, step: Step, tensors: Tensors, data: Path) -> Measured:
    """Below the bar, on digits of people whom training never saw."""
    loss, right = digits_loss(tensors, data)
    bar = compare.bar(str(loaded.folder / "golden" / "bars.tsv"), step.id)
    return Measured(loss, 0.0, bar + step.within, f"nats, {right:.1%} right")


def digits_loss(tensors: Tensors, data: Path) -> tuple[float, float]:
    """Loss and accuracy on the digits for testing. Raises NotMeasured."""
    names = ("mean", "std", *(f"layers.{i}.{kind}" for i in (0, 1) for kind in ("weight", "bias")))
    with np.load(data, allow_pickle=False) as file:
        x, y = file["x_test"].astype(np.float64), file["y_test"]
    try:
        mean, std, w0, b0, w1, b1 = (tensors[name].astype(np.float64) for name in names)
        logits = np.maximum((x - mean) / std @ w0.T + b0, 0) @ w1.T + b1
    except (KeyError, ValueError):
        raise NotMeasured("its model is no perceptron of two layers on 64 pixels") from None
    if logits.shape != (len(x), 10) or not np.isfinite(logits).all():
        raise NotMeasured("its model gives no ten finite logits")
    right = float((logits.argmax(axis=1) == y).mean())
    return nll(np.eye(10)[y], logits), right


MEASURES: Mapping[str, Measure] = {"add_one": add_one, "floor": floor, "digits": digits}
