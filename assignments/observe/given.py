"""Inputs that Python probes give to the student's code; given.h's numbers, and files of them."""

import numpy as np

STEP = 0x9E3779B97F4A7C15
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def given_u64s(seed: int, first: int, count: int) -> list[int]:
    """Numbers first, first + 1, ... of the SplitMix64 sequence of `seed` (Steele, Lea and Flood
    2014), as in given.h."""
    start = np.array([(seed + (first + 1) * STEP) % 2**64], np.uint64)
    words = start + np.arange(count, dtype=np.uint64) * np.uint64(STEP)  # arrays wrap around
    for shift, factor in ROUNDS:
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return (words ^ (words >> np.uint64(31))).tolist()


def given_u64(seed: int, i: int) -> int:
    """One of them."""
    return given_u64s(seed, i, 1)[0]


def given_int(seed: int, i: int, low: int, span: int) -> int:
    """In [low, low + span)."""
    return low + given_u64(seed, i) % span


def given_units(seed: int, first: int, count: int) -> list[float]:
    """In (0, 1): odd multiples of 2^-24, so that neither end nor the middle occurs."""
    return [(word >> 40 | 1) / 2**24 for word in given_u64s(seed, first, count)]


def given_words(path: str, header: list[int], words: list[int]) -> None:
    """A file of the course: a header of 256 int32, zeros behind what is given; then uint16."""
    head = np.zeros(256, "<i4")
    head[: len(header)] = header
    with open(path, "wb") as file:
        file.write(head.tobytes() + np.array(words, "<u2").tobytes())
