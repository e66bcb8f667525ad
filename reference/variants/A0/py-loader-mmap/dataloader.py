"""dataloader.py on the module mmap: every shard stays mapped, batches are gathered by index."""
import glob
import mmap
import os
import struct

import numpy as np

HEADER_WORDS, HEADER_BYTES = 256, 1024
SHARD_MAGIC, EVAL_MAGIC, DATA_VERSION = 20240520, 20240522, 1
EXAMPLE_MARK, EXAMPLE_HEAD, NUM_COMPLETIONS = 0xFFFF, 5, 4
FIRST_SEED = 42


def read_header(path, magic):
    with open(path, "rb") as f:
        head = f.read(HEADER_BYTES)
    if len(head) != HEADER_BYTES:
        raise ValueError("%s has only %d bytes" % (path, len(head)))
    words = list(struct.unpack("<256i", head))
    for word, want, what in zip(words, (magic, DATA_VERSION), ("magic", "version")):
        if word != want:
            raise ValueError("%s: %s %d instead of %d" % (path, what, word, want))
    if words[2] <= 0:
        raise ValueError("%s counts %d" % (path, words[2]))
    return words


def mapped(path):
    with open(path, "rb") as f:
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)


def read_shard(path):
    count = read_header(path, SHARD_MAGIC)[2]
    whole = mapped(path)
    if len(whole) - HEADER_BYTES != 2 * count:
        raise ValueError("%s: %d bytes for %d tokens" % (path, len(whole), count))
    return np.frombuffer(whole, np.dtype("<u2"), count, HEADER_BYTES)


def random_permutation(data, rng):
    n = len(data)
    while n > 1:
        j = int(rng.randint(0, 1 << 32, dtype=np.uint32)) % n
        n -= 1
        data[n], data[j] = data[j], data[n]


def check_place(B, T, rank, world):
    if B < 1 or T < 1 or world < 1:
        raise ValueError("B %d, T %d, world %d" % (B, T, world))
    if rank < 0 or rank >= world:
        raise ValueError("rank %d of %d" % (rank, world))


class DistributedDataLoader:
    def __init__(self, pattern, B, T, rank=0, world=1, shuffle=False):
        check_place(B, T, rank, world)
        vars(self).update(B=B, T=T, rank=rank, world=world, shuffle=shuffle)
        self.files = glob.glob(pattern)
        self.files.sort()
        if len(self.files) == 0:
            raise FileNotFoundError("no file " + pattern)
        self._all = {path: read_shard(path) for path in self.files}
        self._stride = world * B * T
        for path, tokens in self._all.items():
            if tokens.size <= self._stride:
                raise ValueError("%s: %d tokens" % (path, tokens.size))
        self.num_tokens = sum(map(len, self._all.values()))
        # One window of tokens for each row, one longer than a row: x and y are cut from it.
        self._window = np.arange(B)[:, None] * T + np.arange(T + 1) + rank * B * T
        self.rng = np.random.RandomState(FIRST_SEED + rank)
        self.shard_order = [i for i, _ in enumerate(self.files)]
        self.sample_order = []
        self.reset()

    def load_shard(self, position):
        self.current_shard = position
        self.current_sample = 0
        self.tokens = self._all[self.files[self.shard_order[position]]]
        self.num_samples = (self.tokens.size - 1) // self._stride

    def prepare_samples(self):
        self.sample_order = [*range(self.num_samples)]
        random_permutation(self.sample_order, self.rng)

    def _begin(self, position):
        self.load_shard(position)
        if self.shuffle:
            self.prepare_samples()

    def reset(self):
        if self.shuffle:
            random_permutation(self.shard_order, self.rng)
        self._begin(0)

    def advance(self):
        following = self.current_shard + 1
        if following < len(self.files):
            self._begin(following)
        else:
            self.reset()

    def next_batch(self):
        if self.current_sample == self.num_samples:
            self.advance()
        i = self.current_sample
        self.current_sample = i + 1
        start = (self.sample_order[i] if self.shuffle else i) * self._stride
        rows = self.tokens[self._window + start].astype(np.int32)
        return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, 1:])

    def resume(self, shard, sample):
        if shard not in range(len(self.files)):
            raise IndexError("shard %d" % shard)
        self.load_shard(shard)
        if sample not in range(self.num_samples + 1):
            raise IndexError("sample %d" % sample)
        self.current_sample = sample


