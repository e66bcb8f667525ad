"""The command line: what it prints, writes, and exits with."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import cli, rubric, run
from autograder.commands import grade as grading
from autograder.rubric import ROOT
from staff.trees import lay


def grade(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "grade"), *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LC_ALL": "C.UTF-8"} | (env or {}),
        cwd="/",
    )


def test_the_reference_earns_everything_and_exits_0() -> None:
    seen = grade("A0", "--reference")
    assert seen.returncode == 0, seen.stdout
    points = (
        "100 of 100 points" if run.real_data() else "98 of 98 points here; 2 more: run `make data`"
    )
    assert points in seen.stdout
    assert "test_dataloader: 5 of 5 subtests ok (not scored)" in seen.stdout


def test_the_stubs_print_0_of_100_and_every_row_todo() -> None:
    seen = grade("A0")
    assert seen.returncode == 1
    assert "A0 · C: 0 of 100 points." in seen.stdout
    rows = list(rubric.load("A0").items())
    assert len(re.findall(r"^ [> ] todo ", seen.stdout, re.MULTILINE)) == len(rows)
    assert "A0 · Python: 0 of 100 points." in seen.stdout
    assert seen.stdout.count("<- start here") == 2, "one a part"
    assert re.search(r"> todo  manual_seed .*<- start here", seen.stdout)


def test_rows_say_what_they_wait_for() -> None:
    seen = grade("A0")
    assert re.search(r"todo  loader pairs .* needs dataloader_init", seen.stdout)
    assert re.search(r"todo  clean compile.* waits for manual_seed", seen.stdout)


def test_a_failure_shows_input_got_expected_difference_hint_and_rerun(edited) -> None:
    folder = lay(edited("rand.h", "manual_seed(state, 5489)", "manual_seed(state, 5490)"))
    seen = grade("A0", "--student", str(folder))
    assert seen.returncode == 1
    block = seen.stdout[seen.stdout.index("> part  randint32") :]
    labels = re.findall(r"^ {11}(\w+) ", block[: block.index("randint64")], re.MULTILINE)
    assert labels == ["FAIL", "input", "got", "expected", "differs", "hint", "rerun", "by"]
    rerun = re.search(r"rerun +\./(grade .*)", block)[1]
    assert rerun == f"grade A0 randint32 --student {folder}"
    assert grade(*rerun.split()[1:]).returncode == 1
    by_hand = re.search(r"by hand +(.*)", block)[1].split()
    shown = subprocess.run(by_hand, cwd=ROOT, capture_output=True, text=True, check=False)
    assert shown.returncode in (0, 77), "another test may have linked the stubs there meanwhile"
    assert shown.stdout.startswith("begin i64[1] 1")


def test_everything_fits_in_80_columns_and_has_no_escapes_in_a_pipe(edited) -> None:
    tree = edited("rand.h", "    y ^= y >> 18;\n", "    y ^= y >> 19;\n")
    for words in (("A0",), ("A0", "-v", "--student", str(lay(tree))), ("A0", "--list")):
        text = grade(*words).stdout
        assert "\x1b" not in text
        long = [
            line
            for line in text.splitlines()
            if len(line) > 80 and not re.match(r" +(rerun|by hand) ", line)
        ]
        assert not long, long


def test_without_unicode_it_prints_ascii() -> None:
    seen = grade("A0", "randint32", env={"LC_ALL": "C"})
    assert "A0 - C: 0 of 4 points." in seen.stdout
    assert seen.stdout.isascii()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("A9",), "no assignment A9; there is A0"),
        (("A0", "roll"), "nothing is called roll; see"),
        (("A0", ""), "nothing is called ; see"),
        (("A0", "nonsense"), "nothing is called nonsense; see ./grade A0 --list"),
        (("A0", "randit32"), "nothing is called randit32; did you mean randint32?"),
        (("randint32",), "no assignment randint32; did you mean ./grade A0 randint32?"),
        (("A0", "--student", "/nonexistent"), "/nonexistent: no folder llmc in it"),
        (("A0", "--reference", "--student", "."), "--reference or --student, not both"),
        (("A0", "-j", "0"), "-j 0: at least 1"),
        (("A0", "--json", "/nonexistent/x.json"), "/nonexistent/x.json:"),
        (("A0", "--fresh", "-5"), "the seed -5 is not in"),
        (("why",), "usage"),
        (("why", "nonsense"), "no row is called nonsense; see ./grade A0 --list"),
        (("pack", "A9"), "no assignment A9; there is A0"),
        (("start", "A0"), "these are the stubs themselves; name another folder"),
        (("A0", "--gdb", "--valgrind"), "--gdb without --valgrind"),
        (("A0", "--frob"), "usage"),
        (("start", "A0", "--student", "/nonexistent"), "/nonexistent: no such folder"),
        (("A0", "--fresh", "x"), "the seed x is not in"),
    ],
)
def test_wrong_usage_exits_2_and_says_why(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = cli.main(words)
    except SystemExit as left:
        status = left.code
    assert status == 2
    assert message in capsys.readouterr().err


def test_names_select_items_prefixes_and_parts(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*names: str) -> int:
        assert cli.main(["A0", *names, "--list"]) == 0
        text = capsys.readouterr().out
        return len(re.findall(r"^  \S.* +\d+(  \w+)?$", text, re.MULTILINE))

    rows = [item.id for _, item in rubric.load("A0").items()]
    assert shown() == shown("c") + shown("python") == len(rows)
    assert shown("loader pairs") == 1
    assert shown("randint32") == 1
    assert shown("rand.h") == shown("llmc/rand.h") == shown("c", "rand") > 12
    assert shown("rand") == shown("rand.h") + shown("rand.py")
    assert shown("randf") == 2
    assert shown("c", "random_u32") == shown("python", "random_u32") == 1
    assert shown("normal_fill") == 1
    assert shown("loader", "clean") == 3


def test_json_has_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    grade("A0", "randint32", "clean", "--json", str(path))
    document = json.loads(path.read_text())
    assert document["schema"] == "llmc-grade/1"
    assert (document["assignment"], document["mode"], document["seed"]) == ("A0", "public", 137)
    assert set(document["tool"]) == {"version", "compiler", "sanitizers", "sandbox"}
    (part,) = document["parts"]
    assert (part["part"], part["score"], part["possible"], part["total"]) == ("c", "0", "14", "14")
    fields = ["id", "title", "points", "earned", "verdict", "seconds", "message"]
    fields += ["input", "got", "expected", "hint", "rerun", "credits"]
    assert [list(item) for item in part["items"]] == [fields, fields]


def test_json_is_valid_from_the_start_and_after_a_fault(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "result.json"

    def stumble(*_: object) -> None:
        document = json.loads(path.read_text())
        verdicts = {item["verdict"] for part in document["parts"] for item in part["items"]}
        assert verdicts == {"error"}
        raise RuntimeError("stumbled")

    monkeypatch.setattr(run, "grade", stumble)
    assert cli.main(["A0", "--json", str(path)]) == 3
    assert json.loads(path.read_text())["parts"][0]["skipped"] == "100"


def test_a_fault_of_a_check_is_never_the_students(monkeypatch, graded) -> None:
    original = run.checks_of

    def broken(rubric, probe: str):
        module = original(rubric, probe)
        if probe == "sampler":
            module.random_u32 = lambda seen: 1 / 0
        return module

    monkeypatch.setattr(run, "checks_of", broken)
    result = graded(run.REFERENCE, "sample_softmax")
    item = result.parts[0].items[0]
    assert (item.verdict, item.earned, item.possible) == ("error", 8, 8)
    assert "ZeroDivisionError" in item.rows[0].message
    assert grading._status(result) == 3


def test_fresh_needs_the_reference(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setattr(grading, "REFERENCE", tmp_path)
    assert cli.main(["A0", "--fresh"]) == 2
    assert "this needs the reference" in capsys.readouterr().err


def test_staff_options_are_not_shown_without_staff() -> None:
    assert "--reference" in grading.parser(staff=True).format_help()
    assert "--reference" not in grading.parser(staff=False).format_help()
    assert "--fresh" not in grading.parser(staff=False).format_help()


@pytest.mark.slow
def test_files_named_like_modules_change_nothing(tmp_path: Path) -> None:
    """Neither beside the grader nor in the working folder are they imported."""
    for name in ("grade", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("autograder", "assignments", "dev", "llmc"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    for name in ("json", "numpy", "rich", "tomllib", "hashlib", "conftest", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    seen = subprocess.run(
        [sys.executable, str(tmp_path / "grade"), "A0", "randint32"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert "hijacked" not in seen.stdout + seen.stderr
    assert "0 of 4 points" in seen.stdout


@pytest.mark.slow
def test_without_staff_the_folder_still_grades_and_fresh_says_why_not(tmp_path: Path) -> None:
    for name in ("grade", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("autograder", "assignments", "dev", "llmc"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    command = [sys.executable, str(tmp_path / "grade"), "A0"]
    stubs = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (stubs.returncode, "0 of 100 points" in stubs.stdout) == (1, True)
    fresh = subprocess.run([*command, "--fresh"], capture_output=True, text=True, check=False)
    assert fresh.returncode == 2
    assert "this needs the reference" in fresh.stderr


def test_names_may_stand_behind_options() -> None:
    for words in (("--reference", "randint64"), ("-v", "randint64", "--reference")):
        assert "2 of 2 points" in grade("A0", *words).stdout


@pytest.mark.parametrize("fault", ["compiler", "golden"])
def test_a_fault_of_ours_is_one_line_and_status_3(fault: str, monkeypatch, capsys) -> None:
    def fail(*_: object) -> None:
        raise OSError("cannot read it")

    if fault == "golden":
        monkeypatch.setattr(run, "golden", fail)
    else:
        monkeypatch.setattr(run.build, "programs", fail)
    assert cli.main(["A0", "randint64"]) == 3
    said = capsys.readouterr().err
    assert "the grader failed: cannot read it" in said
    monkeypatch.setattr(cli, "write_whole", fail)  # nor can it be written down
    assert cli.main(["A0", "randint64"]) == 3
    assert "Traceback" not in said


def test_json_to_a_device_leaves_it_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    seen = grade("A0", "randint64", "--json", str(pipe))
    assert seen.returncode == 1
    assert '"schema": "llmc-grade/1"' in reader.communicate(timeout=60)[0]
    assert pipe.is_fifo()


def test_what_a_student_names_a_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "llmc", tmp_path / "llmc")
    (tmp_path / "llmc" / "sampler.h").write_text("#include <\x1b[2J>\n")
    seen = grade("A0", "-v", "--student", str(tmp_path), "sample_softmax")
    assert "compile llmc/sampler.h" in seen.stdout
    assert "\x1b" not in seen.stdout


def test_reports_are_whole_though_nobody_reads_the_table(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    command = f"{sys.executable} {ROOT / 'grade'} A0 randint64 --reference --json {path} | true"
    subprocess.run(["sh", "-c", command], check=False, stderr=subprocess.DEVNULL)
    assert json.loads(path.read_text())["parts"][0]["score"] == "2"


@pytest.mark.slow
def test_right_code_keeps_its_points_with_all_descriptors_closed(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    command = f"{sys.executable} {ROOT / 'grade'} A0 --reference --json {path} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    part = json.loads(path.read_text())["parts"][0]
    assert part["score"] == part["possible"]


@pytest.mark.parametrize(
    "words", [("why", "\x1b[31mx"), ("A0", "\x1b[31m"), ("A0", "--student", "\x1b")]
)
def test_what_was_typed_cannot_steer_the_terminal(words: tuple[str, ...]) -> None:
    assert "\x1b" not in grade(*words).stderr


def test_a_report_has_a_file_of_its_own_outside_llmc(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "llmc", tmp_path / "llmc")
    words = ("A0", "randint64", "--student", str(tmp_path), "--json")
    source = tmp_path / "llmc" / "sampler.h"
    for target in (source, tmp_path):
        assert "no place for a report" in grade(*words, str(target)).stderr
    assert source.read_bytes() == (ROOT / "llmc" / "sampler.h").read_bytes()
    twice = grade(*words, str(tmp_path / "x"), "--html", str(tmp_path / "x"))
    assert (twice.returncode, "two reports into one file" in twice.stderr) == (2, True)
