"""Compares a student's C with the reference, function by function: `./grade diff A0`.

Functions are found by name, and a side is read as lines of tokens, so that order, comments and
formatting make no difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autograder import rubric, sources
from autograder.report.terminal import complain, plain
from autograder.rubric import ROOT, RubricError
from autograder.run import REFERENCE
from staff import strip
from staff.lines import Line, lines
from staff.syntax import functions, parse, unread

SAME, DIFFERS, USAGE = 0, 1, 2
OUTSIDE = "(outside functions)"
SIGNS = {"unchanged": "=", "changed": "~", "not written": ".", "missing": "-", "extra": "+"}
STYLES = {"=": "", "~": "bold yellow", ".": "dim", "-": "yellow", "+": "blue"}  # of signs
WIDE = 120  # columns from which both sides fit beside each other
CONTEXT = 3  # lines around a difference, when unified
MOST = 300  # lines of a function, tokens of a line, characters of a token that are shown


class Usage(Exception):
    """The command cannot be carried out as given."""


# ---------------------------------------------------------------- what is compared


@dataclass(frozen=True)
class Code:
    """A function, or what a file holds besides, where it stands: a file and a line of it."""

    file: str
    line: int
    lines: Sequence[Line]

    @property
    def tokens(self) -> list[str]:
        return [token for line in self.lines for token in line.tokens]


@dataclass(frozen=True)
class Header:
    """A file, read. `unread` is the line at which the parser lost its way, if it did."""

    functions: Mapping[str, Code]
    outside: Code
    unread: int | None


@dataclass(frozen=True)
class Row:
    """A name in both trees. `file` is where the reference has it; without one, the student."""

    file: str
    name: str
    state: str  # one of SIGNS
    ours: Code | None
    theirs: Code | None

    @property
    def alike(self) -> int | None:
        """Per cent of the tokens that both have in order: 100 only where nothing differs."""
        if self.ours is None or self.theirs is None:
            return None
        ours, theirs = self.ours.tokens, self.theirs.tokens
        return 200 * shared(ours, theirs) // max(len(ours) + len(theirs), 1)


def compare(files: Sequence[str], student: Path) -> tuple[list[Row], list[str]]:
    """A row for each function of the reference's `files`, for what stands outside, and for each
    function that only the student has; and a line about each file that is hard to read.

    Raises Usage where there is no llmc/ to read.
    """
    ours = {name: header(name, text) for name, text in _headers(REFERENCE).items()}
    theirs = {name: header(name, text) for name, text in _headers(student).items()}
    rows: list[Row] = []
    for file in files:
        rows += _rows(file, ours[file], theirs)
    known = {name for one in ours.values() for name in one.functions}
    for file, one in theirs.items():
        if file in files or file not in ours:
            extra = ((name, code) for name, code in one.functions.items() if name not in known)
            rows += [Row(file, name, "extra", None, code) for name, code in extra]
    order = {file: at for at, file in enumerate(files)}
    rows.sort(key=lambda row: order.get(row.file, len(order)))
    return rows, list(_remarks(files, theirs))


def _headers(tree: Path) -> dict[str, bytes]:
    try:
        found = sources.read(tree)
    except OSError as fault:
        raise Usage(f"{tree}: no folder llmc in it that can be read") from fault
    return {name: text for name, text in found.items() if name.endswith(".h")}


def header(file: str, source: bytes) -> Header:
    """Splits a file into its functions and the rest."""
    root = parse(source)
    found = functions(root)
    rest, at = [], 0
    for one in sorted(found.values(), key=lambda one: one.start):
        rest += [source[at : one.start], b"\n" * source.count(b"\n", one.start, one.end)]
        at = one.end
    outside = lines(b" ".join([*rest, source[at:]]).decode("utf-8-sig", "replace"))
    return Header(
        {name: Code(file, one.line, lines(one.text, one.line)) for name, one in found.items()},
        Code(file, outside[0].number if outside else 1, outside),
        unread(root),
    )


def _rows(file: str, ours: Header, theirs: Mapping[str, Header]) -> Iterator[Row]:
    stubs = header(file, strip.strip((REFERENCE / file).read_text(encoding="utf-8"), file).encode())
    for name, code in ours.functions.items():
        found = _find(name, file, theirs)
        yield Row(file, name, _state(code, found, stubs.functions.get(name)), code, found)
    outside = theirs[file].outside if file in theirs else None
    yield Row(file, OUTSIDE, _state(ours.outside, outside, None), ours.outside, outside)


def _find(name: str, file: str, theirs: Mapping[str, Header]) -> Code | None:
    """The student's function, in the file where it belongs or else in any other."""
    places = sorted(theirs, key=lambda place: (place != file, place))
    return next((theirs[at].functions[name] for at in places if name in theirs[at].functions), None)


