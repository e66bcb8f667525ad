"""Writes assignments/*/golden/bars.tsv, what learning rows want: `python -m staff.bars`.

A bar is the mean of the reference's losses over SEEDS, plus three standard deviations. None of
these seeds is the one that students are graded on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from autograder import milestone, observe, rubric, run, sandbox
from autograder.build import Source, toolchain
from autograder.files import write_whole
from autograder.rubric import ROOT, Credit, Rubric
from staff.trees import BUILD

SEEDS = (1, 2, 3, 4, 5)
DEVIATIONS = 3
# Relative: sums are added in other orders on other processors, and float32 runs part for good.
SAME, FLOAT32 = 1e-6, 0.5


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
    loss_of = run.checks_of(loaded, credit.probe)._loss_of
    seen = observe.run(cases, BUILD, len(cases), cached=True)
    return [loss_of(credit.case, observed.values["logits"]) for observed in seen]


def of_milestone(loaded: Rubric) -> Iterator[tuple[str, list[float]]]:
    """Each step of the milestone that is measured against a bar, with the reference's losses; no
    step whose data are not here."""
    data = ROOT / ".data"
    for step in milestone.steps(loaded)[1]:
        if step.measure == "digits" and (data / step.needs).exists():
            found = []
            for seed in SEEDS:
                with milestone.empty_folder(BUILD) as folder:
                    more, content = ("--seed", str(seed)), (data / step.needs).read_bytes()
                    tensors = milestone.trained(step, run.REFERENCE, folder, content, more)
                    found.append(milestone.digits_loss(tensors, content)[0])
            yield step.id, found


def table(loaded: Rubric, stored: str, with_milestone: bool) -> str:
    """Task, bar, mean and deviation, a line each, under a line that says what they are. What the
    milestone is held to stays as it was stored, unless it is to be measured, and can be."""
    steps = {step.id for step in milestone.steps(loaded)[1]}
    rows = {row.split("\t")[0]: row for row in stored.splitlines() if not row.startswith("#")}
    rows = {task: row for task, row in rows.items() if task in steps}
    measured = [(credit.case, losses(loaded, credit)) for credit in learning(loaded)]
    measured += of_milestone(loaded) if with_milestone else []
    for task, found in measured:
        mean, deviation = statistics.mean(found), statistics.stdev(found)
        bar = mean + DEVIATIONS * deviation
        rows[task] = f"{task}\t{bar:.9g}\t{mean:.9g}\t{deviation:.9g}"
    head = f"# loss at the end; reference, seeds {SEEDS[0]} to {SEEDS[-1]}; python -m staff.bars"
    order = sorted(rows)
    lines = (head, "# task\tbar\tmean\tdeviation", *(rows[task] for task in order))
    return "\n".join(lines) + "\n"


def agree(stored: str, made: str) -> bool:
    """Whether the words are the same and the numbers close."""
    old, new = stored.splitlines(), made.splitlines()
    return len(old) == len(new) and all(map(_alike, old, new))


def _alike(old: str, new: str) -> bool:
    if old == new or old.startswith("#"):
        return old == new
    (task, *was), (name, *now) = old.split("\t"), new.split("\t")
    bound = FLOAT32 if task == "digits" else SAME
    return task == name and all(
        abs(float(x) - float(y)) <= bound * abs(float(y)) for x, y in zip(was, now, strict=True)
    )


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
        stored = path.read_text(encoding="utf-8") if path.exists() else ""
        made = table(loaded, stored, with_milestone=not check)
        if not agree(stored, made) and check:
            print(f"{path.parent.parent.name}: bars.tsv is not what python -m staff.bars writes")
            wrong += 1
        elif not agree(stored, made):
            write_whole(path, made.encode())
            print(f"{path.parent.parent.name}: bars.tsv written")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
