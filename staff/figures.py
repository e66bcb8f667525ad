"""The figures of docs/benchmarks.md: what was measured, beside what is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

MIB = 1 << 20


@dataclass(frozen=True)
class Figure:
    """One row of the table: the value of each round, and the most or the least that is wanted."""

    name: str
    values: tuple[float, ...]
    unit: str
    most: float | None = None
    least: float | None = None

    def line(self) -> str:
        low, middle, high = min(self.values), median(self.values), max(self.values)
        wanted, verdict = "", ""
        if self.most is not None:
            wanted, verdict = f"at most {self.most:.2f}", _yes(middle <= self.most)
        if self.least is not None:
            wanted, verdict = f"at least {self.least:.2f}", _yes(middle >= self.least)
        numbers = f"{middle:.2f} | {low:.2f} .. {high:.2f}"
        return f"| {self.name} | {self.unit} | {numbers} | {wanted} | {verdict} |"


def _yes(holds: bool) -> str:
    return "yes" if holds else "**no**"
