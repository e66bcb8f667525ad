"""--ref-deps: what stands in for what, and that no report passes it off as a student's."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from autograder import cli, deps, rubric, run
from autograder.results import Options
from autograder.rubric import ROOT

A2 = rubric.load("A2")


@pytest.fixture
def student(tmp_path: Path) -> Path:
    """The reference, with optim.py unwritten and model.py gone."""
    shutil.copytree(ROOT / "reference" / "llmc", tmp_path / "llmc")
    shutil.copy(ROOT / "llmc" / "optim.py", tmp_path / "llmc")
    (tmp_path / "llmc" / "model.py").unlink()
    return tmp_path


@pytest.mark.slow
def test_what_lacks_points_or_is_missing_is_stood_in_for(student: Path) -> None:
    options = Options(student=student, names=("python", "clip_step"), by_hand=False)
    assert [item.earned for item in run.grade(A2, options).parts[0].items] == [0]
    ready = deps.with_stand_ins(A2, options, lambda *_: None)
    assert list(ready.stand_ins.modules) == ["llmc/model.py", "llmc/optim.py"]
    (part,) = run.grade(A2, ready).parts
    assert [item.earned for item in part.items] == [1]
    assert part.remarks == {"clip_step": "with the reference's model, optim"}


@pytest.mark.slow
def test_the_file_under_test_is_never_stood_in_for(student: Path) -> None:
    options = Options(student=student, names=("python", "clip"), by_hand=False)
    ready = deps.with_stand_ins(A2, options, lambda *_: None)
    assert "llmc/optim.py" not in ready.stand_ins.modules
    optim = {"llmc/optim.py": deps.compiled("optim")}
    forced = replace(ready, stand_ins=replace(ready.stand_ins, modules=optim))
    assert [item.earned for item in run.grade(A2, forced).parts[0].items] == [0]


@pytest.mark.slow
def test_reports_say_what_stood_in(
    student: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    words = ["A2", "python", "clip_step", "--ref-deps", "--student", str(student)]
    assert cli.main([*words, "--json", str(tmp_path / "r.json")]) == 0
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["mode"] == "public, with the reference's model, optim"
    assert "--ref-deps" in document["parts"][0]["items"][0]["rerun"]
    assert "with the reference's model, optim" in capsys.readouterr().out


@pytest.mark.parametrize("report", ["html", "junit", "gradescope"])
def test_reports_that_count_are_of_the_students_own(
    report: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert cli.main(["A2", "--ref-deps", f"--{report}", str(tmp_path / "r")]) == 2
    assert f"--{report} without --ref-deps" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_score_with_stand_ins_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where you stand is what your own code earns."""
    remembered: list[object] = []
    monkeypatch.setattr("autograder.commands.state.remember", lambda *of: remembered.append(of))
    monkeypatch.setattr(deps, "with_stand_ins", lambda loaded, options, progress: options)
    cli.main(["A2", "python", "pair_counts", "--ref-deps"])
    assert remembered == []
    cli.main(["A2", "python", "pair_counts"])
    assert len(remembered) == 1


def test_without_a_reference_what_there_is_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deps, "REFERENCE", tmp_path / "none")
    monkeypatch.setattr(deps, "PREBUILT", tmp_path / "prebuilt")
    with pytest.raises(deps.NoReference, match=r"has no rand for .* here; what it has: none"):
        deps.compiled("rand")
    (tmp_path / "prebuilt" / "cpython-1").mkdir(parents=True)
    with pytest.raises(deps.NoReference, match="what it has: cpython-1"):
        deps.compiled("rand")
