"""./grade A0: grades an assignment, and writes and shows what was asked for."""

from __future__ import annotations

import argparse
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder import deps, rubric, run
from autograder.commands import debug, state, watch
from autograder.commands.common import (
    COMMANDS,
    DONE,
    FAULT,
    LEFT,
    STAFF,
    Usage,
    load,
    student_folder,
    suggestion,
    write_output,
)
from autograder.report import document, gradescope, html, junit, screens, terminal
from autograder.results import Options, Result
from autograder.rubric import ROOT, Item, Part, Rubric
from autograder.run import REFERENCE, UnknownName, real_data, select
from autograder.sources import read


def parser(staff: bool) -> argparse.ArgumentParser:
    """The options; what only staff can use is there only where staff/ is."""
    others = [*COMMANDS, *(STAFF if staff else ())]
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
    p.add_argument("--list", action="store_true", help="the rows: points, what each checks, why")
    p.add_argument("--watch", action="store_true", help="grade again at each save, until Ctrl-C")
    p.add_argument("--gdb", action="store_true", help="open the topmost failing row in a debugger")
    p.add_argument(
        "--valgrind", action="store_true", help="look for reads of what was never written"
    )
    for name, (says, _) in FORMATS.items():
        p.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"also write {says}")
    p.add_argument("--student", type=Path, metavar="DIR", help="grade DIR/llmc instead of llmc")
    p.add_argument(
        "--ref-deps", action="store_true", help="the reference, for modules that do not pass yet"
    )
    p.add_argument("-v", "--verbose", action="store_true", help="explain every row that is not ok")
    p.add_argument("-j", type=int, metavar="N", help="run at most N programs at once")
    p.add_argument("--no-color", action="store_true", help="plain text, as with NO_COLOR")
    reference = "grade the reference solution" if staff else argparse.SUPPRESS
    fresh = "new inputs; wanted is what the reference reports on them" if staff else reference
    p.add_argument("--reference", action="store_true", help=reference)
    p.add_argument("--fresh", nargs="?", const="", metavar="SEED", help=fresh)
    return p


FORMATS: Mapping[str, tuple[str, Callable[[dict[str, Any]], bytes]]] = {
    "json": ("the result as JSON", document.json_text),
    "html": ("a page to read, print or send", html.page),
    "junit": ("JUnit's XML, for CI", junit.junit),
    "gradescope": ("Gradescope's results.json", gradescope.gradescope),
}


def main(words: Sequence[str]) -> int:
    arguments = parser((ROOT / "staff").is_dir()).parse_intermixed_args(words)
    loaded = load(arguments.assignment)
    options = _options(arguments)
    selected = _selected(loaded, options.names)
    if arguments.list:
        screens.catalogue(loaded, selected, terminal.console())
        return DONE
    if not arguments.watch:
        return _once(loaded, options, arguments, selected)
    for _ in watch.saves(options.student):
        _once(loaded, replace(options, cached=True), arguments, selected)
        screens.watching(terminal.console())
    raise AssertionError("only Ctrl-C ends it")


def _once(
    loaded: Rubric,
    options: Options,
    arguments: argparse.Namespace,
    selected: list[tuple[Part, list[Item]]],
) -> int:
    """Grades, writes the files that were asked for, and prints the table."""
    out = terminal.console()
    files = {name: path for name in FORMATS if (path := getattr(arguments, name)) is not None}
    if len({path.resolve() for path in files.values()}) < len(files):
        raise Usage("two reports into one file")
    for name, path in files.items():
        if path.is_dir() or path.resolve().is_relative_to(options.student / "llmc"):
            raise Usage(f"{path}: no place for a report")
        if path.is_file() or not path.exists():
            write_output(path, FORMATS[name][1](document.unfinished(loaded, options, selected)))
    theirs = read(options.student)
    with terminal.progress() as progress:
        if arguments.ref_deps:
            options = _with_stand_ins(loaded, options, progress)
        result = run.grade(loaded, options, progress)
    is_own = options.student == ROOT and not arguments.ref_deps
    if is_own and options.fresh is None and not options.valgrind:
        state.remember(result, theirs)
    if arguments.watch:
        out.clear()
    for name, path in files.items():
        write_output(path, FORMATS[name][1](document.document(result)))
    chosen = set(options.names) - {part.id for part in loaded.parts}
    terminal.table(result, out, arguments.verbose or bool(chosen))
    if arguments.gdb:
        _debug(result)
    return _status(result)


