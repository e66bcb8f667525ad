"""What decides the items of sampler.py."""

import numpy as np

from autograder.compare import Seen, accepted, expect, near, raised, same

# exp of a float64: np.exp and libm's are within 1 ulp each; z = logit/tau, up to 8, and z - max z
# carry 2 roundings of 2^-53 relative to z, an absolute 3e-15 in the exponent; large logits stand at
# 4000, where a rounding is 4.5e-13.
WEIGHT_BOUND, LARGE_BOUND = 1e-14, 2e-12


def xorshift_draws(seen: Seen) -> None:
    for name in ("1", "seed"):
        hint = "shifts 12, 25, 27, cut to 64 bits; the high half of the product"
        same(seen, f"draws_{name}", input="8 draws", hint=hint, at="draw")


def xorshift_states(seen: Seen) -> None:
    for name in ("1", "seed"):
        hint = "the state is 64 bits, without the multiplication"
        same(seen, f"states_{name}", input="the state after each of 8 draws", hint=hint, at="draw")
    accepted(seen, "state_largest", "state 2^64 - 1")
    raised(seen, "state_0", "ValueError", "state 0", 0)
    raised(seen, "state_wide", "ValueError", "state 2^64", 2**64)


def xorshift_f32(seen: Seen) -> None:
    same(seen, "draws", input="8 draws", hint="(draw >> 8) / 2^24", at="draw")
    same(seen, "state", input="the state after them", hint="hand on the new state")


def coin_walk(seen: Seen) -> None:
    for name, text in (
        ("on_boundary", "8 equal logits, coins k/8"),
        ("between", "8 equal logits, coins k/8 + 1/16"),
        ("peaked", "logits -80 0 80 -1, four coins"),
        ("ids", "some logits, 500 coins"),
        ("many", "4 000 equal logits, coins close to multiples of 500/4000"),
    ):
        hint = "the first index whose running sum exceeds (not: reaches) the scaled coin"
        hint = "sums in float64" if name == "many" else hint
        same(seen, name, input=text, hint=hint, at="coin")


def coin_edges(seen: Seen) -> None:
    values = seen.got("ids_and_sizes")
    expect(values.dtype == np.int64 and values.size == 12, "no 12 numbers")
    for low, high, n in values.reshape(4, 3).tolist():
        expect(
            0 <= low <= high < n,
            "an index outside, or out of order",
            input=f"{n} logits up to 80, coins 0 and 1 - 2^-24",
            got=f"{low} {high}",
            expected=f"0 .. {n - 1}",
        )
    raised(seen, "coin_1", "ValueError", "coin 1.0", 1.0)
    raised(seen, "coin_negative", "ValueError", "coin -0.25", -0.25)
    raised(seen, "no_logits", "ValueError", "no logits")
    raised(seen, "nan", "ValueError", "a logit that is NaN", "nan")


def pcg_errors(seen: Seen) -> None:
    for name, text in (
        ("good", "temperature 0.8, top_k 1, top_p 1"),
        ("good_masked", "one logit -inf, top_k 9 of 6, top_p 0.01"),
        ("good_greedy", "check_sampling, temperature 0"),
    ):
        accepted(seen, name, text)
    for name, text, value in (
        ("temperature_negative", "temperature -0.75", -0.75),
        ("temperature_nan", "temperature NaN", "nan"),
        ("temperature_inf", "temperature inf", "inf"),
        ("logit_nan", "a logit that is NaN", "nan"),
        ("logit_nan_greedy", "a logit that is NaN, temperature 0", "nan"),
        ("logit_inf", "a logit of +inf", "inf"),
        ("logit_inf_greedy", "a logit of +inf, temperature 0", "inf"),
        ("all_masked", "all logits -inf", "-inf"),
        ("top_k_0", "top_k 0", 0),
        ("top_k_negative", "top_k -3", -3),
        ("top_k_0_greedy", "top_k 0, temperature 0", 0),
        ("top_p_0", "top_p 0", 0.0),
        ("top_p_negative", "top_p -0.125", -0.125),
        ("top_p_above_1", "top_p 1.5", 1.5),
        ("top_p_nan", "top_p NaN", "nan"),
    ):
        raised(seen, name, "ValueError", text, value)
    raised(seen, "no_logits", "ValueError", "no logits")
    raised(seen, "two_axes", "ValueError", "logits of two axes")


