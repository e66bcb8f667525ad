"""The Python half's way: bundles, the server that forks, what a student's file may look like."""

from __future__ import annotations

import importlib.util
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import observe, python, sandbox
from autograder.build import Source
from autograder.observe import Case
from autograder.rubric import ROOT
from autograder.run import REFERENCE
from staff.trees import Tree, lost

PROBE = '''"""A probe of these tests."""

from observe import number


def case_fine(seed: int) -> None:
    from llmc.mine import answer

    number("answer", answer(seed))


def case_todo(seed: int) -> None:
    raise NotImplementedError("A0: PCG32.uniform")


def case_loop(seed: int) -> None:
    while True:
        pass


def case_kill(seed: int) -> None:
    import os
    import time

    os.kill(os.getppid(), 9)
    time.sleep(100)


CASES = {"fine": case_fine, "todo": case_todo, "loop": case_loop, "kill": case_kill}
'''


@pytest.fixture
def student(tmp_path: Path) -> Path:
    (tmp_path / "llmc").mkdir()
    (tmp_path / "llmc" / "mine.py").write_text("def answer(seed): return seed + 1\n")
    (tmp_path / "probe.py").write_text(PROBE)
    return tmp_path


def run(student: Path, *names: str, parallel: int = 2) -> dict[str, observe.Observed]:
    source = Source("mine_py", student / "probe.py")
    (built,) = python.bundles([source], student, student / "build").values()
    limits = sandbox.Limits(cpu_seconds=1)
    cases = [Case(built.binary, name, limits, 41, forked=True) for name in names]
    return dict(zip(names, observe.run(cases, student / "build", parallel), strict=True))


def test_a_case_reports_and_ends(student: Path) -> None:
    seen = run(student, "fine", "todo", "loop")
    assert (seen["fine"].values["answer"][0], seen["fine"].ending.kind) == (42, "ended")
    assert (seen["todo"].ending.kind, seen["todo"].unwritten) == ("todo", "PCG32.uniform")
    assert seen["loop"].ending.kind == "time"


def test_whoever_kills_the_server_takes_nobody_along(student: Path) -> None:
    seen = run(student, "loop", "kill", "fine")
    assert seen["kill"].ending == observe.Ending("signal", "SIGKILL")
    assert seen["loop"].ending.kind == "time"
    assert seen["fine"].ending.kind == "ended"


@pytest.mark.parametrize(
    ("content", "kind", "what"),
    [
        ("def answer(seed): return float(seed)\n", "raised", "`answer` is of type float, want"),
        ("def answer(seed): pass\n", "raised", "`answer` is None: is there a `return`?"),
        ("def answer(seed): return True\n", "raised", "`answer` is of type bool, want"),
        ("def answer(seed): return 2**70\n", "raised", "is 0x400000000000000000, want it within"),
        ("def answer(seed):\n    return [][seed]\n", "raised", "(llmc/mine.py:2)"),
        (
            "import numpy as np\ndef answer(seed): return np.int64(1)\n",
            "raised",
            "is of type int64, want it of",
        ),
        ("raise ValueError('at import')\n", "raised", "ValueError: at import (llmc/mine.py:1)"),
        ("import os\nos._exit(0)\n", "exit", "0"),
    ],
)
def test_an_exception_is_named_with_its_line(
    content: str, kind: str, what: str, student: Path
) -> None:
    (student / "llmc" / "mine.py").write_text(content)
    ending = run(student, "fine")["fine"].ending
    assert ending.kind == kind
    assert what in ending.what


def bundle(student: Path) -> python.Built:
    source = Source("mine_py", student / "probe.py")
    return python.bundles([source], student, student / "build")["mine_py"]


def test_what_is_no_python_says_where(student: Path) -> None:
    (student / "llmc" / "mine.py").write_text("x = 1\ndef answer(seed) return 1\n")
    error = bundle(student).error
    assert (error.where, error.what) == ("llmc/mine.py:2", "expected ':'")
    (student / "llmc" / "mine.py").write_text("(" * 100_000)
    assert bundle(student).error is not None
    (student / "llmc" / "mine.py").rename(student / "llmc" / "Mine.py")
    assert bundle(student).error.what == "it is missing; is it llmc/Mine.py?"


