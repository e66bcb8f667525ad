"""The commands beside grading, and the options that take a person along: on real trees."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import rubric
from autograder.commands import doctor
from autograder.compare import Histogram
from autograder.report import histogram
from autograder.rubric import ROOT
from staff.trees import lay
from tests.conftest import wait_for

UTF8 = {"LC_ALL": "C.UTF-8"}
FILES = [name for part in rubric.load("A0").parts for name in part.files]


def run(*words: str, root: Path = ROOT, **options: object) -> subprocess.CompletedProcess[str]:
    chosen = {"env": os.environ | UTF8, "cwd": "/", "check": False} | options
    command = [sys.executable, str(root / "grade"), *words]
    return subprocess.run(command, capture_output=True, text=True, **chosen)


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A folder as a student has it: stubs apart, no llmc/ yet, nothing of staff's."""
    for name in ("grade", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("autograder", "assignments", "dev", "handouts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "llmc", tmp_path / "stubs" / "llmc")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


# ---------------------------------------------------------------- where you stand


@pytest.mark.slow
def test_a_bare_grade_says_where_you_stand(pack: Path) -> None:
    first = run(root=pack)
    assert (first.returncode, "not graded yet: ./grade A0" in first.stdout) == (0, True)
    assert "llmc/ is new: the stubs" in first.stderr
    shutil.copy(ROOT / "reference" / "llmc" / "rand.h", pack / "llmc" / "rand.h")
    run("A0", "manual_seed", "next_state", "sample_softmax", root=pack)
    some = run(root=pack).stdout
    assert re.search(r"C +\[▉ +\] 5 of 100 points", some)
    rows = len(rubric.load("A0").parts[0].items)
    assert f"{rows - 3} rows were never graded" in some
    assert "next: sample_softmax" in some
    assert "changed since" not in some
    (pack / "llmc" / "rand.h").write_text((ROOT / "llmc" / "rand.h").read_text())
    assert "changed since: llmc/rand.h" in run(root=pack).stdout


@pytest.mark.slow
def test_others_trees_do_not_change_where_you_stand(pack: Path, edited) -> None:
    folder = lay(edited("rand.h", "    y ^= y >> 18;\n", "    y ^= y >> 17;\n"))
    run("A0", "randint64", "--student", str(folder), root=pack)
    assert not (pack / "build" / "state").exists()


@pytest.mark.slow
def test_only_what_was_edited_since_has_changed(pack: Path) -> None:
    run("A0", "randint64", "clean", root=pack)
    with (pack / "llmc" / "rand.h").open("a") as header:
        header.write("// more\n")
    assert re.search(r"changed since: llmc/rand.h$", run(root=pack).stdout, re.MULTILINE)


NO_NUMBER = '{"c/clean": {"earned": "1/0", "possible": "1", "verdict": "ok", "files": {}}}'


@pytest.mark.parametrize(
    "content", ["[", "[]", '{"c/clean": {}}', '{"c/clean": 1}', "[" * 10**5, NO_NUMBER]
)
def test_a_state_that_something_else_wrote_is_no_fault(pack: Path, content: str) -> None:
    (pack / "build" / "state").mkdir(parents=True)
    (pack / "build" / "state" / "A0.json").write_text(content)
    assert "not graded yet" in run(root=pack).stdout


# ---------------------------------------------------------------- the catalogue, why


def test_the_catalogue_has_each_credit_with_its_kind_and_each_reason() -> None:
    text = " ".join(run("A0", "--list").stdout.split())
    for _, item in rubric.load("A0").items():
        assert item.why in text
        for credit in item.credits:
            assert f"{credit.points} {credit.kind} {credit.says}" in text
    for kind in ("unit", "golden", "property", "statistical", "boundary"):
        assert f"{kind} {rubric.KINDS[kind]}" in text


@pytest.mark.parametrize(
    ("word", "row"),
    [
        ("randint32", "randint32"),
        ("loader pairs", "loader_pairs"),
        ("random_u32", "sample_softmax"),
    ],
)
def test_why_takes_a_row_its_title_or_a_function(word: str, row: str) -> None:
    seen = run("why", word)
    assert seen.returncode == 0
    assert seen.stdout.startswith(f"A0 C: {row}")
    assert f"./grade A0 {row}\n" in seen.stdout
    assert max(map(len, seen.stdout.splitlines())) <= 80


def test_why_says_where_the_function_stands_and_what_a_row_needs(pack: Path) -> None:
    run("start", "A0", root=pack)
    where = re.search(
        r"tokenizer_decode, (llmc/tokenizer.h):(\d+)", run("why", "tokenizer", root=pack).stdout
    )
    line = (pack / where[1]).read_text().splitlines()[int(where[2]) - 1]
    assert "TODO (A0): tokenizer_decode" in line
    text = (pack / "llmc" / "tokenizer.h").read_text()
    (pack / "llmc" / "tokenizer.h").write_text(re.sub(r".*(TODO|HINT).*\n", "", text))
    where = re.search(
        r"tokenizer_decode, (llmc/tokenizer.h):(\d+)", run("why", "tokenizer", root=pack).stdout
    )
    line = (pack / where[1]).read_text().splitlines()[int(where[2]) - 1]
    assert "tokenizer_decode(" in line, "without its TODO it is found by its definition"
    (pack / "llmc" / "tokenizer.h").write_text("")
    assert "tokenizer_decode, not found" in run("why", "tokenizer", root=pack).stdout
    assert re.search(r"needs +manual_seed, next_state", run("why", "clean", root=pack).stdout)


# ---------------------------------------------------------------- doctor


def test_the_doctor_says_what_is_here() -> None:
    seen = run("doctor")
    assert seen.returncode == 0
    assert re.search(r"^ ok C compiler +(gcc|clang) \d", seen.stdout, re.MULTILINE)
    assert max(map(len, seen.stdout.splitlines())) <= 80


def test_the_doctor_says_what_is_missing_what_that_skips_and_how_to_get_it(
    tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "apt").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(doctor, "real_data", lambda: None)
    monkeypatch.setattr(doctor.sandbox, "can_write", lambda *_: False)
    found = {finding.name: finding for finding in doctor.examine(tmp_path / "build")}
    assert not any(f.found for name, f in found.items() if name != "Python")
    assert found["C compiler"].needed
    assert "apt install gcc" in found["C compiler"].install
    assert found["valgrind"].without == "--valgrind"
    assert found["MPI"].install == "sudo apt install libopenmpi-dev"
    assert (found["real data"].without, found["real data"].install) == (
        "2 points are skipped",
        "make data",
    )
    assert found["large files"].without == "1 point is skipped"


# ---------------------------------------------------------------- start and pack


def test_the_first_use_of_a_pack_brings_the_stubs_and_later_ones_do_not(pack: Path) -> None:
    first = run("A0", "manual_seed", root=pack)
    assert first.returncode == 1
    assert "llmc/ is new: the stubs, as ./grade start brings them" in first.stderr
    assert run("A0", "manual_seed", root=pack).stderr == ""
    again = run("start", "A0", root=pack)
    assert (again.returncode, again.stdout.count("as handed out")) == (0, len(FILES))


def test_something_else_called_llmc_is_left_alone(pack: Path) -> None:
    (pack / "llmc").write_text("mine")
    for words in ((), ("A0",), ("why", "randint32")):
        seen = run(*words, root=pack)
        assert seen.returncode == 2
        assert "llmc: a folder belongs here" in seen.stderr
    assert (pack / "llmc").read_text() == "mine"


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_start_asks_before_it_touches_what_is_theirs(pack: Path, answer: str, status: int) -> None:
    run("start", "A0", root=pack)
    mine = pack / "llmc" / "rand.h"
    mine.write_text(mine.read_text().replace('TODO("A0: manual_seed");', "state->left_ = 1;"))
    edited = mine.read_text()
    stub = pack / "stubs" / "llmc" / "rand.h"
    stub.write_text(
        stub.read_text().replace("// Uniform on [0, 1): the low 53", "// Uniform: the low 53")
    )
    seen = run("start", "A0", root=pack, input=answer)
    assert seen.returncode == status
    assert "+// Uniform: the low 53" in seen.stdout
    if answer == "y\n":
        assert "state->left_ = 1;" in mine.read_text()
        assert "// Uniform: the low 53" in mine.read_text()
        assert (pack / "llmc" / "rand.h.yours").read_text() == edited
        assert "changed; yours is kept as llmc/rand.h.yours" in seen.stdout
    else:
        assert mine.read_text() == edited
        assert "yours; left as it is" in seen.stdout


def test_start_leaves_a_conflict_to_the_student_and_says_how(pack: Path) -> None:
    run("start", "A0", root=pack)
    for path in (pack / "llmc" / "rand.h", pack / "stubs" / "llmc" / "rand.h"):
        text = path.read_text()
        name = path.parent.parent.name
        path.write_text(
            text.replace("long long seed) {", f"long long {name.replace('-', '_')}) {{")
        )
    before = (pack / "llmc" / "rand.h").read_text()
    seen = run("start", "A0", root=pack, input="y\n")
    assert seen.returncode == 1
    assert "conflict: your line" in seen.stdout
    assert (pack / "llmc" / "rand.h").read_text() == before
    command = re.search(r"^  (cp .*)$", seen.stdout, re.MULTILINE)[1]
    subprocess.run(shlex.split(command), check=True)
    assert run("start", "A0", root=pack).returncode == 0, "after the command it is done with"


def test_pack_writes_an_archive_and_says_what_is_unwritten(tmp_path: Path) -> None:
    target = tmp_path / "mine.zip"
    seen = run("pack", "A0", "-o", str(target))
    assert seen.returncode == 0
    assert f"{target}: {len(FILES) + 2} files, sha256 " in seen.stdout
    assert re.search(r"unwritten +manual_seed, next_state", seen.stdout)
    assert target.read_bytes()[:2] == b"PK"
    assert run("pack", "A0", "-o", str(tmp_path)).returncode == 2
    assert "/no/such: no folder /no" in run("pack", "A0", "-o", "/no/such").stderr


def test_pack_refuses_what_does_not_compile_unless_anyway(edited, tmp_path: Path) -> None:
    folder = lay(edited("sampler.h", "    return n - 1;", "    return n - 1"))
    words = ("pack", "A0", "--student", str(folder), "-o", str(tmp_path / "x.zip"))
    seen = run(*words)
    assert (seen.returncode, (tmp_path / "x.zip").exists()) == (1, False)
    assert re.search(r"not packed: llmc/sampler.h:\d+: expected ';'", seen.stderr)
    anyway = run(*words, "--anyway")
    assert anyway.returncode == 0
    assert re.search(r"broken +llmc/sampler.h", anyway.stdout)


# ---------------------------------------------------------------- watch, gdb, valgrind


@pytest.mark.slow
def test_watch_grades_again_at_each_save_and_ctrl_c_ends_it(tmp_path: Path, edited) -> None:
    wrong = lay(edited("sampler.h", "running > goal", "running >= goal"))
    shutil.copytree(ROOT / "reference" / "llmc", tmp_path / "llmc")
    log = tmp_path / "log"
    command = [sys.executable, str(ROOT / "grade"), "A0", "sample_softmax", "--watch"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--student", str(tmp_path)], stdout=output, env=os.environ | UTF8
        )

    def tables() -> list[str]:
        return re.findall(r"A0 · C: (\d+) of 10 points", log.read_text())

    wait_for(lambda: "watching llmc/" in log.read_text())
    assert tables() == ["10"]
    os.replace(
        shutil.copy(wrong / "llmc" / "sampler.h", tmp_path / "new"), tmp_path / "llmc" / "sampler.h"
    )
    wait_for(lambda: len(tables()) == 2)
    assert int(tables()[1]) < 10
    (tmp_path / "llmc" / ".sampler.h.swp").write_text("an editor's, and no save")
    (tmp_path / "llmc" / "sampler.h").write_text("int x")
    wait_for(lambda: len(tables()) == 3)
    process.terminate()  # as Ctrl-C, which a test in the background may not get
    assert process.wait() == 130
    assert tables()[2] == "0"
    assert "Traceback" not in log.read_text()


def test_gdb_opens_the_failing_case_at_the_functions_of_its_row(edited, tmp_path: Path) -> None:
    (tmp_path / "gdb").write_text('#!/bin/sh\nfor word; do echo "word $word"; done\n')
    (tmp_path / "gdb").chmod(0o755)
    folder = lay(edited("rand.h", "manual_seed(state, 5489)", "manual_seed(state, 5488)"))
    env = os.environ | UTF8 | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    seen = run("A0", "--gdb", "randint32", "--student", str(folder), env=env)
    words = re.findall(r"^word (.*)$", seen.stdout, re.MULTILINE)
    assert "break randint32" in words
    assert words[-2:] == ["randint32_edges", "137"]
    assert words[words.index("-d") + 3] == str(folder), "the student's sources are found first"
    assert "FAIL" in seen.stdout, "the table stands above it"


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb here")
@pytest.mark.slow
def test_gdb_really_stops_in_the_students_function() -> None:
    seen = run("A0", "--gdb", "random_u32", input="bt\nkill\nquit\n")
    assert re.search(r"hit Breakpoint 1, random_u32 \(state=0x", seen.stdout)
    assert re.search(r"#1 .* in case_random_u32", seen.stdout)


def test_a_python_row_is_debugged_by_hand() -> None:
    seen = run("A0", "--gdb", "splitmix64", "--reference")
    assert seen.returncode == 2
    assert "write breakpoint() in your code, then run" in seen.stderr
    command = seen.stderr.splitlines()[-1].split()
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert shown.stdout.startswith("begin i64 [1]")
    why = run("why", "splitmix64").stdout
    assert "--gdb" not in why and "handouts/A0-python.md" in why


def test_without_a_debugger_gdb_says_so(tmp_path: Path) -> None:
    for name in ("cc", "as", "ld", "ld.gold", "gcc", "python3", "setarch", "env"):
        if shutil.which(name):
            (tmp_path / name).symlink_to(shutil.which(name))
    seen = run("A0", "--gdb", "randint64", env=os.environ | UTF8 | {"PATH": str(tmp_path)})
    assert seen.returncode == 2
    assert "neither gdb nor lldb is here; ./grade doctor says how" in seen.stderr


def test_gdb_says_why_there_is_nothing_to_debug(edited, graded) -> None:
    broken = lay(edited("sampler.h", "    return n - 1;", "    return n - 1"))
    seen = run("A0", "--gdb", "random_f32", "--student", str(broken))
    assert seen.returncode == 2
    assert "nothing to debug in sample_softmax: does not compile: llmc/sampler.h:" in seen.stderr


def test_gdb_passes_over_what_needs_data(pack: Path, tmp_path: Path) -> None:
    """Without data a row's last credit is skipped, and the debugger opens another."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gdb").write_text('#!/bin/sh\nfor word; do echo "word $word"; done\n')
    (tmp_path / "bin" / "gdb").chmod(0o755)
    shutil.copytree(ROOT / "reference" / "llmc", pack / "llmc")
    env = os.environ | UTF8 | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    seen = run("A0", "--gdb", "tokenizer_init", root=pack, env=env)
    assert "word tokenizer_version_2" in seen.stdout


UNWRITTEN = (
    "    unsigned long long high = randint32(state);",
    """\
    unsigned long long high;
    if (high == 3) high = 4;
    high = randint32(state);""",
)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here")
@pytest.mark.slow
def test_valgrind_sees_a_read_of_what_was_never_written(edited) -> None:
    folder = lay(edited("rand.h", *UNWRITTEN))
    words = ("A0", "randint64", "--student", str(folder))
    assert "2 of 2 points" in run(*words).stdout, "a normal run fills such variables"
    seen = run(*words, "--valgrind")
    text = " ".join(seen.stdout.split())
    assert seen.returncode == 1
    assert "Conditional jump or move depends on uninitialised value(s), in randint64" in text
    assert re.search(r"\(llmc/rand.h:\d+\)", text)
    assert "rerun" in text and text.count("--valgrind") == 1


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here")
@pytest.mark.slow
def test_valgrind_finds_nothing_in_the_reference() -> None:
    seen = run("A0", "--reference", "--valgrind")
    assert seen.returncode == 0, seen.stdout
    assert "more: needs LeakSanitizer" in seen.stdout.replace("run `make data`; ", "").replace(
        "; run `make data`", ""
    )


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here")
def test_valgrind_may_be_anywhere(tmp_path: Path) -> None:
    real = shutil.which("valgrind")
    (tmp_path / "valgrind").write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    (tmp_path / "valgrind").chmod(0o755)
    env = os.environ | UTF8 | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert "2 of 2 points" in run("A0", "manual_seed", "--reference", "--valgrind", env=env).stdout


def test_without_valgrind_it_says_so(tmp_path: Path) -> None:
    seen = run("A0", "--valgrind", env=os.environ | UTF8 | {"PATH": str(tmp_path)})
    assert seen.returncode == 2
    assert "valgrind is not here; ./grade doctor says how to install it" in seen.stderr


# ---------------------------------------------------------------- files and pictures


def test_all_formats_are_written_in_one_run(tmp_path: Path) -> None:
    names = {"json": "{", "html": "<!", "junit": "<?xml", "gradescope": "{"}
    words = [word for name in names for word in (f"--{name}", str(tmp_path / name))]
    run("A0", "randint64", *words)
    for name, start in names.items():
        assert (tmp_path / name).read_text().lstrip().lower().startswith(start), name


HALF = ("& ((1u << 24) - 1)", "& ((1u << 23) - 1)")  # draws reach one half and no further


@pytest.mark.slow
def test_a_failing_distribution_shows_both_histograms(edited, tmp_path: Path) -> None:
    folder = lay(edited("rand.h", *HALF))
    seen = run("A0", "randfloat32", "--student", str(folder), "--json", str(tmp_path / "j"))
    assert re.search(r"^ +got +expected$", seen.stdout, re.MULTILINE)
    assert re.search(
        r"^ +0\.\. +1\d{4} █+[▏▎▍▌▋▊▉]? +6250 █+[▏▎▍▌▋▊▉]?$", seen.stdout, re.MULTILINE
    )
    assert re.search(r"^ +0\.5\.\. +0 +6250 █+", seen.stdout, re.MULTILINE)
    lines = [line for line in seen.stdout.splitlines() if " rerun " not in line]
    assert max(map(len, lines)) <= 80
    whole = run("A0", "--student", str(folder)).stdout
    assert re.search(r"^ +0\.5\.\. +0 +6250 █+", whole, re.MULTILINE), "also where not asked for"
    picture = json.loads((tmp_path / "j").read_text())["parts"][0]["items"][0]["credits"][1][
        "picture"
    ]
    assert sum(picture["got"]) == sum(picture["expected"]) == 100_000
    plain = run("A0", "randfloat32", "--student", str(folder), env=os.environ | {"LC_ALL": "C"})
    assert re.search(r"^ +0\.\. +1\d{4} #+ +6250 #+$", plain.stdout, re.MULTILINE)
    assert plain.stdout.isascii()


@pytest.mark.parametrize(
    ("file", "find", "replace", "checks"),
    [
        ("rand.h", *HALF, ["randfloat32_range", "randfloat32_uniform", "normal_sample"]),
        ("rand.h", "(1ull << 53) - 1)", "(1ull << 52) - 1)", ["randfloat64_sample"]),
        ("sampler.h", "running > goal", "running > 0.9 * goal", ["softmax_distribution"]),
    ],
)
def test_each_distribution_that_is_off_has_a_picture(
    file: str, find: str, replace: str, checks: list[str], edited, graded
) -> None:
    (part,) = graded(edited(file, find, replace), file).parts
    rows = {row.credit.check: row for item in part.items for row in item.rows}
    for check in checks:
        picture = rows[check].picture
        assert picture is not None, check
        assert len(picture.bins) == len(picture.got) == len(picture.expected) > 8
        assert picture.got != picture.expected


def test_a_histogram_is_drawn_to_scale() -> None:
    lines = histogram.text(Histogram("t", ("a", "bb"), (8.0, 0.0), (4.0, 0.5)), blocks=False)
    assert lines[0] == "t"
    assert lines[2] == " a       8 " + "#" * 18 + "       4 " + "#" * 9
    assert lines[3] == "bb       0 " + " " * 18 + "       0 #"


def test_fresh_inputs_are_said_to_be_fresh() -> None:
    seen = run("A0", "randint64", "--reference", "--fresh", "7")
    assert "fresh inputs, seed 7; wanted: what the reference reports on them" in seen.stdout


def test_no_color_is_an_option_and_a_variable(tmp_path: Path) -> None:
    script = shutil.which("script")
    if script is None or sys.platform != "linux":
        pytest.skip("no script(1) of util-linux here to make a terminal")
    for words, env, coloured in (
        ("", {}, True),
        ("--no-color", {}, False),
        ("", {"NO_COLOR": "1"}, False),
    ):
        command = f"{sys.executable} {ROOT / 'grade'} A0 randint64 --reference {words}"
        seen = subprocess.run(
            [script, "-qec", command, "/dev/null"],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | UTF8 | {"TERM": "xterm-256color"} | env,
            stdin=subprocess.DEVNULL,
        )
        assert ("\x1b[34m" in seen.stdout) == coloured, seen.stdout
