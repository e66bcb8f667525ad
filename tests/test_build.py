"""Building: what the compiler says reaches the student, and nothing is compiled twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from autograder import build, sources
from autograder.build import Source
from autograder.rubric import ROOT
from autograder.run import REFERENCE
from staff.trees import BUILD, Tree, lay, lost

PROBES = ROOT / "assignments" / "A0" / "probes"


def test_a_compile_error_is_a_row_of_its_own_and_costs_only_its_probes(edited, graded) -> None:
    tree = edited("tokenizer.h", "    fclose(file);\n", "    fclose(file)\n")
    result = graded(tree, "randint64", "safe_printf", "tokenizer", "sample_softmax")
    part = result.parts[0]
    assert lost(result) == ["safe_printf", "tokenizer"]
    assert [built.probe for built in part.broken] == ["tokenizer"]
    assert part.broken[0].error.where.startswith("llmc/tokenizer.h:")
    rows = part.items[1].rows
    assert "does not compile: llmc/tokenizer.h:" in rows[0].message
    assert "expected" in rows[0].got


def test_a_missing_header_says_so(graded, tmp_path: Path) -> None:
    shutil.copytree(REFERENCE / "llmc", tmp_path / "llmc")
    (tmp_path / "llmc" / "sampler.h").unlink()
    result = graded(tmp_path, "sample_softmax", "randint64")
    assert lost(result) == ["sample_softmax"]
    assert result.parts[0].broken[0].error.what == "it is missing; ./grade start brings the stub"
    (tmp_path / "llmc" / "Sampler.h").write_text("")
    again = graded(tmp_path, "sample_softmax")
    assert again.parts[0].broken[0].error.what == "it is missing; is it llmc/Sampler.h?"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("    int unused = 3;\n", "a warning at llmc/rand.h:"),
        ('#pragma GCC diagnostic ignored "-Wall"\n', "silences the compiler"),
        ("__attribute__((__constructor__)) static void early(void) {}\n", "silences the compiler"),
        ("#pragma GCC system_header\n", "silences the compiler"),
        ('# 1 "rand.h" 3\n', "silences the compiler"),
        ('\f#line 1 "x.h"\n', "silences the compiler"),
        ("#\fpragma\fGCC\fsystem_header\n", "silences the compiler"),
        ('    _Pragma("GCC diagnostic ignored \\"-Wunused\\"")\n', "silences the compiler"),
    ],
)
def test_a_warning_or_its_silencing_costs_the_clean_row(line, words, edited, graded) -> None:
    mark = "    unsigned long long high = randint32(state);\n"
    if line.startswith("__attribute__"):
        mark = "// 64 bits from two draws, the first one high.\n"
    result = graded(edited("rand.h", mark, line + mark), "randint64", "clean")
    assert lost(result) == ["clean"]
    rows = {row.credit.check: row for row in result.parts[0].items[1].rows}
    assert words in rows["clean_rand"].message
    assert rows["clean_sampler"].verdict == "ok"


def test_a_leak_names_the_line_that_allocated(edited, graded) -> None:
    tree = edited(
        "dataloader.h",
        "    free(loader->targets);\n    free(loader->shard",
        "    free(loader->shard",
    )
    result = graded(tree, "clean")
    row = next(
        row for row in result.parts[0].items[0].rows if row.credit.check == "clean_dataloader"
    )
    assert row.message == "memory is lost"
    assert "24 bytes from" in row.got and "llmc/" in row.got


def test_a_file_left_open_is_found(edited, graded) -> None:
    tree = edited("dataloader.h", "    fclose(loader->eval_file);\n", "")
    assert lost(graded(tree, "clean")) == ["clean"]


def test_built_once_for_the_same_content_wherever_it_lies(tools, tmp_path: Path) -> None:
    source = [Source("sampler", PROBES / "sampler.c")]
    for name in ("here", "a folder with spaces"):
        shutil.copytree(REFERENCE / "llmc", tmp_path / name / "llmc")
    first = build.programs(source, tmp_path / "here", tools, BUILD, 1)["sampler"]
    again = build.programs(source, tmp_path / "a folder with spaces", tools, BUILD, 1)["sampler"]
    assert first.binary == again.binary


def test_a_touched_header_rebuilds_only_the_probes_that_read_it(tools, tmp_path: Path) -> None:
    sources = [Source(name, PROBES / f"{name}.c") for name in ("rand", "sampler", "dataloader")]
    shutil.copytree(REFERENCE / "llmc", tmp_path / "llmc")
    before = build.programs(sources, tmp_path, tools, BUILD, 2)
    with (tmp_path / "llmc" / "rand.h").open("a") as file:
        file.write("// a comment\n")
    after = build.programs(sources, tmp_path, tools, BUILD, 2)
    assert before["sampler"].binary == after["sampler"].binary
    assert before["rand"].binary != after["rand"].binary
    assert before["dataloader"].binary != after["dataloader"].binary


def test_warnings_are_remembered_with_the_program(edited, tools) -> None:
    tree = edited("sampler.h", "    double goal", "    int unused = 0;\n    double goal")
    source = [Source("sampler", PROBES / "sampler.c")]
    seen = [build.programs(source, lay(tree), tools, BUILD, 1)["sampler"] for _ in range(2)]
    assert seen[0].warnings == seen[1].warnings
    assert "unused" in seen[0].warnings[0].what


def test_no_compiler_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.NoTool, match="apt install gcc"):
        build.toolchain(tmp_path)


def test_a_compiler_without_sanitizers_still_grades(tmp_path: Path, monkeypatch) -> None:
    """A stand-in for systems without libasan: what cannot be seen is skipped, never earned."""
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\ncase "$*" in *-fsanitize*) exit 1 ;; esac\nexec gcc "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    tools = build.toolchain(tmp_path / "build")
    assert tools.sanitizers == ()
    assert not any("sanitize" in flag for flag in tools.flags)


def test_clean_is_skipped_where_leaks_cannot_be_seen(tmp_path: Path, monkeypatch, graded) -> None:
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\ncase "$*" in *-fsanitize*) exit 1 ;; esac\nexec gcc "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    result = graded(Tree("reference", {}), "sample_softmax", "clean", build=tmp_path / "build")
    rows = {row.credit.check: row for row in result.parts[0].items[1].rows}
    assert result.parts[0].items[0].verdict == "ok"
    assert rows["clean_sampler"].verdict == "skip"
    assert "LeakSanitizer" in rows["clean_sampler"].message


def test_a_comment_or_a_string_silences_nothing(edited, graded) -> None:
    mark = "// 64 bits from two draws, the first one high.\n"
    text = "/* never use\n# 4053805790 or _Pragma or no_sanitize */ // __asan_ either\n"
    assert lost(graded(edited("rand.h", mark, text + mark), "randint64", "clean")) == []


@pytest.mark.parametrize(
    "kind", ["beside", "reference", "absolute", "system", "form feed", "marker"]
)
def test_files_from_outside_llmc_are_refused(kind: str, graded, tmp_path: Path) -> None:
    """Else one line would hand in the reference, and what decides would not be in the key."""
    shutil.copytree(REFERENCE / "llmc", tmp_path / "llmc")
    (tmp_path / "helper.h").write_text('#include "llmc/rand.h"\n')
    line = {
        "beside": '"helper.h"',
        "reference": '"../../reference/llmc/sampler.h"',
    }.get(kind, f'"{REFERENCE / "llmc" / "sampler.h"}"')
    pretence = {  # to be a header of the system
        "system": "#pragma GCC system_header\n",
        "form feed": "#\fpragma GCC system_header\n",
        "marker": '# 1 "q.h" 3\n',
    }.get(kind, "")
    (tmp_path / "llmc" / "sampler.h").write_text(f"{pretence}#include {line}\n")
    result = graded(tmp_path, "sample_softmax", "randint64")
    assert lost(result) == ["sample_softmax"]
    row = result.parts[0].items[1].rows[0]
    assert "No such file" in row.got or "from outside llmc/" in row.got


@pytest.mark.parametrize("name", ["CS#102", "a b", "$x", "caf\xe9", "tab\there", "="])
def test_any_name_of_the_students_folder_will_do(name: str, graded, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(ROOT / "llmc", folder / "llmc")
    assert lost(graded(folder, "c", "sample_softmax")) == ["sample_softmax"]
    shutil.copy(REFERENCE / "llmc" / "sampler.h", folder / "llmc" / "sampler.h")
    assert lost(graded(folder, "c", "sample_softmax")) == []


@pytest.mark.parametrize("kind", ["fifo", "folder", "zero", "large", "dangling"])
def test_what_is_no_ordinary_file_is_not_read(kind: str, graded, tmp_path: Path) -> None:
    shutil.copytree(REFERENCE / "llmc", tmp_path / "llmc")
    path = tmp_path / "llmc" / "sampler.h"
    content = path.read_bytes()
    path.unlink()
    make = {
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "zero": lambda: path.symlink_to("/dev/zero"),
        "large": lambda: path.write_bytes(content + b"\n" * (2 << 20)),
        "dangling": lambda: path.symlink_to("nowhere"),
    }
    make[kind]()
    assert lost(graded(tmp_path, "sample_softmax", "randint64")) == ["sample_softmax"]


def test_a_program_that_was_changed_in_the_cache_is_built_again(tools, tmp_path: Path) -> None:
    source = [Source("sampler", PROBES / "sampler.c")]
    first = build.programs(source, REFERENCE, tools, tmp_path, 1)["sampler"].binary
    content = first.read_bytes()
    first.write_bytes(b"#!/bin/sh\nexit 0\n")
    again = build.programs(source, REFERENCE, tools, tmp_path, 1)["sampler"].binary
    assert len(again.read_bytes()) == len(content)


def test_an_error_is_found_behind_many_warnings(edited, graded) -> None:
    mark = "// 64 bits from two draws, the first one high.\n"
    noise = "static int noisy(void) {" + "".join(f" int x{i} = 1;" for i in range(40)) + " }\n"
    tree = edited("rand.h", mark, noise + "int broken(void) { return 1 }\n" + mark)
    assert "expected" in graded(tree, "randint64").parts[0].broken[0].error.what


@pytest.mark.parametrize(
    "text", ['#if 0\n"' + '\\"' * 60000, "__attribute__((unused))" * 9000, "\n" * 200000]
)
def test_scanning_takes_time_linear_in_the_text(text: str) -> None:
    sources.silenced({"llmc/x.h": text.encode()}, ["llmc/x.h"])  # pytest-timeout is the judge


def test_what_a_helper_of_utils_said_is_shown(edited, graded) -> None:
    tree = edited(
        "dataloader.h", "    must_seek(loader->tokens_file, offset, SEEK_SET, path);\n", ""
    )
    rows = graded(tree, "loader_pairs").parts[0].items[0].rows
    assert any("cut short (was it written to the end?)" in row.got for row in rows)


def test_a_finding_names_the_students_line_not_the_helpers(edited, graded) -> None:
    tree = edited("tokenizer.h", "must_malloc((size_t)length + 1)", "must_malloc(1)")
    row = graded(tree, "tokenizer").parts[0].items[0].rows[0]
    assert "in tokenizer_init (llmc/tokenizer.h:" in row.message


@pytest.mark.parametrize(
    "pattern", ["toolchain-*.json", "sampler-*/*.json", "sampler-*/*.files", "observe-*.o"]
)
@pytest.mark.parametrize("content", [b"", b"[" * 10**5])
@pytest.mark.slow
def test_what_is_spoilt_in_the_cache_is_made_again(
    pattern: str, content: bytes, graded, tmp_path: Path
) -> None:
    tree = Tree("reference", {})
    assert lost(graded(tree, "sample_softmax", build=tmp_path)) == []
    spoilt = list((tmp_path / "cache").glob(pattern))
    for path in spoilt:
        path.write_bytes(b"" if pattern.endswith(".o") else content)
    if pattern.endswith(".o"):
        shutil.rmtree(next((tmp_path / "cache").glob("sampler-*")))
    assert spoilt
    assert lost(graded(tree, "sample_softmax", build=tmp_path)) == []


def test_a_link_is_no_source_file(graded, tmp_path: Path) -> None:
    """It may lead to what is not the student's, or to what never ends."""
    shutil.copytree(REFERENCE / "llmc", tmp_path / "llmc")
    (tmp_path / "llmc" / "sampler.h").unlink()
    (tmp_path / "llmc" / "sampler.h").symlink_to(REFERENCE / "llmc" / "sampler.h")
    (tmp_path / "llmc" / "a.h").symlink_to("/dev/zero")
    assert lost(graded(tmp_path, "sample_softmax", "randint64")) == ["sample_softmax"]


def test_hardly_any_space_is_no_verdict(graded, monkeypatch) -> None:
    full = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(OSError, match="hardly any space is left"):
        graded(Tree("reference", {}), "randint64")
