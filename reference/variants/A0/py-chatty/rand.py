"""rand.py of someone who looks for a bug: it prints, logs and warns, and is none the worse for it."""

import logging
import sys
import warnings

import numpy as np

logging.basicConfig(level=logging.DEBUG)
log = logging.getLogger("rand")
print("rand.py is read", flush=True)

MASK64 = 2**64 - 1
MULTIPLIER = 6364136223846793005
GOLDEN = 0x9E3779B97F4A7C15
FNV_BASIS, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
LANES = 1 << 14


def checked(value, *, low=0, high=MASK64):
    assert isinstance(value, (int, np.integer)), value
    if not low <= value <= high:
        print("refused:", value, file=sys.stderr)
        raise ValueError("refused: {} (outside [{}, {}])".format(value, low, high))
    return value


def splitmix64(x):
    warnings.warn("splitmix64 is called")
    x = x % (MASK64 + 1)
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
    print(f"{x=:#x}")
    return x ^ x >> 31


def child_seed(seed, purpose_id):
    return splitmix64(checked(seed) + checked(purpose_id, low=1, high=2**63 - 1) * GOLDEN)


def fnv1a64(data, h=FNV_BASIS):
    log.debug("fnv1a64 of %r from %d", data, h)
    h = checked(h)
    for byte in data if not isinstance(data, str) else data.encode(None):
        h = (h ^ byte) * FNV_PRIME & MASK64
    return h


def universal_hash(x, a, b, p, m):
    checked(x, high=p - 1), checked(a, low=1, high=p - 1), checked(b, high=p - 1), checked(m, low=1)
    return (a * x + b) % p % m


class PCG32:
    def __repr__(self):
        return f"<PCG32 {self.place}>"

    def __init__(self, seed, seq=54):
        self.seed = checked(seed)
        self.place = (0, 2 * checked(seq, high=2**63 - 1) + 1)
        self.next_u32()
        self.place = ((self.place[0] + seed) & MASK64, self.place[1])
        self.next_u32()
        print("made", self)

    def state(self):
        return self.place

    def set_state(self, s):
        print(self, "->", s)
        s = checked(s[0]), checked(s[1])
        if s[1] % 2 == 0:
            raise ValueError(f"{s} has an even inc")
        self.place = s

    def next_u32(self):
        state, inc = self.place
        self.place = (state * MULTIPLIER + inc) & MASK64, inc
        word, turn = ((state >> 18 ^ state) >> 27) & 0xFFFFFFFF, state >> 59
        word = (word >> turn | word << 32 - turn) & 0xFFFFFFFF
        print(word, end=" ")
        return word

    def uniform(self):
        a = self.next_u32() >> 5
        b = self.next_u32() >> 6
        sys.stdout.write("%.17g\n" % ((a * 2**26 + b) * 2.0**-53))
        return (a * 2**26 + b) * 2.0**-53

    def uniforms(self, n):
        checked(n)
        log.info("uniforms(%d)", n)
        left = n
        result = np.zeros(n)
        while left:
            size = min(left, LANES)
            states, a, c = np.array([self.place[0]], np.uint64), MULTIPLIER, self.place[1]
            while states.size < 2 * size + 1:
                states = np.concatenate([states, a * states + c])
                a, c = a**2 & MASK64, (a + 1) * c & MASK64
            self.place = int(states[2 * size]), self.place[1]
            states = states[: 2 * size]
            word = (states >> 18 ^ states) >> 27 & 0xFFFFFFFF
            word = (word << 32 | word) >> (states >> 59) & 0xFFFFFFFF
            result[n - left :][:size] = (word[::2] // 32 * 2**26 + word[1::2] // 64) * 2.0**-53
            left -= size
            print(f"{left} left", file=sys.stderr)
        return result

    def below(self, n):
        checked(n, low=1, high=2**32)
        word = -1
        while word < 2**32 % n:
            word = self.next_u32()
        return word % n

    def shuffle(self, xs):
        print("before:", xs)
        for i in range(len(xs))[:0:-1]:
            j = self.below(i + 1)
            xs[i], xs[j] = xs[j], xs[i]
        print("after:", xs)

    def substream(self, purpose):
        if purpose not in PURPOSES:
            raise ValueError("what is %r?" % purpose)
        return PCG32(child_seed(self.seed, PURPOSES[purpose]), PURPOSES[purpose])


if __name__ == "__main__":
    rng = PCG32(42, 54)
    assert rng.next_u32() == 0xA15C02B7
