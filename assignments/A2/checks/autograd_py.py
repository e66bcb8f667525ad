"""What decides the backward rows of autograd.py."""

from autograder.compare import Seen, accepted, close_all, expect, raised, same

IN_PLACE = "work on copies: forward's inputs are the model's weights and activations"


def _edges(seen: Seen, hint: str) -> None:
    """Awkward samples; and no input or result was written into, in these or the others."""
    close_all(seen, "edge", hint)
    got = str(seen.number("changed"))
    expect(got == "0", "an input or a result was changed", got=got, expected="0", hint=IN_PLACE)


def unbroadcast(seen: Seen) -> None:
    close_all(seen, "plain", "sum over axes in front; over stretched ones keep an axis of 1")


def unbroadcast_edges(seen: Seen) -> None:
    close_all(
        seen, "edge", "an axis that was 1 before, too, was not stretched; () has no axis left"
    )


def add(seen: Seen) -> None:
    close_all(seen, "plain", "a gradient passes to both, summed where an input was stretched")


def add_edges(seen: Seen) -> None:
    _edges(seen, "a gradient passes to both, summed where an input was stretched")


def mul(seen: Seen) -> None:
    close_all(seen, "plain", "times the other input, then summed to the input's shape")


def mul_edges(seen: Seen) -> None:
    _edges(seen, "times the other input, then summed to the input's shape")


def exp(seen: Seen) -> None:
    close_all(seen, "plain", "times e^x")


def exp_edges(seen: Seen) -> None:
    _edges(seen, "times e^x")


def log(seen: Seen) -> None:
    close_all(seen, "plain", "over x")


def log_edges(seen: Seen) -> None:
    _edges(seen, "over x")


def tanh(seen: Seen) -> None:
    close_all(seen, "plain", "times 1 - tanh(x)^2")


def tanh_edges(seen: Seen) -> None:
    _edges(seen, "times 1 - tanh(x)^2")


def relu(seen: Seen) -> None:
    close_all(seen, "plain", "passes where x is above 0, not at 0")


def relu_edges(seen: Seen) -> None:
    _edges(seen, "passes where x is above 0, not at 0")


def gelu(seen: Seen) -> None:
    close_all(seen, "plain", "the product rule: x is inside the tanh, too")


def gelu_edges(seen: Seen) -> None:
    _edges(seen, "the product rule: x is inside the tanh, too")


def dropout(seen: Seen) -> None:
    close_all(seen, "plain", "the factors that forward drew, no new uniforms")


def dropout_edges(seen: Seen) -> None:
    _edges(seen, "the factors that forward drew, no new uniforms")


def sum(seen: Seen) -> None:
    close_all(seen, "plain", "each summand gets the gradient of its sum")


def sum_edges(seen: Seen) -> None:
    _edges(seen, "each summand gets the gradient of its sum")


def mean(seen: Seen) -> None:
    close_all(seen, "plain", "each gets the gradient of its mean over how many went into it")


def mean_edges(seen: Seen) -> None:
    _edges(seen, "each gets the gradient of its mean over how many went into it")


def reshape(seen: Seen) -> None:
    close_all(seen, "plain", "back to x's shape")


def reshape_edges(seen: Seen) -> None:
    _edges(seen, "back to x's shape")


def transpose(seen: Seen) -> None:
    close_all(seen, "plain", "the same two axes once more")


def transpose_edges(seen: Seen) -> None:
    _edges(seen, "the same two axes once more")


def slice(seen: Seen) -> None:
    close_all(seen, "plain", "zeros where nothing was taken")


def slice_edges(seen: Seen) -> None:
    _edges(seen, "zeros where nothing was taken")


def matmul(seen: Seen) -> None:
    close_all(seen, "plain", "grad b^T and a^T grad, summed over what was broadcast")


def matmul_edges(seen: Seen) -> None:
    _edges(seen, "grad b^T and a^T grad, summed over what was broadcast")


def embedding(seen: Seen) -> None:
    close_all(seen, "plain", "rows add up: an id that occurs twice gets both gradients")


def embedding_edges(seen: Seen) -> None:
    _edges(seen, "rows add up: an id that occurs twice gets both gradients")


def softmax(seen: Seen) -> None:
    close_all(seen, "plain", "y (grad - sum of grad y)")


def softmax_edges(seen: Seen) -> None:
    _edges(seen, "y (grad - sum of grad y)")


def layernorm(seen: Seen) -> None:
    close_all(
        seen, "plain", "mean and variance depend on x, too; weight and bias sum over all rows"
    )


def layernorm_edges(seen: Seen) -> None:
    _edges(seen, "mean and variance depend on x, too; weight and bias sum over all rows")


def attention(seen: Seen) -> None:
    close_all(seen, "plain", "through v, the softmax and the scale; the mask needs no second look")


def attention_edges(seen: Seen) -> None:
    _edges(seen, "through v, the softmax and the scale; the mask needs no second look")


def cross_entropy(seen: Seen) -> None:
    close_all(seen, "plain", "softmax - 1 at the target, over how many targets count")


def cross_entropy_edges(seen: Seen) -> None:
    _edges(seen, "softmax - 1 at the target, over how many targets count")


def mse(seen: Seen) -> None:
    close_all(seen, "plain", "2 (a - b) over how many, and the negative of it")


