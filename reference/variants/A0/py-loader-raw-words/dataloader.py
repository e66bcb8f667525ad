"""dataloader.py with numpy's wide tools: raw words of the generator, windows, masked arrays."""

import glob as files
import os.path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

HEADER_WORDS, HEADER_BYTES, DATA_VERSION = 256, 1024, 1
SHARD_MAGIC, EVAL_MAGIC = 20240520, 20240522
EXAMPLE_MARK, EXAMPLE_HEAD, NUM_COMPLETIONS, FIRST_SEED = 65535, 5, 4, 42
HEADER = np.dtype([("magic", "<i4"), ("version", "<i4"), ("count", "<i4"), ("rest", "<i4", 253)])
HEAD = np.dtype([(name, "<u2") for name in ("mark", "bytes", "index", "label", "count")])


def read_header(path: str, magic: int) -> list[int]:
    if os.path.getsize(path) < HEADER.itemsize:
        raise ValueError(f"{path} ends after {os.path.getsize(path)} bytes")
    head = np.fromfile(path, HEADER, 1)[0]
    wrong = {
        f"magic {head['magic']}": head["magic"] != magic,
        f"version {head['version']}": head["version"] != DATA_VERSION,
        f"count {head['count']}": head["count"] <= 0,
    }
    if any(wrong.values()):
        raise ValueError(f"{path}: " + ", ".join(what for what, so in wrong.items() if so))
    return np.frombuffer(head.tobytes(), "<i4").tolist()


def read_shard(path: str) -> NDArray[np.uint16]:
    count = read_header(path, SHARD_MAGIC)[2]
    try:
        tokens = np.memmap(path, "<u2", mode="r", offset=HEADER_BYTES)
    except ValueError as odd:
        raise ValueError(f"{path}, said to have {count} tokens: {odd}") from odd
    if tokens.shape != (count,):
        raise ValueError(f"{path} has {tokens.size} tokens, said to have {count}")
    return tokens


def random_permutation(data: list[int], rng: np.random.RandomState) -> None:
    if len(data) < 2:
        return
    words = np.frombuffer(rng.bytes(4 * (len(data) - 1)), "<u4")
    places = words % np.arange(len(data), 1, -1, dtype=np.uint32)
    for i, j in enumerate(places.tolist(), 1):
        data[-i], data[j] = data[j], data[-i]


def check_place(B: int, T: int, rank: int, world: int) -> None:
    if min(B, T, world) < 1 or not 0 <= rank < world:
        raise ValueError(f"{B=} {T=} {rank=} {world=}".replace("=", " "))


class DistributedDataLoader:
    """Holds windows of the open shard: row s is all that the processes read in sample s."""

    def __init__(self, pattern, B, T, rank=0, world=1, shuffle=False):
        check_place(B, T, rank, world)
        self.B, self.T, self.rank, self.world = B, T, rank, world
        self.shuffle = bool(shuffle)
        self.rng = np.random.RandomState(np.random.MT19937())
        self.rng.seed(FIRST_SEED + rank)
        self.files = sorted(files.iglob(pattern))
        if self.files == []:
            raise FileNotFoundError(f"nothing matches {pattern}")
        counts = np.array([read_shard(name).size for name in self.files])
        if (counts < world * B * T + 1).any():
            raise ValueError(f"{self.files}: {counts} tokens, one is too short")
        self.num_tokens = int(counts.sum())
        self.shard_order = np.arange(len(self.files)).tolist()
        self.sample_order = []
        self.reset()

    def load_shard(self, position):
        name = self.files[self.shard_order[position]]
        self.tokens = read_shard(name)
        self.current_shard, self.current_sample = position, 0
        step = self.world * self.B * self.T
        self.windows = sliding_window_view(np.asarray(self.tokens), step + 1)[::step]
        self.num_samples = len(self.windows)

    def prepare_samples(self):
        order = list(range(self.num_samples))
        random_permutation(order, self.rng)
        self.sample_order = order

    def reset(self):
        if self.shuffle:
            random_permutation(self.shard_order, self.rng)
        self.load_shard(0)
        if self.shuffle:
            self.prepare_samples()

    def advance(self):
        if self.current_shard == len(self.files) - 1:
            self.reset()
        else:
            self.load_shard(self.current_shard + 1)
            if self.shuffle:
                self.prepare_samples()

    def next_batch(self):
        if not self.current_sample < self.num_samples:
            self.advance()
        row = self.sample_order[self.current_sample] if self.shuffle else self.current_sample
        self.current_sample += 1
        size = self.B * self.T
        mine = self.windows[row, self.rank * size : (self.rank + 1) * size + 1]
        x, y = np.lib.stride_tricks.as_strided(
            mine, (2, self.B, self.T), (2, 2 * self.T, 2), writeable=False
        ).astype(np.int32)
        return x, y

    def resume(self, shard, sample):
        if not -1 < shard < len(self.files):
            raise IndexError(f"there is no shard {shard}")
        self.load_shard(shard)
        if not -1 < sample < self.num_samples + 1:
            raise IndexError(f"there is no sample {sample} in shard {shard}")
        self.current_sample = sample


