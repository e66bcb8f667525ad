"""Trains the small models of this course, samples from them, and measures them. Given.

    python -m llmc train bigram --method autograd --data TEXT --out FOLDER
    python -m llmc train mlp --data .data/digits.npz --ckpt FOLDER
    python -m llmc generate --model FOLDER --seed 1 --tokens 200 --temperature 0.8
    python -m llmc eval --model FOLDER --data FILE

A folder holds model.safetensors, config.json and, after training, metrics.jsonl: a line a step of
the bigram, and a line an epoch of the perceptron.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import autograd as ad
from .autograd import Tensor
from .bigram import BigramLM, BigramLogits, counted_loss, floor_nll, pair_counts
from .loop import Batch, DataLoader, evaluate, train_step
from .mlp import MultilayerPerceptron
from .model import Module
from .optim import EMA, AdamW, decay_groups
from .rand import PCG32

VOCAB = 256  # of the bigram: bytes
NEWLINE = 10  # what a text of bytes begins after
CLASSES = 10
BIGRAM_STEPS, BIGRAM_RATE = 200, 1.0  # AdamW's, falling to 0 in a straight line
BATCH, RATE, DECAY, CLIP, BETA = 32, 3e-3, 0.01, 1.0, 0.9  # the perceptron's

Arrays = dict[str, np.ndarray]


# ---------------------------------------------------------------- what is seen of a run


class Journal:
    """Keeps a run's metrics, writes metrics.jsonl and a curve, and says how far it is: in place on
    a terminal, else ten lines in all. Raises ValueError where no curve can be drawn."""

    def __init__(self, folder: Path, unit: str, of: int, plot: Path | None) -> None:
        if plot is not None and importlib.util.find_spec("matplotlib") is None:
            raise ValueError("--plot wants matplotlib: run `make plot` once")
        if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"--plot {plot}: want a name that ends in .png, .svg or .pdf")
        self.folder, self.unit, self.of, self.picture = folder, unit, of, plot
        self.entries: list[dict[str, float]] = []
        self.started = time.perf_counter()

    def add(self, metrics: dict[str, float]) -> None:
        self.entries.append({self.unit: len(self.entries) + 1, **metrics})
        done, spent = len(self.entries), time.perf_counter() - self.started
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        line = f"{self.unit} {done:4d} of {self.of}  {shown}  {done / spent:.1f} {self.unit}s/s"
        in_place = sys.stdout.isatty()
        if in_place:
            print(f"\r\033[K{line[:79]}", end="\n" if done == self.of else "", flush=True)
        elif done % max(1, self.of // 10) == 0 or done == self.of:
            print(line, flush=True)

    def write(self, title: str) -> None:
        lines = "".join(json.dumps(entry) + "\n" for entry in self.entries)
        write(self.folder / "metrics.jsonl", lines.encode())
        if self.picture is not None:
            self.plot(self.picture, title)

    def plot(self, path: Path, title: str) -> None:
        """The loss over time as a picture; matplotlib is asked for only here."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        at = [entry[self.unit] for entry in self.entries]
        for name, style in (("loss", "-"), ("test_loss", "--"), ("floor", ":")):
            if name in self.entries[0]:
                axes.plot(at, [entry[name] for entry in self.entries], style, label=name)
        axes.set(xlabel=self.unit, ylabel="loss (nats)", title=title)
        axes.legend()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        print(f"wrote {path}")


