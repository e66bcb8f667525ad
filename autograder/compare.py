"""What checks are written with: a case's observations, what they should be, and strict comparisons.

A check is a plain function `check(seen)`. It returns if all is well and raises Mismatch (with what
a student needs to see), Waiting (an unwritten function), or Cannot (this machine cannot tell).
Comparisons are written so that NaN, a wrong type or a wrong length fails.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autograder.build import Built
from autograder.observe import TODO_STATUS, Array, Ending, Observed
from autograder.sandbox import REPORT_STATUS

SHOWN = 5  # values around the first difference
SAID = 120  # characters of an error's message
WRONG_TYPE = "WrongType: "  # what observe.py calls a value that cannot go out
NUMBER = re.compile(r"(?<![\w.-])-?(?:0x[\da-f]+|\d+(?:\.\d*)?(?:e[-+]?\d+)?)(?!\w)")


@dataclass(frozen=True)
class Histogram:
    """A distribution beside the wanted one: a label, a count and a wanted count for each bin."""

    title: str
    bins: tuple[str, ...]
    got: tuple[float, ...]
    expected: tuple[float, ...]


class Mismatch(Exception):
    """What differs: each field is one line of the report, or empty; and a picture, if one helps."""

    def __init__(self, differs: str, *, input: str = "", got: str = "", expected: str = "",
                 hint: str = "", picture: Histogram | None = None) -> None:  # fmt: skip
        super().__init__(differs)
        self.differs, self.input, self.hint = differs, input, hint
        self.got, self.expected, self.picture = got, expected, picture


class Waiting(Exception):
    """The case met a function that is not written yet; its name is the message."""


class Cannot(Exception):
    """This machine cannot tell; the message says what it needs."""


@dataclass(frozen=True)
class Seen:
    """What a check looks at: one case's observations, the wanted ones, and how the probe built."""

    observed: Observed
    wanted: Mapping[str, Array]
    built: Built
    data: Path | None = None
    sees_leaks: bool = False  # this compiler's leak checker was seen to work
    native: bool = False  # there is a library of what Python calls of C

    def got(self, name: str) -> Array:
        """The observation; where it is missing, raises with how the case ended instead."""
        ending = self.observed.ending
        if ending.kind == "malformed":
            raise Mismatch(f"something else wrote to the observation descriptor: {ending.what}")
        if name not in self.observed.values:
            raise _missing(ending, name, self.observed.said)
        return self.observed.values[name]

    def number(self, name: str) -> int:
        """An observation that must be one int64."""
        value = self.got(name)
        if value.dtype != np.int64 or value.shape != (1,):
            raise Mismatch(f"`{name}` is no single int64")
        return int(value[0])

    def want(self, name: str) -> Array:
        return self.wanted[name]

    def no_warnings(self) -> None:
        """The probe compiled without a warning in the student's files."""
        for note in self.built.warnings:
            if not note.where.startswith("llmc/"):
                continue  # a name of the student's met one of the probe's
            raise Mismatch(f"a warning at {note.where}", got=note.what, expected="none")
        for where, what in self.built.silenced:
            raise Mismatch(f"{where} silences the compiler", got=what, expected="the warning")

    def no_files_left_open(self) -> None:
        """The case reports as many open files at its end as at its start."""
        left = self.number("files_left_open")
        if left != 0:
            hint = "close what you open"
            raise Mismatch("files are left open", got=str(left), expected="0", hint=hint)

    def no_leaks(self, after: str) -> None:
        """The case got through its life (`after` is of the same form as the wanted one) and reports
        that it lost no memory. Raises Cannot where this build cannot see that.

        Whether the values are right is for other rows to say.
        """
        got, want = self.got(after), self.want(after)
        expect(got.dtype == want.dtype and got.shape == want.shape, f"`{after}`: wrong form")
        leaks = self.number("leaks")
        if leaks < 0 and self.sees_leaks:
            raise Mismatch("the leak check was kept from running")
        if self.observed.ending.kind != "ended":
            raise _missing(self.observed.ending, "end", self.observed.said)
        if leaks < 0:
            raise Cannot("needs LeakSanitizer")
        if leaks > 0:
            raise Mismatch("memory is lost", got=self.observed.leak, expected="all of it freed")


