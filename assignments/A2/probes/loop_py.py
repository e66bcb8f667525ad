"""Calls llmc/loop.py on models, losses and generators of the probe's own, and prints what it did.

Gradients come from losses that know them, and an optimiser that only takes notes: what is looked at
is the loop. Only the rows at the end, which learn something, use the whole engine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, MutableSequence
from typing import Any

import numpy as np
from given import given_u64
from learning import MOONS, XOR, Task
from observe import WrongType, array, number, numbers, outcome, tensor
from samples import Array, Draw

STEP_RATE = 0.1  # of the example by hand


class Coins:
    """Stands for a generator: numbers that a seed decides, under the names that PCG32 has."""

    def __init__(self, seed: int) -> None:
        self.seed, self.drawn = seed, 0

    def next_u32(self) -> int:
        self.drawn += 1
        return given_u64(self.seed, 699_999 + self.drawn) >> 32

    def uniform(self) -> float:
        return self.next_u32() / 2**32

    def uniforms(self, n: int) -> Array:
        return np.array([self.uniform() for _ in range(n)])

    def below(self, n: int) -> int:
        return self.next_u32() % n

    def shuffle(self, xs: MutableSequence) -> None:
        """Fisher and Yates: who is drawn from those that are left stands behind them."""
        left, drawn = list(xs), []
        while len(left) > 1:
            place = self.below(len(left))
            drawn.insert(0, left[place])
            left[place] = left[-1]
            left.pop()
        xs[:] = left + drawn


# ---------------------------------------------------------------- the loader


def rows(n: int) -> dict[str, Array]:
    """Row i of x is i and i + 1/2, of y it is 10 i: rows of one batch must be of one i."""
    count = np.arange(n)
    return {"x": np.stack([count, count + 0.5], axis=1), "y": 10 * count}


def batches(name: str, loader: Any) -> None:
    """Reports an epoch: how many rows each batch has, which rows these are, and what belongs to
    them."""
    found = list(loader)
    for batch in found:
        if not isinstance(batch, dict):
            raise WrongType(f"a batch is of type {type(batch).__name__}, want it a dict")
    number(f"{name}_length", len(loader))
    numbers(f"{name}_sizes", [len(batch["x"]) for batch in found])
    for key, empty, kind in (("x", np.zeros((0, 2)), "f64"), ("y", np.zeros(0, np.int64), "i64")):
        array(f"{name}_{key}", np.concatenate([batch[key] for batch in found] or [empty]), kind)


def case_batches(seed: int) -> None:
    from llmc.loop import DataLoader

    for name, n, size, drop in (
        ("kept", 7, 3, False),
        ("dropped", 7, 3, True),
        ("whole_kept", 6, 3, False),
        ("whole_dropped", 6, 3, True),
        ("few_kept", 2, 3, False),
        ("few_dropped", 2, 3, True),
        ("one", 3, 1, True),
    ):
        batches(name, DataLoader(rows(n), size, shuffle=False, rng=None, drop_last=drop))
    batches("unused", DataLoader(rows(7), 3, shuffle=False, rng=Coins(seed)))
    default = DataLoader(rows(7), 3, False)
    number("default", len(default))
    for batch in default:
        batch["x"][:] = -1  # a batch is a copy
    batches("again", default)
    one, other = iter(default), iter(default)
    passes = [next(one), next(other), next(one), next(other)]
    array("at_once", np.concatenate([batch["y"] for batch in passes]), "i64")


def case_shuffled(seed: int) -> None:
    from llmc.loop import DataLoader

    loader = DataLoader(rows(11), 4, shuffle=True, rng=Coins(seed), drop_last=False)
    for name in ("first", "second", "third"):
        batches(name, loader)
    batches("dropped", DataLoader(rows(11), 4, shuffle=True, rng=Coins(seed + 1)))


def case_loader_refused(seed: int) -> None:
    from llmc.loop import DataLoader

    x, y = rows(4).values()
    outcome("good", DataLoader, {"x": x, "y": y}, 2, True, Coins(seed))
    outcome("unused", DataLoader, {"x": x, "y": y}, 2, False, None)
    outcome("lengths", DataLoader, {"x": x, "y": y, "z": y[:3]}, 2, False, None)
    outcome("generator", DataLoader, {"x": x, "y": y}, 2, True, None)
    outcome("size", DataLoader, {"x": x, "y": y}, 0, False, None)
    outcome("negative", DataLoader, {"x": x, "y": y}, -2, False, None)
    outcome("nothing", DataLoader, {}, 2, False, None)


# ---------------------------------------------------------------- a step


def unclipped() -> Any:
    """train_step, with a clip_grad_norm_ that does nothing: only the row about it wants another."""
    from llmc import optim

    optim.clip_grad_norm_ = lambda parameters, max_norm: 0.5
    from llmc.loop import train_step

    return train_step


def line() -> Any:
    """The model x w + b of the example by hand: w = 2, b = 0; and a parameter that no loss uses."""
    from llmc.model import Module, parameter

    class Line(Module):
        def __init__(self) -> None:
            self.w, self.b = parameter(np.array([[2.0]])), parameter(np.array([0.0]))
            self.unused = parameter(np.zeros(2))
            self.backwards = 0

    return Line()


def squares(model: Any, batch: dict[str, Array]) -> Any:
    """The mean square of x w + b - y, as a loss that knows its gradients."""
    from llmc.autograd import Tensor

    class Loss(Tensor):
        def backward(self, grad: Array | None = None) -> None:
            model.backwards += 1
            for parameter, found in ((model.w, by_w), (model.b, by_b)):
                parameter.grad = found if parameter.grad is None else parameter.grad + found

    residual = batch["x"] @ model.w.data + model.b.data - batch["y"]
    by_w = 2 * batch["x"].T @ residual / len(residual)
    by_b = 2 * residual.mean(axis=0)
    return Loss(np.array(np.mean(residual**2)), requires_grad=True)


class Notes:
    """An optimiser that keeps the gradients it was given, and takes a step of SGD."""

    def __init__(self, model: Any) -> None:
        self.model, self.seen = model, []

    def last(self) -> list[float]:
        """The gradients of the last step; zeros where there was none."""
        return self.seen[-1] if self.seen else [0.0, 0.0]

    def step(self) -> None:
        self.seen.append([float(p.grad.item()) for p in (self.model.w, self.model.b)])
        for parameter in (self.model.w, self.model.b):
            parameter.data = parameter.data - STEP_RATE * parameter.grad


BATCH = {"x": np.array([[1.0], [2.0]]), "y": np.array([[3.0], [5.0]])}


def reported(found: object, *names: str) -> list[float]:
    """The named metrics of a step, which must be floats."""
    if not isinstance(found, dict):
        raise WrongType(f"it returned {type(found).__name__}, want a dict")
    for name in names:
        if name not in found:
            raise WrongType(f"there is no {name!r} in what it returned, only {sorted(found)}")
        if not isinstance(found[name], float):
            raise WrongType(f"{name!r} is of type {type(found[name]).__name__}, want a float")
    return [float(found[name]) for name in names]


def state(model: Any) -> list[float]:
    return [float(model.w.data.item()), float(model.b.data.item())]


def case_step(seed: int) -> None:
    train_step = unclipped()
    model, called = line(), []
    model.w.grad = np.array([[100.0]])  # of somebody who looked before
    model.training = False
    notes = Notes(model)

    def counted(model: Any, batch: dict[str, Array]) -> Any:
        called.append(int(model.training))
        return squares(model, batch)

    for name in ("first", "second"):
        numbers(f"{name}_loss", reported(train_step(model, BATCH, counted, notes), "loss"), "f64")
        number(f"{name}_updates", len(notes.seen))
        numbers(f"{name}_gradients", notes.last(), "f64")
        numbers(f"{name}_parameters", state(model), "f64")

    numbers("modes", [*called, int(model.training)])

    def with_metrics(model: Any, batch: dict[str, Array]) -> tuple[Any, dict[str, float]]:
        return squares(model, batch), {"acc": 0.25, "rows": 2.0}

    model = line()
    found = train_step(model, BATCH, with_metrics, Notes(model))
    numbers("metrics", reported(found, "loss", "acc", "rows"), "f64")


def case_vector(seed: int) -> None:
    """A loss of two numbers, what it has changed, and a loss of one number in a row."""
    from llmc.autograd import Tensor

    train_step = unclipped()

    def vector(model: Any, batch: dict[str, Array]) -> Any:
        return Tensor(np.array([1.0, 2.0]), requires_grad=True)

    model = line()
    notes = Notes(model)
    outcome("vector", train_step, model, BATCH, vector, notes)
    number("vector_updates", len(notes.seen))
    numbers("vector_parameters", state(model), "f64")

    def in_a_row(model: Any, batch: dict[str, Array]) -> Any:
        loss = squares(model, batch)
        loss.data = loss.data.reshape(1)
        return loss

    numbers("row", reported(train_step(model, BATCH, in_a_row, notes), "loss"), "f64")


def case_finite(seed: int) -> None:
    """Losses that are no number, then one that is."""
    train_step = unclipped()
    model, average = line(), Average()
    notes = Notes(model)
    for name, value in (("nan", np.nan), ("inf", np.inf), ("minus_inf", -np.inf)):

        def bad(model: Any, batch: dict[str, Array], value: float = value) -> Any:
            loss = squares(model, batch)
            loss.data = np.array(value)
            return loss

        outcome(name, train_step, model, BATCH, bad, notes, None, average)
        number(f"{name}_updates", len(notes.seen))
        number(f"{name}_averaged", len(average.seen))
        number(f"{name}_backwards", model.backwards)
        numbers(f"{name}_parameters", state(model), "f64")
    found = train_step(model, BATCH, squares, notes, None, average)
    numbers("after", reported(found, "loss"), "f64")
    numbers("after_gradients", notes.last(), "f64")


def case_clip(seed: int) -> None:
    from llmc.loop import train_step

    for name, limit in (("one", 1.0), ("four", 4.0), ("none", None)):
        model = line()
        notes = Notes(model)
        found = train_step(model, BATCH, squares, notes, limit)
        numbers(f"{name}_norm", reported(found, "grad_norm"), "f64")
        numbers(f"{name}_gradients", notes.last(), "f64")
        numbers(f"{name}_parameters", state(model), "f64")


class Average:
    """Stands for an EMA, and takes notes: without its bias it is 100 + t after t numbers."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.beta, self.value, self.t = 0.5, 0.0, 0

    def update(self, x: float) -> None:
        self.seen.append(float(x))
        self.t = len(self.seen)
        self.value = self.value_debiased() * (1 - self.beta**self.t)

    def value_debiased(self) -> float:
        return 100.0 + self.t


