"""rand_py.py: observes llmc/rand.py; its inputs are made by BLAKE2, which is nobody's exercise."""

import sys
import tracemalloc
from hashlib import blake2b
from typing import Any

from observe import array, number, numbers, outcome, wrong_type

MASK64 = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's step
PURPOSES = ("init", "dropout", "shuffle", "sample", "mutation")
LARGE = 3 << 30  # three quarters of 2^32


def given(seed: int, i: int) -> int:
    """64 bits that depend on both."""
    return int.from_bytes(blake2b(b"%d %d" % (seed, i), digest_size=8).digest(), "little")


def at(state: int, inc: int) -> Any:
    """A generator at a place of the probe's, however it was seeded."""
    from llmc.rand import PCG32

    rng = PCG32(1)
    rng.set_state((state, inc))
    return rng


def somewhere(seed: int, i: int) -> Any:
    return at(given(seed, 2 * i), given(seed, 2 * i + 1) | 1)


def place(name: str, rng: Any) -> None:
    state = rng.state()
    if type(state) is not tuple:
        raise wrong_type("state()", state, "a tuple")
    numbers(name, state, "u64")


# ---------------------------------------------------------------- hashes


def case_splitmix64(seed: int) -> None:
    from llmc.rand import splitmix64

    for start in (0, 1234567):
        words = [splitmix64((start + k * GOLDEN) & MASK64) for k in range(1, 6)]
        numbers(f"outputs_{start}", words, "u64")
    numbers("given", [splitmix64(given(seed, i)) for i in range(8)], "u64")


def case_child_seed(seed: int) -> None:
    from llmc.rand import child_seed

    for name, parent in (("zero", 0), ("last", MASK64), ("given", given(seed, 0))):
        numbers(name, [child_seed(parent, p) for p in range(1, 6)], "u64")


def case_child_seed_refused(seed: int) -> None:
    from llmc.rand import child_seed

    parent = given(seed, 1)
    outcome("good", child_seed, parent, 2**63 - 1)
    outcome("negative", child_seed, -1, 1)
    outcome("wide", child_seed, 2**64, 1)
    outcome("no_purpose", child_seed, parent, 0)
    outcome("wide_purpose", child_seed, parent, 2**63)


def case_fnv1a64(seed: int) -> None:
    from llmc.rand import fnv1a64

    texts = (b"", b"a", b"b", b"c", b"d", b"e", b"f", b"fo", b"foo", b"foob", b"fooba", b"foobar")
    numbers("published", [fnv1a64(text) for text in texts], "u64")
    numbers("every_byte", [fnv1a64(bytes([byte])) for byte in range(256)], "u64")


def case_fnv1a64_chains(seed: int) -> None:
    from llmc.rand import fnv1a64

    data = b"".join(given(seed, i).to_bytes(8, "little") for i in range(20))
    cuts = [0, 1, 159, 160, *(given(seed, 100 + i) % 161 for i in range(8))]
    numbers("whole", [fnv1a64(data[i:]) for i in range(len(cuts))], "u64")
    parts = [fnv1a64(data[max(i, cut) :], fnv1a64(data[i:cut])) for i, cut in enumerate(cuts)]
    numbers("chained", parts, "u64")


def case_fnv1a64_refused(seed: int) -> None:
    from llmc.rand import fnv1a64

    data = given(seed, 0).to_bytes(8, "little")
    outcome("good", fnv1a64, data, MASK64)
    outcome("good_zero", fnv1a64, data, 0)
    outcome("negative", fnv1a64, data, -1)
    outcome("wide", fnv1a64, data, 2**64)
    outcome("text", fnv1a64, "text")


def case_universal_hash(seed: int) -> None:
    from llmc.rand import universal_hash

    number("hand", universal_hash(10, 3, 7, 13, 5))
    p = 2**61 - 1
    keys = [[given(seed, 3 * i + k) % p for k in range(3)] for i in range(8)]
    numbers("given", [universal_hash(x, a or 1, b, p, 1000) for x, a, b in keys])


