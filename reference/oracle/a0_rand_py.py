"""What A0's rand_py probe must report: the published recurrences in Python integers.

Nothing here comes from reference/llmc. PCG32 is O'Neill's pcg32 with its rotation taken one bit at
a time; SplitMix64 runs as a generator, and FNV-1a and the first draws are published values.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from hashlib import blake2b
from itertools import islice

import numpy as np

Values = dict[str, np.ndarray]
M64 = 2**64 - 1
A = 6364136223846793005
LARGE = 3 << 30
SIZES = {"n1": 1, "n2": 2, "n3": 3, "n100": 100}

DEMO = (0xA15C02B7, 0x7B47F409, 0xBA1D3330, 0x83D2F293, 0xBFA4784B, 0xCBED606E)
SPLIT_MIX = {  # the first five outputs of Vigna's splitmix64.c
    0: (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC,
        0x1B39896A51A8749B),
    1234567: (6457827717110365317, 3203168211198807973, 9817491932198370423,
              4593380528125082431, 16408922859458223821),
}  # fmt: skip
FNV = {  # of the test vectors on Noll's page
    "": 0xCBF29CE484222325, "a": 0xAF63DC4C8601EC8C, "b": 0xAF63DF4C8601F1A5,
    "c": 0xAF63DE4C8601EFF2, "d": 0xAF63D94C8601E773, "e": 0xAF63D84C8601E5C0,
    "f": 0xAF63DB4C8601EAD9, "fo": 0x08985907B541D342, "foo": 0xDCB27518FED9D577,
    "foob": 0xDD120E790C2512AF, "fooba": 0xCAC165AFA2FEF40A, "foobar": 0x85944171F73967E8,
}  # fmt: skip


def u64(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def u32(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f64(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


def given(seed: int, i: int) -> int:
    """The probe's inputs."""
    return int.from_bytes(blake2b(f"{seed} {i}".encode(), digest_size=8).digest(), "little")


def split_mix(state: int) -> Iterator[int]:
    """The outputs of SplitMix64 from a state (Steele, Lea and Flood 2014)."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


class Pcg:
    """O'Neill's pcg32 at a place."""

    def __init__(self, state: int, inc: int):
        self.state, self.inc = state, inc

    @classmethod
    def seeded(cls, seed: int, seq: int = 54) -> Pcg:
        """pcg32_srandom_r."""
        rng = cls(0, 2 * seq + 1)
        rng.word()
        rng.state = (rng.state + seed) % 2**64
        rng.word()
        return rng

    @classmethod
    def somewhere(cls, seed: int, i: int) -> Pcg:
        return cls(given(seed, 2 * i), given(seed, 2 * i + 1) | 1)

    def word(self) -> int:
        """pcg32_random_r."""
        old = self.state
        self.state = (A * old + self.inc) % 2**64
        word = (old // 2**18 ^ old) // 2**27 % 2**32
        for _ in range(old // 2**59):
            word = word // 2 + word % 2 * 2**31
        return word

    def words(self, count: int) -> np.ndarray:
        return u32(*(self.word() for _ in range(count)))

    def units(self, count: int) -> np.ndarray:
        """Doubles of two words each: exact fractions, which a double holds."""
        pairs = [(self.word() // 2**5, self.word() // 2**6) for _ in range(count)]
        return f64(*(float(Fraction(a * 2**26 + b, 2**53)) for a, b in pairs))

    def below(self, n: int) -> int:
        while (word := self.word()) < 2**32 % n:
            pass
        return word % n

    def order(self, n: int) -> list[int]:
        values = list(range(n))
        for i in reversed(range(1, n)):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]
        return values

    def skip(self, draws: int) -> None:
        """Brown's jump: `draws` steps in log2 of them."""
        factor, plus = A, self.inc
        while draws > 0:
            if draws % 2 == 1:
                self.state = (factor * self.state + plus) % 2**64
            factor, plus, draws = factor**2 % 2**64, plus * (factor + 1) % 2**64, draws // 2

    def place(self) -> np.ndarray:
        return u64(self.state, self.inc)


def child(seed: int, purpose: int) -> int:
    return next(islice(split_mix(seed), purpose - 1, None))


# ---------------------------------------------------------------- cases


def splitmix64(seed: int) -> Values:
    values = {f"outputs_{start}": u64(*words) for start, words in SPLIT_MIX.items()}
    before = [(given(seed, i) - 0x9E3779B97F4A7C15) % 2**64 for i in range(8)]
    return values | {"given": u64(*(next(split_mix(state)) for state in before))}


def child_seed(seed: int) -> Values:
    parents = {"zero": 0, "last": M64, "given": given(seed, 0)}
    return {name: u64(*islice(split_mix(parent), 5)) for name, parent in parents.items()}


def fnv1a64(_: int) -> Values:
    single = [(0xCBF29CE484222325 ^ byte) * 0x100000001B3 % 2**64 for byte in range(256)]
    return {"published": u64(*FNV.values()), "every_byte": u64(*single)}


def universal_hash(seed: int) -> Values:
    p = 2**61 - 1
    keys = [[given(seed, 3 * i + k) % p for k in range(3)] for i in range(8)]
    return {
        "hand": i64(1),
        "given": i64(*(((a or 1) * x + b) % p % 1000 for x, a, b in keys)),
    }


