"""What decides the items of rand.h."""

import math

import numpy as np

from autograder.compare import Histogram, Seen, expect, near, same
from autograder.observe import Array

# Box-Muller runs through log, cos and sin. Against float64: theta <= 2 pi carries a rounding of up
# to 2.4e-7 in float32, times a radius of at most 7.5 (u >= 1e-12), some ulps of libm on top; 1e-5
# in units of std is three times what these and the float constant 2 pi (off by 1.7e-7) add up to.
NORMAL_BOUND = 1e-5

# 100 000 draws in 256 bins, 255 degrees of freedom: P(chi2 > 420) = 3.4e-10 and P(chi2 < 120) =
# 3e-14. Two such statistics: a false alarm in 1.5e9 runs.
CHI2_LOW, CHI2_HIGH = 120.0, 420.0


def seed_words(seen: Seen) -> None:
    for name, seed in (("137", "137"), ("42", "42"), ("wide", "7 * 2^32 + 9"), ("seed", "another")):
        same(
            seen,
            f"words_{name}",
            input=f"seed {seed}, state_",
            hint="32 bits throughout; word j adds j",
            at="word",
        )


def seed_place(seen: Seen) -> None:
    for name in ("137", "seed"):
        same(seen, f"place_{name}", input="left_, next_", hint="the first draw must twist")
        same(seen, f"matrix_{name}", input="MATRIX_A", hint="manual_seed sets it")
        same(seen, f"kept_{name}", input="seed_", hint="all 64 bits of what was given")


def twist_words(seen: Seen) -> None:
    hint = "from word 227 on the partner has wrapped; the last word takes its low bits from word 0"
    for name, times in (("words", "once"), ("words_again", "twice"), ("words_later", "ten times")):
        same(seen, name, input=f"given words, twisted {times}", hint=hint, at="word")


def twist_place(seen: Seen) -> None:
    same(
        seen, "place", input="left_, next_ after a twist", hint="624 words to read, from the first"
    )


def randint32_temper(seen: Seen) -> None:
    same(
        seen,
        "draws",
        input="given words, 8 draws",
        hint="four steps on a copy of the word; the masks apply after the shift",
        at="draw",
    )
    same(seen, "place", input="left_, next_ after 8 draws", hint="each draw moves both by one")
    hint = "temper a copy: the next twist needs the word as it was"
    same(seen, "words_after", input="state_[0..15] after them", hint=hint, at="word")


def randint32_golden(seen: Seen) -> None:
    for seed in (137, 42):
        hint = "manual_seed, next_state and the draw together; see the rows above"
        same(seen, f"draws_{seed}", input=f"seed {seed}, draws 0..4", hint=hint, at="draw")


def randint32_twist(seen: Seen) -> None:
    hint = "next_state makes the next 624 words from the old ones; twist when left_ reaches 0"
    same(seen, "draws", input="given words, draws 622..626", hint=hint, at="draw", base=622)
    same(seen, "place", input="left_, next_ after them", hint=hint)


def randint32_edges(seen: Seen) -> None:
    same(seen, "null", input="randint32(NULL)", hint="0, without touching anything")
    hint = "MATRIX_A shows whether it was seeded; the default seed is 5489"
    same(seen, "unseeded", input="a state of zeros, draws 0..2", hint=hint, at="draw")


def randint64_halves(seen: Seen) -> None:
    hint = "the first draw is the high half; C does not fix the order inside one expression"
    same(seen, "halves", input="four draws as (high, low)", hint=hint, at="half")


def randint64_place(seen: Seen) -> None:
    same(seen, "place", input="left_, next_ after 4 draws", hint="two words for each")


def randfloat32_golden(seen: Seen) -> None:
    hint = "the low 24 bits, times 2^-24, with nothing rounded"
    same(seen, "draws", input="given words, 8 draws", hint=hint, at="draw")
    same(seen, "ends", input="words 0, 2^32-1, 2^24-1, 2^32-2^24", hint=hint, at="draw")


