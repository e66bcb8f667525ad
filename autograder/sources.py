"""A student's source files: read once, within limits, and searched for what hides a diagnostic."""

from __future__ import annotations

import itertools
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

NAME = re.compile(r"[\w.+-]{1,100}", re.ASCII)
LARGEST = 1 << 20  # bytes of one file
MOST = 200  # files
MOST_SILENCED = 20  # places that are reported


def read(student: Path) -> dict[str, bytes]:
    """`llmc/NAME` → content of each ordinary file in `student`/llmc.

    What is no ordinary file (nor is a link), too large or oddly named is left out, so that
    including it fails.
    """
    found: dict[str, bytes] = {}
    for path in sorted((student / "llmc").iterdir()):
        try:
            about = path.lstat()  # a link may lead anywhere
            if (
                stat.S_ISREG(about.st_mode)
                and about.st_size <= LARGEST
                and NAME.fullmatch(path.name)
            ):
                found[f"llmc/{path.name}"] = path.read_bytes()
        except OSError:
            continue
        if len(found) == MOST:
            break
    return found


# Pragmas, line markers of system headers, attributes that run before main or replace a symbol, and
# anything that speaks to the sanitizers.
SILENCERS = re.compile(
    r"#[ \t\f\v]*pragma[ \t\f\v]+(?:GCC|clang)[ \t\f\v]+(?:diagnostic|system_header)|_Pragma"
    r"|^[ \t\f\v]*#[ \t\f\v]*(?:line\b|\d)|no_sanitize|__(?:a|l|t|ub)san_|__sanitizer_"
    r"|__attribute(?:__)?[^;{]{0,80}(?:constructor|destructor|section|alias|weak)"
    r"|\bdlsym\b|lsan_interface|\[\[[^;{]{0,80}(?:constructor|destructor)|\basm\b|__asm",
    re.MULTILINE,
)


def silenced(files: Mapping[str, bytes], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(where, what) for each place in the named files that could hide a diagnostic."""
    found = []
    for name in names:
        text = code(files[name].decode("utf-8-sig", "replace"))
        for match in itertools.islice(SILENCERS.finditer(text), MOST_SILENCED):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{name}:{line}", " ".join(match[0].split())[:60]))
    return tuple(found[:MOST_SILENCED])


BEGINS = re.compile(r"//|/\*|[\"']")  # comments and strings do


def code(text: str) -> str:
    """C with its lines spliced and its digraphs written out, without comments and strings.

    Lines keep their numbers, but for the splices. Takes time linear in the text.
    """
    text = text.replace("\r\n", "\n").replace("\\\n", "").replace("%:", "#")
    kept: list[str] = []
    at = 0
    while (begin := BEGINS.search(text, at)) is not None:
        kept.append(text[at : begin.start()])
        at = begin.start()
        if begin[0] == "//":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif begin[0] == "/*":
            end = text.find("*/", at + 2)
            end = len(text) if end < 0 else end + 2
            kept.append(" " + "\n" * text.count("\n", at, end))
            at = end
        else:
            at = _string_end(text, at)
            kept.append('""')
    return "".join([*kept, text[at:]])


def _string_end(text: str, at: int) -> int:
    """The index behind a string or character that starts at `at`; a line's end ends it, too."""
    quote = text[at]
    at += 1
    while at < len(text) and text[at] not in (quote, "\n"):
        at += 2 if text[at] == "\\" else 1
    return at + 1 if at < len(text) and text[at] == quote else min(at, len(text))


def place(files: Mapping[str, bytes], names: Sequence[str], function: str) -> str:
    """`llmc/rand.h:40`: where a function's TODO stands, else its definition; "" if nowhere."""
    word = re.escape(function.encode())
    patterns = [rb"TODO \(A\d\): %b(?![\w.])" % word]
    patterns += [rb"^\w[^;\n]*\b%b\([^;{]{0,400}\{" % word]
    patterns += [rb"^ *(?:def|class) %b\b" % word.rpartition(b".")[2]]
    found = (_find(files, names, pattern) for pattern in patterns)
    return next((place for place in found if place), "")


def stub_line(files: Mapping[str, bytes], names: Sequence[str], function: str) -> str:
    """Where the line stands that says that a function is not written; "" if nowhere."""
    return _find(
        files, names, rb'(?:TODO|NotImplementedError)\("A\d: %b"\)' % re.escape(function.encode())
    )


def _find(files: Mapping[str, bytes], names: Sequence[str], pattern: bytes) -> str:
    for name in names:
        match = re.search(pattern, files.get(name, b""), re.MULTILINE)
        if match is not None:
            return f"{name}:{files[name].count(bytes([10]), 0, match.start()) + 1}"
    return ""
