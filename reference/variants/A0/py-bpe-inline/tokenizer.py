"""tokenizer.py in which the class needs none of the functions: parts are bounds, tokens are ids."""

from __future__ import annotations

import heapq
import io
import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import regex as re

EOT_TEXT = "<|endoftext|>"  # stands between documents
VOCAB_MAGIC, VOCAB_VERSION = 20240328, 2
VOCAB_HEADER = struct.Struct("<256I")  # magic, version, number of tokens, end-of-text token, zeros

PathLike = str | os.PathLike[str]


# ---------------------------------------------------------------- given: the vocabulary file


def read_vocab(path: PathLike) -> tuple[list[bytes], int]:
    """The byte strings (V,) of a vocabulary file, version 2 (llmc/tokenizer.h says what it looks
    like), and its end-of-text token.

    Raises ValueError if the file is none.
    """
    data = Path(path).read_bytes()
    if len(data) < VOCAB_HEADER.size:
        raise ValueError(f"{path}: {len(data)} bytes, a header has {VOCAB_HEADER.size}")
    magic, version, count, eot, *_ = VOCAB_HEADER.unpack_from(data)
    if (magic, version) != (VOCAB_MAGIC, VOCAB_VERSION):
        raise ValueError(f"{path}: magic {magic}, version {version}, want {VOCAB_MAGIC}, 2")
    tokens: list[bytes] = []
    at = VOCAB_HEADER.size
    for i in range(count):
        token = data[at + 1 : at + 1 + data[at]] if at < len(data) else b""
        if not token or len(token) != data[at]:
            raise ValueError(f"{path}: token {i} is empty or cut short")
        tokens.append(token)
        at += 1 + len(token)
    if at != len(data):
        raise ValueError(f"{path}: {len(data) - at} bytes behind the last token")
    return tokens, eot


def write_vocab(path: PathLike, tokens: Sequence[bytes], eot: int) -> None:
    """Writes the byte strings (V,) of all tokens, in the order of ids, as a vocabulary file.

    Raises ValueError for a string that has not 1 to 255 bytes and for an `eot` outside 0..V-1.
    """
    if not 0 <= eot < len(tokens):
        raise ValueError(f"{path}: end-of-text token {eot} is outside 0..{len(tokens) - 1}")
    for i, token in enumerate(tokens):
        if not 1 <= len(token) <= 255:
            raise ValueError(f"{path}: token {i} has length {len(token)}, want 1 to 255")
    head = VOCAB_HEADER.pack(VOCAB_MAGIC, VOCAB_VERSION, len(tokens), eot, *[0] * 252)
    write_whole(path, head + b"".join(bytes([len(token)]) + token for token in tokens))


def write_whole(path: PathLike, data: bytes) -> None:
    """Writes a file beside its place and renames it: nobody ever sees half of it."""
    beside = Path(f"{os.fspath(path)}.part")
    beside.write_bytes(data)
    beside.replace(path)

PATTERN = re.compile(
    r"""
    ' (?: s | t | re | ve | m | ll | d )
    | [ ]? \p{Letter}+
    | [ ]? \p{Number}+
    | [ ]? [^\s\p{Letter}\p{Number}]+
    | \s+ $(?<=\s\Z)
    | \s+ (?=\s)
    | \s+
    """,
    re.VERBOSE,
)
LETTERS = {
    **{b: chr(b) for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b},
    **{b: chr(256 + i) for i, b in enumerate([*range(33), *range(127, 161), 173])},
}


def bytes_to_unicode() -> dict[int, str]:
    return LETTERS.copy()


def split(text: str) -> list[str]:
    return [match.group() for match in PATTERN.finditer(text)]


