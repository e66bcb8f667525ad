"""The command line: what ./grade does with its first word, and the small commands."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from autograder import milestone, rubric
from autograder.build import NoTool
from autograder.commands import doctor, grade, pack, start, state
from autograder.commands.common import (
    BUILD,
    COMMANDS,
    DONE,
    FAULT,
    LEFT,
    STAFF,
    USAGE,
    Usage,
    load,
    stubs,
    student_folder,
    suggestion,
    write_output,
)
from autograder.files import write_whole
from autograder.report import screens, terminal
from autograder.rubric import ROOT, Item, Part, Rubric, RubricError
from autograder.run import UnknownName, select
from autograder.sources import read


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if "--no-color" in words:
        words = [word for word in words if word != "--no-color"]
        os.environ["NO_COLOR"] = "1"
    try:
        return _command(words)(words[1:])
    except (Usage, NoTool) as wrong:
        terminal.complain(str(wrong))
        return USAGE
    except RubricError as fault:
        terminal.complain(f"the rubric is wrong: {fault}")
        return FAULT
    except Exception as fault:  # ours, whatever it is: never a traceback, never a verdict
        where = ""
        with suppress(OSError):  # build/ itself may be the fault
            write_whole(BUILD / "fault.txt", traceback.format_exc().encode())
            where = " with build/fault.txt"
        terminal.complain(f"the grader failed: {fault}; please report it{where}")
        return FAULT


def _command(words: list[str]) -> Callable[[Sequence[str]], int]:
    """What the first word names; anything else is an assignment to grade."""
    if not words:
        return standing
    if words[0] in STAFF and (ROOT / "staff").is_dir():
        command: Callable[[Sequence[str]], int] = importlib.import_module(f"staff.{words[0]}").main
        return command
    return OTHERS.get(words[0], lambda _: grade.main(words))


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
        raise Usage(f"no row is called {arguments.row}; {suggestion(arguments.row, known[0])}")
    theirs: Mapping[str, bytes] = read(student_folder(None))
    for r, part, item in found:
        screens.why(r, part, item, theirs, terminal.console())
    return DONE


def _meant(r: Rubric, name: str) -> list[tuple[Part, Item]]:
    try:
        return [(part, item) for part, items in select(r, [name]) for item in items]
    except UnknownName:
        return []


def _doctor(words: Sequence[str]) -> int:
    _parser("doctor", "What this machine has for grading, and what it lacks.").parse_args(words)
    findings = doctor.examine(BUILD)
    screens.diagnosis(findings, terminal.console())
    return LEFT if any(f.needed and not f.found for f in findings) else DONE


def _pack(words: Sequence[str]) -> int:
    p = _parser("pack", "Writes the archive that you hand in.")
    p.add_argument("assignment")
    p.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: build/pack/A0.zip")
    p.add_argument("--anyway", action="store_true", help="also what does not compile")
    p.add_argument("--student", type=Path, metavar="DIR", help="pack DIR/llmc instead of llmc")
    arguments = p.parse_args(words)
    loaded = load(arguments.assignment)
    target = arguments.output or BUILD / "pack" / f"{loaded.assignment}.zip"
    student = student_folder(arguments.student)
    try:
        packed = pack.pack(loaded, student, BUILD, arguments.anyway)
    except pack.Refused as refusal:
        anyway = "" if arguments.anyway else " (--anyway packs what is there)"
        terminal.complain(f"not packed: {refusal}{anyway}")
        return LEFT
    (BUILD / "pack").mkdir(parents=True, exist_ok=True)
    write_output(target, packed.data)
    shown = target.relative_to(ROOT) if target.is_relative_to(ROOT) else target
    screens.packed(packed, shown, terminal.console())
    return DONE


def _milestone(words: Sequence[str]) -> int:
    p = _parser("milestone", "Trains models with your code, and measures them.")
    p.add_argument("assignment")
    p.add_argument("--student", type=Path, metavar="DIR", help="use DIR/llmc instead of llmc")
    arguments = p.parse_args(words)
    loaded = load(arguments.assignment)
    title, steps = milestone.steps(loaded)
    if not steps:
        raise Usage(f"{loaded.assignment} has no milestone")
    student, out = student_folder(arguments.student), terminal.console()
    screens.milestone_head(loaded, title, out)
    verdicts = []
    with terminal.progress() as progress:
        for step in steps:
            progress(f"training: {step.says}", 0, 1)
            reached = milestone.reach(loaded, step, student, BUILD, ROOT / ".data")
            progress(f"training: {step.says}", 1, 1)
            screens.milestone(reached, out)
            verdicts.append(reached.verdict)
    return LEFT if {"FAIL", "todo"} & set(verdicts) else DONE


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
    said = [(change, says) for change, (_, says) in outcomes]
    screens.started(loaded, said, terminal.console())
    return DONE if all(settled for _, (settled, _) in outcomes) else LEFT


def _bring(change: start.Change, target: Path) -> tuple[bool, str]:
    """Applies one change, after a yes if it is theirs that changes: whether that is done with, and
    what became of it."""
    if change.state == "conflict":
        by_hand = ["cp", f"{stubs()}/{change.name}", f"{target}/{start.BASES}/"]
        screens.conflict(change, shlex.join(by_hand), terminal.console())
        return False, "yours; merge it by hand, as above"
    if change.asks and not screens.agreed(change, terminal.console()):
        return False, "yours; left as it is"
    kept = start.apply(change, target)
    kept_as = f"changed; yours is kept as llmc/{kept.name}" if kept else ""
    return True, kept_as or screens.STARTED[change.state]


def _parser(command: str, says: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"./grade {command}", description=says)


OTHERS = dict(zip(COMMANDS, (_why, _doctor, _pack, _start, _milestone), strict=True))


if __name__ == "__main__":
    sys.exit(main())
