"""What a probe can come to import: all of it, and of other modules none."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from autograder import imports, rubric, sandbox
from autograder.rubric import ASSIGNMENTS
from autograder.run import REFERENCE
from staff.trees import Tree, grade_tree, lost

TREE = {f"llmc/{name}.py": b"" for name in ("a", "b", "c")}


@pytest.mark.parametrize(
    ("a", "reached"),
    [
        (b"", "a"),
        (b"import math\nfrom os.path import join", "a"),
        (b"import llmc.b", "ab"),
        (b"import llmc.b as other, llmc.c", "abc"),
        (b"from llmc import b", "ab"),
        (b"from llmc.b import x", "ab"),
        (b"from . import b, x", "ab"),
        (b"from .b import *", "ab"),
        (b"from .b.x import y", "ab"),
        (b"def f():\n    if 0:\n        from .c import x", "ac"),
        (b"import b", "ab"),
        (b"# -*- coding: latin-1 -*-\n# caf\xe9\nfrom . import b", "ab"),
        (b"from . import *", "abc"),
        (b"import importlib.util", "abc"),
        (b"from importlib import reload as again", "abc"),
        (b"__import__('llmc.b')", "abc"),
        (b"run = eval", "abc"),
        (b"import builtins\nbuiltins.exec('1')", "abc"),
        (b"from builtins import exec as run", "abc"),
        (b"class M:\n    def eval(self): ...\nM().eval()", "a"),
        (b"def (:", "abc"),
        (b"(" * 10_000, "abc"),
    ],
)
def test_what_a_module_imports_is_reached(a: bytes, reached: str) -> None:
    found = imports.needed(b"def case(seed):\n    from llmc.a import f", TREE | {"llmc/a.py": a})
    assert "".join(name[5] for name in found) == reached


def test_imports_are_followed_and_may_go_round() -> None:
    tree = TREE | {"llmc/a.py": b"from . import b", "llmc/b.py": b"from . import a, c"}
    assert imports.needed(b"from llmc import a", tree) == tree
    assert imports.needed(b"from llmc import c", tree) == {"llmc/c.py": b""}
    tree |= {"llmc/__init__.py": b"from . import a"}
    assert imports.needed(b"from llmc import c", tree) == tree


def test_each_probe_reaches_what_it_observes_and_not_everything() -> None:
    files = (REFERENCE / "llmc").glob("*.py")
    theirs = {f"llmc/{path.name}": path.read_bytes() for path in files}
    for probe in sorted(ASSIGNMENTS.glob("*/probes/*_py.py")):
        reached = imports.needed(probe.read_bytes(), theirs)
        assert f"llmc/{rubric.module(probe.stem)}.py" in reached
        assert len(reached) < len(theirs), probe


@pytest.mark.parametrize(("line", "again"), [("", False), ("from . import sampler\n", True)])
@pytest.mark.slow
def test_a_change_runs_again_whoever_can_import_it_and_nobody_else(
    line: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    run_all = sandbox.run_all

    def spy(jobs: list[sandbox.Job], *rest: Any) -> list[sandbox.Outcome]:
        ran.extend(job.argv[0] for job in jobs if job.observe)
        return run_all(jobs, *rest)

    def grade(end: str) -> set[str]:
        files = {
            name: (REFERENCE / "llmc" / name).read_text() for name in ("rand.py", "sampler.py")
        }
        files = {"rand.py": files["rand.py"] + line, "sampler.py": files["sampler.py"] + end}
        tree = Tree("imports", {name: text.encode() for name, text in files.items()})
        ran.clear()
        assert lost(grade_tree("A0", tree)) == []
        return {Path(name).name.rpartition("-")[0] for name in ran}

    grade("")
    monkeypatch.setattr(sandbox, "run_all", spy)
    assert grade(f"# {time.time_ns()}\n") == {"sampler_py"} | ({"rand_py"} if again else set())