def _state(ours: Code, theirs: Code | None, stub: Code | None) -> str:
    if theirs is None:
        return "missing"
    found = [line.tokens for line in theirs.lines]
    if found == [line.tokens for line in ours.lines]:
        return "unchanged"
    if stub is not None and found == [line.tokens for line in stub.lines]:
        return "not written"
    return "changed"


def _remarks(files: Sequence[str], theirs: Mapping[str, Header]) -> Iterator[str]:
    for file in files:
        if file not in theirs:
            yield f"{file}: not there, or no ordinary file of at most 1 MiB"
        elif theirs[file].unread is not None:
            yield (
                f"{file}:{theirs[file].unread}: here the parser loses its way (a macro, or no C);"
                " functions near it may be missing"
            )


def choose(rows: Sequence[Row], items: Sequence[rubric.Item], name: str) -> list[Row]:
    """The rows that a function's name, a file's or an item's means, or a beginning of just one.

    Raises Usage.
    """
    meant: dict[str, list[Row]] = {}
    for item in items:
        if found := [row for row in rows if row.name in item.functions]:
            meant[item.id] = found
    for row in rows:
        meant.setdefault(Path(row.file).name, []).append(row)
    meant |= {row.name: [row] for row in rows if row.name != OUTSIDE}
    name = name.removeprefix("llmc/")
    begun = [name] if name in meant else [other for other in meant if other.startswith(name)]
    if len(begun) == 1:
        return meant[begun[0]]
    said = f"{name} may be" if begun else f"nothing is called {name}; there is"
    raise Usage(f"{said} {', '.join(begun or meant)}")


# ---------------------------------------------------------------- alike and aligned

Pair = tuple[Line | None, Line | None]  # ours and theirs


