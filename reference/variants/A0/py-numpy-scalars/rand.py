"""rand.py with numpy's own 64-bit integers, which wrap; blocks from tables of powers and sums."""
from operator import index

import numpy as np

U = np.uint64
MASK64 = (1 << 64) - 1
MULTIPLIER = 6364136223846793005
GOLDEN = 0x9E3779B97F4A7C15
FNV_BASIS = 14695981039346656037
FNV_PRIME = 1099511628211
PURPOSES = dict(init=1, dropout=2, shuffle=3, sample=4, mutation=5)
LANES = 4096

A = U(MULTIPLIER)
# Row k: A^2k, and 1 + A + ... + A^(2k - 1), of which a state and an inc make the state 2k on.
POWERS = np.cumprod(np.concatenate(([U(1)], np.full(2 * LANES, A))))
SUMS = np.concatenate(([U(0)], np.cumsum(POWERS)[:-1]))
POWERS, SUMS = POWERS[::2].copy(), SUMS[::2].copy()


def splitmix64(x):
    z = np.array([x % 2**64], U)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ z >> U(shift)) * U(factor)
    return (z ^ z >> U(31)).item()


def child_seed(seed, purpose_id):
    if seed != index(seed) or seed < 0 or seed > MASK64:
        raise ValueError("seed: %d" % seed)
    if purpose_id < 1 or purpose_id >= 2**63:
        raise ValueError("purpose: %d" % purpose_id)
    with np.errstate(over="ignore"):
        return splitmix64(int(U(seed) + U(purpose_id) * U(GOLDEN)))


def fnv1a64(data, h=FNV_BASIS):
    if not 0 <= h <= MASK64:
        raise ValueError("no hash: %d" % h)
    if isinstance(data, str):
        raise TypeError("text has no bytes")
    h = U(h)
    with np.errstate(over="ignore"):
        for byte in np.frombuffer(data, np.uint8) if len(data) else ():
            h = (h ^ U(byte)) * U(FNV_PRIME)
    return int(h)


def universal_hash(x, a, b, p, m):
    if not 0 <= x < p:
        raise ValueError("x: %d" % x)
    if not 1 <= a < p:
        raise ValueError("a: %d" % a)
    if not 0 <= b < p:
        raise ValueError("b: %d" % b)
    if m < 1:
        raise ValueError("m: %d" % m)
    return ((a * x + b) % p) % m


class PCG32:
    def __init__(self, seed, seq=54):
        if not 0 <= seed <= MASK64:
            raise ValueError("seed: %d" % seed)
        if not 0 <= seq < 2**63:
            raise ValueError("seq: %d" % seq)
        self.seed = seed
        self.at, self.inc = U(0), U(2 * seq + 1)
        self.next_u32()
        with np.errstate(over="ignore"):
            self.at = self.at + U(seed)
        self.next_u32()

    def state(self):
        return int(self.at), int(self.inc)

    def set_state(self, s):
        at, inc = s
        if not (0 <= at <= MASK64 and 0 <= inc <= MASK64 and inc % 2):
            raise ValueError("no place: %d, %d" % (at, inc))
        self.at, self.inc = U(at), U(inc)

    def next_u32(self):
        old = self.at
        with np.errstate(over="ignore"):
            self.at = old * A + self.inc
        word = np.uint32((old ^ old >> U(18)) >> U(27) & U(0xFFFFFFFF))
        turn = np.uint32(old >> U(59))
        return int(word >> turn | word << (-int(turn) & 31))

    def uniform(self):
        a, b = self.next_u32(), self.next_u32()
        return float(np.ldexp(np.float64((a >> 5) * 2**26 + (b >> 6)), -53))

    def uniforms(self, n):
        if n < 0:
            raise ValueError("n: %d" % n)
        blocks = []
        while n > 0:
            k = min(n, LANES)
            first = self.at * POWERS[: k + 1] + self.inc * SUMS[: k + 1]
            second = first[:-1] * A + self.inc
            self.at, n = first[-1], n - k
            blocks.append(self._outputs(first[:-1], 5) * 2.0**26 + self._outputs(second, 6))
        return np.concatenate(blocks) / 2.0**53 if blocks else np.zeros(0)

    @staticmethod
    def _outputs(old, unused):
        words = ((old ^ old >> U(18)) >> U(27)).astype(np.uint32)
        turn = (old >> U(59)).astype(np.uint32)
        return (words >> turn | words << (np.uint32(32) - turn & np.uint32(31))) >> np.uint32(unused)

    def below(self, n):
        if not 1 <= n <= 2**32:
            raise ValueError("n: %d" % n)
        while True:
            r = self.next_u32()
            if r >= 2**32 % n:
                return r % n

    def shuffle(self, xs):
        i = len(xs)
        while i > 1:
            j = self.below(i)
            i -= 1
            x = xs[i]
            xs[i] = xs[j]
            xs[j] = x

    def substream(self, purpose):
        try:
            p = PURPOSES[purpose]
        except KeyError as e:
            raise ValueError("no purpose: %r" % purpose) from e
        return PCG32(child_seed(self.seed, p), p)