def case_ema(seed: int) -> None:
    train_step = unclipped()
    model, average = line(), Average()
    notes = Notes(model)
    said = [
        reported(train_step(model, BATCH, squares, notes, None, average), "loss_ema")[0]
        for _ in range(2)
    ]
    numbers("said", said, "f64")
    numbers("averaged", average.seen, "f64")
    found = train_step(model, BATCH, squares, notes)
    number("without", int("loss_ema" in found))


# ---------------------------------------------------------------- evaluation


def nested() -> Any:
    """A model in training, with one part that is in eval mode for good, and a list of two."""
    from llmc.model import Module

    root, root.part = Module(), Module()
    root.part.inner, root.blocks = Module(), [Module(), Module()]
    for module in modules(root):
        module.training = True
    root.part.training = root.blocks[1].training = False
    return root


def modules(root: Any) -> list[Any]:
    return [root, root.part, root.part.inner, *root.blocks]


def modes(root: Any) -> list[int]:
    return [int(module.training) for module in modules(root)]


class Watch:
    """A loss function that takes notes of modes, of whether the graph is kept, and of rows."""

    def __init__(self, fails_at: int = -1, error: type[BaseException] = KeyError) -> None:
        self.fails_at, self.error = fails_at, error
        self.modes: list[int] = []
        self.recording: list[int] = []
        self.rows: list[int] = []

    def __call__(self, model: Any, batch: dict[str, Array]) -> tuple[Any, dict[str, float]]:
        from llmc.autograd import RECORDING, Tensor

        (x,) = batch.values()
        self.modes += modes(model)
        self.recording.append(int(RECORDING.get()))
        self.rows.append(len(x))
        if len(self.rows) - 1 == self.fails_at:
            raise self.error("a batch that fails")
        return Tensor(np.array(x.sum() / max(1, len(x)))), {"low": float(np.sum(x < 0)) / len(x)}


