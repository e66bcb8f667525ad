"""What checks are written with: errors that Python calls must raise."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.build import Built
from autograder.compare import Mismatch, Seen, accepted, raised
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
