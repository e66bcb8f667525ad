"""From a text to what the C programs read: token shards for training and validation, a vocabulary.

Run as `python dev/data/prepare.py [--text FILE] [--out FOLDER] [--shard-tokens N]`.
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

import formats
import gpt2
import plays
from files import DataError, replacing

RECIPE = 1  # goes up when the same text would give other files
VOCAB_FILE = "gpt2_tokenizer.bin"
CHUNK = 2**20  # characters encoded at a time
SHARD_TOKENS = 2**19  # 1 MiB
MIN_SHARD_TOKENS = 1024
# Validation then has at least (1/10 - SLACK) of this, and a batch of 4 x 64 tokens fits.
MIN_TOKENS = 4096
SLACK = 0.03  # of all tokens: how far validation's start may move to that of a document
# Cutting text where white space starts does not change its tokens: none spans such a place.
BREAK = re.compile(r"(?<=\S)\n")

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Job:
    """What to prepare: `text` (None: the plays) into `out`, at most `shard_tokens` in a file."""

    text: Path | None
    out: Path
    shard_tokens: int

    @property
    def stem(self) -> str:
        """The start of the names of the files, fit for a pattern of the shell."""
        return re.sub(r"[^\w.-]+", "_", self.text.stem) if self.text else plays.PACKAGE

    @property
    def manifest(self) -> Path:
        """The file that records what was written from what."""
        return self.out / f"{self.stem}.manifest.json"


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without byte order mark, its lines ending in LF.

    Raises DataError if it is not UTF-8 or empty, OSError if it cannot be read.
    """
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"{path}: byte {error.start} (0x{data[error.start]:02x}) is not UTF-8"
        raise DataError(what, "convert the text to UTF-8") from None
    if not text.strip():
        raise DataError(f"{path}: the text is empty", "choose another")
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def chunks(text: str, size: int = CHUNK) -> Iterator[str]:
    """The text in pieces of about `size` characters that can be encoded one by one."""
    start = 0
    while start < len(text):
        found = BREAK.search(text, start + size)
        end = found.start() if found else len(text)
        yield text[start:end]
        start = end


def encode(text: str, advance: Advance = lambda characters: None) -> np.ndarray:
    """GPT-2's tokens of a text, (n,) uint16; the first is <|endoftext|>.

    Where the text itself holds <|endoftext|>, a new document starts. Calls `advance` with the
    number of characters done. Raises DataError without the packages of the extra `data`.
    """
    encoder = gpt2.encoding()
    parts = [] if text.startswith(gpt2.EOT_TEXT) else [np.array([formats.GPT2_EOT], np.uint16)]
    for chunk in chunks(text):
        tokens = encoder.encode_to_numpy(chunk, allowed_special={gpt2.EOT_TEXT})
        parts.append(tokens.astype(np.uint16))
        advance(len(chunk))
    return np.concatenate(parts)


def validation_start(tokens: np.ndarray) -> int:
    """Where the last tenth of tokens (n,) starts: at the document nearest to it, if one is near."""
    tenth = tokens.size - tokens.size // 10
    documents = np.flatnonzero(tokens == formats.GPT2_EOT)
    distance = np.abs(documents - tenth)
    if distance.size and distance.min() <= SLACK * tokens.size:
        return int(documents[distance.argmin()])
    return tenth


