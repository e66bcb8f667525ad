"""Brings stubs into a student's llmc/: what is theirs is merged or kept, and never just replaced.

Beside the files, `llmc/.stubs/NAME` holds the stub as it was last handed out: a file that equals it
was never edited; for one that was, it is the base of a merge with a newer stub.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from merge3 import Merge3

from autograder.files import write_whole
from autograder.sources import LARGEST

BASES = ".stubs"
UNWRITTEN = re.compile(rb"\s*(//|#|TODO\(|raise NotImplementedError|$)")
State = Literal[
    "create",  # it is not there
    "same",  # it is the stub
    "update",  # it is the stub of an earlier release, never edited
    "keep",  # theirs; the stub has nothing new for it
    "merge",  # theirs; the stub has changed, elsewhere: apply on yes
    "conflict",  # theirs; the stub has changed where they did: nothing to apply
    "replace",  # theirs, of unknown origin: apply on yes
]


class Refused(Exception):
    """A place that is left alone; the message says in one line which and why."""


@dataclass(frozen=True)
class Change:
    """What is to happen to one file. A conflict's patch shows what has changed in the stub."""

    name: str
    state: State
    before: bytes | None  # what is there
    after: bytes | None  # what apply leaves there
    stub: bytes  # what apply keeps in .stubs
    patch: str = ""  # from before to after
    conflicts: tuple[str, ...] = ()  # the lines, in words

    @property
    def asks(self) -> bool:
        """Whether it is theirs that would change, so that they must say yes."""
        return self.state in ("merge", "replace")


# ---------------------------------------------------------------- plan


def plan(stubs: Path, target: Path) -> list[Change]:
    """What it takes to bring each file of the folder `stubs` into the folder `target`, by name.

    Writes nothing. Raises Refused where something stands that is no ordinary file or folder.
    """
    if target.resolve() == stubs.resolve():
        raise Refused(
            f"{target}: these are the stubs themselves; name another folder (--student DIR)"
        )
    _check_folders(target)
    paths = sorted(path for path in stubs.iterdir() if path.is_file())
    return [_change(target / path.name, path.read_bytes()) for path in paths]


def _change(path: Path, stub: bytes) -> Change:
    name, theirs, base = path.name, _read(path), _read(path.parent / BASES / path.name)
    if theirs is None:
        return Change(name, "create", theirs, stub, stub)
    if theirs == stub:
        return Change(name, "same", theirs, stub, stub)
    if theirs == base:
        return Change(name, "update", theirs, stub, stub, _patch(name, theirs, stub))
    if base is None:
        return Change(name, "replace", theirs, stub, stub, _patch(name, theirs, stub))
    merged, conflicts = _merge(base, theirs, stub)
    stopped = any(_merge(base, copy, stub) == (theirs, ()) for copy in _copies(path))
    if stopped or (merged == theirs and not conflicts):
        return Change(name, "keep", theirs, theirs, stub)
    if conflicts:
        return Change(name, "conflict", theirs, None, stub, _patch(name, base, stub), conflicts)
    return Change(name, "merge", theirs, merged, stub, _patch(name, theirs, merged))


def _copies(path: Path) -> list[bytes]:
    """What was kept of a file; if a merge of one is there, only its base was not written yet."""
    copies = path.parent.glob(f"{path.name}.yours*")
    return [copy.read_bytes() for copy in copies if copy.is_file() and not copy.is_symlink()]


def _check_folders(target: Path) -> None:
    """Raises Refused where a link would lead out of the target."""
    for folder in (target, target / BASES):
        about = _about(folder)
        if about is not None and not stat.S_ISDIR(about.st_mode):
            raise Refused(f"{folder}: a folder belongs here, and no link to one; move it away")


def _read(path: Path) -> bytes | None:
    """What an ordinary file holds; None where there is nothing. Raises Refused."""
    about = _about(path)
    if about is None:
        return None
    if not stat.S_ISREG(about.st_mode):
        raise Refused(f"{path}: not an ordinary file (a link or a folder?); move it away")
    if about.st_size > LARGEST:
        raise Refused(f"{path}: more than {LARGEST >> 20} MiB, which is no source file")
    try:
        return path.read_bytes()
    except OSError as fault:
        raise Refused(f"{path}: {fault.strerror}") from fault


