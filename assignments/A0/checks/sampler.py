"""What decides the items of sampler.h."""

import numpy as np

from autograder.compare import Histogram, Seen, expect, same


def random_u32(seen: Seen) -> None:
    for name in ("1", "seed"):
        hint = "shifts 12, 25, 27 on 64 bits; the multiplied value is returned, not stored"
        same(seen, f"draws_{name}", input="8 draws", hint=hint, at="draw")
        same(seen, f"state_{name}", input="the state after them: high, low half", hint=hint)


def random_f32(seen: Seen) -> None:
    same(seen, "draws", input="8 draws", hint="(draw >> 8) / 2^24", at="draw")


def softmax_index(seen: Seen) -> None:
    got = seen.got("ids")
    expect(got.dtype == np.int32 and got.size == 15, "no 15 indices")
    sizes = np.repeat([1, 2, 7, 1000, 50257], 3)
    bad = ~((got >= 0) & (got < sizes))
    first = int(np.argmax(bad))
    expect(
        not bad.any(),
        "an index outside",
        input=f"{sizes[first]} logits up to 80, coin {(0, 0.5, 0.99999994)[first % 3]}",
        got=str(got[first]),
        expected=f"0 .. {sizes[first] - 1}",
        hint="return the last index when the walk runs off the end",
    )
    same(seen, "peaks", input="one logit of 80, the others below 40", at="index")


def softmax_walk(seen: Seen) -> None:
    for name, text in (
        ("on_boundary", "8 equal logits, coins k/8"),
        ("between", "8 equal logits, coins k/8 + 1/16"),
        ("peaked", "logits -80 0 80 -1, four coins"),
    ):
        hint = "the first index whose running sum exceeds (not: reaches) the scaled coin"
        same(seen, name, input=text, hint=hint, at="coin")


def softmax_distribution(seen: Seen) -> None:
    got, want = seen.got("ids"), seen.want("ids")
    expect(got.dtype == want.dtype and got.shape == want.shape, "no 4000 indices")
    off = np.abs(got.astype(np.int64) - want)
    # A float sum of 12 terms is off by 1e-6 at most: of 4000 coins, 0.05 fall between two orders of
    # summation on average, next door. More than 8 of them: below 1e-15.
    counts = [np.bincount(np.clip(ids, 0, 11), minlength=12) for ids in (got, want)]
    expect(
        int((off > 0).sum()) <= 8 and int(off.max()) <= 1,
        f"{int((off > 0).sum())} of 4000 coins fall elsewhere",
        input="12 logits, counts of each index",
        got=" ".join(map(str, counts[0])),
        expected=" ".join(map(str, counts[1])),
        hint="exp of each logit, in the order of the indices",
        picture=Histogram(
            "indices drawn",
            tuple(map(str, range(12))),
            tuple(counts[0].tolist()),
            tuple(counts[1].tolist()),
        ),
    )


def clean_sampler(seen: Seen) -> None:
    seen.no_warnings()
    seen.no_leaks(after="ids")
