"""rand.py whose errors speak hexadecimal, as 64-bit words are read; its own class of them."""
from __future__ import annotations

from llmc.sampler import Refused  # a module of ours may use another

import numpy as np

MASK64 = 0xFFFFFFFFFFFFFFFF
MULTIPLIER = 0x5851F42D4C957F2D
GOLDEN = 0x9E3779B97F4A7C15
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
LANES = 1 << 14


class Bits:
    """A width of words, and what does not fit into one."""

    def __init__(self, width: int) -> None:
        self.width = width

    def __call__(self, what: str, value: int) -> int:
        if value >> self.width:
            raise Refused(f"{what} {value:#X} has more than {self.width} bits")
        return value

    def cut(self, value: int) -> int:
        return value & (1 << self.width) - 1


u63, u64, u32 = Bits(63), Bits(64), Bits(32)


def splitmix64(x: int) -> int:
    for shift, factor in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1):
        x = u64.cut((u64.cut(x) ^ u64.cut(x) >> shift) * factor)
    return x


def child_seed(seed: int, purpose_id: int) -> int:
    if u63("purpose", purpose_id) == 0:
        raise Refused("purpose 0x0")
    return splitmix64(u64("seed", seed) + purpose_id * GOLDEN)


def fnv1a64(data: bytes, h: int = FNV_BASIS) -> int:
    u64("h", h)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{type(data).__name__} is not bytes")
    for byte in data:
        h = u64.cut((h ^ byte) * FNV_PRIME)
    return h


def universal_hash(x: int, a: int, b: int, p: int, m: int) -> int:
    for name, value, least, end in ("x", x, 0, p), ("a", a, 1, p), ("b", b, 0, p), ("m", m, 1, m + 1):
        if value < least or value >= end:
            raise Refused(f"{name} is {value:#x}")
    return (a * x + b) % p % m


class PCG32:
    def __init__(self, seed: int, seq: int = 54) -> None:
        self._born = u64("seed", seed), u63("seq", seq)
        self.set_state((0, 1 | seq << 1))
        self.next_u32()
        self._word = u64.cut(self._word + seed)
        self.next_u32()

    def state(self) -> tuple[int, int]:
        return self._word, self._inc

    def set_state(self, s: tuple[int, int]) -> None:
        word, inc = u64("state", s[0]), u64("inc", s[1])
        if not inc & 1:
            raise Refused(f"inc {inc:#018x} is even")
        self._word, self._inc = word, inc

    def next_u32(self) -> int:
        old = self._word
        self._word = u64.cut(old * MULTIPLIER + self._inc)
        raw = u32.cut((old ^ old >> 18) >> 27).to_bytes(4, "little") * 2
        return u32.cut(int.from_bytes(raw, "little") >> (old >> 59))

    def uniform(self) -> float:
        high, low = (self.next_u32() for _ in range(2))
        return float((high & ~31) << 21 | low >> 6) / (1 << 53)

    def uniforms(self, n: int) -> np.ndarray:
        if n < 0:
            raise Refused(f"n {n:#x}")
        # Columns are lanes, 2^14 at most; a row of states is the one above, all lanes on.
        lanes = max(1, min(n, LANES))
        row = np.empty(lanes, np.uint64)
        step, plus = MULTIPLIER * MULTIPLIER, self._inc * (MULTIPLIER + 1)
        row[0], filled = self._word, 1
        jump, add = u64.cut(step), u64.cut(plus)
        while filled < lanes:
            more = min(filled, lanes - filled)
            row[filled : filled + more] = row[:more] * np.uint64(jump) + np.uint64(add)
            filled, add, jump = filled + more, u64.cut(add * (jump + 1)), u64.cut(jump * jump)
        across = pow(MULTIPLIER, 2 * lanes, 1 << 64)
        total = (pow(MULTIPLIER, 2 * lanes, (MULTIPLIER - 1) << 64) - 1) // (MULTIPLIER - 1)
        result = np.empty(n)
        for start in range(0, n, lanes):
            here = result[start : start + lanes]
            here[:] = self._doubles(row[: here.size])
            if here.size == lanes:
                row = row * np.uint64(across) + np.uint64(u64.cut(total * self._inc))
        self._word = int(row[n % lanes]) if n else self._word
        return result

    def _doubles(self, states: np.ndarray) -> np.ndarray:
        both = np.stack((states, states * np.uint64(MULTIPLIER) + np.uint64(self._inc)))
        words = ((both ^ both >> 18) >> 27).astype(np.uint32)
        turn = (both >> 59).astype(np.uint32)
        high, low = np.where(turn == 0, words, words >> turn | words << (32 - turn) % 32)
        return np.dot(np.stack(((high >> 5).astype(float), (low >> 6).astype(float)), 1), [2.0**-27, 2.0**-53])

    def below(self, n: int) -> int:
        if n < 1 or n > 1 << 32:
            raise Refused(f"n {n:#x}")
        while (word := self.next_u32()) < (1 << 32) % n:
            continue
        return word - word // n * n

    def shuffle(self, xs) -> None:
        last = len(xs) - 1
        if last < 1:
            return
        for i in range(last):
            a, b = last - i, self.below(last - i + 1)
            xs[a], xs[b] = xs[b], xs[a]

    def substream(self, purpose: str) -> PCG32:
        found = [number for name, number in PURPOSES.items() if name == purpose]
        if not found:
            raise Refused(f"purpose «{purpose}»")
        return PCG32(child_seed(self._born[0], *found), *found)
