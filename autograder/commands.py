"""The commands beside grading: where you stand, why, doctor, pack, start."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from autograder import doctor, pack, rubric, start, state
from autograder.files import write_whole
from autograder.report import screens, terminal
from autograder.rubric import ROOT, Item, Part, Rubric
from autograder.run import select
from autograder.sources import read

BUILD = ROOT / "build"
DONE, LEFT = 0, 1


class Usage(Exception):
    """The command cannot be carried out as given."""


def load(name: str) -> Rubric:
    """An assignment's rubric. Raises Usage where there is no such assignment."""
    if name not in rubric.assignments():
        known = " ".join(rubric.assignments())
        raise Usage(f"no assignment {name}; there is {known}")
    return rubric.load(name)


def student_folder(named: Path | None) -> Path:
    """The folder whose llmc/ is meant. A student's pack comes without: the first use brings it."""
    folder = (named or ROOT).resolve()
    if named is None and not (ROOT / "llmc").is_dir() and stubs() != ROOT / "llmc":
        for change in start.plan(stubs(), ROOT / "llmc"):
            start.apply(change, ROOT / "llmc")
        terminal.complain("llmc/ is new: the stubs, as ./grade start brings them")
    if not (folder / "llmc").is_dir():
        raise Usage(f"{folder}: no folder llmc in it")
    return folder


def stubs() -> Path:
    """The stubs as they were handed out: in a student's pack apart, at staff's in llmc/ itself."""
    apart = ROOT / "stubs" / "llmc"
    return apart if apart.is_dir() else ROOT / "llmc"


def standing(words: Sequence[str]) -> int:
    """./grade: where all assignments stand."""
    theirs = read(student_folder(None))
    known = [rubric.load(name) for name in rubric.assignments()]
    screens.standing([(r, state.recall(r, BUILD, theirs)) for r in known], terminal.console())
    return DONE


def _why(words: Sequence[str]) -> int:
    p = _parser("why", "What a row checks, why it matters later, and where your function stands.")
    p.add_argument("row", metavar="ROW", help="a row's name, or a function's")
    arguments = p.parse_args(words)
    known = [rubric.load(name) for name in rubric.assignments()]
    found = [(r, part, item) for r in known for part, item in _meant(r, arguments.row)]
    if not found:
        raise Usage(f"no row is called {arguments.row}; see ./grade A0 --list")
    theirs: Mapping[str, bytes] = read(student_folder(None))
    for r, part, item in found:
        screens.why(r, part, item, theirs, terminal.console())
    return DONE


def _meant(r: Rubric, name: str) -> list[tuple[Part, Item]]:
    if not any(name in (item.id, item.title, *item.functions) for _, item in r.items()):
        return []
    return [(part, item) for part, items in select(r, [name]) for item in items]


def _doctor(words: Sequence[str]) -> int:
    _parser("doctor", "What this machine has for grading, and what it lacks.").parse_args(words)
    findings = doctor.examine(BUILD)
    screens.diagnosis(findings, terminal.console())
    return LEFT if any(f.needed and not f.found for f in findings) else DONE


def _pack(words: Sequence[str]) -> int:
    p = _parser("pack", "Writes the archive that you hand in.")
    p.add_argument("assignment")
    p.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: build/A0.zip")
    p.add_argument("--anyway", action="store_true", help="also what does not compile")
    p.add_argument("--student", type=Path, metavar="DIR", help="pack DIR/llmc instead of llmc")
    arguments = p.parse_args(words)
    loaded = load(arguments.assignment)
    target = arguments.output or BUILD / f"{loaded.assignment}.zip"
    if arguments.output and (target.is_dir() or not target.absolute().parent.is_dir()):
        raise Usage(f"{target}: not a file in a folder that is there")
    try:
        packed = pack.pack(loaded, student_folder(arguments.student), BUILD, arguments.anyway)
    except pack.Refused as refusal:
        terminal.complain(f"not packed: {refusal} (--anyway packs it all the same)")
        return LEFT
    try:
        write_whole(target, packed.data)
    except OSError as fault:
        raise Usage(f"{target}: {fault.strerror}") from fault
    shown = target.relative_to(ROOT) if target.is_relative_to(ROOT) else target
    screens.packed(packed, shown, terminal.console())
    return DONE


def _start(words: Sequence[str]) -> int:
    p = _parser("start", "Brings an assignment's stubs into llmc/; overwrites nothing of yours.")
    p.add_argument("assignment")
    p.add_argument("--student", type=Path, metavar="DIR", help="into DIR/llmc instead of llmc")
    arguments = p.parse_args(words)
    loaded = load(arguments.assignment)
    if arguments.student is not None and not arguments.student.is_dir():
        raise Usage(f"{arguments.student}: no such folder")
    target = (arguments.student or ROOT).resolve() / "llmc"
    try:
        changes = start.plan(stubs(), target)
        outcomes = [(change, _bring(change, target)) for change in changes]
    except (start.Refused, OSError) as refusal:
        raise Usage(str(refusal)) from refusal
    screens.started(loaded, outcomes, terminal.console())
    return LEFT if any(says in (BY_HAND, DECLINED) for _, says in outcomes) else DONE


BY_HAND, DECLINED = "yours; merge it by hand, as above", "yours; left as it is"


def _bring(change: start.Change, target: Path) -> str:
    """Applies one change, after a yes if it is theirs that changes; says what became of it."""
    if change.state == "conflict":
        by_hand = f"cp {stubs()}/{change.name} {target}/{start.BASES}/"
        screens.conflict(change, by_hand, terminal.console())
        return BY_HAND
    if change.asks and not screens.agreed(change, terminal.console()):
        return DECLINED
    kept = start.apply(change, target)
    return f"changed; yours is kept as llmc/{kept.name}" if kept else screens.STARTED[change.state]


def _parser(command: str, says: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"./grade {command}", description=says)


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "why": _why,
    "doctor": _doctor,
    "pack": _pack,
    "start": _start,
}
