"""Batches for training from shards of tokens, and batches for evaluation from multiple choice.

The files are those of dataloader.h, which describes them; the batches are the same, too: same
files, same place among the processes, same order, shuffled or not.
"""

import numpy as np
from numpy.typing import NDArray

HEADER_WORDS = 256  # int32 words at the start of every file
HEADER_BYTES = 4 * HEADER_WORDS
SHARD_MAGIC = 20240520
EVAL_MAGIC = 20240522
DATA_VERSION = 1
EXAMPLE_MARK = 65535
EXAMPLE_HEAD = 5  # words in front of an example's context
NUM_COMPLETIONS = 4
FIRST_SEED = 42  # of the shuffle of process 0

Tokens = NDArray[np.uint16]
Ints = NDArray[np.int32]


def read_header(path: str, magic: int) -> list[int]:
    """The 256 words of a file's header.

    Raises ValueError, with path and value, for a file too short for one, another magic number, a
    version other than 1, and a count (word 2) below 1.
    """
    # TODO (A0): read_header
    # HINT: np.fromfile reads as many words as there are, which may be fewer than it is asked for.
    # BEGIN SOLUTION
    header: list[int] = np.fromfile(path, "<i4", HEADER_WORDS).tolist()
    if len(header) < HEADER_WORDS:
        raise ValueError(f"{path}: {len(header)} words, a header has {HEADER_WORDS}")
    if header[0] != magic:
        raise ValueError(f"{path}: bad magic {header[0]}, want {magic}")
    if header[1] != DATA_VERSION:
        raise ValueError(f"{path}: bad version {header[1]}, want {DATA_VERSION}")
    if header[2] < 1:
        raise ValueError(f"{path}: a count of {header[2]}, want at least 1")
    return header
    # END SOLUTION


def read_shard(path: str) -> Tokens:
    """The tokens of a shard, (ntok,) uint16, mapped into memory: only what is used is read.

    Raises ValueError for a bad header (see read_header) and for a file that holds more or fewer
    tokens than its header says.
    """
    # TODO (A0): read_shard
    # HINT: np.memmap takes an offset; a count proves nothing until the file's size agrees.
    # BEGIN SOLUTION
    import os

    ntok = read_header(path, SHARD_MAGIC)[2]
    size, wanted = os.path.getsize(path), HEADER_BYTES + 2 * ntok
    if size != wanted:
        raise ValueError(f"{path}: {size} bytes, but {ntok} tokens need {wanted}")
    return np.memmap(path, np.dtype("<u2"), "r", HEADER_BYTES, (ntok,))
    # END SOLUTION


def random_permutation(data: list[int], rng: np.random.RandomState) -> None:
    """Shuffles in place, as rand.h does: for i = n - 1 down to 1, swap i with j = word mod (i + 1).

    A word is the next raw 32 bits of MT19937: `rng.randint(0, 2**32, dtype=np.uint32)`.
    """
    # TODO (A0): random_permutation
    # HINT: rng.shuffle spends other draws; one randint with a size gives many words, much faster.
    # BEGIN SOLUTION
    draws = max(len(data) - 1, 0)
    words = rng.randint(0, 2**32, size=draws, dtype=np.uint32).tolist()
    for i, word in zip(range(len(data) - 1, 0, -1), words, strict=True):
        j = word % (i + 1)
        data[i], data[j] = data[j], data[i]
    # END SOLUTION


def check_place(B: int, T: int, rank: int, world: int) -> None:
    """Raises ValueError unless B, T and world are positive and rank is one of the world. Given."""
    for name, value in (("B", B), ("T", T), ("world", world)):
        if value < 1:
            raise ValueError(f"{name} is {value}, want at least 1")
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} is outside 0..{world - 1}")


