"""What decides the forward rows of layers.h."""

from autograder.compare import CLOSE_C, Seen, close_all


def _plain(seen: Seen, hint: str) -> None:
    close_all(seen, "plain", hint, bounds=CLOSE_C)


def _edges(seen: Seen, hint: str) -> None:
    close_all(seen, "edge", hint, bounds=CLOSE_C)


def encoder(seen: Seen) -> None:
    _plain(seen, "row inp[b,t] of wte plus row t of wpe")


def encoder_edges(seen: Seen) -> None:
    _edges(seen, "positions begin at 0 in each sequence; rows are C long")


def layernorm(seen: Seen) -> None:
    _plain(seen, "mean and rstd of each position, over its C channels")


def layernorm_edges(seen: Seen) -> None:
    _edges(seen, "the variance is divided by C, eps is under the root; rstd is what is kept")


def matmul(seen: Seen) -> None:
    _plain(seen, "out[o] = inp row . weight row o + bias[o]")


def matmul_edges(seen: Seen) -> None:
    _edges(seen, "bias may be NULL; rows of inp are C, of out OC long")


def attention(seen: Seen) -> None:
    _plain(seen, "scores over t2 <= t, their softmax, then the sum of values")


def attention_edges(seen: Seen) -> None:
    _edges(seen, "a head's size is C / NH; take the largest score off; att behind t is 0")


def residual(seen: Seen) -> None:
    _plain(seen, "out = inp1 + inp2")


def residual_edges(seen: Seen) -> None:
    _edges(seen, "all N elements")


def gelu(seen: Seen) -> None:
    _plain(seen, "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))")


def gelu_edges(seen: Seen) -> None:
    _edges(seen, "for large x the tanh is 1 or -1")


def softmax(seen: Seen) -> None:
    _plain(seen, "e^z over the sum, of the first V")


def softmax_edges(seen: Seen) -> None:
    _edges(seen, "take the maximum of the first V off; the padding is 0, whatever its logits")


def crossentropy(seen: Seen) -> None:
    _plain(seen, "-log of probs[b,t,target]")


def crossentropy_edges(seen: Seen) -> None:
    _edges(seen, "rows of probs are Vp apart")


def clean_layers(seen: Seen) -> None:
    seen.no_warnings()
