"""dataloader_py.py: observes llmc/dataloader.py on shards and eval files of its own."""

import os
from typing import Any

import numpy as np
from given import given_int, given_u64s, given_words
from observe import array, number, numbers, outcome, text

B, T = 2, 3
PATTERN = "shard_*.bin"
EVAL, EVAL_T = "eval.bin", 24


# ---------------------------------------------------------------- shards


def tokens_of(seed: int, shard: int, size: int) -> list[int]:
    return [word & 0xFFFF for word in given_u64s(seed, shard << 32, size)]


def sizes_of(seed: int) -> list[int]:
    """Tokens of four shards; the second has a multiple of B*T, one too few for its last sample."""
    more = [B * T * given_int(seed, 7000 + i, 0, 4) for i in range(4)]
    return [41 + more[0], 24 + more[1], 33 + more[2], 27 + more[3]]


def write_shard(path: str, seed: int, shard: int, size: int, **head: int) -> None:
    """`head` is what the header says: magic, version, claimed."""
    words = {"magic": 20240520, "version": 1, "claimed": size} | head
    given_words(path, list(words.values()), tokens_of(seed, shard, size))


def write_shards(seed: int, sizes: list[int]) -> None:
    for i, size in enumerate(sizes):
        write_shard(f"shard_{i}.bin", seed, i, size)


def read_whole(path: str) -> np.ndarray:
    return np.fromfile(path, np.uint16)[512:]


def loader_of(*place: int, shuffle: bool = False) -> Any:
    """A loader that reads with a function of the probe's: a bug in read_shard costs its own row."""
    from llmc import dataloader

    dataloader.read_shard = read_whole
    return dataloader.DistributedDataLoader(PATTERN, B, T, *place, shuffle=shuffle)


def set_by_hand(loader: Any, shards: list[int], samples: list[int]) -> None:
    """The names, the orders and a generator: a bug in __init__ or a permutation costs its own row,
    too."""
    loader.files = [f"shard_{i}.bin" for i in range(4)]
    loader.shard_order, loader.sample_order = shards, samples
    loader.rng = np.random.RandomState(42)


def observe_batches(loader: Any, count: int, x: str, y: str = "") -> None:
    """The next batches, row by row, kept until the last one is there."""
    batches = [loader.next_batch() for _ in range(count)]
    array(x, np.stack([inputs for inputs, _ in batches]), "i32")
    if y:
        array(y, np.stack([targets for _, targets in batches]), "i32")


def case_shard_read(seed: int) -> None:
    from llmc.dataloader import read_header, read_shard

    words = [given_int(seed, i, 1, 2**31 - 1) for i in range(256)]
    given_words("header.bin", [words[0], 1, *words[2:]], [7, 8])
    numbers("header", read_header("header.bin", words[0]))
    size = given_int(seed, 0, 50, 50)
    write_shard("one.bin", seed, 0, size)
    tokens = read_shard("one.bin")
    text("dtype", str(tokens.dtype))
    numbers("shape", list(tokens.shape))
    numbers("tokens", tokens.tolist())
    with open("one.bin", "r+b") as file:  # what is mapped follows the file
        file.seek(1024)
        file.write(np.arange(size, dtype="<u2").tobytes())
    numbers("tokens_later", tokens.tolist())
    write_shard("least.bin", seed, 1, 1)
    numbers("tokens_least", read_shard("least.bin").tolist())


def case_shard_refuse(seed: int) -> None:
    from llmc.dataloader import read_header, read_shard

    size = given_int(seed, 0, 50, 50)
    number("size", size)
    write_shard("good.bin", seed, 0, size)
    outcome("good", read_shard, "good.bin")
    write_shard("magic.bin", seed, 0, size, magic=20240521)
    outcome("bad_magic", read_shard, "magic.bin")
    write_shard("version.bin", seed, 0, size, version=2)
    outcome("bad_version", read_shard, "version.bin")
    write_shard("more.bin", seed, 0, size, claimed=size + 1)
    outcome("more_claimed", read_shard, "more.bin")
    write_shard("fewer.bin", seed, 0, size, claimed=size - 1)
    outcome("fewer_claimed", read_shard, "fewer.bin")
    write_shard("zero.bin", seed, 0, 0)
    outcome("no_tokens", read_shard, "zero.bin")
    write_shard("odd.bin", seed, 0, size)
    os.truncate("odd.bin", 1024 + 2 * size - 1)
    outcome("odd_size", read_shard, "odd.bin")
    os.truncate("odd.bin", 8)
    outcome("header_cut_short", read_shard, "odd.bin")
    os.truncate("good.bin", 1020)
    outcome("word_missing", read_header, "good.bin", 20240520)