def seeding(seed: int) -> Values:
    starts = {"zero": 0, "one": 1, "half": 2**63, "last": M64, "given": given(seed, 0)}
    streams = {"first_seq": 0, "last_seq": 2**63 - 1, "given_seq": given(seed, 1) >> 1}
    places = {name: Pcg.seeded(start) for name, start in starts.items()}
    places |= {name: Pcg.seeded(given(seed, 2), seq) for name, seq in streams.items()}
    return {name: rng.place() for name, rng in places.items()}


def set_state(seed: int) -> Values:
    return {f"kept{i}": Pcg.somewhere(seed, i).place() for i in range(4)}


def set_state_refused(seed: int) -> Values:
    place = u64(given(seed, 4), given(seed, 3) | 1)
    return {"before": place, "after": place}


def next_u32(seed: int) -> Values:
    values: Values = {}
    for rotation in (0, 1, 16, 31):
        low = given(seed, rotation) % 2**59
        rng = Pcg(rotation * 2**59 + low, given(seed, 100 + rotation) | 1)
        values[f"rotated_{rotation}"] = rng.words(1)
        values[f"place_{rotation}"] = rng.place()
    rng = Pcg.somewhere(seed, 500)
    return values | {"draws": rng.words(100), "place_draws": rng.place()}


def first(_: int) -> Values:
    return {"zero": u32(0x47C28B93)}


def demo(_: int) -> Values:
    return {"stream_54": u32(*DEMO), "stream": u32(*DEMO)}


def vectors(_: int) -> Values:
    seeds = {"zero": 0, "one": 1, "half": 2**63}
    return {name: Pcg.seeded(seed).words(1024) for name, seed in seeds.items()}


def uniform(seed: int) -> Values:
    rng = Pcg.somewhere(seed, 0)
    draws = rng.units(16)
    return {"draws": draws, "place": rng.place(), "of_seed_0": Pcg.seeded(0).units(8)}


def uniform_sample(_: int) -> Values:
    return {"ends": f64(1 - 2.0**-53, 1 - 2.0**-27, 0.0)}


def uniforms(seed: int) -> Values:
    values: Values = {}
    for name, n in (SIZES | {"more": 5000 + seed % 1000}).items():
        rng = Pcg.somewhere(seed, n)
        values[name] = rng.units(n)
        values[f"{name}_place"] = rng.place()
        values[f"{name}_again"] = rng.units(7)
    return values


def uniforms_blocks(seed: int) -> Values:
    rng = Pcg.somewhere(seed, 2)
    rng.skip(2 * (300_000 - 8))
    return {"last": rng.units(8), "size": i64(300_000), "place": rng.place()}


def uniforms_edges(seed: int) -> Values:
    place = Pcg.somewhere(seed, 3).place()
    return {"none": f64(), "before": place, "after": place}


def below(seed: int) -> Values:
    values: Values = {}
    for name, n in (("ten", 10), ("large", LARGE), ("all", 2**32), ("one", 1)):
        rng = Pcg.somewhere(seed, 4)
        values[name] = u32(*(rng.below(n) for _ in range(64)))
        values[f"{name}_place"] = rng.place()
    edges = Pcg(0x200008002468ACE, 109), Pcg(0x1FFFF8002468ACE, 109)
    return values | {"edges": u32(*(rng.below(LARGE) for rng in edges))}


def shuffle(seed: int) -> Values:
    values: Values = {}
    for name, n in (("ten", 10), ("hundred", 100)):
        rng = Pcg.somewhere(seed, 7)
        values[name] = i64(*rng.order(n))
        values[f"{name}_place"] = rng.place()
    return values


def substream(seed: int) -> Values:
    values: Values = {}
    for name, parent in (("zero", 0), ("half", 2**63), ("given", given(seed, 0))):
        children = [Pcg.seeded(child(parent, p), p) for p in range(1, 6)]
        values[name] = np.concatenate([rng.words(4) for rng in children])
    return values


RECURRENCE = "O'Neill's published recurrence in Python integers"
CASES = {
    "rand_py": {
        "splitmix64": ("Vigna's splitmix64.c: its outputs, its recurrence", splitmix64),
        "child_seed": ("SplitMix64 run as a generator, in Python integers", child_seed),
        "fnv1a64": ("Noll's test vectors; one byte by definition", fnv1a64),
        "universal_hash": ("by hand; by definition", universal_hash),
        "seed": (RECURRENCE, seeding),
        "set_state": ("by definition", set_state),
        "set_state_refused": ("by definition", set_state_refused),
        "next_u32": (RECURRENCE, next_u32),
        "first": ("worked by hand in the handout", first),
        "demo": ("O'Neill's pcg32-demo, round 1", demo),
        "vectors": (RECURRENCE, vectors),
        "uniform": (f"{RECURRENCE}, exact fractions", uniform),
        "uniform_sample": ("by definition: the ends of the grid", uniform_sample),
        "uniforms": (f"{RECURRENCE}, exact fractions", uniforms),
        "uniforms_blocks": (f"{RECURRENCE}, Brown's jump", uniforms_blocks),
        "uniforms_edges": ("by definition", uniforms_edges),
        "below": (RECURRENCE, below),
        "shuffle": (RECURRENCE, shuffle),
        "substream": (f"{RECURRENCE}; SplitMix64 run as a generator", substream),
    },
}
