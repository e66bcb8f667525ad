"""Grades wrong solutions: each must lose exactly the items it names. `python -m staff.mutants A0`.

A mutant is one edit of a file of the reference, in reference/mutants/ASSIGNMENT/*.toml:

    [[mutant]]
    id = "randint64-low-first"
    pitfall = "puts the first draw into the low half"
    file = "rand.h"
    find = "(high << 32) | low"          # must occur exactly once
    replace = "(low << 32) | high"
    loses = ["randint64", ...]           # in the rubric's order, the mutated function's first

With --auto, mutants are made mechanically instead (staff/auto.py).
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from autograder import rubric
from autograder.rubric import ROOT, SUFFIXES
from autograder.run import REFERENCE
from staff import auto
from staff.trees import Tree, grade_all, lost

FOLDER = ROOT / "reference" / "mutants"


@dataclass(frozen=True)
class Mutant:
    id: str
    pitfall: str
    file: str
    find: str
    replace: str
    loses: tuple[str, ...]

    def tree(self) -> Tree:
        """The reference with this edit. Raises ValueError where `find` is not there just once."""
        text = (REFERENCE / "llmc" / self.file).read_text(encoding="utf-8")
        if text.count(self.find) != 1:
            raise ValueError(f"{self.id}: `find` occurs {text.count(self.find)} times, not once")
        edited = text.replace(self.find, self.replace).encode()
        return Tree(self.id, {self.file: edited}, items=(self.part,))

    @property
    def part(self) -> str:
        """The part that the file belongs to; the other never sees it."""
        return next(part for part, suffix in SUFFIXES.items() if self.file.endswith(suffix))


def load(assignment: str) -> list[Mutant]:
    """All mutants of an assignment. Raises ValueError for a double id or an unknown item."""
    items = [item.id for _, item in rubric.load(assignment).items()]
    mutants: list[Mutant] = []
    for path in sorted((FOLDER / assignment).glob("*.toml")):
        for raw in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            mutants.append(Mutant(**(raw | {"loses": tuple(raw["loses"])})))
    for mutant in mutants:
        places = [items.index(name) for name in mutant.loses]
        if not places or places != sorted(set(places)):
            raise ValueError(f"{mutant.id}: `loses` is empty or not in the rubric's order")
        if sum(other.id == mutant.id for other in mutants) != 1:
            raise ValueError(f"two mutants are called {mutant.id}")
    return mutants


def matrix(assignment: str, mutants: Sequence[Mutant]) -> int:
    """Prints a line for each mutant: what it lost, and whether that is what it names.

    Returns the number of mutants that lost something else.
    """
    items = [item.id for _, item in rubric.load(assignment).items()]
    wrong = 0
    for number, name in enumerate(items):
        print(" " * 36 + "| " * number + name)
    for mutant, result in zip(
        mutants, grade_all(assignment, [mutant.tree() for mutant in mutants]), strict=True
    ):
        gone = lost(result)
        cells = " ".join("x" if name in gone else "." for name in items)
        fine = tuple(gone) == mutant.loses
        wrong += not fine
        print(f"{mutant.id:36}{cells}" + ("" if fine else f"  named {list(mutant.loses)}"))
    print(f"{len(mutants) - wrong} of {len(mutants)} mutants lose exactly what they name")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("assignments", nargs="+", choices=rubric.assignments())
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", default="", help="mutants whose id begins so")
    which.add_argument("--auto", action="store_true", help="mutants made mechanically")
    parser.add_argument("--half", choices=rubric.SUFFIXES, help="with --auto: of this one alone")
    arguments = parser.parse_args()
    if arguments.auto:
        halves = (arguments.half,) if arguments.half else tuple(rubric.SUFFIXES)
        return max(auto.main(assignment, halves) for assignment in arguments.assignments)
    wrong = 0
    for assignment in arguments.assignments:
        mutants = [m for m in load(assignment) if m.id.startswith(arguments.only)]
        wrong += matrix(assignment, mutants)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