def case_shard_shuffle(seed: int) -> None:
    from llmc.dataloader import random_permutation

    for name, drawn, size in (("one", 80, 1), ("two", 81, 2), ("ten", 70, 10), ("many", 600, 100)):
        rng = np.random.RandomState(0)
        words = np.array([word >> 32 for word in given_u64s(seed, 0, 624)], np.uint32)
        rng.set_state(("MT19937", words, drawn))
        order = [3 * i + 1 for i in range(size)]
        random_permutation(order, rng)
        numbers(name, order)
        number(f"{name}_next", int(rng.randint(0, 2**32, dtype=np.uint32)))
    outcome("none", random_permutation, [], np.random.RandomState(0))


def case_stream_init(seed: int) -> None:
    from llmc.dataloader import DistributedDataLoader

    sizes = sizes_of(seed)
    sizes[0] = 2 * B * T * given_int(seed, 7101, 2, 4) + 1  # just enough for its last sample
    sizes[1] = 2 * B * T * given_int(seed, 7100, 2, 4)  # a multiple: one too few for a sample
    for i, name in enumerate(("part_b.bin", "part_10.bin", "part_9.bin", "part_a.bin")):
        write_shard(name, seed, i, sizes[i])
    loader = DistributedDataLoader("part_*.bin", B, T, 1, 2)
    text("files", " ".join(loader.files))
    names = ("B", "T", "rank", "world", "num_tokens", "num_samples", "current_shard")
    for name in (*names, "current_sample"):
        number(name, getattr(loader, name))
    numbers("shard_order", loader.shard_order)
    numbers("tokens", loader.tokens.tolist())
    outcome("sample_order", getattr, loader, "sample_order")
    numbers("words", loader.rng.randint(0, 2**32, size=3, dtype=np.uint32).tolist())
    loader.shard_order, loader.current_sample = [2, 0, 3, 1], 1
    loader.load_shard(2)
    numbers("place", [loader.current_shard, loader.current_sample, loader.num_samples])
    numbers("tokens_loaded", loader.tokens.tolist())


def case_stream_refuse(seed: int) -> None:
    from llmc.dataloader import DistributedDataLoader

    size = 2 * B * T
    write_shard("good_0.bin", seed, 0, size + 1)
    write_shard("good_1.bin", seed, 1, size)
    outcome("good", DistributedDataLoader, "good_*.bin", B, T)
    outcome("good_for_2", DistributedDataLoader, "good_0.bin", B, T, 1, 2)
    outcome("no_match", DistributedDataLoader, "nothing_*.bin", B, T)
    outcome("too_few_for_2", DistributedDataLoader, "good_*.bin", B, T, 0, 2)
    outcome("bad_rank", DistributedDataLoader, "good_0.bin", B, T, 2, 2)


def case_stream_pairs(seed: int) -> None:
    size = sizes_of(seed)[0]
    write_shards(seed, [size])
    loader = loader_of()
    x, y = loader.next_batch()
    array("x", x, "i32")
    array("y", y, "i32")
    numbers("shapes", [*x.shape, *y.shape])
    number("current_sample", loader.current_sample)
    samples = (size - 1) // (B * T)
    observe_batches(loader, samples - 1, "x_rest", "y_rest")

    def advance() -> None:
        loader.current_sample = 0

    loader.advance = advance
    observe_batches(loader, 1, "x_next")
    loader.shuffle, loader.current_sample = True, 0
    loader.sample_order = [*range(1, samples), 0]
    observe_batches(loader, samples, "x_ordered")


def case_stream_stride(seed: int) -> None:
    write_shards(seed, [90 + sizes_of(seed)[0]])
    for rank in range(3):
        observe_batches(loader_of(rank, 3), 7, f"x_{rank}", f"y_{rank}")


