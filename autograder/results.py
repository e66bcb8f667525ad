"""What grading takes and what it finds: options in, rows, items and parts with their points out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from autograder.build import Built, Toolchain
from autograder.compare import Histogram
from autograder.rubric import ROOT, Credit, Item, Part, Rubric


@dataclass(frozen=True)
class StandIns:
    """The reference in place of what does not pass yet: modules (`llmc/NAME.py` -> compiled), and
    the library of what Python calls of C."""

    modules: Mapping[str, bytes] = field(default_factory=dict)
    library: Path | None = None


@dataclass(frozen=True)
class Options:
    """What to grade and how. `student` holds llmc/; `fresh` is a seed for new inputs, or None."""

    student: Path
    build: Path = ROOT / "build"
    data: Path | None = None
    names: tuple[str, ...] = ()
    fresh: int | None = None
    parallel: int = os.cpu_count() or 1
    cached: bool = False  # what an earlier run of the same program reported will do
    by_imports: bool = False  # beside a Python probe lie only the modules that it can import
    valgrind: bool = False
    by_hand: bool = True  # also make what is run by hand: build/probes, the loader's harness
    rerun: str = ""  # the options that repeat this run, for messages
    stand_ins: StandIns = StandIns()


@dataclass(frozen=True)
class Row:
    """A credit with its verdict: ok, FAIL, todo, skip or error."""

    credit: Credit
    verdict: str
    message: str = ""
    input: str = ""
    got: str = ""
    expected: str = ""
    hint: str = ""
    picture: Histogram | None = None
    waits: bool = False  # it was not looked at, for a row above must earn something first

    @property
    def earned(self) -> Fraction:
        return self.credit.points if self.verdict == "ok" else Fraction(0)


@dataclass(frozen=True)
class ItemResult:
    """An item with its rows. `possible` leaves out what this machine cannot tell."""

    item: Item
    rows: tuple[Row, ...]
    seconds: float
    rerun: str

    @property
    def earned(self) -> Fraction:
        return sum((row.earned for row in self.rows), Fraction(0))

    @property
    def possible(self) -> Fraction:
        counted = (row for row in self.rows if row.verdict not in ("skip", "error"))
        return sum((row.credit.points for row in counted), Fraction(0))

    @property
    def verdict(self) -> str:
        verdicts = {row.verdict for row in self.rows}
        if "error" in verdicts:
            return "error"
        if verdicts == {"skip"}:
            return "skip"
        if self.earned == self.possible:
            return "ok"
        if self.earned > 0:
            return "part"
        return "todo" if verdicts <= {"todo", "skip"} else "FAIL"

    @property
    def first(self) -> Row | None:
        """The row to look at: the first that is not ok, lost points before skipped ones."""
        for verdicts in (("error",), ("FAIL", "todo"), ("skip",)):
            for row in self.rows:
                if row.verdict in verdicts:
                    return row
        return None


@dataclass(frozen=True)
class PartResult:
    """One table: its items, the compile errors above them, and remarks that earn nothing."""

    part: Part
    items: tuple[ItemResult, ...]
    broken: tuple[Built, ...] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)  # item id → text

    @property
    def start(self) -> ItemResult | None:
        """Where to start: the topmost item with a row that failed, else the topmost unwritten."""
        for verdicts in (("FAIL", "error"), ("todo",)):
            for item in self.items:
                if any(row.verdict in verdicts and not row.waits for row in item.rows):
                    return item
        return None

    @property
    def earned(self) -> Fraction:
        return sum((item.earned for item in self.items), Fraction(0))

    @property
    def possible(self) -> Fraction:
        return sum((item.possible for item in self.items), Fraction(0))

    @property
    def total(self) -> Fraction:
        return sum((item.item.points for item in self.items), Fraction(0))


@dataclass(frozen=True)
class Result:
    """A run: what was graded with which tools, and what came out. `seconds` of wall time."""

    rubric: Rubric
    options: Options
    tools: Toolchain
    parts: tuple[PartResult, ...]
    seconds: float
    restarted: int  # programs that ASan could only start without address randomisation

    @property
    def seed(self) -> int:
        return self.rubric.seed if self.options.fresh is None else self.options.fresh
