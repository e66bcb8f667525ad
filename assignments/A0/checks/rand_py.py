"""What decides the items of rand.py."""

import itertools

import numpy as np

from autograder.compare import Histogram, Seen, accepted, expect, raised, same

# below(3 * 2^30), 20 000 draws: the share below 2^30 is 1/3 with a deviation of 0.0033. 6.5 of
# those are beyond 1e-10; without rejection the share is 1/2.
SHARE, SHARE_BOUND = 1 / 3, 0.0217
LARGE = 3 << 30


# ---------------------------------------------------------------- hashes


def splitmix64_outputs(seen: Seen) -> None:
    hint = "shifts 30, 27, 31; the two products are taken mod 2^64"
    for start in (0, 1234567):
        text = f"seed {start}, outputs 1 to 5"
        same(seen, f"outputs_{start}", input=text, hint=hint, at="output", base=1)
    same(seen, "given", input="8 words", hint=hint, at="word")


def child_seed_golden(seen: Seen) -> None:
    hint = "splitmix64(seed + purpose_id * GOLDEN), mod 2^64"
    for name, text in (("zero", "0"), ("last", "2^64 - 1"), ("given", "another")):
        same(seen, name, input=f"seed {text}, purposes 1 to 5", hint=hint, at="purpose", base=1)


def child_seed_refused(seen: Seen) -> None:
    accepted(seen, "good", "purpose 2^63 - 1")
    raised(seen, "negative", "ValueError", "seed -1", -1)
    raised(seen, "wide", "ValueError", "seed 2^64", 2**64)
    raised(seen, "no_purpose", "ValueError", "purpose 0", 0)
    raised(seen, "wide_purpose", "ValueError", "purpose 2^63", 2**63)


def fnv1a64_golden(seen: Seen) -> None:
    hint = "xor first, then multiply; mod 2^64 after each byte"
    same(seen, "published", input='"", "a" to "f", "fo" to "foobar"', hint=hint, at="text")
    same(seen, "every_byte", input="texts of one byte, 0 to 255", hint=hint, at="byte")


def fnv1a64_chained(seen: Seen) -> None:
    whole, chained = seen.got("whole"), seen.got("chained")
    expect(whole.shape == chained.shape == (12,), "no 12 texts")
    expect(np.unique(whole).size == 12, "different texts have one hash", input="12 texts")
    bad = whole != chained
    first = int(np.argmax(bad))
    expect(
        not bad.any(),
        f"text {first} in two pieces",
        input="the second piece starts from the hash of the first",
        got=str(chained[first]),
        expected=str(whole[first]),
        hint="h is the whole state: start from it instead of the basis",
    )


def fnv1a64_refused(seen: Seen) -> None:
    accepted(seen, "good", "h 2^64 - 1")
    accepted(seen, "good_zero", "h 0")
    raised(seen, "negative", "ValueError", "h -1", -1)
    raised(seen, "wide", "ValueError", "h 2^64", 2**64)
    raised(seen, "text", "TypeError", "a text, which is no bytes")


def universal_hash_hand(seen: Seen) -> None:
    hint = "(a x + b) mod p first, then mod m"
    same(seen, "hand", input="x 10, a 3, b 7, p 13, m 5", hint=hint)
    same(seen, "given", input="p 2^61 - 1, m 1000", hint=hint, at="key")


def universal_hash_meets(seen: Seen) -> None:
    keys = [seen.got(f"key{i}") for i in range(4)]
    for buckets in keys:
        expect(buckets.shape == (10_100,), "not one bucket for each a and b")
        expect(bool(((buckets >= 0) & (buckets < 7)).all()), "a bucket outside 0 .. 6")
    for one, other in itertools.combinations(keys, 2):
        met = int((one == other).sum())
        expect(
            met <= 10_100 / 7,
            "two keys meet too often",
            input="p 101, m 7, all 10 100 pairs (a, b)",
            got=f"{met} times",
            expected="1442 times at most: one in 7",
            hint="mod m before mod p is another function, without that promise",
        )


def universal_hash_refused(seen: Seen) -> None:
    p = seen.number("p")
    accepted(seen, "good_least", "x 0, a 1, b 0, m 1")
    accepted(seen, "good_largest", "x, a and b p - 1")
    accepted(seen, "good_many", "m = 2 p, more buckets than keys")
    for name in ("x", "b"):
        raised(seen, f"{name}_negative", "ValueError", f"{name} -1", -1)
    raised(seen, "a_zero", "ValueError", "a 0", 0)
    for name in ("x", "a", "b"):
        raised(seen, f"{name}_large", "ValueError", f"{name} = p = {p}", p)
    raised(seen, "m_zero", "ValueError", "m 0", 0)