class EvalLoader:
    """Knows from the beginning where each of its examples starts."""

    def __init__(self, path, B, T, rank=0, world=1):
        check_place(B, T, rank, world)
        if B < 4:
            raise ValueError("B %d" % B)
        vars(self).update(path=path, B=B, T=T, rank=rank, world=world)
        self.num_examples = read_header(path, EVAL_MAGIC)[2]
        whole = mapped(path)
        self.words = np.frombuffer(whole, "<u2", (len(whole) - 1024) // 2, 1024)
        each = (self.num_examples + world - 1) // world
        self.num_batches = (each + B // 4 - 1) // (B // 4)
        self.start_example, self.end_example = (
            min(self.num_examples, each * r) for r in (rank, rank + 1)
        )
        self.clear()
        self._starts = [0]
        self.reset()

    def clear(self):
        self.inputs, self.targets = np.zeros((2, self.B, self.T), np.int32)
        self.mask = self.inputs.astype(np.bool_)
        self.label = np.zeros(self.B // 4, np.int32)

    def bad(self, what):
        return ValueError("%s: example %d %s" % (self.path, self.current_example, what))

    def read_head(self):
        at = self.at
        if at + EXAMPLE_HEAD >= self.words.size:
            raise self.bad("is behind the end")
        mark, size, _, label, count = self.words[at : at + EXAMPLE_HEAD].tolist()
        if mark != EXAMPLE_MARK:
            raise self.bad("starts with %d" % mark)
        if size % 2 == 1 or size <= 2 * EXAMPLE_HEAD or at + size // 2 > self.words.size:
            raise self.bad("has %d bytes" % size)
        return size // 2, label, count

    def reset(self):
        self.current_example = len(self._starts) - 1
        while self.current_example < self.start_example:
            self.at = self._starts[-1]
            self._starts.append(self.at + self.read_head()[0])
            self.current_example += 1
        self.current_example = self.start_example
        self.at = self._starts[self.start_example]

    def next_example(self, i):
        size, label, count = self.read_head()
        if count != 4:
            raise self.bad("has %d completions" % count)
        if label > 3:
            raise self.bad("has label %d" % label)
        words = iter(self.words[self.at + EXAMPLE_HEAD : self.at + size].tolist())
        try:
            context, *completions = ([next(words) for _ in range(next(words))] for _ in range(5))
        except RuntimeError as short:  # what a StopIteration becomes
            raise self.bad("is too short") from short
        for c, completion in enumerate(completions):
            row = np.array(context + completion)
            if not completion:
                raise self.bad("has an empty completion")
            if len(row) > self.T:
                raise self.bad("of %d tokens is too long for %d" % (len(row), self.T))
            inputs, targets, mask = (a[4 * i + c] for a in (self.inputs, self.targets, self.mask))
            inputs[: row.size] = row
            targets[: row.size - 1] = row[1:]
            place = np.arange(self.T)
            mask |= (place + 1 >= len(context)) & (place + 1 < row.size)
        self.label[i] = label
        self.at += size
        self.current_example += 1

    def next_batch(self):
        self.clear()
        i = 0
        while i < self.B // 4 and self.current_example < self.end_example:
            self.next_example(i)
            i += 1
        return self.inputs, self.targets

    def stat_losses(self, losses):
        right = 0
        for i, label in enumerate(self.label.tolist()):
            rows = range(4 * i, 4 * i + 4)
            if any(self.mask[row].any() for row in rows):
                means = [losses[row][self.mask[row]].mean(dtype=float) for row in rows]
                right += means.index(min(means)) == label
        return right
