"""Bundles Python probes with a student's modules: what build.py is for C."""

from __future__ import annotations

import os
import py_compile
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from autograder import sandbox
from autograder.build import LIMITS, RUNTIME, Built, Note, Source, missing
from autograder.files import digest, read_json, scratch_folder
from autograder.rubric import module
from autograder.sources import read

FAULTS = "faults.json"
PROBE = "probe.pyc"

# Compiles each file, and prints what is no Python: {name: [line, message]}. In a process of its
# own, for source can be nested so deeply that the compiler does not survive it. What it writes
# beside them never needs to be compared with the source again, for folders are kept by content.
COMPILE = """
import json, py_compile, sys
found = {}
for name in sys.argv[1:]:
    try:
        py_compile.compile(name, doraise=True, invalidation_mode=py_compile.PycInvalidationMode(2))
    except py_compile.PyCompileError as error:
        fault = error.exc_value
        said = str(getattr(fault, "msg", None) or fault) or type(fault).__name__
        found[name] = [getattr(fault, "lineno", None) or 1, said[:400]]
sys.stdout.write(json.dumps(found))
"""


def bundles(
    sources: Sequence[Source],
    student: Path,
    build: Path,
    done: Callable[[], None] = lambda: None,
) -> dict[str, Built]:
    """A folder for each probe, with the probe and `student`/llmc/*.py in it, all compiled, kept by
    its content.

    A module that is missing or no Python is no fault of ours: its Built says why.
    """
    theirs = {name: content for name, content in read(student).items() if name.endswith(".py")}
    parts = (part for item in theirs.items() for part in item)
    key = digest(str(sys.implementation.cache_tag), *parts)
    modules = build / "cache" / f"modules-{key[:16]}"
    if not (modules / FAULTS).exists():
        _compile(theirs, build, modules)
    faults = _faults(modules, theirs)
    result = {}
    for source in sources:
        name = f"llmc/{module(source.name)}.py"
        note = missing(name, theirs) or faults.get(name)
        folder = None if note else _bundle(source, key, modules, build)
        result[source.name] = Built(source.name, folder, (note,) if note else ())
        done()
    return result


def _compile(theirs: Mapping[str, bytes], build: Path, modules: Path) -> None:
    """Makes that folder: the modules, and which of them are no Python, if the compiler says so."""
    with scratch_folder(build) as scratch:
        folder = scratch / modules.name
        (folder / "llmc").mkdir(parents=True)
        for name, content in theirs.items():
            (folder / name).write_bytes(content)
        command = (sys.executable, "-I", "-c", COMPILE, *sorted(theirs))
        env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        outcome = sandbox.run_all([sandbox.Job(command, folder, env, LIMITS)], 1)[0]
        if outcome.status == 0:
            (folder / FAULTS).write_bytes(outcome.stdout)
        _keep(folder, modules, FAULTS)


def _faults(modules: Path, theirs: Mapping[str, bytes]) -> dict[str, Note]:
    """File name -> why it is no Python, for those that are none."""
    raw = read_json(modules / FAULTS)
    if raw is None:
        what = "the compiler did not survive one of these files"
        return {name: Note(name, what, True) for name in theirs}
    return {name: Note(f"{name}:{line}", str(what), True) for name, (line, what) in raw.items()}


def _bundle(source: Source, key: str, modules: Path, build: Path) -> Path:
    runtime = (path.read_bytes() for path in sorted(RUNTIME.glob("*.py")))
    name = f"{source.name}-{digest(key, source.path.read_bytes(), *runtime)[:16]}"
    folder = build / "cache" / name
    if not (folder / PROBE).exists():
        with scratch_folder(build) as scratch:
            made = scratch / name
            shutil.copytree(modules / "llmc", made / "llmc")
            py_compile.compile(str(source.path), str(made / PROBE), doraise=True)
            _keep(made, folder, PROBE)
    return folder


def _keep(made: Path, folder: Path, last: str) -> None:
    """Renames what was made, unless somebody was faster; a folder without `last` was spoilt."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(made, folder)
    except OSError:
        if not (folder / last).exists():
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(made, folder)
