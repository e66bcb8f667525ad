"""First use: .venv is made with uv or with venv, or one line says what is missing."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import venv
from autograder.rubric import ROOT

PINS = b"""
[project]
dependencies = ["a==1", "b==2"]
[project.optional-dependencies]
dev = ["c==3"]
"""


class Calls:
    """Stands in for subprocess.run, and pretends that the environment was made."""

    def __init__(self, folder: Path, status: int = 0):
        self.folder, self.status, self.seen = folder, status, []

    def __call__(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.seen.append(command)
        (self.folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        (self.folder / ".venv" / "bin" / "python").touch()
        return subprocess.CompletedProcess(command, self.status)


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    (tmp_path / "pyproject.toml").write_bytes(PINS)
    seen = Calls(tmp_path)
    monkeypatch.setattr(venv.subprocess, "run", seen)
    return seen


def test_without_uv_venv_and_pip_are_used_once(calls: Calls, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(venv.shutil, "which", lambda name: None)
    assert venv.ensure(tmp_path) == str(tmp_path / ".venv" / "bin" / "python")
    made, installed = calls.seen
    assert made[1:3] == ["-m", "venv"]
    assert installed[1:4] == ["-m", "pip", "install"] and installed[-2:] == ["a==1", "b==2"]
    venv.ensure(tmp_path)
    assert len(calls.seen) == 2


def test_with_uv_both_steps_are_uvs(calls: Calls, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(venv.shutil, "which", lambda name: "/opt/uv")
    venv.ensure(tmp_path)
    assert [command[:2] for command in calls.seen] == [["/opt/uv", "venv"], ["/opt/uv", "pip"]]


def test_an_extra_or_a_changed_pin_installs_again(calls: Calls, tmp_path: Path) -> None:
    venv.ensure(tmp_path)
    venv.ensure(tmp_path, ["dev"])
    assert calls.seen[-1][-3:] == ["a==1", "b==2", "c==3"]
    for pins in (PINS.replace(b"a==1", b"a==9"), PINS):  # there and back: both times
        count = len(calls.seen)
        (tmp_path / "pyproject.toml").write_bytes(pins)
        venv.ensure(tmp_path)
        assert len(calls.seen) == count + 1


def test_a_change_that_is_no_pin_installs_nothing(calls: Calls, tmp_path: Path) -> None:
    venv.ensure(tmp_path)
    (tmp_path / "pyproject.toml").write_bytes(PINS + b"[tool.ruff]\nline-length = 100\n")
    count = len(calls.seen)
    venv.ensure(tmp_path)
    assert len(calls.seen) == count


def test_no_network_is_one_line(calls: Calls, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(venv, "_make", lambda folder, uv: None)
    calls.status = 1
    with pytest.raises(venv.NoVenv, match="is there a network"):
        venv.ensure(tmp_path)


def test_without_ensurepip_and_uv_one_line_says_what_to_install(tmp_path: Path) -> None:
    """The real ./grade in a copy of the tree, with a Python whose ensurepip is hidden."""
    for name in ("grade", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "autograder", tmp_path / "autograder")
    hide = (
        "import runpy, shutil, sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'ensurepip' else find(name, *a)\n"
        "shutil.which = lambda name: None\n"
        "sys.argv = ['grade', 'A0']\n"
        f"runpy.run_path({str(tmp_path / 'grade')!r}, run_name='__main__')\n"
    )
    seen = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False)
    assert seen.returncode == 2
    assert seen.stderr.splitlines()[-1].startswith("grade: this Python cannot make a virtual env")
    assert "sudo apt install python3-venv" in seen.stderr
    assert "Traceback" not in seen.stderr
    assert not (tmp_path / ".venv").exists()


def test_an_old_python_is_told_so() -> None:
    text = (ROOT / "grade").read_text()
    old = text.replace("sys.version_info < (3, 11)", "sys.version_info < (99, 0)")
    assert old != text
    command = [sys.executable, "-c", old.replace("__file__", repr(str(ROOT / "grade")))]
    seen = subprocess.run(command, capture_output=True, text=True, check=False)
    assert seen.returncode == 2
    assert "needs Python 3.11 or newer" in seen.stderr


def test_the_pins_are_exact() -> None:
    pins = venv.packages((ROOT / "pyproject.toml").read_bytes(), ["dev", "data", "bench"])
    assert all(pin.count("==") == 1 for pin in pins)
    assert importlib.util.find_spec("numpy") is not None