# ---------------------------------------------------------------- seeding and places


def pcg32_seeded(seen: Seen) -> None:
    hint = "inc = 2 seq + 1; from 0: step, add the seed, step"
    same(seen, "zero", input="PCG32(0).state()", hint=hint)
    for name, text in (("one", "1"), ("half", "2^63"), ("last", "2^64 - 1"), ("given", "another")):
        same(seen, name, input=f"seed {text}: state, inc", hint=hint)


def pcg32_streams(seen: Seen) -> None:
    for name, text in (("first_seq", "0"), ("last_seq", "2^63 - 1"), ("given_seq", "another")):
        same(seen, name, input=f"seq {text}: state, inc", hint="inc = 2 seq + 1, always odd")


def pcg32_seed_refused(seen: Seen) -> None:
    accepted(seen, "good", "a seed and a stream")
    raised(seen, "negative", "ValueError", "seed -1", -1)
    raised(seen, "wide", "ValueError", "seed 2^64", 2**64)
    raised(seen, "negative_seq", "ValueError", "seq -1", -1)
    raised(seen, "wide_seq", "ValueError", "seq 2^63", 2**63)


def set_state_kept(seen: Seen) -> None:
    for i in range(4):
        same(seen, f"kept{i}", input="set_state, then state()", hint="(state, inc), as given")


def set_state_resumes(seen: Seen) -> None:
    first = seen.got("first")
    expect(first.shape == (32,) and np.unique(first).size > 16, "no 32 different draws")
    for name, text in (("other", "another generator"), ("again", "the same one, set back")):
        got = seen.got(name)
        expect(
            np.array_equal(got, first),
            f"{text} draws other numbers",
            input="32 times: state(), a draw, set_state, a draw",
            got=" ".join(map(str, got[:4])),
            expected=" ".join(map(str, first[:4])),
            hint="state and inc are both needed, and enough",
        )


def set_state_refused(seen: Seen) -> None:
    accepted(seen, "good", "an odd inc")
    accepted(seen, "good_zero", "state 0, inc 1")
    accepted(seen, "good_largest", "state and inc 2^64 - 1")
    even = seen.got("even_inc")
    expect(even.shape == (1,), "no even inc")
    raised(seen, "even", "ValueError", f"inc {even[0]}, which is even", even[0])
    raised(seen, "zero", "ValueError", "inc 0", 0)
    raised(seen, "negative", "ValueError", "state -1", -1)
    raised(seen, "wide", "ValueError", "state 2^64", 2**64)
    raised(seen, "negative_inc", "ValueError", "inc -1", -1)
    raised(seen, "wide_inc", "ValueError", "inc 2^64 + 1", 2**64 + 1)
    hint = "check both before you keep either"
    same(seen, "before", input="state() before the bad ones", hint=hint)
    same(seen, "after", input="state() after the bad ones", hint=hint)


# ---------------------------------------------------------------- draws


def next_u32_rotations(seen: Seen) -> None:
    hint = "the old state's top five bits say how far; within 32 bits"
    for rotation in (0, 1, 16, 31):
        same(seen, f"rotated_{rotation}", input=f"a state that rotates by {rotation}", hint=hint)
        same(seen, f"place_{rotation}", input="state, inc after it", hint="A state + inc, mod 2^64")
    same(seen, "draws", input="a given state, 100 draws", hint=hint, at="draw")
    same(seen, "place_draws", input="state, inc after them", hint="one step a draw, mod 2^64")


def next_u32_first(seen: Seen) -> None:
    hint = "the handout works it out by hand: 0x47C28B93"
    same(seen, "zero", input="PCG32(0), the first draw", hint=hint)


def next_u32_demo(seen: Seen) -> None:
    hint = "what O'Neill's own program prints; see the rows above"
    same(seen, "stream_54", input="PCG32(42, 54), 6 draws", hint=hint, at="draw")
    same(seen, "stream", input="PCG32(42), 6 draws", hint="seq is 54 where none is named")


def next_u32_vectors(seen: Seen) -> None:
    for name, text in (("zero", "0"), ("one", "1"), ("half", "2^63")):
        hint = "the old state is permuted; masks after each product"
        same(seen, name, input=f"seed {text}, 1024 draws", hint=hint, at="draw")


