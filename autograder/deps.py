"""--ref-deps: the reference in the place of what rows need and does not pass yet.

What stands in is compiled: its code is not shown, which is no secret to whoever can read compiled
code. A student's pack holds it in prebuilt/, for the Python that the pack was made with, and the
library for its machine; where there is a reference/, it is compiled here.
"""

from __future__ import annotations

import platform
import py_compile
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from autograder import build, rubric, run
from autograder.files import scratch_folder
from autograder.results import Options, PartResult, StandIns
from autograder.rubric import ROOT, Rubric
from autograder.run import REFERENCE

PREBUILT = ROOT / "prebuilt"
TAG = str(sys.implementation.cache_tag)
MACHINE = f"{platform.system()}-{platform.machine()}".lower()


class NoReference(Exception):
    """There is nothing here that could stand in; the message says what there is."""


def with_stand_ins(loaded: Rubric, options: Options, progress: run.Progress) -> Options:
    """The options, with what stands in for modules that rows of the selection need and whose own
    rows do not all pass. Raises NoReference."""
    items = [item for _, some in run.select(loaded, options.names) for item in some]
    calls_c = any(credit.native for item in items for credit in item.credits)
    library = _library(options) if calls_c else None
    names = [name for _, name in _tables(loaded)]  # also those that a student has removed
    used = {n for i in items for n in run.dependencies(loaded, i, options.student, names)}
    modules = _failing(loaded, used, options, progress)
    return replace(options, stand_ins=StandIns(modules, library))


def _failing(
    graded: Rubric, modules: Collection[str], options: Options, progress: run.Progress
) -> dict[str, bytes]:
    """Those of which a row, of the graded assignment or of one before it, lacks points; and the
    reference's in their place. One after the other: a module is tried with what stands in for those
    before it."""
    found: dict[str, bytes] = {}
    tried = [(r, name) for r, name in _tables(graded) if name in modules]
    for number, (loaded, name) in enumerate(tried):
        progress("trying what it needs", number, len(tried))
        part = next(part for part in loaded.parts if part.id == "python")
        rows = (part.id, *(item.id for item in part.items if name in part.files_of(item)))
        trial = replace(options, names=rows, fresh=None, by_hand=False, stand_ins=StandIns(found))
        if name not in found and not _passes(run.grade(loaded, trial).parts):
            found[name] = compiled(Path(name).stem)
    progress("trying what it needs", len(tried), len(tried))
    return found


def _tables(last: Rubric) -> Iterator[tuple[Rubric, str]]:
    """Each assignment up to the last that has a Python table, with each file of this, in order."""
    names = rubric.assignments()
    for loaded in map(rubric.load, names[: names.index(last.assignment) + 1]):
        for part in loaded.parts:
            if part.id == "python":
                yield from ((loaded, name) for name in part.files)


def _passes(parts: Sequence[PartResult]) -> bool:
    items = [item for part in parts for item in part.items]
    return all(item.earned == item.possible for item in items) and any(i.possible for i in items)


def compiled(name: str) -> bytes:
    """A module of the reference as .pyc. Raises NoReference."""
    kept = PREBUILT / TAG / f"{name}.pyc"
    source = REFERENCE / "llmc" / f"{name}.py"
    if kept.exists():
        return kept.read_bytes()
    if not source.exists():
        there = ", ".join(sorted(path.name for path in PREBUILT.glob("*-*"))) or "none"
        raise NoReference(f"--ref-deps has no {name} for {TAG} here; what it has: {there}")
    with scratch_folder(ROOT / "build") as folder:
        made = folder / f"{name}.pyc"
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(
            str(source), str(made), f"llmc/{name}.py", doraise=True, invalidation_mode=unchecked
        )
        return made.read_bytes()


def _library(options: Options) -> Path | None:
    """The reference's library of what Python calls of C; None where there is none for this machine:
    the rows that need it stay skipped."""
    kept = PREBUILT / MACHINE / "libllmc.so"
    if kept.exists():
        return kept
    if not (REFERENCE / "llmc").is_dir():
        return None
    return run.native_library(REFERENCE, build.toolchain(options.build), options.build)