class DistributedDataLoader:
    """Batches of one process out of several, all reading the same stream of tokens.

    A sample is world*B*T tokens, B*T for each process: in sample s of a shard, process r reads the
    B*T + 1 tokens from (s*world + r) * B*T on.
    """

    # a batch, and the place of this process among all
    B: int
    T: int
    rank: int
    world: int
    # all shards together
    files: list[str]  # sorted by name
    num_tokens: int  # in all of them
    # the open shard
    tokens: Tokens  # (ntok,)
    num_samples: int  # (ntok - 1) // (world*B*T)
    # where we are: positions in the two orders
    current_shard: int
    current_sample: int  # the next batch
    # the orders
    shuffle: bool
    rng: np.random.RandomState
    shard_order: list[int]  # index in `files` at each position; 0, 1, ... unless shuffled
    sample_order: list[int]  # sample of the open shard at each position; used only if shuffled

    def __init__(
        self, pattern: str, B: int, T: int, rank: int = 0, world: int = 1, shuffle: bool = False
    ) -> None:
        """Sets every attribute: finds the shards, reads how many tokens each has, seeds `rng` with
        42 + rank (also where nothing is shuffled), starts from the order of the names, and resets.

        Raises FileNotFoundError if no file matches the pattern; ValueError for a shard of fewer
        than world*B*T + 1 tokens, a malformed one, and a bad place (check_place).
        """
        check_place(B, T, rank, world)
        # TODO (A0): DistributedDataLoader.__init__
        # HINT: glob.glob promises no order.
        # BEGIN SOLUTION
        from glob import glob

        self.B, self.T, self.rank, self.world, self.shuffle = B, T, rank, world, shuffle
        self.files = sorted(glob(pattern))
        if not self.files:
            raise FileNotFoundError(f"{pattern}: no file matches (run `make data` first)")
        sizes = [read_shard(path).size for path in self.files]
        least = world * B * T + 1
        if min(sizes) < least:
            path = self.files[sizes.index(min(sizes))]
            raise ValueError(f"{path}: {min(sizes)} tokens, a batch needs {least}")
        self.num_tokens = sum(sizes)
        self.rng = np.random.RandomState(FIRST_SEED + rank)
        self.shard_order = list(range(len(self.files)))
        self.sample_order = []
        self.reset()
        # END SOLUTION

    def load_shard(self, position: int) -> None:
        """Opens the shard at a position of `shard_order`: sets tokens, num_samples and
        current_shard; current_sample is 0. Permutes nothing."""
        # TODO (A0): DistributedDataLoader.load_shard
        # HINT: the last target of the last sample needs a token, too.
        # BEGIN SOLUTION
        self.tokens = read_shard(self.files[self.shard_order[position]])
        self.num_samples = (len(self.tokens) - 1) // (self.world * self.B * self.T)
        self.current_shard, self.current_sample = position, 0
        # END SOLUTION

    def prepare_samples(self) -> None:
        """sample_order: a fresh permutation of the samples of the open shard, drawn from `rng`."""
        # TODO (A0): DistributedDataLoader.prepare_samples
        # HINT: start from 0, 1, ... each time: the next shard may hold another number of samples.
        # BEGIN SOLUTION
        self.sample_order = list(range(self.num_samples))
        random_permutation(self.sample_order, self.rng)
        # END SOLUTION

    def reset(self) -> None:
        """To the first sample of the first shard. Shuffled: shard_order is shuffled further (from
        the order it has), then the first shard is opened and its samples get a fresh permutation,
        in this order."""
        # TODO (A0): DistributedDataLoader.reset
        # HINT: the shard must be open before its samples can be permuted.
        # BEGIN SOLUTION
        if self.shuffle:
            random_permutation(self.shard_order, self.rng)
        self.load_shard(0)
        if self.shuffle:
            self.prepare_samples()
        # END SOLUTION

    def advance(self) -> None:
        """To the first sample of the next shard, with a fresh permutation if shuffled; behind the
        last shard, reset."""
        # TODO (A0): DistributedDataLoader.advance
        # HINT: an epoch ends here, so `reset` already does what the last shard needs.
        # BEGIN SOLUTION
        if self.current_shard + 1 == len(self.files):
            self.reset()
            return
        self.load_shard(self.current_shard + 1)
        if self.shuffle:
            self.prepare_samples()
        # END SOLUTION

    def next_batch(self) -> tuple[Ints, Ints]:
        """Inputs x and targets y, (B,T) int32 each, y one token later; new arrays every time.

        Advances first if the shard has no sample left; afterwards current_sample is one more.
        """
        # TODO (A0): DistributedDataLoader.next_batch
        # HINT: one slice of B*T + 1 tokens; x is all but its last, y all but its first.
        # BEGIN SOLUTION
        if self.current_sample >= self.num_samples:
            self.advance()
        sample = self.current_sample
        if self.shuffle:
            sample = self.sample_order[sample]
        count = self.B * self.T
        start = (sample * self.world + self.rank) * count
        buf = np.asarray(self.tokens[start : start + count + 1]).astype(np.int32)
        self.current_sample += 1
        return buf[:-1].reshape(self.B, self.T), buf[1:].reshape(self.B, self.T)
        # END SOLUTION

    def resume(self, shard: int, sample: int) -> None:
        """Jumps to a sample of a shard, both as positions (see current_shard). No permutation and
        no draw: whoever resumes a shuffled run restores `rng` and the two orders as well.

        `sample` may be num_samples: the end of that shard. Raises IndexError, with the value, for a
        shard or a sample that does not exist.
        """
        # TODO (A0): DistributedDataLoader.resume
        # HINT: two positions, and the shard that belongs to them; Python takes index -1 for good.
        # BEGIN SOLUTION
        if not 0 <= shard < len(self.files):
            raise IndexError(f"no shard {shard} among {len(self.files)}")
        self.load_shard(shard)
        if not 0 <= sample <= self.num_samples:
            raise IndexError(f"no sample {sample} among {self.num_samples} of shard {shard}")
        self.current_sample = sample
        # END SOLUTION


