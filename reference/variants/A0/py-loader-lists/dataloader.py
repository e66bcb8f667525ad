"""dataloader.py with Python's own files, arrays and lists; numpy only where the contract says so."""

from __future__ import annotations

import array
import fnmatch
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

HEADER_WORDS = 256
HEADER_BYTES = 4 * HEADER_WORDS
SHARD_MAGIC = 20240520
EVAL_MAGIC = 20240522
DATA_VERSION = 1
EXAMPLE_MARK = 65535
EXAMPLE_HEAD = 5
NUM_COMPLETIONS = 4
FIRST_SEED = 42


def ints(file: BinaryIO, code: str, count: int) -> list[int]:
    found = array.array(code)
    raw = file.read(count * found.itemsize)
    found.frombytes(raw[: len(raw) // found.itemsize * found.itemsize])
    if sys.byteorder == "big":
        found.byteswap()
    return found.tolist()


def read_header(path: str, magic: int) -> list[int]:
    with Path(path).open("rb") as file:
        header = ints(file, "i", HEADER_WORDS)
    match header:
        case [found, version, count, *rest] if len(rest) == 253:
            if found != magic:
                raise ValueError(f"{path} is of kind {found}, not {magic}")
            if version != DATA_VERSION:
                raise ValueError(f"{path} is of version {version}")
            if count < 1:
                raise ValueError(f"{path} holds {count}")
            return header
        case _:
            raise ValueError(f"{path}: {len(header)} words are no header")


def read_shard(path: str) -> np.ndarray:
    ntok = read_header(path, SHARD_MAGIC)[2]
    words = np.memmap(path, np.uint8, "c")[HEADER_BYTES:]
    if len(words) != 2 * ntok:
        raise ValueError(f"{path}: {len(words)} bytes of tokens, the header says {ntok} tokens")
    return words.view("<u2")


def random_permutation(data: list[int], rng: np.random.RandomState) -> None:
    for i in reversed(range(1, len(data))):
        word = int(rng.randint(0, 2**32, size=1, dtype=np.uint32)[0])
        data[i], data[word % (i + 1)] = data[word % (i + 1)], data[i]


def check_place(B: int, T: int, rank: int, world: int) -> None:
    for name, value in {"B": B, "T": T, "world": world}.items():
        if value <= 0:
            raise ValueError(f"{name}={value}")
    if rank not in range(world):
        raise ValueError(f"rank={rank}, world={world}")


class DistributedDataLoader:
    def __init__(self, pattern, B, T, rank=0, world=1, shuffle=False) -> None:
        check_place(B, T, rank, world)
        self.B, self.T, self.rank, self.world, self.shuffle = B, T, rank, world, shuffle
        folder, name = os.path.split(pattern)
        listing = sorted(fnmatch.filter(os.listdir(folder or "."), name))
        self.files = [os.path.join(folder, found) for found in listing]
        if not self.files:
            raise FileNotFoundError(2, "no such shard", pattern)
        self.num_tokens = 0
        for path in self.files:
            ntok = len(read_shard(path))
            if ntok < world * B * T + 1:
                raise ValueError(f"{path} has {ntok} tokens, that is less than a batch and one")
            self.num_tokens += ntok
        self.rng = np.random.RandomState(seed=FIRST_SEED + rank)
        self.shard_order = list(range(len(self.files)))
        self.sample_order = []
        self.reset()

    def load_shard(self, position: int) -> None:
        self.tokens = read_shard(self.files[self.shard_order[position]])
        self.current_shard, self.current_sample = position, 0

    @property
    def num_samples(self) -> int:
        return (len(self.tokens) - 1) // (self.world * self.B * self.T)

    def prepare_samples(self) -> None:
        self.sample_order = []
        self.sample_order.extend(range(self.num_samples))
        random_permutation(self.sample_order, self.rng)

    def reset(self) -> None:
        if self.shuffle:
            random_permutation(self.shard_order, self.rng)
        self.load_shard(0)
        self.shuffle and self.prepare_samples()

    def advance(self) -> None:
        try:
            self.load_shard(self.current_shard + 1)
        except IndexError:
            return self.reset()
        self.shuffle and self.prepare_samples()

    def next_batch(self):
        while self.current_sample >= self.num_samples:
            self.advance()
        n = self.B * self.T
        sample = self.current_sample
        sample = self.sample_order[sample] if self.shuffle else sample
        at = n * (self.rank + self.world * sample)
        words = self.tokens[at : at + n + 1].tolist()
        self.current_sample += 1
        rows = range(0, n, self.T)
        x = [words[i : i + self.T] for i in rows]
        y = [words[i + 1 : i + 1 + self.T] for i in rows]
        return np.array(x, np.int32), np.array(y, np.int32)

    def resume(self, shard: int, sample: int) -> None:
        if shard < 0 or shard >= len(self.files):
            raise IndexError(f"shard {shard} does not exist")
        self.load_shard(shard)
        if sample < 0 or sample > self.num_samples:
            raise IndexError(f"sample {sample} does not exist")
        self.current_sample = sample


@dataclass
class Example:
    label: int
    context: list[int]
    completions: list[list[int]]


class EvalLoader:
    def __init__(self, path, B, T, rank=0, world=1) -> None:
        check_place(B, T, rank, world)
        if B < NUM_COMPLETIONS:
            raise ValueError(f"B={B} is less than an example")
        self.path, self.B, self.T, self.rank, self.world = path, B, T, rank, world
        self.num_examples = read_header(path, EVAL_MAGIC)[2]
        n = (self.num_examples - 1) // world + 1
        self.num_batches = (n - 1) // (B // NUM_COMPLETIONS) + 1
        mine = range(self.num_examples)[rank * n : (rank + 1) * n]
        self.start_example = mine.start
        self.end_example = mine.stop
        self.clear()
        self.reset()

    @cached_property
    def words(self) -> np.ndarray:
        with open(self.path, "rb") as file:
            file.seek(HEADER_BYTES)
            return np.array(ints(file, "H", os.path.getsize(self.path)), np.uint16)

    def clear(self) -> None:
        shape = (self.B, self.T)
        self.inputs = np.zeros(shape, np.int32)
        self.targets = np.zeros(shape, np.int32)
        self.mask = np.zeros(shape, bool)
        self.label = np.zeros(self.B // NUM_COMPLETIONS, np.int32)

    def bad(self, what: str) -> ValueError:
        return ValueError(f"{self.path}: example {self.current_example} {what}")

    def read_head(self) -> tuple[int, int, int]:
        left = self.words[self.at :].tolist()
        if len(left) <= EXAMPLE_HEAD or left[0] != EXAMPLE_MARK:
            raise self.bad(f"does not start with the mark but with {left[:1]}")
        if left[1] & 1 or not 2 * EXAMPLE_HEAD < left[1] <= 2 * len(left):
            raise self.bad(f"cannot have {left[1]} bytes")
        return left[1] >> 1, left[3], left[4]

    def reset(self) -> None:
        self.at = 0
        for self.current_example in range(self.start_example):
            self.at += self.read_head()[0]
        self.current_example = self.start_example

    def parsed(self) -> Example:
        size, label, count = self.read_head()
        if count != NUM_COMPLETIONS or label >= NUM_COMPLETIONS:
            raise self.bad(f"is of another kind: label {label}, {count} completions")
        words = self.words[self.at + EXAMPLE_HEAD : self.at + size].tolist()
        lists = []
        while len(lists) < 1 + NUM_COMPLETIONS:
            if not words or words[0] >= len(words) or (lists and words[0] == 0):
                raise self.bad("ends too early")
            lists.append(words[1 : 1 + words[0]])
            words = words[1 + words[0] :]
        longest = len(lists[0]) + max(map(len, lists[1:]))
        if longest > self.T:
            raise self.bad(f"is {longest} long, longer than {self.T}")
        self.at += size
        return Example(label, lists[0], lists[1:])

    def next_example(self, i: int) -> None:
        example = self.parsed()
        self.label[i] = example.label
        for row, completion in enumerate(example.completions, NUM_COMPLETIONS * i):
            for t, token in enumerate(example.context + completion):
                self.inputs[row][t] = token
                if t:
                    self.targets[row][t - 1] = token
                    self.mask[row][t - 1] = t >= len(example.context)
        self.current_example += 1

    def next_batch(self):
        self.clear()
        for i in range(self.B // NUM_COMPLETIONS):
            if self.current_example == self.end_example:
                break
            self.next_example(i)
        return self.inputs, self.targets

    def stat_losses(self, losses) -> int:
        return sum(
            self.answer(losses, i) == label for i, label in enumerate(self.label.tolist())
        )

    def answer(self, losses, i: int) -> int | None:
        """The completion with the lowest mean; None where there is no example."""
        found = []
        for completion in range(NUM_COMPLETIONS):
            row = NUM_COMPLETIONS * i + completion
            of_row = [x for x, m in zip(losses[row].tolist(), self.mask[row].tolist()) if m]
            if of_row:
                found.append((sum(of_row) / len(of_row), completion))
        return min(found)[1] if found else None