def _in_unit(values: Array) -> None:
    bad = ~((values >= 0) & (values < 1))
    first = int(np.argmax(bad))
    expect(
        not bad.any(),
        f"draw {first} is outside",
        input=f"{values.size} draws",
        got=f"{values[first]:.9g}",
        expected="at least 0 and less than 1",
        hint="with more bits than the mantissa holds, rounding reaches 1",
        picture=_flat(values),
    )


def _spread(title: str, values: Array, edges: Array, expected: Array) -> Histogram:
    """The counts of `values` between the edges, and beyond them if there are any, beside wanted
    shares."""
    inner = [f"{low:.4g}.." for low in edges[:-1]]
    bins = (f"< {edges[0]:.4g}", *inner, f">= {edges[-1]:.4g}")
    counts = np.bincount(np.searchsorted(edges, values, "right"), minlength=len(bins))
    rows = zip(bins, counts.tolist(), (values.size * expected).tolist(), strict=True)
    return Histogram(title, *zip(*(row for row in rows if row[1] or row[2]), strict=True))


def _flat(values: Array) -> Histogram:
    """Draws that should be uniform on [0, 1), in 16 bins."""
    shares = np.array([0.0, *[1 / 16] * 16, 0.0])
    return _spread("draws", values, np.linspace(0, 1, 17), shares)


def randfloat32_range(seen: Seen) -> None:
    sample = seen.got("sample")
    expect(sample.dtype == np.float32 and sample.size == 100_000, "no 100 000 floats")
    _in_unit(sample)
    mean = float(sample.mean(dtype=np.float64))
    # The mean of 100 000 uniforms deviates by 1/sqrt(12 n) = 9e-4; 6.5 of those are 1e-10.
    expect(
        abs(mean - 0.5) < 6e-3,
        "the mean",
        input="100 000 draws",
        got=f"{mean:.5f}",
        expected="0.5 +- 0.006",
        picture=_flat(sample),
    )


def randfloat32_uniform(seen: Seen) -> None:
    sample = seen.got("sample")
    expect(sample.dtype == np.float32 and sample.size == 100_000, "no 100 000 floats")
    _in_unit(sample)
    for name, bits, by in (
        ("values", sample * 256, 1),
        ("low bits", sample.astype(np.float64) * 2**24, 0),
    ):
        counts = np.bincount(np.floor(bits).astype(np.int64) % 256, minlength=256)
        wanted = sample.size / 256
        chi2 = float(((counts - wanted) ** 2 / wanted).sum())
        expect(
            CHI2_LOW < chi2 < CHI2_HIGH,
            f"chi-squared of the {name} in 256 bins",
            input="100 000 draws",
            got=f"{chi2:.0f}",
            expected="about 255, within 120..420",
            hint="24 bits, all of them random",
            picture=Histogram(
                "values, in 16 bins" if by else "the last 4 bits",
                tuple(f"{i}/16.." if by else f"{i:04b}" for i in range(16)),
                tuple(counts.reshape(16, 16).sum(by).tolist()),
                (16 * wanted,) * 16,
            ),
        )


def randfloat64_golden(seen: Seen) -> None:
    hint = "the low 53 bits of randint64, times 2^-53; 1ull << 53"
    same(seen, "draws", input="given words, 6 draws", hint=hint, at="draw")
    same(seen, "ends", input="all bits set; half of them set", hint=hint, at="draw")


def randfloat64_sample(seen: Seen) -> None:
    sample = seen.got("sample")
    expect(sample.dtype == np.float64 and sample.size == 25_000, "no 25 000 doubles")
    _in_unit(sample)
    mean = float(sample.mean())
    # 1/sqrt(12 n) = 1.8e-3; 6.5 of those are 1e-10.
    expect(
        abs(mean - 0.5) < 0.012,
        "the mean",
        input="25 000 draws",
        got=f"{mean:.5f}",
        expected="0.5 +- 0.012",
        picture=_flat(sample),
    )
    distinct = np.unique(sample).size
    # Two of 25 000 draws on a grid of 2^-53 meet with probability 3e-8.
    expect(
        distinct >= sample.size - 1,
        "draws repeat",
        got=f"{distinct} different ones",
        expected="25000",
        hint="53 bits need two words",
    )


