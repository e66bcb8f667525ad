"""What the tests share: a compiler, trees to grade, and the grader's own build folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder import build, rubric
from autograder.results import Options, Result
from autograder.run import REFERENCE, grade
from staff.trees import BUILD, Tree, lay


@pytest.fixture(scope="session")
def tools() -> build.Toolchain:
    return build.toolchain(BUILD)


@pytest.fixture
def edited(request: pytest.FixtureRequest) -> Callable[..., Tree]:
    """edited("rand.h", find, replace): the reference with one edit, named after the test."""

    def make(file: str, find: str, replace: str) -> Tree:
        text = (REFERENCE / "llmc" / file).read_text()
        assert text.count(find) == 1, f"`find` occurs {text.count(find)} times"
        name = "".join(c if c.isalnum() else "-" for c in request.node.name)
        return Tree(f"test-{name}", {file: text.replace(find, replace).encode()})

    return make


@pytest.fixture
def graded() -> Callable[..., Result]:
    """graded(tree, *names): grades a tree afresh, without what earlier runs saw."""

    def run(tree: Tree | Path, *names: str, **options: object) -> Result:
        student = lay(tree) if isinstance(tree, Tree) else tree
        chosen = {"student": student, "build": BUILD, "names": names, "parallel": 2} | options
        return grade(rubric.load("A0"), Options(**chosen))

    return run


def wait_for(condition: Callable[[], bool]) -> None:
    """Until the condition holds; pytest's own time limit ends a wait that is in vain."""
    while not condition():
        time.sleep(0.05)
