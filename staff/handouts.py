"""Fills the generated blocks of handouts/*.md: `python -m staff.handouts [--check]`.

A block stands between two lines, and all that is between them is written anew:

    <!-- generated: points A0 c -->      the rubric of A0, part c, as a table
    <!-- end -->
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder import rubric
from autograder.files import write_whole
from autograder.rubric import ROOT, SUFFIXES, Credit, Item, RubricError

FOLDER = ROOT / "handouts"
MARK = re.compile(r"^<!-- (?:generated: (?P<words>\S.*\S)|end) -->$")
LOOSE = re.compile(r"<!--\s*(generated|end)\b", re.IGNORECASE)
END = ""


class Wrong(Exception):
    """A block that cannot be written; the message starts with file and line."""


@dataclass(frozen=True)
class Block:
    """What stands between the marks in lines `start` and `end` (from 1), and what should."""

    start: int
    end: int
    words: str
    found: tuple[str, ...]
    wanted: tuple[str, ...]


# ---------------------------------------------------------------- kinds of blocks


def points(arguments: Sequence[str]) -> list[str]:
    """A table of a part's rows: name, file, points, what earns them. Raises ValueError."""
    if len(arguments) != 2:
        raise ValueError("want an assignment and a part, as in `points A0 c`")
    assignment, name = arguments
    if assignment not in rubric.assignments():
        raise ValueError(f"no assignment {assignment}")
    parts = {part.id: part for part in rubric.load(assignment).parts}
    if name not in parts:
        raise ValueError(f"no part {name} in {assignment}")
    return [
        "| row | file | points | what earns them |",
        "|---|---|---:|---|",
        *(_row(item, SUFFIXES[name]) for item in parts[name].items),
        f"| **all** | | **{sum(item.points for item in parts[name].items)}** | |",
    ]


def _row(item: Item, suffix: str) -> str:
    title = "" if item.title == item.id else f" ({item.title})"
    files = ", ".join(f"`{probe}{suffix}`" for probe in item.probes)
    earns = "; ".join(_earns(credit) for credit in item.credits)
    return f"| `{item.id}`{_cell(title)} | {files} | {item.points} | {_cell(earns)} |"


def _earns(credit: Credit) -> str:
    return f"{credit.says} ({credit.points}{', needs `make data`' if credit.data else ''})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


KINDS: Mapping[str, Callable[[Sequence[str]], list[str]]] = {"points": points}


# ---------------------------------------------------------------- files


def blocks(text: str, name: str) -> list[Block]:
    """The blocks of one file, in order. Raises Wrong with file, line and what is wrong."""
    lines = text.splitlines()
    marks = list(_marks(lines, name))
    found = []
    while marks:
        start, words = marks.pop(0)
        if words == END:
            raise Wrong(f"{name}:{start}: the end of no block")
        if not marks or marks[0][1] != END:
            raise Wrong(f"{name}:{start}: the block `{words}` is not closed")
        end, _ = marks.pop(0)
        wanted = _wanted(words, f"{name}:{start}")
        found.append(Block(start, end, words, tuple(lines[start : end - 1]), wanted))
    return found


def _marks(lines: Sequence[str], name: str) -> Iterator[tuple[int, str]]:
    """Line (from 1) and words of each mark; END are the words of one that closes a block."""
    for number, line in enumerate(lines, 1):
        mark = MARK.match(line)
        if mark is not None:
            yield number, mark["words"] or END
        elif LOOSE.search(line):
            raise Wrong(f"{name}:{number}: a mark is a line of its own, `<!-- generated: ... -->`")


def _wanted(words: str, where: str) -> tuple[str, ...]:
    kind, *arguments = words.split()
    if kind not in KINDS:
        raise Wrong(f"{where}: unknown kind of block `{kind}`; there is {', '.join(KINDS)}")
    try:
        return tuple(KINDS[kind](arguments))
    except (ValueError, RubricError) as fault:
        raise Wrong(f"{where}: `{words}`: {fault}") from fault


def fill(text: str, name: str) -> str:
    """The text with every block written anew. Raises Wrong."""
    lines = text.splitlines()
    for block in reversed(blocks(text, name)):
        lines[block.start : block.end - 1] = block.wanted
    return "".join(f"{line}\n" for line in lines)


def drift(folder: Path) -> list[str]:
    """One line for each block of the handouts that is not what its source gives. Raises Wrong."""
    return [
        f"{path.name}:{block.start}: the block `{block.words}` differs from its source"
        for path in sorted(folder.glob("*.md"))
        for block in blocks(path.read_text(encoding="utf-8"), path.name)
        if block.found != block.wanted
    ]


def write(folder: Path) -> None:
    """Writes every block of every handout anew; all of them or, if one raises Wrong, none."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    filled = {path: fill(text, path.name) for path, text in texts.items()}
    for path, text in filled.items():
        if text != texts[path]:
            write_whole(path, text.encode())


def main(argv: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """The command line; returns the exit status: 0, or 1 after lines about what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on drift")
    try:
        if not parser.parse_args(argv).check:
            write(folder)
            return 0
        lines = drift(folder)
    except Wrong as fault:
        lines = [str(fault)]
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
