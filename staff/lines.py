"""Writes C one statement a line, whatever its layout, for comparing it: see diff.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

TOKEN = re.compile(
    r"""
    (?P<gap> (?: [^\S\n] | \\\r?\n | //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )+ )
    | (?P<newline> \n )
    | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?
    | \.?\d(?:[eEpP][-+]|[\w.])* | \w+
    | \.\.\. | <<= | >>= | -> | \+\+ | -- | && | \|\| | << | >> | \#\# | [-+*/%&|^<>=!]=
    | .
    """,
    re.ASCII | re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A token of C, the line it stands in, and what stood before it: a gap, a line's start."""

    text: str
    line: int
    spaced: bool
    starts: bool


@dataclass(frozen=True)
class Line:
    """A statement, the head of a block, its end, or a directive. `pieces` are its tokens, each with
    the space before it that its author left there; `number` is where it starts in the file."""

    number: int
    depth: int
    pieces: tuple[str, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(piece.removeprefix(" ") for piece in self.pieces)


@dataclass
class _Statement:
    """The tokens of the line that is being gathered; `open` are its parentheses and the braces of
    its initialisers, `seen` the tokens outside them."""

    tokens: list[Token] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)


def lines(text: str, first: int = 1) -> list[Line]:
    """C, one statement a line; `first` is the number of the text's first line.

    What makes a line depends on the tokens and on where directives end, even in text that is no C.
    """
    found: list[Line] = []
    depth = 0
    for statement in _statements(_tokens(text, first)):
        depth = max(depth - (statement[0].text == "}"), 0)
        directive = statement[0].text == "#"
        found.append(Line(statement[0].line, 0 if directive else depth, _pieces(statement)))
        depth += statement[-1].text == "{" and not directive
    return found


def _tokens(text: str, line: int) -> Iterator[Token]:
    """The tokens and newlines."""
    spaced, starts = False, True
    for match in TOKEN.finditer(text):
        if match["gap"] is None:
            yield Token(match[0], line, spaced or starts, starts)
            spaced, starts = False, match["newline"] is not None
        else:
            spaced = True
        line += match[0].count("\n")


def _statements(tokens: Iterator[Token]) -> Iterator[list[Token]]:
    now = _Statement()
    for token in tokens:
        if now.tokens and _starts(now, token):
            yield now.tokens
            now = _Statement()
        if token.text == "\n":
            continue
        now.tokens.append(token)
        if _ends(now, token.text):
            yield now.tokens
            now = _Statement()
    if now.tokens:
        yield now.tokens


def _starts(now: _Statement, token: Token) -> bool:
    """Whether the token belongs to a new line; a newline counts only behind a directive."""
    if now.tokens[0].text == "#" and now.tokens[0].starts:
        return token.text == "\n"
    if token.text == "\n":
        return False
    if token.text == "#" and token.starts:
        return True
    closed = len(now.tokens) == 1 and now.tokens[0].text == "}"
    return not now.open and (token.text == "}" or (closed and token.text not in (";", ",", "else")))


def _ends(now: _Statement, text: str) -> bool:
    """Whether the line ends with its newest token; keeps `seen` and `open`."""
    if now.tokens[0].text == "#" and now.tokens[0].starts:
        return False
    if not now.open:
        now.seen.add(text)
    initialises = bool(now.open or now.seen & {"=", "return"})
    if text == "(" or (text == "{" and initialises):
        now.open.append(text)
    elif text in (")", "}"):
        del now.open[-1:]
    elif text == ";":
        return "{" not in now.open[-1:] and not (now.open and "for" in now.seen)
    elif text == ":":
        return len(now.tokens) == 2 or bool(now.seen & {"case", "default"})
    return text == "{" and not initialises


def _pieces(statement: list[Token]) -> tuple[str, ...]:
    """Each token with at most a space before it: where there was one, but not inside brackets."""
    pieces = [statement[0].text]
    for before, token in pairwise(statement):
        tight = before.text in ("(", "[") or token.text in (")", "]", ",", ";")
        pieces.append(f" {token.text}" if token.spaced and not tight else token.text)
    return tuple(pieces)
