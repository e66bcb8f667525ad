"""Observations are parsed strictly, endings are named, and ASan gets a second chance to start."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from autograder import observe, sandbox
from autograder.observe import Case, Malformed, parse


def records(stream: bytes) -> dict[str, np.ndarray]:
    return dict(parse(stream))


def test_every_type_comes_through() -> None:
    stream = (
        b"a i64 1 feffffffffffffff\n"
        b"b i32 2 0100000002000000\n"
        b"c u32 1 ffffffff\n"
        b"e u8 3 010203\n"
        b"f f32 1 0000803f\n"
        b"g f64 1 000000000000f03f\n"
        b"none u8 0 \n"
    )
    values = {name: array.tolist() for name, array in records(stream).items()}
    assert values == {
        "a": [-2],
        "b": [1, 2],
        "c": [2**32 - 1],
        "e": [1, 2, 3],
        "f": [1.0],
        "g": [1.0],
        "none": [],
    }


def test_what_came_before_a_cut_record_counts() -> None:
    assert list(records(b"a u8 1 07\nb u8 4 0102")) == ["a"]


@pytest.mark.parametrize(
    "stream",
    [
        b"hello\n",
        b"a u8 1 0\n",
        b"a u8 2 07\n",
        b"a u8 1 0708\n",
        b"a u8 1 0G\n",
        b"a u8 1 0A\n",
        b"a u8 -1 \n",
        b"a u8 1  07\n",
        b"a u99 1 07\n",
        b"a pickle 1 07\n",
        b" a u8 1 07\n",
        b"a u8 999999999 07\n",
        b"\n",
        b"\x00\xff\n",
        b"a" * 70 + b" u8 1 07\n",
        b"a u8 1 07\r\n",
        b"\x80\x81",
    ],
)
def test_anything_else_is_refused(stream: bytes) -> None:
    with pytest.raises(Malformed):
        records(stream)


def program(folder: Path, script: str) -> Path:
    path = folder / "probe"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def observed(folder: Path, script: str, wall: float = 60) -> observe.Observed:
    case = Case(program(folder, script), "case", sandbox.Limits(wall_seconds=wall), 137)
    return observe.run([case], folder / "build", 1)[0]


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    python = "import os; os.write(int(os.environ['OBS_FD']), b'a u8 1 07\\na u8 1 07\\n')"
    seen = observed(tmp_path, f'exec python3 -c "{python}"'.replace("\\n", "\\\\n"))
    assert seen.ending.kind == "malformed"


def test_endings(tmp_path: Path) -> None:
    endings = {
        "echo 'TODO: A0: randint32 is not written yet' >&2; exit 77": ("todo", "randint32"),
        "exit 3": ("exit", "3"),
        "exit 0": ("exit", "0"),
        "kill -BUS $$": ("signal", "SIGBUS"),
    }
    for script, (kind, what) in endings.items():
        ending = observed(tmp_path, script).ending
        assert (ending.kind, ending.what) == (kind, what), script


def test_a_finding_has_no_addresses_and_names_the_line() -> None:
    text = (
        "==71==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000018 at pc 0x55\n"
        "WRITE of size 4 at 0x602000000018 thread T0\n"
        "    #0 0x55d0c5 in fill llmc/rand.h:12\n"
        "SUMMARY: AddressSanitizer: heap-buffer-overflow llmc/rand.h:12 in fill\n"
    )
    assert (
        observe._finding(text) == "heap-buffer-overflow, write of 4 bytes, in fill (llmc/rand.h:12)"
    )


def test_asan_that_did_not_start_is_started_again_without_randomisation(tmp_path: Path) -> None:
    """Fails before main() as long as the personality allows address randomisation."""
    script = (
        'if [ "$(cat /proc/self/personality)" = 00040000 ]; then\n'
        "  exec python3 -c 'import os, base64\n"
        'os.write(int(os.environ["OBS_FD"]), base64.b64decode("ZW5kIHU4IDEgMDEK"))\'\n'
        "fi\n"
        "echo 'Shadow memory range interleaves with an existing memory mapping' >&2; exit 1"
    )
    if not os.path.exists("/proc/self/personality") or shutil.which("setarch") is None:
        pytest.skip("only Linux randomises and lets us say so")
    seen = observed(tmp_path, script)
    assert seen.restarted
    assert seen.ending.kind == "ended"


def test_a_program_that_never_starts_fails_all_the_same(tmp_path: Path) -> None:
    seen = observed(tmp_path, "exit 1")
    assert (seen.ending.kind, dict(seen.values)) == ("exit", {})


def test_a_folder_that_became_a_link_is_unlinked_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "victim" / "inner").mkdir(parents=True)
    (tmp_path / "victim" / "inner").chmod(0o500)
    (tmp_path / "run").symlink_to(tmp_path / "victim")
    observe.remove(tmp_path / "run")
    assert not (tmp_path / "run").is_symlink()
    assert (tmp_path / "victim" / "inner").stat().st_mode & 0o777 == 0o500