def case_universal_hash_meets(seed: int) -> None:
    """Four keys below 101, two of them 7 apart, into 7 buckets by every function of the family."""
    from llmc.rand import universal_hash

    first = given(seed, 0) % 40
    for i, x in enumerate((first, first + 7, first + 17, first + 60)):
        buckets = [universal_hash(x, a, b, 101, 7) for a in range(1, 101) for b in range(101)]
        numbers(f"key{i}", buckets)


def case_universal_hash_refused(seed: int) -> None:
    """Each of the five arguments at its least and its largest, and just outside."""
    from llmc.rand import universal_hash

    p = (101, 103, 107)[seed % 3]
    number("p", p)
    outcome("good_least", universal_hash, 0, 1, 0, p, 1)
    outcome("good_largest", universal_hash, p - 1, p - 1, p - 1, p, 7)
    outcome("good_many", universal_hash, 1, 2, 3, p, 2 * p)
    outcome("x_negative", universal_hash, -1, 2, 3, p, 7)
    outcome("x_large", universal_hash, p, 2, 3, p, 7)
    outcome("a_zero", universal_hash, 1, 0, 3, p, 7)
    outcome("a_large", universal_hash, 1, p, 3, p, 7)
    outcome("b_negative", universal_hash, 1, 2, -1, p, 7)
    outcome("b_large", universal_hash, 1, 2, p, p, 7)
    outcome("m_zero", universal_hash, 1, 2, 3, p, 0)


# ---------------------------------------------------------------- seeding and places


def case_seed(seed: int) -> None:
    from llmc.rand import PCG32

    starts = {"zero": 0, "one": 1, "half": 1 << 63, "last": MASK64, "given": given(seed, 0)}
    for name, start in starts.items():
        place(name, PCG32(start))
    streams = {"first_seq": 0, "last_seq": 2**63 - 1, "given_seq": given(seed, 1) >> 1}
    for name, seq in streams.items():
        place(name, PCG32(given(seed, 2), seq))


def case_seed_refused(seed: int) -> None:
    from llmc.rand import PCG32

    outcome("good", PCG32, given(seed, 0), given(seed, 1) >> 1)
    outcome("negative", PCG32, -1)
    outcome("wide", PCG32, 2**64)
    outcome("negative_seq", PCG32, 1, -1)
    outcome("wide_seq", PCG32, 1, 2**63)


def case_set_state(seed: int) -> None:
    for i in range(4):
        place(f"kept{i}", somewhere(seed, i))


def case_resume(seed: int) -> None:
    """One draw at each of many places, the same by another generator, and once more by the first.

    Just one: a step that goes wrong is next_u32's affair.
    """
    from llmc.rand import PCG32

    drawn: list[list[int]] = [[], [], []]
    for i in range(32):
        rng, other = somewhere(seed, i), PCG32(3)
        saved = rng.state()
        drawn[0].append(rng.next_u32())
        other.set_state(saved)
        drawn[1].append(other.next_u32())
        rng.set_state(saved)
        drawn[2].append(rng.next_u32())
    for name, words in zip(("first", "other", "again"), drawn, strict=True):
        numbers(name, words, "u32")


def case_set_state_refused(seed: int) -> None:
    rng = somewhere(seed, 0)
    even, odd = given(seed, 2) & ~1, given(seed, 3) | 1
    outcome("good_zero", rng.set_state, (0, 1))
    outcome("good_largest", rng.set_state, (MASK64, MASK64))
    outcome("good", rng.set_state, (given(seed, 4), odd))
    place("before", rng)
    numbers("even_inc", [even], "u64")
    outcome("even", rng.set_state, (given(seed, 5), even))
    outcome("zero", rng.set_state, (given(seed, 5), 0))
    outcome("negative", rng.set_state, (-1, odd))
    outcome("wide", rng.set_state, (2**64, odd))
    outcome("negative_inc", rng.set_state, (given(seed, 5), -1))
    outcome("wide_inc", rng.set_state, (given(seed, 5), 2**64 + 1))
    place("after", rng)


