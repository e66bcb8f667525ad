"""What decides the rows of loop.py."""

import numpy as np

from autograder.compare import (
    Seen,
    accepted,
    bar,
    difference,
    expect,
    near,
    raised,
    same,
)

ROUNDING = 1e-14  # a few operations on numbers near 1
HAND = "the example by hand: w = 2, b = 0, x 1 and 2, y 3 and 5, rate 0.1"


def _epoch(seen: Seen, name: str, text: str, hint: str) -> None:
    same(
        seen,
        f"{name}_length",
        input=f"len(loader), {text}",
        hint="n / batch_size, rounded down with drop_last, else up",
    )
    same(seen, f"{name}_sizes", input=f"rows of each batch, {text}", hint=hint, at="batch")
    same(seen, f"{name}_x", input=f"x (n, 2) of all batches, {text}", hint=hint)
    same(seen, f"{name}_y", input=f"y of all batches, {text}", hint="the rows of x, the same of y")


def loader_order(seen: Seen) -> None:
    hint = "rows in their order; drop_last is about a batch that is not full"
    for name, text in (
        ("kept", "7 rows by 3, drop_last False"),
        ("dropped", "7 rows by 3, drop_last True"),
        ("whole_kept", "6 rows by 3, drop_last False"),
        ("whole_dropped", "6 rows by 3, drop_last True"),
        ("few_kept", "2 rows by 3, drop_last False"),
        ("few_dropped", "2 rows by 3, drop_last True"),
        ("one", "3 rows by 1, drop_last True"),
        ("unused", "7 rows by 3, a generator but no shuffle"),
    ):
        _epoch(seen, name, text, hint)
    same(seen, "default", input="len(loader), 7 rows by 3", hint="drop_last is True by default")
    hint = "each epoch begins with row 0, and a batch is a copy"
    _epoch(seen, "again", "7 rows by 3, an epoch after somebody wrote into batches", hint)
    text = "y of two passes at once, batch by batch in turn"
    same(seen, "at_once", input=text, hint="each iter(loader) has a place of its own")


def loader_shuffled(seen: Seen) -> None:
    hint = "rng.shuffle on the list 0 .. n-1"
    _epoch(seen, "first", "11 rows by 4, shuffled, first epoch", hint)
    _epoch(seen, "dropped", "11 rows by 4, shuffled, drop_last True", hint)


def loader_epochs(seen: Seen) -> None:
    hint = "the list begins as 0 .. n-1 again, and the generator draws on"
    for name in ("second", "third"):
        _epoch(seen, name, f"11 rows by 4, shuffled, {name} epoch", hint)


def loader_refused(seen: Seen) -> None:
    accepted(seen, "good", "two arrays of 4 rows, a shuffle with a generator")
    accepted(seen, "unused", "no shuffle and no generator")
    raised(seen, "lengths", "ValueError", "arrays of 4, 4 and 3 rows")
    raised(seen, "generator", "ValueError", "a shuffle without a generator")
    raised(seen, "size", "ValueError", "batch_size 0")
    raised(seen, "negative", "ValueError", "batch_size -2")
    raised(seen, "nothing", "ValueError", "no arrays")


def step_by_hand(seen: Seen) -> None:
    near(seen, "first_loss", ROUNDING, input=HAND, hint="the loss of the batch, before the update")
    same(seen, "first_updates", input=f"{HAND}: calls of opt.step()", hint="one a step")
    text = f"{HAND}, and a gradient of 100 that somebody left in w.grad: gradients at opt.step()"
    hint = "gradients add up: model.zero_grad() comes first, opt.step() last"
    near(seen, "first_gradients", ROUNDING, input=text, hint=hint)
    near(seen, "first_parameters", ROUNDING, input=f"{HAND}: w, b after the step")
    text = f"{HAND}: model.training in each call of loss_fn, a step a call, and after"
    same(seen, "modes", input=text, hint="one call a step, and the mode is the caller's")


