"""rand.py as functions of immutable places; the class, a dataclass with slots, only holds one."""
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np

MASK64 = 0xFFFF_FFFF_FFFF_FFFF
MULTIPLIER = 6364136223846793005
GOLDEN = 0x9E3779B97F4A7C15
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
LANES = 1024  # rows and columns of a block are 32


class OutOfRange(ValueError):
    """A named subclass: who catches ValueError catches it."""


def need(fine: bool, what: str, value: object) -> None:
    if not fine:
        raise OutOfRange(f"{what}: {value}")


class Place(NamedTuple):
    state: int
    inc: int

    def after(self, factor: int, term: int) -> "Place":
        return Place(self.state * factor + term & MASK64, self.inc)

    def moved(self) -> "Place":
        return self.after(MULTIPLIER, self.inc)

    def word(self) -> int:
        x = (self.state ^ self.state >> 18) >> 27 & 0xFFFFFFFF
        doubled = x << 32 | x
        return doubled >> (self.state >> 59) & 0xFFFFFFFF


class Jump(NamedTuple):
    """state -> factor * state + term; what jumps can be composed of is Horner's rule."""

    factor: int
    term: int

    def twice(self) -> "Jump":
        return self.then(self)

    def then(self, other: "Jump") -> "Jump":
        term = other.factor * self.term + other.term
        return Jump(self.factor * other.factor & MASK64, term & MASK64)


def draw(place: Place) -> tuple[int, Place]:
    return place.word(), place.moved()


def draw_double(place: Place) -> tuple[float, Place]:
    (a, place), (b, place) = (first := draw(place)), draw(first[1])
    return float.fromhex(f"0x{(a >> 5) << 26 | b >> 6:x}p-53"), place


def draw_below(place: Place, n: int) -> tuple[int, Place]:
    word, place = draw(place)
    while word < (2**32 - n) % n:
        word, place = draw(place)
    return word % n, place


def draw_many(place: Place, n: int) -> tuple[np.ndarray, Place]:
    out = np.empty((-(-n // 1024), 32, 32), dtype=float)
    two = Jump(MULTIPLIER, place.inc).twice()
    row = [Jump(1, 0)]
    while len(row) < 32:
        row.append(row[-1].then(two))
    tall = row[-1].then(two)
    column = [Jump(1, 0)]
    while len(column) < 32:
        column.append(column[-1].then(tall))
    block = column[-1].then(tall)
    factors, terms = (np.array(x, np.uint64) for x in zip(*row))
    tall_factors, tall_terms = (np.array(x, np.uint64)[:, None] for x in zip(*column))
    start = place
    for i in range(len(out)):
        states = (tall_factors * np.uint64(start.state) + tall_terms) * factors + terms
        out[i] = doubles(states, np.uint64(place.inc))
        start = start.after(*block)
    # Where n numbers end: n times the jump over two draws, by squaring.
    jump, left = Jump(1, 0), n
    while left:
        jump = jump.then(two) if left & 1 else jump
        two, left = two.twice(), left >> 1
    return out.reshape(-1)[:n].copy(), place.after(*jump)


def doubles(states: np.ndarray, inc: np.uint64) -> np.ndarray:
    def words(s):
        x = (s ^ s >> np.uint64(18)) >> np.uint64(27) & np.uint64(0xFFFFFFFF)
        return (x << np.uint64(32) | x) >> (s >> np.uint64(59)) & np.uint64(0xFFFFFFFF)

    high = words(states) >> np.uint64(5)
    low = words(states * np.uint64(MULTIPLIER) + inc) >> np.uint64(6)
    return np.ldexp((high << np.uint64(26) | low).astype(float), -53)


def splitmix64(x: int) -> int:
    first = ((x & MASK64) ^ (x & MASK64) >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    second = (first ^ first >> 27) * 0x94D049BB133111EB & MASK64
    return second ^ second >> 31


def child_seed(seed: int, purpose_id: int) -> int:
    need(0 <= seed <= MASK64, "seed", seed)
    need(1 <= purpose_id < 2**63, "purpose_id", purpose_id)
    return splitmix64(seed + purpose_id * GOLDEN)


def fnv1a64(data: bytes, h: int = FNV_BASIS) -> int:
    need(0 <= h <= MASK64, "h", h)
    return reduce(lambda h, byte: (h ^ byte) * FNV_PRIME & MASK64, b"" + data, h)


def universal_hash(x: int, a: int, b: int, p: int, m: int) -> int:
    need(0 <= x < p, "x", x)
    need(1 <= a < p, "a", a)
    need(0 <= b < p, "b", b)
    need(m >= 1, "m", m)
    return (a * x + b) % p % m


@dataclass(slots=True)
class PCG32:
    seed: int
    seq: int = 54
    place: Place = field(init=False, repr=False)

    def __post_init__(self) -> None:
        need(0 <= self.seed <= MASK64, "seed", self.seed)
        need(0 <= self.seq < 2**63, "seq", self.seq)
        empty = Place(0, 2 * self.seq + 1)
        self.place = empty.moved().after(1, self.seed).moved()

    def state(self) -> tuple[int, int]:
        return tuple(self.place)

    def set_state(self, s: tuple[int, int]) -> None:
        place = Place._make(s)
        need(0 <= place.state <= MASK64, "state", place.state)
        need(0 <= place.inc <= MASK64 and place.inc % 2 == 1, "inc", place.inc)
        self.place = place

    def next_u32(self) -> int:
        word, self.place = draw(self.place)
        return word

    def uniform(self) -> float:
        value, self.place = draw_double(self.place)
        return value

    def uniforms(self, n: int) -> np.ndarray:
        need(n >= 0, "n", n)
        values, self.place = draw_many(self.place, n)
        return values

    def below(self, n: int) -> int:
        need(1 <= n <= 2**32, "n", n)
        value, self.place = draw_below(self.place, n)
        return value

    def shuffle(self, xs) -> None:
        for i, x in zip(range(len(xs) - 1, 0, -1), xs[:0:-1]):
            j = self.below(i + 1)
            xs[i], xs[j] = xs[j], xs[i]

    def substream(self, purpose: str) -> "PCG32":
        need(purpose in PURPOSES, "purpose", purpose)
        return PCG32(child_seed(self.seed, PURPOSES[purpose]), PURPOSES[purpose])