# ---------------------------------------------------------------- draws


def case_next_u32(seed: int) -> None:
    for rotation in (0, 1, 16, 31):
        low, inc = given(seed, rotation) & (2**59 - 1), given(seed, 100 + rotation) | 1
        rng = at(rotation << 59 | low, inc)
        number(f"rotated_{rotation}", rng.next_u32(), "u32")
        place(f"place_{rotation}", rng)
    rng = somewhere(seed, 500)
    numbers("draws", [rng.next_u32() for _ in range(100)], "u32")
    place("place_draws", rng)


def case_first(seed: int) -> None:
    from llmc.rand import PCG32

    number("zero", PCG32(0).next_u32(), "u32")


def case_demo(seed: int) -> None:
    from llmc.rand import PCG32

    for name, rng in (("stream_54", PCG32(42, 54)), ("stream", PCG32(42))):
        numbers(name, [rng.next_u32() for _ in range(6)], "u32")


def case_vectors(seed: int) -> None:
    from llmc.rand import PCG32

    for name, start in (("zero", 0), ("one", 1), ("half", 1 << 63)):
        rng = PCG32(start)
        numbers(name, [rng.next_u32() for _ in range(1024)], "u32")


def case_uniform(seed: int) -> None:
    rng = somewhere(seed, 0)
    numbers("draws", [rng.uniform() for _ in range(16)], "f64")
    place("place", rng)
    rng = at(0x9AE4F7499BA72696, 109)
    numbers("of_seed_0", [rng.uniform() for _ in range(8)], "f64")


def case_uniform_sample(seed: int) -> None:
    rng = somewhere(seed, 1)
    numbers("sample", [rng.uniform() for _ in range(4000)], "f64")
    # Draws of all ones, of all ones and zero, of zero twice: the ends of the grid.
    ends = (
        at(0x9FFFD8000A345678, 0x2F3BE5B44B328A4F),
        at(0x9FFFD8000A345678, 0xEF3BF5B44A0F44E9),
        at(0, 1),
    )
    numbers("ends", [rng.uniform() for rng in ends], "f64")


def case_uniforms(seed: int) -> None:
    for name, n in (("n1", 1), ("n2", 2), ("n3", 3), ("n100", 100), ("more", 5000 + seed % 1000)):
        rng = somewhere(seed, n)
        array(name, rng.uniforms(n), "f64")
        place(f"{name}_place", rng)
        array(f"{name}_again", rng.uniforms(7), "f64")


def case_uniforms_blocks(seed: int) -> None:
    """How many lines run and calls start while 300 000 numbers are made (it stops to count)."""
    rng, n, counted = somewhere(seed, 2), 300_000, 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event in ("line", "call")
        if counted > n // 4:
            sys.settrace(None)
            frame.f_trace_lines = False
        return trace

    sys.settrace(trace)
    values = rng.uniforms(n)
    sys.settrace(None)
    array("last", values[-8:], "f64")
    number("size", values.size)
    place("place", rng)
    number("steps", counted)
    number("beside", _beside(rng, 1_000_000))


def _beside(rng: Any, n: int) -> int:
    """The bytes that uniforms(n) needs at its peak, beside its result."""
    tracemalloc.start()
    values = rng.uniforms(n)
    return tracemalloc.get_traced_memory()[1] - values.nbytes


def case_uniforms_edges(seed: int) -> None:
    rng = somewhere(seed, 3)
    place("before", rng)
    array("none", rng.uniforms(0), "f64")
    outcome("negative", rng.uniforms, -1)
    place("after", rng)
    outcome("good", rng.uniforms, 2)