def _missing(ending: Ending, name: str, said: str) -> Exception:
    if ending.kind == "todo":
        return Waiting(ending.what)
    words = {
        "report": f"the program was stopped: {ending.what}",
        "raised": _without(WRONG_TYPE, ending.what) or f"it raised {ending.what}",
        "signal": f"the program was ended by {ending.what}",
        "exit": f"the program ended itself with status {ending.what} before it was done",
        "time": "the program ran out of time",
        "memory": "the program ran out of memory",
        "output": "the program printed without end",
        "processes": "the program started processes without end",
        "ended": f"`{name}` was not reported",
    }
    says = said if ending.kind in ("exit", "signal") else ""
    return Mismatch(words[ending.kind], got=says, hint=_advice(ending))


def _without(prefix: str, text: str) -> str:
    return text.removeprefix(prefix) if text.startswith(prefix) else ""


def _advice(ending: Ending) -> str:
    advice = {
        "report": "the report names the line; start there",
        "signal": "look at pointers and sizes near the last thing that worked",
        "exit": "if `got` shows a line, that is what it said last: a helper of utils.h gave up",
        "time": "does every loop end? a debugger and Ctrl-C show where it is",
        "memory": "does every allocation stop, and is it freed?",
    }
    return advice.get(ending.kind, "")


def same(
    seen: Seen, name: str, *, input: str = "", hint: str = "", at: str = "element", base: int = 0
) -> None:
    """Bit for bit: the type, the length, every value. `base` is the number of the first one."""
    got, want = seen.got(name), seen.want(name)
    _same_form(name, got, want, input, hint)
    bad = got.view(_bits(got)) != want.view(_bits(want))
    if bad.any():
        first = int(np.argmax(bad))
        raise difference(got, want, first, input=input, hint=hint, at=at, base=base)


def near(
    seen: Seen,
    name: str,
    bound: float | Array,
    *,
    input: str = "",
    hint: str = "",
    at: str = "element",
) -> None:
    """|got - want| <= bound in float64, element by element; one bound, or one for each element."""
    got, want = seen.got(name), seen.want(name)
    _same_form(name, got, want, input, hint)
    good = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= bound
    if not good.all():
        raise difference(got, want, int(np.argmin(good)), input=input, hint=hint, at=at)


# Of `close`, relative: what right code was seen to reach, times 10 or more. The float64 values find
# what is computed wrongly; the float32 ones, of the same numbers, that type and range are kept. At
# its worst a sample has scores near 128, off by 128 * 2^-24 = 8e-6, and takes differences of them.
CLOSE = {"f64": 1e-12, "f32": 2e-4}
# The same where float32 is all there is, on samples on which right code was seen to reach 2e-6.
CLOSE_C = {"f32": 2e-5}
REST = 1 / 8  # what should be 0 may be what rounding leaves of numbers near 1


def close(
    seen: Seen, name: str, *, bounds: Mapping[str, float] = CLOSE, input: str = "", hint: str = ""
) -> None:
    """Tensors NAME_f64 and NAME_f32, as far as there are bounds for them, are both the wanted
    NAME_f64 (of fresh inputs in C, NAME_f32): of its shape, and each element within `allowed`."""
    wanted = next(n for n in (f"{name}_f64", f"{name}_f32") if n in seen.wanted)
    want = seen.want(wanted).astype(np.float64)
    shape = seen.wanted.get(f"{wanted}_shape", np.array(want.shape))
    for kind, bound in bounds.items():
        dtype = "float64" if kind == "f64" else "float32"
        text = f"{input}, {dtype}" if len(bounds) > 1 else input
        got = _of_input(seen, f"{name}_{kind}", text)
        got_shape = np.array(got.shape)
        if f"{wanted}_shape" in seen.wanted:
            got_shape = _of_input(seen, f"{name}_{kind}_shape", text)
        expect(got.dtype == dtype and got_shape.dtype == shape.dtype, "no tensor", input=text)
        if got_shape.tolist() != shape.tolist() or got.size != want.size:
            got_text, expected = _shape(got_shape), _shape(shape)
            raise Mismatch("the shape", input=text, got=got_text, expected=expected, hint=hint)
        good = np.abs(got.astype(np.float64) - want) <= allowed(want, bound)
        if not good.all():
            raise _tensors_differ(got, want.astype(dtype), good, shape, input=text, hint=hint)


