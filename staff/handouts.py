"""Fills the generated blocks of handouts/*.md: `python -m staff.handouts [--check]`.

A block stands between two lines, and all that is between them is written anew:

    <!-- generated: points A0 c -->                  the rows of A0, part c, as a table
    <!-- generated: points A0 c manual_seed -->      one row: file, functions, points, command
    <!-- generated: api rand.h -->                   a file's functions with their contracts
    <!-- generated: code rand.h mt19937_state -->    a struct, a group of macros, or a function
    <!-- generated: code rand.py PCG32 -->           a class down to its methods, or a function
    <!-- end -->

Files are shown as students get them. What stands in prose is prose, but `--check` reads it: the
commands, files and names of code in it must exist, and the rows that catch pitfalls, too. The
READMEs and docs/instructor.md, which have no blocks, are read for commands, files and rows.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tree_sitter import Node

from autograder import cli, rubric
from autograder.commands import grade
from autograder.commands.common import COMMANDS, STAFF
from autograder.files import write_whole
from autograder.rubric import ROOT, Credit, Item, Part, Rubric, RubricError
from autograder.run import UnknownName, select
from staff import strip, syntax

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
    return f"| `{item.id}`{_cell(title)} | {files} | {item.points} |"


def _task(assignment: str, part: Part, item: Item) -> list[str]:
    files = ", ".join(f"`{file}`" for file in part.files_of(item))
    functions = ", ".join(f"`{function}`" for function in item.functions)
    worth = f"{item.points} point{'s' * (item.points != 1)}"
    where = " · ".join([files, functions, worth, f"`./grade {assignment} {item.id}`"])
    return [*_bullet(where), *_bullet("; ".join(_earns(credit) for credit in item.credits))]


def _bullet(text: str) -> list[str]:
    """A list's entry, wrapped; what stands in backticks is not broken."""
    glued = re.sub(r"`[^`]*`", lambda span: span[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(f"- {glued}", 100, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _earns(credit: Credit) -> str:
    return f"{_cell(credit.says)} ({credit.points}{', needs `make data`' if credit.data else ''})"


def _cell(text: str) -> str:
    """Plain text as markdown, in a table or not."""
    return re.sub(r"[|*]|_(?=_)|(?<=_)_", r"\\\g<0>", text)


# ---------------------------------------------------------------- api, code: from the stubs


@dataclass(frozen=True)
class Definition:
    """What a stub defines: its first and last line (from 0); of a function signature, contract."""

    name: str
    first: int
    last: int
    signature: str = ""
    contract: str = ""


def api(arguments: Sequence[str]) -> list[str]:
    """A table of a file's functions: signature, contract, row. Raises ValueError."""
    if len(arguments) != 1:
        raise ValueError("want a file, as in `api rand.h`")
    (file,) = arguments
    rows = {function: item.id for item in _items_of(file) for function in item.functions}
    return [
        "| function | contract | row |",
        "|---|---|---|",
        *(
            f"| `{d.signature}` | {_cell(d.contract)} "
            f"| {f'`{rows[d.name]}`' if d.name in rows else 'given'} |"
            for d in _definitions(file)
            if d.signature
        ),
    ]


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


def _items_of(file: str) -> Iterator[Item]:
    """The rows of every assignment that are about a file of llmc/."""
    for assignment in rubric.assignments():
        for part, item in rubric.load(assignment).items():
            if f"llmc/{file}" in part.files_of(item):
                yield item


def _items() -> Iterator[Item]:
    """Every row of every assignment."""
    for assignment in rubric.assignments():
        yield from (item for _, item in rubric.load(assignment).items())


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
        if isinstance(node, ast.Assign):
            for name in ast.walk(node.targets[0]):
                if isinstance(name, ast.Name):
                    yield Definition(name.id, node.lineno - 1, (node.end_lineno or 0) - 1)
        elif isinstance(node, ast.FunctionDef):
            yield _function(node, "")
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            head = text.splitlines()[: methods[0].lineno - 1]
            last = len("\n".join(head).rstrip().splitlines()) - 1
            yield Definition(node.name, node.lineno - 1, last)
            yield from (_function(method, f"{node.name}.") for method in methods)


def _function(node: ast.FunctionDef, owner: str) -> Definition:
    """The contract is the first paragraph of the docstring; without one there is no signature."""
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args)).replace("=", " = ")
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    contract = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    name = f"{owner}{node.name}"
    signature = f"{name}({arguments}){returns}".replace("|", r"\|")
    end = (node.end_lineno or 0) - 1
    return Definition(name, node.lineno - 1, end, signature if contract else "", contract)


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


# ---------------------------------------------------------------- what the prose names

SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(
    r"(?:llmc|dev|assignments|handouts|autograder|reference|staff|tests|docs)/[\w./-]*\w"
)
TARGETS = re.compile(r"^([\w -]+):(?!=)", re.MULTILINE)
LISTED = re.compile(r"^([\w -]+):.* ## ", re.MULTILINE)  # what `make` shows
OPTION = re.compile(r"(?<![\w-])(--?[a-z][\w-]*)( \[?[A-Z]+)?")  # with what it takes, if anything
OWN = re.compile(r'^id = "(\w+)"$', re.MULTILINE)  # a row that a page adds to the rubric
PITFALLS = "| pitfall | row that catches it |"


@dataclass(frozen=True)
class Known:
    """What a page may name. `options` has those of each command of ./grade, and whether a value
    follows; "" is the command that grades. `names` are those in code; a page without code has None.
    """

    rubrics: tuple[Rubric, ...]
    options: Mapping[str, Mapping[str, bool]]
    targets: frozenset[str]
    names: frozenset[str] | None

    def accepts(self, assignment: str, name: str) -> bool:
        """Whether `./grade ASSIGNMENT NAME` does; the assignment may be empty, which is any."""
        for loaded in self.rubrics:
            with suppress(UnknownName):
                if assignment in ("", loaded.assignment):
                    return bool(select(loaded, [name]))
        return False


def known_to_students() -> Known:
    """What there is in a student's pack."""
    test = ROOT / "dev" / "test"
    code = "\n".join([*strip.stubs(strip.SOURCE).values(), *map(_read, test.glob("*.c"))])
    listed = LISTED.findall(_read(ROOT / "Makefile").partition("\nifneq")[0])
    return Known(
        _rubrics(),
        _options(grade.parser(staff=False), COMMANDS),
        frozenset(" ".join([*listed, *TARGETS.findall(_read(test / "Makefile"))]).split()),
        frozenset(re.findall(r"\w+", code)) | {item.id for item in _items()},
    )


def known() -> Known:
    """What there is in this tree."""
    targets = TARGETS.findall(_read(ROOT / "Makefile"))
    return Known(
        _rubrics(),
        _options(grade.parser(staff=True), (*COMMANDS, *STAFF)),
        frozenset(" ".join([*targets, *rubric.assignments()]).split()),
        None,
    )


def _rubrics() -> tuple[Rubric, ...]:
    return tuple(rubric.load(name) for name in rubric.assignments())


def _options(
    grading: argparse.ArgumentParser, commands: Sequence[str]
) -> dict[str, dict[str, bool]]:
    """The options of each command, as its help shows them."""
    helps = {"": _said(grading.print_help)}
    helps |= {command: _said(partial(cli.main, [command, "--help"])) for command in commands}
    return {c: {o: bool(value) for o, value in OPTION.findall(h)} for c, h in helps.items()}


def _said(ask: Callable[[], object]) -> str:
    """What is printed by a call, which may exit."""
    said = io.StringIO()
    with redirect_stdout(said), suppress(SystemExit):
        ask()
    return said.getvalue()


def strays(text: str, name: str, known: Known) -> list[str]:
    """One line for each thing that a page names and that is not there."""
    rows = {item.id for r in known.rubrics for _, item in r.items()}
    own = set(OWN.findall(text))
    return [
        *(
            f"{name}:{line}: `{span}`: there is no {word}"
            for line, span in _named(text)
            for word in _missing(span, known)
            if word not in own
        ),
        *(f"{name}:{line}: no row {row}" for line, row in pitfalls(text) if row not in rows),
    ]


def _named(text: str) -> Iterator[tuple[int, str]]:
    """Line (from 1) and text of what stands in backticks, and of each command of `sh` blocks."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("```"):
            fence = "" if fence else line.strip()
        elif fence == "```sh":
            yield from ((number, command.strip()) for command in line.split("&&"))
        elif not fence:
            yield from ((number, span) for span in SPAN.findall(line))


def pitfalls(text: str) -> Iterator[tuple[int, str]]:
    """Line (from 1) and name of each row that a table of pitfalls names."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        inside = line == PITFALLS or (inside and line.startswith("|"))
        if inside:
            yield from ((number, row) for row in SPAN.findall(line.rpartition(" | ")[2]))


def _missing(span: str, known: Known) -> list[str]:
    """The words of a command, a path or a piece of code that stand for nothing here."""
    first, *words = span.split() or [""]
    if first == "./grade":
        return _refused(shlex.split(span, comments=True)[1:], known)
    if first == "make":
        words = [word for word in shlex.split(span, comments=True)[1:] if "=" not in word]
        return [word for word in words if word not in known.targets]
    if FILE.fullmatch(span):
        return [] if (ROOT / span).exists() else [span]
    if "/" in span or known.names is None:
        return []
    return [word for word in re.findall(r"\w*_\w*", span) if word not in known.names]


def _refused(words: Sequence[str], known: Known) -> list[str]:
    """The words behind ./grade that it does not take: options, assignments and names."""
    command = words[0] if words and words[0] in known.options else ""
    plain, wrong = _parted(words[1:] if command else words, known.options[command])
    if command == "why":
        return wrong + [name for name in plain if not known.accepts("", name)]
    assignment = plain[0].upper() if plain else ""
    if assignment not in ("", *rubric.assignments()):
        return wrong + plain[:1]
    return wrong + [n for n in plain[1:] if command or not known.accepts(assignment, n)]


def _parted(words: Sequence[str], options: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """The words that are no options and no value of one, and the options that are not there."""
    plain, wrong, value = [], [], False
    for word in words:
        option = word.startswith("-")
        if option and word not in options:
            wrong.append(word)
        elif not option and not value:
            plain.append(word)
        value = options.get(word, False)
    return plain, wrong


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# ---------------------------------------------------------------- files


def check(folder: Path) -> list[str]:
    """One line for each place where a handout and the code disagree. Raises Wrong."""
    there = known_to_students()
    return [
        line
        for path in sorted(folder.glob("*.md"))
        for line in (
            *drift(_read(path), path.name),
            *strays(_read(path), path.name, there),
        )
    ]


def check_pages() -> list[str]:
    """One line for each thing that is not there, but in a README or a page for instructors."""
    students = replace(known_to_students(), names=None)
    pages = {"README.student.md": students, "README.md": known(), "docs/instructor.md": known()}
    return [line for name, k in pages.items() for line in strays(_read(ROOT / name), name, k)]


def write(folder: Path) -> None:
    """Writes every block of every handout anew; all of them or, if one raises Wrong, none."""
    texts = {path: _read(path) for path in sorted(folder.glob("*.md"))}
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
