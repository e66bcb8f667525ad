"""What decides the forward rows of autograd.py."""

from autograder.compare import Seen, close_all, expect, raised

IN_PLACE = "work on copies: whoever made an array may still need it"


def _edges(seen: Seen, hint: str) -> None:
    """Awkward samples; and no input was written into, in these or the others."""
    close_all(seen, "edge", hint)
    got = str(seen.number("changed"))
    expect(got == "0", "an input was changed", got=got, expected="0", hint=IN_PLACE)


def add(seen: Seen) -> None:
    close_all(seen, "plain", "a + b")


def add_edges(seen: Seen) -> None:
    _edges(seen, "numpy broadcasts by itself")


def mul(seen: Seen) -> None:
    close_all(seen, "plain", "a * b, element by element")


def mul_edges(seen: Seen) -> None:
    _edges(seen, "numpy broadcasts by itself")


def exp(seen: Seen) -> None:
    close_all(seen, "plain", "np.exp")


def exp_edges(seen: Seen) -> None:
    _edges(seen, "np.exp takes any shape")


def log(seen: Seen) -> None:
    close_all(seen, "plain", "the natural logarithm")


def log_edges(seen: Seen) -> None:
    _edges(seen, "np.log takes any shape; nothing is added to x")


def tanh(seen: Seen) -> None:
    close_all(seen, "plain", "np.tanh")


def tanh_edges(seen: Seen) -> None:
    _edges(seen, "np.tanh takes large numbers, too; quotients of powers of e overflow")


def relu(seen: Seen) -> None:
    close_all(seen, "plain", "max(x, 0), element by element")


def relu_edges(seen: Seen) -> None:
    _edges(seen, "max(x, 0), element by element, in x's own dtype")


def gelu(seen: Seen) -> None:
    close_all(
        seen, "plain", "the tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), not erf"
    )


def gelu_edges(seen: Seen) -> None:
    _edges(seen, "for large x the tanh is 1 or -1")


def dropout(seen: Seen) -> None:
    close_all(seen, "plain", "zero where u < p, else x / (1 - p); uniforms in row-major order")
    _drawn(seen, "plain")


def dropout_edges(seen: Seen) -> None:
    _edges(seen, "u = p is kept; the uniforms have as many axes as x")
    _drawn(seen, "edge")


def _drawn(seen: Seen, kind: str) -> None:
    """As many uniforms as elements, whatever p is."""
    wanted = {n: int(w[0]) for n, w in seen.wanted.items() if n.endswith("_f64_used")}
    for name, want in wanted.items():
        for got in (seen.number(name), seen.number(name.replace("_f64_", "_f32_"))):
            lines = {"got": str(got), "expected": str(want), "hint": "one for each element"}
            text = f"{name.removesuffix('_f64_used')}: how many uniforms were drawn"
            expect(got == want or not name.startswith(kind), "the number", input=text, **lines)


def sum_all(seen: Seen) -> None:
    close_all(seen, "plain", "x.sum with axis and keepdims")


def sum_edges(seen: Seen) -> None:
    _edges(seen, "numpy takes several axes, negative ones, and keepdims")


def mean(seen: Seen) -> None:
    close_all(seen, "plain", "the sum over how many elements went into each")


def mean_edges(seen: Seen) -> None:
    _edges(seen, "how many went into each: x.size over the size of the sums")


def reshape(seen: Seen) -> None:
    close_all(seen, "plain", "the same elements in the same order")


def reshape_edges(seen: Seen) -> None:
    _edges(seen, "row by row, also of an array that is laid out otherwise")


def transpose(seen: Seen) -> None:
    close_all(seen, "plain", "two axes change places, the others stay")


def transpose_edges(seen: Seen) -> None:
    _edges(seen, "axes may be negative, or the same")


def slice_part(seen: Seen) -> None:
    close_all(seen, "plain", "start to stop - 1 of one axis, all of the others")


def slice_edges(seen: Seen) -> None:
    _edges(seen, "an index for each axis; the axis may be negative")


def matmul(seen: Seen) -> None:
    close_all(seen, "plain", "rows of a times columns of b")


def matmul_edges(seen: Seen) -> None:
    _edges(seen, "the last two axes are multiplied, those in front are broadcast")


def matmul_refused(seen: Seen) -> None:
    raised(seen, "left_vector", "ValueError", "a of one axis")
    raised(seen, "right_vector", "ValueError", "b of one axis")


def embedding(seen: Seen) -> None:
    close_all(seen, "plain", "weight[ids]")


def embedding_edges(seen: Seen) -> None:
    _edges(seen, "ids may be of any integer type and shape")


def embedding_refused(seen: Seen) -> None:
    raised(seen, "negative", "IndexError", "id -1", -1)
    raised(seen, "beyond", "IndexError", "id 5 of 5", 5)
    raised(seen, "floats", "TypeError", "ids of float64")


def softmax(seen: Seen) -> None:
    close_all(seen, "plain", "e^x over its sum along the last axis")


def softmax_edges(seen: Seen) -> None:
    _edges(seen, "take the row's maximum off before e^x: e^89 is too much for a float32")


def layernorm(seen: Seen) -> None:
    close_all(seen, "plain", "(x - mean) / sqrt(variance + eps), times weight, plus bias")


def layernorm_edges(seen: Seen) -> None:
    _edges(seen, "the variance is over C, not C - 1; eps is under the root")


def attention(seen: Seen) -> None:
    close_all(seen, "plain", "softmax(q k^T / sqrt(hs)) v; position t sees 0..t")


def attention_edges(seen: Seen) -> None:
    _edges(seen, "position t sees itself, too; maximum off before e^x; hs is the last axis")


def cross_entropy(seen: Seen) -> None:
    close_all(seen, "plain", "the mean of log sum e^z - z[target]")


def cross_entropy_edges(seen: Seen) -> None:
    hint = "maximum off before e^z, no log of a softmax; the mean is over targets not ignored"
    _edges(seen, hint)


def cross_entropy_refused(seen: Seen) -> None:
    raised(seen, "shape", "ValueError", "3 targets for 2 rows")
    raised(seen, "column", "ValueError", "targets (2,1) for logits (2,5)")
    raised(seen, "ignored", "ValueError", "targets that are all ignored")
    raised(seen, "negative", "IndexError", "target -1", -1)
    raised(seen, "beyond", "IndexError", "target 5 of 5 classes", 5)
    raised(seen, "floats", "TypeError", "targets of float64")


def mse(seen: Seen) -> None:
    close_all(seen, "plain", "the mean of (a - b)^2")
    raised(seen, "shape", "ValueError", "a (2,3) and b (3,)")


def mse_edges(seen: Seen) -> None:
    _edges(seen, "over all elements, whatever the axes")


def bce(seen: Seen) -> None:
    close_all(seen, "plain", "the mean of -(t log p + (1 - t) log(1 - p))")
    raised(seen, "shape", "ValueError", "targets (2,1) for x (2,)")


def bce_edges(seen: Seen) -> None:
    _edges(seen, "no log of a p that may round to 0 or 1: max(x, 0) - x t + log1p(e^-|x|)")
