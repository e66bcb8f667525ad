"""The command line: ./grade A0 [NAME ...] [options]."""

from __future__ import annotations

import argparse
import secrets
import shlex
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder import rubric
from autograder.build import NoCompiler
from autograder.files import write_whole
from autograder.report import documents, terminal
from autograder.rubric import ROOT, RubricError
from autograder.run import REFERENCE, Options, Result, UnknownName, grade, real_data, select

EARNED, MISSING, USAGE, FAULT = 0, 1, 2, 3


class Usage(Exception):
    """The command cannot be carried out as given."""


def parser(staff: bool) -> argparse.ArgumentParser:
    """The options; what only staff can use is there only where staff/ is."""
    p = argparse.ArgumentParser(
        prog="./grade",
        description="Grades an assignment: builds your code, observes it, compares, adds up.",
        epilog="Exit status: 0 all points earned, 1 points missing, 2 usage, 3 grader fault.",
    )
    p.add_argument("assignment", nargs="?", help=f"one of: {' '.join(rubric.assignments())}")
    p.add_argument(
        "names", nargs="*", metavar="NAME", help="only these items, or ids that start so"
    )
    p.add_argument("--list", action="store_true", help="show items and points, grade nothing")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the result there as well")
    p.add_argument("--student", type=Path, metavar="DIR", help="grade DIR/llmc instead of llmc")
    p.add_argument("-v", "--verbose", action="store_true", help="explain every row that is not ok")
    p.add_argument("-j", type=int, metavar="N", help="run at most N programs at once")
    reference = "grade the reference solution" if staff else argparse.SUPPRESS
    fresh = "new inputs; wanted is what the reference reports on them" if staff else reference
    p.add_argument("--reference", action="store_true", help=reference)
    p.add_argument("--fresh", nargs="?", type=int, const=-1, metavar="SEED", help=fresh)
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    staff = (ROOT / "staff").is_dir()
    arguments = parser(staff).parse_intermixed_args(argv)
    if arguments.assignment is None:
        parser(staff).print_help(sys.stderr)
        return USAGE
    try:
        return _grade(arguments)
    except Usage as wrong:
        terminal.complain(str(wrong))
        return USAGE
    except NoCompiler as missing:
        terminal.complain(str(missing))
        return USAGE
    except RubricError as fault:
        terminal.complain(f"the rubric is wrong: {fault}")
        return FAULT
    except Exception as fault:  # ours, whatever it is: never a traceback, never a verdict
        with suppress(OSError):  # build/ itself may be the fault
            write_whole(ROOT / "build" / "fault.txt", traceback.format_exc().encode())
        terminal.complain(f"the grader failed: {fault}; please report it with build/fault.txt")
        return FAULT


def _grade(arguments: argparse.Namespace) -> int:
    if arguments.assignment not in rubric.assignments():
        known = " ".join(rubric.assignments())
        raise Usage(f"no assignment {arguments.assignment}; there is {known}")
    loaded = rubric.load(arguments.assignment)
    options = _options(arguments)
    try:
        selected = select(loaded, options.names)
    except UnknownName as unknown:
        raise Usage(
            f"nothing is called {unknown}; see ./grade {loaded.assignment} --list"
        ) from None
    out = terminal.console()
    if arguments.list:
        terminal.catalogue(loaded, selected, out)
        return EARNED
    if arguments.json and (arguments.json.is_file() or not arguments.json.exists()):
        _write(arguments.json, documents.unfinished(loaded, options, selected))
    with terminal.progress() as progress:
        result = grade(loaded, options, progress)
    terminal.table(result, out, arguments.verbose or bool(options.names))
    if arguments.json:
        _write(arguments.json, documents.document(result))
    return _status(result)


def _options(arguments: argparse.Namespace) -> Options:
    reference, fresh = arguments.reference, arguments.fresh
    if (reference or fresh is not None) and not (REFERENCE / "llmc").is_dir():
        raise Usage("this needs the reference, which is not in this folder")
    if fresh == -1:
        fresh = secrets.randbelow(2**31)
    if fresh is not None and not 0 <= fresh < 2**63:
        raise Usage(f"the seed {fresh} is not in 0 .. 2^63 - 1")
    if reference and arguments.student:
        raise Usage("--reference or --student, not both")
    student = REFERENCE if reference else (arguments.student or ROOT).resolve()
    if not (student / "llmc").is_dir():
        raise Usage(f"{student}: no folder llmc in it")
    if arguments.j is not None and arguments.j < 1:
        raise Usage(f"-j {arguments.j}: at least 1")
    rerun = " --reference" if reference else ""
    rerun += f" --student {shlex.quote(str(arguments.student))}" if arguments.student else ""
    rerun += f" --fresh {fresh}" if fresh is not None else ""
    options = Options(
        student=student,
        data=real_data(),
        names=tuple(arguments.names),
        fresh=fresh,
        rerun=rerun,
    )
    return options if arguments.j is None else replace(options, parallel=arguments.j)


def _write(path: Path, content: dict[str, Any]) -> None:
    if not path.parent.is_dir():
        raise Usage(f"{path}: no folder {path.parent}")
    try:
        documents.write_json(path, content)
    except OSError as fault:
        raise Usage(f"{path}: {fault.strerror}") from fault


def _status(result: Result) -> int:
    if any(item.verdict == "error" for part in result.parts for item in part.items):
        return FAULT
    return EARNED if all(part.earned == part.possible for part in result.parts) else MISSING


if __name__ == "__main__":
    sys.exit(main())
