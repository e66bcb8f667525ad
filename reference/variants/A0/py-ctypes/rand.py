"""rand.py with the integers of C; blocks by O'Neill's way to advance, for many distances at once."""
from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_uint64

import numpy

MASK64 = c_uint64(-1).value
MULTIPLIER = 0x5851F42D4C957F2D
GOLDEN = 0x9E3779B97F4A7C15
FNV_BASIS = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
PURPOSES = {name: i + 1 for i, name in enumerate("init dropout shuffle sample mutation".split())}
LANES = 1 << 16


def _u64(name: str, value: int) -> int:
    if c_uint64(value).value != value:
        raise ValueError(f"{name} = {value} has no place in 64 bits")
    return value


def splitmix64(x: int) -> int:
    z = c_uint64(x & MASK64)
    z.value ^= z.value >> 30
    z.value *= 0xBF58476D1CE4E5B9
    z.value ^= z.value >> 27
    z.value *= 0x94D049BB133111EB
    z.value ^= z.value >> 31
    return z.value


def child_seed(seed: int, purpose_id: int) -> int:
    if not 0 < purpose_id < 1 << 63:
        raise ValueError(f"purpose {purpose_id}")
    return splitmix64(c_uint64(_u64("seed", seed) + purpose_id * GOLDEN).value)


def fnv1a64(data: bytes, h: int = FNV_BASIS) -> int:
    word = c_uint64(_u64("h", h))
    for byte in bytes(memoryview(data)):
        word.value ^= byte
        word.value *= FNV_PRIME
    return word.value


def universal_hash(x: int, a: int, b: int, p: int, m: int) -> int:
    if x not in range(p) or a not in range(1, p) or b not in range(p) or m <= 0:
        raise ValueError(f"universal_hash({x}, {a}, {b}, {p}, {m})")
    return divmod(divmod(a * x + b, p)[1], m)[1]


class _Place(ctypes.Structure):
    _fields_ = [("state", c_uint64), ("inc", c_uint64)]


class PCG32:
    def __init__(self, seed: int, seq: int = 54) -> None:
        if seq < 0 or seq >> 63:
            raise ValueError(f"seq = {seq}")
        self.__seed = _u64("seed", seed)
        self.__at = _Place(0, seq << 1 | 1)
        self.next_u32()
        self.__at.state += seed
        self.next_u32()

    def state(self) -> tuple[int, int]:
        return (self.__at.state, self.__at.inc)

    def set_state(self, s: tuple[int, int]) -> None:
        place = _Place(_u64("state", s[0]), _u64("inc", s[1]))
        if not place.inc & 1:
            raise ValueError(f"inc {place.inc} is even")
        self.__at = place

    def next_u32(self) -> int:
        old, self.__at.state = self.__at.state, self.__at.state * MULTIPLIER + self.__at.inc
        word, turn = c_uint32(((old >> 18) ^ old) >> 27).value, old >> 59
        return c_uint32((word >> turn) | (word << (-turn & 31))).value

    def uniform(self) -> float:
        return ((self.next_u32() >> 5) * 67108864.0 + (self.next_u32() >> 6)) / 9007199254740992.0

    def uniforms(self, n: int) -> numpy.ndarray:
        if n < 0:
            raise ValueError(f"n = {n}")
        result = numpy.zeros(n)
        for start in range(0, n, LANES):
            part = result[start : start + LANES]
            distance = numpy.arange(2 * part.size + 1, dtype=numpy.uint64)
            states = self.__advanced(distance)
            words = self.__permuted(states[:-1])
            numpy.add((words[::2] >> 5) * 67108864.0, words[1::2] >> 6, out=part)
            part /= 9007199254740992.0
            self.__at.state = int(states[-1])
        return result

    def __advanced(self, distance: numpy.ndarray) -> numpy.ndarray:
        """Brown, Random Number Generation with Arbitrary Strides: bit by bit of the distance."""
        product, total = numpy.ones_like(distance), numpy.zeros_like(distance)
        factor, plus = c_uint64(MULTIPLIER), c_uint64(self.__at.inc)
        while distance.any():
            odd = (distance & 1).astype(bool)
            product[odd] *= factor.value
            total[odd] = total[odd] * factor.value + plus.value
            plus.value *= factor.value + 1
            factor.value *= factor.value
            distance = distance >> 1
        return product * self.__at.state + total

    @staticmethod
    def __permuted(old: numpy.ndarray) -> numpy.ndarray:
        words = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return ((words >> turn) | (words << (32 - turn))) & 0xFFFFFFFF

    def below(self, n: int) -> int:
        if not 0 < n <= 1 << 32:
            raise ValueError(f"n = {n}")
        threshold = (1 << 32) - (1 << 32) // n * n
        for word in iter(self.next_u32, None):
            if word >= threshold:
                return word % n
        raise AssertionError

    def shuffle(self, xs) -> None:
        for i in reversed(range(1, len(xs))):
            j = self.below(i + 1)
            if i != j:
                xs[i], xs[j] = xs[j], xs[i]

    def substream(self, purpose: str) -> PCG32:
        if purpose not in PURPOSES:
            raise ValueError(f"{purpose!r} is none of {', '.join(PURPOSES)}")
        return type(self)(child_seed(self.__seed, PURPOSES[purpose]), seq=PURPOSES[purpose])