def pcg_weights(seen: Seen) -> None:
    hint = "e^(z - max z) of z = logits / temperature, in float64"
    for name, temperature in (("low", 0.25), ("one", 1.0), ("high", 1.7), ("masked", 0.5)):
        text = f"logits, temperature {temperature}" + (", one -inf" if name == "masked" else "")
        near(seen, name, WEIGHT_BOUND, input=text, hint=hint, at="id")
    text, hint = "logits above 2000, temperature 0.5", "take max z away before exp"
    near(seen, "large", LARGE_BOUND, input=text, hint=hint, at="id")
    same(seen, "logits_after", input="the logits afterwards", hint="leave the input as it is")
    raised(seen, "too_small", "ValueError", "temperature 1e-310", 1e-310)


def pcg_top_k(seen: Seen) -> None:
    for name, text in (
        ("neither", "no top_k, no top_p"),
        ("top_k_1", "top_k 1"),
        ("top_k_5", "top_k 5"),
        ("top_k_minus_1", "top_k n - 1"),
        ("top_k_0", "top_k n"),
        ("top_k_7", "top_k n + 7"),
        ("equal_k_3", "8 equal weights, top_k 3"),
    ):
        hint = "the k largest, of equals the lower id; the others become 0, nothing is scaled"
        same(seen, name, input=f"weights, {text}", hint=hint, at="id")
    same(seen, "weights_after", input="the weights afterwards", hint="return a copy")


def pcg_top_p(seen: Seen) -> None:
    for name, text in (
        ("top_p_little", "weights, top_p 0.01"),
        ("top_p_some", "weights, top_p 0.4"),
        ("top_p_most", "weights, top_p 0.9"),
        ("top_p_1", "weights, top_p 1"),
        ("equal_p_half", "8 equal weights, top_p 0.5"),
        ("equal_p_most", "2 equal weights, top_p 0.75"),
        ("tail_p_1", "weights 1 1e-18 1e-18, top_p 1"),
        ("both", "weights, top_k 9 and then top_p 0.5"),
    ):
        hint = "largest first, up to and with the one that reaches top_p of the sum (after top_k)"
        same(seen, name, input=text, hint=hint, at="id")


def pcg_walk(seen: Seen) -> None:
    hint = "the first id whose running sum exceeds (not: reaches) u times the sum"
    same(seen, "on_boundary", input="8 equal logits, u = k/8", hint=hint, at="draw")
    same(seen, "last", input="8 equal logits, u = 1 - 2^-53", hint=hint)
    hint = "one uniform() a token, also where only one token may come"
    same(seen, "calls", input="calls of uniform() for three tokens and an error", hint=hint)
    raised(seen, "refused", "ValueError", "temperature NaN", "nan")


def pcg_greedy(seen: Seen) -> None:
    hint = "temperature 0 takes the largest logit, of equals the lowest id"
    same(seen, "largest", input="the first 1 .. 30 logits, temperature 0", hint=hint, at="prefix")
    same(seen, "of_equals", input="two equal largest logits, temperature 0", hint=hint)
    same(seen, "calls", input="calls of uniform() at temperature 0", hint="nothing is drawn")


def pcg_ids(seen: Seen) -> None:
    for name, text in (
        ("plain", "temperature 0.7"),
        ("hot", "temperature 2.5"),
        ("top_k", "top_k 6"),
        ("top_p", "top_p 0.75"),
        ("both", "top_k 6, top_p 0.75"),
    ):
        hint = "weights, cut, then one walk in the order of the ids (not of their size)"
        same(seen, name, input=f"80 tokens, {text}", hint=hint, at="token")
    same(seen, "calls", input="calls of uniform() for 400 tokens", hint="one a token")
