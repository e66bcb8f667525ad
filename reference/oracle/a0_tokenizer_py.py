"""What tokenizer_py.py must report: tiktoken's ids, GPT-2's published pattern, and slow merging.

The inputs are the probe's own; the merging and the training here start from the beginning in each
step.
"""

from __future__ import annotations

import importlib.util
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from types import ModuleType

import numpy as np
import regex

from autograder.rubric import ROOT
from reference.oracle.a0 import Case, Values, given_int, i64, u8

# As published with GPT-2 (Radford et al. 2019, encoder.py).
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
EOT = "<|endoftext|>"
PRIVATE = 0x10000  # from here on characters stand for tokens of several bytes


@cache
def probe() -> ModuleType:
    """The probe, for its inputs; nothing of llmc is imported by that."""
    path = ROOT / "assignments" / "A0" / "probes" / "tokenizer_py.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def many(values: Iterable[int]) -> np.ndarray:
    return np.array(list(values), np.int64)


def strings(name: str, values: Sequence[bytes]) -> Values:
    return {f"{name}_lengths": many(map(len, values)), name: u8(b"".join(values))}


def digest(name: str, values: Sequence[bytes]) -> Values:
    lengths = b"".join(struct.pack("<I", len(value)) for value in values)
    return {
        f"{name}_count": i64(len(values)),
        **strings(f"{name}_first", values[:40]),
        f"{name}_sum": i64(zlib.crc32(lengths + b"".join(values))),
    }


# ---------------------------------------------------------------- slow but plain


def letters_of_bytes() -> str:
    """Latin-1's visible characters stand for themselves, by what Unicode says of them."""
    visible = [chr(b).isprintable() and not chr(b).isspace() for b in range(256)]
    spare = iter(range(256, 512))
    return "".join(chr(byte) if visible[byte] else chr(next(spare)) for byte in range(256))


