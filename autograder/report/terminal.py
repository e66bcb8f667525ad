"""Says what a run found in the terminal: the progress bar and the table."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from autograder import run
from autograder.report import histogram
from autograder.results import ItemResult, PartResult, Result, Row
from autograder.rubric import PYTHON, shown

# Blue and orange stay apart for the colour-blind; the words carry the meaning without colour.
STYLES = {
    "ok": "blue",
    "part": "yellow",
    "FAIL": "bold yellow",
    "todo": "dim",
    "skip": "dim",
    "error": "bold red",
}
WIDTH = 80
NAME_WIDTH = 27
PYTHON_BY_HAND = ".venv/bin/python assignments/observe/fork.py"


def console() -> Console:
    """The terminal; rich looks after NO_COLOR, pipes and dumb terminals."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def complain(message: str) -> None:
    """One line on stderr."""
    screen = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    screen.print("grade: " + "\n".join(map(plain, message.split("\n"))))


@contextmanager
def progress() -> Iterator[run.Progress]:
    """A callback for run.grade that draws a bar on stderr while there is something to wait for."""
    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield lambda *_: None
        return
    columns = (TextColumn("{task.description:9}"), BarColumn(30), MofNCompleteColumn())
    with Progress(*columns, console=screen, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield update


# ---------------------------------------------------------------- the table


def table(result: Result, out: Console, explain_all: bool) -> None:
    """Prints each part; explains the topmost failing row, or every one that is not ok."""
    for part in result.parts:
        _head(result, part, out)
        _rows(part, result, out, explain_all)
        _total(result, part, out)
    if result.restarted:
        out.print(
            f"{result.restarted} programs only started without address randomisation (setarch -R)."
        )


def _head(result: Result, part: PartResult, out: Console) -> None:
    left = f"{result.rubric.assignment} {dot(out)} {part.part.title}  seed {result.seed}"
    right = result.tools.described if part.part.id == "c" else _python()
    out.print(Text(f"{left}{right:>{max(WIDTH - len(left), len(right) + 2)}}", style="bold"))
    if result.options.fresh is not None:
        out.print(f"fresh inputs, seed {result.seed}; wanted: what the reference reports on them")
    for number, error in enumerate(dict.fromkeys(built.error for built in part.broken)):
        assert error is not None
        probes = [built.file for built in part.broken if built.error == error]
        sign, here = (" ", "") if number else (">", "  <- start here")
        line = Text(f" {sign} FAIL  compile {', '.join(probes)}", style=STYLES["FAIL"])
        out.print(line.append(here, style="bold"))
        labelled([("at", error.where), ("says", error.what)], out)
        for code in error.code.splitlines():
            out.print(Text(" " * 21 + plain(code)[: WIDTH - 21]))


def _python() -> str:
    return f"Python {platform.python_version()}  numpy {numpy.__version__}"


def dot(out: Console) -> str:
    return "·" if has_unicode(out) else "-"


def has_unicode(out: Console) -> bool:
    """Python writes UTF-8 in the C locale, too; a terminal that was set up so may not read it."""
    locale = next((os.environ[n] for n in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(n)), "")
    return "utf" in locale.lower() and "utf" in out.encoding.lower()


def _rows(part: PartResult, result: Result, out: Console, explain_all: bool) -> None:
    topmost = None if part.broken else part.start
    for item in part.items:
        here = item is topmost
        _row(item, here, out)
        if here or explain_all:
            _explain(item, result, out, explain_all)
        if item.item.id in part.remarks:
            out.print(Text(" " * 9 + part.remarks[item.item.id], style="dim"))


def _row(item: ItemResult, here: bool, out: Console) -> None:
    points = f"{shown(item.earned) if item.possible else '-'}/{shown(item.item.points)}"
    line = Text(f" {'>' if here else ' '} ")
    line.append(f"{item.verdict:5} ", style=STYLES[item.verdict])
    line.append(f"{item.item.title:{NAME_WIDTH}}{points:>6} {item.seconds:7.2f} s")
    note = _note(item)
    if here:
        line.append("  <- start here", style="bold")
    elif note:
        room = WIDTH - line.cell_len - 2
        line.append("  " + (note if len(note) <= room else note[: room - 3] + "..."), style="dim")
    out.print(line)


def _note(item: ItemResult) -> str:
    """What an item's line ends with: the credit to look at, or what it waits for."""
    row = item.first
    if row is None or row.message == f"needs {item.item.id}":
        return ""
    if row.got and row.waits:
        return "does not compile"
    return row.credit.says if row.verdict == "FAIL" and row.input else plain(row.message)


def _explain(item: ItemResult, result: Result, out: Console, every_row: bool) -> None:
    rows = [row for row in item.rows if row.verdict not in ("ok", "skip")]
    rows = [row for row in rows if not (row.verdict == "FAIL" and row.waits)]
    if not every_row:
        pictured = next((row for row in rows if row.picture), None)
        rows = [row for row in rows if row is item.first or row is pictured]
    before: list[tuple[str, str]] = []
    for row in rows:
        says = (row.verdict, f"{row.credit.says} ({shown(row.credit.points)})")
        what = [("hint", row.hint)] if row.verdict == "todo" else _what(row)
        as_above = bool(what) and what == before
        again = [] if row.verdict == "todo" else [("differs", "as above")]
        labelled([says, *(again if as_above else what)], out)
        if row.picture and not as_above:
            for line in histogram.text(row.picture, has_unicode(out)):
                out.print(" " * 11 + line)
        before = what
    todo = [row.message for row in rows if row.verdict == "todo"]
    needs = [text.removeprefix("needs ").removeprefix("waits for ") for text in todo]
    others = [name for name in dict.fromkeys(needs) if name != item.item.id]
    labelled([("needs", ", ".join(others))], out)
    if rows:
        labelled([("rerun", item.rerun), ("by hand", by_hand(rows[0], result))], out)


def by_hand(row: Row, result: Result) -> str:
    """The command that runs a row's case by itself, and prints what it reports."""
    python = f"{PYTHON_BY_HAND} " if row.credit.probe.endswith(PYTHON) else ""
    python = f"LLMC_NATIVE=build/probes/native {python}" if row.credit.native else python
    return f"{python}build/probes/{row.credit.probe} {row.credit.case} {result.seed}"


def plain(text: str) -> str:
    """What a student's code or a compiler said, without what could steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _what(row: Row) -> list[tuple[str, str]]:
    return [
        ("input", row.input),
        ("got", row.got),
        ("expected", row.expected),
        ("differs", row.message),
        ("hint", row.hint),
    ]


def labelled(lines: Iterable[tuple[str, str]], out: Console) -> None:
    """Label and text, wrapped behind the label; empty texts are left out."""
    for label, text in lines:
        if not text:
            continue
        shown = plain(text)
        wrapped = textwrap.wrap(shown, WIDTH - 21, max_lines=4, placeholder=" ...") or [""]
        if label in ("rerun", "by hand"):
            wrapped = [shown]  # to be copied
        out.print(Text(f"           {label:9} {wrapped[0]}"))
        for more in wrapped[1:]:
            out.print(Text(" " * 21 + more))


def _total(result: Result, part: PartResult, out: Console) -> None:
    name = f"{result.rubric.assignment} {dot(out)} "
    whole = f"{shown(part.earned)} of {shown(part.possible)} points"
    left = part.total - part.possible
    reasons = {
        row.message for item in part.items for row in item.rows if row.verdict in ("skip", "error")
    }
    more = f" here; {shown(left)} more: {'; '.join(sorted(reasons))}" if left else ""
    out.print(Text(f"{name}{part.part.title}: {whole}{more}.", style="bold"))
