"""Fills the generated blocks of handouts/*.md: `python -m staff.handouts [--check]`.

A block stands between two lines, and all that is between them is written anew:

    <!-- generated: points A0 c -->                  the rows of A0, part c, as a table
    <!-- generated: points A0 c manual_seed -->      one row: file, functions, points, command
    <!-- generated: api rand.h -->                   a file's functions with their contracts
    <!-- generated: api autograd.py A1 -->           without those that are another stage's
    <!-- generated: code rand.h mt19937_state -->    a struct, a group of macros, or a function
    <!-- generated: code rand.py PCG32 -->           a class down to its methods, or a function
    <!-- end -->

Files are shown as students get them. What stands in prose is prose, but `--check` has prose.py read
it, as well as the READMEs and docs/instructor.md, which have no blocks.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tree_sitter import Node

from autograder import rubric
from autograder.files import write_whole
from autograder.rubric import ROOT, Credit, Item, Part, RubricError, shown
from staff import strip, syntax
from staff.prose import known, known_to_students, read, strays

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


# ---------------------------------------------------------------- points: from the rubric


def points(arguments: Sequence[str]) -> list[str]:
    """A table of a part's rows, or one row and what earns its points. Raises ValueError."""
    if len(arguments) not in (2, 3):
        raise ValueError("want an assignment, a part and perhaps a row, as in `points A0 c`")
    assignment, name, *row = arguments
    if assignment not in rubric.assignments():
        raise ValueError(f"no assignment {assignment}")
    parts = {part.id: part for part in rubric.load(assignment).parts}
    if name not in parts:
        raise ValueError(f"no part {name} in {assignment}")
    items = {item.id: item for item in parts[name].items}
    if row and row[0] not in items:
        raise ValueError(f"no row {row[0]} in {assignment}")
    if row:
        return _task(assignment, parts[name], items[row[0]])
    return [
        "| row | file | points |",
        "|---|---|---:|",
        *(_row(parts[name], item) for item in items.values()),
        f"| **all** | | **{sum(item.points for item in items.values())}** |",
    ]


def _row(part: Part, item: Item) -> str:
    title = "" if item.title == item.id else f" ({item.title})"
    files = ", ".join(f"`{Path(file).name}`" for file in part.files_of(item))
    return f"| `{item.id}`{_cell(title)} | {files} | {shown(item.points)} |"


def _task(assignment: str, part: Part, item: Item) -> list[str]:
    files = ", ".join(f"`{file}`" for file in part.files_of(item))
    functions = ", ".join(f"`{function}`" for function in item.functions)
    worth = f"{shown(item.points)} point{'s' * (item.points != 1)}"
    where = " · ".join([files, functions, worth, f"`./grade {assignment} {item.id}`"])
    return [*_bullet(where), *_bullet("; ".join(_earns(credit) for credit in item.credits))]