class EvalLoader:
    def __init__(self, path, B, T, rank=0, world=1):
        check_place(B, T, rank, world)
        if B // NUM_COMPLETIONS == 0:
            raise ValueError(f"a batch of {B} rows")
        self.path, self.B, self.T, self.rank, self.world = path, B, T, rank, world
        self.num_examples = read_header(path, EVAL_MAGIC)[2]
        self.words = np.fromfile(path, "<u2", offset=HEADER_BYTES)
        share = int(np.ceil(self.num_examples / world))
        self.num_batches = int(np.ceil(share / (B // NUM_COMPLETIONS)))
        bounds = np.clip([rank * share, (rank + 1) * share], 0, self.num_examples)
        self.start_example, self.end_example = bounds.tolist()
        self.clear()
        self.reset()

    def clear(self):
        self.inputs = np.zeros((self.B, self.T), np.int32)
        self.targets = np.zeros_like(self.inputs)
        self.mask = np.zeros_like(self.inputs, np.bool_)
        self.label = np.zeros(self.B // NUM_COMPLETIONS, np.int32)

    def bad(self, what):
        return ValueError(f"{self.path}: example {self.current_example} {what}")

    def read_head(self):
        rest = self.words[self.at :]
        if rest.size <= EXAMPLE_HEAD:
            raise self.bad("is not there")
        mark, size, _, label, count = rest[:EXAMPLE_HEAD].copy().view(HEAD)[0].item()
        if mark != EXAMPLE_MARK:
            raise self.bad(f"has mark {mark}")
        if size % 2 or not EXAMPLE_HEAD < size // 2 <= rest.size:
            raise self.bad(f"has {size} bytes of {rest.nbytes}")
        return size // 2, label, count

    def reset(self):
        self.at, self.current_example = 0, 0
        for _ in range(self.start_example):
            size, _, _ = self.read_head()
            self.at += size
            self.current_example += 1

    def next_example(self, i):
        size, label, count = self.read_head()
        if (label < count == NUM_COMPLETIONS) is False:
            raise self.bad(f"has {count} completions, {label} is right")
        body = self.words[self.at + EXAMPLE_HEAD : self.at + size]
        starts = [0]
        for _ in range(NUM_COMPLETIONS + 1):
            if starts[-1] >= body.size:
                raise self.bad("has too few words")
            starts.append(starts[-1] + 1 + int(body[starts[-1]]))
        if starts[-1] > body.size or 1 in np.diff(starts[1:]):
            raise self.bad("has too few words, or an empty completion")
        context, *completions = [body[a + 1 : b] for a, b in zip(starts, starts[1:])]
        for row, completion in zip(range(4 * i, 4 * i + 4), completions):
            tokens = np.hstack((context, completion)).astype(np.int32)
            if tokens.size > self.T:
                raise self.bad(f"has {tokens.size} tokens, more than {self.T}")
            self.inputs[row] = np.pad(tokens, (0, self.T - tokens.size))
            self.targets[row] = np.append(self.inputs[row, 1:], 0)
            self.mask[row, : tokens.size - 1] = np.arange(1, tokens.size) >= context.size
        self.label[i], self.at = label, self.at + size
        self.current_example += 1

    def next_batch(self):
        self.clear()
        count = min(len(self.label), self.end_example - self.current_example)
        list(map(self.next_example, range(count)))
        return self.inputs, self.targets

    def stat_losses(self, losses):
        rows = 4 * len(self.label)
        table = np.ma.masked_array(losses.astype(float), ~self.mask)[:rows]
        means = table.mean(1).reshape(-1, 4)
        there = ~np.ma.getmaskarray(means).all(1)
        return int(np.count_nonzero((means.argmin(1, fill_value=np.inf) == self.label) & there))