def write(path: Path, content: bytes) -> None:
    """Writes a file beside its place, then renames it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_bytes(content)
    beside.replace(path)


# ---------------------------------------------------------------- the bigram


def read_bytes(path: Path) -> NDArray[np.uint8]:
    return np.frombuffer(path.read_bytes(), np.uint8)


def train_bigram(args: argparse.Namespace) -> None:
    ids = read_bytes(args.data)
    counts = pair_counts(ids, VOCAB)
    journal = Journal(args.out, "step", BIGRAM_STEPS, args.plot)
    if args.method == "counts":
        if args.plot is not None:
            raise ValueError("--plot is a curve: counting has no steps, --method autograd has")
        lm = BigramLM.from_counts(ids, VOCAB)
        lm.save(args.out)
    else:
        lm = trained_bigram(counts, journal)
        lm.save(args.out)
        journal.write("bigram, every pair of the text at each step")
    print(
        f"{args.method}: {lm.nll(ids):.6f} nats a byte; no bigram is below {floor_nll(counts):.6f}"
    )
    print(f"wrote {args.out}")


def trained_bigram(counts: NDArray[np.int64], journal: Journal) -> BigramLM:
    """A table trained on all pairs at each step."""
    model, floor = BigramLogits(VOCAB), floor_nll(counts)
    optimiser = AdamW(decay_groups(model.parameters(), 0.0))

    def loss_fn(model: Module, batch: Batch) -> Tensor:
        return counted_loss(table, batch["shares"])

    table = model.weight  # all rows of it: there is nothing to look up
    batch = {"shares": (counts / counts.sum()).astype(np.float32)}
    for step in range(BIGRAM_STEPS):
        optimiser.lr = BIGRAM_RATE * (1 - step / BIGRAM_STEPS)
        journal.add({**train_step(model, batch, loss_fn, optimiser), "floor": floor})
    return model.to_lm()


def generate(args: argparse.Namespace) -> None:
    if not args.temperature > 0 or args.tokens < 0:
        raise ValueError("want a --temperature above 0 and --tokens of 0 or more")
    ids = BigramLM.load(args.model).sample(args.start, args.tokens, args.seed, args.temperature)
    if args.ids:
        print(" ".join(map(str, ids)))
    else:
        sys.stdout.buffer.write(bytes(ids) + b"\n")


# ---------------------------------------------------------------- the perceptron


def digits(path: Path) -> Arrays:
    """The arrays of digits.npz. Raises ValueError for a file that is none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (ValueError, AttributeError, zipfile.BadZipFile):
        raise ValueError(f"{path}: no .npz file (`make data` writes digits.npz)") from None
    missing = {"x_train", "y_train", "x_test", "y_test"} - set(found)
    if missing:
        raise ValueError(f"{path}: there is no {min(missing)} in it")
    for part in ("train", "test"):
        x, y = found[f"x_{part}"], found[f"y_{part}"]
        fine = (
            x.ndim == 2 and x.dtype.kind == "f" and y.dtype.kind in "iu" and y.shape == x.shape[:1]
        )
        if not fine or len(x) == 0 or not 0 <= y.min() <= y.max() < CLASSES:
            raise ValueError(f"{path}: x_{part} {x.shape} and y_{part} {y.shape} are no digits")
    return found


def classify(model: Any, batch: Batch) -> tuple[Tensor, dict[str, float]]:
    """Cross-entropy, and the share that is right."""
    logits = model(Tensor(batch["x"]))
    right = float((logits.data.argmax(axis=1) == batch["y"]).mean())
    return ad.CrossEntropy(batch["y"])(logits), {"acc": right}


def train_mlp(args: argparse.Namespace) -> None:
    data = digits(args.data)
    mean, std = data["x_train"].mean(axis=0), data["x_train"].std(axis=0)
    std[std == 0] = 1  # a pixel that is always the same
    sizes = (data["x_train"].shape[1], args.hidden, CLASSES)
    model = MultilayerPerceptron(sizes, dropout=args.dropout, seed=args.seed)
    train, test = (
        {"x": (data[f"x_{part}"] - mean) / std, "y": data[f"y_{part}"]}
        for part in ("train", "test")
    )
    rng = PCG32(args.seed).substream("shuffle")
    loader = DataLoader(train, min(BATCH, len(train["y"])), shuffle=True, rng=rng)
    held_out = DataLoader(test, BATCH, shuffle=False, drop_last=False)
    optimiser, ema = AdamW(decay_groups(model.parameters(), DECAY), RATE), EMA(BETA)
    journal = Journal(args.ckpt, "epoch", args.epochs, args.plot)
    for _ in range(args.epochs):
        steps = [train_step(model, batch, classify, optimiser, CLIP, ema) for batch in loader]
        found = {name: float(np.mean([step[name] for step in steps])) for name in ("loss", "acc")}
        seen = evaluate(model, held_out, classify)
        journal.add({**found, "test_loss": seen["loss"], "test_acc": seen["acc"]})
    save_mlp(args.ckpt, model, sizes, mean, std)
    journal.write(f"digits, {args.hidden} hidden units")
    print(f"wrote {args.ckpt}")


def save_mlp(
    folder: Path, model: Module, sizes: tuple[int, ...], mean: np.ndarray, std: np.ndarray
) -> None:
    from safetensors.numpy import save

    write(folder / "model.safetensors", save({**model.state_dict(), "mean": mean, "std": std}))
    config = {"tl_arch": "mlp", "sizes": sizes}
    write(folder / "config.json", (json.dumps(config, indent=2) + "\n").encode())