def uniform_golden(seen: Seen) -> None:
    hint = "27 bits of the first draw, then 26 of the second, times 2^-53"
    same(seen, "of_seed_0", input="where PCG32(0) starts, 8 uniforms", hint=hint, at="uniform")
    same(seen, "draws", input="a given state, 16 uniforms", hint=hint, at="uniform")


def uniform_place(seen: Seen) -> None:
    same(seen, "place", input="state, inc after 16 uniforms", hint="two draws each")
    expect(np.unique(seen.got("draws")).size > 8, "uniforms repeat", input="16 uniforms")


def uniform_grid(seen: Seen) -> None:
    sample = seen.got("sample")
    expect(sample.dtype == np.float64 and sample.shape == (4000,), "no 4000 doubles")
    inside = (sample >= 0) & (sample < 1)
    first = int(np.argmin(inside))
    expect(
        bool(inside.all()),
        f"uniform {first} is outside",
        got=f"{sample[first]:.17g}",
        expected="at least 0 and less than 1",
        picture=_flat(sample),
    )
    scaled = sample * 2.0**53
    expect(bool((scaled == np.floor(scaled)).all()), "not on the grid of 2^-53")
    # A random bit is the same in 4000 draws with probability 2^-3999.
    bits = np.bitwise_or.reduce(scaled.astype(np.int64) & 0x1FFFFF)
    expect(
        bits == 0x1FFFFF,
        "the lowest 21 bits are not all used",
        input="4000 uniforms",
        got=f"{int(bits):021b}",
        expected="1" * 21,
        hint="one draw has 32 bits: a double needs two",
    )
    hint = "whole numbers until the last product; 1.0 must never come out"
    same(seen, "ends", input="draws of all ones, ones and zero, zero", hint=hint)


def _flat(values: np.ndarray) -> Histogram:
    edges = np.linspace(0, 1, 17)
    counts = np.bincount(np.searchsorted(edges, values, "right"), minlength=18)[:18]
    bins = ("< 0", *(f"{i}/16.." for i in range(16)), ">= 1")
    wanted = (0.0, *(values.size / 16,) * 16, 0.0)
    return Histogram("uniforms", bins, tuple(counts.tolist()), wanted)


SIZES = ("n1", "n2", "n3", "n100", "more")


def uniforms_golden(seen: Seen) -> None:
    hint = "bit for bit what as many calls of uniform give"
    for name in SIZES:
        text = {"more": "5000 and some"}.get(name, name[1:])
        same(seen, name, input=f"uniforms({text})", hint=hint, at="uniform")


def uniforms_place(seen: Seen) -> None:
    for name in SIZES:
        text = {"more": "5000 and some"}.get(name, name[1:])
        hint = "two draws each: none left over, none too many"
        same(seen, f"{name}_place", input=f"state, inc after uniforms({text})", hint=hint)
        same(seen, f"{name}_again", input="the 7 uniforms after them", hint=hint, at="uniform")


def uniforms_blocks(seen: Seen) -> None:
    hint = "A^k and inc (1 + A + ... + A^(k-1)) jump k steps: let numpy do a block at once"
    same(seen, "size", input="uniforms(300000)", hint=hint)
    same(seen, "last", input="uniforms(300000), the last 8", hint=hint, at="uniform")
    same(seen, "place", input="state, inc after them", hint=hint)
    steps = seen.number("steps")
    # A block of 2^14 in ten lines takes 200 steps; a loop takes one a number at the least.
    expect(
        0 < steps < 30_000,
        "it goes one by one",
        input="uniforms(300000): lines of Python run",
        got=f"{steps} or more",
        expected="fewer than 30000",
        hint=hint,
    )
    beside = seen.number("beside")
    # Ten arrays of 2^14 numbers are 1.3 MB. Blocks that are joined at the end are 8 MB more; with
    # all of it in one block each step of the way is 8 MB.
    expect(
        beside < 16_000_000,
        "memory grows with n",
        input="uniforms(1000000): bytes needed beside the result",
        got=str(beside),
        expected="fewer than 16000000",
        hint="double the lanes up to LANES, no further",
    )


def uniforms_edges(seen: Seen) -> None:
    accepted(seen, "good", "uniforms(2)")
    same(seen, "none", input="uniforms(0)", hint="an empty array of float64")
    raised(seen, "negative", "ValueError", "uniforms(-1)", -1)
    same(seen, "before", input="state() before them")
    same(seen, "after", input="state() after them", hint="nothing is drawn for 0 or -1")


