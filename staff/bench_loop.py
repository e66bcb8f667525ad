"""Times the training runs of `python -m llmc` beside the same runs in PyTorch."""

from __future__ import annotations

import contextlib
import io
import math
import time
from pathlib import Path
from statistics import median

import numpy as np

from autograder.files import scratch_folder
from autograder.rubric import ROOT
from reference.llmc import __main__ as llmc
from reference.llmc.bigram import BigramLM, floor_nll, pair_counts
from reference.llmc.mlp import MultilayerPerceptron
from reference.llmc.rand import PCG32
from staff.figures import Figure

MB = 10**6
EPOCHS, HIDDEN = 30, 64
DIGITS = ROOT / ".data" / "digits.npz"
TIMES = 2.0  # of PyTorch's time, at most


def measure(rounds: int) -> list[Figure]:
    """Each round trains the bigram on 1 MB of plays and the digits, here and there. Raises
    FileNotFoundError before `make data`."""
    with scratch_folder(ROOT / "build") as folder:
        text = folder / "plays.txt"
        text.write_bytes((ROOT / ".data" / "shakespeare.txt").read_bytes()[:MB])
        ids = llmc.read_bytes(text)
        counts, data = pair_counts(ids, llmc.VOCAB), llmc.digits(DIGITS)
        table, digits = [], []
        for _ in range(rounds + 1):
            words = f"bigram --method autograd --data {text} --out {folder / 'bigram'}"
            table.append((_ours(words), _counted(text) + _bigram_in_torch(counts)))
            words = f"mlp --data {DIGITS} --ckpt {folder} --hidden {HIDDEN} --epochs {EPOCHS}"
            digits.append((_ours(words), _digits_in_torch(data)))
        gap = BigramLM.load(folder / "bigram").nll(ids) - floor_nll(counts)
    return [
        *_pair("full-batch bigram, 1 MB of plays", table[1:], 30.0),
        Figure("full-batch bigram: above the floor", (1000 * gap,), "10^-3 nats", 1.0),
        *_pair("digits, 64 hidden units, 30 epochs", digits[1:], 10.0),
    ]


def _pair(name: str, pairs: list[tuple[float, float]], most: float) -> list[Figure]:
    torchs = tuple(their for _, their in pairs)
    limit = min(most, TIMES * median(torchs))
    ours = tuple(our for our, _ in pairs)
    return [Figure(f"{name}: PyTorch", torchs, "s"), Figure(f"{name}: ours", ours, "s", limit)]


def _ours(words: str) -> float:
    """Seconds that `python -m llmc train ...` takes once it has started."""
    args = llmc.parser().parse_args(["train", *words.split()])
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        args.run(args)
    return time.perf_counter() - started


def _counted(text: Path) -> float:
    """Seconds for what both begin and end with: counting, and the loss on the text."""
    started = time.perf_counter()
    ids = llmc.read_bytes(text)
    floor_nll(pair_counts(ids, llmc.VOCAB))
    BigramLM(np.zeros((llmc.VOCAB, llmc.VOCAB), np.float32)).nll(ids)
    return time.perf_counter() - started


def _bigram_in_torch(counts: np.ndarray) -> float:
    """The same loss, counted pairs and all, by as many steps of its AdamW."""
    import torch

    started = time.perf_counter()
    shares = torch.tensor(counts / counts.sum(), dtype=torch.float32)
    table = torch.zeros(counts.shape, requires_grad=True)
    optimiser = torch.optim.AdamW([table], weight_decay=0.0)
    for step in range(llmc.BIGRAM_STEPS):
        optimiser.param_groups[0]["lr"] = llmc.BIGRAM_RATE * (1 - step / llmc.BIGRAM_STEPS)
        optimiser.zero_grad()
        loss = (torch.logsumexp(table, 1) * shares.sum(1)).sum() - (table * shares).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([table], math.inf)
        optimiser.step()
        loss.item()
    return time.perf_counter() - started


def _digits_in_torch(data: llmc.Arrays) -> float:
    """The same weights, batches in the same order, clipping and AdamW."""
    import torch

    started = time.perf_counter()
    mean, std = data["x_train"].mean(axis=0), data["x_train"].std(axis=0)
    std[std == 0] = 1
    x, y = torch.tensor((data["x_train"] - mean) / std), torch.tensor(data["y_train"])
    first = MultilayerPerceptron((64, HIDDEN, llmc.CLASSES)).state_dict()
    w0, b0, w1, b1 = (torch.tensor(array, requires_grad=True) for array in first.values())
    parameters = [w0, b0, w1, b1]
    groups = [{"params": [w0, w1]}, {"params": [b0, b1], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=llmc.RATE, weight_decay=llmc.DECAY)
    rng = PCG32(0).substream("shuffle")
    for _ in range(EPOCHS):
        order = list(range(len(x)))
        rng.shuffle(order)
        for at in range(0, len(x) - llmc.BATCH + 1, llmc.BATCH):
            rows = order[at : at + llmc.BATCH]
            optimiser.zero_grad()
            logits = torch.relu(x[rows] @ w0.T + b0) @ w1.T + b1
            loss = torch.nn.functional.cross_entropy(logits, y[rows])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, llmc.CLIP)
            optimiser.step()
            (logits.argmax(1) == y[rows]).float().mean().item(), loss.item()
    return time.perf_counter() - started
