"""Reads the prose of handouts, READMEs and docs: what it names must be there.

A command, an option, a make target, a row, a file; in a handout the names of code, too.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder import cli, rubric
from autograder.commands import grade
from autograder.commands.common import COMMANDS, STAFF
from autograder.rubric import ROOT, Rubric
from autograder.run import UnknownName, select
from staff import strip

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
    code = "\n".join([*strip.stubs(strip.SOURCE).values(), *map(read, test.glob("*.c"))])
    rows = {item.id for loaded in _rubrics() for _, item in loaded.items()}
    listed = LISTED.findall(read(ROOT / "Makefile").partition("\nifneq")[0])
    return Known(
        _rubrics(),
        _options(grade.parser(staff=False), COMMANDS),
        frozenset(" ".join([*listed, *TARGETS.findall(read(test / "Makefile"))]).split()),
        frozenset(re.findall(r"\w+", code)) | rows,
    )


def known() -> Known:
    """What there is in this tree."""
    targets = TARGETS.findall(read(ROOT / "Makefile"))
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
    if (ROOT / span).is_file():  # train_gpt2.py
        return []
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


def read(path: Path) -> str:
    """A page's text."""
    return path.read_text(encoding="utf-8")
