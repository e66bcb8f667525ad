"""docs/instructor.md, followed word for word: its edits fit, and its commands say what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from autograder import rubric
from autograder.rubric import ROOT
from staff import prose

DOC = (ROOT / "docs" / "instructor.md").read_text(encoding="utf-8")
# An edit is a line of prose that names the file and the place, and a block: text to insert there,
# or a diff, whose hunks are parted by @@. A run is a block of commands, and a block of lines that
# its output has, if one stands right below.
STEP = re.compile(
    r"(?P<place>In|At the end of)\s`(?P<path>[^`\n]+)`"
    r"(?:,\sabove(?P<first>\sthe\sfirst)?\s`(?P<line>[^`\n]+)`)?:\n\n"
    r"```(?P<tag>\w+)\n(?P<body>.*?)^```$"
    r"|^```sh\n(?P<commands>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
ROW = "randbelow"
GAPS = {"c": "\n", "md": "\n", "python": "\n\n"}  # below what is inserted
TIMES = re.compile(r"\d+\.\d\d s")
# What `make check` and `make test` look at that this row can break.
ALL_OF_IT = """
.venv/bin/python -m staff.strip --check
.venv/bin/python -m staff.golden --check
.venv/bin/python -m staff.handouts --check
.venv/bin/ruff check assignments reference
.venv/bin/ruff format --check assignments reference
.venv/bin/clang-format --dry-run -Werror reference/llmc/rand.h assignments/A0/probes/rand.c
.venv/bin/python -m pytest tests/test_handouts.py tests/test_golden.py
.venv/bin/python -m pytest tests/test_contract.py -k "correspond or first_item or pedantic"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the repository's files, with the packages of this one."""
    if any(item.id == ROW for _, item in rubric.load("A0").items()):
        pytest.skip("the page was followed in this tree")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


def steps() -> list[dict[str, str]]:
    return [match.groupdict(default="") for match in STEP.finditer(DOC)]


def edit(root: Path, step: dict[str, str]) -> None:
    """Applies one edit; what it is about must be there once."""
    path = root / step["path"]
    text = path.read_text(encoding="utf-8")
    if step["tag"] == "diff":
        for hunk in step["body"].split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            old, new = ("".join(x[1:] for x in lines if x[0] in signs) for signs in (" -", " +"))
            assert text.count(old) == 1, f"{path}: {old}"
            text = text.replace(old, new)
    elif step["place"] == "At the end of":
        text += step["body"]
    else:
        found = list(re.finditer(rf"^ *{re.escape(step['line'])}$", text, re.MULTILINE))
        assert len(found) == 1 or (found and step["first"]), f"{path}: {step['line']}"
        at = found[0].start()
        text = text[:at] + step["body"] + GAPS.get(step["tag"], "") + text[at:]
    path.write_text(text, encoding="utf-8")


def run(root: Path, commands: str) -> subprocess.CompletedProcess[str]:
    ours = ("MAKE", "MFLAGS", "PYTEST", "PYTHON", "COLUMNS")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = ["bash", "-c", commands]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)


def plain(text: str) -> list[str]:
    """Its lines, without times and indentation."""
    return [" ".join(TIMES.sub("", line).split()) for line in text.splitlines()]


def test_the_edits_fit(checkout: Path) -> None:
    edits = [step for step in steps() if step["path"]]
    assert len(edits) == DOC.count("\n```") // 2 - DOC.count("\n```sh\n") - DOC.count("\n```text\n")
    for step in edits:
        edit(checkout, step)


def test_what_it_names_is_there() -> None:
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", DOC, flags=re.M | re.S))
    targets = {word for span in spans for word in re.findall(r"^make (\w+)", span)}
    assert targets <= prose.known().targets
    paths = [span for span in spans if re.fullmatch(r"\.?\w+/[\w./-]+", span)]
    missing = {path for path in paths if not (ROOT / path).exists()}
    assert {path for path in missing if not path.startswith(("build/", "DIR/"))} == set()
    assert len(targets) > 4 and len(paths) > 10


@pytest.mark.slow
def test_the_walk(checkout: Path) -> None:
    for step in steps():
        if step["path"]:
            edit(checkout, step)
        elif step["output"]:
            seen = run(checkout, step["commands"])
            missing = set(plain(step["output"])) - set(plain(seen.stdout))
            assert missing == set(), seen.stdout + seen.stderr
        else:
            seen = run(checkout, f"set -e\n{step['commands']}")
            assert seen.returncode == 0, seen.stdout + seen.stderr
    seen = run(checkout, f"set -e\n{ALL_OF_IT}")
    assert seen.returncode == 0, seen.stdout + seen.stderr