def case_evaluate(seed: int) -> None:
    from llmc.loop import evaluate

    x = Draw(seed, 0)(10)
    parts = [{"pixels": x[:4]}, {"pixels": x[4:8]}, {"pixels": x[8:]}]
    model, watch = nested(), Watch()
    found = evaluate(model, iter(parts), watch)
    numbers("means", reported(found, "loss", "low"), "f64")
    number("n", int(found.get("n", -1)))
    numbers("rows", watch.rows)
    numbers("modes", watch.modes)
    numbers("recording", watch.recording)
    numbers("modes_after", modes(model))
    number("recording_after", recording())
    model.training = False
    evaluate(model, parts, lambda model, batch: Watch()(model, batch)[0])
    numbers("modes_of_eval", modes(model))
    model = nested()
    outcome("empty", evaluate, model, [], Watch())
    numbers("modes_of_empty", modes(model))
    with no_graph():
        evaluate(model, parts, Watch())
        number("recording_nested", recording())


@contextlib.contextmanager
def no_graph() -> Iterator[None]:
    """What no_grad does, without it."""
    from llmc.autograd import RECORDING

    token = RECORDING.set(False)
    yield
    RECORDING.reset(token)


def recording() -> int:
    from llmc.autograd import RECORDING

    return int(RECORDING.get())


