"""rand.py without an operator on bits but in xor: products, quotients and remainders alone."""

import numpy as np

MASK64 = 2**64 - 1
MULTIPLIER = 6364136223846793005
GOLDEN = 11400714819323198485
FNV_BASIS, FNV_PRIME = 14695981039346656037, 2**40 + 2**8 + 0xB3
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
LANES = 2**12
W, WW = 2**32, 2**64


def splitmix64(x):
    x %= WW
    x = (x ^ x // 2**30) * 13787848793156543929 % WW
    x = (x ^ x // 2**27) * 10723151780598845931 % WW
    return x ^ x // 2**31


def child_seed(seed, purpose_id):
    assert_in(seed, 0, WW)
    assert_in(purpose_id, 1, 2**63)
    return splitmix64(seed + purpose_id * GOLDEN)


def assert_in(value, low, end):
    """Not an `assert`: those go away with -O."""
    if value < low or value >= end:
        raise ValueError(str(value) + " is not in [" + str(low) + ", " + str(end) + ")")


def fnv1a64(data, h=FNV_BASIS):
    assert_in(h, 0, WW)
    i = 0
    while i < len(data):
        h = (h ^ data[i]) * FNV_PRIME % WW
        i += 1
    return h


def universal_hash(x, a, b, p, m):
    assert_in(x, 0, p)
    assert_in(a, 1, p)
    assert_in(b, 0, p)
    assert_in(m, 1, float("inf"))
    inner = (a * x + b) - (a * x + b) // p * p
    return inner - inner // m * m


def output(old):
    word = (old ^ old // 2**18) // 2**27 % W
    power = 2 ** (old // 2**59)
    return word // power + word % power * (W // power)


def draws(place):
    """Draws for ever; `place`, a list of two, is where it stands."""
    while True:
        old = place[0]
        place[0] = (old * MULTIPLIER + place[1]) % WW
        yield output(old)


class PCG32:
    def __init__(self, seed, seq=54):
        assert_in(seed, 0, WW)
        assert_in(seq, 0, 2**63)
        self.seed = seed
        self.place = [0, 2 * seq + 1]
        self.draws = draws(self.place)
        next(self.draws)
        self.place[0] += seed
        next(self.draws)

    def state(self):
        return tuple(self.place)

    def set_state(self, s):
        for word in s:
            assert_in(word, 0, WW)
        if s[1] % 2 != 1:
            raise ValueError("even: " + str(s[1]))
        self.place[:] = s

    def next_u32(self):
        return next(self.draws)

    def uniform(self):
        a, b = next(self.draws), next(self.draws)
        return (a // 32 * 67108864 + b // 64) / 9007199254740992

    def uniforms(self, n):
        assert_in(n, 0, 2**62)
        result = np.zeros(n)
        lanes = min(n, LANES)
        if n == 0:
            return result
        states = np.zeros(2 * lanes, np.uint64)
        for i in range(2 * lanes):  # the first block one by one, all others from the one before
            states[i] = self.place[0]
            self.place[0] = (self.place[0] * MULTIPLIER + self.place[1]) % WW
        factor = pow(MULTIPLIER, 2 * lanes, WW)
        # 1 + A + ... + A^(k-1) is (A^k - 1) / (A - 1); A - 1 is 4 times an odd number.
        inverse = pow((MULTIPLIER - 1) // 4, -1, WW)
        series = (pow(MULTIPLIER, 2 * lanes, 4 * WW) - 1) // 4 * inverse % WW
        done = 0
        while True:
            words = self.outputs(states)
            block = (words[::2] // 32 * 67108864 + words[1::2] // 64) / 9007199254740992
            size = min(lanes, n - done)
            result[done : done + size] = block[:size]
            done += size
            after = states * np.uint64(factor) + np.uint64(self.place[1] * series % WW)
            if done == n:
                self.place[0] = int(np.append(states, after[0])[2 * size])
                return result
            states = after

    @staticmethod
    def outputs(old):
        word = (old ^ old // 2**18) // 2**27 % W
        power = 2 ** (old // 2**59)
        return word // power + word % power * (W // power)

    def below(self, n):
        assert_in(n, 1, W + 1)
        return next(word % n for word in self.draws if word >= W % n)

    def shuffle(self, xs):
        for i in range(1, len(xs)):
            j = self.below(len(xs) - i + 1)
            last = xs[-i]
            xs[-i] = xs[j]
            xs[j] = last

    def substream(self, purpose):
        match purpose:
            case "init" | "dropout" | "shuffle" | "sample" | "mutation":
                p = PURPOSES[purpose]
                return PCG32(child_seed(self.seed, p), p)
            case _:
                raise ValueError("unknown purpose '" + purpose + "'")