def _about(path: Path) -> os.stat_result | None:
    """What stands there, a link being a link; None where nothing does. Raises Refused."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise Refused(f"{path}: {fault.strerror}") from fault


# ---------------------------------------------------------------- merge and patch


def _lines(content: bytes) -> list[bytes]:
    """Lines with their ends; only a newline ends one."""
    return io.BytesIO(content).readlines()


def _merge(base: bytes, theirs: bytes, stub: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Their file with what has changed from `base` to `stub`; and where that cannot be.

    Whether the last line has an end is theirs to say, and no change.
    """
    z, a, b = (_lines(text.removesuffix(b"\n") + b"\n") for text in (base, theirs, stub))
    merged: list[bytes] = []
    conflicts = []
    for region in Merge3(z, a, b).merge_regions():
        if region[0] == "conflict":
            _, z0, z1, a0, a1, b0, b1 = region
            both = _both(z[z0:z1], a[a0:a1], b[b0:b1])
            if both is None:
                conflicts.append(f"your {_span(a0, a1)}, the stub's {_span(b0, b1)}")
            merged += both or []
        else:
            kind, start, end = region
            source = {"unchanged": z, "same": a, "a": a, "b": b}[kind]
            merged += source[start:end]
    text = b"".join(merged)
    return text if theirs.endswith(b"\n") else text.removesuffix(b"\n"), tuple(conflicts)


def _both(
    base: Sequence[bytes], theirs: Sequence[bytes], stub: Sequence[bytes]
) -> list[bytes] | None:
    """Both changes of a stretch of `base`; None if only a person can tell what that is.

    Where the stub changed nothing but hints and lines that say TODO, and they have replaced these
    by a solution, theirs is all there is to keep.
    """
    both = _adjacent(base, theirs, stub)
    if both is None and base and all(UNWRITTEN.match(line) for line in (*base, *stub)):
        return list(theirs)
    return both


def _adjacent(
    base: Sequence[bytes], theirs: Sequence[bytes], stub: Sequence[bytes]
) -> list[bytes] | None:
    """Both changes of a stretch of `base`, if one ends where the other starts, or before.

    merge3 calls that a conflict, but a solution stands right below the hint that a release may
    change. Two insertions at one place have no order: they stay a conflict.
    """
    for first, second in ((theirs, stub), (stub, theirs)):
        kept = _common(base, second)
        rest = len(base) - kept
        if base and _common(base[::-1], first[::-1]) >= rest:
            return [*first[: len(first) - rest], *second[kept:]]
    return None


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """How many lines the two start with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (x, y) in pairs if x != y), min(len(one), len(other)))


def _span(start: int, end: int) -> str:
    """Lines from index `start` up to `end`, counted from 1."""
    if end - start > 1:
        return f"lines {start + 1}-{end}"
    return f"line {end}" if end > start else f"place after line {end}"


def _patch(name: str, before: bytes, after: bytes) -> str:
    """A unified diff that `patch -p1` takes; bytes that are not UTF-8 are shown as U+FFFD."""
    old, new = ([line.decode("utf-8", "replace") for line in _lines(c)] for c in (before, after))
    lines = difflib.unified_diff(old, new, f"a/llmc/{name}", f"b/llmc/{name}")
    no_end = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + no_end for line in lines)


# ---------------------------------------------------------------- apply


def apply(change: Change, target: Path) -> Path | None:
    """Carries out one change that `plan` found for `target`, but no conflict.

    Where theirs is replaced, it is kept first, and the path of that copy is returned. Stopped
    midway, the next plan goes on from there. Raises Refused if the file has changed since, and
    OSError, with the file's name, where it cannot be written.
    """
    if change.after is None:
        raise ValueError(f"{change.name}: there is nothing to apply to a conflict")
    path, base = target / change.name, target / BASES / change.name
    _check_folders(target)
    theirs, handed_out = _read(path), _read(base)
    if theirs != change.before:
        raise Refused(f"{path}: changed in the meantime; start again")
    kept = _keep(path, theirs) if change.asks and theirs is not None else None
    if change.after != theirs:
        _write(path, change.after)
    if handed_out != change.stub:
        _write(base, change.stub)
    return kept


def _keep(path: Path, content: bytes) -> Path:
    """A copy as NAME.yours, NAME.yours.2, ...: the first that is free or holds just that."""
    copy, number = path.with_name(f"{path.name}.yours"), 1
    while (about := _about(copy)) is not None:
        if stat.S_ISREG(about.st_mode) and copy.read_bytes() == content:
            return copy
        number += 1
        copy = path.with_name(f"{path.name}.yours.{number}")
    _write(copy, content)
    return copy


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror, str(path)) from fault
