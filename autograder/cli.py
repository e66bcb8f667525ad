"""The command line: ./grade A0 [NAME ...] [options]; the other commands are in commands.py."""

from __future__ import annotations

import argparse
import importlib
import secrets
import shlex
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder import commands, debug, rubric, run, state, watch
from autograder.build import NoTool
from autograder.commands import BUILD, Usage
from autograder.files import write_whole
from autograder.report import documents, formats, html, screens, terminal
from autograder.results import Options, Result
from autograder.rubric import ROOT, Item, Part, Rubric, RubricError
from autograder.run import REFERENCE, UnknownName, grade, real_data, select
from autograder.sources import read

EARNED, MISSING, USAGE, FAULT = 0, 1, 2, 3
STAFF = ("diff",)  # commands that are staff/NAME.py, where there is staff/


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _command(words)(words[1:])
    except (Usage, NoTool) as wrong:
        terminal.complain(str(wrong))
        return USAGE
    except RubricError as fault:
        terminal.complain(f"the rubric is wrong: {fault}")
        return FAULT
    except Exception as fault:  # ours, whatever it is: never a traceback, never a verdict
        with suppress(OSError):  # build/ itself may be the fault
            write_whole(BUILD / "fault.txt", traceback.format_exc().encode())
        terminal.complain(f"the grader failed: {fault}; please report it with build/fault.txt")
        return FAULT


def _command(words: list[str]) -> Callable[[Sequence[str]], int]:
    """What the first word names; anything else is an assignment to grade."""
    if not words:
        return commands.standing
    if words[0] in STAFF and (ROOT / "staff").is_dir():
        command: Callable[[Sequence[str]], int] = importlib.import_module(f"staff.{words[0]}").main
        return command
    return commands.COMMANDS.get(words[0], lambda _: _grade(words))


# ---------------------------------------------------------------- grading


def parser(staff: bool) -> argparse.ArgumentParser:
    """The options; what only staff can use is there only where staff/ is."""
    others = [*commands.COMMANDS, *(STAFF if staff else ())]
    p = argparse.ArgumentParser(
        prog="./grade",
        description="Grades an assignment: builds your code, observes it, compares, adds up.",
        epilog=f"Other commands: ./grade (where you stand), {', '.join(others)}. "
        "Exit status: 0 all points earned, 1 points missing, 2 usage, 3 grader fault.",
    )
    p.add_argument("assignment", help=f"one of: {' '.join(rubric.assignments())}")
    p.add_argument(
        "names", nargs="*", metavar="NAME", help="only these rows, or functions, or files"
    )
    p.add_argument("--list", action="store_true", help="all rows, graded by nothing: the catalogue")
    p.add_argument("--watch", action="store_true", help="grade again at each save, until Ctrl-C")
    p.add_argument("--gdb", action="store_true", help="open the topmost failing row in a debugger")
    p.add_argument(
        "--valgrind", action="store_true", help="look for reads of what was never written"
    )
    for name, (says, _) in FORMATS.items():
        p.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"also write {says}")
    p.add_argument("--student", type=Path, metavar="DIR", help="grade DIR/llmc instead of llmc")
    p.add_argument("-v", "--verbose", action="store_true", help="explain every row that is not ok")
    p.add_argument("-j", type=int, metavar="N", help="run at most N programs at once")
    p.add_argument("--no-color", action="store_true", help="plain text, as with NO_COLOR")
    reference = "grade the reference solution" if staff else argparse.SUPPRESS
    fresh = "new inputs; wanted is what the reference reports on them" if staff else reference
    p.add_argument("--reference", action="store_true", help=reference)
    p.add_argument("--fresh", nargs="?", type=int, const=-1, metavar="SEED", help=fresh)
    return p


FORMATS: Mapping[str, tuple[str, Callable[[dict[str, Any]], bytes]]] = {
    "json": ("the result as JSON", documents.json_text),
    "html": ("a page to read, print or send", html.page),
    "junit": ("JUnit's XML, for CI", formats.junit),
    "gradescope": ("Gradescope's results.json", formats.gradescope),
}


