"""Writers and readers of the course's binary files: token shards, the vocabulary, eval examples.

The formats are described in `llmc/dataloader.h` and `llmc/tokenizer.h`. All numbers in the files
are little-endian. The readers are for tests and tools: they take a whole file into memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from files import replacing

HEADER_WORDS = 256
SHARD_MAGIC = 20240520
EVAL_MAGIC = 20240522
VOCAB_MAGIC = 20240328
DATA_VERSION = 1  # of shards and eval files
EXAMPLE_MARK = 65535
EXAMPLE_HEAD = 5  # words in front of an example's context
NUM_COMPLETIONS = 4
MAX_TOKEN = 65535  # ids are uint16
MAX_COUNT = 2**31 - 1  # the header's words are int32
MAX_EXAMPLES = 65536  # an example's index is a uint16
MAX_EXAMPLE_BYTES = 65535  # and so is its length
GPT2_VOCAB_SIZE = 50257
GPT2_EOT = 50256

Tokens = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Example:
    """A multiple-choice question: a context, its four completions, and which one is right."""

    context: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    label: int


def write_shard(path: Path | str, tokens: Tokens) -> None:
    """Writes tokens (n,), integers in 0..65535, as one shard.

    Raises ValueError for no tokens, more than 2^31 - 1, another shape or type, or an id outside.
    """
    array = _token_array(tokens, f"{path}")
    with replacing(path) as file:
        file.write(_header(SHARD_MAGIC, DATA_VERSION, array.size))
        array.tofile(file)


def read_shard(path: Path | str) -> np.ndarray:
    """The tokens of a shard, (n,) uint16. Raises ValueError if the file is none."""
    data = Path(path).read_bytes()
    header = _read_header(path, data, "<i4", SHARD_MAGIC, (DATA_VERSION,))
    tokens = np.frombuffer(data, "<u2", offset=HEADER_WORDS * 4)
    if tokens.size != header[2] or len(data) % 2:
        raise ValueError(f"{path}: {len(data)} bytes do not hold {header[2]} tokens")
    return tokens


def write_vocab(path: Path | str, tokens: Sequence[bytes], eot: int, version: int = 2) -> None:
    """Writes the byte strings of all tokens, (V,) of 1 to 255 bytes each, in the order of ids.

    `eot` is the end-of-text token. Version 1 does not store it and is for GPT-2's vocabulary alone.
    Raises ValueError for a string of another length, no tokens, more than 65536, an `eot` outside
    the vocabulary, an unknown version, or a version 1 that is not GPT-2's.
    """
    _check_vocab(path, tokens, eot, version)
    with replacing(path) as file:
        file.write(_header(VOCAB_MAGIC, version, len(tokens), eot if version == 2 else 0))
        for token in tokens:
            file.write(bytes([len(token)]) + token)


def read_vocab(path: Path | str) -> tuple[list[bytes], int]:
    """The byte strings (V,) of a vocabulary and its end-of-text token.

    Raises ValueError if the file is none.
    """
    data = Path(path).read_bytes()
    header = _read_header(path, data, "<u4", VOCAB_MAGIC, (1, 2))
    tokens, at = [], HEADER_WORDS * 4
    for i in range(header[2]):
        token = data[at + 1 : at + 1 + data[at]] if at < len(data) else b""
        if not token or len(token) != data[at]:
            raise ValueError(f"{path}: token {i} is empty or cut short")
        tokens.append(token)
        at += 1 + len(token)
    if at != len(data):
        raise ValueError(f"{path}: {len(data) - at} bytes behind the last token")
    return tokens, GPT2_EOT if header[1] == 1 else int(header[3])


def write_eval(path: Path | str, examples: Sequence[Example]) -> None:
    """Writes multiple-choice examples; the index of each is its place in the sequence.

    Raises ValueError for no examples, more than 65536, an example of more than 65535 bytes, not
    four completions, a label that is not one of them, an empty context or completion, or an id
    outside 0..65535.
    """
    if not 0 < len(examples) <= MAX_EXAMPLES:
        raise ValueError(f"{path}: {len(examples)} examples, want 1 to {MAX_EXAMPLES}")
    words = [_example_words(path, i, example) for i, example in enumerate(examples)]
    with replacing(path) as file:
        longest = max(array.nbytes for array in words)
        file.write(_header(EVAL_MAGIC, DATA_VERSION, len(examples), longest))
        for array in words:
            array.tofile(file)


def read_eval(path: Path | str) -> list[Example]:
    """The examples of an eval file. Raises ValueError if the file is none."""
    data = Path(path).read_bytes()
    header = _read_header(path, data, "<i4", EVAL_MAGIC, (DATA_VERSION,))
    words = iter(np.frombuffer(data[HEADER_WORDS * 4 :], "<u2").tolist())
    examples = [_read_example(path, i, words) for i in range(header[2])]
    if next(words, None) is not None:
        raise ValueError(f"{path}: words behind the last example")
    return examples


def _header(*words: int) -> bytes:
    header = np.zeros(HEADER_WORDS, "<i4")
    header[: len(words)] = words
    return header.tobytes()


def _read_header(
    path: Path | str, data: bytes, dtype: str, magic: int, versions: tuple[int, ...]
) -> np.ndarray:
    """The header's words, (256,). Raises ValueError for another magic or version."""
    if len(data) < HEADER_WORDS * 4:
        raise ValueError(f"{path}: {len(data)} bytes, a header has {HEADER_WORDS * 4}")
    header = np.frombuffer(data, dtype, HEADER_WORDS)
    if header[0] != magic:
        raise ValueError(f"{path}: bad magic {header[0]}, want {magic}")
    if header[1] not in versions:
        raise ValueError(f"{path}: bad version {header[1]}, want {versions}")
    return header


