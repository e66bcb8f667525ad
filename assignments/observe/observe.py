"""The observation runtime of Python probes: exact types go out as records, and nothing is judged.

A probe is a dictionary of cases, `CASES = {"name": function}`; fork.py calls one with the seed.
What a student's function returned is reported under the type that it must have: a float where an
int belongs, a bool, a subclass, an array of another dtype raise, and the case ends there.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence

import numpy as np

TODO_STATUS, RAISED_STATUS = 77, 98
KINDS = {
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "u64": np.dtype(np.uint64),
    "u32": np.dtype(np.uint32),
    "u8": np.dtype(np.uint8),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
DTYPES = {kind: dtype for kind, dtype in KINDS.items() if dtype.kind == "f"}
NUMBERS = {"f": float, "i": int, "u": int}


class WrongType(Exception):
    """A student's function returned something else than its contract says."""


def number(name: str, value: object, kind: str = "i64") -> None:
    """One int or float, of exactly that type."""
    numbers(name, [value], kind)


def numbers(name: str, values: Sequence[object], kind: str = "i64") -> None:
    """A list or tuple of ints, or of floats."""
    if type(values) not in (list, tuple):
        raise wrong_type(name, values, "a list")
    wanted = NUMBERS[KINDS[kind].kind]
    for value in values:
        if type(value) is not wanted:
            raise wrong_type(name, value, f"of type {wanted.__name__}")
        if wanted is int:
            _check_range(name, value, KINDS[kind])
    _record(name, kind, np.array(values, KINDS[kind]))


def wrong_type(name: str, value: object, wanted: str) -> WrongType:
    """The error for a value, or an element of it, that must be `wanted`; to be raised."""
    if value is None:
        return WrongType(f"`{name}` is None: is there a `return`?")
    return WrongType(f"`{name}` is of type {type(value).__name__}, want it {wanted}")


def _check_range(name: str, value: int, kind: np.dtype) -> None:
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    if not least <= value <= most:
        bits = value.bit_length()
        shown = f"{value:#x}" if bits <= 128 else f"a number of {bits} bits"
        raise WrongType(f"`{name}` is {shown}, want it within {least:#x} .. {most:#x}: masked?")


def array(name: str, value: object, kind: str) -> None:
    """A numpy array of exactly that dtype; of several dimensions, row by row."""
    if type(value) is not np.ndarray:
        raise wrong_type(name, value, "a numpy.ndarray")
    if value.dtype != KINDS[kind]:
        raise WrongType(f"`{name}` is an array of {value.dtype}, want {KINDS[kind]}")
    _record(name, kind, np.ascontiguousarray(value).reshape(-1))


def tensor(name: str, value: object, kind: str) -> None:
    """A numpy array or number of exactly that dtype: its elements, and its shape as NAME_shape."""
    if isinstance(value, np.generic):  # numpy's sums over all axes are no arrays
        value = np.asarray(value)
    array(name, value, kind)
    _record(f"{name}_shape", "i64", np.array(value.shape, np.int64))


def data(name: str, value: object) -> None:
    """A bytes object."""
    if type(value) is not bytes:
        raise wrong_type(name, value, "of type bytes")
    _record(name, "u8", np.frombuffer(value, np.uint8))


def text(name: str, value: object) -> None:
    """A str, as UTF-8."""
    if type(value) is not str:
        raise wrong_type(name, value, "of type str")
    data(name, value.encode("utf-8", "surrogatepass"))


def outcome(name: str, call: Callable[..., object], *arguments: object) -> None:
    """What a call raised: its class's name, a colon and its message; of one that returned: `ok`.

    Of a class that is not built in, it is the name of the built-in one that it extends.
    """
    try:
        call(*arguments)
    except NotImplementedError:
        raise
    except Exception as raised:
        kind = next(each for each in type(raised).__mro__ if each.__module__ == "builtins")
        text(name, f"{kind.__name__}: {raised}"[:500])
    else:
        text(name, "ok")


def run(case: Callable[[int], None], seed: int) -> int:
    """Runs one case and returns the status to end with. The reason of a bad end goes to stderr."""
    try:
        number("begin", 1)
        case(seed)
        number("end", 1)
    except NotImplementedError as missing:
        sys.stderr.write(f"TODO: {missing} is not written yet\n")
        return TODO_STATUS
    except BaseException as raised:
        sys.stderr.write(f"\n{type(raised).__name__}: {raised}{_place(raised)}\n"[:1000])
        return RAISED_STATUS
    return 0


def _place(raised: BaseException) -> str:
    """` (llmc/rand.py:41)`: the innermost line of the student's."""
    frames = traceback.extract_tb(raised.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames]
    if isinstance(raised, SyntaxError):
        places.append((raised.filename or "", raised.lineno))
    mine = [f"llmc/{os.path.basename(name)}:{line}" for name, line in places if "/llmc/" in name]
    return f" ({mine[-1]})" if mine else ""


def _record(name: str, kind: str, values: np.ndarray) -> None:
    line = f"{name} {kind} {values.size} {values.tobytes().hex()}\n".encode()
    descriptor = int(os.environ.get("OBS_FD", "-1"))
    if descriptor < 0:  # a person runs it
        print(name, kind, values.tolist() if values.size <= 24 else f"{values[:24].tolist()} ...")
        return
    while line:
        line = line[os.write(descriptor, line) :]