class EvalLoader:
    """Multiple choice: the model answers with the completion whose tokens cost it least on average.

    The four completions of an example stand in four rows of the batch, behind the same context.
    """

    # a batch: B / 4 examples; and the place of this process among all
    B: int
    T: int
    rank: int
    world: int
    # the file
    path: str
    words: Tokens  # all behind the header
    at: int  # index in `words` of the example to be read next
    # counts of examples
    num_examples: int  # in the file
    num_batches: int  # that ceil(num_examples / world) examples need
    start_example: int  # of this process
    end_example: int  # behind its last; equal to start where there is none
    current_example: int
    # the last batch
    inputs: Ints  # (B,T)
    targets: Ints  # (B,T)
    mask: NDArray[np.bool_]  # (B,T) true where the target is a token of a completion
    label: Ints  # (B / 4,) index of the right completion

    def __init__(self, path: str, B: int, T: int, rank: int = 0, world: int = 1) -> None:
        """Sets every attribute (the batch: all 0) and resets. Process r takes examples [r*n,
        (r+1)*n) with n = ceil(num_examples / world), as far as there are any.

        Raises ValueError for B < 4, a bad place (check_place) and a malformed file.
        """
        check_place(B, T, rank, world)
        # TODO (A0): EvalLoader.__init__
        # HINT: the last processes may have fewer examples, or none.
        # BEGIN SOLUTION
        if B < NUM_COMPLETIONS:
            raise ValueError(f"B is {B}, an example needs {NUM_COMPLETIONS} rows")
        self.path, self.B, self.T, self.rank, self.world = path, B, T, rank, world
        self.num_examples = read_header(path, EVAL_MAGIC)[2]
        share = -(-self.num_examples // world)
        self.num_batches = -(-share // (B // NUM_COMPLETIONS))
        self.start_example = min(rank * share, self.num_examples)
        self.end_example = min(self.start_example + share, self.num_examples)
        try:
            self.words = np.memmap(path, np.dtype("<u2"), "r", HEADER_BYTES)
        except ValueError as fault:  # nothing behind the header, or half a word
            raise ValueError(f"{path}: no examples in {self.num_examples}: {fault}") from fault
        self.clear()
        self.reset()
        # END SOLUTION

    def clear(self) -> None:
        """A batch without an example: all 0. Given."""
        self.inputs = np.zeros((self.B, self.T), np.int32)
        self.targets = np.zeros((self.B, self.T), np.int32)
        self.mask = np.zeros((self.B, self.T), np.bool_)
        self.label = np.zeros(self.B // NUM_COMPLETIONS, np.int32)

    def bad(self, what: str) -> ValueError:
        """The error of a malformed example, to be raised. Given."""
        return ValueError(f"{self.path}: example {self.current_example} {what}")

    def read_head(self) -> tuple[int, int, int]:
        """Of the example at `at`: its number of words, its label, its number of completions.

        Raises ValueError unless it starts with the mark and lies within the file.
        """
        # TODO (A0): EvalLoader.read_head
        # HINT: the second word counts bytes, the five words of the head included.
        # BEGIN SOLUTION
        head = self.words[self.at : self.at + EXAMPLE_HEAD].tolist()
        if len(head) < EXAMPLE_HEAD or head[0] != EXAMPLE_MARK:
            raise self.bad(f"starts with {head}, want {EXAMPLE_MARK}")
        size, half = divmod(head[1], 2)
        if half or size <= EXAMPLE_HEAD or self.at + size > len(self.words):
            raise self.bad(f"of {head[1]} bytes does not fit into the file")
        return size, head[3], head[4]
        # END SOLUTION

    def reset(self) -> None:
        """To the first example of this process."""
        # TODO (A0): EvalLoader.reset
        # HINT: examples differ in length: only the head of each says where the next one is.
        # BEGIN SOLUTION
        self.at = self.current_example = 0
        while self.current_example < self.start_example:
            self.at += self.read_head()[0]
            self.current_example += 1
        # END SOLUTION

    def next_example(self, i: int) -> None:
        """Reads the next example into rows 4*i .. 4*i + 3 of the batch and its label into label[i];
        moves `at` and current_example on.

        Each row is the context and one completion; targets are the row, one token later; mask is
        true where the target is of the completion. Raises ValueError, with the example's number,
        for one that is malformed or longer than T.
        """
        # TODO (A0): EvalLoader.next_example
        # HINT: the first token of a completion is predicted at the last position of the context.
        # BEGIN SOLUTION
        size, label, count = self.read_head()
        if count != NUM_COMPLETIONS or label >= count:
            raise self.bad(f"has label {label} of {count} completions")
        rest = self.words[self.at + EXAMPLE_HEAD : self.at + size].astype(np.int32)
        context, rest = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        for row in range(NUM_COMPLETIONS * i, NUM_COMPLETIONS * (i + 1)):
            if len(rest) == 0 or not 0 < rest[0] < len(rest):
                raise self.bad(f"of {2 * size} bytes is cut short")
            tokens = np.concatenate([context, rest[1 : 1 + rest[0]]])
            rest = rest[1 + rest[0] :]
            if len(tokens) > self.T:
                raise self.bad(f"has {len(tokens)} tokens, T is {self.T}")
            self.inputs[row, : len(tokens)] = tokens
            self.targets[row, : len(tokens) - 1] = tokens[1:]
            self.mask[row, max(len(context) - 1, 0) : len(tokens) - 1] = True
        self.label[i] = label
        self.at += size
        self.current_example += 1
        # END SOLUTION

    def next_batch(self) -> tuple[Ints, Ints]:
        """The next B / 4 examples of this process, as inputs and targets (B,T); `mask` and `label`
        belong to them. Fewer, or none, where it has no more: rows without an example are all 0."""
        # TODO (A0): EvalLoader.next_batch
        # HINT: a mask of the batch before must not show through.
        # BEGIN SOLUTION
        self.clear()
        left = self.end_example - self.current_example
        for i in range(min(self.B // NUM_COMPLETIONS, left)):
            self.next_example(i)
        return self.inputs, self.targets
        # END SOLUTION

    def stat_losses(self, losses: NDArray[np.float32]) -> int:
        """losses (B,T): how many examples of this batch the model got right. Its answer is the
        completion with the lowest mean loss where mask is true, of equal ones the first. Rows
        without an example (mask all false) count for nothing."""
        # TODO (A0): EvalLoader.stat_losses
        # HINT: a mean, not a sum: completions differ in length.
        # BEGIN SOLUTION
        counts = self.mask.sum(1)
        sums = np.where(self.mask, losses, 0).sum(1, dtype=np.float64)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
        means = means[: NUM_COMPLETIONS * len(self.label)].reshape(-1, NUM_COMPLETIONS)
        answered = np.isfinite(means).any(1)
        return int((answered & (means.argmin(1) == self.label)).sum())
        # END SOLUTION