UNIFORM = (("wide", -2.0, 3.0), ("narrow", -0.75, -0.25))


def uniform_values(seen: Seen) -> None:
    for name, low, high in UNIFORM:
        # The one product and one sum may round differently in double: two ulps of the larger end.
        bound = 2.0**-22 * max(abs(low), abs(high))
        hint = "times (to - from), plus from, in this order"
        near(seen, name, bound, input=f"[{low}, {high})", hint=hint)


def uniform_draws(seen: Seen) -> None:
    for name, count in (("wide", 50), ("narrow", 17), ("empty", 0)):
        text = f"left_, next_ after {count} elements"
        same(seen, f"{name}_place", input=text, hint="one draw for each element, no more")
    _drew(seen)


def uniform_range(seen: Seen) -> None:
    for name, low, high in UNIFORM:
        got = seen.got(name)
        expect(
            bool(((got >= low) & (got < high)).all()) and got.std() > 0,
            "values outside",
            input=f"[{low}, {high})",
            got=f"{got.min():.7g} .. {got.max():.7g}",
            expected=f"{low} <= x < {high}, not all equal",
            hint="to - from first, then the product",
        )
        same(seen, f"{name}_guards", input="the memory around data", hint="numel elements, no more")


def _drew(seen: Seen) -> None:
    """An array of one repeated value was not drawn, whatever the generator did."""
    expect(float(seen.got("wide").std()) > 0, "all values are equal", input="[-2, 3)")


def _normals(seen: Seen, name: str, mean: float, std: float, hint: str) -> None:
    bound = NORMAL_BOUND * std + 2.0**-22 * abs(mean)
    near(seen, name, bound, input=f"{name}, mean {mean}, std {std}", hint=hint)


def normal_fill_16_standard(seen: Seen) -> None:
    hint = "u1 = 1 - data[t], u2 = data[t + 8]; cosine to t, sine to t + 8"
    _normals(seen, "standard", 0.0, 1.0, hint)
    same(seen, "standard_guards", input="the memory around data", hint="16 elements, no more")
    # The angle is 0: an ulp of the logarithm and one of the root add up to 6e-7. Without the 1e-12
    # the root is off by 2.9e-6.
    near(seen, "farthest", 1.5e-6, input="data[0] = 1 - 2^-24, data[8] = 0", hint="u1 + 1e-12")


def normal_fill_16_scaled(seen: Seen) -> None:
    _normals(seen, "scaled", 1.5, 0.25, "times std, plus mean")


def normal_fill_blocks(seen: Seen) -> None:
    for n in (16, 48):
        _normals(seen, f"n{n}", -0.5, 2.0, "all uniforms first, then block by block")
        same(seen, f"n{n}_place", input=f"left_, next_ after {n}", hint="one draw an element")


def normal_fill_tail(seen: Seen) -> None:
    for n in (37, 17, 31):
        hint = "16 fresh uniforms over the last 16 elements, then normal_fill_16 on them"
        _normals(seen, f"n{n}", -0.5, 2.0, hint)
        same(
            seen, f"n{n}_place", input=f"left_, next_ after {n}", hint="16 draws more for the tail"
        )
        same(seen, f"n{n}_guards", input="the memory around data", hint="it ends at numel")