def allowed(want: Array, bound: float) -> Array:
    """How far each element may be off: the bound times its size plus the tensor's (root mean
    square) plus REST."""
    size = float(np.sqrt(np.mean(np.square(want))))
    return np.asarray(bound * (np.abs(want) + size + REST))


def close_all(seen: Seen, kind: str, hint: str, *, bounds: Mapping[str, float] = CLOSE) -> None:
    """`close` for all that was wanted of each sample whose name begins with `kind`. SAMPLE_text
    says what the sample was; of SAMPLE_by_x_f64 `by x` is said, too."""
    texts = {
        n.removesuffix("_text"): said for n, said in seen.wanted.items() if n.endswith("_text")
    }
    tensors = [name for name, value in seen.wanted.items() if value.dtype.kind == "f"]
    for name in dict.fromkeys(name.rpartition("_")[0] for name in tensors):
        if name.startswith(kind):
            sample = max((t for t in texts if f"{name}_".startswith(f"{t}_")), key=len)
            said = [texts[sample].tobytes().decode(), name[len(sample) + 1 :].replace("_", " ")]
            close(seen, name, bounds=bounds, input=", ".join(filter(None, said)), hint=hint)


def _of_input(seen: Seen, name: str, input: str) -> Array:
    try:
        return seen.got(name)
    except Mismatch as ended:
        ended.input = ended.input or input
        raise


def _shape(shape: Array) -> str:
    return str(tuple(shape.tolist()))


def _tensors_differ(
    got: Array, want: Array, good: Array, shape: Array, *, input: str, hint: str
) -> Mismatch:
    first = int(np.argmin(good))
    place = [int(i) for i in np.unravel_index(first, tuple(shape.tolist()))]
    off = f"first at {place}, {int((~good).sum())} of {got.size} in all"
    return Mismatch(
        off if got.size > 1 else "the value",
        input=input,
        got=window(got, first),
        expected=window(want, first),
        hint=hint,
    )


def _bits(array: Array) -> np.dtype:
    return np.dtype(f"u{array.dtype.itemsize}")


def _same_form(name: str, got: Array, want: Array, input: str, hint: str) -> None:
    if got.dtype != want.dtype:
        raise Mismatch(f"`{name}` is {got.dtype}, not {want.dtype}", input=input, hint=hint)
    if got.shape != want.shape:
        both = min(got.size, want.size)
        off = np.flatnonzero(got[:both] != want[:both])
        first = int(off[0]) if off.size else both
        raise Mismatch(
            f"{got.size} values, not {want.size}; first at {first}",
            input=input,
            got=window(got, first),
            expected=window(want, first),
            hint=hint,
        )


def difference(
    got: Array,
    want: Array,
    first: int,
    *,
    input: str = "",
    hint: str = "",
    at: str = "element",
    base: int = 0,
) -> Mismatch:
    """A Mismatch that shows both arrays around index `first`."""
    both = min(got.size, want.size)
    off = int((got[:both] != want[:both]).sum()) + max(got.size, want.size) - both
    return Mismatch(
        f"first at {at} {base + first}, {off} of {got.size} in all"
        if got.size > 1
        else "the value",
        input=input,
        got=window(got, first),
        expected=window(want, first),
        hint=hint,
    )


