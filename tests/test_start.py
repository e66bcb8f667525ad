"""Starting: stubs reach a student's llmc/, and nothing that is theirs is ever lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder import build, rubric
from autograder.build import Source
from autograder.commands import start
from autograder.commands.start import Change, Refused, apply, plan
from autograder.rubric import ROOT
from autograder.run import REFERENCE
from autograder.sandbox import MIB
from staff.trees import BUILD

STUBS = ROOT / "llmc"
HINT = (
    b"    // HINT: C does not say which operand of | is evaluated first; draw into two variables.\n"
)
BETTER = b"    // HINT: two statements, two variables: C does not order the operands of |.\n"
ADDED = (
    b"\n// Whether the state was seeded.\nstatic inline int is_seeded(const mt19937_state *state)"
)
ADDED += b" {\n    return state->MATRIX_A[1] != 0;\n}\n"
END = b"\n#endif\n"


def files(folder: Path) -> dict[str, bytes]:
    """Path → content (or where it points) of all there is below a folder."""
    return {
        str(path.relative_to(folder)): os.readlink(path).encode()
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def carry_out(stubs: Path, target: Path) -> dict[str, Path | None]:
    """Says yes to everything but conflicts; name → copy of theirs."""
    changes = [change for change in plan(stubs, target) if change.state != "conflict"]
    return {change.name: apply(change, target) for change in changes}


def only(changes: list[Change], name: str) -> Change:
    others = {change.state for change in changes if change.name != name}
    assert others <= {"same"}, others
    return next(change for change in changes if change.name == name)


def line_of(text: bytes, words: bytes) -> int:
    return text.count(b"\n", 0, text.index(words)) + 1


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Stubs of a new release: rand.h with another hint and one more function."""
    shutil.copytree(STUBS, tmp_path / "release")
    text = (STUBS / "rand.h").read_bytes()
    assert text.count(HINT) == 1 and text.endswith(END)
    text = text.replace(HINT, BETTER).removesuffix(END) + ADDED + END
    (tmp_path / "release" / "rand.h").write_bytes(text)
    return tmp_path / "release"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The llmc/ of a student who has started."""
    carry_out(STUBS, tmp_path / "mine" / "llmc")
    return tmp_path / "mine" / "llmc"


@pytest.fixture
def solved(target: Path) -> Path:
    """The llmc/ of a student who has written rand.h."""
    shutil.copy(REFERENCE / "llmc" / "rand.h", target / "rand.h")
    return target


# ---------------------------------------------------------------- a first start


def test_a_first_start_brings_every_stub_and_keeps_a_second_one_as_base(target: Path) -> None:
    stubs = files(STUBS)
    assert "rand.h" in stubs and "adamw.h" in stubs and "todo.h" in stubs
    assert files(target) == stubs | {f".stubs/{name}": text for name, text in stubs.items()}


@pytest.mark.slow
def test_what_a_first_start_brings_scores_0_and_all_is_to_do(target: Path, graded) -> None:
    for part in graded(target.parent).parts:
        assert part.earned == 0
        assert {item.verdict for item in part.items} == {"todo"}


def test_a_second_start_changes_nothing(target: Path) -> None:
    before = {path: path.stat().st_ino for path in target.rglob("*")}
    assert {change.state for change in plan(STUBS, target)} == {"same"}
    assert set(carry_out(STUBS, target).values()) == {None}
    assert {path: path.stat().st_ino for path in target.rglob("*")} == before


def test_the_stubs_are_no_target(tmp_path: Path) -> None:
    (tmp_path / "llmc").symlink_to(STUBS)
    for folder in (STUBS, tmp_path / "llmc"):
        with pytest.raises(Refused, match="these are the stubs themselves"):
            plan(STUBS, folder)


# ---------------------------------------------------------------- a newer stub


def test_a_file_never_edited_is_updated_without_a_question(target: Path, release: Path) -> None:
    change = only(plan(release, target), "rand.h")
    assert (change.state, change.asks) == ("update", False)
    assert apply(change, target) is None
    assert (target / "rand.h").read_bytes() == (release / "rand.h").read_bytes()
    assert only(plan(release, target), "rand.h").state == "same"


def test_an_edited_file_is_kept_while_its_stub_stays(solved: Path) -> None:
    change = only(plan(STUBS, solved), "rand.h")
    assert (change.state, change.asks, change.patch) == ("keep", False, "")
    before = files(solved)
    assert apply(change, solved) is None
    assert files(solved) == before


def test_a_solution_and_a_newer_stub_are_merged(
    solved: Path, release: Path, tools: build.Toolchain
) -> None:
    theirs = (solved / "rand.h").read_bytes()
    change = only(plan(release, solved), "rand.h")
    assert (change.state, change.asks, change.conflicts) == ("merge", True, ())
    kept = apply(change, solved)
    merged = theirs.replace(HINT, BETTER).removesuffix(END) + ADDED + END
    assert (solved / "rand.h").read_bytes() == merged
    assert kept == solved / "rand.h.yours" and kept.read_bytes() == theirs
    assert only(plan(release, solved), "rand.h").state == "keep"
    source = Source("rand", rubric.load("A0").folder / "probes" / "rand.c")
    assert build.programs([source], solved.parent, tools, BUILD, 1)["rand"].binary is not None


def test_the_patch_is_one_that_git_applies(solved: Path, release: Path) -> None:
    text = (solved / "rand.h").read_bytes().removesuffix(b"\n")
    (solved / "rand.h").write_bytes(text.replace(b"64 bits from two", b"64 bits\rfrom two"))
    change = only(plan(release, solved), "rand.h")
    assert change.patch.startswith("--- a/llmc/rand.h\n+++ b/llmc/rand.h\n@@ ")
    command = ["git", "apply", "-"]
    subprocess.run(command, input=change.patch.encode(), cwd=solved.parent, check=True)
    assert (solved / "rand.h").read_bytes() == change.after


SIGNATURE = b"static inline float randfloat32(mt19937_state *%b) {\n"


@pytest.fixture
def clash(solved: Path, release: Path) -> None:
    """Both have changed the line of a signature."""
    for folder, name in ((solved, b"mine"), (release, b"other")):
        text = (folder / "rand.h").read_bytes()
        assert text.count(SIGNATURE % b"state") == 1
        (folder / "rand.h").write_bytes(text.replace(SIGNATURE % b"state", SIGNATURE % name))


@pytest.mark.usefixtures("clash")
def test_changes_in_the_same_lines_are_a_conflict(solved: Path, release: Path) -> None:
    before = files(solved)
    change = only(plan(release, solved), "rand.h")
    assert (change.state, change.asks, change.after) == ("conflict", False, None)
    mine = line_of(before["rand.h"], SIGNATURE % b"mine")
    there = line_of((release / "rand.h").read_bytes(), SIGNATURE % b"other")
    assert change.conflicts == (f"your line {mine}, the stub's line {there}",)
    assert f"+{(SIGNATURE % b'other').decode()}" in change.patch, "what is new in the stub"
    with pytest.raises(ValueError):
        apply(change, solved)
    assert files(solved) == before


@pytest.mark.usefixtures("clash")
def test_a_conflict_is_over_once_the_new_stub_is_the_base(solved: Path, release: Path) -> None:
    assert only(plan(release, solved), "rand.h").state == "conflict"
    shutil.copy(release / "rand.h", solved / ".stubs" / "rand.h")
    assert only(plan(release, solved), "rand.h").state == "keep"


def test_another_hint_is_no_conflict_where_theirs_is_gone(solved: Path, release: Path) -> None:
    """They took hint and TODO away with the solution: there is nothing left to improve."""
    text = (solved / "rand.h").read_bytes().replace(HINT, b"    // Two draws, in order.\n")
    (solved / "rand.h").write_bytes(text)
    change = only(plan(release, solved), "rand.h")
    assert change.state == "merge"
    assert change.after == text.removesuffix(END) + ADDED + END


def test_what_they_changed_as_the_stub_did_needs_no_question(target: Path, release: Path) -> None:
    text = (release / "rand.h").read_bytes() + b"// mine\n"
    (target / "rand.h").write_bytes(text)
    change = only(plan(release, target), "rand.h")
    assert (change.state, change.asks) == ("keep", False)
    assert apply(change, target) is None
    assert (target / "rand.h").read_bytes() == text
    assert (target / ".stubs" / "rand.h").read_bytes() == (release / "rand.h").read_bytes()


EDITS: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "replace": lambda lines, at: [*lines[:at], b"new\n", *lines[at + 1 :]],
    "delete": lambda lines, at: [*lines[:at], *lines[at + 1 :]],
    "insert": lambda lines, at: [*lines[:at], b"new\n", *lines[at:]],
}


@pytest.mark.parametrize("ours", EDITS)
@pytest.mark.parametrize("mine", EDITS)
def test_changes_of_different_lines_never_conflict(mine: str, ours: str) -> None:
    lines = [b"%d\n" % number for number in range(5)]
    for i in range(5):
        for j in range(5):
            theirs = [line.replace(b"new", b"mine") for line in EDITS[mine](lines, i)]
            stub = EDITS[ours](lines, j)
            merged, conflicts = start._merge(*map(b"".join, (lines, theirs, stub)))
            if i == j:
                agreed = {mine, ours} == {"delete"}
                apart = {mine, ours} in ({"insert", "replace"}, {"insert", "delete"})
                assert agreed or apart or conflicts, (i, merged)
            else:
                kept = [line for line in lines if line in theirs and line in stub]
                assert not conflicts
                assert [line for line in merged.splitlines(True) if line[0] in b"01234"] == kept
                assert (b"mine" in merged, b"new" in merged) == (mine != "delete", ours != "delete")


# ---------------------------------------------------------------- files of unknown origin


def test_a_file_of_unknown_origin_is_kept_beside_the_stub(tmp_path: Path) -> None:
    target = tmp_path / "llmc"
    for number, name in enumerate(("rand.h.yours", "rand.h.yours.2", "rand.h.yours.3"), 1):
        shutil.rmtree(target / ".stubs", ignore_errors=True)
        target.mkdir(exist_ok=True)
        (target / "rand.h").write_bytes(b"// mine, %d\n" % number)
        change = next(c for c in plan(STUBS, target) if c.name == "rand.h")
        assert (change.state, change.asks) == ("replace", True)
        assert f"-// mine, {number}\n" in change.patch
        assert apply(change, target) == target / name
    assert (target / "rand.h").read_bytes() == (STUBS / "rand.h").read_bytes()
    kept = {n: text for n, text in files(target).items() if ".yours" in n}
    assert list(kept.values()) == [b"// mine, 1\n", b"// mine, 2\n", b"// mine, 3\n"]


def test_a_link_called_yours_is_neither_followed_nor_replaced(solved: Path, release: Path) -> None:
    (solved / "rand.h.yours").symlink_to("rand.h")
    assert apply(only(plan(release, solved), "rand.h"), solved) == solved / "rand.h.yours.2"
    assert os.readlink(solved / "rand.h.yours") == "rand.h"


def test_bytes_that_are_no_text_survive(target: Path, release: Path) -> None:
    mine = b"// \xff\xfe \xe9 \r of mine\n"
    (target / "rand.h").write_bytes(mine + (target / "rand.h").read_bytes())
    change = only(plan(release, target), "rand.h")
    apply(change, target)
    assert (target / "rand.h").read_bytes() == mine + (release / "rand.h").read_bytes()


# ---------------------------------------------------------------- safety


@pytest.fixture
def every_state(solved: Path, release: Path) -> Path:
    """An llmc/ with one file in each state but conflict."""
    (solved / "todo.h").unlink()  # create
    (solved / "utils.h").write_bytes(b"// mine\n" + (solved / "utils.h").read_bytes())  # keep
    (solved / "adamw.h").write_bytes(b"// mine\n")
    (solved / ".stubs" / "adamw.h").unlink()  # replace
    text = (release / "model.h").read_bytes()
    (release / "model.h").write_bytes(text + b"// new\n")  # update
    states = {change.name: change.state for change in plan(release, solved)}
    assert states.pop("rand.h") == "merge"
    assert set(states.values()) == {"create", "same", "update", "keep", "replace"}
    return solved


def test_plan_writes_nothing(every_state: Path, release: Path) -> None:
    before = files(every_state)
    plan(release, every_state)
    assert files(every_state) == before
    nowhere = every_state.parent / "nowhere" / "llmc"
    plan(release, nowhere)
    assert not nowhere.parent.exists()


def test_stopped_anywhere_it_goes_on_from_there(
    every_state: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shutil.copytree(every_state, tmp_path / "whole")
    carry_out(release, whole)
    stops, write = 0, start.write_whole
    while True:
        writes_left = [stops]
        stopped = shutil.copytree(every_state, tmp_path / f"stopped-{stops}")

        def write_or_stop(path: Path, content: bytes, left: list[int] = writes_left) -> None:
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            write(path, content)

        monkeypatch.setattr(start, "write_whole", write_or_stop)
        try:
            carry_out(release, stopped)
        except KeyboardInterrupt:
            monkeypatch.setattr(start, "write_whole", write)
            carry_out(release, stopped)
            assert files(stopped) == files(whole), f"stopped after {stops} writes"
            stops += 1
        else:
            break
    assert stops == 1 + 2 + 3 + 3, "create (its base is there), update, merge, replace"


def test_a_file_saved_while_they_were_asked_is_left_alone(solved: Path, release: Path) -> None:
    change = only(plan(release, solved), "rand.h")
    (solved / "rand.h").write_bytes(b"// saved just now\n")
    before = files(solved)
    with pytest.raises(Refused, match=r"llmc/rand.h: changed in the meantime"):
        apply(change, solved)
    assert files(solved) == before


Make = Callable[[Path, Path], None]  # puts something in a place; what was there is elsewhere now
PLACES: list[tuple[str, Make, str]] = [
    ("rand.h", lambda place, moved: place.symlink_to(moved), "not an ordinary file"),
    ("rand.h", lambda place, moved: place.symlink_to("nowhere"), "not an ordinary file"),
    ("rand.h", lambda place, moved: place.mkdir(), "not an ordinary file"),
    ("rand.h", lambda place, moved: os.mkfifo(place), "not an ordinary file"),
    ("rand.h", lambda place, moved: os.truncate(shutil.copy(moved, place), MIB + 1), "more than 1"),
    (".stubs/rand.h", lambda place, moved: place.symlink_to(moved), "not an ordinary file"),
    (".stubs", lambda place, moved: place.symlink_to(moved), "a folder belongs here"),
    (".stubs", lambda place, moved: place.touch(), "a folder belongs here"),
    ("", lambda place, moved: place.symlink_to(moved), "a folder belongs here"),
    ("", lambda place, moved: place.touch(), "a folder belongs here"),
]


@pytest.mark.parametrize(("name", "make", "words"), PLACES)
def test_what_is_no_file_is_refused(
    name: str, make: Make, words: str, target: Path, release: Path, tmp_path: Path
) -> None:
    change = only(plan(release, target), "rand.h")
    place, moved = target / name, tmp_path / "moved"
    place.rename(moved)
    make(place, moved)
    before = files(tmp_path)
    with pytest.raises(Refused) as refusal:
        plan(release, target)
    assert str(refusal.value).startswith(f"{place}: {words}")
    assert "\n" not in str(refusal.value)
    with pytest.raises(Refused):
        apply(change, target)
    assert files(tmp_path) == before


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(Refused, match="mine/llmc: Not a directory"):
        plan(STUBS, tmp_path / "mine" / "llmc")


def test_a_read_only_folder_says_which_file_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as name:  # where other users may look, too
        Path(name).chmod(0o555)
        target = Path(name) / "llmc"
        change = plan(STUBS, target)[0]
        user = os.geteuid()
        try:
            if user == 0:  # who may write anywhere
                os.seteuid(65534)
            with pytest.raises(PermissionError) as fault:
                apply(change, target)
        finally:
            os.seteuid(user)
        assert fault.value.filename == str(target / change.name)
        assert fault.value.strerror == "Permission denied"


def test_the_grader_does_not_look_at_what_start_keeps(
    solved: Path, release: Path, tools: build.Toolchain
) -> None:
    sources = [Source("rand", rubric.load("A0").folder / "probes" / "rand.c")]
    before = build.programs(sources, solved.parent, tools, BUILD, 1)
    for path in (solved / "rand.h.yours", solved / "todo.h.yours", solved / ".stubs" / "rand.h"):
        path.write_bytes(b"here is no C\n")
    assert build.programs(sources, solved.parent, tools, BUILD, 1) == before
