"""Bundles Python probes with a student's modules: what build.py is for C."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from autograder import sandbox
from autograder.build import RUNTIME, Built, Note, Source, missing
from autograder.files import digest, read_json, scratch_folder
from autograder.rubric import module
from autograder.sources import read

# Compiles each file, and prints what is no Python: {name: [line, message]}. In a process of its
# own, for source can be nested so deeply that the compiler does not survive it.
COMPILE = """
import json, sys
found = {}
for name in sys.argv[1:]:
    try:
        compile(open(name, "rb").read(), name, "exec", dont_inherit=True)
    except SyntaxError as fault:
        found[name] = [fault.lineno or 1, fault.msg]
    except (ValueError, RecursionError, MemoryError) as fault:
        found[name] = [1, str(fault) or type(fault).__name__]
sys.stdout.write(json.dumps(found))
"""


def bundles(
    sources: Sequence[Source],
    student: Path,
    build: Path,
    done: Callable[[], None] = lambda: None,
) -> dict[str, Built]:
    """A folder for each probe, with the probe and `student`/llmc/*.py in it, kept by its content.

    A module that is missing or no Python is no fault of ours: its Built says why.
    """
    theirs = {name: content for name, content in read(student).items() if name.endswith(".py")}
    faults = _faults(theirs, build)
    result = {}
    for source in sources:
        name = f"llmc/{module(source.name)}.py"
        note = missing(name, theirs) or faults.get(name)
        folder = None if note else _bundle(source, theirs, build)
        result[source.name] = Built(source.name, folder, (note,) if note else ())
        done()
    return result


def _bundle(source: Source, theirs: Mapping[str, bytes], build: Path) -> Path:
    parts = (part for item in theirs.items() for part in item)
    runtime = (path.read_bytes() for path in sorted(RUNTIME.glob("*.py")))
    key = digest(source.path.read_bytes(), *runtime, *parts)[:16]
    folder = build / "cache" / f"{source.name}-{key}"
    if not (folder / "probe.py").exists():
        with scratch_folder(build) as made:
            (made / "llmc").mkdir()
            for name, content in theirs.items():
                (made / name).write_bytes(content)
            shutil.copy(source.path, made / "probe.py")
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(made, folder)
    return folder


def _faults(theirs: Mapping[str, bytes], build: Path) -> dict[str, Note]:
    """File name -> why it is no Python, for those that are none."""
    kept = build / "cache" / f"syntax-{digest(*(p for i in theirs.items() for p in i))[:16]}.json"
    raw = read_json(kept)
    if raw is None:
        with scratch_folder(build) as folder:
            (folder / "llmc").mkdir()
            for name, content in theirs.items():
                (folder / name).write_bytes(content)
            command = (sys.executable, "-I", "-c", COMPILE, *sorted(theirs))
            env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
            outcome = sandbox.run_all([sandbox.Job(command, folder, env)], 1)[0]
        if outcome.status != 0:
            what = "the compiler did not survive one of these files"
            return {name: Note(name, what, True) for name in theirs}
        raw = json.loads(outcome.stdout)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(json.dumps(raw).encode())
    return {
        name: Note(f"{name}:{line}", str(what)[:400], True) for name, (line, what) in raw.items()
    }