def _with_stand_ins(loaded: Rubric, options: Options, progress: run.Progress) -> Options:
    try:
        return deps.with_stand_ins(loaded, options, progress)
    except deps.NoReference as missing:
        raise Usage(str(missing)) from None


def _debug(result: Result) -> None:
    """Becomes a debugger on the row that the table says to start with, or else the first."""
    part = next((part for part in result.parts if part.start), result.parts[0])
    item = part.start or part.items[0]
    row = next((row for row in item.rows if row.verdict not in ("ok", "skip")), item.rows[0])
    case = run.case_of(row.credit, result)
    if case is None:
        raise Usage(f"nothing to debug in {item.item.id}: {row.message or 'it cannot run here'}")
    if case.forked:
        command = terminal.by_hand(row, result)
        raise Usage(f"Python has its own: write breakpoint() in your code, then run\n{command}")
    folders = (ROOT, result.options.student)  # the last one is searched first
    debug.open_debugger(case, item.item.functions, folders, result.options.build)


def _options(arguments: argparse.Namespace) -> Options:
    reference, fresh = arguments.reference, _seed(arguments.fresh)
    if (reference or fresh is not None) and not (REFERENCE / "llmc").is_dir():
        raise Usage("this needs the reference, which is not in this folder")
    if reference and arguments.student:
        raise Usage("--reference or --student, not both")
    counted = [name for name in ("html", "junit", "gradescope") if getattr(arguments, name)]
    if arguments.ref_deps and counted:
        raise Usage(
            f"--{counted[0]} without --ref-deps: such a report is of the student's own code"
        )
    if arguments.gdb and (arguments.valgrind or arguments.watch):
        raise Usage("--gdb without --valgrind and without --watch")
    student = REFERENCE if reference else student_folder(arguments.student)
    if arguments.j is not None and arguments.j < 1:
        raise Usage(f"-j {arguments.j}: at least 1")
    rerun = " --reference" if reference else ""
    rerun += f" --student {shlex.quote(str(arguments.student))}" if arguments.student else ""
    rerun += f" --fresh {fresh}" if fresh is not None else ""
    rerun += " --valgrind" if arguments.valgrind else ""
    rerun += " --ref-deps" if arguments.ref_deps else ""
    options = Options(
        student=student,
        data=real_data(),
        names=tuple(arguments.names),
        fresh=fresh,
        valgrind=arguments.valgrind,
        rerun=rerun,
    )
    return options if arguments.j is None else replace(options, parallel=arguments.j)


def _seed(word: str | None) -> int | None:
    """The seed of --fresh: as given, or new; None without --fresh."""
    if word is None:
        return None
    if word == "":
        return secrets.randbelow(2**31)
    if not (word.isascii() and word.isdigit() and int(word) < 2**63):
        raise Usage(f"the seed {word} is not in 0 .. 2^63 - 1")
    return int(word)


def _selected(loaded: Rubric, names: Sequence[str]) -> list[tuple[Part, list[Item]]]:
    try:
        return select(loaded, names)
    except UnknownName as unknown:
        what = suggestion(str(unknown), loaded)
        raise Usage(f"nothing is called {unknown}; {what}") from None


def _status(result: Result) -> int:
    if any(item.verdict == "error" for part in result.parts for item in part.items):
        return FAULT
    return DONE if all(part.earned == part.possible for part in result.parts) else LEFT
