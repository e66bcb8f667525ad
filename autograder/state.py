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
class Standing:
    """An item's last verdict, and a hash of the files that it was about."""

    earned: str
    possible: str
    verdict: str
    files: str


def remember(result: Result, theirs: Mapping[str, bytes]) -> None:
    """Notes what the items of a run earned; those that it left out keep what they had."""
    known = _known(result.rubric, result.options.build)
    for part in result.parts:
        for item in part.items:
            files = _hash(part.part, item.item, theirs)
            standing = Standing(str(item.earned), str(item.possible), item.verdict, files)
            known[_key(part.part, item.item)] = asdict(standing)
    path = _path(result.rubric, result.options.build)
    write_whole(path, json.dumps(known, indent=1).encode() + b"\n")


@dataclass(frozen=True)
class Progress:
    """Where a part stands. `first` is its topmost item that is not ok, or None."""

    part: Part
    earned: Fraction
    possible: Fraction
    graded: int  # items that were graded at all
    first: Item | None
    changed: tuple[str, ...]  # files that were edited since


def recall(rubric: Rubric, build: Path, theirs: Mapping[str, bytes]) -> list[Progress]:
    """What is known of each part."""
    known = {key: Standing(**raw) for key, raw in _known(rubric, build).items()}
    return [_progress(part, known, theirs) for part in rubric.parts]


def _progress(part: Part, known: Mapping[str, Standing], theirs: Mapping[str, bytes]) -> Progress:
    graded = [(item, known[_key(part, item)]) for item in part.items if _key(part, item) in known]
    changed = [
        name
        for item, standing in graded
        if standing.files != _hash(part, item, theirs)
        for name in part.files_of(item)
    ]
    missing = (item for item, standing in graded if standing.verdict not in ("ok", "skip"))
    return Progress(
        part,
        sum((Fraction(standing.earned) for _, standing in graded), Fraction(0)),
        sum((Fraction(standing.possible) for _, standing in graded), Fraction(0)),
        len(graded),
        next(missing, None),
        tuple(dict.fromkeys(changed)),
    )


def _hash(part: Part, item: Item, theirs: Mapping[str, bytes]) -> str:
    return digest(*(theirs.get(name, b"") for name in part.files_of(item)))[:16]


def _key(part: Part, item: Item) -> str:
    return f"{part.id}/{item.id}"


def _path(rubric: Rubric, build: Path) -> Path:
    return build / "state" / f"{rubric.assignment}.json"


def _known(rubric: Rubric, build: Path) -> dict[str, dict[str, str]]:
    """What the file holds; nothing where there is none, or another release wrote it."""
    names = {_key(part, item) for part, item in rubric.items()}
    try:
        raw = json.loads(_path(rubric, build).read_text())
        return {key: asdict(Standing(**raw[key])) for key in names & set(raw)}
    except (OSError, ValueError, TypeError):
        return {}
