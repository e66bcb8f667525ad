"""What the commands share: usage errors, the student's folder, files that the user named."""

from __future__ import annotations

import difflib
from pathlib import Path

from autograder import rubric
from autograder.commands import start
from autograder.files import write_whole
from autograder.report import terminal
from autograder.rubric import ROOT, Rubric

BUILD = ROOT / "build"
DONE, LEFT, USAGE, FAULT = 0, 1, 2, 3  # exit statuses: all earned, points missing, usage, our fault
COMMANDS = ("why", "doctor", "pack", "start", "milestone")  # beside grading
STAFF = ("diff",)  # those that are staff/NAME.py, where there is staff/


class Usage(Exception):
    """The command cannot be carried out as given."""


def load(name: str) -> Rubric:
    """An assignment's rubric. Raises Usage where there is no such assignment."""
    known = rubric.assignments()
    if name.upper() in known:
        return rubric.load(name.upper())
    for assignment in known:
        if name in words(rubric.load(assignment)):
            raise Usage(f"no assignment {name}; did you mean ./grade {assignment} {name}?")
    raise Usage(f"no assignment {name}; there is {' '.join(known)} (see ./grade --help)")


def words(loaded: Rubric) -> set[str]:
    """What can be named in an assignment: rows and functions."""
    return {word for _, item in loaded.items() for word in (item.id, *item.functions)}


def suggestion(name: str, loaded: Rubric) -> str:
    """What a name that is none may have meant, or where the names are."""
    close = difflib.get_close_matches(name[:100], sorted(words(loaded)), 1)
    return f"did you mean {close[0]}?" if close else f"see ./grade {loaded.assignment} --list"


def student_folder(named: Path | None) -> Path:
    """The folder whose llmc/ is meant; the first use of a student's pack brings the stubs there.

    Raises Usage where there is no llmc/ in it.
    """
    if named is None and not (ROOT / "llmc").is_dir() and stubs() != ROOT / "llmc":
        _bring_stubs()
    folder = (named or ROOT).resolve()
    if not (folder / "llmc").is_dir():
        raise Usage(f"{folder}: no folder llmc in it")
    return folder


def _bring_stubs() -> None:
    try:
        for change in start.plan(stubs(), ROOT / "llmc"):
            start.apply(change, ROOT / "llmc")
    except (start.Refused, OSError) as refusal:
        raise Usage(str(refusal)) from refusal
    terminal.complain("llmc/ is new: the stubs, as ./grade start brings them")


def stubs() -> Path:
    """The stubs as they were handed out: in a student's pack apart, at staff's in llmc/ itself."""
    apart = ROOT / "stubs" / "llmc"
    return apart if apart.is_dir() else ROOT / "llmc"


def write_output(path: Path, content: bytes) -> None:
    """Writes a file that the user named; a pipe or a device stays what it is. Raises Usage."""
    if not path.absolute().parent.is_dir():
        raise Usage(f"{path}: no folder {path.parent}")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            write_whole(path.resolve(), content)
    except OSError as fault:
        raise Usage(f"{path}: {fault.strerror}") from fault
