"""tokenizer.py: GPT-2's byte-pair encoding, from text to token ids and back, and its training.

A text is cut into pieces (`split`), the UTF-8 bytes of each piece are merged, two neighbours at a
time, into longer and longer tokens (`merge`), and the tokens are looked up. Which merge comes first
was learnt from text (`learn_merges`): the earlier it was learnt, the lower its rank.

Sources: Sennrich, Haddow, Birch 2016 (the merges); Radford et al. 2019 (bytes, pieces, files).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

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


# ---------------------------------------------------------------- from text to parts


def bytes_to_unicode() -> dict[int, str]:
    """The letter that each byte 0..255 is written as in encoder.json and vocab.bpe.

    A byte that is a visible character of Latin-1 (33..126, 161..172, 174..255) is that character.
    The other 68, in ascending order, are the characters from U+0100 on, so that none is white
    space. Keys stand in the order of GPT-2's first 256 ids: the visible ones, then the others.
    """
    # TODO (A0): bytes_to_unicode
    # HINT: a space is the 33rd of the others, U+0120.
    # BEGIN SOLUTION
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {b: chr(256 + i) for i, b in enumerate(others)}
    # END SOLUTION


def split(text: str) -> list[str]:
    """Cuts a text into GPT-2's pieces; merges never cross from one into the next.

    At each place the first of these that fits, as long as it can be:

    1. one of the endings 's 't 're 've 'm 'll 'd (with this apostrophe, in lower case),
    2. a space or none, then letters (Unicode categories L*),
    3. a space or none, then numbers (N*),
    4. a space or none, then what is neither white space, letter, nor number,
    5. white space followed by the end of the text or by more white space: at the end of the text
       all that is left, elsewhere all but its last character, which is left to the next piece,
    6. a single character of white space.

    White space is what Unicode calls White_Space. Joined, the pieces are the text; an empty one has
    none.
    """
    # TODO (A0): split
    # HINT: one pattern for the package `regex`, whose \p{L} and \p{N} are letters and numbers in
    # all scripts; `(?!...)` looks ahead without taking anything.
    # BEGIN SOLUTION
    import regex

    ending = r"'(?:s|t|re|ve|m|ll|d)"
    runs = r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
    pieces: list[str] = regex.findall(rf"{ending}|{runs}|\s+(?!\S)|\s+", text)
    return pieces
    # END SOLUTION


def merge(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """Merges the bytes of a piece into the parts that are its tokens.

    At first each byte is a part. As long as two neighbours, joined, have a rank, those with the
    lowest are joined; of equal ones the leftmost. Joined, the parts are the piece; an empty piece
    has none. Takes time O(n log n) for n bytes: a text without spaces is a single piece.
    """
    # TODO (A0): merge
    # HINT: a heap of (rank, place) of all pairs, and a linked list of the parts. Joining two parts
    # makes two new pairs and leaves outdated ones in the heap: notice those when they come out.
    # BEGIN SOLUTION
    from heapq import heapify, heappop, heappush

    n = len(piece)
    end = list(range(1, n + 2))  # of the part that starts here; n where none does
    start = list(range(-1, n))  # of the part that ends here
    pairs = ((ranks.get(piece[i : i + 2]), i, i + 2) for i in range(n - 1))
    heap = [(rank, i, stop) for rank, i, stop in pairs if rank is not None]
    heapify(heap)
    while heap:
        _, i, stop = heappop(heap)
        middle = end[i]
        if end[middle] != stop:
            continue  # one of the two has been joined to another since
        end[i], end[middle], start[stop] = stop, n, i
        if stop < n and (rank := ranks.get(piece[i : end[stop]])) is not None:
            heappush(heap, (rank, i, end[stop]))
        if i > 0 and (rank := ranks.get(piece[start[i] : stop])) is not None:
            heappush(heap, (rank, start[i], stop))
    parts: list[bytes] = []
    at = 0
    while at < n:
        parts.append(piece[at : end[at]])
        at = end[at]
    return parts
    # END SOLUTION


# ---------------------------------------------------------------- the tokenizer


class BPE:
    """A vocabulary with its merges: encodes and decodes.

    tokens  (V,) the byte string of each id
    eot     the id of <|endoftext|>
    ids     byte string → id, of all tokens but <|endoftext|>
    ranks   byte string → rank, of all tokens that a merge makes
    """

    def __init__(self, tokens: Sequence[bytes], ranks: Mapping[bytes, int], eot: int) -> None:
        """Given. Raises ValueError for an `eot` outside 0..V-1, a token that occurs twice, a single
        byte that is not a token, and a rank of what is no token.
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
        """The token ids of a text.

        <|endoftext|> in the text is the token `eot` if `allowed_special` holds "<|endoftext|>";
        otherwise it is text like any other, so that no user's input can end a document.
        Raises TypeError if `text` is no str, ValueError for another name in `allowed_special` and
        for a lone surrogate, which UTF-8 cannot write.
        """
        # TODO (A0): BPE.encode
        # HINT: cut at <|endoftext|> first; most words of a text have occurred before.
        # BEGIN SOLUTION
        if not isinstance(text, str):
            raise TypeError(f"{text!r:.60} is no str")
        for name in allowed_special:
            if name != EOT_TEXT:
                raise ValueError(f"{name!r} is no special token, want {EOT_TEXT!r}")
        ids: list[int] = []
        known: dict[str, list[int]] = {}
        for i, document in enumerate(text.split(EOT_TEXT) if allowed_special else [text]):
            if i > 0:
                ids.append(self.eot)
            for piece in split(document):
                if piece not in known:
                    known[piece] = [self.ids[part] for part in merge(piece.encode(), self.ranks)]
                ids += known[piece]
        return ids
        # END SOLUTION

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The byte strings of the tokens, joined. Raises IndexError for an id outside 0..V-1."""
        # TODO (A0): BPE.decode_bytes
        # HINT: Python's lists have an element -1, a vocabulary has not.
        # BEGIN SOLUTION
        found: list[bytes] = []
        for id_ in ids:
            if not 0 <= id_ < len(self.tokens):
                raise IndexError(f"token id {id_} is outside 0..{len(self.tokens) - 1}")
            found.append(self.tokens[id_])
        return b"".join(found)
        # END SOLUTION

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the tokens; where their bytes are no UTF-8 it has U+FFFD.

        Raises IndexError for an id outside 0..V-1.
        """
        # TODO (A0): BPE.decode
        # HINT: a character may be spread over several tokens: join the bytes first.
        # BEGIN SOLUTION
        return self.decode_bytes(ids).decode("utf-8", errors="replace")
        # END SOLUTION

    @classmethod
    def from_files(cls, encoder_json: PathLike, vocab_bpe: PathLike) -> BPE:
        """Reads GPT-2's two files, in UTF-8, their bytes written as `bytes_to_unicode` says.

        encoder.json maps each token to its id, and <|endoftext|>, as it stands, to `eot`. vocab.bpe
        has a first line that starts with `#version`, then a merge a line, its two parts with a
        space between, in the order of ranks: 0, 1, ...
        Raises ValueError for ids that are not 0..V-1, no <|endoftext|>, a letter that stands for no
        byte, another first line, a line that has not two parts, and as BPE() does.
        """
        # TODO (A0): BPE.from_files
        # HINT: the id of a token and the rank of its merge are two numbers; a merge may begin with
        # a `#`, too.
        # BEGIN SOLUTION
        import json

        byte = {letter: byte for byte, letter in bytes_to_unicode().items()}

        def token(word: str) -> bytes:
            if not all(letter in byte for letter in word):
                raise ValueError(f"{word!r} has a letter that stands for no byte")
            return bytes(byte[letter] for letter in word)

        ids = json.loads(Path(encoder_json).read_text(encoding="utf-8"))
        if sorted(ids.values()) != list(range(len(ids))) or EOT_TEXT not in ids:
            raise ValueError(f"{encoder_json}: not ids 0..{len(ids) - 1}, or no {EOT_TEXT}")
        words = sorted(ids, key=ids.__getitem__)
        tokens = [EOT_TEXT.encode() if word == EOT_TEXT else token(word) for word in words]
        ranks: dict[bytes, int] = {}
        first, *lines = Path(vocab_bpe).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        if not first.startswith("#version"):
            raise ValueError(f"{vocab_bpe}: {first!r} does not start with #version")
        for line in lines:
            parts = line.split(" ")
            if len(parts) != 2 or "" in parts:
                raise ValueError(f"{vocab_bpe}: {line!r} is not two parts")
            ranks[token("".join(parts))] = len(ranks)
        return cls(tokens, ranks, ids[EOT_TEXT])
        # END SOLUTION

    @classmethod
    def from_vocab(cls, path: PathLike) -> BPE:
        """Reads a vocabulary file, version 2.

        It holds no merges. In a vocabulary like GPT-2's they need not be stored: ids were given out
        in the order in which merges were learnt, so the rank of a token of two bytes or more is its
        id, and two neighbours are joined if their bytes, joined, are a token (tiktoken works like
        that, too). Raises ValueError as `read_vocab` and BPE() do.
        """
        # TODO (A0): BPE.from_vocab
        # HINT: no merge makes <|endoftext|>.
        # BEGIN SOLUTION
        tokens, eot = read_vocab(path)
        ranks = {token: i for i, token in enumerate(tokens) if len(token) > 1 and i != eot}
        return cls(tokens, ranks, eot)
        # END SOLUTION

    def save(self, encoder_json: PathLike, vocab_bpe: PathLike) -> None:
        """Writes the two files that `from_files` reads; the first line is `#version: 0.2`.

        The two parts of a merge are what the merges of lower rank make of its token. Raises
        ValueError, and writes nothing, if these are not two.
        """
        # TODO (A0): BPE.save
        # HINT: go through the tokens in the order of ranks, with a growing table of ranks.
        # BEGIN SOLUTION
        import json

        letter = bytes_to_unicode()

        def word(token: bytes) -> str:
            return "".join(letter[byte] for byte in token)

        lines = ["#version: 0.2"]
        lower: dict[bytes, int] = {}
        for token in sorted(self.ranks, key=self.ranks.__getitem__):
            parts = merge(token, lower)
            if len(parts) != 2:
                raise ValueError(f"{token!r} is made of {len(parts)} parts, want 2: {parts}")
            lines.append(f"{word(parts[0])} {word(parts[1])}")
            lower[token] = self.ranks[token]
        names = [EOT_TEXT if i == self.eot else word(t) for i, t in enumerate(self.tokens)]
        ids = {name: i for i, name in enumerate(names)}
        write_whole(encoder_json, json.dumps(ids).encode())
        write_whole(vocab_bpe, ("\n".join(lines) + "\n").encode())
        # END SOLUTION


