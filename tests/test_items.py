"""The items as pytest tests: the same verdicts as ./grade, whatever lies around."""

from __future__ import annotations

import re
import subprocess
import sys

from autograder.rubric import ROOT


def test_on_the_stubs_every_credit_fails_as_todo() -> None:
    command = [sys.executable, "-m", "pytest", "-c", "assignments/pytest.ini"]
    seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert seen.returncode == 1
    assert re.search(r"^64 failed in ", seen.stdout, re.MULTILINE)
    assert seen.stdout.count("todo: manual_seed: fills the 624 words") >= 1
