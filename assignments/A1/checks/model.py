"""What decides the rows of model.h's forward half."""

import numpy as np

from autograder.compare import CLOSE_C, Seen, close_all, near, refused, same

# One rounding to float32, 2^-24; and where cos or sin of a double is near 0, what is left of 2^-53.
ONE_ULP, NEAR_0 = 2.0**-23, 1e-14
CONFIG = "max_seq_len vocab_size padded_vocab_size num_layers num_heads channels"


def _layout(seen: Seen, what: str) -> None:
    same(seen, "config", input=f"{what}: {CONFIG}", hint="every field", at="field")
    hint = "one tensor behind the other, in the order of Parameters: place_parameters"
    same(seen, "places", input=f"{what}: where each tensor starts", hint=hint, at="tensor")
    hint = "gpt2_allocate empties it all"
    same(
        seen, "not_empty", input=f"{what}: fields of later steps that are not NULL or 0", hint=hint
    )


def build(seen: Seen) -> None:
    _layout(seen, "a checkpoint")
    same(seen, "num_parameters", input="a checkpoint", hint="the sum of all sizes, with padding")
    same(seen, "params", input="a checkpoint's parameters", hint="read behind 256 int32")


def build_refused(seen: Seen) -> None:
    refused(
        seen,
        "a good checkpoint",
        magic="another magic number",
        version="version 1",
        no_layer="no layer",
        huge="2147483520 tokens",
        heads="12 channels for 5 heads",
        padding="fewer rows than tokens",
        nan="a parameter that is NaN",
        infinity="a parameter that is infinite",
        short="a file that ends one float early",
        long="a file that is one float too long",
        missing="no such file",
    )


def write(seen: Seen) -> None:
    same(seen, "header", input="the header", hint="magic, version, six sizes, zeros", at="int")
    same(seen, "params", input="the parameters", hint="all of them, as they lie", at="float")
    same(seen, "read", input="how much is there", hint="close the file before it is renamed")
    same(seen, "beyond", input="whether there is more", hint="nothing behind the parameters")
    same(seen, "unchanged", input="whether the model is as it was", hint="only read it")
    text = "an older file, for who opened it before"
    same(seen, "older", input=text, hint="write beside it, then rename", at="byte")


def write_refused(seen: Seen) -> None:
    refused(
        seen,
        "a path that can be written",
        no_folder="a folder that is not there",
        folder="the path of a folder",
        full="a disk that is full after the header",
        full_late="a disk that is full before the last byte",
    )


def _drawn(seen: Seen, name: str, text: str, hint: str) -> None:
    near(seen, name, ONE_ULP * np.abs(seen.want(name)) + NEAR_0, input=text, hint=hint)


def normals_blocks(seen: Seen) -> None:
    for n in (16, 48):
        hint = "in double: radius of element t, angle of t + 8; rounded to float once"
        _drawn(seen, f"n_{n}", f"{n} numbers, std 0.5", hint)
        same(seen, f"after_{n}", input=f"the word after {n} numbers", hint="one word each")


def normals_tail(seen: Seen) -> None:
    for n in (20, 31):
        hint = "of n words only whole blocks of 16 count; 16 more words make the last 16 numbers"
        _drawn(seen, f"n_{n}", f"{n} numbers, std 0.5", hint)
        same(seen, f"after_{n}", input=f"the word after {n} numbers", hint="n words and 16 more")


def init(seen: Seen) -> None:
    _layout(seen, "a fresh model")
    hint = "wte without its padding, wpe, then layer by layer; 0.02 / sqrt(2 L) for the two proj"
    _drawn(seen, "params", "parameters of a fresh model", hint)


def init_refused(seen: Seen) -> None:
    refused(seen, "2 heads, 4 channels", heads="3 heads, 4 channels", no_head="no head")


def forward(seen: Seen) -> None:
    hint = "the layers in their order, each on its part; mean_loss is the mean over (B,T)"
    close_all(seen, "plain", hint, bounds=CLOSE_C)


def forward_edges(seen: Seen) -> None:
    hint = "l * B * T * C with the B and T of this call; without targets mean_loss is -1"
    close_all(seen, "edge", hint, bounds=CLOSE_C)
    same(seen, "padding", input="logits of the padding that are not 0", hint="set them to 0")


def forward_refused(seen: Seen) -> None:
    refused(
        seen,
        "a batch (1,7), token 18",
        long="T 8, at most 7",
        beyond="token 19 of 19",
        negative="token -1",
        larger_B="B 3 after B 2",
        larger_T="T 5 after T 4",
    )


def exam_logits(seen: Seen) -> None:
    close_all(seen, "", "do the rows above pass? then it is the shape", bounds=CLOSE_C)


def clean_model(seen: Seen) -> None:
    seen.no_warnings()
    seen.no_files_left_open()
    seen.no_leaks("logits")