def merged(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while True:
        found = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not found:
            return parts
        _, i = min(found)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def merged_by_rank(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """`merged` where all tokens have two bytes: each becomes one character, rank by rank."""
    text = piece.decode("latin-1")
    for token, rank in sorted(ranks.items(), key=lambda entry: entry[1]):
        text = text.replace(token.decode("latin-1"), chr(PRIVATE + rank))
    tokens = {chr(PRIVATE + rank): token for token, rank in ranks.items()}
    return [tokens.get(letter) or letter.encode("latin-1") for letter in text]


def learnt(pieces: Mapping[bytes, int], count: int) -> list[bytes]:
    """The parts of the merges, two for each. A piece is a str of one character for each part."""
    bytes_of = {chr(byte): bytes([byte]) for byte in range(256)}
    words = [(piece.decode("latin-1"), times) for piece, times in pieces.items()]
    counts: Counter[str] = Counter()
    for word, times in words:
        _count(counts, word, times)
    parts: list[bytes] = []
    for step in range(count):
        most = max(counts.values())
        equal = [pair for pair, times in counts.items() if times == most]
        best = min(equal, key=lambda pair: (bytes_of[pair[0]], bytes_of[pair[1]]))
        letter = chr(PRIVATE + step)
        parts += [bytes_of[best[0]], bytes_of[best[1]]]
        bytes_of[letter] = parts[-2] + parts[-1]
        for i, (word, times) in enumerate(words):
            if best in word:
                words[i] = word.replace(best, letter), times
                _count(counts, word, -times)
                _count(counts, words[i][0], times)
    return parts


def _count(counts: Counter[str], word: str, times: int) -> None:
    for left, right in pairwise(word):
        counts[left + right] += times


# ---------------------------------------------------------------- the cases


def letters(seed: int) -> Values:
    text = letters_of_bytes()
    order = sorted(range(256), key=lambda byte: ord(text[byte]))
    return {"bytes": many(order), "letters": u8(text.encode())}


def pieces_of(fragments: str, count: int) -> Callable[[int], Values]:
    def compute(seed: int) -> Values:
        pieces: list[str] = []
        for line in probe().lines_of(seed, getattr(probe(), fragments), count):
            pieces += [*regex.findall(PATTERN, line), ""]
        return strings("pieces", [piece.encode() for piece in pieces])

    return compute


def merge_order(seed: int) -> Values:
    ranks = probe().random_ranks(seed)
    pieces = probe().random_words(seed)
    return strings("parts", [part for piece in pieces for part in [*merged(piece, ranks), b""]])


def merge_edges(seed: int) -> Values:
    values: Values = {}
    for name, (piece, ranks) in probe().small_merges(seed).items():
        values |= strings(name, merged(piece, ranks))
    return values


def merge_long(seed: int) -> Values:
    return digest("parts", merged_by_rank(*probe().long_word(seed)))


def vocabulary(seed: int, merges: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    tokens = probe().shuffled(seed, 1000, [bytes([byte]) for byte in range(256)])
    tokens += [left + right for left, right in merges]
    tokens.insert(given_int(seed, 1500, 10, 200), EOT.encode())
    return tokens


def ids_of(
    seed: int, merges: Sequence[tuple[bytes, bytes]], text: str, special: bool = False
) -> np.ndarray:
    """tiktoken's ids, where a rank is an id; exchanged for the vocabulary's."""
    import tiktoken

    tokens = vocabulary(seed, merges)
    ranked = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
    encoder = tiktoken.Encoding(
        "given",
        pat_str=PATTERN,
        mergeable_ranks={token: rank for rank, token in enumerate(ranked)},
        special_tokens={EOT: len(ranked)},
    )
    allowed = {EOT} if special else set()
    found = encoder.encode(text, allowed_special=allowed, disallowed_special=())
    return many(tokens.index([*ranked, EOT.encode()][id_]) for id_ in found)


def word_merges(seed: int) -> list[tuple[bytes, bytes]]:
    return [(word[:1].encode(), word[1:].encode()) for word in probe().given_words(seed)]


def encode_words(seed: int) -> Values:
    return {"ids": ids_of(seed, word_merges(seed), probe().plain_text(seed)), "empty": many([])}


def encode_special(seed: int) -> Values:
    values: Values = {}
    for name, text in probe().documents(seed).items():
        values[f"{name}_allowed"] = ids_of(seed, word_merges(seed), text, special=True)
        values[f"{name}_not_allowed"] = ids_of(seed, word_merges(seed), text)
    return values


def encode_unicode(seed: int) -> Values:
    return {"ids": ids_of(seed, probe().given_merges(seed), probe().unicode_text(seed))}


def decode_bytes(seed: int) -> Values:
    tokens = vocabulary(seed, probe().given_merges(seed))
    some = [tokens[given_int(seed, 4000 + i, 0, len(tokens))] for i in range(50)]
    return {"every": u8(b"".join(tokens)), "some": u8(b"".join(some)), "empty": u8(b"")}


def decode_text(seed: int) -> Values:
    broken = bytes(given_int(seed, 4200 + i, 0, 256) for i in range(60))
    return {
        "whole": u8(probe().whole_text(seed).encode() + EOT.encode()),
        "broken": u8(broken.decode(errors="replace").encode()),
        "cut": u8(("\ufffd" * 4).encode()),
    }


def decode_range(seed: int) -> Values:
    return {"size": i64(257 + len(probe().given_merges(seed)))}


def bpe_values(seed: int, tokens: Sequence[bytes]) -> Values:
    ranked = [left + right for left, right in probe().given_merges(seed)]
    eot = list(tokens).index(EOT.encode())
    return {**strings("tokens", tokens), **strings("by_rank", ranked), "eot": i64(eot)}


def files_read(seed: int) -> Values:
    joined = [left + right for left, right in probe().given_merges(seed)]
    every = [*joined, *(bytes([byte]) for byte in range(256)), EOT.encode()]
    return bpe_values(seed, probe().shuffled(seed, 6000, every))


def vocab_read(seed: int) -> Values:
    tokens = vocabulary(seed, probe().given_merges(seed))
    tokens.remove(EOT.encode())
    tokens.insert(given_int(seed, 1600, 258, 20), EOT.encode())
    return bpe_values(seed, tokens)


def save(seed: int) -> Values:
    merges = probe().given_merges(seed)[: len(probe().MERGES)]
    tokens = vocabulary(seed, merges)
    named = [EOT.encode(), *(bytes([byte]) for byte in range(256)), *(x + y for x, y in merges)]
    lines = [b"#version: 0.2", *(b" ".join(pair) for pair in merges)]
    ids = many(map(tokens.index, named))
    return {"size": i64(len(tokens)), "ids": ids, **strings("lines", lines)}


def learn_order(seed: int) -> Values:
    pieces = probe().random_pieces(seed, 150, probe().COMMON, 2, 9)
    return strings("merges", learnt(pieces, 60))


def learn_ties(seed: int) -> Values:
    values: Values = {}
    for name, (pieces, count) in probe().small_pieces(seed).items():
        values |= strings(name, learnt(pieces, count))
    return values


def learn_long(seed: int) -> Values:
    return digest("parts", learnt(probe().many_pieces(seed), 60))


def train(seed: int) -> Values:
    words = [word.encode() for word in reversed(probe().given_words(seed))]
    values = strings("merged", [*words, EOT.encode()]) | strings("by_rank", words)
    return values | {"eot": i64(256 + len(words))}


PATTERN_SAYS = "GPT-2's published pattern, run by the package regex"
SLOW = "by definition: each step looks at all pairs"
TIKTOKEN = "tiktoken on the same ranks"
DEFINED = "by definition"
CASES: dict[str, dict[str, Case]] = {
    "tokenizer_py": {
        "letters": ("Python's str.isprintable and str.isspace", letters),
        "split_words": (PATTERN_SAYS, pieces_of("WORDS", 12)),
        "split_numbers": (PATTERN_SAYS, pieces_of("NUMBERS", 12)),
        "split_spaces": (PATTERN_SAYS, pieces_of("SPACES", 10)),
        "split_any": (PATTERN_SAYS, pieces_of("ANY", 20)),
        "merge_order": (SLOW, merge_order),
        "merge_edges": (SLOW, merge_edges),
        "merge_long": ("by definition: str.replace, rank by rank", merge_long),
        "encode_words": (TIKTOKEN, encode_words),
        "encode_special": (TIKTOKEN, encode_special),
        "encode_unicode": (TIKTOKEN, encode_unicode),
        "decode_bytes": (DEFINED, decode_bytes),
        "decode_text": ("Python's decoder of UTF-8", decode_text),
        "decode_range": (DEFINED, decode_range),
        "files_read": (DEFINED, files_read),
        "vocab_read": (DEFINED, vocab_read),
        "save": (DEFINED, save),
        "learn_order": (SLOW, learn_order),
        "learn_ties": (SLOW, learn_ties),
        "learn_long": (SLOW, learn_long),
        "train": (DEFINED, train),
    }
}
