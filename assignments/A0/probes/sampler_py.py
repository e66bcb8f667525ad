"""sampler_py.py: observes llmc/sampler.py."""

import numpy as np
from given import given_int, given_u64, given_units
from observe import array, number, numbers, outcome


class GivenUniforms:
    """A generator of given numbers, which counts how many it gave."""

    def __init__(self, *values: float) -> None:
        self.values, self.calls = values, 0

    def uniform(self) -> float:
        self.calls += 1
        return self.values[(self.calls - 1) % len(self.values)]


def logits_of(seed: int, place: int, size: int, scale: float = 4.0) -> np.ndarray:
    units = np.array(given_units(seed, place, size))
    return (scale * (units - 0.5)).astype(np.float32)


def case_xorshift_u32(seed: int) -> None:
    from llmc.sampler import random_u32

    for name, state in (("1", 1), ("seed", given_u64(seed, 0) | 1)):
        draws, states = [], []
        for _ in range(8):
            value, state = random_u32(state)
            draws.append(value)
            states.append(state)
        numbers(f"draws_{name}", draws, "u32")
        numbers(f"states_{name}", states, "u64")
    outcome("state_largest", random_u32, 2**64 - 1)
    outcome("state_0", random_u32, 0)
    outcome("state_wide", random_u32, 2**64)


def case_xorshift_f32(seed: int) -> None:
    from llmc.sampler import random_f32

    state, draws = given_u64(seed, 1) | 1, []
    for _ in range(8):
        value, state = random_f32(state)
        draws.append(value)
    numbers("draws", draws, "f64")
    number("state", state, "u64")


def case_coin_walk(seed: int) -> None:
    """Equal logits make every running sum a small integer, exact in any order: the coin k / 8 then
    lies exactly on a boundary, where only `exceeds` gives k."""
    from llmc.sampler import sample_softmax

    zeros = np.zeros(8, np.float32)
    numbers("on_boundary", [sample_softmax(zeros, k / 8) for k in range(8)])
    numbers("between", [sample_softmax(zeros, k / 8 + 1 / 16) for k in range(8)])
    steps = np.array([-80, 0, 80, -1], np.float32)  # all the weight on index 2
    numbers("peaked", [sample_softmax(steps, k / 4 + 0.1) for k in range(4)])
    logits = logits_of(seed, 0, given_int(seed, 99, 10, 20))
    coins = given_units(seed, 100, 500)
    numbers("ids", [sample_softmax(logits, coin) for coin in coins])
    many = np.full(4000, 4.3e-5, np.float32)  # a float32 sum past 1024 drops 4e-5 of each weight
    numbers("many", [sample_softmax(many, (i + off) / 4000) for i, off in NEAR_BOUNDARIES])


NEAR_BOUNDARIES = [(i, off) for i in range(500, 4000, 500) for off in (-0.02, 0.02)]


def case_coin_edges(seed: int) -> None:
    from llmc.sampler import sample_softmax

    ids = []
    for n in (1, 2, 1000, 20000 + given_int(seed, 0, 0, 100)):
        logits = logits_of(seed, 1000, n, 160.0)
        ids += [sample_softmax(logits, coin) for coin in (0.0, 1 - 2**-24)]
        ids.append(n)
    numbers("ids_and_sizes", ids)
    logits = logits_of(seed, 0, 5)
    outcome("coin_1", sample_softmax, logits, 1.0)
    outcome("coin_negative", sample_softmax, logits, -0.25)
    outcome("no_logits", sample_softmax, logits[:0], 0.5)
    logits[given_int(seed, 1, 0, 5)] = np.nan
    outcome("nan", sample_softmax, logits, 0.5)


def case_pcg_errors(seed: int) -> None:
    from llmc.sampler import check_sampling

    logits = logits_of(seed, 0, 6)

    def check(
        logits: np.ndarray, temperature: float, top_k: int | None = None, top_p: float | None = None
    ) -> None:
        check_sampling(logits, temperature, top_k, top_p)

    def changed(value: float) -> np.ndarray:
        other = logits.copy()
        other[given_int(seed, 50, 0, 6)] = value
        return other

    outcome("good", check, logits, 0.8, 1, 1.0)
    outcome("good_masked", check, changed(-np.inf), 0.8, 9, 0.01)
    outcome("good_greedy", check, logits, 0.0)
    outcome("temperature_negative", check, logits, -0.75)
    outcome("temperature_nan", check, logits, float("nan"))
    outcome("temperature_inf", check, logits, float("inf"))
    outcome("logit_nan", check, changed(np.nan), 0.8)
    outcome("logit_nan_greedy", check, changed(np.nan), 0.0)
    outcome("logit_inf", check, changed(np.inf), 0.8)
    outcome("logit_inf_greedy", check, changed(np.inf), 0.0)
    outcome("all_masked", check, np.full(6, -np.inf, np.float32), 0.8)
    outcome("no_logits", check, logits[:0], 0.8)
    outcome("two_axes", check, logits.reshape(2, 3), 0.8)
    outcome("top_k_0", check, logits, 0.8, 0)
    outcome("top_k_negative", check, logits, 0.8, -3)
    outcome("top_k_0_greedy", check, logits, 0.0, 0)
    outcome("top_p_0", check, logits, 0.8, None, 0.0)
    outcome("top_p_negative", check, logits, 0.8, None, -0.125)
    outcome("top_p_above_1", check, logits, 0.8, None, 1.5)
    outcome("top_p_nan", check, logits, 0.8, None, float("nan"))