def step_again(seen: Seen) -> None:
    hint = "gradients of the step before must be gone: model.zero_grad() comes first"
    near(seen, "second_gradients", ROUNDING, input=f"{HAND}: gradients of step 2", hint=hint)
    near(seen, "second_loss", ROUNDING, input=f"{HAND}: loss of step 2", hint=hint)
    near(seen, "second_parameters", ROUNDING, input=f"{HAND}: w, b after step 2", hint=hint)


def step_metrics(seen: Seen) -> None:
    hint = 'a pair (loss, {"acc": ...}) puts acc beside the loss'
    near(seen, "metrics", ROUNDING, input="loss, acc and rows of such a pair", hint=hint)


def step_vector(seen: Seen) -> None:
    raised(seen, "vector", "ValueError", "a loss of two numbers")
    _untouched(seen, "vector", "a loss of two numbers")
    near(seen, "row", ROUNDING, input="a loss of shape (1,)", hint="it is one number")


def _untouched(seen: Seen, name: str, text: str) -> None:
    hint = "refuse it before anything changes"
    same(seen, f"{name}_updates", input=f"calls of opt.step() after {text}", hint=hint)
    same(seen, f"{name}_parameters", input=f"w, b after {text}", hint=hint)


LOSSES = (("nan", "a loss of nan"), ("inf", "a loss of inf"), ("minus_inf", "a loss of -inf"))


def step_finite(seen: Seen) -> None:
    for name, text in LOSSES:
        raised(seen, name, "FloatingPointError", text)
        _untouched(seen, name, text)
        hint = "look at the loss before backward"
        same(seen, f"{name}_backwards", input=f"calls of backward after {text}", hint=hint)
    hint = "a batch that was refused leaves nothing behind"
    near(seen, "after", ROUNDING, input="the loss of a good batch after these", hint=hint)
    near(seen, "after_gradients", ROUNDING, input="its gradients", hint=hint)


def step_finite_average(seen: Seen) -> None:
    for name, text in LOSSES:
        hint = "ema.update comes behind the look at the loss"
        same(seen, f"{name}_averaged", input=f"calls of ema.update after {text}", hint=hint)


def step_clip(seen: Seen) -> None:
    for name, text in (("one", "clip 1"), ("four", "clip 4"), ("none", "no clip")):
        hint = "the norm of all gradients together, as it was before clipping"
        near(seen, f"{name}_norm", ROUNDING, input=f"grad_norm, {text}", hint=hint)
        hint = "one factor for all gradients, where the norm is above the limit"
        near(seen, f"{name}_gradients", ROUNDING, input=f"gradients, {text}", hint=hint)
        near(seen, f"{name}_parameters", ROUNDING, input=f"w, b after it, {text}", hint=hint)


def step_ema(seen: Seen) -> None:
    near(seen, "averaged", ROUNDING, input="what ema.update got in two steps", hint="the loss")
    hint = "ema.value_debiased(), after the update"
    text = "loss_ema of two steps, with an average whose value_debiased() says 101, then 102"
    near(seen, "said", ROUNDING, input=text, hint=hint)
    same(seen, "without", input="1: loss_ema without an ema", hint="leave it out then")


MODULES = "training of the model, .part, .part.inner, .blocks[0], .blocks[1]"


def evaluate_rows(seen: Seen) -> None:
    text = "batches of 4, 4 and 2 rows: loss, low"
    near(seen, "means", ROUNDING, input=text, hint="each batch counts as many times as it has rows")
    same(seen, "n", input=f"{text}: n", hint="how many rows there were")
    same(seen, "rows", input="rows that loss_fn saw", hint="each batch once", at="batch")
    raised(seen, "empty", "ValueError", "a loader without a batch")


