"""From logits to one token: a small generator for the coin, and walks along the distribution.

The first half is sampler.h's twin, to the bit. `sample_pcg` is what generation uses: temperature,
top_k and top_p, with draws from rand.py's PCG32.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MASK64 = 2**64 - 1

Logits = NDArray[np.floating]
Weights = NDArray[np.float64]


class Uniform(Protocol):
    """What draws on [0, 1), one float a call: llmc.rand.PCG32 for one. Given."""

    def uniform(self) -> float: ...


def random_u32(state: int) -> tuple[int, int]:
    """One step of xorshift*: (32 bits, the next state). Shifts 12, 25, 27 on the 64-bit state, then
    the high 32 bits of state * 0x2545F4914F6CDD1D.

    Raises ValueError, with the value, for a state outside 1 .. 2^64 - 1: 0 would stay 0.
    """
    # TODO (A0): random_u32
    # HINT: Python's integers grow: cut to 64 bits after the left shift and after the product.
    # BEGIN SOLUTION
    if not 0 < state <= MASK64:
        raise ValueError(f"state {state} is outside 1 .. 2^64 - 1")
    state ^= state >> 12
    state ^= (state << 25) & MASK64
    state ^= state >> 27
    return (state * 0x2545F4914F6CDD1D & MASK64) >> 32, state
    # END SOLUTION


def random_f32(state: int) -> tuple[float, int]:
    """Uniform on [0, 1) and the next state: the high 24 bits of one random_u32, times 2^-24."""
    # TODO (A0): random_f32
    # HINT: 24 bits, so that a float32 in C holds the same number.
    # BEGIN SOLUTION
    value, state = random_u32(state)
    return (value >> 8) / 2**24, state
    # END SOLUTION


def sample_softmax(logits: Logits, coin: float) -> int:
    """logits (n,), |logit| <= 80; coin in [0, 1). The first index at which the running sum of
    exp(logit), in float64 and in the order of the ids, exceeds coin * (sum of all exp(logit)).

    Raises ValueError for no logits, and, with the value, for a NaN and a coin outside [0, 1).
    """
    # TODO (A0): sample_softmax
    # HINT: np.exp and np.sum may round otherwise than C's loop; math.exp and np.cumsum do not.
    # BEGIN SOLUTION
    import math

    if len(logits) == 0 or np.isnan(logits).any():
        raise ValueError(f"{len(logits)} logits, of which {np.isnan(logits).sum()} are nan")
    if not 0 <= coin < 1:
        raise ValueError(f"coin {coin} is outside [0, 1)")
    running = np.cumsum([math.exp(logit) for logit in logits.tolist()])
    return int(np.argmax(running > coin * running[-1]))
    # END SOLUTION


def check_sampling(
    logits: Logits, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    """Raises ValueError, with the value, unless sample_pcg can answer.

    It wants logits (n,), n > 0, without NaN and +inf, not all -inf (a logit of -inf is a token that
    must not come); 0 <= temperature < inf; top_k >= 1; 0 < top_p <= 1.
    """
    # TODO (A0): check_sampling
    # HINT: a comparison with NaN is false; write conditions so that false means refused.
    # BEGIN SOLUTION
    if logits.ndim != 1 or logits.size == 0:
        raise ValueError(f"logits of shape {logits.shape}, want (n,)")
    if not (logits < np.inf).all():
        i = int(np.argmin(logits < np.inf))
        raise ValueError(f"logit {i} is {logits[i]}")
    if not logits.max() > -np.inf:
        raise ValueError(f"all {logits.size} logits are -inf")
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature {temperature} is outside [0, inf)")
    if top_k is not None and not top_k >= 1:
        raise ValueError(f"top_k is {top_k}, want at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p {top_p} is outside (0, 1]")
    # END SOLUTION


def softmax_weights(logits: Logits, temperature: float) -> Weights:
    """e^(z - max z) of z = logits / temperature, (n,) float64; temperature > 0. Not normalised.

    Raises ValueError for a temperature so small that max z overflows.
    """
    # TODO (A0): softmax_weights
    # HINT: float64 before the division; without `- max z`, e^z overflows at z = 710.
    # BEGIN SOLUTION
    with np.errstate(over="ignore"):
        z = logits.astype(np.float64) / temperature
    if not np.isfinite(z.max()):
        raise ValueError(f"temperature {temperature} is too small for logits up to {logits.max()}")
    weights: Weights = np.exp(z - z.max())
    return weights
    # END SOLUTION


def cut(weights: Weights, top_k: int | None = None, top_p: float | None = None) -> Weights:
    """A copy of weights (n,) in which the tokens that may not come have 0.

    top_k keeps the k largest (all, if k >= n). Then top_p keeps, largest first, as few of these as
    together reach top_p of the sum of these; 1 keeps all. Of equal weights the lower id is first.
    """
    # TODO (A0): cut
    # HINT: a stable sort of -weights puts equal ones in the order of their ids.
    # BEGIN SOLUTION
    order = np.argsort(-weights, kind="stable")[:top_k]
    if top_p is not None and top_p < 1:
        running = np.cumsum(weights[order])
        reached = int(np.searchsorted(running, top_p * running[-1]))
        order = order[: reached + 1]
    kept = np.zeros_like(weights)
    kept[order] = weights[order]
    return kept
    # END SOLUTION


def sample_pcg(
    logits: Logits,
    temperature: float,
    rng: Uniform,
    top_k: int | None = None,
    top_p: float | None = None,
) -> int:
    """One token: the first id at which the running sum of the weights that `cut` leaves of
    softmax_weights, in the order of the ids, exceeds u * (their sum), u = rng.uniform().

    One draw a token, also where only one may come. Temperature 0 takes the largest logit, of equal
    ones the lowest id, and draws nothing. Raises ValueError as check_sampling does, and then draws
    nothing.
    """
    # TODO (A0): sample_pcg
    # HINT: np.cumsum adds in order, so its last element is the sum that the walk must reach.
    # BEGIN SOLUTION
    check_sampling(logits, temperature, top_k, top_p)
    if temperature == 0:
        return int(np.argmax(logits))
    running = np.cumsum(cut(softmax_weights(logits, temperature), top_k, top_p))
    return int(np.argmax(running > rng.uniform() * running[-1]))
    # END SOLUTION
