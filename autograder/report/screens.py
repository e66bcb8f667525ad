"""What stands beside the table: where you are, the catalogue, why, doctor, start, pack."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.text import Text

from autograder.commands.doctor import Finding
from autograder.commands.pack import Packed
from autograder.commands.start import Change
from autograder.commands.state import Standing
from autograder.milestone import Reached
from autograder.report.histogram import bar
from autograder.report.terminal import NAME_WIDTH, STYLES, WIDTH, has_unicode, labelled, plain
from autograder.rubric import KINDS, Credit, Item, Part, Rubric, shown
from autograder.sources import place


def standing(progress: Iterable[tuple[Rubric, Sequence[Standing]]], out: Console) -> None:
    """Each assignment with its parts: points, what to do next, what changed since."""
    for rubric, parts in progress:
        out.print(Text(f"{rubric.assignment}  {rubric.title}", style="bold"))
        for one in parts:
            _part(rubric, one, out)
    out.print()
    for command, says in COMMANDS:
        out.print(f"  {command:26}{says}")


COMMANDS = (
    ("./grade A0", "grade it; name rows to grade just those"),
    ("./grade A0 --watch", "grade again at each save"),
    ("./grade A0 --list", "all rows: what each checks, and why"),
    ("./grade why ROW", "one row in full, and where your function stands"),
    ("./grade start A0", "bring the stubs; overwrites nothing of yours"),
    ("./grade pack A0", "the archive to hand in"),
    ("./grade milestone A2", "train models with your code, and measure them"),
    ("./grade doctor", "what this machine has, and what it lacks"),
    ("./grade A0 --help", "all options"),
)


def milestone_head(rubric: Rubric, title: str, out: Console) -> None:
    out.print(Text(f"{rubric.assignment} milestone: {title}", style="bold"))


def milestone(reached: Reached, out: Console) -> None:
    """A step: its verdict, what it reached, what was wanted."""
    line = Text("   ").append(f"{reached.verdict:5}", style=STYLES[reached.verdict])
    out.print(line.append(f" {reached.step.says:24}{plain(reached.got)}"))
    if reached.wanted:
        out.print(f"         {'wanted':24}{reached.wanted}", style="dim")


def watching(out: Console) -> None:
    """Below a table that stays until the next save."""
    out.print("watching llmc/: save to grade again, Ctrl-C to end", style="dim")


def _part(rubric: Rubric, one: Standing, out: Console) -> None:
    if one.graded == 0:
        out.print(f"    {one.part.title:8} not graded yet: ./grade {rubric.assignment}")
        return
    total = sum((item.points for item in one.part.items), Fraction(0))
    share = float(one.earned / total)
    out.print(
        Text(f"    {one.part.title:8} ").append(
            f"[{bar(share, has_unicode(out)):18}]", style="blue"
        )
        + Text(f" {shown(one.earned)} of {shown(total)} points")
    )
    left = len(one.part.items) - one.graded
    notes = [f"{left} rows were never graded"] if left else []
    if one.first is not None:
        notes.append(f"next: {one.first.id}")
    if one.changed:
        notes.append(f"changed since: {', '.join(one.changed)}")
    for note in notes:
        out.print(Text(" " * 13 + note, style="dim"))


def catalogue(rubric: Rubric, selected: Iterable[tuple[Part, list[Item]]], out: Console) -> None:
    """Prints the items: their points, what each credit checks and its kind, why it matters."""
    for part, items in selected:
        out.print(Text(f"{rubric.assignment} {part.title}: {rubric.title}", style="bold"))
        for item in items:
            line = Text(f"  {item.title:{NAME_WIDTH}}{shown(item.points):>6}", style="blue")
            out.print(line.append("" if item.title == item.id else f"  {item.id}"))
            for credit in item.credits:
                out.print(Text(f"      {_credit(credit)}"))
            _paragraph(item.why, 6, out)
    out.print()
    _kinds(dict.fromkeys(c.kind for _, items in selected for i in items for c in i.credits), out)


def _credit(credit: Credit) -> str:
    data = " (needs data)" if credit.data else ""
    return f"{shown(credit.points):>3}  {credit.kind:12} {credit.says}{data}"


def _kinds(kinds: Iterable[str], out: Console) -> None:
    for kind in kinds:
        out.print(Text(f"  {kind:12}{KINDS[kind]}", style="dim"))


def _paragraph(text: str, indent: int, out: Console) -> None:
    for line in textwrap.wrap(text, WIDTH - indent):
        out.print(Text(" " * indent + line, style="dim"))


def why(rubric: Rubric, part: Part, item: Item, theirs: Mapping[str, bytes], out: Console) -> None:
    """One item in full: what it checks, why it matters, where it is written, how to run it."""
    name = "" if item.title == item.id else f"  ({item.title})"
    head = f"{rubric.assignment} {part.title}: {item.id}{name}, {shown(item.points)} points"
    out.print(Text(head, style="bold"))
    out.print()
    _paragraph(item.why, 2, out)
    out.print()
    out.print("  What it checks")
    for credit in item.credits:
        out.print(Text(f"    {_credit(credit)}"))
    needed = dict.fromkeys(name for credit in item.credits for name in credit.needs)
    out.print()
    _kinds(dict.fromkeys(credit.kind for credit in item.credits), out)
    out.print()
    places = [(n, place(theirs, part.files_of(item), n)) for n in item.functions]
    lines = [("write", f"{function}, {where or 'not found in your llmc/'}")
             for function, where in places]  # fmt: skip
    labelled(
        [
            *lines,
            ("needs", ", ".join(needed)),
            ("read", rubric.handout(part)),
            ("grade", f"./grade {rubric.assignment} {item.id}"),
            ("debug", f"./grade {rubric.assignment} --gdb {item.id}" if part.id == "c" else ""),
        ],
        out,
    )


def diagnosis(findings: Iterable[Finding], out: Console) -> None:
    """What was looked for: `ok` with what is there; `-` with what its absence means, and a cure."""
    now = True
    for finding in findings:
        if finding.later and now:
            out.print(
                Text("not needed yet: for stages to come, and for grading others", style="dim")
            )
        now = not finding.later
        word, style = ("ok", "blue") if finding.found else ("-", "yellow")
        line = Text(" ").append(f"{word:3}", style=style)
        out.print(line.append(f"{finding.name:13}{finding.found or 'not here'}", style="default"))
        if not finding.found:
            labelled([("without", finding.without), ("get it", finding.install)], out)


def packed(archive: Packed, target: Path, out: Console) -> None:
    """What went into an archive, and what a student should know before handing it in."""
    out.print(f"{plain(str(target))}: {len(archive.files)} files, sha256 {archive.sha256[:16]}...")
    for name in archive.files:
        out.print(f"  {plain(name)}")
    broken = tuple(built.file for built in archive.broken)
    for label, names in (
        ("missing", archive.missing),
        ("broken", broken),
        ("unwritten", archive.unwritten),
    ):
        labelled([(label, ", ".join(names))], out)


STARTED = {
    "create": "new",
    "same": "as handed out",
    "update": "brought up to date; you had not edited it",
    "keep": "yours; the stub has nothing new for it",
    "merge": "yours; the stub has changed",
    "conflict": "yours; the stub has changed where you did",
    "replace": "yours; not known from which stub it started",
}


def started(rubric: Rubric, outcomes: Iterable[tuple[Change, str]], out: Console) -> None:
    """What became of each of an assignment's files, and of the others in a line."""
    own = {name for part in rubric.parts for name in part.files}
    others = []
    for change, says in outcomes:
        if f"llmc/{change.name}" in own or change.state not in ("create", "same", "update"):
            out.print(f"  llmc/{change.name:16}{says}")
        else:
            others.append(change.name)
    if others:
        out.print(Text(f"  and {len(others)} that are given or come later", style="dim"))
    out.print(f"next: {rubric.handout()}, then ./grade {rubric.assignment}")


def agreed(change: Change, out: Console) -> bool:
    """Shows what would change in a file of theirs, and asks for a yes on standard input."""
    _patch(change, out)
    out.print(f"apply this? Yours is kept as {change.name}.yours. [y/N] ", end="")
    answer = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not sys.stdin.isatty():
        out.print("yes" if answer else "no")
    return answer


def conflict(change: Change, command: str, out: Console) -> None:
    """Shows what has changed in a stub where a student has changed the same place."""
    _patch(change, out)
    for where in change.conflicts:
        out.print(f"  conflict: {where}")
    out.print(f"bring this over by hand, then run\n  {command}")


def _patch(change: Change, out: Console) -> None:
    out.print(Text(f"llmc/{change.name}: {STARTED[change.state]}", style="bold"))
    styles = {"+": "blue", "-": "yellow"}
    for line in change.patch.splitlines():
        out.print(Text(plain(line.replace("\t", "    ")), style=styles.get(line[:1], "")))
