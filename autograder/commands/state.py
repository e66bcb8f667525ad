"""Remembers what each item last earned, for a bare ./grade."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from autograder.files import digest, write_whole
from autograder.results import Result
from autograder.rubric import Item, Part, Rubric


@dataclass(frozen=True)
class Record:
    """An item's last verdict, and hashes of the files that it was about, by name."""

    earned: str
    possible: str
    verdict: str
    files: dict[str, str]


@dataclass(frozen=True)
class Standing:
    """Where a part stands. `first` is its topmost item that is not ok, or None."""

    part: Part
    earned: Fraction
    possible: Fraction
    graded: int  # items that were graded at all
    first: Item | None
    changed: tuple[str, ...]  # files that were edited since


def remember(result: Result, theirs: Mapping[str, bytes]) -> None:
    """Notes what the items of a run earned with the files `theirs`; others keep what they had."""
    known = _known(result.rubric, result.options.build)
    for part in result.parts:
        for item in part.items:
            files = {name: _hash(theirs, name) for name in part.part.files_of(item.item)}
            record = Record(str(item.earned), str(item.possible), item.verdict, files)
            known[_key(part.part, item.item)] = record
    content = {key: asdict(record) for key, record in known.items()}
    path = _path(result.rubric, result.options.build)
    write_whole(path, json.dumps(content, indent=1).encode() + b"\n")


def recall(rubric: Rubric, build: Path, theirs: Mapping[str, bytes]) -> list[Standing]:
    """What is known of each part."""
    known = _known(rubric, build)
    return [_standing(part, known, theirs) for part in rubric.parts]


def _standing(part: Part, known: Mapping[str, Record], theirs: Mapping[str, bytes]) -> Standing:
    graded = [(item, known[_key(part, item)]) for item in part.items if _key(part, item) in known]
    changed = (
        name
        for _, record in graded
        for name, seen in record.files.items()
        if seen != _hash(theirs, name)
    )
    missing = (item for item, record in graded if record.verdict not in ("ok", "skip"))
    return Standing(
        part,
        sum((Fraction(record.earned) for _, record in graded), Fraction(0)),
        sum((Fraction(record.possible) for _, record in graded), Fraction(0)),
        len(graded),
        next(missing, None),
        tuple(dict.fromkeys(changed)),
    )


def _hash(theirs: Mapping[str, bytes], name: str) -> str:
    return digest(theirs.get(name, b""))[:16]


def _key(part: Part, item: Item) -> str:
    return f"{part.id}/{item.id}"


def _path(rubric: Rubric, build: Path) -> Path:
    return build / "state" / f"{rubric.assignment}.json"


def _known(rubric: Rubric, build: Path) -> dict[str, Record]:
    """What the file holds; nothing where there is none, or something else wrote it."""
    names = {_key(part, item) for part, item in rubric.items()}
    try:
        raw = json.loads(_path(rubric, build).read_text())
        records = {key: Record(**raw[key]) for key in names & set(raw)}
        for record in records.values():
            Fraction(record.earned), Fraction(record.possible), record.files.items()
    except (OSError, ValueError, TypeError, AttributeError, ZeroDivisionError, RecursionError):
        return {}
    return records
