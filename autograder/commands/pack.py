"""A submission: one assignment's files and a manifest, as a zip of the same bytes everywhere."""

from __future__ import annotations

import hashlib
import io
import json
import os
import posixpath
import re
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder import __version__, build
from autograder.build import Built, Source
from autograder.files import scratch_folder
from autograder.imports import needed
from autograder.rubric import PYTHON, Rubric
from autograder.run import programs
from autograder.sources import read

MANIFEST, SCHEMA = "MANIFEST.json", "llmc-pack/1"
DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip archive can hold
MODE = stat.S_IFREG | 0o644
UNIX = 3  # the system that an entry's mode is for
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


class Refused(Exception):
    """These files are not packed; the message says in one or two lines what is wrong with them."""


@dataclass(frozen=True)
class Packed:
    """An archive and what there is to say about it."""

    data: bytes
    files: tuple[str, ...]  # in it, as llmc/NAME, sorted, beside the manifest
    missing: tuple[str, ...]  # the assignment's files that are not there
    broken: tuple[Built, ...]  # the probes that do not compile with the files in it
    unwritten: tuple[str, ...]  # the functions that are stubs still, in the files' order

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def pack(rubric: Rubric, student: Path, build_folder: Path, anyway: bool) -> Packed:
    """Packs what `student`/llmc holds of an assignment, with what those files include and the
    probes import from there.

    What is compiled is what is packed, in a folder of its own, so an archive that says `compiles`
    is complete. Raises Refused for files that are missing or do not compile, unless `anyway`, and
    build.NoTool.
    """
    theirs = _read(student)
    own = tuple(name for part in rubric.parts for name in part.files)
    missing = tuple(name for name in own if name not in theirs)
    if missing and not anyway:
        raise Refused(f"{', '.join(missing)}: missing, or no file of at most 1 MiB")
    imported = _imported(rubric, theirs)
    files = _with_included([name for name in theirs if name in own or name in imported], theirs)
    broken = _broken(rubric, files, build_folder)
    if broken and not anyway:
        raise Refused(_complaint(broken, rubric.assignment))
    manifest = {
        "schema": SCHEMA,
        "assignment": rubric.assignment,
        "version": __version__,
        "files": [_entry(name, content) for name, content in files.items()],
        "missing": missing,
        "compiles": not broken,
    }
    data = _archive({MANIFEST: (json.dumps(manifest, indent=2) + "\n").encode(), **files})
    written = b"\n".join(files[name] for name in own if name in files)
    return Packed(data, tuple(files), missing, broken, _stubs(rubric.assignment, written))


def _read(student: Path) -> dict[str, bytes]:
    try:
        return read(student)
    except OSError as fault:
        raise Refused(f"{student / 'llmc'}: {fault.strerror}") from fault


def _imported(rubric: Rubric, theirs: Mapping[str, bytes]) -> set[str]:
    """What the assignment's Python probes may come to import: also files of assignments before."""
    probes = [probe for part in rubric.parts for probe in part.probes if probe.endswith(PYTHON)]
    modules = {name: content for name, content in theirs.items() if name.endswith(".py")}
    return {name for probe in probes for name in needed(rubric.probe(probe).read_bytes(), modules)}


def _with_included(names: Sequence[str], theirs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those files and, in turn, the student's files that they include; sorted by name."""
    found = list(names)
    for name in found:
        for match in INCLUDE.findall(theirs[name]):
            included = match.decode("utf-8", "replace")
            beside = posixpath.normpath(posixpath.join("llmc", included))
            found += [n for n in (beside, included) if n in theirs and n not in found]
    return {name: theirs[name] for name in sorted(found)}


def _broken(rubric: Rubric, files: Mapping[str, bytes], build_folder: Path) -> tuple[Built, ...]:
    """The probes that do not compile beside exactly these files."""
    tools = build.toolchain(build_folder)
    probes = [probe for part in rubric.parts for probe in part.probes]
    sources = [Source(name, rubric.probe(name)) for name in probes]
    with scratch_folder(build_folder) as folder:
        (folder / "llmc").mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        built = programs(sources, folder, tools, build_folder, os.cpu_count() or 1)
    return tuple(one for one in built.values() if one.binary is None)


def _complaint(broken: Sequence[Built], assignment: str) -> str:
    """The first error; a second line says whether there are others."""
    errors = [f"{one.error.where}: {one.error.what}" for one in broken if one.error is not None]
    others = len(set(errors)) - 1
    return errors[0] + (f"\nand {others} more: see ./grade {assignment}" if others else "")


def _entry(name: str, content: bytes) -> dict[str, str | int]:
    return {"path": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _stubs(assignment: str, content: bytes) -> tuple[str, ...]:
    """The functions whose body is the line that stood there from the start."""
    line = rf'^[ \t]*(?:TODO|raise NotImplementedError)\("{assignment}: ([\w.]+)"\)'
    return tuple(re.findall(line, content.decode("utf-8", "replace"), re.MULTILINE))


def _archive(entries: Mapping[str, bytes]) -> bytes:
    """A zip archive, stored: compressed bytes would depend on who compresses."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            about = zipfile.ZipInfo(name, DATE)
            about.create_system, about.external_attr = UNIX, MODE << 16
            archive.writestr(about, content)
    return buffer.getvalue()