def test_only_what_is_new_is_compiled(student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (student / "llmc" / "other.py").write_text("x = 1\n")
    compiled: list[tuple[str, ...]] = []
    run_all = sandbox.run_all

    def spy(jobs: list[sandbox.Job], parallel: int) -> list[sandbox.Outcome]:
        compiled.extend(job.argv[4:] for job in jobs)
        return run_all(jobs, parallel)

    monkeypatch.setattr(sandbox, "run_all", spy)
    assert bundle(student).error is None
    (student / "llmc" / "mine.py").write_text("def answer(seed): return 2\n")
    assert bundle(student) == bundle(student)
    assert compiled == [("llmc/mine.py", "llmc/other.py"), ("llmc/mine.py",)]


def test_a_file_that_kills_the_compiler_is_named_though_others_are_known(
    student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file that does it is known; the script stands for such a compiler."""
    kills = "import os, sys\nif b'kill' in open(sys.argv[1], 'rb').read(): os.abort()\n"
    monkeypatch.setattr(python, "COMPILE", kills + python.COMPILE)
    assert bundle(student).error is None
    (student / "llmc" / "a.py").write_text("kill\n")
    for _ in range(2):
        error = bundle(student).error
        assert (error.where, error.what) == (
            "llmc/mine.py",
            "the compiler did not survive one of these files",
        )
    (student / "llmc" / "a.py").unlink()
    assert bundle(student).error is None


def test_modules_lie_compiled_beside_their_source(student: Path) -> None:
    folder = bundle(student).binary
    (compiled,) = (folder / "llmc" / "__pycache__").iterdir()
    source = importlib.util.source_from_cache(str(compiled))
    assert source == str(folder / "llmc" / "mine.py")


def test_what_a_probe_cannot_import_changes_no_bundle_of_staffs(student: Path) -> None:
    source = Source("mine_py", student / "probe.py")

    def made(other: str, by_imports: bool) -> Path | None:
        (student / "llmc" / "other.py").write_text(other)
        built = python.bundles([source], student, student / "build", by_imports=by_imports)
        return built["mine_py"].binary

    alone = made("x = 1\n", True)
    assert sorted(path.name for path in (alone / "llmc").glob("*.py")) == ["mine.py"]
    assert alone == made("x = 2\n", True)
    assert len({alone, made("x = 1\n", False), made("x = 2\n", False)}) == 3
    (student / "llmc" / "mine.py").write_text("from . import other\n")
    assert made("x = 1\n", True) != made("x = 2\n", True)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfdef answer(seed): return seed + 1\n",
        b"def answer(seed):\r\n    return seed + 1\r\n",
        b"# -*- coding: latin-1 -*-\n# caf\xe9\ndef answer(seed): return seed + 1",
    ],
)
def test_the_form_of_a_file_does_not_matter(content: bytes, student: Path) -> None:
    (student / "llmc" / "mine.py").write_bytes(content)
    assert run(student, "fine")["fine"].values["answer"][0] == 42


def test_numpy_is_imported_once(student: Path) -> None:
    """Forty cases that would each take a fifth of a second of CPU for it take less in all."""
    before = time_of_children()
    run(student, "fine")
    one = time_of_children() - before
    source = Source("mine_py", student / "probe.py")
    (built,) = python.bundles([source], student, student / "build").values()
    cases = [Case(built.binary, "fine", sandbox.Limits(), 41, forked=True)] * 40
    before = time_of_children()
    observe.run(cases, student / "build", 2)
    assert time_of_children() - before < 10 * one


def time_of_children() -> float:
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_a_case_can_be_run_by_hand(student: Path) -> None:
    fork = ROOT / "assignments" / "observe" / "fork.py"
    command = [sys.executable, str(fork), str(bundle(student).binary), "fine", "41"]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "answer i64 [42]" in seen.stdout


def test_a_syntax_error_costs_the_rows_of_its_file(graded, tmp_path: Path) -> None:
    shutil.copytree(REFERENCE / "llmc", tmp_path / "llmc")
    (tmp_path / "llmc" / "sampler.py").write_text("def (:\n")
    result = graded(tmp_path, "xorshift_u32", "splitmix64", "randint64")
    assert lost(result) == ["xorshift_u32"]
    (broken,) = [built for part in result.parts for built in part.broken]
    assert (broken.file, broken.error.where) == ("llmc/sampler.py", "llmc/sampler.py:1")


def test_the_reference_is_clean_under_both_parts_names(graded) -> None:
    result = graded(Tree("reference", {}), "python")
    (part,) = result.parts
    assert (part.part.id, part.earned, part.possible) == ("python", 100, 100)


def test_a_helper_with_an_endless_message_costs_itself_alone(student: Path) -> None:
    name = "a" * 400_000
    (student / "llmc" / "helper.py").write_text(f"def f({name}):\n    global {name}\n")
    assert bundle(student).error is None
    assert run(student, "fine")["fine"].ending.kind == "ended"


def test_bundles_made_at_once_or_spoilt_are_whole(student: Path) -> None:
    with multiprocessing.Pool(4) as pool:
        made = pool.map(bundle, [student] * 16, chunksize=1)
    assert [built.error for built in made] == [None] * 16
    (folder,) = {built.binary for built in made}
    assert folder is not None
    for last in (folder / python.PROBE, *(student / "build" / "cache" / "modules").iterdir()):
        last.unlink()
    assert bundle(student).binary == folder
    assert (folder / python.PROBE).exists()