def _bullet(text: str) -> list[str]:
    """A list's entry, wrapped; what stands in backticks is not broken."""
    glued = re.sub(r"`[^`]*`", lambda span: span[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(f"- {glued}", 100, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _earns(credit: Credit) -> str:
    needs = ", needs `make data`" if credit.data else ""
    return f"{_cell(credit.says)} ({shown(credit.points)}{needs})"


def _cell(text: str) -> str:
    """Plain text as markdown, in a table or not."""
    return re.sub(r"[|*]|_(?=_)|(?<=_)_", r"\\\g<0>", text)


# ---------------------------------------------------------------- api, code: from the stubs


@dataclass(frozen=True)
class Definition:
    """What a stub defines: its first and last line (from 0), contract; of a function, signature."""

    name: str
    first: int
    last: int
    signature: str = ""
    contract: str = ""


def api(arguments: Sequence[str]) -> list[str]:
    """A table of a file's functions: signature, contract, row. Raises ValueError.

    Where an assignment is named, those that only another one has rows for are left out.
    """
    if len(arguments) not in (1, 2):
        raise ValueError("want a file and perhaps an assignment, as in `api rand.h`")
    file, *chosen = arguments
    if not set(chosen) <= set(rubric.assignments()):
        raise ValueError(f"no assignment {chosen[0]}")
    written = _rows_of(file, rubric.assignments())
    rows = _rows_of(file, chosen or rubric.assignments())
    return [
        "| function | contract | row |",
        "|---|---|---|",
        *(
            f"| `{d.signature}` | {_cell(d.contract)} "
            f"| {f'`{rows[d.name]}`' if d.name in rows else 'given'} |"
            for d in _with_contracts(_definitions(file), written)
            if d.name in rows or d.name not in written
        ),
    ]


def _with_contracts(found: Sequence[Definition], written: Container[str]) -> Iterator[Definition]:
    """The functions that have a contract; the first that students write in a class and that has
    none gets that of the class."""
    spare = {d.name: d.contract for d in found if not d.signature}
    for d in found:
        owner = d.name.rpartition(".")[0] if d.name in written else ""
        contract = d.contract or spare.pop(owner, "")
        if d.signature and contract:
            yield replace(d, contract=contract)


def code(arguments: Sequence[str]) -> list[str]:
    """What stands around a name in a file, from blank line to blank line. Raises ValueError."""
    if len(arguments) != 2:
        raise ValueError("want a file and a name, as in `code rand.h mt19937_state`")
    file, name = arguments
    found = {d.name: d for d in _definitions(file)}
    if name not in found:
        raise ValueError(f"no definition of {name} in {file}")
    tag = "python" if file.endswith(".py") else "c"
    return [f"```{tag}", *_paragraph(_stub(file), found[name]), "```"]


def _rows_of(file: str, assignments: Sequence[str]) -> dict[str, str]:
    """Function → the first row that names it, of a file of llmc/ and these assignments."""
    rows: dict[str, str] = {}
    for assignment in assignments:
        for part, item in rubric.load(assignment).items():
            if f"llmc/{file}" in part.files_of(item):
                rows = {function: item.id for function in item.functions} | rows
    return rows


def _stub(file: str) -> str:
    path = strip.SOURCE / file
    if not path.is_file():
        raise ValueError(f"no file {file} in llmc/")
    return strip.strip(path.read_text(encoding="utf-8"), file)


def _definitions(file: str) -> list[Definition]:
    text = _stub(file)
    return list(_in_python(text) if file.endswith(".py") else _in_c(text))


def _in_c(text: str) -> Iterator[Definition]:
    """Each function, type and macro of a header."""
    source = text.encode()
    fields = {"type_definition": "declarator", "preproc_def": "name"}
    for name, function in syntax.functions(source).items():
        signature, contract = _signature(function), _comment(text, function.node)
        yield Definition(name, *_lines(source, function.node), signature, contract)
    for node in syntax.walk(syntax.parse(source)):
        named = node.child_by_field_name(fields[node.type]) if node.type in fields else None
        if named is not None:
            yield Definition((named.text or b"").decode(), *_lines(source, node))


def _lines(source: bytes, node: Node) -> tuple[int, int]:
    """The first and last line of a node."""
    first = source.count(b"\n", 0, node.start_byte)
    return first, source[: node.end_byte].rstrip().count(b"\n")


def _signature(function: syntax.Function) -> str:
    body = function.node.child_by_field_name("body")
    head = function.text if body is None else function.text[: body.start_byte - function.start]
    return " ".join(head.split()).removeprefix("static inline ")


def _comment(text: str, node: Node) -> str:
    """The comment right above a definition, as one line."""
    above = text.encode()[: node.start_byte].decode().splitlines()
    start = len(above)
    while start > 0 and above[start - 1].startswith("// "):
        start -= 1
    return " ".join(line.removeprefix("// ") for line in above[start:])


def _in_python(text: str) -> Iterator[Definition]:
    """Each constant, class, function and method of a module; a class ends above its methods."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            for name in ast.walk(target):
                if isinstance(name, ast.Name):
                    yield Definition(name.id, node.lineno - 1, (node.end_lineno or 0) - 1)
        elif isinstance(node, ast.FunctionDef):
            yield _function(node, "")
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            end = min(map(_first, methods), default=node.end_lineno or 0)
            last = len("\n".join(text.splitlines()[:end]).rstrip().splitlines()) - 1
            yield Definition(node.name, _first(node), last, contract=_contract(node))
            yield from (_function(method, f"{node.name}.") for method in methods)


def _first(node: ast.FunctionDef | ast.ClassDef) -> int:
    """The first line (from 0), that of a decorator where there is one."""
    return min(line.lineno for line in (node, *node.decorator_list)) - 1


def _function(node: ast.FunctionDef, owner: str) -> Definition:
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args)).replace("=", " = ")
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    name = f"{owner}{node.name}"
    signature = f"{name}({arguments}){returns}".replace("|", r"\|")
    end = (node.end_lineno or 0) - 1
    return Definition(name, node.lineno - 1, end, signature, _contract(node))


def _contract(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The first paragraph of the docstring."""
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())


def _paragraph(text: str, definition: Definition) -> list[str]:
    """The lines of a definition, and those around it up to the next blank ones."""
    lines, first, last = text.splitlines(), definition.first, definition.last
    while first > 0 and lines[first - 1]:
        first -= 1
    while last + 1 < len(lines) and lines[last + 1]:
        last += 1
    return lines[first : last + 1]


KINDS: Mapping[str, Callable[[Sequence[str]], list[str]]] = {
    "points": points,
    "api": api,
    "code": code,
}


# ---------------------------------------------------------------- blocks


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
    except (ValueError, RubricError, strip.Drift) as fault:
        raise Wrong(f"{where}: `{words}`: {fault}") from fault


def fill(text: str, name: str) -> str:
    """The text with every block written anew. Raises Wrong."""
    lines = text.splitlines()
    for block in reversed(blocks(text, name)):
        lines[block.start : block.end - 1] = block.wanted
    return "".join(f"{line}\n" for line in lines)


def drift(text: str, name: str) -> list[str]:
    """One line for each block of a handout that is not what its source gives. Raises Wrong."""
    return [
        f"{name}:{block.start}: the block `{block.words}` differs from its source"
        for block in blocks(text, name)
        if block.found != block.wanted
    ]


# ---------------------------------------------------------------- files


def check(folder: Path) -> list[str]:
    """One line for each place where a handout and the code disagree. Raises Wrong."""
    there = known_to_students()
    return [
        line
        for path in sorted(folder.glob("*.md"))
        for line in (
            *drift(read(path), path.name),
            *strays(read(path), path.name, there),
        )
    ]


def check_pages() -> list[str]:
    """One line for each thing that is not there, but in a README or a page for instructors."""
    students = replace(known_to_students(), names=None)
    pages = {"README.student.md": students, "README.md": known(), "docs/instructor.md": known()}
    return [line for name, k in pages.items() for line in strays(read(ROOT / name), name, k)]


def write(folder: Path) -> None:
    """Writes every block of every handout anew; all of them or, if one raises Wrong, none."""
    texts = {path: read(path) for path in sorted(folder.glob("*.md"))}
    filled = {path: fill(text, path.name) for path, text in texts.items()}
    for path, text in filled.items():
        if text != texts[path]:
            write_whole(path, text.encode())


def main(argv: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """The command line; returns the exit status: 0, or 1 after lines about what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on disagreement")
    try:
        if not parser.parse_args(argv).check:
            write(folder)
            return 0
        lines = [*check(folder), *check_pages()]
    except Wrong as fault:
        lines = [str(fault)]
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
