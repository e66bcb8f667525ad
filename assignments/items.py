"""The rubrics' credits as pytest tests, for an IDE or CI: pytest -c assignments/pytest.ini.

The same run and the same verdicts as ./grade; pytest only shows them. A credit that is not written
yet fails; one that this machine cannot tell is skipped with the reason. LLMC_STUDENT names another
folder that holds llmc/.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from autograder import rubric  # noqa: E402  found through the line above
from autograder.results import Options, Row  # noqa: E402
from autograder.run import grade, real_data  # noqa: E402

CREDITS = [
    (name, f"{item.id}: {credit.says}", (credit.probe, credit.check))
    for name in rubric.assignments()
    for _, item in rubric.load(name).items()
    for credit in item.credits
]


@functools.cache
def rows(assignment: str) -> dict[tuple[str, str], Row]:
    """(probe, check) → row, of one run over the whole assignment."""
    student = Path(os.environ.get("LLMC_STUDENT", ROOT)).resolve()
    result = grade(rubric.load(assignment), Options(student=student, data=real_data()))
    found = (row for part in result.parts for item in part.items for row in item.rows)
    return {(row.credit.probe, row.credit.check): row for row in found}


IDS = ["-".join((name, *check)) for name, _, check in CREDITS]


@pytest.mark.parametrize(("assignment", "title", "check"), CREDITS, ids=IDS)
def test_credit(assignment: str, title: str, check: tuple[str, str]) -> None:
    row = rows(assignment)[check]
    if row.verdict == "skip":
        pytest.skip(row.message)
    if row.verdict != "ok":
        fields = ("message", "input", "got", "expected", "hint")
        lines = [f"{name:9}{getattr(row, name)}" for name in fields if getattr(row, name)]
        pytest.fail("\n".join([f"{row.verdict}: {title}", *lines]), pytrace=False)
