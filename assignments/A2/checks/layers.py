"""What decides the backward rows of layers.h."""

from autograder.compare import CLOSE_C, Seen, close_all


def _plain(seen: Seen, hint: str) -> None:
    close_all(seen, "plain", hint, bounds=CLOSE_C)


def _edges(seen: Seen, hint: str) -> None:
    close_all(seen, "edge", hint, bounds=CLOSE_C)


def encoder(seen: Seen) -> None:
    _plain(seen, "+= for each position: a token may occur twice")


def encoder_edges(seen: Seen) -> None:
    _edges(seen, "dwpe sums over sequences")


def layernorm(seen: Seen) -> None:
    _plain(seen, "two means are taken off; all three gradients are added to")


def layernorm_edges(seen: Seen) -> None:
    _edges(seen, "mean and rstd as they were kept; weight and bias sum over all positions")


def matmul(seen: Seen) -> None:
    _plain(seen, "three gradients, each added to what is there")


def matmul_edges(seen: Seen) -> None:
    _edges(seen, "dbias may be NULL; weight is (OC,C)")


def attention(seen: Seen) -> None:
    _plain(seen, "values and att, then the softmax, then queries and keys; += into dinp")


def attention_edges(seen: Seen) -> None:
    _edges(seen, "only t2 <= t; the scale is 1 / sqrt(C / NH)")


def residual(seen: Seen) -> None:
    _plain(seen, "dout is added to both")


def residual_edges(seen: Seen) -> None:
    _edges(seen, "all N elements")


def gelu(seen: Seen) -> None:
    _plain(seen, "a product of two functions of x; added to dinp")


def gelu_edges(seen: Seen) -> None:
    _edges(seen, "for large x the derivative is 1 or 0")


def crossentropy_softmax(seen: Seen) -> None:
    _plain(seen, "(probs - 1 at the target) dlosses, added to dlogits")


def crossentropy_softmax_edges(seen: Seen) -> None:
    _edges(seen, "only the first V of each row")


def clean_layers(seen: Seen) -> None:
    seen.no_warnings()
