# rand.py as expressions: no def, no class, and lines as long as they come; who writes so should not.
import numpy as np; from functools import reduce; from itertools import takewhile, count
MASK64, MULTIPLIER, GOLDEN, FNV_BASIS, FNV_PRIME, LANES = 2**64-1, 6364136223846793005, 0x9E3779B97F4A7C15, 0xCBF29CE484222325, 0x100000001B3, 1 << 14
PURPOSES = {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
fail = lambda *said: (_ for _ in ()).throw(ValueError(*said))
within = lambda x, low, high: x if low <= x <= high else fail(f"{x} is outside {low}..{high}")
splitmix64 = lambda x: (lambda z: z ^ z >> 31)((lambda z: (z ^ z >> 27) * 0x94D049BB133111EB & MASK64)((lambda z: (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK64)(x & MASK64)))
child_seed = lambda seed, purpose_id: splitmix64(within(seed, 0, MASK64) + within(purpose_id, 1, 2**63 - 1) * GOLDEN)
fnv1a64 = lambda data, h=FNV_BASIS: reduce(lambda h, b: (h ^ b) * FNV_PRIME & MASK64, memoryview(data), within(h, 0, MASK64))
universal_hash = lambda x, a, b, p, m: (within(a, 1, p - 1) * within(x, 0, p - 1) + within(b, 0, p - 1)) % p % within(m, 1, MASK64)
rotated = lambda old: (lambda w: (w << 32 | w) >> (old >> 59) & 0xFFFFFFFF)((old ^ old >> 18) >> 27 & 0xFFFFFFFF)
seeded = lambda self, seed, seq=54: (setattr(self, "seed", within(seed, 0, MASK64)), setattr(self, "at", [(within(seq, 0, 2**63 - 1) * 2 + 1 + seed) * MULTIPLIER + 2 * seq + 1 & MASK64, 2 * seq + 1]))[2:] or None
moved = lambda self: (rotated(self.at[0]), self.at.__setitem__(0, self.at[0] * MULTIPLIER + self.at[1] & MASK64))[0]
jumped = lambda states, factor, term, size: states if len(states) >= size else jumped(np.append(states, states * np.uint64(factor) + np.uint64(term)), factor * factor & MASK64, term * (factor + 1) & MASK64, size)
block = lambda self, n: (lambda states: ((lambda words: (words[::2] // 32 * 67108864 + words[1::2] // 64) * 2.0**-53)(rotated(states[:2 * n])), self.at.__setitem__(0, int(states[2 * n])))[0])(jumped(np.array([self.at[0]], np.uint64), MULTIPLIER, self.at[1], 2 * n + 1))
PCG32 = type("PCG32", (object,), {
    "__init__": lambda self, seed, seq=54: seeded(self, seed, seq),
    "state": lambda self: (self.at[0], self.at[1]),
    "set_state": lambda self, s: setattr(self, "at", [within(s[0], 0, MASK64), within(s[1], 0, MASK64) if s[1] % 2 else fail(f"even: {s[1]}")]),
    "next_u32": moved,
    "uniform": lambda self: (moved(self) // 32 * 67108864 + moved(self) // 64) * 2.0**-53,
    "uniforms": lambda self, n: np.concatenate([np.zeros(0), *(block(self, min(LANES, n - i)) for i in range(0, within(n, 0, 2**60), LANES))]),
    "below": lambda self, n: (lambda bad: moved(self) % n if not bad else None)(list(takewhile(lambda _: rotated(self.at[0]) < 2**32 % within(n, 1, 2**32) and (moved(self), True)[1], count())) and False),
    "shuffle": lambda self, xs: [xs.__setitem__(slice(None), xs[:j] + [xs[i]] + xs[j + 1:i] + [xs[j]] + xs[i + 1:]) for i in range(len(xs) - 1, 0, -1) for j in [self.below(i + 1)] if i != j] and None,
    "substream": lambda self, purpose: (lambda p: PCG32(child_seed(self.seed, p), p))(PURPOSES[purpose] if purpose in PURPOSES else fail(purpose)),
})
