"""Each message the reference promises for bad input: one line, status 1, nothing leaked."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from autograder import build
from autograder.rubric import ROOT

MAIN = r"""
#include "llmc/dataloader.h"
#include "llmc/tokenizer.h"
int main(int argc, char **argv) {
    size_t B = argc > 3 ? (size_t)atoi(argv[3]) : 8, T = argc > 4 ? (size_t)atoi(argv[4]) : 24;
    if (argv[1][0] == 't') {
        Tokenizer t;
        tokenizer_init(&t, argv[2]);
        printf("init_ok %d\n", t.init_ok);
        tokenizer_free(&t);
    } else if (argv[1][0] == 'd') {
        DataLoader loader;
        dataloader_init(&loader, argv[2], B, T, 0, 1, 0);
        if (argc > 5) dataloader_resume(&loader, (size_t)atoi(argv[5]), 0);
        dataloader_next_batch(&loader);
        dataloader_free(&loader);
    } else {
        EvalLoader loader;
        evalloader_init(&loader, argv[2], B, T, 0, argc > 5 ? atoi(argv[5]) : 1);
        evalloader_next_batch(&loader);
        evalloader_free(&loader);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, tools: build.Toolchain) -> Path:
    folder = tmp_path_factory.mktemp("messages")
    (folder / "main.c").write_text(MAIN)
    command = [tools.compiler, *tools.flags, f"-I{ROOT / 'reference'}", str(folder / "main.c")]
    subprocess.run([*command, "-o", str(folder / "main"), "-lm"], check=True)
    return folder / "main"


def shard(magic: int = 20240520, version: int = 1, count: int = 10, tokens: int = 10) -> bytes:
    return struct.pack("<256i", magic, version, count, *[0] * 253) + bytes(2 * tokens)


def vocabulary(
    magic: int = 20240328, version: int = 2, count: int = 2, body: bytes = b"\x01a\x02bc"
) -> bytes:
    return struct.pack("<256I", magic, version, count, *[0] * 253) + body


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


ONE = words(65535, 30, 0, 1, 4, 1, 9, 1, 1, 1, 2, 1, 3, 1, 4)  # context 9, completions 1 2 3 4


def examples(
    magic: int = 20240522, version: int = 1, count: int = 1, longest: int = 30, body: bytes = ONE
) -> bytes:
    return struct.pack("<256i", magic, version, count, longest, *[0] * 252) + body


# kind, content (None: no file), more arguments, the line on stderr (F: the file)
BAD = {
    "no match": (
        "d",
        None,
        (),
        "F: no file matches (quote the pattern, and run `make data` first)",
    ),
    "shard magic": ("d", shard(magic=7), (), "F: bad magic 7, want 20240520 (write the shards"),
    "shard version": ("d", shard(version=2), (), "F: bad version 2, want 1 (write the shards"),
    "shard header": ("d", shard()[:1000], (), "F: cut short (was it written to the end?)"),
    "shard empty": ("d", b"", (), "F: cut short (was it written to the end?)"),
    "shard count": ("d", shard(count=11), (), "F: 1044 bytes, but 11 tokens need 1046 (write"),
    "shard longer": ("d", shard(count=9), (), "F: 1044 bytes, but 9 tokens need 1042 (write"),
    "shard zero": ("d", shard(count=0, tokens=0), (), "F: 0 tokens (write the shards again"),
    "shard negative": ("d", shard(count=-3), (), "F: -3 tokens (write the shards again"),
    "shard short": ("d", shard(), ("2", "5"), "F: 10 tokens, a batch needs 11 (longer shards"),
    "resume": ("d", shard(), ("2", "2", "1"), "no shard 1 among 1 (resume with the same shards)"),
    "vocabulary magic": ("t", vocabulary(magic=9), (), "F: bad magic 9, want 20240328 (run `make"),
    "vocabulary version": ("t", vocabulary(version=3), (), "F: bad version 3, want 1 or 2 (run"),
    "vocabulary v1": (
        "t",
        vocabulary(version=1),
        (),
        "F: version 1 with 2 tokens, want 50257 (run",
    ),
    "vocabulary length 0": ("t", vocabulary(body=b"\x01a\x00"), (), "F: token 1 has length 0 (run"),
    "vocabulary cut": ("t", vocabulary(body=b"\x01a\x02b"), (), "F: cut short (was it written"),
    "vocabulary header": ("t", vocabulary()[:77], (), "F: cut short (was it written to the end?)"),
    "eval missing": ("e", None, (), "F: cannot open (is the path right, and may you read it?)"),
    "eval magic": ("e", examples(magic=1), (), "F: bad magic 1, want 20240522 (write the file"),
    "eval version": ("e", examples(version=9), (), "F: bad version 9, want 1 (write the file"),
    "eval header": ("e", examples()[:500], (), "F: cut short (was it written to the end?)"),
    "eval none": ("e", examples(count=0), (), "F: 0 examples (write the file again)"),
    "eval longest": ("e", examples(longest=0), (), "F: longest example of 0 bytes (write the file"),
    "eval B": ("e", examples(), ("3",), "B is 3, want at least 4 (an example needs a row for each"),
    "eval T": ("e", examples(), ("8", "1"), "F: example 0 has 2 tokens, T is 1 (a larger T)"),
    "eval mark": (
        "e",
        examples(body=words(1) + ONE[2:]),
        (),
        "F: example 0 does not start with 655",
    ),
    "eval label": (
        "e",
        examples(body=ONE[:6] + words(4) + ONE[8:]),
        (),
        "F: example 0: label 4 of 4",
    ),
    "eval cut": ("e", examples(body=ONE[:-4]), (), "F: cut short (was it written to the end?)"),
    "eval inside": (
        "e",
        examples(body=ONE[:-4] + words(9, 4)),
        (),
        "F: example 0 is cut short (write",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line_and_status_1(name: str, program: Path, tmp_path: Path) -> None:
    kind, content, more, line = BAD[name]
    path = tmp_path / "input.bin"
    if content is not None:
        path.write_bytes(content)
    seen = subprocess.run(
        [program, kind, str(path), *more], capture_output=True, text=True, check=False
    )
    assert seen.returncode == 1, seen.stderr
    assert seen.stderr.startswith("error: " + line.replace("F", str(path), line[:1] == "F"))
    assert seen.stderr.count("\n") == 1, "one line: no leak report, no sanitizer report"


def test_a_missing_vocabulary_only_clears_init_ok(program: Path, tmp_path: Path) -> None:
    command = [str(program), "t", str(tmp_path / "none.bin")]
    seen = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (seen.returncode, seen.stdout) == (0, "init_ok 0\n")
    assert "no vocabulary, so no text will be shown (run `make data`" in seen.stderr


@pytest.mark.parametrize("kind", ["d", "t", "e"])
def test_good_input_is_silent(kind: str, program: Path, tmp_path: Path) -> None:
    path = tmp_path / "input.bin"
    path.write_bytes({"d": shard(), "t": vocabulary(), "e": examples()}[kind])
    small = ("2", "2") if kind == "d" else ("8", "24")
    seen = subprocess.run(
        [program, kind, str(path), *small], capture_output=True, text=True, check=False
    )
    assert (seen.returncode, seen.stderr) == (0, "")


def test_more_processes_than_examples_is_no_error(program: Path, tmp_path: Path) -> None:
    (tmp_path / "input.bin").write_bytes(examples())
    command = [str(program), "e", str(tmp_path / "input.bin"), "8", "24", "5"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