def merge(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    return list(_parts(piece, ranks))


def _parts(piece: bytes, ranks: Mapping[bytes, int]) -> Iterator[bytes]:
    bounds = _short(piece, ranks) if len(piece) < 200 else _long(piece, ranks)
    for start, stop in zip(bounds, bounds[1:]):
        yield piece[start:stop]


def _short(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """Looks at all pairs each time: the fastest way, for a word."""
    bounds = list(range(len(piece) + 1))
    while len(bounds) > 2:
        none = float("inf")
        found = [ranks.get(piece[a:b], none) for a, b in zip(bounds, bounds[2:])]
        lowest = min(found)
        if lowest == none:
            break
        del bounds[found.index(lowest) + 1]
    return bounds


def _long(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """A bit for each bound between two parts; neighbours are found by looking for set ones."""
    n = len(piece)
    alive = bytearray(b"\1") * (n + 1)
    heap = []

    def push(start: int, middle: int, stop: int) -> None:
        rank = ranks.get(piece[start:stop])
        if rank is not None:
            heapq.heappush(heap, (rank, start, middle, stop))

    for i in range(n - 1):
        push(i, i + 1, i + 2)
    while heap:
        _, start, middle, stop = heapq.heappop(heap)
        if not (alive[start] and alive[middle] and alive[stop]):
            continue
        if alive.find(1, start + 1) != middle or alive.find(1, middle + 1) != stop:
            continue
        alive[middle] = 0
        if stop < n:
            push(start, stop, alive.find(1, stop + 1))
        if start > 0:
            push(alive.rfind(1, 0, start), start, stop)
    return [i for i in range(n + 1) if alive[i]]


class BPE:
    def __init__(self, tokens: Sequence[bytes], ranks: Mapping[bytes, int], eot: int) -> None:
        """Given. Raises ValueError for an `eot` outside 0..V-1, a token that occurs twice, one of
        the 256 single bytes that is none, and a rank of what is no token.
        """
        self.tokens = list(tokens)
        self.eot = eot
        if not 0 <= eot < len(tokens):
            raise ValueError(f"end-of-text token {eot} is outside 0..{len(tokens) - 1}")
        self.ids = {token: i for i, token in enumerate(tokens) if i != eot}
        self.ranks = dict(ranks)
        if len(self.ids) != len(tokens) - 1 or tokens[eot] in self.ids:
            raise ValueError(f"{len(tokens)} tokens, but {len(set(tokens))} different ones")
        for needed in [*(bytes([byte]) for byte in range(256)), *ranks]:
            if needed not in self.ids:
                raise ValueError(f"{needed!r} is not among the {len(tokens)} tokens")

    def encode(self, text: str, allowed_special: Collection[str] = ()) -> list[int]:
        if not isinstance(text, str):
            raise TypeError("no text: %.20r" % (text,))
        if any(name != EOT_TEXT for name in allowed_special):
            raise ValueError("special tokens: %r" % (allowed_special,))
        ids: list[int] = []
        start = 0
        for stop in self._stops(text) if len(allowed_special) else [len(text)]:
            for match in PATTERN.finditer(text[start:stop]):
                piece = match[0].encode("utf-8", "strict")
                whole = self.ids.get(piece)
                if whole is not None and (piece in self.ranks or len(piece) == 1):
                    parts = list(_parts(piece, self.ranks))
                    ids.extend([whole] if len(parts) == 1 else (self.ids[p] for p in parts))
                else:
                    ids.extend(self.ids[part] for part in _parts(piece, self.ranks))
            if stop < len(text):
                ids.append(self.eot)
            start = stop + len(EOT_TEXT)
        return ids

    @staticmethod
    def _stops(text: str) -> list[int]:
        return [match.start() for match in re.finditer(re.escape(EOT_TEXT), text)] + [len(text)]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        table = dict(enumerate(self.tokens))
        stream = io.BytesIO()
        for i in ids:
            try:
                stream.write(table[i])
            except KeyError:
                raise IndexError(f"{i} is the id of nothing") from None
        return stream.getvalue()

    def decode(self, ids: Iterable[int]) -> str:
        stream = io.BytesIO(self.decode_bytes(ids))
        return io.TextIOWrapper(stream, "utf-8", errors="replace", newline="").read()

    @classmethod
    def from_files(cls, encoder_json: PathLike, vocab_bpe: PathLike) -> BPE:
        table = str.maketrans({letter: chr(byte) for byte, letter in LETTERS.items()})
        known = set(LETTERS.values())

        def raw(word: str) -> bytes:
            if not known.issuperset(word):
                raise ValueError(f"{word!r}: strange letters {set(word) - known}")
            return word.translate(table).encode("latin-1")

        with open(encoder_json, "rb") as file:
            words = json.load(file)
        by_id = {i: word for word, i in words.items()}
        if EOT_TEXT not in words or set(by_id) != set(range(len(words))):
            raise ValueError(f"{len(by_id)} ids for {len(words)} words")
        eot = words[EOT_TEXT]
        tokens = [EOT_TEXT.encode() if i == eot else raw(by_id[i]) for i in range(len(by_id))]
        text = Path(vocab_bpe).read_bytes().decode()
        if not re.match("#version", text):
            raise ValueError("the first line is not #version")
        if text[-1] != "\n":
            text += "\n"
        body = text[text.index("\n") + 1 :]
        pairs = re.findall(r"^([^ \n]+) ([^ \n]+)$", body, re.MULTILINE)
        if len(pairs) != body.count("\n"):
            raise ValueError(f"{body.count(chr(10))} lines, {len(pairs)} merges")
        return cls(tokens, {raw(a + b): i for i, (a, b) in enumerate(pairs)}, eot)

    @classmethod
    def from_vocab(cls, path: PathLike) -> BPE:
        tokens, eot = read_vocab(path)
        several = filter(lambda i: i != eot and len(tokens[i]) != 1, range(len(tokens)))
        return cls(tokens, {tokens[i]: i for i in several}, eot)

    def save(self, encoder_json: PathLike, vocab_bpe: PathLike) -> None:
        write = lambda token: token.decode("latin-1").translate(LETTERS)  # noqa: E731
        text = "#version: 0.2\n"
        known: dict[bytes, int] = {}
        for rank, token in sorted((rank, token) for token, rank in self.ranks.items()):
            bounds = _short(token, known)
            if len(bounds) != 3:
                raise ValueError(f"{token!r} is no two parts")
            text += f"{write(token[: bounds[1]])} {write(token[bounds[1] :])}\n"
            known[token] = rank
        ids = {write(token): i for token, i in self.ids.items()}
        write_whole(encoder_json, json.dumps({**ids, EOT_TEXT: self.eot}, indent=1).encode())
        write_whole(vocab_bpe, text.encode())


def learn_merges(pieces: Mapping[bytes, int], count: int) -> list[tuple[bytes, bytes]]:
    """A piece is a str of a private character for each part; str.replace joins."""
    if count < 0:
        raise ValueError(f"count {count}")
    raw = [bytes([b]) for b in range(256)]
    words = {piece.decode("latin-1"): times for piece, times in pieces.items()}
    counts: dict[str, int] = {}
    inside: dict[str, dict[str, None]] = {}

    def change(word: str, times: int) -> None:
        for i in range(len(word) - 1):
            pair = word[i : i + 2]
            counts[pair] = counts.get(pair, 0) + times
            if times > 0:
                inside.setdefault(pair, {})[word] = None
            else:
                inside[pair].pop(word, None)

    for word, times in words.items():
        change(word, times)
    merges = []
    for step in range(count):
        most = max(counts.values(), default=0)
        if most <= 0:
            raise ValueError(f"{step} merges, want {count}")
        best = min(
            (pair for pair in counts if counts[pair] == most),
            key=lambda pair: [raw[ord(letter)] for letter in pair],
        )
        left, right = (raw[ord(letter)] for letter in best)
        merges.append((left, right))
        raw.append(left + right)
        for word in list(inside[best]):
            times = words.pop(word)
            change(word, -times)
            joined = word.replace(best, chr(len(raw) - 1))
            words[joined] = times
            change(joined, times)
        counts = {pair: times for pair, times in counts.items() if times > 0}
    return merges


def train_bpe(text: str, vocab_size: int) -> BPE:
    if vocab_size <= 256:
        raise ValueError(f"vocab_size {vocab_size}")
    pieces: dict[bytes, int] = {}
    for document in re.split(re.escape(EOT_TEXT), text):
        for piece in map(str.encode, split(document)):
            pieces[piece] = 1 + pieces.get(piece, 0)
    tokens = [bytes([b]) for b in LETTERS]
    tokens += map(b"".join, learn_merges(pieces, vocab_size - 257))
    ranks = dict(zip(tokens[256:], range(vocab_size)))
    return BPE([*tokens, EOT_TEXT.encode()], ranks, len(tokens))
