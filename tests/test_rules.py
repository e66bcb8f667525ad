"""Who may use whom, and the few rules of style that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.rubric import ROOT

GRADER = sorted((ROOT / "autograder").rglob("*.py"))
CHECKS = sorted(ROOT.glob("assignments/*/checks/*.py"))


def tracked() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            module = f"llmc.{node.module}" if node.level else node.module
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def tops(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


def test_checks_use_observations_and_comparisons_alone() -> None:
    for path in CHECKS:
        ours = {name for name in imports(path) if name.startswith("autograder")}
        allowed = ("autograder.compare", "autograder.observe")
        assert all(name.startswith(allowed) for name in ours), path
        assert tops(path) <= {"autograder", "itertools", "json", "math", "numpy", "re"}, path


def test_probes_use_the_students_code_and_the_helpers_alone() -> None:
    for path in sorted(ROOT.glob("assignments/*/probes/*.c")):
        quoted = re.findall(r'#include "([^"]+)"', path.read_text())
        helpers = {found.name for found in path.parents[2].glob("observe/*.h")}
        assert set(quoted) <= {f"llmc/{path.stem}.h", *helpers}, path
        assert "golden" not in path.read_text().replace("_golden", "")


def test_python_probes_use_the_students_code_and_the_helpers_alone() -> None:
    for path in sorted(ROOT.glob("assignments/*/probes/*.py")):
        helpers = {found.stem for found in path.parents[2].glob("observe/*.py")}
        assert tops(path) <= {*sys.stdlib_module_names, "llmc", "numpy", *helpers}, path
        assert "golden" not in path.read_text(), path


def test_the_students_modules_use_few_others_and_themselves() -> None:
    allowed = {*sys.stdlib_module_names, "llmc", "numpy", "regex", "safetensors"}
    for path in sorted((ROOT / "reference" / "llmc").glob("*.py")):
        pictures = {"matplotlib"} if path.name == "__main__.py" else set()
        assert tops(path) <= allowed | pictures, path


def test_only_the_sandbox_starts_processes() -> None:
    starters = re.compile(r"\b(subprocess|os\.(system|popen|fork|exec\w*|spawn\w*))\b")
    allowed = {"sandbox.py", "venv.py", "zygote.py"}  # venv.py runs pip, before there is a grader
    assert {path.name for path in GRADER if starters.search(path.read_text())} == allowed


def test_only_report_prints() -> None:
    printers = [path for path in GRADER if re.search(r"\bprint\(", path.read_text())]
    others = [path.name for path in printers if path.parent.name != "report"]
    assert others == ["venv.py"]


def test_nobody_uses_cli_or_staff() -> None:
    for path in [*GRADER, *CHECKS]:
        assert not {"staff", "reference", "tests"} & tops(path), path
        assert "autograder.cli" not in imports(path), path


MAY_USE = {  # of the modules that grade; commands and reports stand above all of them
    "files": "",
    "rubric": "",
    "sandbox": "",
    "sources": "",
    "imports": "",
    "build": "files rubric sandbox sources",
    "zygote": "sandbox",
    "python": "build files imports rubric sandbox sources",
    "observe": "files sandbox zygote",
    "compare": "build observe sandbox",
    "results": "build compare rubric",
    "run": "build compare files imports observe python results rubric sandbox sources",
    "milestone": "compare observe rubric sandbox",
    "deps": "build files results rubric run",
}


@pytest.mark.parametrize("module", MAY_USE)
def test_a_module_knows_only_those_below_it(module: str) -> None:
    found = imports(ROOT / "autograder" / f"{module}.py")
    ours = {name.split(".")[1] for name in found if name.startswith("autograder.")}
    assert ours <= set(MAY_USE[module].split())


def test_only_the_command_line_hands_over_to_staff() -> None:
    named = [path.name for path in GRADER if "import_module" in path.read_text()]
    assert named == ["cli.py"]


def test_the_students_headers_use_the_standard_library_and_themselves() -> None:
    for path in sorted((ROOT / "reference" / "llmc").glob("*.h")):
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            assert (path.parent / name).exists(), f"{path.name} includes {name}"
        assert set(re.findall(r"#include <([^>]+)>", path.read_text())) <= STANDARD, path


def test_venv_and_grade_run_on_the_standard_library() -> None:
    for path in (
        ROOT / "grade",
        ROOT / "autograder" / "venv.py",
        ROOT / "autograder" / "sandbox.py",
    ):
        assert tops(path) <= {*sys.stdlib_module_names, "autograder"}, path


STANDARD = {
    "ctype.h",
    "errno.h",
    "limits.h",
    "math.h",
    "stdarg.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
}
STANDARD |= {"string.h", "glob.h", "sys/types.h"}  # the last two are POSIX
CODE = {".py", ".c", ".h"}


def test_files_open_with_one_sentence_saying_what_they_are() -> None:
    for path in tracked():
        if "variants" in path.parts or path.suffix not in CODE:
            continue
        text = path.read_text()
        if path.suffix == ".py":
            first = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        else:
            first = text.partition("\n")[0]
            assert first.startswith(f"// {path.name}: "), path
        assert len(first) > 15, path


def test_no_line_is_longer_than_100() -> None:
    for path in tracked():
        if "variants" in path.parts or path.suffix not in CODE | {".toml", ".yml"}:
            continue
        long = [n for n, line in enumerate(path.read_text().splitlines(), 1) if len(line) > 100]
        assert not long, f"{path}: {long}"


def test_nothing_names_a_registry_or_a_place_of_one_machine() -> None:
    hosts = re.compile(
        "|".join(["py" + r"pi\.org", "python" + "hosted", r"/ro" + "ot/", r"/wo" + "rk/"])
    )
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        assert not hosts.search(text), f"{path}: {hosts.search(text)}"