def below_golden(seen: Seen) -> None:
    names = {"ten": "10", "large": "3 * 2^30", "all": "2^32", "one": "1"}
    for name, text in names.items():
        hint = "draw until r >= 2^32 mod n, then r mod n"
        same(seen, name, input=f"below({text}), 64 times", hint=hint, at="result")
        same(seen, f"{name}_place", input=f"state, inc after below({text})", hint=hint)
    hint = "2^30 = 2^32 mod n is taken, 2^30 - 1 is not"
    same(seen, "edges", input="below(3 * 2^30) of draws 2^30 and 2^30 - 1", hint=hint)


def below_even(seen: Seen) -> None:
    sample = seen.got("sample")
    expect(sample.dtype == np.uint32 and sample.shape == (20_000,), "no 20 000 words")
    expect(bool((sample < LARGE).all()), "a result of n or more", input="below(3 * 2^30)")
    expect(np.unique(sample).size > 19_000, "results repeat", input="below(3 * 2^30)")
    counts = np.bincount(sample >> 30, minlength=3)
    share = float(counts[0]) / sample.size
    expect(
        abs(share - SHARE) < SHARE_BOUND,
        "the share below 2^30",
        input="below(3 * 2^30), 20 000 times",
        got=f"{share:.4f}",
        expected=f"{SHARE:.4f} +- {SHARE_BOUND}",
        hint="r mod n favours the small: draw again where r < 2^32 mod n",
        picture=Histogram(
            "results",
            ("below 2^30", "below 2^31", "below 3 * 2^30"),
            tuple(counts.tolist()),
            (sample.size / 3,) * 3,
        ),
    )


def below_refused(seen: Seen) -> None:
    accepted(seen, "good", "below(2^32)")
    raised(seen, "zero", "ValueError", "below(0)", 0)
    raised(seen, "negative", "ValueError", "below(-1)", -1)
    raised(seen, "wide", "ValueError", "below(2^32 + 1)", 2**32 + 1)
    before, after = seen.got("before"), seen.got("after")
    expect(np.array_equal(before, after), "it drew for a bad n", input="state() before and after")


def shuffle_golden(seen: Seen) -> None:
    for name, n in (("ten", 10), ("hundred", 100)):
        hint = "i from the end down to 1, j = below(i + 1), swap; j may be i"
        same(seen, name, input=f"0 .. {n - 1}, a given state", hint=hint)
        same(seen, f"{name}_place", input=f"state, inc after {n} elements", hint=hint)


def shuffle_valid(seen: Seen) -> None:
    for name, n in (("none", 0), ("one", 1), ("two", 2), ("thousand", 1000)):
        whole = np.array_equal(np.sort(seen.got(name)), 3 * np.arange(n) + 1)
        text = f"{n} different values"
        expect(whole, "values are lost or invented", input=text, hint="swap, never overwrite")
    moved = int((seen.got("thousand") != 3 * np.arange(1000) + 1).sum())
    # A random order leaves one value in its place on average; more than 20 are below 1e-18.
    expect(
        moved >= 980,
        "hardly anything moved",
        input="1000 different values",
        got=f"{moved} moved",
        expected="about 999",
        hint="in place: what it returns is not looked at",
    )


# ---------------------------------------------------------------- sub-streams


def substream_golden(seen: Seen) -> None:
    hint = "PCG32(child_seed(seed, p), seq=p), p from 1 to 5; four draws of each"
    for name, text in (("zero", "0"), ("half", "2^63"), ("given", "another")):
        same(seen, name, input=f"seed {text}, five purposes", hint=hint, at="draw")


def substream_ignores(seen: Seen) -> None:
    fresh = seen.got("fresh")
    expect(fresh.shape == (20,) and np.unique(fresh).size > 15, "no 20 different draws")
    for name, text in (("drawn", "after some draws"), ("set", "after set_state")):
        expect(
            np.array_equal(seen.got(name), fresh),
            f"other numbers {text}",
            input="five purposes, four draws of each",
            got=" ".join(map(str, seen.got(name)[:4])),
            expected=" ".join(map(str, fresh[:4])),
            hint="from the seed that was given, not from where the generator stands",
        )
    hint = "a sub-stream draws nothing from its parent"
    unmoved = np.array_equal(seen.got("before"), seen.got("after"))
    expect(unmoved, "the parent moved", input="state() before and after", hint=hint)


def substream_refused(seen: Seen) -> None:
    accepted(seen, "good", "substream('init')")
    raised(seen, "unknown", "ValueError", "substream('weather')", "weather")
    raised(seen, "empty", "ValueError", "substream('')")