def normal_small(seen: Seen) -> None:
    for n in (1, 2, 7, 15):
        hint = "u1, u2 in this order; radius from u2, angle from u1; cosine, then sine"
        # Near u2 = 0 the float 1 - u2 has few bits of u2 left: where the radius is small, so is
        # what can be asked. All such values lie within 3e-3 deviations of the mean.
        want = seen.want(f"n{n}").astype(np.float64)
        bound = (
            np.where(np.abs(want - 1.5) <= 3e-3 * 0.25, 1e-2, NORMAL_BOUND) * 0.25 + 1.5 * 2**-22
        )
        near(seen, f"n{n}", bound, input=f"{n} elements, mean 1.5, std 0.25", hint=hint)
        same(
            seen,
            f"n{n}_guards",
            input="the memory around data",
            hint="an odd last sine is dropped",
        )
    hint = "a double just below 1 is 1 as a float: add 1e-12 before the logarithm"
    near(seen, "farthest", NORMAL_BOUND, input="u2 just below 1, mean 1.5, std 0.25", hint=hint)


def normal_large(seen: Seen) -> None:
    for n in (16, 20):
        _normals(seen, f"n{n}", 1.5, 0.25, "16 elements are enough for normal_fill")


def normal_place(seen: Seen) -> None:
    for n in (1, 2, 7, 15, 16, 20):
        text = f"left_, next_ after {n} elements"
        hint = "below 16 each pair takes two float64, four words; else see normal_fill"
        same(seen, f"n{n}_place", input=text, hint=hint)
        expect(bool(np.isfinite(seen.got(f"n{n}")).all()), "not a number", input=f"{n} elements")
        expect(bool((seen.got(f"n{n}") != np.float32(777)).all()), "left as it was")


def normal_sample(seen: Seen) -> None:
    sample = seen.got("sample")
    expect(sample.dtype == np.float32 and sample.size == 100_000, "no 100 000 floats")
    mean, std = float(sample.mean(dtype=np.float64)), float(sample.std(dtype=np.float64))
    # Standard errors: 2/sqrt(n) = 6.3e-3 of the mean, 2/sqrt(2 n) = 4.5e-3 of std; 6.5 of each.
    edges = 1.5 + 2 * np.linspace(-3, 3, 13)
    below = [math.erfc(-z / math.sqrt(2)) / 2 for z in np.linspace(-3, 3, 13)]
    shares = np.diff([0.0, *below, 1.0])
    text, picture = "100 000 values, mean 1.5, std 2", _spread("values", sample, edges, shares)
    for name, got, want, bound in (("mean", mean, 1.5, 0.041), ("deviation", std, 2, 0.03)):
        expect(
            abs(got - want) < bound,
            f"the {name}",
            input=text,
            got=f"{got:.4f}",
            expected=f"{want} +- {bound}",
            picture=picture,
        )


def init_identity_permutation(seen: Seen) -> None:
    for name, n in (("none", 0), ("one", 1), ("thousand", 1000)):
        same(
            seen,
            name,
            input=f"numel {n}, -7 around it",
            hint="elements 0 to numel - 1, each its index",
        )


def permutation_golden(seen: Seen) -> None:
    for name, n in (("ten", 10), ("hundred", 100)):
        hint = "i from the end down to 1, j = draw mod (i + 1), one draw each"
        same(seen, name, input=f"{n} values, given words", hint=hint)
        same(seen, f"{name}_place", input=f"left_, next_ after {n} values", hint=hint)


def permutation_valid(seen: Seen) -> None:
    for name, n in (("one", 1), ("two", 2), ("thousand", 1000)):
        got = seen.got(name)
        whole = np.array_equal(np.sort(got), 3 * np.arange(n) + 1)
        text = f"{n} different values"
        expect(whole, "values are lost or invented", input=text, hint="swap, never overwrite")
    moved = int((seen.got("thousand") != 3 * np.arange(1000) + 1).sum())
    # A random permutation of 1000 fixes one value on average; more than 20 are below 1e-18.
    expect(
        moved >= 980,
        "hardly anything moved",
        input="1000 different values",
        got=f"{moved} moved",
        expected="about 999",
        hint="every i from the end down to 1 takes part",
    )


def clean_rand(seen: Seen) -> None:
    seen.no_warnings()
    seen.no_leaks(after="order")