def load_mlp(folder: Path, sizes: list[int]) -> tuple[Module, np.ndarray, np.ndarray]:
    """The model, and the mean and deviation of each of its inputs. Raises ValueError for a folder
    that holds another."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = folder / "model.safetensors"
    try:
        tensors = load(path.read_bytes())
        mean, std = tensors.pop("mean"), tensors.pop("std")
    except (SafetensorError, KeyError):
        raise ValueError(f"{path}: no perceptron that `train mlp` left") from None
    if not isinstance(sizes, list) or len(sizes) < 2 or not all(type(n) is int for n in sizes):
        raise ValueError(f"{folder / 'config.json'}: sizes are {sizes}")
    if min(sizes) < 1:
        raise ValueError(f"{folder / 'config.json'}: sizes are {sizes}")
    model = MultilayerPerceptron(sizes)
    model.load_state_dict(tensors)
    return model, mean, std


def read_config(folder: Path) -> dict[str, Any]:
    """What config.json says. Raises ValueError unless it is of one of our models."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: no JSON") from None
    if not isinstance(config, dict) or config.get("tl_arch") not in ("bigram", "mlp"):
        raise ValueError(f"{path}: tl_arch is neither bigram nor mlp")
    return config


def measure(args: argparse.Namespace) -> None:
    config = read_config(args.model)
    if config["tl_arch"] == "bigram":
        ids = read_bytes(args.data)
        print(f"{BigramLM.load(args.model).nll(ids):.6f} nats a byte, {len(ids)} bytes")
        return
    model, mean, std = load_mlp(args.model, config.get("sizes", []))
    data = digits(args.data)
    test = {"x": (data["x_test"] - mean) / std, "y": data["y_test"]}
    found = evaluate(model, DataLoader(test, BATCH, shuffle=False, drop_last=False), classify)
    print(f"loss {found['loss']:.6f}, accuracy {found['acc']:.4f}, {found['n']} digits")


# ---------------------------------------------------------------- the command line


def positive(word: str) -> int:
    if int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not above 0")
    return int(word)


def share(word: str) -> float:
    if not 0 <= float(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not within [0, 1)")
    return float(word)


def parser() -> argparse.ArgumentParser:
    about = "Trains the small models of this course, samples from them, and measures them."
    top = argparse.ArgumentParser("python -m llmc", description=about)
    verbs = top.add_subparsers(required=True, metavar="VERB")
    models = verbs.add_parser("train", help="train a model").add_subparsers(
        required=True, metavar="MODEL"
    )

    def verb(of: Any, name: str, about: str, run: Callable[[argparse.Namespace], None]) -> Any:
        shown = argparse.ArgumentDefaultsHelpFormatter
        made = of.add_parser(name, help=about, description=about, formatter_class=shown)
        made.set_defaults(run=run)
        return made.add_argument

    add = verb(models, "bigram", "next byte from this byte", train_bigram)
    add("--method", choices=("counts", "autograd"), required=True, help="how it is found")
    add("--data", type=Path, required=True, metavar="TEXT", help="a file of bytes")
    add("--out", type=Path, required=True, metavar="FOLDER", help="where the model goes")
    add("--plot", type=Path, metavar="FILE.png", help="the loss as a picture")

    add = verb(models, "mlp", "handwritten digits", train_mlp)
    add("--data", type=Path, required=True, metavar="FILE.npz", help=".data/digits.npz")
    add("--hidden", type=positive, default=64, help="units of the hidden layer")
    add("--epochs", type=positive, default=30, help="passes over the training set")
    add("--dropout", type=share, default=0.0, help="share of hidden units that is dropped")
    add("--seed", type=int, default=0, help="of weights, order and dropout")
    add("--ckpt", type=Path, required=True, metavar="FOLDER", help="where the model goes")
    add("--plot", type=Path, metavar="FILE.png", help="the losses as a picture")

    add = verb(verbs, "generate", "text from a bigram", generate)
    add("--model", type=Path, required=True, metavar="FOLDER", help="what training left")
    add("--seed", type=int, default=1, help="of the coin")
    add("--tokens", type=int, default=64, help="how many to generate")
    add("--temperature", type=float, default=1.0, help="what logits are divided by, above 0")
    add("--start", type=int, default=NEWLINE, help="the id before the first")
    add("--ids", action="store_true", help="print ids, not text")

    add = verb(verbs, "eval", "the loss of a model on a file", measure)
    add("--model", type=Path, required=True, metavar="FOLDER", help="what training left")
    add("--data", type=Path, required=True, metavar="FILE", help="a text, or digits.npz")
    return top


def main() -> int:
    args = parser().parse_args()
    try:
        args.run(args)
    except NotImplementedError as missing:
        return failed(f"{missing} is not written yet")
    except (OSError, ValueError, FloatingPointError) as fault:
        return failed(str(fault))
    return 0


def failed(what: str) -> int:
    print(f"llmc: {what}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
