"""Times the grader, and what the reference promises: `python -m staff.bench [--rounds N]`.

All figures come from one run that alternates between them, in a copy of the tree of its own, and
replace the table in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from autograder import build, observe, rubric, sandbox
from autograder.build import RUNTIME, Toolchain
from autograder.files import write_whole
from autograder.rubric import ROOT
from staff import bench_llmc
from staff.figures import MIB, Figure

PAGE = ROOT / "docs" / "benchmarks.md"
TABLE = re.compile(r"(?<=<!-- measured -->\n).*(?=<!-- end -->)", re.DOTALL)
CORES = 2  # what the wanted figures are for


def copy(target: Path) -> None:
    """A copy of the tracked files, with the packages of this tree and without its caches."""
    shutil.rmtree(target, ignore_errors=True)
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listing.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    (target / ".venv").symlink_to(ROOT / ".venv")


def makefile(tree: Path, tools: Toolchain, folder: Path) -> Path:
    """The baseline: the same probes with the same flags, then every case, in parallel."""
    loaded = rubric.load("A0")
    part = loaded.parts[0]
    flags = shlex.join([*tools.flags, "-iquote", str(RUNTIME), f"-I{tree / 'reference'}"])
    cases = dict.fromkeys(
        (c.probe, c.case) for item in part.items for c in item.credits if not c.data
    )
    env = observe.environment(folder, sandbox.Limits(), leaks=True)
    told = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "OBSERVE_LEAKS")
    lines = [
        *(f"export {name} = {env[name]}" for name in told),
        f"all: {' '.join(f'{probe}.{case}' for probe, case in cases)}",
        f"observe.o: {RUNTIME / 'observe.c'}\n\t{tools.compiler} {flags} -c $< -o $@",
    ]
    for probe in part.probes:
        source, header = loaded.folder / "probes" / f"{probe}.c", f"{tree}/reference/llmc/{probe}.h"
        command = f"{tools.compiler} {flags} $< observe.o -o $@ -lm"
        lines.append(f"{probe}: {source} observe.o {header}\n\t{command}")
    for probe, case in cases:
        place = f"{probe}-{case}"
        run = f"mkdir {place} && cd {place} && ../{probe} {case} {loaded.seed} >log 2>&1"
        lines.append(f"{probe}.{case}: {probe}\n\t{run}")
    path = folder / "Makefile"
    write_whole(path, ("\n".join(lines) + "\n").encode())
    return path


def timed(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds of a command, and the most memory in MiB that one of its processes had."""
    started = time.monotonic()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} ended with {process.returncode}")
    unit = 1024 if sys.platform == "linux" else 1
    return time.monotonic() - started, usage.ru_maxrss * unit / MIB


def watched(
    command: Sequence[str], tree: Path, probes: Sequence[str], log: Path
) -> Iterator[tuple[str, float]]:
    """Each probe with the seconds from a save of its header to the end of the new table."""
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=tree, stdout=output, stderr=subprocess.DEVNULL)
    for tables, probe in enumerate(probes, 1):
        _wait_for_tables(log, tables)
        started = time.monotonic()
        _touch(tree, probe)
        _wait_for_tables(log, tables + 1)
        yield probe, time.monotonic() - started
    process.terminate()
    process.wait()


def _wait_for_tables(log: Path, count: int) -> None:
    while log.read_text().count("watching llmc/") < count:
        time.sleep(0.01)


def _touch(tree: Path, probe: str) -> None:
    with (tree / "reference" / "llmc" / f"{probe}.h").open("a") as header:
        header.write(f"// {time.monotonic_ns()}\n")


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Alternates between baseline, cold, warm and one header touched, then both halves; `say` hears
    of progress."""
    folder = ROOT / "build" / "bench"
    tree, bare = folder / "tree", folder / "bare"
    copy(tree)
    tools = build.toolchain(ROOT / "build")
    both = [sys.executable, str(tree / "grade"), "A0", "--reference", "-j", str(CORES)]
    grade = [*both[:3], "c", *both[3:]]
    probes = rubric.load("A0").parts[0].probes
    seconds: dict[str, list[float]] = {}
    memory: list[float] = []

    def note(name: str, command: Sequence[str], where: Path) -> None:
        say(name)
        spent, used = timed(command, where)
        seconds.setdefault(name, []).append(spent)
        if command is grade:
            memory.append(used)

    for _ in range(rounds):
        shutil.rmtree(bare, ignore_errors=True)
        makefile(tree, tools, bare)
        note("baseline", ["make", f"-j{CORES}"], bare)
        shutil.rmtree(tree / "build", ignore_errors=True)
        note("cold", grade, tree)
        note("warm", grade, tree)
        for probe in probes:
            _touch(tree, probe)
            note(f"{probe}.h touched", grade, tree)
        for probe, spent in watched([*grade, "--watch"], tree, probes, folder / "watch.log"):
            seconds.setdefault(f"{probe}.h saved, --watch", []).append(spent)
        shutil.rmtree(tree / "build", ignore_errors=True)
        note("both halves, cold", both, tree)
        note("both halves, warm", both, tree)
    most = 1.3 * median(seconds["baseline"]) + 0.6
    wanted = {"cold": most, "warm": 0.8, "both halves, cold": 4.0, "both halves, warm": 1.5}
    for probe in probes:
        wanted |= {f"{probe}.h touched": 1.5, f"{probe}.h saved, --watch": 1.0}
    figures = [Figure(n, tuple(v), "s", wanted.get(n)) for n, v in seconds.items()]
    return [*figures, Figure("peak memory of a process", tuple(memory), "MiB", 200.0)]


def machine(tools: Toolchain) -> str:
    """The machine in a line, without its name."""
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{system}, Python {platform.python_version()}, {tools.version}"


def table(figures: Sequence[Figure], rounds: int) -> str:
    """The figures as a Markdown table, with machine and date."""
    today = datetime.date.today().isoformat()
    head = f"{today}; {machine(build.toolchain(ROOT / 'build'))}; {rounds} rounds, alternating."
    return "\n".join(
        [
            f"\n{head}\n",
            "| figure | unit | median | range | wanted | holds |",
            "|---|---|---:|---:|---:|---|",
            *(figure.line() for figure in figures),
            "\n",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    rounds = parser.parse_args().rounds

    def say(name: str) -> None:
        print(f"  {name}", file=sys.stderr, flush=True)

    figures = [*measure(rounds, say), *bench_llmc.measure(rounds, say)]
    text = table(figures, rounds)
    print(text)
    write_whole(PAGE, TABLE.sub(lambda _: text, PAGE.read_text(encoding="utf-8")).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
