"""Packing: what is in a submission, that it is the same everywhere, and what is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder import __version__, build, rubric
from autograder.build import NoTool, Source
from autograder.commands.pack import MANIFEST, Packed, Refused, pack
from autograder.rubric import ROOT
from autograder.run import REFERENCE
from staff.trees import BUILD, lay

A0 = rubric.load("A0")
OWN = sorted(name for part in A0.parts for name in part.files)
GIVEN = ["llmc/todo.h", "llmc/utils.h"]  # what those include beside each other


def packed(student: Path, anyway: bool = False) -> Packed:
    return pack(A0, student, BUILD, anyway)


def opened(archive: Packed) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(archive.data))


def manifest(archive: Packed) -> dict[str, Any]:
    return json.loads(opened(archive).read(MANIFEST))


@pytest.fixture
def solved(tmp_path: Path) -> Path:
    """A student's tree that is all done."""
    shutil.copytree(REFERENCE / "llmc", tmp_path / "solved" / "llmc")
    return tmp_path / "solved"


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_it_holds_the_files_and_a_manifest_that_describes_them(solved: Path) -> None:
    archive = packed(solved)
    files = sorted(OWN + GIVEN)
    assert opened(archive).namelist() == [MANIFEST, *files] == ["MANIFEST.json", *archive.files]
    contents = {name: (solved / name).read_bytes() for name in files}
    assert {name: opened(archive).read(name) for name in files} == contents
    assert manifest(archive) == {
        "schema": "llmc-pack/1",
        "assignment": "A0",
        "version": __version__,
        "files": [
            {"path": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in contents.items()
        ],
        "missing": [],
        "compiles": True,
    }
    assert archive.sha256 == hashlib.sha256(archive.data).hexdigest()
    assert archive.missing == archive.broken == archive.unwritten == ()


NEEDED = ("autograd", "bigram", "loop", "model", "native", "optim", "rand", "sampler")


def test_it_holds_what_the_probes_import_of_assignments_before(solved: Path) -> None:
    archive = pack(rubric.load("A2"), solved, BUILD, False)
    python = [name for name in archive.files if name.endswith(".py")]
    assert python == [f"llmc/{name}.py" for name in NEEDED]


def test_entries_say_nothing_about_who_packed_when_and_how(solved: Path) -> None:
    for entry in opened(packed(solved)).infolist():
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)
        assert (entry.create_system, entry.external_attr >> 16) == (3, 0o100644)
        assert entry.compress_type == zipfile.ZIP_STORED and not entry.extra


def test_the_same_files_give_the_same_bytes_elsewhere(
    solved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: None
) -> None:
    first = packed(solved)
    other = tmp_path / "another name" / "llmc"
    other.mkdir(parents=True)
    for path in sorted((solved / "llmc").iterdir(), reverse=True):
        (other / path.name).write_bytes(path.read_bytes())
        (other / path.name).chmod(0o600)
        os.utime(other / path.name, (10**9, 10**9))
    (other / "notes.txt").write_text("not for the grader")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    assert packed(Path("another name")).data == first.data


def test_a_header_of_their_own_is_packed_with_the_file_that_includes_it(
    solved: Path, tmp_path: Path, tools: build.Toolchain
) -> None:
    rand = solved / "llmc" / "rand.h"
    rand.write_text(rand.read_text().replace('#include "todo.h"', '#include "./words.h"\n'))
    (solved / "llmc" / "words.h").write_text('#  include <llmc/more.h>\n#include "todo.h"\n')
    (solved / "llmc" / "more.h").write_text("// nothing\n")
    archive = packed(solved)
    assert set(archive.files) == {*OWN, *GIVEN, "llmc/words.h", "llmc/more.h"}
    opened(archive).extractall(tmp_path / "unpacked")
    sources = [Source("rand", A0.folder / "probes" / "rand.c")]
    built = build.programs(sources, tmp_path / "unpacked", tools, BUILD, 1)
    assert built["rand"].binary is not None


def test_what_compiles_only_here_is_refused(solved: Path) -> None:
    sampler = solved / "llmc" / "sampler.h"
    sampler.write_text('#define AWAY "away.h"\n#include AWAY\n' + sampler.read_text())
    (solved / "llmc" / "away.h").write_text("// found, but not by reading the files\n")
    with pytest.raises(Refused, match=r"^llmc/sampler.h:\d+: .*away"):
        packed(solved)


def test_files_that_do_not_compile_are_refused_unless_anyway(edited) -> None:
    student = lay(edited("tokenizer.h", "    fclose(file);\n", "    fclose(file)\n"))
    with pytest.raises(Refused, match=r"^llmc/tokenizer.h:\d+: expected .;.[^\n]*$"):
        packed(student)
    archive = packed(student, anyway=True)
    assert [one.probe for one in archive.broken] == ["tokenizer"]
    assert manifest(archive)["compiles"] is False
    assert set(OWN) <= set(opened(archive).namelist())


def test_a_refusal_is_two_lines_whatever_is_broken(solved: Path) -> None:
    for name in ("rand.h", "sampler.h", "tokenizer.h"):
        (solved / "llmc" / name).write_text("here is no C\n")
    with pytest.raises(Refused) as refusal:
        packed(solved)
    first, second = str(refusal.value).splitlines()
    assert first.startswith("llmc/rand.h:1: ")
    assert second == "and 2 more: see ./grade A0"


def test_a_missing_file_is_refused_unless_anyway(solved: Path) -> None:
    (solved / "llmc" / "sampler.h").unlink()
    (solved / "llmc" / "tokenizer.h").unlink()
    (solved / "llmc" / "tokenizer.h").symlink_to("nowhere.h")
    with pytest.raises(Refused, match=r"^llmc/tokenizer.h, llmc/sampler.h: missing"):
        packed(solved)
    archive = packed(solved, anyway=True)
    assert archive.missing == ("llmc/tokenizer.h", "llmc/sampler.h")
    assert manifest(archive)["missing"] == list(archive.missing)
    assert [one.probe for one in archive.broken] == ["tokenizer", "sampler"]
    assert set(opened(archive).namelist()).isdisjoint(archive.missing)


def test_a_file_past_the_limit_counts_as_missing(solved: Path) -> None:
    with (solved / "llmc" / "rand.h").open("ab") as file:
        file.write(b"\n" * (1 << 20))
    with pytest.raises(Refused, match=r"^llmc/rand.h: missing, or no file of at most 1 MiB$"):
        packed(solved)


def test_a_folder_without_llmc_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="llmc: No such file"):
        packed(tmp_path)


def test_the_stubs_are_packed_with_a_list_of_what_is_not_written() -> None:
    archive = packed(ROOT)
    wanted = {function for part in A0.parts for item in part.items for function in item.functions}
    assert manifest(archive)["compiles"] is True
    assert archive.unwritten[:3] == ("manual_seed", "next_state", "randint32")
    assert set(archive.unwritten) <= wanted and len(archive.unwritten) >= 15


def test_only_stubs_of_this_assignment_that_still_stand_are_unwritten(solved: Path) -> None:
    rand = solved / "llmc" / "rand.h"
    rand.write_text(rand.read_text() + '// TODO("A0: was_here");\n')
    sampler = solved / "llmc" / "sampler.h"
    stubs = '    TODO("A1: later");\n    TODO("A0: mine");\n'
    sampler.write_text(sampler.read_text() + f"static inline void f(void) {{\n{stubs}}}\n")
    assert packed(solved).unwritten == ("mine",)


def test_without_a_compiler_nothing_is_packed(
    solved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoTool):
        packed(solved, anyway=True)
