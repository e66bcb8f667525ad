"""Writes assignments/*/golden/bars.tsv, what learning rows want: `python -m staff.bars`.

A bar is the mean of the reference's losses over SEEDS, plus three standard deviations. None of
these seeds is the one that students are graded on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from autograder import observe, rubric, run, sandbox
from autograder.build import Source, toolchain
from autograder.files import write_whole
from autograder.rubric import Credit, Rubric
from staff.trees import BUILD

SEEDS = (1, 2, 3, 4, 5)
DEVIATIONS = 3
SAME = 1e-6  # relative: sums are added in other orders on other processors


def learning(loaded: Rubric) -> list[Credit]:
    """Those that are decided by a bar, one for each case."""
    credits = (c for _, item in loaded.items() for c in item.credits if c.kind == "learning")
    return list({(credit.probe, credit.case): credit for credit in credits}.values())


def losses(loaded: Rubric, credit: Credit) -> list[float]:
    """The reference's, one for each seed."""
    source = Source(credit.probe, loaded.probe(credit.probe))
    built = run.programs([source], run.REFERENCE, toolchain(BUILD), BUILD, 1)[credit.probe]
    assert built.binary is not None, built.error
    cases = [
        observe.Case(built.binary, credit.case, sandbox.Limits(), seed, forked=True)
        for seed in SEEDS
    ]
    loss_of = run.checks_of(loaded, credit.probe).loss_of
    seen = observe.run(cases, BUILD, len(cases), cached=True)
    return [loss_of(credit.case, observed.values["logits"]) for observed in seen]


def table(loaded: Rubric) -> str:
    """Task, bar, mean and deviation, a line each, under a line that says what they are."""
    lines = [f"# loss at the end; reference, seeds {SEEDS[0]} to {SEEDS[-1]}; python -m staff.bars"]
    lines.append("# task\tbar\tmean\tdeviation")
    for credit in learning(loaded):
        found = losses(loaded, credit)
        mean, deviation = statistics.mean(found), statistics.stdev(found)
        bar = mean + DEVIATIONS * deviation
        lines.append(f"{credit.case}\t{bar:.9g}\t{mean:.9g}\t{deviation:.9g}")
    return "\n".join(lines) + "\n"


def agree(stored: str, made: str) -> bool:
    """Whether the words are the same and the numbers close."""
    old, new = stored.split(), made.split()
    return len(old) == len(new) and all(map(_alike, old, new))


def _alike(old: str, new: str) -> bool:
    if old == new:
        return True
    try:
        return abs(float(old) - float(new)) <= SAME * abs(float(new))
    except ValueError:
        return False


def path_of(loaded: Rubric) -> Path:
    return loaded.folder / "golden" / "bars.tsv"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with what is there")
    check = parser.parse_args().check
    wrong = 0
    for loaded in map(rubric.load, rubric.assignments()):
        path = path_of(loaded)
        if not learning(loaded):
            continue
        made = table(loaded)
        stored = path.read_text(encoding="utf-8") if path.exists() else ""
        if not agree(stored, made) and check:
            print(f"{path.parent.parent.name}: bars.tsv is not what python -m staff.bars writes")
            wrong += 1
        elif not agree(stored, made):
            write_whole(path, made.encode())
            print(f"{path.parent.parent.name}: bars.tsv written")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
