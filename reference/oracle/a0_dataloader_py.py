"""What dataloader_py.py must report: slices of the given streams, orders from numpy's MT19937."""

from __future__ import annotations

import numpy as np

from reference.oracle import a0
from reference.oracle.a0 import FILES, MT, B, Case, T, Values, given_int, i32, i64, u8

WINDOW = B * T


def many(values: object) -> np.ndarray:
    return np.array(values, np.int64).ravel()


def sizes_of(seed: int) -> list[int]:
    return [size + WINDOW * given_int(seed, 7000 + i, 0, 4) for i, size in enumerate(a0.FOUR)]


def samples_of(seed: int) -> list[int]:
    return [(size - 1) // WINDOW for size in sizes_of(seed)]


def batches(seed: int, count: int, **options: object) -> tuple[np.ndarray, np.ndarray]:
    """x and y of `count` batches of the four shards, flat."""
    x, y = a0.taken(count, a0.shards(seed, tuple(sizes_of(seed))), **options)
    return i32(x), i32(y)


def shard_read(seed: int) -> Values:
    size = given_int(seed, 0, 50, 50)
    words = [given_int(seed, i, 1, 2**31 - 1) for i in range(256)]
    return {
        "header": many([words[0], 1, *words[2:]]),
        "dtype": u8(b"uint16"),
        "shape": many([size]),
        "tokens": many(a0.shard(seed, 0, size)),
        "tokens_later": many(range(size)),
        "tokens_least": many(a0.shard(seed, 1, 1)),
    }


def shard_refuse(seed: int) -> Values:
    size = given_int(seed, 0, 50, 50)
    return {"size": i64(size)}


def shard_shuffle(seed: int) -> Values:
    values: Values = {}
    for name, drawn, size in (("one", 80, 1), ("two", 81, 2), ("ten", 70, 10), ("many", 600, 100)):
        words = a0.Words.given(seed, drawn)
        values[name] = many(a0.shuffle([3 * i + 1 for i in range(size)], words))
        values[f"{name}_next"] = many(words.draw(1))
    return values


def stream_init(seed: int) -> Values:
    sizes = sizes_of(seed)
    sizes[0] = 2 * WINDOW * given_int(seed, 7101, 2, 4) + 1
    sizes[1] = 2 * WINDOW * given_int(seed, 7100, 2, 4)
    facts = {
        "B": B,
        "T": T,
        "rank": 1,
        "world": 2,
        "num_tokens": sum(sizes),
        "num_samples": (sizes[1] - 1) // (2 * WINDOW),
        "current_shard": 0,
        "current_sample": 0,
    }
    return {name: i64(value) for name, value in facts.items()} | {
        "files": u8(b"part_10.bin part_9.bin part_a.bin part_b.bin"),
        "shard_order": many(range(4)),
        "tokens": many(a0.shard(seed, 1, sizes[1])),
        "words": many(a0.Words(43).draw(3)),
        "place": many([2, 0, (sizes[0] - 1) // (2 * WINDOW)]),
        "tokens_loaded": many(a0.shard(seed, 0, sizes[0])),
    }


def stream_pairs(seed: int) -> Values:
    count = samples_of(seed)[0]
    x, y = batches(seed, count)
    return {
        "x": x[:WINDOW],
        "y": y[:WINDOW],
        "shapes": many([B, T, B, T]),
        "current_sample": i64(1),
        "x_rest": x[WINDOW:],
        "y_rest": y[WINDOW:],
        "x_next": x[:WINDOW],
        "x_ordered": np.roll(x, -WINDOW),
    }


def stream_stride(seed: int) -> Values:
    files = a0.shards(seed, (90 + sizes_of(seed)[0],))
    values: Values = {}
    for rank in range(3):
        x, y = a0.taken(7, files, rank=rank, processes=3)
        values |= {f"x_{rank}": i32(x), f"y_{rank}": i32(y)}
    return values


def order_rollover(seed: int) -> Values:
    x, y = batches(seed, 2 * sum(samples_of(seed)) + 1)
    return {"x": x, "y": y, "place": many([0, 1])}


def order_shuffled(seed: int) -> Values:
    return {"x": batches(seed, 2 * sum(samples_of(seed)) + 7, shuffled=True)[0]}


def order_ranks(seed: int) -> Values:
    options = [{"rank": rank, "processes": 2, "shuffled": True} for rank in range(2)]
    return {f"x_{rank}": batches(seed, 16, **options[rank])[0] for rank in range(2)}


def resume(seed: int) -> Values:
    samples = samples_of(seed)
    return {
        "place": many([2, 3, samples[2]]),
        "place_end": many([1, samples[1], samples[1]]),
        "x": batches(seed, samples[2] - 3, skip=sum(samples[:2]) + 3)[0],
        "beyond": i64(samples[1] + 1),
    }


def resume_shuffled(seed: int) -> Values:
    x, _ = batches(seed, samples_of(seed)[0])
    backwards = x.reshape(-1, WINDOW)[::-1][1:]
    return {
        "x": backwards.ravel(),
        "place": many([1, samples_of(seed)[0]]),
        "shard_order": many([2, 0, 3, 1]),
        "next_word": many(a0.Words(42).draw(1)),
    }


def eval_rows(seed: int) -> Values:
    examples = [a0.example(seed, e) for e in range(5)]
    values: Values = {"counts": many([5, 3])}
    spare = ((0, 2), (0, 0))  # of ten rows, two are too few for an example
    for i in range(3):
        part = examples[2 * i : 2 * i + 2]
        for name, rows in zip(("inputs", "targets", "mask"), a0.eval_batch(part), strict=True):
            values[f"{name}_{i}"] = np.pad(rows, spare).ravel()
        values[f"label_{i}"] = i32([label for label, _, _ in part] + [0] * (2 - len(part)))
    return values | {"inputs_again": values["inputs_0"]}


def eval_ranks(seed: int) -> Values:
    examples = [a0.example(seed, e) for e in range(7)]
    values: Values = {}
    for world in (3, 5, 8):
        share = -(-7 // world)
        facts = []
        for rank in range(world):
            part = examples[rank * share : (rank + 1) * share]
            first = part[0][1][0] if part else 0
            facts += [-(-share // 2), len(part), first, int(a0.eval_batch(part[:2])[2].sum())]
        values[f"of_{world}"] = many(facts)
    return values


def eval_stat(seed: int) -> Values:
    return {name: value.astype(np.int64) for name, value in a0.eval_stat(seed).items()}


CASES: dict[str, dict[str, Case]] = {
    "dataloader_py": {
        "shard_read": (FILES, shard_read),
        "shard_refuse": ("by definition", shard_refuse),
        "shard_shuffle": (f"{MT}; Fisher-Yates in Python", shard_shuffle),
        "stream_init": (f"{FILES}; {MT}", stream_init),
        "stream_pairs": (FILES, stream_pairs),
        "stream_stride": (FILES, stream_stride),
        "order_rollover": (FILES, order_rollover),
        "order_shuffled": (f"{FILES}; {MT}", order_shuffled),
        "order_ranks": (f"{FILES}; {MT}", order_ranks),
        "resume": (FILES, resume),
        "resume_shuffled": (f"{FILES}; {MT}", resume_shuffled),
        "eval_rows": (FILES, eval_rows),
        "eval_ranks": (FILES, eval_ranks),
        "eval_stat": ("means with math.fsum in Python", eval_stat),
    }
}
