"""What students and staff run by hand: make and the harnesses of dev/test."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from autograder.rubric import ROOT


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-s", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy with what dev/test needs, so that nothing is built in the repository itself."""
    for name in ("dev", "llmc", "reference"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "Makefile", tmp_path)
    return tmp_path


FLAGS = ["TEST_CFLAGS=-O3", "TEST_CFLAGS=-O0 -g -fsanitize=address"]


@pytest.mark.parametrize("flags", FLAGS)
def test_the_harness_passes_on_the_reference(tree: Path, flags: str) -> None:
    folder = tree / "dev" / "test"
    made = make(folder, "LLMC=../../reference", flags, "test_dataloader")
    assert (made.returncode, made.stderr) == (0, "")
    seen = subprocess.run(
        ["./test_dataloader"], cwd=folder, capture_output=True, text=True, check=False
    )
    names = [
        "single shard",
        "several processes",
        "shuffled",
        "several processes shuffled",
        "resume",
    ]
    assert seen.stdout == "".join(f"ok     {name}\n" for name in names)
    assert seen.returncode == 0


def test_the_harness_says_todo_on_the_stubs_and_exits_1(tree: Path) -> None:
    folder = tree / "dev" / "test"
    made = make(folder, "test_dataloader")
    assert (made.returncode, made.stderr) == (0, "")
    seen = subprocess.run(
        ["./test_dataloader"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert [line.split()[0] for line in seen.stdout.splitlines()] == ["todo"] * 5
    assert seen.returncode == 1


WRONG = {
    "single shard": ("loader->buffer[i + 1];", "loader->buffer[i];"),
    "several processes": (
        "total_batch_size_bytes = (size_t)num_processes * B",
        "total_batch_size_bytes = B",
    ),
    "several processes shuffled": (
        "manual_seed(&loader->shuffle_rng, 42 + (unsigned long long)process_rank);",
        "manual_seed(&loader->shuffle_rng, 42 + (unsigned long long)process_rank);\n"
        "        if (num_processes > 1 && should_shuffle) loader->local_batch_offset_bytes = 0;",
    ),
    "shuffled": (
        "    random_permutation(loader->intra_shard_indices, (int)loader->shard_num_samples,\n"
        "                       &loader->shuffle_rng);\n",
        "",
    ),
    "resume": (
        "    loader->current_sample_idx = current_sample_idx;\n",
        "    loader->current_sample_idx = current_sample_idx;\n"
        "    if (loader->should_shuffle) prepare_intra_shard_indices_(loader);\n",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.slow
def test_each_subtest_can_fail(tree: Path, name: str) -> None:
    header = tree / "reference" / "llmc" / "dataloader.h"
    right, wrong = WRONG[name]
    assert header.read_text().count(right) == 1
    header.write_text(header.read_text().replace(right, wrong))
    folder = tree / "dev" / "test"
    assert make(folder, "LLMC=../../reference", "test_dataloader").returncode == 0
    seen = subprocess.run(
        ["./test_dataloader"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert f"FAIL   {name}:" in seen.stdout
    assert seen.returncode == 1


def test_test_gpt2_links_on_the_stubs_from_both_places(tree: Path) -> None:
    made = make(tree, "test_gpt2")
    assert (made.returncode, made.stderr) == (0, "")
    seen = subprocess.run(
        ["./test_gpt2"], cwd=tree / "dev" / "test", capture_output=True, check=False
    )
    assert seen.returncode == 77
    assert b"is not written yet" in seen.stderr


def test_bare_make_prints_help() -> None:
    seen = make(ROOT)
    assert seen.returncode == 0
    for target in ("test", "quick", "check", "data", "mutants", "test_dataloader"):
        assert f"make {target} " in seen.stdout
