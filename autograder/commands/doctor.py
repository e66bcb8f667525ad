"""Looks at this machine: what grading can use here, what is missing, and what that will skip."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from autograder import build, rubric, sandbox
from autograder.rubric import shown
from autograder.run import BIG, real_data


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `found` says what is there, or is empty; then `without` says what does
    not work and `install` how to get it."""

    name: str
    found: str
    without: str
    install: str
    needed: bool = False  # nothing can be graded without it
    later: bool = False  # only stages to come have a use for it


def examine(build_folder: Path) -> list[Finding]:
    """Looks for everything; runs each tool once to see that it works."""
    found = [_python(), *_compiler(build_folder), *_data(build_folder), *_tools(build_folder)]
    return sorted(found, key=lambda finding: finding.later)


def _python() -> Finding:
    return Finding("Python", platform.python_version(), "", "")  # whoever runs this has it


def _compiler(folder: Path) -> list[Finding]:
    try:
        tools = build.toolchain(folder)
    except build.NoTool as missing:
        return [Finding("C compiler", "", "nothing can be graded", str(missing), needed=True)]
    sanitizers = " and ".join(n for n in ("address", "undefined") if n in tools.sanitizers)
    leaks = "works" if "leak" in tools.sanitizers else ""
    return [
        Finding("C compiler", f"{tools.version} ({tools.compiler})", "", ""),
        Finding(
            "sanitizers",
            sanitizers,
            "out-of-bounds reads and writes may go unseen",
            "the runtime of your compiler: libasan for gcc, compiler-rt for clang",
        ),
        Finding(
            "leak checker",
            leaks,
            f"{_points('clean')} points of `clean` are skipped",
            "Linux only; under a debugger or in some containers it cannot run",
        ),
    ]


def _tools(folder: Path) -> list[Finding]:
    def tool(
        name: str,
        commands: Sequence[Sequence[str]],
        without: str,
        install: str,
        later: bool = False,
    ) -> Finding:
        found = _first_that_runs(commands, folder)
        return Finding(name, found, without, install, later=later)

    debuggers = [("gdb", "--version"), ("lldb", "--version")]
    bwrap = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")
    cuda, mpi = "A3 on this machine's GPU", "A4 on several processes"
    return [
        tool("make", [("make", "--version")], "`make data`", _install("make", "make")),
        tool("debugger", debuggers, "--gdb", _install("gdb", "llvm")),
        tool("valgrind", [("valgrind", "--version")], "--valgrind", _install("valgrind")),
        tool("nvcc", [("nvcc", "--version")], cuda, "NVIDIA's CUDA toolkit", later=True),
        tool("GPU", [("nvidia-smi", "-L")], cuda, "an NVIDIA GPU and its driver", later=True),
        tool("MPI", [("mpicc", "--version")], mpi, _install("libopenmpi-dev", "open-mpi"), True),
        tool("sandbox", [bwrap], "isolation of others' code", _install("bubblewrap"), True),
    ]


def _data(folder: Path) -> list[Finding]:
    credits = [c for name in rubric.assignments() for c in _credits(name)]
    data = sum((c.points for c in credits if c.data), Fraction(0))
    big = sum((c.points for c in credits if c.big), Fraction(0))
    room = sandbox.can_write(folder, BIG.file_mib)
    return [
        Finding("real data", ".data/" if real_data() else "", _count(data), "make data"),
        Finding(
            "large files",
            f"{BIG.file_mib} MiB, sparse" if room else "",
            _count(big),
            "a file system with sparse files, such as ext4, xfs or APFS",
        ),
    ]


def _credits(assignment: str) -> list[rubric.Credit]:
    return [credit for _, item in rubric.load(assignment).items() for credit in item.credits]


def _points(name: str) -> Fraction:
    items = (item for a in rubric.assignments() for _, item in rubric.load(a).items())
    return sum((item.points for item in items if item.id == name), Fraction(0))


def _first_that_runs(commands: Sequence[Sequence[str]], folder: Path) -> str:
    """The first line that the first working command prints, or its path; empty if none works."""
    for name, *words in commands:
        path = shutil.which(name)
        if path is None:
            continue
        env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": str(folder)}
        folder.mkdir(parents=True, exist_ok=True)
        job = sandbox.Job((path, *words), folder, env, sandbox.Limits(wall_seconds=20))
        outcome = sandbox.run_all([job], 1)[0]
        if outcome.status == 0:
            return _version(outcome.stdout.decode("utf-8", "replace")) or path
    return ""


def _version(text: str) -> str:
    """The line that says most, without a serial number: nvcc's, and nvidia-smi's, have one."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    release = next((line for line in lines if "release" in line), lines[0] if lines else "")
    return "".join(c for c in release.partition(" (UUID")[0] if c.isprintable())[:60]


def _count(points: Fraction) -> str:
    return f"{shown(points)} {'point is' if points == 1 else 'points are'} skipped"


def _install(debian: str, brew: str = "") -> str:
    """The command of this system's package manager, as far as we know it."""
    if sys.platform == "darwin":
        return f"brew install {brew}" if brew else "not available on macOS"
    if shutil.which("apt"):
        return f"sudo apt install {debian}"
    return f"your system's package for what Debian calls {debian}"