def case_below(seed: int) -> None:
    for name, n in (("ten", 10), ("large", LARGE), ("all", 2**32), ("one", 1)):
        rng = somewhere(seed, 4)
        numbers(name, [rng.below(n) for _ in range(64)], "u32")
        place(f"{name}_place", rng)
    # The first draws are 2^30, the least that is taken, and 2^30 - 1, the largest that is not.
    edges = at(0x200008002468ACE, 109), at(0x1FFFF8002468ACE, 109)
    numbers("edges", [rng.below(LARGE) for rng in edges], "u32")


def case_below_sample(seed: int) -> None:
    rng = somewhere(seed, 5)
    numbers("sample", [rng.below(LARGE) for _ in range(20_000)], "u32")


def case_below_refused(seed: int) -> None:
    rng = somewhere(seed, 6)
    outcome("good", rng.below, 2**32)
    place("before", rng)
    outcome("zero", rng.below, 0)
    outcome("negative", rng.below, -1)
    outcome("wide", rng.below, 2**32 + 1)
    place("after", rng)


def case_shuffle(seed: int) -> None:
    for name, n in (("ten", 10), ("hundred", 100)):
        rng, values = somewhere(seed, 7), list(range(n))
        rng.shuffle(values)
        numbers(name, values)
        place(f"{name}_place", rng)


def case_shuffle_valid(seed: int) -> None:
    rng = somewhere(seed, 8)
    for name, n in (("none", 0), ("one", 1), ("two", 2), ("thousand", 1000)):
        values = [3 * i + 1 for i in range(n)]
        rng.shuffle(values)
        numbers(name, values)


# ---------------------------------------------------------------- sub-streams


def case_substream(seed: int) -> None:
    from llmc.rand import PCG32

    for name, parent in (("zero", 0), ("half", 1 << 63), ("given", given(seed, 0))):
        rng = PCG32(parent)
        children = [rng.substream(purpose) for purpose in PURPOSES]
        numbers(name, [child.next_u32() for child in children for _ in range(4)], "u32")


def case_substream_ignores(seed: int) -> None:
    """Children of a fresh generator, of one that has drawn, and of one that was set."""
    from llmc.rand import PCG32

    rng = PCG32(given(seed, 0))

    def children(name: str) -> None:
        drawn = [child.next_u32() for child in map(rng.substream, PURPOSES) for _ in range(4)]
        numbers(name, drawn, "u32")

    children("fresh")
    for _ in range(1 + seed % 9):
        rng.next_u32()
    place("before", rng)
    children("drawn")
    place("after", rng)
    rng.set_state((given(seed, 1), given(seed, 2) | 1))
    children("set")


def case_substream_refused(seed: int) -> None:
    from llmc.rand import PCG32

    rng = PCG32(given(seed, 0))
    outcome("good", rng.substream, "init")
    outcome("unknown", rng.substream, "weather")
    outcome("empty", rng.substream, "")


CASES = {
    "splitmix64": case_splitmix64,
    "child_seed": case_child_seed,
    "child_seed_refused": case_child_seed_refused,
    "fnv1a64": case_fnv1a64,
    "fnv1a64_chains": case_fnv1a64_chains,
    "fnv1a64_refused": case_fnv1a64_refused,
    "universal_hash": case_universal_hash,
    "universal_hash_meets": case_universal_hash_meets,
    "universal_hash_refused": case_universal_hash_refused,
    "seed": case_seed,
    "seed_refused": case_seed_refused,
    "set_state": case_set_state,
    "resume": case_resume,
    "set_state_refused": case_set_state_refused,
    "next_u32": case_next_u32,
    "first": case_first,
    "demo": case_demo,
    "vectors": case_vectors,
    "uniform": case_uniform,
    "uniform_sample": case_uniform_sample,
    "uniforms": case_uniforms,
    "uniforms_blocks": case_uniforms_blocks,
    "uniforms_edges": case_uniforms_edges,
    "below": case_below,
    "below_sample": case_below_sample,
    "below_refused": case_below_refused,
    "shuffle": case_shuffle,
    "shuffle_valid": case_shuffle_valid,
    "substream": case_substream,
    "substream_ignores": case_substream_ignores,
    "substream_refused": case_substream_refused,
}
