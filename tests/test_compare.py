"""What checks are written with: errors that Python calls must raise, tensors that must be close."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from autograder.build import Built
from autograder.compare import CLOSE_C, Mismatch, Seen, accepted, close_all, raised
from autograder.observe import Observed


def seen(text: str) -> Seen:
    values = {"x": np.frombuffer(text.encode(), np.uint8)}
    return Seen(Observed(values), {}, Built("rand_py", None))


@pytest.mark.parametrize(
    ("text", "kinds", "values"),
    [
        ("ValueError: n is 0, not within 1 .. 4", "ValueError", (0,)),
        ("ValueError: seed 0x10000000000000000", "ValueError", (2**64,)),
        ("ValueError: coin 1.000000", "ValueError", (1.0,)),
        ("ValueError: coin 2.5e-1", "ValueError", (0.25,)),
        ("ValueError: purpose 'weather'", "ValueError", ("weather",)),
        ("ValueError: 12 tokens", "ValueError", (7, 12)),
        ("UnicodeEncodeError: whatever", "ValueError UnicodeEncodeError", ()),
    ],
)
def test_an_error_with_its_value_is_a_refusal(text: str, kinds: str, values: tuple) -> None:
    raised(seen(text), "x", kinds, "an input", *values)
    with pytest.raises(Mismatch, match="refused"):
        accepted(seen(text), "x", "an input")


@pytest.mark.parametrize(
    ("text", "kinds", "values", "words"),
    [
        ("ok", "ValueError", (0,), "not refused: an input"),
        ("TypeError: n is 0", "ValueError", (0,), "refused in another way"),
        ("ValueError: n is 10", "ValueError", (0,), "refused in another way"),
        ("ValueError: n is 0", "ValueError", (-0.5,), "refused in another way"),
        ("ValueError: n is -1", "ValueError", (1,), "refused in another way"),
        ("ValueError: size 0x1f", "ValueError", (1,), "refused in another way"),
        ("ValueError: no weathers", "ValueError", ("weather",), "refused in another way"),
        ("ValueErrors: n is 0", "ValueError", (0,), "refused in another way"),
    ],
)
def test_another_error_or_value_is_none(text: str, kinds: str, values: tuple, words: str) -> None:
    with pytest.raises(Mismatch, match=words):
        raised(seen(text), "x", kinds, "an input", *values)


def test_no_error_is_accepted() -> None:
    accepted(seen("ok"), "x", "an input")


# ---------------------------------------------------------------- tensors

WANT = np.array([1.0, -2.0, 0.0, 4.0])


def tensors(f64: object = WANT, f32: object = WANT, shape: tuple[int, ...] = (2, 2)) -> Seen:
    """A sample whose wanted value is WANT of shape (2,2), and what a case reported of it."""
    form = np.array(shape, np.int64)
    reported = {
        "plain_f64": np.array(f64, np.float64),
        "plain_f32": np.array(f32, np.float32),
        "plain_f64_shape": form,
        "plain_f32_shape": form,
    }
    wanted = {
        "plain_text": np.frombuffer(b"a sample", np.uint8),
        "plain_f64": WANT,
        "plain_f64_shape": np.array([2, 2]),
    }
    return Seen(Observed(reported), wanted, Built("x", None))


def test_tensors_that_are_close_pass() -> None:
    near_64, near_32 = WANT * (1 + 1e-13) + 1e-14, WANT * (1 + 1e-6) + 1e-6
    close_all(tensors(near_64, near_32), "plain", "a hint")
    close_all(tensors(np.zeros(4)), "other", "a hint")  # none of that name


@pytest.mark.parametrize(
    ("more", "words", "shown"),
    [
        ({"f64": WANT + np.array([0, 0, 0, 1e-9])}, r"first at \[1, 1\], 1 of 4 in all", "float64"),
        ({"f32": WANT + np.array([0, 0.01, 0, 0])}, r"first at \[0, 1\], 1 of 4 in all", "float32"),
        ({"f64": [1, np.nan, 0, 4]}, r"first at \[0, 1\], 1 of 4 in all", "float64"),
        ({"f64": [np.inf, -2, 0, 4]}, r"first at \[0, 0\], 1 of 4 in all", "float64"),
        ({"f64": np.zeros(4)}, r"first at \[0, 0\], 3 of 4 in all", "float64"),
        ({"shape": (4,)}, "the shape", "float64"),
        ({"f64": WANT[:3]}, "the shape", "float64"),
    ],
)
def test_tensors_that_are_not_close_say_where(more: dict, words: str, shown: str) -> None:
    with pytest.raises(Mismatch, match=words) as raised_:
        close_all(tensors(**more), "plain", "a hint")
    assert raised_.value.input == f"a sample, {shown}"
    assert raised_.value.hint == "a hint"


def test_a_tensor_of_another_type_or_none_at_all_fails() -> None:
    other = tensors()
    values = dict(other.observed.values)
    values["plain_f32"] = values["plain_f32"].astype(np.float64)
    with pytest.raises(Mismatch, match="no tensor"):
        close_all(Seen(Observed(values), other.wanted, other.built), "plain", "a hint")
    with pytest.raises(Mismatch, match="was not reported") as raised_:
        close_all(Seen(Observed({}), other.wanted, other.built), "plain", "a hint")
    assert raised_.value.input == "a sample, float64"


def test_c_is_held_to_float32_alone() -> None:
    wanted = {"x_text": np.frombuffer(b"a sample", np.uint8), "x_out_f64": WANT}
    for off, fine in ((1e-6, True), (3e-4, False)):
        reported = {"x_out_f32": (WANT + off).astype(np.float32)}
        seen_ = Seen(Observed(reported), wanted, Built("x", None))
        with contextlib.nullcontext() if fine else pytest.raises(Mismatch, match="first at"):
            close_all(seen_, "", "a hint", bounds=CLOSE_C)
