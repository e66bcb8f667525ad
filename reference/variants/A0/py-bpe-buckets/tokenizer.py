"""tokenizer.py with a bucket of places for each rank, and a bucket of pairs for each count."""

from __future__ import annotations

import array
import os
import struct
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, count as numbers_from, repeat
from pathlib import Path

import regex

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


def bytes_to_unicode() -> dict[int, str]:
    table: dict[int, str] = OrderedDict()
    spare = numbers_from(0x100)
    hidden = []
    for b in range(0x100):
        if b <= 0x20 or 0x7F <= b <= 0xA0 or b == 0xAD:
            hidden.append((b, chr(next(spare))))
        else:
            table[b] = chr(b)
    table.update(hidden)
    return table


def split(text: str) -> list[str]:
    scan = regex.compile(
        "('s|'t|'re|'ve|'m|'ll|'d"
        "| ?[[:alpha:]&&\\p{L}]+"
        "| ?\\p{N}+"
        "| ?[^\\s\\p{L}\\p{N}]+"
        "|\\s+(?!\\S)"
        "|\\s+)",
        regex.VERSION1,
    ).scanner(text)
    return [found[1] for found in iter(scan.search, None)]


def merge(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """Rank by rank, each from left to right; a join may open a bucket of lower rank again."""
    size = len(piece)
    length = array.array("i", repeat(1, size))  # of the part that starts there, 0 for none
    back = array.array("i", repeat(1, size))  # of the part before
    buckets: dict[int, list[int]] = defaultdict(list)
    open_ranks: list[int] = []

    def note(i: int) -> None:
        j = i + length[i]
        if j < size:
            rank = ranks.get(piece[i : j + length[j]], -1)
            if rank >= 0:
                if not buckets[rank]:
                    heappush(open_ranks, rank)
                heappush(buckets[rank], i)

    for i in range(size):
        note(i)
    while open_ranks:
        rank = open_ranks[0]
        if not buckets[rank]:
            heappop(open_ranks)
            continue
        i = heappop(buckets[rank])
        j = i + length[i]
        if not length[i] or j >= size or ranks.get(piece[i : j + length[j]], -1) != rank:
            continue
        length[i] += length[j]
        length[j] = 0
        k = i + length[i]
        if k < size:
            back[k] = length[i]
        note(i)
        if i > 0:
            note(i - back[i])
    return [piece[i : i + length[i]] for i in range(size) if length[i]]


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
        if isinstance(text, (bytes, bytearray)) or not isinstance(text, str):
            raise TypeError(f"{type(text)}")
        special = frozenset([allowed_special] if type(allowed_special) is str else allowed_special)
        if special - {EOT_TEXT}:
            raise ValueError(f"not special: {sorted(special)}")
        if not special:
            return list(self._plain(text))
        documents = deque(text.split(EOT_TEXT))
        ids = [*self._plain(documents.popleft())]
        while documents:
            ids += [self.eot, *self._plain(documents.popleft())]
        return ids

    def _plain(self, text: str) -> Iterable[int]:
        pieces = split(text)
        known = {p: [self.ids[t] for t in merge(p.encode(), self.ranks)] for p in set(pieces)}
        return chain.from_iterable(known[piece] for piece in pieces)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        ids = list(ids)
        wrong = [i for i in ids if i not in range(len(self.tokens))]
        if wrong:
            raise IndexError(f"no tokens: {wrong}")
        return b"".join([self.tokens[i] for i in ids])

    def decode(self, ids: Iterable[int]) -> str:
        import codecs

        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        raw = self.decode_bytes(ids)
        return "".join(decoder.decode(raw[i : i + 1]) for i in range(len(raw))) + decoder.decode(
            b"", final=True
        )

    @classmethod
    def from_files(cls, encoder_json: PathLike, vocab_bpe: PathLike) -> BPE:
        import json

        back = {v: k for k, v in bytes_to_unicode().items()}
        with open(encoder_json, encoding="utf8") as file:
            ids: dict[str, int] = json.load(file)
        if EOT_TEXT not in ids:
            raise ValueError(f"{encoder_json} has no {EOT_TEXT}")
        tokens = [b""] * len(ids)
        free = set(range(len(ids)))
        try:
            for word, i in ids.items():
                free.remove(i)
                special = word == EOT_TEXT
                tokens[i] = EOT_TEXT.encode() if special else bytes(map(back.__getitem__, word))
            with open(vocab_bpe, encoding="utf8") as file:
                version, *lines = file.read().splitlines()
            pairs = [line.split() for line in lines]
            ranks = {
                bytes(map(back.__getitem__, left + right)): rank
                for rank, (left, right) in enumerate(pairs)
            }
        except KeyError as missing:
            raise ValueError(f"malformed: {missing}") from missing
        if not version.startswith("#version"):
            raise ValueError(version)
        return cls(tokens, ranks, ids[EOT_TEXT])

    @classmethod
    def from_vocab(cls, path: PathLike) -> BPE:
        tokens, eot = read_vocab(path)
        ranks = dict(zip(tokens, range(len(tokens))))
        for token in [*map(bytes, zip(range(256))), tokens[eot]]:
            ranks.pop(token, None)
        return cls(tokens, ranks, eot)

    def save(self, encoder_json: PathLike, vocab_bpe: PathLike) -> None:
        import json

        spell = bytes_to_unicode()
        by_rank = sorted(self.ranks.items(), key=lambda item: item[1])
        text = ["#version: 0.2"]
        for i, (token, _) in enumerate(by_rank):
            try:
                left, right = merge(token, dict(by_rank[:i]))
            except ValueError:
                raise ValueError(f"{token!r} cannot be made of two") from None
            text.append(" ".join("".join(spell[b] for b in part) for part in (left, right)))
        ids = {"".join(spell[b] for b in token): i for token, i in self.ids.items()}
        ids[EOT_TEXT] = self.eot
        write_whole(encoder_json, bytes(json.dumps(ids, separators=(",", ":")), "ascii"))
        write_whole(vocab_bpe, "".join(line + "\n" for line in text).encode("utf8"))


def learn_merges(pieces: Mapping[bytes, int], count: int) -> list[tuple[bytes, bytes]]:
    if count < 0:
        raise ValueError(f"{count} merges")
    words = [[piece[i : i + 1] for i in range(len(piece))] for piece in pieces]
    times = list(pieces.values())
    totals: dict[tuple[bytes, bytes], int] = defaultdict(int)
    seen: dict[tuple[bytes, bytes], set[int]] = defaultdict(set)
    buckets: dict[int, set[tuple[bytes, bytes]]] = defaultdict(set)

    def move(pair: tuple[bytes, bytes], more: int) -> None:
        buckets[totals[pair]].discard(pair)
        totals[pair] += more
        buckets[totals[pair]].add(pair)

    for w, word in enumerate(words):
        for pair in zip(word, word[1:]):
            move(pair, times[w])
            seen[pair].add(w)
    merges: list[tuple[bytes, bytes]] = []
    top = max(buckets, default=0)
    while len(merges) < count:
        while top > 0 and not buckets[top]:
            top -= 1
        if top == 0:
            raise ValueError(f"want {count} merges, have {len(merges)}")
        best = min(buckets[top])
        merges.append(best)
        for w in seen.pop(best):
            old, new, fresh = words[w], [], False
            for part in old:
                if new and new[-1] == best[0] and part == best[1] and not fresh:
                    new[-1] += part
                    fresh = True
                else:
                    new.append(part)
                    fresh = False
            for pair in zip(old, old[1:]):
                move(pair, -times[w])
            for pair in zip(new, new[1:]):
                move(pair, times[w])
                seen[pair].add(w)
            words[w] = new
    return merges


def train_bpe(text: str, vocab_size: int) -> BPE:
    merges = vocab_size - 257
    if merges < 0:
        raise ValueError(f"a vocabulary has 257 tokens at least, not {vocab_size}")
    pieces: dict[bytes, int] = defaultdict(int)
    for piece in chain.from_iterable(map(split, text.split(EOT_TEXT))):
        pieces[piece.encode()] += 1
    learnt = [b"%b%b" % pair for pair in learn_merges(pieces, merges)]
    tokens = [bytes([b]) for b in bytes_to_unicode()] + learnt + [EOT_TEXT.encode()]
    return BPE(tokens, {token: 256 + i for i, token in enumerate(learnt)}, vocab_size - 1)