def case_evaluate_error(seed: int) -> None:
    """The second batch fails; then the loader itself does; then somebody interrupts it."""
    from llmc.loop import evaluate

    def broken() -> Iterator[dict[str, Array]]:
        yield {"pixels": np.ones(2)}
        raise OSError("no more")

    pixels = [{"pixels": np.ones(2)}] * 3

    for name, loader, watch in (
        ("batch", pixels, Watch(fails_at=1)),
        ("loader", broken(), Watch()),
    ):
        model = nested()
        outcome(name, evaluate, model, loader, watch)
        numbers(f"{name}_modes", modes(model))
        number(f"{name}_recording", recording())
    model = nested()
    with contextlib.suppress(KeyboardInterrupt):
        evaluate(model, pixels, Watch(1, KeyboardInterrupt))
    numbers("interrupt_modes", modes(model))
    number("interrupt_recording", recording())


# ---------------------------------------------------------------- learning


def network(task: Task, seed: int) -> Any:
    """A perceptron with tanh between its two layers."""
    from llmc import autograd as ad
    from llmc.model import Linear, Module

    class Network(Module):
        def __init__(self) -> None:
            self.first, self.last = (
                Linear(weight, np.zeros(len(weight))) for weight in task.weights(seed)
            )

        def __call__(self, x: Any) -> Any:
            return self.last(ad.Tanh()(self.first(x)))

    return Network()


def logistic(model: Any, batch: dict[str, Array]) -> tuple[Any, dict[str, float]]:
    from llmc import autograd as ad

    logits = model(ad.Tensor(batch["x"]))
    right = float(((logits.data > 0) == (batch["y"] > 0.5)).mean())
    return ad.BCEWithLogits(batch["y"])(logits), {"acc": right}


def learned(task: Task, seed: int) -> tuple[Any, list[float]]:
    """A trained network, and the losses on the way."""
    from llmc.loop import DataLoader, train_step
    from llmc.optim import AdamW, decay_groups

    model, data = network(task, seed), task.data(seed)
    loader = DataLoader(data, task.batch, shuffle=True, rng=Coins(seed), drop_last=True)
    optimiser = AdamW(decay_groups(model.parameters(), 0.0), task.rate)
    losses = [
        float(train_step(model, batch, logistic, optimiser, task.clip)["loss"])
        for _ in range(task.epochs)
        for batch in loader
    ]
    return model, losses


def outcome_of(task: Task, seed: int) -> None:
    """What the network says at the end to rows of the task; where it has more, to new ones."""
    from llmc import autograd as ad

    model, _ = learned(task, seed)
    tensor("logits", model(ad.Tensor(task.data(seed + 1)["x"])).data, "f64")


def case_xor(seed: int) -> None:
    outcome_of(XOR, seed)


def case_moons(seed: int) -> None:
    outcome_of(MOONS, seed)


def case_same_seed(seed: int) -> None:
    """Two runs with one seed, and a third with another."""
    short = MOONS.shortened(2)
    for name, own in (("first", seed), ("second", seed), ("other", seed + 1)):
        model, losses = learned(short, own)
        weights = [p.data.reshape(-1) for p in model.parameters()]
        array(f"{name}_weights", np.concatenate(weights), "f64")
        numbers(f"{name}_losses", losses, "f64")


CASES = {
    "batches": case_batches,
    "shuffled": case_shuffled,
    "loader_refused": case_loader_refused,
    "step": case_step,
    "vector": case_vector,
    "finite": case_finite,
    "clip_step": case_clip,
    "ema_step": case_ema,
    "evaluate": case_evaluate,
    "evaluate_error": case_evaluate_error,
    "xor": case_xor,
    "moons": case_moons,
    "same_seed": case_same_seed,
}
