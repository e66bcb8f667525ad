"""What is graded and for how many points: assignments/*/rubric.toml, read and validated."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ASSIGNMENTS = ROOT / "assignments"
SUFFIXES = {"c": ".h", "python": ".py"}  # of a part's files
PYTHON = "_py"  # what the name of a probe in Python ends with
KINDS = {  # of evidence that a credit can be
    "unit": "one function, or a path through it, on a state the probe made",
    "golden": "values that somebody else published or computed",
    "property": "what holds for every right answer",
    "statistical": "a distribution; a right answer fails less than once in 10^9 runs",
    "boundary": "edges, and input that is wrong",
    "learning": "a model that must learn something",
}


def shown(points: Fraction) -> str:
    """Points as people write them: 2, 2.5; a fraction that no short decimal is stays one, 1/3."""
    exact = (100 * points).denominator == 1
    return f"{float(points):g}" if exact else str(points)


class RubricError(Exception):
    """The rubric file is wrong: the grader's fault, never a student's."""


@dataclass(frozen=True)
class Credit:
    """A part of an item: one check decides its points, on what one case of one probe reports.

    `says` is what earns it; `needs` names items that must have earned something first; `data` marks
    what only real data can show; a `big` case works on a file of more than 2 GiB; a `native` one
    calls C from Python.
    """

    check: str
    probe: str
    case: str
    points: Fraction
    says: str
    kind: str  # one of KINDS
    needs: tuple[str, ...] = ()
    data: bool = False
    big: bool = False
    native: bool = False


@dataclass(frozen=True)
class Item:
    """One row of the table."""

    id: str
    title: str
    functions: tuple[str, ...]  # what the student writes for it, in the order of the file
    why: str  # why it matters later, in a sentence or two
    credits: tuple[Credit, ...]

    @property
    def points(self) -> Fraction:
        return sum((credit.points for credit in self.credits), Fraction(0))

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes its credits look at; a probe is called as the module it observes, and in
        Python ends with _py."""
        return tuple(dict.fromkeys(credit.probe for credit in self.credits))