def _grade(words: Sequence[str]) -> int:
    arguments = parser((ROOT / "staff").is_dir()).parse_intermixed_args(words)
    loaded = commands.load(arguments.assignment)
    options = _options(arguments)
    selected = _selected(loaded, options.names)
    out = terminal.console(arguments.no_color)
    if arguments.list:
        screens.catalogue(loaded, selected, out)
        return EARNED
    if not arguments.watch:
        return _once(loaded, options, arguments, selected)
    for _ in watch.saves(options.student):
        out.clear()
        _once(loaded, replace(options, cached=True), arguments, selected)
        screens.watching(out)
    raise AssertionError("only Ctrl-C ends it")


def _once(
    loaded: Rubric,
    options: Options,
    arguments: argparse.Namespace,
    selected: list[tuple[Part, list[Item]]],
) -> int:
    """Grades, writes the files that were asked for, and prints the table."""
    out = terminal.console(arguments.no_color)
    files = {name: path for name in FORMATS if (path := getattr(arguments, name)) is not None}
    for name, path in files.items():
        if path.is_file() or not path.exists():
            _write(path, FORMATS[name][1](documents.unfinished(loaded, options, selected)))
    with terminal.progress() as progress:
        result = grade(loaded, options, progress)
    if options.student == ROOT and options.fresh is None and not options.valgrind:
        state.remember(result, read(ROOT))
    terminal.table(result, out, arguments.verbose or bool(options.names))
    for name, path in files.items():
        _write(path, FORMATS[name][1](documents.document(result)))
    if arguments.gdb:
        _debug(result)
    return _status(result)


def _debug(result: Result) -> None:
    """Becomes a debugger on the row that the table says to start with, or else the first."""
    part = result.parts[0]
    item = part.start or part.items[0]
    row = item.first or item.rows[0]
    case = run.case_of(row.credit, result)
    if case is None:
        raise Usage(f"{item.item.id}: it does not compile, so there is nothing to debug")
    folders = (ROOT, result.options.student)  # the last one is searched first
    debug.open_debugger(case, item.item.functions, folders, result.options.build)


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
    if arguments.gdb and (arguments.valgrind or arguments.watch):
        raise Usage("--gdb without --valgrind and without --watch")
    student = REFERENCE if reference else commands.student_folder(arguments.student)
    if arguments.j is not None and arguments.j < 1:
        raise Usage(f"-j {arguments.j}: at least 1")
    rerun = " --reference" if reference else ""
    rerun += f" --student {shlex.quote(str(arguments.student))}" if arguments.student else ""
    rerun += f" --fresh {fresh}" if fresh is not None else ""
    rerun += " --valgrind" if arguments.valgrind else ""
    options = Options(
        student=student,
        data=real_data(),
        names=tuple(arguments.names),
        fresh=fresh,
        valgrind=arguments.valgrind,
        rerun=rerun,
    )
    return options if arguments.j is None else replace(options, parallel=arguments.j)


def _selected(loaded: Rubric, names: Sequence[str]) -> list[tuple[Part, list[Item]]]:
    try:
        return select(loaded, names)
    except UnknownName as unknown:
        raise Usage(
            f"nothing is called {unknown}; see ./grade {loaded.assignment} --list"
        ) from None


def _write(path: Path, content: bytes) -> None:
    if not path.absolute().parent.is_dir():
        raise Usage(f"{path}: no folder {path.parent}")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a pipe or a device stays what it is
        else:
            write_whole(path.resolve(), content)
    except OSError as fault:
        raise Usage(f"{path}: {fault.strerror}") from fault


def _status(result: Result) -> int:
    if any(item.verdict == "error" for part in result.parts for item in part.items):
        return FAULT
    return EARNED if all(part.earned == part.possible for part in result.parts) else MISSING


if __name__ == "__main__":
    sys.exit(main())