def evaluate_modes(seen: Seen) -> None:
    same(seen, "modes", input=f"{MODULES}, in each batch", hint="model.eval() before the first")
    same(seen, "recording", input="1: a graph is kept, in each batch", hint="no_grad()", at="batch")
    hint = "each module goes back to the mode that it had"
    same(seen, "modes_after", input=f"{MODULES}, after it", hint=hint, at="module")
    same(seen, "modes_of_eval", input=f"{MODULES}, of a model in eval mode", hint=hint, at="module")
    text = f"{MODULES}, after a loader without a batch"
    same(seen, "modes_of_empty", input=text, hint=hint, at="module")
    same(seen, "recording_after", input="1: a graph is kept, after it", hint="leave no_grad again")
    text = "1: a graph is kept, after it, within no_grad"
    same(seen, "recording_nested", input=text, hint="put back what was there before")


def evaluate_error(seen: Seen) -> None:
    for name, kind, text in (
        ("batch", "KeyError", "loss_fn fails at the second batch"),
        ("loader", "OSError", "the loader fails"),
    ):
        raised(seen, name, kind, text)
        same(seen, f"{name}_modes", input=f"{MODULES}; {text}", hint="finally", at="module")
        same(seen, f"{name}_recording", input=f"1: a graph is kept; {text}", hint="finally")
    hint = "finally, also for what is no Exception"
    same(seen, "interrupt_modes", input=f"{MODULES}; Ctrl-C", hint=hint, at="module")
    same(seen, "interrupt_recording", input="1: a graph is kept; Ctrl-C", hint=hint)


# ---------------------------------------------------------------- learning

SHARE = 0.95  # of the two moons' points on their side of the line
MARGIN = 2.0  # on new inputs the reference's loss, times this, will do, too
LABELS = {"xor": np.array([0, 1, 1, 0]), "moons": np.arange(200) % 2}  # learning.py's, row by row


def _loss_of(task: str, logits: np.ndarray) -> float:
    """The mean of log(1 + e^z) - z y over the rows of a task."""
    return float(np.mean(np.logaddexp(0, logits) - logits * LABELS[task]))


def _learned(seen: Seen, task: str, text: str) -> np.ndarray:
    """The logits; raises Mismatch if their loss is above the bar."""
    got = seen.got("logits")
    good = got.dtype == np.float64 and got.size == LABELS[task].size
    expect(good, "no logits", input=text, got=f"{got.size} of {got.dtype}")
    limit = bar(__file__, task)
    if "logits" in seen.wanted:
        limit = max(limit, MARGIN * _loss_of(task, seen.want("logits")))
    loss = _loss_of(task, got)
    expect(
        loss <= limit,
        "the loss after training",
        input=text,
        got=f"{loss:.6g}",
        expected=f"at most {limit:.6g}: the reference's mean over five seeds, and 3 deviations",
        hint="the rows above say where; if they are ok, look at the order of what a step does",
    )
    return got


def xor(seen: Seen) -> None:
    _learned(seen, "xor", "xor, 2-8-1 with tanh, 300 steps of AdamW")


def moons(seen: Seen) -> None:
    text = "two moons, 2-16-1 with tanh, 40 epochs of 6 batches; 200 new points"
    right = (_learned(seen, "moons", text) > 0) == (LABELS["moons"] > 0)
    share = float(right.mean())
    expect(share >= SHARE, "too many are wrong", input=text, got=f"{share:.1%}", expected="95 %")


def same_seed(seen: Seen) -> None:
    hint = "nothing but the seed may decide: no clock, no global generator, no order of a set"
    for what in ("losses", "weights"):
        first, second = seen.got(f"first_{what}"), seen.got(f"second_{what}")
        fine = first.dtype == second.dtype and first.size == second.size > 0
        expect(fine, f"no {what}", input="two runs with one seed")
        bad = first.view(np.uint64) != second.view(np.uint64)
        if bad.any():
            place = int(np.argmax(bad))
            raise difference(second, first, place, input=f"{what} of both runs", hint=hint)
        other = seen.got(f"other_{what}")
        fine = other.size == first.size and not np.array_equal(other, first)
        expect(fine, f"the same {what}", input="two seeds", hint="the seed decides something")