@dataclass(frozen=True)
class Part:
    """`c` or `python`: 100 points of items, in the order of the source files."""

    id: str
    title: str
    items: tuple[Item, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the student writes, as `llmc/NAME`."""
        return tuple(dict.fromkeys(name for item in self.items for name in self.files_of(item)))

    @property
    def probes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(probe for item in self.items for probe in item.probes))

    def files_of(self, item: Item) -> tuple[str, ...]:
        """Those of them that an item is about."""
        return tuple(f"llmc/{module(probe)}{SUFFIXES[self.id]}" for probe in item.probes)


@dataclass(frozen=True)
class Rubric:
    """An assignment: its parts, the seed of the public run, and the folder that holds it all."""

    assignment: str
    title: str
    seed: int
    folder: Path
    parts: tuple[Part, ...]

    def probe(self, name: str) -> Path:
        """The source of a probe."""
        suffix = ".py" if name.endswith(PYTHON) else ".c"
        return self.folder / "probes" / f"{name}{suffix}"

    def handout(self, part: Part | None = None) -> str:
        """The file to read, from the root: a part's own, else the first; "" where there is none."""
        found = sorted(path.name for path in (ROOT / "handouts").glob(f"{self.assignment}-*.md"))
        own = f"{self.assignment}-{part.id}.md" if part else ""
        return f"handouts/{own if own in found else found[0]}" if found else ""

    def items(self) -> Iterator[tuple[Part, Item]]:
        for part in self.parts:
            for item in part.items:
                yield part, item


def module(probe: str) -> str:
    """What a probe observes, without its suffix."""
    return probe.removesuffix(PYTHON)


def assignments() -> list[str]:
    """Names of the assignments that have a rubric, in order."""
    return sorted(path.parent.name for path in ASSIGNMENTS.glob("*/rubric.toml"))


def load(assignment: str, folder: Path = ASSIGNMENTS) -> Rubric:
    """Reads and validates one rubric. Raises RubricError with the place that is wrong."""
    path = folder / assignment / "rubric.toml"
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as fault:
        raise RubricError(f"{path.name}: {fault}") from fault
    parts = tuple(_part(entry) for entry in _take(raw, "part", list, "rubric"))
    rubric = Rubric(
        assignment,
        _take(raw, "title", str, "rubric"),
        _take(raw, "seed", int, "rubric"),
        path.parent,
        parts,
    )
    _nothing_left(raw, "rubric")
    _validate(rubric)
    return rubric


def _part(raw: dict[str, Any]) -> Part:
    name = _take(raw, "id", str, "part")
    if name not in SUFFIXES:
        raise RubricError(f"part {name}: there is {' and '.join(SUFFIXES)}")
    title = _take(raw, "title", str, name)
    items = tuple(_item(entry) for entry in _take(raw, "item", list, name))
    _nothing_left(raw, name)
    return Part(name, title, items)


def _item(raw: dict[str, Any]) -> Item:
    name = _take(raw, "id", str, "item")
    probe = _take(raw, "probe", str, name, default="")
    case = _take(raw, "case", str, name, default="")
    entries = _take(raw, "credit", list, name)
    credits = tuple(_credit(entry, name, probe, case) for entry in entries)
    functions = tuple(_take(raw, "functions", list, name, default=[name]))
    why = " ".join(_take(raw, "why", str, name).split())
    item = Item(name, _take(raw, "title", str, name, default=name), functions, why, credits)
    stated = Fraction(str(_take(raw, "points", (int, str), name)))
    _nothing_left(raw, name)
    if item.points != stated:
        raise RubricError(f"{name}: {stated} points, but its credits sum to {item.points}")
    return item


def _credit(raw: dict[str, Any], item: str, probe: str, case: str) -> Credit:
    check = _take(raw, "check", str, item)
    kinds = [kind for kind in KINDS if kind in raw]
    if len(kinds) != 1:
        raise RubricError(f"{check}: its points stand under one of {', '.join(KINDS)}")
    credit = Credit(
        check,
        _take(raw, "probe", str, check, default=probe),
        _take(raw, "case", str, check, default=case or check),
        Fraction(str(_take(raw, kinds[0], (int, str), check))),
        _take(raw, "says", str, check),
        kinds[0],
        tuple(_take(raw, "needs", list, check, default=[])),
        _take(raw, "data", bool, check, default=False),
        _take(raw, "big", bool, check, default=False),
        _take(raw, "native", bool, check, default=False),
    )
    _nothing_left(raw, check)
    if credit.points <= 0:
        raise RubricError(f"{check}: {credit.points} points")
    if not credit.probe:
        raise RubricError(f"{check}: neither it nor its item names a probe")
    return credit


_REQUIRED = object()


def _take(
    raw: dict[str, Any],
    key: str,
    kind: type | tuple[type, ...],
    where: str,
    default: Any = _REQUIRED,
) -> Any:
    if key not in raw and default is _REQUIRED:
        raise RubricError(f"{where}: `{key}` is missing")
    value = raw.pop(key, default)
    if not isinstance(value, kind):
        raise RubricError(f"{where}: `{key}` has the wrong type")
    return value


def _nothing_left(raw: dict[str, Any], where: str) -> None:
    if raw:
        raise RubricError(f"{where}: unknown `{next(iter(raw))}`")


def _validate(rubric: Rubric) -> None:
    ids = [item.id for _, item in rubric.items()]
    for name in ids:
        if ids.count(name) > 1:
            raise RubricError(f"two items are called {name}")
    for part in rubric.parts:
        total = sum((item.points for item in part.items), Fraction(0))
        if total != 100:
            raise RubricError(f"part {part.id}: the points sum to {total}, not 100")
        seen: list[str] = []
        for item in part.items:
            for credit in item.credits:
                for needed in credit.needs:
                    if needed not in seen:
                        raise RubricError(f"{item.id}: needs {needed}, which is no item above it")
            seen.append(item.id)
