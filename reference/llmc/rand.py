"""rand.py: PCG32, its sub-streams, and the hashes: one stream of numbers in every language.

The algorithm, to the bit: spec/pcg32.md. What it must give: spec/pcg32.vectors.json. pcg32.h is
the same in C. Every public function takes Python integers and raises ValueError, with the value in
the message, for one outside the range that it states; TypeError for what is no integer.
"""

import operator
from collections.abc import MutableSequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

MASK64 = 2**64 - 1
MULTIPLIER = 6364136223846793005  # A: of the step state * A + inc
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd: SplitMix64's step
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
LANES = 1 << 14  # uniforms that are drawn side by side; more would leave the cache


def _within(name: str, value: int, low: int, high: int) -> int:
    """`value`, which must be an integer from `low` to `high`, both included.

    Raises TypeError or ValueError with the name, the value and the range in the message.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, not an integer") from None
    if not low <= number <= high:
        raise ValueError(f"{name} is {number}, not within {low} .. {high}")
    return number


def splitmix64(x: int) -> int:
    """The mixer of SplitMix64, a bijection of 64-bit words; `x` is taken mod 2^64.

    Output k = 1, 2, ... of the generator SplitMix64 seeded with s is splitmix64(s + k * GOLDEN).
    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014).
    """
    # TODO (A0): splitmix64
    # HINT: xor with itself >> 30, times 0xBF58476D1CE4E5B9; >> 27, times 0x94D049BB133111EB; >> 31.
    # BEGIN SOLUTION
    z = x & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)
    # END SOLUTION


def child_seed(seed: int, purpose_id: int) -> int:
    """The seed of a purpose's own generator: output `purpose_id` of SplitMix64 seeded with `seed`.

    0 <= seed < 2^64, 1 <= purpose_id < 2^63; else ValueError.
    """
    # TODO (A0): child_seed
    # HINT: splitmix64 has no state; what does its generator's state hold at output purpose_id?
    # BEGIN SOLUTION
    seed = _within("seed", seed, 0, MASK64)
    return splitmix64(seed + _within("purpose_id", purpose_id, 1, 2**63 - 1) * GOLDEN)
    # END SOLUTION


def fnv1a64(data: bytes, h: int = FNV_BASIS) -> int:
    """FNV-1a, 64 bits, of `data`; `h` is the hash of what came before: it chains over buffers.

    0 <= h < 2^64, else ValueError; TypeError where `data` is text. Source: Fowler, Noll and Vo.
    """
    # TODO (A0): fnv1a64
    # HINT: for each byte, xor it in first, then multiply by FNV_PRIME, mod 2^64.
    # BEGIN SOLUTION
    h = _within("h", h, 0, MASK64)
    for byte in memoryview(data):
        h = ((h ^ byte) * FNV_PRIME) & MASK64
    return h
    # END SOLUTION


def universal_hash(x: int, a: int, b: int, p: int, m: int) -> int:
    """The bucket of `x` among m: ((a x + b) mod p) mod m, p prime.

    0 <= x < p, 1 <= a < p, 0 <= b < p, m >= 1; else ValueError. With a and b drawn at random, two
    keys meet with probability 1/m at most. Source: Carter and Wegman, Universal Classes of Hash
    Functions (1979).
    """
    # TODO (A0): universal_hash
    # HINT: the order of the two remainders is the point.
    # BEGIN SOLUTION
    for name, value, low in (("x", x, 0), ("a", a, 1), ("b", b, 0)):
        _within(name, value, low, p - 1)
    return (a * x + b) % p % _within("m", m, 1, MASK64)
    # END SOLUTION


class PCG32:
    """O'Neill's pcg32 (XSH RR 64/32): a 64-bit linear congruential generator behind a permutation.

    Source: O'Neill, PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
    Random Number Generation (2014).
    """

    def __init__(self, seed: int, seq: int = 54) -> None:
        """Stream `seq` (0 <= seq < 2^63), at the place that `seed` (0 <= seed < 2^64) chooses.

        Keeps the seed, for `substream`. Raises ValueError for a seed or seq outside.
        """
        # TODO (A0): PCG32.__init__
        # HINT: inc = 2 seq + 1; state = 0, one step, plus the seed, one step: all mod 2^64.
        # BEGIN SOLUTION
        self._seed = _within("seed", seed, 0, MASK64)
        self._inc = _within("seq", seq, 0, 2**63 - 1) << 1 | 1
        state = self._inc + self._seed  # 0 * MULTIPLIER + inc, then the seed
        self._state = (state * MULTIPLIER + self._inc) & MASK64
        # END SOLUTION

    def state(self) -> tuple[int, int]:
        """(state, inc): all that decides what is drawn next."""
        # TODO (A0): PCG32.state
        # HINT: a tuple of two Python ints, as a checkpoint stores it.
        # BEGIN SOLUTION
        return self._state, self._inc
        # END SOLUTION

    def set_state(self, s: tuple[int, int]) -> None:
        """Goes to the place (state, inc) that `state` gave; the seed stays what it was.

        Both in [0, 2^64), inc odd; else ValueError, and nothing has changed.
        """
        # TODO (A0): PCG32.set_state
        # HINT: check both before you keep either; an even inc has no full period.
        # BEGIN SOLUTION
        state = _within("state", s[0], 0, MASK64)
        inc = _within("inc", s[1], 0, MASK64)
        if inc % 2 == 0:
            raise ValueError(f"inc is {inc}, which is even")
        self._state, self._inc = state, inc
        # END SOLUTION

    def next_u32(self) -> int:
        """The next 32 bits, in [0, 2^32)."""
        # TODO (A0): PCG32.next_u32
        # HINT: the output is a permutation of the old state: xorshift, then rotate right by its
        # top 5 bits. Python's integers do not wrap: mask.
        # BEGIN SOLUTION
        old = self._state
        self._state = (old * MULTIPLIER + self._inc) & MASK64
        word = ((old >> 18 ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return (word >> turn | word << (32 - turn)) & 0xFFFFFFFF
        # END SOLUTION

    def uniform(self) -> float:
        """Uniform on [0, 1), a multiple of 2^-53: 27 bits of a first draw, then 26 of a second."""
        # TODO (A0): PCG32.uniform
        # HINT: (floor(a / 2^5) 2^26 + floor(b / 2^6)) 2^-53 of draws a, b; whole numbers
        # until the last product.
        # BEGIN SOLUTION
        high, low = self.next_u32() >> 5, self.next_u32() >> 6
        return (high << 26 | low) * 2.0**-53
        # END SOLUTION

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """(n,) float64: what n calls of `uniform` would give; leaves the state that they would.

        n >= 0, else ValueError. Works in blocks of LANES, in memory that does not grow with n but
        for the result.
        """
        # TODO (A0): PCG32.uniforms
        # HINT: two steps are one step with A^2 and c (A + 1); numpy's uint64 wraps by itself. From
        # w states, each two draws after the one before, one product makes the next w: double up.
        # BEGIN SOLUTION
        out = np.empty(_within("n", n, 0, 2**60), np.float64)
        # Lane k holds the state before uniform k; times `jump` plus `add` skips all the lanes.
        lanes = np.array([self._state], np.uint64)
        jump, add = MULTIPLIER**2 & MASK64, self._inc * (MULTIPLIER + 1) & MASK64
        while lanes.size <= n and lanes.size < LANES:
            lanes = np.concatenate((lanes, lanes * jump + add))
            jump, add = jump * jump & MASK64, add * (jump + 1) & MASK64

        def words(old: np.ndarray) -> np.ndarray:
            """What `next_u32` gives, in the low halves: a word written twice turns by shifting."""
            word = old >> 18
            word ^= old
            word >>= 27
            word &= 0xFFFFFFFF
            word *= 0x1_0000_0001
            word >>= old >> 59
            return word

        for start in range(0, n, lanes.size):
            old = lanes[: n - start]
            high = (words(old) & 0xFFFFFFE0) << 21
            low = (words(old * MULTIPLIER + self._inc) & 0xFFFFFFFF) >> 6
            # As a signed number a word becomes a double faster; 53 bits fit in either.
            out[start : start + lanes.size] = (high | low).view(np.int64) * 2.0**-53
            if old.size == lanes.size:
                lanes = lanes * jump + add
        self._state = int(lanes[n % lanes.size])
        return out
        # END SOLUTION

    def below(self, n: int) -> int:
        """Uniform on 0 .. n - 1, without bias. 1 <= n <= 2^32, else ValueError.

        Draws until a word r is at least 2^32 mod n: then r mod n.
        """
        # TODO (A0): PCG32.below
        # HINT: the words that are left are a multiple of n; on average fewer than two draws.
        # BEGIN SOLUTION
        n = _within("n", n, 1, 2**32)
        smallest = 2**32 % n
        while (word := self.next_u32()) < smallest:
            pass
        return word % n
        # END SOLUTION

    def shuffle(self, xs: MutableSequence[T]) -> None:
        """Shuffles in place (Fisher-Yates): for i from the last to 1, swaps i and below(i + 1)."""
        # TODO (A0): PCG32.shuffle
        # HINT: j may equal i.
        # BEGIN SOLUTION
        for i in range(len(xs) - 1, 0, -1):
            j = self.below(i + 1)
            xs[i], xs[j] = xs[j], xs[i]
        # END SOLUTION

    def substream(self, purpose: str) -> "PCG32":
        """The generator of one purpose, a key of PURPOSES; an unknown one raises ValueError.

        With p its number: PCG32(child_seed(seed, p), seq=p), whatever has been drawn or set here.
        """
        # TODO (A0): PCG32.substream
        # HINT: `seed` is what this generator was made with, not where it stands.
        # BEGIN SOLUTION
        if purpose not in PURPOSES:
            raise ValueError(f"purpose is {purpose!r}, not one of {', '.join(PURPOSES)}")
        number = PURPOSES[purpose]
        return PCG32(child_seed(self._seed, number), seq=number)
        # END SOLUTION