def mse_edges(seen: Seen) -> None:
    _edges(seen, "2 (a - b) over how many, and the negative of it")


def bce(seen: Seen) -> None:
    close_all(seen, "plain", "(p - t) over how many")


def bce_edges(seen: Seen) -> None:
    _edges(seen, "(p - t) over how many")


def order_some(seen: Seen) -> None:
    hint = "the tensors that require a gradient, each once, behind all that it was made from"
    for name, z in (("some", "f(y, x)"), ("other", "f(x, y)")):
        got = seen.got(name).tolist()
        text = f"x = f(a, b), y = f(x), z = {z}, l = f(z, c); c requires no gradient"
        lines = {"input": text, "got": " ".join("abxyzlc?"[i] for i in got), "hint": hint}
        lines["expected"] = "a b x y z l"
        expect(sorted(got) == list(range(6)), "not each tensor once", **lines)
        expect(got[2:] == [2, 3, 4, 5], "a tensor stands before what it was made from", **lines)
    expect(seen.got("leaf").tolist() == [0], "not the one tensor", input="of a leaf", hint=hint)


def order_deep(seen: Seen) -> None:
    for name, count, text, hint in (
        ("paths", 13, "12 times x = f(x, x)", "what was seen once is not visited again"),
        ("deep", 5001, "5 000 times x = f(x)", "a list of your own in the place of nested calls"),
    ):
        got = seen.got(name)
        lines = {"input": text, "got": str(got.size), "expected": str(count), "hint": hint}
        expect(got.tolist() == list(range(count)), "not each tensor once, in order", **lines)


def engine_values(seen: Seen) -> None:
    for kind in ("f64", "f32"):
        hint = "what arrives times what each operation says, down to the leaves"
        for name, text in (
            ("a", "3 (a + 2 b) + 2 c, by a"),
            ("b", "the same, by b"),
            ("one", "4 x"),
        ):
            got, want = seen.got(f"{name}_{kind}"), seen.want(f"{name}_f64")
            shape = seen.got(f"{name}_{kind}_shape").tolist()
            fine = (
                got.tolist() == want.tolist() and shape == seen.want(f"{name}_f64_shape").tolist()
            )
            lines = {"input": text, "got": str(got.tolist()), "expected": str(want.tolist())}
            expect(fine, "the gradient", **lines, hint=hint)
        hint = "only what requires a gradient and no operation made keeps one"
        got, want = seen.number(f"without_{kind}"), int(seen.want("without_f64")[0])
        text = "c, which requires none, and three results: how many have none"
        lines = {"input": text, "got": str(got), "expected": str(want), "hint": hint}
        expect(got == want, "others have a gradient", **lines)


def engine_twice(seen: Seen) -> None:
    for name, text, hint in (
        ("used", "x + 2 x, x = 2 a", "a tensor used twice gets the sum of two gradients"),
        ("long_first", "y + 2 x, x = 2 a, y = 3 x", "x waits for what arrives through y"),
        ("short_first", "x + 2 y, x = 2 a, y = 3 x", "x waits for what arrives through y"),
        ("diamond", "2 b + 2 (3 b)", "two ways from b: their gradients add up"),
        ("again", "the same once more", "what is in grad already is added to"),
        ("paths", "12 times x = x + 2 x", "pass a gradient on when all of it has arrived"),
        ("calls", "backward calls for 12 operations", "each operation goes back once"),
    ):
        same(seen, name, input=text, hint=hint)


def engine_copies(seen: Seen) -> None:
    hint = "an operation may return one array twice, or the one it was given: grad is a copy"
    same(seen, "both", input="b + b, whose gradients are one array", hint=hint)
    same(seen, "other", input="b.grad after writing into a.grad", hint=hint)
    same(seen, "start", input="the gradient that was given, after that", hint=hint)


def engine_deep(seen: Seen) -> None:
    same(seen, "grad", input="5 000 times x = f(x)", hint="no nested calls")


def engine_refused(seen: Seen) -> None:
    accepted(seen, "good", "two elements and a gradient for them")
    raised(seen, "nothing", "ValueError", "a result that requires no gradient")
    raised(seen, "several", "ValueError", "two elements and no gradient")
    raised(seen, "shape", "ValueError", "a gradient (1,) for (2,)")
    raised(seen, "dtype", "TypeError", "a gradient of float32 for float64")
    raised(seen, "leaf", "TypeError", "the same for a tensor that no operation made")


def no_grad_inside(seen: Seen) -> None:
    hint = "1: remembered, 0: not, 2: half"
    same(seen, "with", input="a call inside, one after", hint=hint, at="call")


def no_grad_nested(seen: Seen) -> None:
    hint = "put back what was there before, also if an error passes: try and finally"
    for name, text in (
        ("nested", "two deep, one deep, after"),
        ("decorated", "in a decorated function, after, in it again"),
        ("after_error", "after an error inside"),
    ):
        same(seen, name, input=text, hint=hint, at="call")
    raised(seen, "error", "KeyError", "an error inside")


def gradients(seen: Seen) -> None:
    close_all(seen, "plain", GRADIENTS)


def gradients_edges(seen: Seen) -> None:
    close_all(seen, "edge", GRADIENTS)


GRADIENTS = "a line for each of wte wpe ln_1 .. ln_f as in the model file: its gradient along two"