def _token_array(tokens: Tokens, where: str) -> np.ndarray:
    """Tokens as (n,) uint16; ValueError if they do not fit or there are none."""
    if len(tokens) == 0:
        raise ValueError(f"{where}: 0 tokens, want at least 1")
    if len(tokens) > MAX_COUNT:
        raise ValueError(f"{where}: {len(tokens)} tokens, a file holds at most {MAX_COUNT}")
    array = np.asarray(tokens)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{where}: tokens are {array.dtype} {array.shape}, want integers (n,)")
    for id_ in (array.min(), array.max()):
        if not 0 <= id_ <= MAX_TOKEN:
            raise ValueError(f"{where}: token id {id_} is outside 0..{MAX_TOKEN}")
    return array.astype("<u2")


def _check_vocab(path: Path | str, tokens: Sequence[bytes], eot: int, version: int) -> None:
    count = len(tokens)
    if version not in (1, 2):
        raise ValueError(f"{path}: version {version}, want 1 or 2")
    if not 0 < count <= MAX_TOKEN + 1:
        raise ValueError(f"{path}: {count} tokens, want 1 to {MAX_TOKEN + 1}")
    if not 0 <= eot < count:
        raise ValueError(f"{path}: end-of-text token {eot} is not among {count} tokens")
    if version == 1 and (count, eot) != (GPT2_VOCAB_SIZE, GPT2_EOT):
        raise ValueError(f"{path}: version 1 is for {GPT2_VOCAB_SIZE} tokens, the last end-of-text")
    for i, token in enumerate(tokens):
        if not 1 <= len(token) <= 255:
            raise ValueError(f"{path}: token {i} has length {len(token)}, want 1 to 255")


def _example_words(path: Path | str, index: int, example: Example) -> np.ndarray:
    """An example as it stands in the file, (n,) uint16."""
    where = f"{path}: example {index}"
    if len(example.completions) != NUM_COMPLETIONS:
        count = len(example.completions)
        raise ValueError(f"{where}: {count} completions, want {NUM_COMPLETIONS}")
    if not 0 <= example.label < NUM_COMPLETIONS:
        raise ValueError(f"{where}: label {example.label} is outside 0..{NUM_COMPLETIONS - 1}")
    named = [("context", example.context)]
    named += [(f"completion {i}", tokens) for i, tokens in enumerate(example.completions)]
    parts = [_token_array(tokens, f"{where}, {name}") for name, tokens in named]
    num_bytes = 2 * (EXAMPLE_HEAD + sum(1 + part.size for part in parts))
    if num_bytes > MAX_EXAMPLE_BYTES:
        raise ValueError(f"{where}: {num_bytes} bytes, at most {MAX_EXAMPLE_BYTES} fit")
    head = [EXAMPLE_MARK, num_bytes, index, example.label, NUM_COMPLETIONS]
    counted = [np.concatenate([[part.size], part]) for part in parts]
    return np.concatenate([head, *counted]).astype("<u2")


def _read_example(path: Path | str, index: int, words: Iterator[int]) -> Example:
    """The next example of an eval file. Raises ValueError if it is none."""
    mark, num_bytes, number, label, count = _take(path, words, EXAMPLE_HEAD)
    parts = [_take(path, words, *_take(path, words, 1)) for _ in range(1 + count)]
    expected = 2 * (EXAMPLE_HEAD + sum(1 + len(part) for part in parts))
    if (mark, num_bytes, number) != (EXAMPLE_MARK, expected, index):
        raise ValueError(f"{path}: example {index} starts with {mark}, {num_bytes}, {number}")
    return Example(parts[0], tuple(parts[1:]), label)


def _take(path: Path | str, words: Iterator[int], count: int) -> tuple[int, ...]:
    """The next `count` words. Raises ValueError where there are fewer."""
    taken = tuple(islice(words, count))
    if len(taken) != count:
        raise ValueError(f"{path}: cut short")
    return taken
