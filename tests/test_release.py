"""The pack: who gets which file, what gives a solution away, and what a student then has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder import __version__
from autograder.rubric import ROOT
from staff import release
from staff.release import Lists, Refused

REFERENCE = ROOT / "reference"
ARCHIVE = f"build/release/llmc-student-{__version__}.tar.gz"


def listing() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in seen.stdout.splitlines() if (ROOT / line).is_file()]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)


@pytest.fixture(scope="module")
def pack() -> dict[str, Path]:
    return release.choose(ROOT, listing(), release.lists())


@pytest.fixture(scope="module")
def secrets() -> dict[release.Run, str]:
    return release.solutions(REFERENCE)


@pytest.fixture
def unpacked(pack: dict[str, Path], tmp_path: Path) -> Path:
    """The pack as a student has it, with the packages of this folder."""
    made = tmp_path / "made"
    made.mkdir()
    content = release.archive(pack | release.prebuilt(made), 1_700_000_000)
    shutil.rmtree(made)
    subprocess.run(["tar", "-xzf", "-"], cwd=tmp_path, input=content, check=True)
    (tmp_path / "llmc-student" / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path / "llmc-student"


# ---------------------------------------------------------------- which files


def test_every_file_of_the_repository_is_on_one_list_and_staff_keep_theirs(
    pack: dict[str, Path],
) -> None:
    theirs = ("reference/", "staff/", "tests/", "docs/", ".ci/")
    assert not [name for name in pack if name.startswith(theirs)]
    sources = {str(path.relative_to(ROOT)) for path in pack.values()}
    assert not [name for name in sources if name.startswith((*theirs, "README.md"))]
    assert pack["README.md"] == ROOT / "README.student.md"
    assert pack["stubs/llmc/rand.h"] == ROOT / "llmc" / "rand.h"
    assert not [name for name in pack if name.startswith("llmc/")]


SOME = Lists(("grade", "a/*.c", "llmc/*"), ("staff/", "a/?.md"), {"llmc/": "stubs/llmc/"})
FILES = ["grade", "a/x.c", "llmc/x.h", "staff/deep/er/x", "a/y.md"]


def test_what_is_allowed_goes_in_under_its_name_in_the_pack() -> None:
    chosen = release.choose(Path("/t"), FILES, SOME)
    assert chosen == {
        "a/x.c": Path("/t/a/x.c"),
        "grade": Path("/t/grade"),
        "stubs/llmc/x.h": Path("/t/llmc/x.h"),
    }


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([*FILES, "notes.txt"], "notes.txt: on no list of release.toml"),
        ([*FILES, "a/b/x.c"], "a/b/x.c: on no list of release.toml"),
        ([*FILES, "b/grade"], "b/grade: on no list of release.toml"),
        ([*FILES, "staff.c"], "staff.c: on no list of release.toml"),
        (FILES[:1] + FILES[2:], "a/*.c: allowed in release.toml, but there is no such file"),
    ],
)
def test_a_file_on_no_list_and_a_pattern_without_a_file_are_refused(
    files: list[str], reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        release.choose(Path("/t"), files, SOME)
    assert refused.value.args == (reason,)


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        (Lists((*SOME.student, "a/y.*"), SOME.staff, {}), "a/y.md: on both lists of release.toml"),
        (
            Lists(SOME.student, SOME.staff, {"grade": "a/x.c"}),
            "grade: another file of the pack is called a/x.c",
        ),
    ],
)
def test_two_answers_for_a_file_are_refused(lists: Lists, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        release.choose(Path("/t"), ["a/x.c", "grade", *FILES[2:]], lists)
    assert reason in refused.value.args


def test_without_a_checkout_the_reason_is_given(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="a release is made from a git checkout; fatal: not a git"):
        release.committed(tmp_path)


# ---------------------------------------------------------------- no solution in it


@pytest.mark.slow
def test_the_pack_has_no_text_of_a_solution(
    pack: dict[str, Path], secrets: dict[release.Run, str]
) -> None:
    assert len(secrets) > 30_000
    assert release.leaks(secrets, pack) == []


def test_every_region_is_looked_for(secrets: dict[release.Run, str]) -> None:
    for path in sorted((REFERENCE / "llmc").glob("*.h")):
        text = path.read_text()
        found = release.regions(text)
        assert len(found) == text.count("BEGIN SOLUTION")
        for region in found:
            words = release.tokens(region, release.C)
            assert words
            whole = next(release.runs(words, min(len(words), release.RUN)))[0]
            assert secrets[whole] == f"reference/llmc/{path.name}"


def solution(name: str) -> str:
    """What stands between the marks of one function of rand.h."""
    text = (REFERENCE / "llmc" / "rand.h").read_text()
    return release.regions(text[text.index(f"TODO (A0): {name}") :])[0]


def as_it_is(code: str) -> str:
    return code


def reformatted(code: str) -> str:
    """One token a line, some behind a comment, some before one."""
    words = [word for word, _ in release.tokens(code, release.C)]
    return "".join(
        f"/* {i} */ {w}  // so\n" if i % 5 == 0 else f"\t{w}\n" for i, w in enumerate(words)
    )


def on_one_line(code: str) -> str:
    return " ".join(code.split()) + "\n"


PLACES = (
    "assignments/A0/probes/rand.c",
    "assignments/A0/checks/rand.py",
    "handouts/A0-data-and-randomness.md",
    "stubs/llmc/rand.h",
    "README.md",
    "Makefile",
)


@pytest.mark.parametrize("how", [as_it_is, reformatted, on_one_line])
@pytest.mark.parametrize("name", ["next_state", "randint32", "init_identity_permutation"])
@pytest.mark.parametrize("place", PLACES)
def test_a_planted_solution_is_found(
    place: str,
    name: str,
    how: Callable[[str], str],
    pack: dict[str, Path],
    secrets: dict[release.Run, str],
    tmp_path: Path,
) -> None:
    text = pack[place].read_text()
    planted = tmp_path / "planted"
    planted.write_text(f"{text}\n```c\n{how(solution(name))}```\n")
    faults = release.leaks(secrets, {place: planted})
    assert len(faults) == 1
    found = re.fullmatch(r"(.*):(\d+): has text of a solution, of (.*)", faults[0])
    assert found is not None and (found[1], found[3]) == (place, "reference/llmc/rand.h")
    lines = text.count("\n") + 3
    assert lines <= int(found[2]) <= lines + 2


OTHERS = [path for path in [*REFERENCE.glob("variants/*/*/*.h"), *REFERENCE.glob("oracle/a*.py")]]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_oracle_and_variants_are_looked_for_too(
    path: Path, secrets: dict[release.Run, str]
) -> None:
    (fault,) = release.leaks(secrets, {"handouts/A0.md": path})
    assert fault.startswith("handouts/A0.md:")


def test_python_is_read_without_its_comments(
    secrets: dict[release.Run, str], tmp_path: Path
) -> None:
    oracle = (REFERENCE / "oracle" / "a0.py").read_text()
    words = [word for word, _ in release.tokens(oracle, release.PYTHON)]
    planted = tmp_path / "planted"
    planted.write_text("".join(f"{word}  # so\n" for word in words[:200]))
    assert release.leaks(secrets, {"checks/a.py": planted}) == [
        "checks/a.py:1: has text of a solution, of reference/oracle/a0.py"
    ]


def test_a_run_gives_a_solution_away_and_one_token_less_does_not(
    secrets: dict[release.Run, str], tmp_path: Path
) -> None:
    words = [word for word, _ in release.tokens(solution("next_state"), release.C)]
    short, long = tmp_path / "short.c", tmp_path / "long.c"
    short.write_text(" ".join(words[: release.RUN - 1]))
    long.write_text(" ".join(words[: release.RUN]))
    faults = release.leaks(secrets, {"short.c": short, "long.c": long})
    assert faults == ["long.c:1: has text of a solution, of reference/llmc/rand.h"]


# ---------------------------------------------------------------- the archive


def test_two_archives_of_the_same_files_are_the_same_bytes(
    pack: dict[str, Path], tmp_path: Path
) -> None:
    copies = {}
    for name, path in reversed(pack.items()):  # written in another order, at another time
        copies[name] = tmp_path / name
        copies[name].parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copies[name])
        copies[name].chmod(0o700 if os.access(path, os.X_OK) else 0o600)
    copied = release.archive(dict(sorted(copies.items())), 1_700_000_000)
    assert copied == release.archive(pack, 1_700_000_000)
    assert copied != release.archive(pack, 1_700_000_001)


def test_it_unpacks_into_one_folder_and_leaves_llmc_alone(unpacked: Path) -> None:
    assert [path.name for path in unpacked.parent.iterdir()] == ["llmc-student"]
    assert os.access(unpacked / "grade", os.X_OK)
    assert not os.access(unpacked / "Makefile", os.X_OK)
    assert (unpacked / "README.md").read_text() == (ROOT / "README.student.md").read_text()
    assert not (unpacked / "llmc").exists()
    assert {path.name for path in (unpacked / "stubs" / "llmc").iterdir()} == {
        path.name for path in (ROOT / "llmc").iterdir() if path.is_file()
    }


def test_make_lists_what_works_in_the_pack_and_nothing_of_staff(unpacked: Path) -> None:
    seen = run(unpacked, "make", "-s")
    names = re.findall(r"^  make (\S+)", seen.stdout, re.MULTILINE)
    assert names == [
        *("help", "data", "test_dataloader", "test_gpt2", "train_gpt2", "generate"),
        *("native", "plot", "ide", "clean"),
    ]
    assert run(unpacked, "make", "-s", "release").returncode == 2


def test_the_programs_to_run_by_hand_are_built_and_cleaned_in_the_pack(unpacked: Path) -> None:
    shutil.copytree(unpacked / "stubs" / "llmc", unpacked / "llmc")
    built = [unpacked / "dev" / "test" / name for name in ("test_dataloader", "test_gpt2")]
    seen = run(unpacked, "make", "-s", "test_dataloader", "test_gpt2")
    assert (seen.returncode, seen.stderr) == (0, "")
    assert all(path.exists() for path in built)
    assert run(unpacked, "make", "-s", "clean").returncode == 0
    assert not any(path.exists() for path in built)
    assert {path.name for path in (unpacked / "build").glob("*")} <= {"pack", "state"}


@pytest.mark.slow
def test_what_does_not_pass_yet_can_be_stood_in_for(unpacked: Path) -> None:
    shutil.copytree(unpacked / "stubs" / "llmc", unpacked / "llmc")
    for name in ("loop.py", "bigram.py"):
        shutil.copy(REFERENCE / "llmc" / name, unpacked / "llmc")
    words = ("A2", "python", "learns_xor", "bigram_logits")
    seen = run(unpacked, "./grade", *words)
    assert "A2 · Python: 0 of 1 points here; 1 more: needs A1's matmul_forward." in seen.stdout
    seen = run(unpacked, "./grade", *words, "--ref-deps")
    assert "A2 · Python: 2 of 2 points." in seen.stdout, seen.stdout + seen.stderr
    assert "with the reference's rand, sampler, autograd, model, optim, layers.h" in seen.stdout
    (tag,) = (unpacked / "prebuilt").glob("*/rand.pyc")
    assert {path.stem for path in tag.parent.iterdir()} == {
        *("autograd", "loop", "model", "optim", "rand", "sampler")
    }
    tag.parent.rename(tag.parent.with_name("cpython-1"))
    seen = run(unpacked, "./grade", *words, "--ref-deps")
    assert (seen.returncode, seen.stderr.count("\n")) == (2, 1)
    assert "has no rand for" in seen.stderr and "what it has: cpython-1, " in seen.stderr


def test_the_readme_names_files_of_the_pack_and_is_short(unpacked: Path) -> None:
    text = (unpacked / "README.md").read_text()
    lines = text.splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) <= 100
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (unpacked / target).is_file(), target
    tree = text.partition("## What lies where")[2].partition("```\n")[2].partition("```")[0]
    named = [line.split()[0] for line in tree.splitlines() if not line.startswith(" ")]
    assert len(named) > 8
    for name in named:
        assert (unpacked / name).exists() or name == "llmc/", name
    here = {name.partition("/")[0] for name in named} - {"llmc"}
    unnamed = {"LICENSE", "Makefile", "README.md", "pyproject.toml"}
    visible = {path.name for path in unpacked.iterdir() if not path.name.startswith(".")}
    assert visible == here | unnamed


# ---------------------------------------------------------------- all of it


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of what lies here, all of it committed."""
    root = tmp_path / "clone"
    for name in listing():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    assert run(root, "git", "init", "-q").returncode == 0
    (root / ".git" / "info" / "exclude").write_text(".venv\n")
    (root / ".venv").symlink_to(ROOT / ".venv")
    commit(root)
    return root