def case_order_rollover(seed: int) -> None:
    sizes = sizes_of(seed)
    write_shards(seed, sizes)
    loader = loader_of()
    set_by_hand(loader, [0, 1, 2, 3], [])
    loader.reset()
    observe_batches(loader, 2 * sum((size - 1) // (B * T) for size in sizes) + 1, "x", "y")
    numbers("place", [loader.current_shard, loader.current_sample])


def case_order_shuffled(seed: int) -> None:
    sizes = sizes_of(seed)
    write_shards(seed, sizes)
    loader = loader_of(shuffle=True)
    set_by_hand(loader, [0, 1, 2, 3], [])
    loader.reset()
    observe_batches(loader, 2 * sum((size - 1) // (B * T) for size in sizes) + 7, "x")


def case_order_ranks(seed: int) -> None:
    write_shards(seed, sizes_of(seed))
    for rank in range(2):
        observe_batches(loader_of(rank, 2, shuffle=True), 16, f"x_{rank}")


def case_resume(seed: int) -> None:
    sizes = sizes_of(seed)
    write_shards(seed, sizes)
    samples = [(size - 1) // (B * T) for size in sizes]
    loader = loader_of()
    set_by_hand(loader, [0, 1, 2, 3], [])
    loader.resume(2, 3)
    numbers("place", [loader.current_shard, loader.current_sample, loader.num_samples])
    observe_batches(loader, samples[2] - 3, "x")
    loader.resume(1, samples[1])
    numbers("place_end", [loader.current_shard, loader.current_sample, loader.num_samples])
    outcome("first_shard", loader.resume, 0, 0)
    outcome("no_shard", loader.resume, 4, 0)
    outcome("negative_shard", loader.resume, -1, 0)
    number("beyond", samples[1] + 1)
    outcome("no_sample", loader.resume, 1, samples[1] + 1)
    outcome("negative_sample", loader.resume, 1, -1)


def case_resume_shuffled(seed: int) -> None:
    """At sample 1 of the second of the shards 2, 0, 3, 1, whose samples stand in reverse order."""
    sizes = sizes_of(seed)
    write_shards(seed, sizes)
    samples = (sizes[0] - 1) // (B * T)
    loader = loader_of(shuffle=True)
    set_by_hand(loader, [2, 0, 3, 1], list(reversed(range(samples))))
    loader.resume(1, 1)
    observe_batches(loader, samples - 1, "x")
    numbers("place", [loader.current_shard, loader.current_sample])
    numbers("shard_order", loader.shard_order)
    number("next_word", int(loader.rng.randint(0, 2**32, dtype=np.uint32)))


# ---------------------------------------------------------------- multiple choice


def counted(seed: int, place: int, count: int) -> list[int]:
    return [count, *(word % 50000 for word in given_u64s(seed, place, count))]


def example(seed: int, e: int) -> list[int]:
    """The words of example `e`: a context of 3 to 10 tokens, completions of 1 to 8. Of example 1
    the context and a completion have one token; the last row of example 2 fills T."""
    place = 1000000 + e * 1000
    context = {1: 1, 2: EVAL_T - 8}.get(e) or given_int(seed, place, 3, 8)
    body = counted(seed, place + 100, context)
    for c in range(4):
        length = {(1, 1): 1, (2, 3): 8}.get((e, c)) or given_int(seed, place + 1 + c, 1, 8)
        body += counted(seed, place + 200 + c * 100, length)
    return [65535, 2 * (5 + len(body)), e, given_int(seed, place + 5, 0, 4), 4, *body]


def write_eval(path: str, examples: list[list[int]], **head: int) -> None:
    """`head` is what the header says: magic, version, claimed."""
    words = {"magic": 20240522, "version": 1, "claimed": len(examples)} | head
    longest = 2 * max(map(len, examples))
    given_words(path, [*words.values(), longest], [word for words in examples for word in words])


def case_eval_rows(seed: int) -> None:
    from llmc.dataloader import EvalLoader

    write_eval(EVAL, [example(seed, e) for e in range(5)])
    loader = EvalLoader(EVAL, 10, EVAL_T)  # two rows are too few for an example
    numbers("counts", [loader.num_examples, loader.num_batches])
    fields = (loader.inputs, loader.targets, loader.mask, loader.label)
    numbers("at_first", [int(np.count_nonzero(field)) for field in fields])
    for i in range(3):
        inputs, targets = loader.next_batch()
        array(f"inputs_{i}", inputs, "i32")
        array(f"targets_{i}", targets, "i32")
        array(f"mask_{i}", loader.mask.astype(np.uint8), "u8")
        array(f"label_{i}", loader.label, "i32")
    loader.reset()
    array("inputs_again", loader.next_batch()[0], "i32")


def case_eval_ranks(seed: int) -> None:
    from llmc.dataloader import EvalLoader

    write_eval(EVAL, [example(seed, e) for e in range(7)])
    for world in (3, 5, 8):
        facts = []
        for rank in range(world):
            loader = EvalLoader(EVAL, 8, EVAL_T, rank, world)
            facts += [loader.num_batches, loader.end_example - loader.start_example]
            inputs, _ = loader.next_batch()
            facts += [int(inputs[0, 0]), int(loader.mask.sum())]
        numbers(f"of_{world}", facts)


def case_eval_stat(seed: int) -> None:
    """Losses are (16 k + completion) / 2^16, and rows have 1, 2 or 4 of them: every mean is exact,
    and no two of an example are equal. In odd rounds the last example is missing."""
    from llmc.dataloader import EvalLoader

    write_eval(EVAL, [example(seed, e) for e in range(3)])
    loader = EvalLoader(EVAL, 14, EVAL_T)  # two rows are too few for an example
    right = []
    for turn in range(40):
        place = 5000000 + turn * 1000
        losses = np.zeros((14, EVAL_T), np.float32)
        loader.mask = np.zeros((14, EVAL_T), np.bool_)
        for row in range(12):
            for t in range(6):
                step = given_int(seed, place + 100 + 6 * row + t, 0, 32768)
                losses[row, t] = (16 * step + row % 4) / 65536
            start = given_int(seed, place + row, 0, 3)
            count = 1 << given_int(seed, place + 20 + row, 0, 3)
            loader.mask[row, start : start + count] = turn % 2 == 0 or row < 8
        labels = [given_int(seed, place + 40 + e, 0, 4) for e in range(3)]
        loader.label = np.array(labels if turn % 2 == 0 else [*labels[:2], 0], np.int32)
        right.append(loader.stat_losses(losses))
    numbers("right", right)
    loader.mask[:12], loader.label = True, np.array([0, 1, 2], np.int32)
    number("right_of_equals", loader.stat_losses(np.full((14, EVAL_T), 0.5, np.float32)))


def read_eval(path: str, *place: int) -> None:
    from llmc.dataloader import EvalLoader

    loader = EvalLoader(path, *(place or (8, EVAL_T)))
    for _ in range(2):
        loader.next_batch()


def shortened(words: list[int], by: int) -> list[int]:
    """An example without its last words, of which it knows."""
    return [words[0], words[1] - 2 * by, *words[2:-by]]


def case_eval_refuse(seed: int) -> None:
    def edited(path: str, e: int, word: int, change: int) -> str:
        words = [example(seed, i) for i in range(3)]
        words[e][word] += change
        write_eval(path, words)
        return path

    whole = [example(seed, e) for e in range(3)]
    write_eval("good.bin", whole)
    outcome("good", read_eval, "good.bin")
    outcome("good_4", read_eval, "good.bin", 4, EVAL_T)
    outcome("rows_below_4", read_eval, "good.bin", 3, EVAL_T)
    outcome("longer_than_T", read_eval, "good.bin", 8, EVAL_T - 1)
    write_eval("shard.bin", whole, magic=20240520)
    outcome("bad_magic", read_eval, "shard.bin")
    write_eval("fewer.bin", whole, claimed=4)
    outcome("more_claimed", read_eval, "fewer.bin")
    outcome("no_mark", read_eval, edited("mark.bin", 2, 0, -1))
    outcome("no_mark_passed", read_eval, edited("passed.bin", 0, 0, -1), 8, EVAL_T, 1, 2)
    outcome("three_completions", read_eval, edited("three.bin", 2, 4, -1))
    outcome("label_4", read_eval, edited("label.bin", 2, 3, 4 - whole[2][3]))
    outcome("too_many_bytes", read_eval, edited("many.bin", 2, 1, 2))
    outcome("odd_bytes", read_eval, edited("odd.bin", 2, 1, 1))
    write_eval("head.bin", [*whole[:2], [65535, 10, 2, 0, 4]])
    outcome("head_alone", read_eval, "head.bin")
    write_eval("last.bin", [*whole[:2], shortened(whole[2], 1)])
    outcome("last_token_missing", read_eval, "last.bin")
    os.truncate("last.bin", 1025)
    outcome("half_a_word", read_eval, "last.bin")
    os.truncate("last.bin", 1024)
    outcome("header_alone", read_eval, "last.bin")
    write_eval("within.bin", [whole[0], shortened(whole[1], 1), whole[2]])
    outcome("token_missing", read_eval, "within.bin")
    write_eval("empty.bin", [*whole[:2], [*shortened(whole[2], 8)[:-1], 0]])  # of the last 8 none
    outcome("empty_completion", read_eval, "empty.bin")
    write_eval("three.bin", [*whole[:2], shortened(whole[2], 9)])
    outcome("completion_missing", read_eval, "three.bin")


CASES = {
    "shard_read": case_shard_read,
    "shard_refuse": case_shard_refuse,
    "shard_shuffle": case_shard_shuffle,
    "stream_init": case_stream_init,
    "stream_refuse": case_stream_refuse,
    "stream_pairs": case_stream_pairs,
    "stream_stride": case_stream_stride,
    "order_rollover": case_order_rollover,
    "order_shuffled": case_order_shuffled,
    "order_ranks": case_order_ranks,
    "resume": case_resume,
    "resume_shuffled": case_resume_shuffled,
    "eval_rows": case_eval_rows,
    "eval_ranks": case_eval_ranks,
    "eval_stat": case_eval_stat,
    "eval_refuse": case_eval_refuse,
}
