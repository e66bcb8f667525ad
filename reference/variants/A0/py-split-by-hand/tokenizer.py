"""tokenizer.py without regular expressions: pieces are found by hand, parts are linked nodes."""

import json
import os
import struct
import unicodedata
from bisect import insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from queue import PriorityQueue
from typing import Optional, Union

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


WHITE = frozenset("\t\n\x0b\x0c\r \x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)
ENDINGS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def bytes_to_unicode() -> dict[int, str]:
    shown = list(range(ord("!"), ord("~") + 1))
    shown += list(range(ord("\xa1"), ord("\xac") + 1)) + list(range(ord("\xae"), ord("\xff") + 1))
    letters = shown[:]
    n = 0
    for b in range(2**8):
        if b not in shown:
            shown.append(b)
            letters.append(2**8 + n)
            n += 1
    return dict(zip(shown, map(chr, letters)))


def kind(letter: str) -> str:
    if letter in WHITE:
        return "white"
    category = unicodedata.category(letter)[0]
    return category if category in "LN" else "other"


def split(text: str) -> list[str]:
    kinds = [kind(letter) for letter in text] + ["end"]
    pieces, at = [], 0

    def run(start: int) -> int:
        """Where the run of one kind that starts there ends."""
        stop = start + 1
        while kinds[stop] == kinds[start]:
            stop += 1
        return stop

    while at < len(text):
        ending = next((e for e in ENDINGS if text.startswith(e, at)), "")
        if ending:
            stop = at + len(ending)
        elif kinds[at] != "white":
            stop = run(at)
        elif text[at] == " " and kinds[at + 1] not in ("white", "end"):
            stop = run(at + 1)
        else:
            stop = run(at)
            if kinds[stop] != "end" and stop - at > 1:
                stop -= 1
        pieces.append(text[at:stop])
        at = stop
    return pieces


class Node:
    __slots__ = ("part", "place", "left", "right", "gone")

    def __init__(self, part: bytes, place: int, left: Optional["Node"]) -> None:
        self.part, self.place, self.left, self.right, self.gone = part, place, left, None, False
        if left is not None:
            left.right = self


def merge(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    head = Node(b"", -1, None)
    last = head
    for place, byte in enumerate(piece):
        last = Node(bytes((byte,)), place, last)
    queue: PriorityQueue = PriorityQueue()

    def consider(node: Optional[Node]) -> None:
        if node is not None and node is not head and node.right is not None:
            joined = node.part + node.right.part
            if joined in ranks:
                queue.put(
                    (ranks[joined], node.place, joined, Entry(node, node.right))
                )

    node = head.right
    while node is not None:
        consider(node)
        node = node.right
    while not queue.empty():
        *_, joined, entry = queue.get()
        left, right = entry.left, entry.right
        if left.gone or right.gone or left.right is not right or left.part + right.part != joined:
            continue
        left.part, left.right, right.gone = joined, right.right, True
        if right.right is not None:
            right.right.left = left
        consider(left.left)
        consider(left)
    parts, node = [], head.right
    while node is not None:
        parts.append(node.part)
        node = node.right
    return parts


class Entry:
    """Two neighbours; entries of a queue are compared, these are all equal."""

    def __init__(self, left: Node, right: Node) -> None:
        self.left, self.right = left, right

    def __lt__(self, other: "Entry") -> bool:
        return False


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
        if type(text) is bytes or not hasattr(text, "encode"):
            raise TypeError("want str, got " + type(text).__name__)
        strange = set(allowed_special) - {EOT_TEXT}
        if strange:
            raise ValueError("unknown special tokens: " + ", ".join(sorted(strange)))
        text.encode("utf-8")
        of_piece = lru_cache(maxsize=1000)(partial(self.ids_of_piece))
        result: list[int] = []
        rest = text
        while rest:
            here, found, rest = rest.partition(EOT_TEXT) if allowed_special else (rest, "", "")
            for piece in split(here):
                result.extend(of_piece(piece))
            if found:
                result.append(self.eot)
        return result

    def ids_of_piece(self, piece: str) -> tuple[int, ...]:
        return tuple(map(self.ids.__getitem__, merge(bytes(piece, "utf-8"), self.ranks)))

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        buffer = bytearray()
        for i in ids:
            if i < 0 or i >= len(self.tokens):
                raise IndexError(i)
            buffer += self.tokens[i]
        return bytes(buffer)

    def decode(self, ids: Iterable[int]) -> str:
        return str(self.decode_bytes(ids), "utf-8", "replace")

    @classmethod
    def from_files(cls, encoder_json: PathLike, vocab_bpe: PathLike) -> "BPE":
        table = {ord(letter): byte for byte, letter in bytes_to_unicode().items()}

        def spelled(word: str) -> bytes:
            try:
                return bytes([table[ord(letter)] for letter in word])
            except KeyError as strange:
                raise ValueError(f"{word!r}: no byte is written as U+{strange.args[0]:04X}")

        with open(encoder_json, encoding="utf-8") as f:
            ids = json.load(f)
        tokens: list[Optional[bytes]] = [None] * len(ids)
        for word, i in ids.items():
            if not 0 <= i < len(ids) or tokens[i] is not None:
                raise ValueError(f"id {i}")
            tokens[i] = word.encode() if word == EOT_TEXT else spelled(word)
        if EOT_TEXT not in ids:
            raise ValueError("no end of text")
        ranks: dict[bytes, int] = {}
        with open(vocab_bpe, encoding="utf-8") as f:
            if not f.readline().startswith("#version"):
                raise ValueError("no #version")
            for rank, line in enumerate(f):
                left, right = line.rstrip("\n").split(" ")  # other counts are a ValueError, too
                if not left or not right:
                    raise ValueError(line)
                ranks[spelled(left) + spelled(right)] = rank
        return cls(tokens, ranks, ids[EOT_TEXT])

    @classmethod
    def from_vocab(cls, path: PathLike) -> "BPE":
        tokens, eot = read_vocab(path)
        ranks = {}
        for token in tokens[:eot] + tokens[eot + 1 :]:
            if len(token) >= 2:
                ranks[token] = len(ranks)
        return cls(tokens, ranks, eot)

    def save(self, encoder_json: PathLike, vocab_bpe: PathLike) -> None:
        table = bytes_to_unicode()
        names = ["".join(map(table.__getitem__, token)) for token in self.tokens]
        names[self.eot] = EOT_TEXT
        merges: list[tuple[int, str]] = []
        for token, rank in self.ranks.items():
            lower = {other: r for other, r in self.ranks.items() if r < rank}
            parts = merge(token, lower)
            if len(parts) != 2:
                raise ValueError(token)
            insort(merges, (rank, " ".join("".join(table[b] for b in part) for part in parts)))
        with open(encoder_json, "w", encoding="utf-8") as f:
            json.dump(dict(zip(names, range(len(names)))), f, ensure_ascii=False)
        with open(vocab_bpe, "w", encoding="utf-8", newline="\n") as f:
            print("#version: 0.2", *(line for _, line in merges), sep="\n", file=f)


def learn_merges(pieces: Mapping[bytes, int], count: int) -> list[tuple[bytes, bytes]]:
    """Numbers for parts; the counts of a piece's pairs are taken away and given back as it changes."""
    if count < 0:
        raise ValueError(count)
    words = [([bytes([byte]) for byte in piece], n) for piece, n in pieces.items() if n]
    times_of: dict[tuple[bytes, bytes], int] = {}
    where: dict[tuple[bytes, bytes], set[int]] = {}

    def add(w: int, sign: int) -> None:
        parts, times = words[w]
        for pair in zip(parts, parts[1:]):
            times_of[pair] = times_of.get(pair, 0) + sign * times
            if sign > 0:
                where.setdefault(pair, set()).add(w)
            elif times_of[pair] == 0:
                del times_of[pair]

    for w in range(len(words)):
        add(w, 1)
    merges: list[tuple[bytes, bytes]] = []
    while len(merges) < count:
        most = max(times_of.values(), default=0)
        if most == 0:
            raise ValueError(f"no {count} merges, only {len(merges)}")
        best = min(pair for pair, times in times_of.items() if times == most)
        merges.append(best)
        for w in where.pop(best):
            add(w, -1)
            parts, times = words[w]
            i = 0
            while i + 1 < len(parts):
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [parts[i] + parts[i + 1]]
                i += 1
            add(w, 1)
    return merges


def train_bpe(text: str, vocab_size: int) -> BPE:
    if vocab_size < 2**8 + 1:
        raise ValueError(f"a vocabulary of {vocab_size}")
    pieces: dict[bytes, int] = {}
    for document in text.split(EOT_TEXT):
        for piece in split(document):
            raw = piece.encode("utf-8")
            pieces[raw] = pieces.get(raw, 0) + 1
    tokens = [bytes((b,)) for b in bytes_to_unicode()]
    for left, right in learn_merges(pieces, vocab_size - 1 - len(tokens)):
        tokens.append(left + right)
    tokens.append(EOT_TEXT.encode("ascii"))
    return BPE(tokens, {t: i for i, t in enumerate(tokens[256:-1])}, vocab_size - 1)
