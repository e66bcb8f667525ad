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
    raise NotImplementedError("A0: bytes_to_unicode")


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
    raise NotImplementedError("A0: split")


def merge(piece: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """Merges the bytes of a piece into the parts that are its tokens.

    At first each byte is a part. As long as two neighbours, joined, have a rank, those with the
    lowest are joined; of equal ones the leftmost. Joined, the parts are the piece; an empty piece
    has none. Takes time O(n log n) for n bytes: a text without spaces is a single piece.
    """
    # TODO (A0): merge
    # HINT: a heap of (rank, place) of all pairs, and a linked list of the parts. Joining two parts
    # makes two new pairs and leaves outdated ones in the heap: notice those when they come out.
    raise NotImplementedError("A0: merge")


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
        raise NotImplementedError("A0: BPE.encode")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The byte strings of the tokens, joined. Raises IndexError for an id outside 0..V-1."""
        # TODO (A0): BPE.decode_bytes
        # HINT: Python's lists have an element -1, a vocabulary has not.
        raise NotImplementedError("A0: BPE.decode_bytes")

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the tokens; where their bytes are no UTF-8 it has U+FFFD.

        Raises IndexError for an id outside 0..V-1.
        """
        # TODO (A0): BPE.decode
        # HINT: a character may be spread over several tokens: join the bytes first.
        raise NotImplementedError("A0: BPE.decode")

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
        raise NotImplementedError("A0: BPE.from_files")

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
        raise NotImplementedError("A0: BPE.from_vocab")

    def save(self, encoder_json: PathLike, vocab_bpe: PathLike) -> None:
        """Writes the two files that `from_files` reads; the first line is `#version: 0.2`.

        The two parts of a merge are what the merges of lower rank make of its token. Raises
        ValueError, and writes nothing, if these are not two.
        """
        # TODO (A0): BPE.save
        # HINT: go through the tokens in the order of ranks, with a growing table of ranks.
        raise NotImplementedError("A0: BPE.save")


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
    raise NotImplementedError("A0: learn_merges")


def train_bpe(text: str, vocab_size: int) -> BPE:
    """Trains a tokenizer on a text.

    Ids 0..255 are the bytes in the order of `bytes_to_unicode`, then come the merged tokens in the
    order in which `learn_merges` finds them in the pieces of `split`, and <|endoftext|> is the
    last. In the text <|endoftext|> only parts documents: nothing is learnt from it.
    Raises ValueError if `vocab_size` is below 257 or the text has not so many merges.
    """
    # TODO (A0): train_bpe
    # HINT: 257 tokens need no merge; count equal pieces once.
    raise NotImplementedError("A0: train_bpe")
