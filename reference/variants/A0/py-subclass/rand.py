"""rand.py in layers: a congruential generator, its permutation, and what is drawn with it."""
import abc
import array
import sys

import numpy as np

MASK64 = int.from_bytes(b"\xff" * 8, "big")
MULTIPLIER = 6364136223846793005
GOLDEN = 0x9E3779B97F4A7C15
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
LANES = 1 << 13


class Word(int):
    """An integer mod 2^64, which stays one."""

    def __mul__(self, other):
        return Word(int(self) * other & MASK64)

    def __add__(self, other):
        return Word(int(self) + other & MASK64)

    def __xor__(self, other):
        return Word(int(self) ^ other)

    def mixed(self, shift):
        return self ^ (self >> shift)


def splitmix64(x):
    z = (Word(0) + x).mixed(30) * 0xBF58476D1CE4E5B9
    return int((z.mixed(27) * 0x94D049BB133111EB).mixed(31))


def child_seed(seed, purpose_id):
    for what, low, high in ((seed, 0, MASK64), (purpose_id, 1, sys.maxsize)):
        if not low <= what <= high:
            raise ValueError(f"{what} not in [{low}, {high}]")
    return splitmix64(Word(GOLDEN) * purpose_id + seed)


def fnv1a64(data, h=FNV_BASIS):
    if h < 0 or h > MASK64:
        raise ValueError(f"h={h}")
    word = Word(h)
    for byte in array.array("B", data):
        word = (word ^ byte) * FNV_PRIME
    return int(word)


def universal_hash(x, a, b, p, m):
    if min(x, a - 1, b, m - 1) < 0 or max(x, a, b) >= p:
        raise ValueError(f"{(x, a, b, p, m)=}")
    return (a * x + b) % p % m


class Congruential(abc.ABC):
    multiplier = MULTIPLIER

    def __init__(self, start, increment):
        self._place = (0, increment)
        self.step()
        self._place = ((self._place[0] + start) & MASK64, increment)
        self.step()

    def step(self):
        state, inc = self._place
        self._place = ((state * self.multiplier + inc) & MASK64, inc)
        return state

    def next_u32(self):
        return self.output(self.step())

    @staticmethod
    @abc.abstractmethod
    def output(state): ...

    def state(self):
        return self._place

    def set_state(self, s):
        state, inc = map(int, s)
        if not 0 <= state <= MASK64:
            raise ValueError(f"state {state}")
        if inc not in range(1, 1 << 64, 2):
            raise ValueError(f"inc {inc}")
        self._place = (state, inc)


class Drawing:
    """Needs next_u32 alone; `uniforms` is for those who can jump."""

    def uniform(self):
        return sum(((self.next_u32() >> 5) * 2.0**-27, (self.next_u32() >> 6) * 2.0**-53))

    def below(self, n):
        if n < 1 or n > 1 << 32:
            raise ValueError(f"{n} is not in [1, 2^32]")
        word = self.next_u32()
        return word % n if word >= (1 << 32) % n else self.below(n)

    def shuffle(self, xs):
        order = [self.below(i) for i in range(len(xs), 1, -1)]
        for i, j in enumerate(order, 1):
            xs[len(xs) - i], xs[j] = xs[j], xs[len(xs) - i]


class PCG32(Drawing, Congruential):
    def __init__(self, seed, seq=54):
        if not 0 <= seed <= MASK64:
            raise ValueError(f"seed {seed}")
        if not 0 <= seq <= MASK64 >> 1:
            raise ValueError(f"seq {seq}")
        super().__init__(seed, 2 * seq + 1)
        self.substream = lambda purpose: self._child(seed, purpose)

    @staticmethod
    def output(state):
        bits = format((state >> 18 ^ state) >> 27 & 0xFFFFFFFF, "032b")
        turn = 32 - (state >> 59)
        return int(bits[turn:] + bits[:turn], 2)

    @staticmethod
    def _child(seed, purpose):
        if (p := PURPOSES.get(purpose)) is None:
            raise ValueError(f"purpose {purpose!r}")
        return PCG32(child_seed(seed, p), seq=p)

    def uniforms(self, n):
        if n < 0:
            raise ValueError(f"n {n}")
        out = array.array("d", bytes(8 * n))
        view = np.asarray(out)
        for start in range(0, n, LANES):
            end = min(start + LANES, n)
            view[start:end] = self._block(end - start)
        return view

    def _block(self, n):
        states = np.array([self._place[0]], dtype="u8")
        factor, term = self.multiplier, self._place[1]
        while len(states) < 2 * n + 1:
            states = np.hstack([states, states * factor + term])
            factor, term = factor * factor & MASK64, term * (factor + 1) & MASK64
        words = self._outputs(states[: 2 * n])
        self._place = (int(states[2 * n]), self._place[1])
        return (words[0::2] >> 5) * 2.0**-27 + (words[1::2] >> 6) * 2.0**-53

    @staticmethod
    def _outputs(states):
        words = ((states >> 18 ^ states) >> 27).astype("u4")
        turns = (states >> 59).astype("u4")
        left = np.where(turns > 0, 32 - turns, 0).astype("u4")
        return words >> turns | words << left
