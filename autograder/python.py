"""Bundles Python probes with a student's modules: what build.py is for C."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from autograder import sandbox
from autograder.build import LIMITS, RUNTIME, Built, Note, Source, missing
from autograder.files import digest, read_json, scratch_folder, write_whole
from autograder.imports import needed
from autograder.rubric import module
from autograder.sources import read

PROBE = "probe.pyc"
NONE: Mapping[str, bytes] = {}

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
    by_imports: bool = False,
    stand_ins: Mapping[str, bytes] = NONE,
) -> dict[str, Built]:
    """A folder for each probe, with the probe and `student`/llmc/*.py in it, all compiled, kept by
    its content.

    A module that is missing or no Python is no fault of ours: its Built says why. With
    `by_imports`, for staff's trees, modules that a probe cannot import are left out, so that a
    change in them makes no other bundle, and what its cases reported is still known.
    `stand_ins`, compiled, take the place of modules of theirs, but for the one that is observed.
    """
    theirs = {name: content for name, content in read(student).items() if name.endswith(".py")}
    faults = _faults(theirs, build)
    result = {}
    for source in sources:
        name = f"llmc/{module(source.name)}.py"
        note = missing(name, theirs) or faults.get(name)
        files = needed(source.path.read_bytes(), theirs) if by_imports else theirs
        others = {module: code for module, code in stand_ins.items() if module != name}
        files = {file: content for file, content in files.items() if file not in others}
        files |= {f"{module}c": code for module, code in others.items()}
        folder = None if note else _bundle(source, files, build)
        result[source.name] = Built(source.name, folder, (note,) if note else ())
        done()
    return result


def _faults(theirs: Mapping[str, bytes], build: Path) -> dict[str, Note]:
    """File name -> why it is no Python, for those that are none. What is right is compiled then."""
    kept = {name: _compiled(name, content, build) for name, content in theirs.items()}
    new = [name for name in theirs if read_json(kept[name].with_suffix(".json")) is None]
    if new and not _compile({name: theirs[name] for name in new}, build):
        what = "the compiler did not survive one of these files"
        return {name: Note(name, what, True) for name in theirs}
    said = {name: read_json(kept[name].with_suffix(".json")) for name in theirs}
    return {name: Note(f"{name}:{why[0]}", why[1], True) for name, why in said.items() if why}


def _compiled(name: str, content: bytes, build: Path) -> Path:
    """Where a module is kept compiled; beside it, as .json, [] or else the line and the message."""
    key = digest(str(sys.implementation.cache_tag), COMPILE, name, content)[:16]
    return build / "cache" / "modules" / f"{key}.pyc"


def _compile(files: Mapping[str, bytes], build: Path) -> bool:
    """Compiles files and keeps what came of each; False if the compiler did not survive them."""
    with scratch_folder(build) as folder:
        (folder / "llmc").mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        command = (sys.executable, "-I", "-c", COMPILE, *sorted(files))
        env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        outcome = sandbox.run_all([sandbox.Job(command, folder, env, LIMITS)], 1)[0]
        try:
            found = json.loads(outcome.stdout)
        except ValueError:
            return False
        for name, content in files.items() if outcome.status == 0 else ():
            kept = _compiled(name, content, build)
            if name not in found:
                write_whole(kept, _beside(folder / name).read_bytes())
            write_whole(kept.with_suffix(".json"), json.dumps(found.get(name, [])).encode())
        return outcome.status == 0


def _beside(path: Path) -> Path:
    """Where Python looks for a module compiled."""
    return path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"


def _bundle(source: Source, files: Mapping[str, bytes], build: Path) -> Path:
    runtime = (path.read_bytes() for path in sorted(RUNTIME.glob("*.py")))
    parts = [part for item in files.items() for part in item]
    made_of = (str(sys.implementation.cache_tag), *parts, source.path.read_bytes(), *runtime)
    name = f"{source.name}-{digest(*made_of)[:16]}"
    folder = build / "cache" / name
    if not (folder / PROBE).exists():
        with scratch_folder(build) as scratch:
            made = scratch / name
            (made / "llmc" / "__pycache__").mkdir(parents=True)
            for file, content in files.items():
                (made / file).write_bytes(content)
                if file.endswith(".pyc"):
                    continue
                with suppress(FileNotFoundError):  # it is no Python, or somebody swept the cache
                    shutil.copyfile(_compiled(file, content, build), _beside(made / file))
            py_compile.compile(str(source.path), str(made / PROBE), doraise=True)
            _keep(made, folder)
    return folder


def _keep(made: Path, folder: Path) -> None:
    """Renames what was made, unless somebody was faster; a folder without a probe was spoilt."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(made, folder)
    except OSError:
        if not (folder / PROBE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(made, folder)