def shared(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    Bit i of `left` is 0 where ours[: i + 1] shares a token more than ours[:i] (Hyyrö 2004): the
    time is linear in `theirs`.
    """
    places: dict[str, int] = {}
    for i, token in enumerate(ours):
        places[token] = places.get(token, 0) | (1 << i)
    left = every = (1 << len(ours)) - 1
    for token in theirs:
        hits = left & places.get(token, 0)
        left = ((left + hits) | (left - hits)) & every
    return len(ours) - left.bit_count()


def align(ours: Sequence[Line], theirs: Sequence[Line]) -> list[Pair]:
    """Pairs the lines, in order, so that paired lines share as many tokens as possible."""
    gains = [[_gain(our, their) for their in theirs] for our in ours]
    best = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]  # of ours[i:] and theirs[j:]
    for i in reversed(range(len(ours))):
        for j in reversed(range(len(theirs))):
            paired = best[i + 1][j + 1] + gains[i][j]
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs: list[Pair] = []
    i = j = 0
    while i < len(ours) and j < len(theirs):
        if gains[i][j] and best[i][j] == best[i + 1][j + 1] + gains[i][j]:
            pairs.append((ours[i], theirs[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            pairs.append((ours[i], None))
            i += 1
        else:
            pairs.append((None, theirs[j]))
            j += 1
    return [*pairs, *((line, None) for line in ours[i:]), *((None, line) for line in theirs[j:])]


def _gain(ours: Line, theirs: Line) -> int:
    """Two for each token that two lines share, one for a common depth; 0 where they share less than
    half of their tokens."""
    sizes = len(ours.pieces), len(theirs.pieces)
    if 4 * min(sizes) < sum(sizes):  # as many cannot be shared
        return 0
    common = shared(ours.tokens, theirs.tokens)
    return 2 * common + (ours.depth == theirs.depth) if 4 * common >= sum(sizes) else 0


# ---------------------------------------------------------------- output


def _table(rows: Sequence[Row], out: Console) -> None:
    head = f"  {'file':14}{'function':30}{'state':12}{'lines':>9}{'alike':>7}"
    out.print(Text(head, style="bold"), soft_wrap=True)
    for row in rows:
        sign, alike = SIGNS[row.state], row.alike
        line = f"{sign} {_short(Path(row.file).name, 13):14}{_short(row.name, 29):30}{row.state:12}"
        line += "/".join(str(len(c.lines)) if c else "-" for c in (row.theirs, row.ours)).rjust(9)
        line += f"{alike:6}%" if alike is not None and row.state != "not written" else ""
        out.print(Text(line, style=STYLES[sign]), soft_wrap=True)
        if row.theirs is not None and row.theirs.file != row.file:
            out.print(Text(f"                is in {row.theirs.file}"), soft_wrap=True)


def _short(text: str, width: int) -> str:
    """Printable ASCII: a letter that only looks like one of ours is seen to be another."""
    text = text if len(text) <= width else text[: width - 3] + "..."
    seen = (c if c.isascii() and c.isprintable() else ascii(c)[1:-1] for c in text)
    return "".join(seen)


def _summary(rows: Sequence[Row]) -> str:
    counts = Counter(row.state for row in rows if row.name != OUTSIDE)
    return "functions: " + ", ".join(f"{counts[s]} {s}" for s in SIGNS if counts[s])


def _show(row: Row, out: Console, unified: bool) -> None:
    """One row's diff below a line that says where both sides stand."""
    sides = (("reference", row.ours), ("student", row.theirs))
    where = [f"{side} {code.file}:{code.line}" for side, code in sides if code is not None]
    out.print(Text(f"\n{_short(row.name, 60)}   {', '.join(where)}", style="bold"), soft_wrap=True)
    pairs = align(*(_cut(code.lines) if code else [] for _, code in sides))
    if unified:
        _unified(pairs, out)
    else:
        _beside(pairs, out)


def _cut(code: Sequence[Line]) -> list[Line]:
    """What is shown of it: all, unless somebody tries to drown the reader."""
    kept = []
    for line in code[:MOST]:
        pieces = tuple(_short(piece, MOST) for piece in line.pieces[:MOST])
        more = (" ...",) if len(line.pieces) > MOST else ()
        kept.append(Line(line.number, min(line.depth, 12), pieces + more))
    if len(code) > MOST:
        kept.append(Line(code[MOST].number, 0, (f"... {len(code) - MOST} more lines",)))
    return kept


def _same(pair: Pair) -> bool:
    ours, theirs = pair
    return ours is not None and theirs is not None and ours.tokens == theirs.tokens


def _unified(pairs: Sequence[Pair], out: Console) -> None:
    """Lines of the reference (-) and of the student (+) with their numbers, and around them lines
    that are the same, with the student's."""
    spots = [at for at, pair in enumerate(pairs) if not _same(pair)]
    near = {at for spot in spots for at in range(spot - CONTEXT, spot + CONTEXT + 1)}
    for (same, shown), group in groupby(
        range(len(pairs)), key=lambda at: (_same(pairs[at]), at in near)
    ):
        some = [pairs[at] for at in group]
        if not shown:
            out.print(Text(f"       ... {len(some)} the same"))
        elif same:
            _print(" ", [(theirs, theirs) for _, theirs in some], out)
        else:
            _print("-", some, out)
            _print("+", [(theirs, ours) for ours, theirs in some], out)


def _print(sign: str, pairs: Sequence[Pair], out: Console) -> None:
    width = out.width - 7 if out.is_terminal else sys.maxsize
    for line, other in pairs:
        if line is not None:
            style = STYLES.get(sign, "")
            label = f"{sign} {line.number:4} "
            for part in _wrapped(line, other, width, out):
                out.print(Text(label, style=style).append_text(part), soft_wrap=True)
                label = " " * len(label)


def _beside(pairs: Sequence[Pair], out: Console) -> None:
    """The reference on the left; `<` and `>` stand beside a line that one side has, `|` beside one
    that they have differently."""
    width = (out.width - 13) // 2  # less two numbers, the sign and the spaces between
    grid = Table.grid(padding=(0, 1))
    for column in (4, width, 1, 4, width):
        grid.add_column(width=column, justify="right" if column == 4 else "left")

    def cells(line: Line | None, other: Line | None, style: str) -> tuple[str, Text]:
        if line is None:
            return "", Text()
        return str(line.number), Text("\n", style=style).join(_wrapped(line, other, width, out))

    for ours, theirs in pairs:
        same = _same((ours, theirs))
        sign = " " if same else ">" if ours is None else "<" if theirs is None else "|"
        left = cells(ours, theirs, "" if same else STYLES["-"])
        right = cells(theirs, ours, "" if same else STYLES["+"])
        grid.add_row(*left, sign, *right)
    out.print(grid)


def _wrapped(line: Line, other: Line | None, width: int, out: Console) -> Iterator[Text]:
    """The line, indented and cut to the width."""
    text, indent = _marked(line, other), 4 * line.depth
    fits = text.cell_len <= width - indent
    parts = [text] if fits else text.wrap(out, max(width - indent - 8, 20), overflow="fold")
    for at, part in enumerate(parts):
        yield Text(" " * (indent + 8 * (at > 0))).append_text(part)


def _marked(line: Line, other: Line | None) -> Text:
    """The line; the tokens that its other half does not have are underlined."""
    theirs = line.tokens if other is None else other.tokens
    blocks = SequenceMatcher(None, line.tokens, theirs, autojunk=False).get_matching_blocks()
    common = {at for block in blocks for at in range(block.a, block.a + block.size)}
    text = Text()
    for at, (piece, token) in enumerate(zip(line.pieces, line.tokens, strict=True)):
        text.append(piece[: len(piece) - len(token)])
        text.append(token, style="" if at in common else "bold underline")
    return text


# ---------------------------------------------------------------- the command line


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="./grade diff",
        description="Compares a student's C with the reference, function by function; order, "
        "comments and formatting make no difference.",
        epilog="Exit status: 0 all of it is the reference's, 1 something differs, 2 usage.",
    )
    p.add_argument("assignment", help=f"one of: {' '.join(rubric.assignments())}")
    p.add_argument(
        "function",
        nargs="?",
        metavar="FUNCTION",
        help="only this function, or a file's (rand.h, with what is outside them), or an item's;"
        " a beginning will do",
    )
    p.add_argument(
        "--student", type=Path, metavar="DIR", default=ROOT, help="compare DIR/llmc instead of llmc"
    )
    p.add_argument(
        "--unified",
        action="store_true",
        help=f"do not show both sides beside each other, though there are {WIDE} columns",
    )
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    arguments = _parser().parse_intermixed_args(argv)
    out = Console(highlight=False, markup=False, emoji=False)
    try:
        return _run(arguments, out)
    except (Usage, RubricError, strip.Drift) as wrong:
        complain(plain(str(wrong)))
        return USAGE


def _run(arguments: argparse.Namespace, out: Console) -> int:
    if arguments.assignment not in rubric.assignments():
        known = " ".join(rubric.assignments())
        raise Usage(f"no assignment {arguments.assignment}; there is {known}")
    loaded = rubric.load(arguments.assignment)
    files = [name for part in loaded.parts for name in part.files if name.endswith(".h")]
    rows, remarks = compare(files, arguments.student)
    if arguments.function is None:
        shown = [row for row in rows if row.state == "changed" and row.name != OUTSIDE]
        outside = [row.file for row in rows if row.state == "changed" and row.name == OUTSIDE]
        if outside:
            remarks.append(f"name a file ({Path(outside[0]).name}) to see what differs outside too")
    else:
        rows = choose(rows, [item for _, item in loaded.items()], arguments.function)
        shown = [row for row in rows if row.state != "unchanged"]
    _table(rows, out)
    out.print("\n".join(["", _summary(rows), *remarks]), soft_wrap=True)
    for row in shown:
        _show(row, out, arguments.unified or not out.is_terminal or out.width < WIDE)
    return SAME if all(row.state == "unchanged" for row in rows) else DIFFERS


if __name__ == "__main__":
    sys.exit(main())
