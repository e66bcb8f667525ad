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
    raise NotImplementedError("A0: random_u32")


def random_f32(state: int) -> tuple[float, int]:
    """Uniform on [0, 1) and the next state: the high 24 bits of one random_u32, times 2^-24."""
    # TODO (A0): random_f32
    # HINT: 24 bits, so that a float32 in C holds the same number.
    raise NotImplementedError("A0: random_f32")


def sample_softmax(logits: Logits, coin: float) -> int:
    """logits (n,), |logit| <= 80; coin in [0, 1). The first index at which the running sum of
    exp(logit), in float64 and in the order of the ids, exceeds coin * (sum of all exp(logit)).

    Raises ValueError for no logits, and, with the value, for a NaN and a coin outside [0, 1).
    """
    # TODO (A0): sample_softmax
    # HINT: np.exp and np.sum may round otherwise than C's loop; math.exp and np.cumsum do not.
    raise NotImplementedError("A0: sample_softmax")


def check_sampling(
    logits: Logits, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    """Raises ValueError, with the value, unless sample_pcg can answer.

    It wants logits (n,), n > 0, without NaN and +inf, not all -inf (a logit of -inf is a token that
    must not come); 0 <= temperature < inf; top_k >= 1; 0 < top_p <= 1.
    """
    # TODO (A0): check_sampling
    # HINT: a comparison with NaN is false; write conditions so that false means refused.
    raise NotImplementedError("A0: check_sampling")


def softmax_weights(logits: Logits, temperature: float) -> Weights:
    """e^(z - max z) of z = logits / temperature, (n,) float64; temperature > 0. Not normalised.

    Raises ValueError for a temperature so small that max z overflows.
    """
    # TODO (A0): softmax_weights
    # HINT: float64 before the division; without `- max z`, e^z overflows at z = 710.
    raise NotImplementedError("A0: softmax_weights")


def cut(weights: Weights, top_k: int | None = None, top_p: float | None = None) -> Weights:
    """A copy of weights (n,) in which the tokens that may not come have 0.

    top_k keeps the k largest (all, if k >= n). Then top_p keeps, largest first, as few of these as
    together reach top_p of the sum of these; 1 keeps all. Of equal weights the lower id is first.
    """
    # TODO (A0): cut
    # HINT: a stable sort of -weights puts equal ones in the order of their ids.
    raise NotImplementedError("A0: cut")


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
    raise NotImplementedError("A0: sample_pcg")