def split(tokens: np.ndarray, stem: str, shard_tokens: int) -> dict[str, np.ndarray]:
    """Tokens (n,) as shards of nearly equal length by the names of their files.

    Train has at least two, so that a loader meets the end of one. Raises DataError for less than
    4096 tokens, and for more than 1000 shards.
    """
    if tokens.size < MIN_TOKENS:
        what = f"{stem}: the text has {tokens.size} tokens, want at least {MIN_TOKENS}"
        raise DataError(what, "choose a longer one")
    cut = validation_start(tokens)
    shards = {}
    for part, ours, least in (("train", tokens[:cut], 2), ("val", tokens[cut:], 1)):
        count = max(least, -(-ours.size // shard_tokens))
        if count > 1000:
            raise DataError(f"{stem}: {count} shards, at most 1000", "a larger --shard-tokens")
        for i, shard in enumerate(np.array_split(ours, count)):
            shards[f"{stem}_{part}_{i:03d}.bin"] = shard
    return shards


def prepare(job: Job) -> list[str]:
    """Makes every file of a job that is not there yet; returns lines that say what there is.

    Raises DataError for a text that will not do, OSError for a file.
    """
    text = read_text(job.text) if job.text else _plays(job.out)
    source = {
        "recipe": RECIPE,
        "text": hashlib.sha256(text.encode()).hexdigest(),
        "shard_tokens": job.shard_tokens,
    }
    found = _intact(job, source)
    if found is not None:
        return [f"{job.out}: nothing to do, all is there", *_summary(job, found)]
    return _summary(job, _write(job, source, text))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status: 0, or 1 after one line about what failed."""
    job = _parse(argv)
    try:
        print(*prepare(job), sep="\n")
    except DataError as error:
        return _fail(f"{error}")
    except OSError as error:
        where = error.filename or job.out
        return _fail(f"{where}: {error.strerror} (is the path right, is it yours, is there room?)")
    except KeyboardInterrupt:
        return _fail("interrupted (run it again: what is written so far is whole)")
    return 0


def _parse(argv: Sequence[str] | None) -> Job:
    parser = argparse.ArgumentParser(
        description="Turn a text into token shards and GPT-2's vocabulary."
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="default: Shakespeare's plays")
    parser.add_argument("--out", type=Path, metavar="FOLDER", default=Path(".data"))
    parser.add_argument(
        "--shard-tokens",
        type=_shard_tokens,
        metavar="N",
        default=SHARD_TOKENS,
        help=f"most tokens in one file, {MIN_SHARD_TOKENS} or more; default: %(default)s",
    )
    args = parser.parse_args(argv)
    return Job(args.text, args.out, args.shard_tokens)


def _shard_tokens(word: str) -> int:
    """An argument as a number of tokens; argparse turns the ValueError into a usage message."""
    count = int(word)
    if not MIN_SHARD_TOKENS <= count <= formats.MAX_COUNT:
        raise argparse.ArgumentTypeError(f"want {MIN_SHARD_TOKENS} to {formats.MAX_COUNT}")
    return count


def _fail(line: str) -> int:
    print(f"error: {line}", file=sys.stderr)
    return 1


@contextmanager
def _progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """A bar on stderr if that is a terminal; None as total means that nobody knows."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(label, total=total)
        yield lambda amount: bar.advance(task, amount)


def _plays(folder: Path) -> str:
    with _progress("fetching the plays"):
        return plays.text(folder)


def _intact(job: Job, source: dict[str, object]) -> dict[str, dict] | None:
    """What the manifest says of each file, if it is of this source and no file has changed."""
    try:
        manifest = json.loads(job.manifest.read_text(encoding="utf-8"))
        if manifest["source"] != source:
            return None
        files = manifest["files"]
        same = all(_sha256(job.out / name) == files[name]["sha256"] for name in files)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return files if same else None


def _write(job: Job, source: dict[str, object], text: str) -> dict[str, dict]:
    """Writes all files, then the manifest, which is absent while they do not belong together."""
    with _progress("encoding", len(text)) as advance:
        shards = split(encode(text, advance), job.stem, job.shard_tokens)
    vocabulary = gpt2.vocabulary()
    job.manifest.unlink(missing_ok=True)
    _remove_shards(job)
    for name, tokens in shards.items():
        formats.write_shard(job.out / name, tokens)
    formats.write_vocab(job.out / VOCAB_FILE, vocabulary, formats.GPT2_EOT)
    counts = {name: int(tokens.size) for name, tokens in shards.items()}
    counts[VOCAB_FILE] = len(vocabulary)
    files = {n: {"tokens": c, "sha256": _sha256(job.out / n)} for n, c in counts.items()}
    with replacing(job.manifest) as file:
        file.write(json.dumps({"source": source, "files": files}, indent=1).encode())
    return files


def _remove_shards(job: Job) -> None:
    """Removes shards of an earlier run: it may have written more than this one will."""
    name = re.compile(re.escape(job.stem) + r"_(train|val)_\d{3}\.bin")
    for path in job.out.glob("*.bin"):
        if name.fullmatch(path.name):
            path.unlink()


def _summary(job: Job, files: dict[str, dict]) -> list[str]:
    lines = [f"{job.out / name}  {entry['tokens']:,} tokens" for name, entry in files.items()]
    totals = [
        sum(entry["tokens"] for name, entry in files.items() if f"_{part}_" in name)
        for part in ("train", "val")
    ]
    return [*lines, f"{len(files)} files; train {totals[0]:,} tokens, val {totals[1]:,}"]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
