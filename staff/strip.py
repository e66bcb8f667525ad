"""Writes the student's llmc/ from reference/llmc: `python -m staff.strip [--check]`.

A region runs from BEGIN SOLUTION to END SOLUTION, each alone on its line as a comment of the
language. Above it stand `TODO (A0): NAME` and `HINT: ...`, which the student keeps. A region
becomes one line that says what is missing.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from autograder.files import write_whole
from autograder.rubric import ROOT

SOURCE, TARGET = ROOT / "reference" / "llmc", ROOT / "llmc"
MARK = re.compile(r"^(\s*)(//|#) (BEGIN|END) SOLUTION$")
LOOSE = re.compile(r"(BEGIN|END)\s+SOLUTION", re.IGNORECASE)
TODO = re.compile(r"^\s*(?://|#) TODO \((A\d)\): ([\w.]+)")
STUBS = {"//": 'TODO("{stage}: {name}");', "#": 'raise NotImplementedError("{stage}: {name}")'}


class Drift(Exception):
    """A file of the reference is not in the form that can be stripped."""


def strip(text: str, name: str) -> str:
    """The stub of one file. Raises Drift with file, line and what is wrong."""
    kept: list[str] = []
    opened: tuple[int, str, str] | None = None  # line, indent, comment
    todo: re.Match[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = MARK.match(line)
        if mark is None:
            if LOOSE.search(line):
                raise Drift(f"{name}:{number}: a marker must stand alone, as `// BEGIN SOLUTION`")
            if opened is None:
                kept.append(line)
                todo = TODO.match(line) or todo
            continue
        indent, comment, which = mark.groups()
        if (which == "BEGIN") != (opened is None):
            raise Drift(f"{name}:{number}: {which} SOLUTION without its partner")
        if which == "END":
            opened = None
            continue
        if todo is None:
            raise Drift(f"{name}:{number}: a region without `TODO (A0): NAME` above it")
        opened = (number, indent, comment)
        kept.append(indent + STUBS[comment].format(stage=todo[1], name=todo[2]))
        todo = None
    if opened is not None:
        raise Drift(f"{name}:{opened[0]}: BEGIN SOLUTION without its partner")
    if todo is not None:
        raise Drift(f"{name}: `TODO ({todo[1]}): {todo[2]}` without a region")
    return "\n".join(kept) + "\n"


def stubs(source: Path) -> dict[str, str]:
    """File name → stub, for every file of the reference."""
    paths = sorted(path for path in source.iterdir() if path.is_file())
    return {path.name: strip(path.read_text(encoding="utf-8"), path.name) for path in paths}


def drift(source: Path, target: Path) -> list[str]:
    """One line for each file of `target` that is not what `source` gives."""
    wanted = stubs(source)
    found = {path.name for path in target.iterdir() if path.is_file()} if target.is_dir() else set()
    lines = [f"{target.name}/{name}: not in the reference" for name in sorted(found - set(wanted))]
    for name, text in wanted.items():
        path = target / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            lines.append(f"{target.name}/{name}: differs from the stripped reference")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on drift")
    try:
        if parser.parse_args().check:
            lines = drift(SOURCE, TARGET)
            print("\n".join(lines), end="\n" if lines else "")
            return 1 if lines else 0
        for name, text in stubs(SOURCE).items():
            write_whole(TARGET / name, text.encode())
        return 0
    except Drift as fault:
        print(fault)
        return 1


if __name__ == "__main__":
    sys.exit(main())