# ---------------------------------------------------------------- training


def learn_merges(pieces: Mapping[bytes, int], count: int) -> list[tuple[bytes, bytes]]:
    """Learns `count` merges from pieces, each with the number of times that it occurs.

    At first each byte is a part. Each step finds the pair of neighbouring parts that occurs most
    often (aaa holds (a, a) twice), joins it wherever it stands, from left to right, and goes on.
    Of pairs that occur equally often it takes the one with the smallest left part, then the one
    with the smallest right part, as Python compares bytes.
    Counts of pairs are kept from step to step: to count all of them again each time is too much.
    Raises ValueError if `count` is negative or there are not so many merges to learn.
    """
    # TODO (A0): learn_merges
    # HINT: a join changes the counts of its neighbours only: keep for each pair its count and where
    # it stands, and find the most frequent one with a heap; outdated entries are noticed when they
    # come out.
    # BEGIN SOLUTION
    from collections import Counter, defaultdict
    from heapq import heapify, heappop, heappush
    from itertools import pairwise

    if count < 0:
        raise ValueError(f"{count} merges, want 0 or more")
    parts, weights = [b""], [0]  # all pieces, one slot a byte, an empty slot around each piece
    for piece, times in pieces.items():
        parts += [*(piece[i : i + 1] for i in range(len(piece))), b""]
        weights += [times] * (len(piece) + 1)
    after = list(range(1, len(parts) + 1))
    before = list(range(-1, len(parts) - 1))
    counts: Counter[tuple[bytes, bytes]] = Counter()
    places: defaultdict[tuple[bytes, bytes], list[int]] = defaultdict(list)
    for i, pair in enumerate(pairwise(parts)):
        if all(pair):
            counts[pair] += weights[i]
            places[pair].append(i)

    heap = [(-times, *pair) for pair, times in counts.items()]
    heapify(heap)
    merges: list[tuple[bytes, bytes]] = []
    while len(merges) < count:
        if not heap:
            raise ValueError(f"{count} merges, but the text has only {len(merges)}")
        times, *best = heappop(heap)
        left, right = best
        if times == 0 or counts[left, right] != -times:
            continue
        merges.append((left, right))
        changed: set[tuple[bytes, bytes]] = set()
        for i in sorted(places.pop((left, right))):
            j = after[i]
            if parts[i] != left or parts[j] != right:
                continue
            h, k, weight = before[i], after[j], weights[i]
            counts[left, right] -= weight
            for slot, old, new in (
                (h, (parts[h], left), (parts[h], left + right)),
                (i, (right, parts[k]), (left + right, parts[k])),
            ):
                if all(old):
                    counts[old] -= weight
                    counts[new] += weight
                    places[new].append(slot)
                    changed |= {old, new}
            parts[i], parts[j], after[i], before[k] = left + right, b"", k, i
        for pair in changed:
            heappush(heap, (-counts[pair], *pair))
    return merges
    # END SOLUTION


def train_bpe(text: str, vocab_size: int) -> BPE:
    """Trains a tokenizer on a text.

    Ids 0..255 are the bytes in the order of `bytes_to_unicode`, then come the merged tokens in the
    order in which `learn_merges` finds them in the pieces of `split`, and <|endoftext|> is the
    last. In the text <|endoftext|> only parts documents: nothing is learnt from it.
    Raises ValueError if `vocab_size` is below 257 or the text has not so many merges.
    """
    # TODO (A0): train_bpe
    # HINT: 257 tokens need no merge; count equal pieces once.
    # BEGIN SOLUTION
    from collections import Counter

    if vocab_size < 257:
        raise ValueError(f"{vocab_size} tokens, want at least 256 bytes and {EOT_TEXT}")
    pieces: Counter[bytes] = Counter()
    for document in text.split(EOT_TEXT):
        pieces.update(piece.encode() for piece in split(document))
    merged = [left + right for left, right in learn_merges(pieces, vocab_size - 257)]
    ranks = {token: rank for rank, token in enumerate(merged)}
    tokens = [*(bytes([byte]) for byte in bytes_to_unicode()), *merged, EOT_TEXT.encode()]
    return BPE(tokens, ranks, len(tokens) - 1)
    # END SOLUTION
