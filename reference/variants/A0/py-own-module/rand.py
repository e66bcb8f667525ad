"""rand.py on a module of its own, imported as a neighbour; blocks from a stepping matrix."""
from typing import Final, Generic, TypeVar

import numpy as np

from . import words
from .words import MASK64, inside

MULTIPLIER: Final = 6364136223846793005
GOLDEN: Final = 0x9E3779B97F4A7C15
FNV_BASIS: Final = 0xCBF29CE484222325
FNV_PRIME: Final = 0x100000001B3
PURPOSES: Final = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
LANES: Final = 1 << 14

T = TypeVar("T")


def splitmix64(x: int) -> int:
    return words.mixed(x & MASK64, (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def child_seed(seed: int, purpose_id: int) -> int:
    inside("purpose_id", purpose_id, 1, MASK64 >> 1)
    return splitmix64(inside("seed", seed, 0, MASK64) + GOLDEN * purpose_id)


def fnv1a64(data: bytes, h: int = FNV_BASIS) -> int:
    inside("h", h, 0, MASK64)
    for (byte,) in zip(memoryview(data).cast("B")):
        h ^= byte
        h = h + (h << 1) + (h << 4) + (h << 5) + (h << 7) + (h << 8) + (h << 40) & MASK64
    return h


def universal_hash(x: int, a: int, b: int, p: int, m: int) -> int:
    inside("x", x, 0, p - 1), inside("a", a, 1, p - 1), inside("b", b, 0, p - 1)
    return ((a % p * x % p + b) % p) % inside("m", m, 1, m if m > 0 else 1)


class Lazy(Generic[T]):
    """A descriptor: computed at its first use, one for each generator."""

    def __init__(self, compute) -> None:
        self.compute = compute

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance, owner: type) -> T:
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


class PCG32:
    def __init__(self, seed: int, seq: int = 54) -> None:
        self.origin = inside("seed", seed, 0, MASK64)
        self._inc = inside("seq", seq, 0, MASK64 >> 1) * 2 | 1
        self._state = 0
        for addend in (seed, 0):
            self._step()
            self._state = self._state + addend & MASK64

    def _step(self) -> int:
        before, self._state = self._state, self._state * MULTIPLIER + self._inc & MASK64
        return before

    def state(self) -> tuple[int, int]:
        return (self._state, self._inc)

    def set_state(self, s: tuple[int, int]) -> None:
        (state, inc) = s
        inside("state", state, 0, MASK64)
        if inside("inc", inc, 0, MASK64) & 1 != 1:
            raise ValueError(f"inc: {inc} is not odd")
        self.__dict__.pop("jumps", None)
        self._state, self._inc = state, inc

    def next_u32(self) -> int:
        old = self._step()
        low = (old >> 45 ^ old >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return low >> turn | (low & (1 << turn) - 1) << 32 - turn

    def uniform(self) -> float:
        first = self.next_u32()
        second = self.next_u32()
        return (first // 32 + second // 64 / 2**26) / 2**27

    @Lazy
    def jumps(self):
        """(factor, term) of 0 .. 2 LANES steps: each pair stands for 2 by 2 of a matrix."""
        factor, term = np.ones(1, np.uint64), np.zeros(1, np.uint64)
        a, c = MULTIPLIER, self._inc
        while factor.size <= 2 * LANES:
            factor, term = np.append(factor, factor * a), np.append(term, term * a + c)
            a, c = a * a & MASK64, c * (a + 1) & MASK64
        return factor[: 2 * LANES + 1], term[: 2 * LANES + 1]

    def uniforms(self, n: int) -> np.ndarray:
        inside("n", n, 0, MASK64)
        result, done = np.empty(n, np.float64), 0
        while done < n:
            size = min(n - done, LANES)
            factor, term = (table[: 2 * size + 1] for table in self.jumps)
            states = np.uint64(self._state) * factor + term
            self._state = int(states[-1])
            low = (states[:-1] >> 45 ^ states[:-1] >> 27) & 0xFFFFFFFF
            turned = (low | low << 32) >> (states[:-1] >> 59) & 0xFFFFFFFF
            pairs = turned.reshape(size, 2) >> np.array([5, 6], np.uint64)
            np.divide(pairs @ np.array([1 << 26, 1], np.uint64), 2.0**53, out=result[done : done + size])
            done += size
        return result

    def below(self, n: int) -> int:
        inside("n", n, 1, 1 << 32)
        while True:
            quotient, result = divmod(word := self.next_u32(), n)
            if word >= (1 << 32) % n:
                return result

    def shuffle(self, xs) -> None:
        for end in range(len(xs), 1, -1):
            j = self.below(end)
            xs[j], xs[end - 1] = xs[end - 1], xs[j]

    def substream(self, purpose: str) -> "PCG32":
        number = PURPOSES.get(purpose, 0)
        if number == 0:
            raise ValueError(f"purpose: {purpose}")
        return self.__class__(child_seed(self.origin, number), seq=number)