def commit(root: Path) -> None:
    assert run(root, "git", "add", "-A").returncode == 0
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    assert run(root, "git", *who, "commit", "-qm", "all").returncode == 0


@pytest.mark.slow
def test_a_release_says_what_it_did_and_leaves_the_archive(checkout: Path) -> None:
    seen = run(checkout, "make", "-s", "release")
    assert (seen.returncode, seen.stderr) == (0, "")
    archive = checkout / ARCHIVE
    for words in (
        r"\d+ of \d+ files are for students",
        r"0 of \d{5,6} runs of 24 tokens from solutions found in them",
        r"A0 c: the stubs earn 0, every row says todo",
        r"A0 c: the reference earns 98 of 98 points here",
        rf"{ARCHIVE}: {archive.stat().st_size} bytes",
        r"sha256 [0-9a-f]{64}",
    ):
        assert re.search(rf"^{words}$", seen.stdout, re.MULTILINE), words
    assert list((checkout / "build" / "scratch").iterdir()) == []


def test_what_is_refused_leaves_no_archive(checkout: Path) -> None:
    stale = checkout / ARCHIVE
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"of yesterday")
    (checkout / "notes.txt").write_text("due on Friday\n")
    seen = run(checkout, ".venv/bin/python", "-m", "staff.release")
    assert (seen.returncode, seen.stderr) == (1, "release: notes.txt: not committed\n")
    assert not stale.exists()
    commit(checkout)
    seen = run(checkout, ".venv/bin/python", "-m", "staff.release")
    assert (seen.returncode, seen.stdout) == (1, "")
    assert seen.stderr == "release: notes.txt: on no list of release.toml\n"