def window(values: Array, first: int) -> str:
    """A few values around an index, as text."""
    start = max(0, min(first - 2, values.size - SHOWN))
    shown = [_text(value) for value in values[start : start + SHOWN]]
    return (
        ("... " if start else "")
        + " ".join(shown)
        + (" ..." if start + SHOWN < values.size else "")
    )


def _text(value: np.generic) -> str:
    """Enough digits to tell any two floats apart."""
    if isinstance(value, np.floating):
        return f"{value:.9g}" if value.dtype == np.float32 else f"{value:.17g}"
    return str(value)


def expect(
    condition: bool, differs: str, *, picture: Histogram | None = None, **lines: str
) -> None:
    """Raises Mismatch unless the condition holds. `lines`: input, got, expected, hint."""
    if not bool(condition):
        raise Mismatch(differs, picture=picture, **lines)


def accepted(seen: Seen, name: str, input: str) -> None:
    """A call in Python raised nothing."""
    got = _text_of(seen, name)
    expect(got == "ok", "refused", input=input, got=got[:SAID], expected="no error")


def raised(seen: Seen, name: str, kinds: str, input: str, *values: object) -> None:
    """A call in Python raised one of these errors (`ValueError UnicodeEncodeError`); its message
    holds one of the values, if there are any, a number in any notation."""
    got = _text_of(seen, name)
    kind, _, message = got.partition(": ")
    expected = kinds.split()[0]
    expected += f" with {' or '.join(map(str, values))} in its message" if values else ""
    expect(
        kind in kinds.split() and (not values or any(_says(message, value) for value in values)),
        f"not refused: {input}" if got == "ok" else "refused in another way",
        input=input,
        got="no error" if got == "ok" else got[:SAID],
        expected=expected,
        hint="check it before you use it, and say what it was",
    )


def _text_of(seen: Seen, name: str) -> str:
    return seen.got(name).tobytes().decode("utf-8", "replace")


def _says(message: str, value: object) -> bool:
    if value in ("nan", "inf", "-inf"):  # in any spelling: NaN, infinity, minus infinity
        return str(value).lstrip("-") in message.lower()
    if re.search(rf"(?<![\w-]){re.escape(str(value))}(?!\w)", message):
        return True
    if isinstance(value, str):
        return False
    return any(_number(word) == value for word in NUMBER.findall(message.lower()))


def _number(word: str) -> float:
    return int(word, 16) if "x" in word else float(word) if set(word) & set(".e") else int(word)


def refused(seen: Seen, good: str, **bad: str) -> None:
    """Each bad input ended the program (not with 0, or by an abort) without a sanitizer's report.

    Observation names → what the input is; `good` must be accepted: refusing all earns nothing.
    """
    for name, text in (("good", good), *bad.items()):
        status = seen.number(name)
        if status == TODO_STATUS:
            raise Waiting(seen.observed.unwritten)
        if name == "good":
            expect(status == 0, "refused", input=text, got=_status(status), expected="accepted")
            continue
        expect(
            status not in (0, -1, REPORT_STATUS, 128 + signal.SIGSEGV, 128 + signal.SIGBUS),
            f"not refused: {text}",
            input=text,
            got=_status(status),
            expected="one line on stderr and exit(1), or a failed assert",
            hint="check it before you use it",
        )


def _status(status: int) -> str:
    if status == REPORT_STATUS:
        return "a sanitizer report"
    if status == -1:
        return "no end in 5 seconds of CPU"
    return f"signal {status - 128}" if status > 128 else f"exit status {status}"


def bar(check: str, task: str) -> float:
    """The highest loss that a task may end with. The numbers stand in golden/bars.tsv, which
    `python -m staff.bars` writes; `check` is a file of any folder beside golden/."""
    text = (Path(check).parents[1] / "golden" / "bars.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return next(float(row[1]) for row in rows if row[0] == task)
