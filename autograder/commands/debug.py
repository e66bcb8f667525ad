"""Opens a case of a built probe in a debugger: --gdb."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from autograder import observe, sandbox
from autograder.build import NoTool
from autograder.observe import Case

# A finding of a sanitizer then stops the debugger where it was made, with the stack still there.
STOP = {"ASAN_OPTIONS": ":abort_on_error=1:detect_leaks=0", "UBSAN_OPTIONS": ":abort_on_error=1"}
MINE = ("HOME", "PATH", "TERM", "LANG", "LC_ALL")  # a debugger is used by a person


def open_debugger(
    case: Case, functions: Sequence[str], sources: Sequence[Path], build: Path
) -> NoReturn:
    """Becomes gdb, or else lldb, which has run the case up to the first of these functions; it
    works in a folder below build/scratch that a later run sweeps away.

    `sources` are the folders that hold llmc/ and the probes. Raises NoTool where there is neither.
    """
    os.utime(case.binary)  # it may be from the cache, and debuggers warn of newer sources
    command = _command(case, functions, sources)
    scratch = build / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="debug-", dir=scratch))
    env = observe.environment(folder, case.limits)
    env |= {name: env[name] + more for name, more in STOP.items()}
    env |= {name: os.environ[name] for name in MINE if name in os.environ}
    sandbox.become(command, folder, env)


def _command(case: Case, functions: Sequence[str], sources: Sequence[Path]) -> list[str]:
    if gdb := shutil.which("gdb"):
        first = [
            "set confirm off",
            "set breakpoint pending on",
            *(f"break {name}" for name in functions),
            "run",
        ]
        ex = [word for line in first for word in ("-ex", line)]
        folders = [word for folder in sources for word in ("-d", str(folder))]
        return [gdb, "-q", *folders, *ex, "--args", *case.argv()]
    if lldb := shutil.which("lldb"):
        first = [f"settings set target.source-map llmc {sources[-1]}/llmc"]
        first += [*(f"breakpoint set --name {name}" for name in functions), "run"]
        ex = [word for line in first for word in ("-o", line)]
        return [lldb, *ex, "--", *case.argv()]
    raise NoTool("neither gdb nor lldb is here; ./grade doctor says how to install one")