@pytest.mark.slow
def test_drift_and_a_solution_are_named_together(checkout: Path) -> None:
    stub = checkout / "llmc" / "sampler.h"
    text = stub.read_text()
    stub.write_text(text + solution("randint32"))
    commit(checkout)
    seen = run(checkout, ".venv/bin/python", "-m", "staff.release")
    assert seen.returncode == 1
    faults = seen.stderr.splitlines()
    assert "release: llmc/sampler.h: differs from the stripped reference" in faults
    where = f"release: stubs/llmc/sampler.h:{len(text.splitlines()) + 1}"
    assert f"{where}: has text of a solution, of reference/llmc/rand.h" in faults


@pytest.mark.parametrize(
    ("possible", "verdict", "reason"),
    [("4", "part", "A0 x: the reference says part"), ("0", "skip", "A0 c: this machine cannot")],
)
def test_a_reference_that_earns_less_than_all_is_refused(
    possible: str, verdict: str, reason: str
) -> None:
    items = [{"id": "x", "verdict": verdict}]
    with pytest.raises(Refused, match=reason):
        release._right({"part": "c", "score": "2", "possible": possible, "items": items}, "A0")


@pytest.mark.parametrize(
    ("name", "instead", "reason"),
    [
        ("stubs/llmc/sampler.h", "reference/llmc/sampler.h", "A0 sample_softmax: the stub says ok"),
        ("autograder/cli.py", "autograder/__init__.py", "`./grade A0` in the unpacked pack: Imp"),
    ],
)
@pytest.mark.slow
def test_a_pack_that_does_not_grade_as_it_should_is_refused(
    name: str, instead: str, reason: str, pack: dict[str, Path]
) -> None:
    with pytest.raises(Refused) as refused:
        release.trial(release.archive(pack | {name: ROOT / instead}, 0))
    assert refused.value.args[0].startswith(reason)