def case_pcg_weights(seed: int) -> None:
    from llmc.sampler import softmax_weights

    logits = logits_of(seed, 0, given_int(seed, 99, 20, 30))
    for name, temperature in (("low", 0.25), ("one", 1.0), ("high", 1.7)):
        array(name, softmax_weights(logits, temperature), "f64")
    array("large", softmax_weights(logits + np.float32(2000), 0.5), "f64")
    masked = logits.copy()
    masked[given_int(seed, 98, 0, 20)] = -np.inf
    array("masked", softmax_weights(masked, 0.5), "f64")
    array("logits_after", logits, "f32")
    outcome("too_small", softmax_weights, logits + np.float32(1), 1e-310)


def case_pcg_cut(seed: int) -> None:
    """Weights are small integers, so that sums are exact; a limit of top_p lies half way between
    two sums, or exactly on one where eight equal weights make that exact in any form."""
    from llmc.sampler import cut

    size = given_int(seed, 99, 20, 30)
    weights = np.array([given_int(seed, i, 1, 12) for i in range(size)], np.float64)
    for k in (1, 5, size - 1, size, size + 7):
        array(f"top_k_{k - size if k > 5 else k}".replace("-", "minus_"), cut(weights, k), "f64")
    total = int(weights.sum())
    for name, share in (("little", 0.01), ("some", 0.4), ("most", 0.9)):
        limit = (int(share * total) + 0.5) / total
        array(f"top_p_{name}", cut(weights, None, limit), "f64")
    array("top_p_1", cut(weights, None, 1.0), "f64")
    array("neither", cut(weights), "f64")
    array("weights_after", weights, "f64")
    left = int(np.sort(weights)[-9:].sum())
    array("both", cut(weights, 9, (left // 2 + 0.5) / left), "f64")
    ones = np.ones(8)
    array("equal_k_3", cut(ones, 3), "f64")
    array("equal_p_half", cut(ones, None, 0.5), "f64")
    array("equal_p_most", cut(ones[:2], None, 0.75), "f64")
    tail = np.array([1.0, 1e-18, 1e-18])  # too small to change a sum
    array("tail_p_1", cut(tail, None, 1.0), "f64")


def case_pcg_walk(seed: int) -> None:
    from llmc.sampler import sample_pcg

    zeros = np.zeros(8, np.float32)
    rng = GivenUniforms(*(k / 8 for k in range(8)))
    numbers("on_boundary", [sample_pcg(zeros, 1.0, rng) for _ in range(8)])
    rng = GivenUniforms(1 - 2**-53)
    number("last", sample_pcg(zeros, 1.0, rng))
    sample_pcg(zeros, 1.0, rng, 1)
    sample_pcg(zeros[:1], 1.0, rng)
    outcome("refused", sample_pcg, zeros, float("nan"), rng)
    number("calls", rng.calls)


def case_pcg_greedy(seed: int) -> None:
    from llmc.sampler import sample_pcg

    rng = GivenUniforms(0.9)
    logits = logits_of(seed, 0, 30)
    numbers("largest", [sample_pcg(logits[:n], 0.0, rng, 5, 0.9) for n in range(1, 31)])
    first, second = given_int(seed, 50, 0, 15), given_int(seed, 51, 15, 15)
    logits[[first, second]] = 9.0
    number("of_equals", sample_pcg(logits, 0, rng))
    number("calls", rng.calls)


def case_pcg_ids(seed: int) -> None:
    from llmc.sampler import sample_pcg

    logits = logits_of(seed, 0, given_int(seed, 99, 20, 30))
    rng = GivenUniforms(*given_units(seed, 100, 400))
    numbers("plain", [sample_pcg(logits, 0.7, rng) for _ in range(80)])
    numbers("hot", [sample_pcg(logits, 2.5, rng) for _ in range(80)])
    numbers("top_k", [sample_pcg(logits, 1.0, rng, 6) for _ in range(80)])
    numbers("top_p", [sample_pcg(logits, 1.0, rng, None, 0.75) for _ in range(80)])
    numbers("both", [sample_pcg(logits, 1.0, rng, 6, 0.75) for _ in range(80)])
    number("calls", rng.calls)


CASES = {
    "xorshift_u32": case_xorshift_u32,
    "xorshift_f32": case_xorshift_f32,
    "coin_walk": case_coin_walk,
    "coin_edges": case_coin_edges,
    "pcg_errors": case_pcg_errors,
    "pcg_weights": case_pcg_weights,
    "pcg_cut": case_pcg_cut,
    "pcg_walk": case_pcg_walk,
    "pcg_greedy": case_pcg_greedy,
    "pcg_ids": case_pcg_ids,
}
