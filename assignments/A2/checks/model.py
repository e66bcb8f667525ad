"""What decides the rows of model.h's backward half."""

from autograder.compare import CLOSE_C, Seen, close_all, expect, refused, same

STEPS = {"f32": 1e-4}  # of ten losses: each step starts from what rounding made of the last
# Of a gradient along a direction, which may be small where the gradient is not: on a thousand seeds
# right code, in float or double, reached 1.6e-5.
ALONG = {"f32": 1e-4}
LINES = "a pair for each tensor of Parameters, along two directions, all layers together"


def zero_grad(seen: Seen) -> None:
    for name, text in (
        ("first", "gradients that are not 0 after the first call"),
        ("grads", "parameters' gradients that are not 0 after a second call"),
        ("activations", "activations' gradients that are not 0 after a second call"),
    ):
        same(seen, name, input=text, hint="both blocks, each time")
    same(seen, "same_memory", input="whether memory is allocated once", hint="if it is NULL")
    hint = "place_parameters and place_activations, for max_B and max_T"
    same(seen, "places", input="first and last tensor of each block", hint=hint)


def backward(seen: Seen) -> None:
    close_all(seen, "plain", LINES, bounds=ALONG)


def backward_edges(seen: Seen) -> None:
    close_all(seen, "edge", LINES, bounds=ALONG)
    text = "gradients of the padding that are not 0"
    same(seen, "padding", input=text, hint="nothing flows there")


def backward_refused(seen: Seen) -> None:
    refused(
        seen,
        "a forward with targets, zero_grad",
        targets="a forward without targets",
        zero_grad="no zero_grad",
    )
    hint = "without targets mean_loss is -1; 0 is a loss"
    expect(seen.number("low") == 0, "refused", input="a forward whose mean_loss is 0", hint=hint)


def update(seen: Seen) -> None:
    hint = "adamw_update for each tensor, with its part of all four arrays; moments are kept"
    close_all(seen, "plain", hint, bounds=CLOSE_C)


def update_decay(seen: Seen) -> None:
    hint = "weight_decay for wte wpe qkvw attprojw fcw fcprojw, 0 for all others"
    close_all(seen, "decay", hint, bounds=CLOSE_C)


def exam_embeddings(seen: Seen) -> None:
    close_all(seen, "", "wte, wpe: wte gets a gradient at both ends", bounds=ALONG)


def exam_attention(seen: Seen) -> None:
    close_all(seen, "", "qkvw, qkvb, attprojw, attprojb", bounds=ALONG)


def exam_mlp(seen: Seen) -> None:
    close_all(seen, "", "fcw, fcb, fcprojw, fcprojb", bounds=ALONG)


def exam_norms(seen: Seen) -> None:
    close_all(seen, "", "weight and bias of the norm", bounds=ALONG)


def exam_steps(seen: Seen) -> None:
    hint = "t begins at 1 and grows; the moments are kept from step to step"
    close_all(seen, "", hint, bounds=STEPS)


def clean_model(seen: Seen) -> None:
    seen.no_warnings()
    seen.no_leaks("params")
