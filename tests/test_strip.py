"""Stubs: what remains of a region, and what is refused."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from autograder import rubric
from autograder.rubric import ROOT
from staff.strip import SOURCE, TARGET, Drift, drift, strip

C = """int f(void) {
    // TODO (A0): f
    // HINT: think
    // BEGIN SOLUTION
    return 3;
    // END SOLUTION
}
"""
PYTHON = """def f():
    # TODO (A2): f
    # BEGIN SOLUTION
    return 3
    # END SOLUTION
"""


def test_a_region_becomes_one_line_and_todo_and_hint_stay() -> None:
    assert strip(C, "f.h") == (
        'int f(void) {\n    // TODO (A0): f\n    // HINT: think\n    TODO("A0: f");\n}\n'
    )
    assert strip(PYTHON, "f.py") == (
        'def f():\n    # TODO (A2): f\n    raise NotImplementedError("A2: f")\n'
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (C.replace("    // END SOLUTION\n", ""), "f.h:4: BEGIN SOLUTION without its partner"),
        (C.replace("    // BEGIN SOLUTION\n", ""), "f.h:5: END SOLUTION without its partner"),
        (C.replace("// TODO (A0): f", "// f"), "f.h:4: a region without `TODO"),
        (C.replace("// BEGIN SOLUTION", "// begin solution"), "f.h:4: a marker must stand alone"),
        (C.replace("// BEGIN SOLUTION", "x(); // BEGIN SOLUTION"), "f.h:4: a marker must stand"),
        (C.replace("return 3;", "// BEGIN SOLUTION"), "f.h:5: BEGIN SOLUTION without its partner"),
        ("// TODO (A0): g\n", "`TODO (A0): g` without a region"),
    ],
)
def test_what_cannot_be_stripped_is_named(text: str, words: str) -> None:
    with pytest.raises(Drift) as fault:
        strip(text, "f.h")
    assert words in str(fault.value)


def test_the_students_tree_is_the_stripped_reference() -> None:
    assert drift(SOURCE, TARGET) == []


def test_drift_is_found_in_every_form(tmp_path: Path) -> None:
    target = tmp_path / "llmc"
    shutil.copytree(TARGET, target)
    (target / "rand.h").write_text("changed\n")
    (target / "todo.h").unlink()
    (target / "orphan.h").write_text("\n")
    assert drift(SOURCE, target) == [
        "llmc/orphan.h: not in the reference",
        "llmc/rand.h: differs from the stripped reference",
        "llmc/todo.h: differs from the stripped reference",
    ]


def test_no_line_of_a_solution_is_in_the_students_tree() -> None:
    for path in SOURCE.iterdir():
        inside, solution = False, []
        for line in path.read_text().splitlines():
            inside = inside or "BEGIN SOLUTION" in line
            if inside and len(line.strip()) > 25 and "SOLUTION" not in line:
                solution.append(line.strip())
            inside = inside and "END SOLUTION" not in line
        stub = (TARGET / path.name).read_text()
        assert not [line for line in solution if line in stub], path.name


def test_grep_lists_the_work() -> None:
    text = "".join(path.read_text() for path in sorted((ROOT / "llmc").iterdir()))
    functions = {name for _, item in rubric.load("A0").items() for name in item.functions}
    assert set(re.findall(r"TODO \(A0\): ([\w.]+)", text)) == functions
