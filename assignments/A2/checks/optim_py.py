"""What decides the rows of optim.py."""

from autograder.compare import Seen, close, close_all, expect, near, raised, same

ROUNDING = 1e-14  # a few operations on numbers near 1


def decay_groups(seen: Seen) -> None:
    same(seen, "groups", input="shapes (3,4) (4) (2,1,2) () (1,5)", hint="two groups")
    for i, text in enumerate(("the first group, which decays", "the second, which does not")):
        hint = "tensors of two axes or more decay; the order stays"
        same(seen, f"group_{i}", input=text, hint=hint, at="parameter")
        same(seen, f"decay_{i}", input=f"weight_decay of {text}", hint=hint)


def sgd_plain(seen: Seen) -> None:
    close_all(seen, "plain", "weight - lr gradient")


def sgd_momentum(seen: Seen) -> None:
    hint = "v = momentum v + gradient, weight - lr v; without a gradient nothing changes"
    close_all(seen, "momentum", hint)


def sgd_apart(seen: Seen) -> None:
    _apart(seen, "plain", "momentum")


def _apart(seen: Seen, *names: str) -> None:
    for name in names:
        for kind in ("f64", "f32"):
            got = str(seen.number(f"{name}_touched_{kind}"))
            text = "arrays of old weights, and gradients, that a step wrote into"
            hint = "parameter.data = ... makes a new array, parameter.data -= ... does not"
            expect(got == "0", "written into", input=text, got=got, expected="0", hint=hint)


def adamw_plain(seen: Seen) -> None:
    close_all(seen, "plain", "both moments are divided by 1 - beta^t; t is 1 in the first step")


def adamw_decay(seen: Seen) -> None:
    hint = "lr decay weight is taken off beside the gradient's part; each group has its own decay"
    close_all(seen, "decay", hint)


def adamw_eps(seen: Seen) -> None:
    close_all(seen, "eps", "eps is added to the root of the corrected v, not under it")


def adamw_apart(seen: Seen) -> None:
    _apart(seen, "plain", "decay", "eps")


def clip_above(seen: Seen) -> None:
    close_all(
        seen, "above", "one norm over all elements of all gradients; returned as it was before"
    )


def clip_below(seen: Seen) -> None:
    close_all(seen, "below", "a norm below max_norm changes nothing")
    for name in ("above", "below"):
        for kind in ("f64", "f32"):
            same_number = seen.number(f"{name}_without_{kind}") == 1
            expect(same_number, "a parameter without a gradient got one", hint="leave it alone")


def clip_edges(seen: Seen) -> None:
    close_all(seen, "large", "sum the squares in float64")
    text, hint = "gradients 1 and inf", "the norm is infinite: nothing is scaled"
    same(seen, "infinite", input=f"{text}: whether inf is returned", hint=hint)
    same(seen, "infinite_grad", input=f"{text}: the 1", hint=hint)
    raised(seen, "zero", "ValueError", "max_norm 0", 0)
    raised(seen, "negative", "ValueError", "max_norm -0.5", -0.5)


def ema(seen: Seen) -> None:
    for name, beta in (("slow", 0.75), ("none", 0.0)):
        text = f"beta {beta}, after each of six numbers"
        hint = "value = beta value + (1 - beta) x"
        near(seen, f"{name}_values", ROUNDING, input=f"value, {text}", hint=hint, at="update")
        hint = "value / (1 - beta^t), t the number of updates"
        near(seen, f"{name}_debiased", ROUNDING, input=text, hint=hint, at="update")


def ema_before(seen: Seen) -> None:
    raised(seen, "before", "ValueError", "value_debiased() before an update")


def steps_losses(seen: Seen) -> None:
    text = seen.want("steps_text").tobytes().decode()
    hint = "the first is forward's; the second shows the first update"
    close(seen, "steps_losses", input=text, hint=hint)


def steps_weights(seen: Seen) -> None:
    text = seen.want("steps_text").tobytes().decode()
    close(seen, "steps_norms", input=f"norms before clipping, {text}", hint="before clipping")
    hint = "a line for each of wte wpe ln_1 .. ln_f as in the model file: it along two directions"
    close(seen, "steps_weights", input=f"weights after three steps, {text}", hint=hint)
