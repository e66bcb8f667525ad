"""Builds probes against a student's headers; keeps what it built by the content it was made of."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from autograder import sandbox
from autograder.files import digest, read_json, scratch_folder, write_whole
from autograder.rubric import PYTHON, ROOT, SUFFIXES, module
from autograder.sandbox import REPORT_STATUS
from autograder.sources import read, silenced

RUNTIME = ROOT / "assignments" / "observe"
STANDARD = ("-std=gnu11", "-O0", "-g")
WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-parameter")
FLOATS = ("-ffp-contract=off",)
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FRAMES = ("-fno-omit-frame-pointer", "-fdiagnostics-color=never")
OPTIONAL = ("-ftrivial-auto-var-init=pattern", "-fuse-ld=gold", "-fuse-ld=mold", "-fuse-ld=lld")
# Building one header takes a second; ten times that on a busy machine is still no fault.
LIMITS = sandbox.Limits(cpu_seconds=60, wall_seconds=300, memory_mib=4096, file_mib=256)

LEAK = """#include <stdlib.h>
#include <sanitizer/lsan_interface.h>
static void *volatile kept;
int main(void) {
    kept = malloc(100);
    kept = NULL;
    return __lsan_do_recoverable_leak_check() ? 0 : 3;
}
"""


# The second build's programs run under this; what it finds first ends them, as ASan's findings do.
MEMCHECK = (
    *("valgrind", "--quiet", "--exit-on-first-error=yes", f"--error-exitcode={REPORT_STATUS}"),
    *("--track-origins=yes", "--leak-check=no", "--malloc-fill=be", "--fullpath-after="),
)


class NoTool(Exception):
    """What this needs is not on this machine; the message says how to get it."""


@dataclass(frozen=True)
class Toolchain:
    """The compiler, what it calls itself, the flags it takes, and what its sanitizers can see."""

    compiler: str
    version: str
    flags: tuple[str, ...]
    sanitizers: tuple[str, ...]  # of: address, undefined, leak
    includes: tuple[str, ...]  # the folders of the system's own headers
    runner: tuple[str, ...] = ()  # what programs run under

    @property
    def described(self) -> str:
        """`gcc 12.2.0  -O0  -Wall -Wextra ASan UBSan`"""
        names = {"address": "ASan", "undefined": "UBSan"}
        watchers = [names[s] for s in self.sanitizers if s in names]
        watchers += [Path(word).name for word in self.runner[:1]]
        return " ".join([f"{self.version}  -O0  {' '.join(WARNINGS[:2])}", *watchers])


@dataclass(frozen=True)
class Note:
    """What the compiler says: where (`llmc/rand.h:41`), what, whether it is an error; and the line
    of code that it points at, with the pointer below."""

    where: str
    what: str
    error: bool
    code: str = ""


@dataclass(frozen=True)
class Built:
    """A probe with a student's header: a program, or None and at least one error in the notes."""

    probe: str
    binary: Path | None
    notes: tuple[Note, ...] = ()
    silenced: tuple[tuple[str, str], ...] = ()  # (where, what) hides diagnostics

    @property
    def file(self) -> str:
        """The student's file that it observes."""
        suffix = SUFFIXES["python" if self.probe.endswith(PYTHON) else "c"]
        return f"llmc/{module(self.probe)}{suffix}"

    @property
    def error(self) -> Note | None:
        return next((note for note in self.notes if note.error), None)

    @property
    def warnings(self) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if not note.error)


# ---------------------------------------------------------------- the compiler


def toolchain(build: Path, valgrind: bool = False) -> Toolchain:
    """Finds the compiler ($CC, else cc, gcc, clang) and tries its flags, once for each compiler.

    With `valgrind` there are no sanitizers, which do not run under it, and nothing is initialised
    that the program left alone: reading it is what valgrind is for. Raises NoTool.
    """
    memcheck = shutil.which(MEMCHECK[0]) if valgrind else None
    if valgrind and memcheck is None:
        raise NoTool("valgrind is not here; ./grade doctor says how to install it")
    tools = _toolchain(build)
    if memcheck is None:
        return tools
    hides = {*SANITIZE, OPTIONAL[0]}
    flags = tuple(flag for flag in tools.flags if flag not in hides)
    return replace(tools, flags=flags, sanitizers=(), runner=(memcheck, *MEMCHECK[1:]))


def _toolchain(build: Path) -> Toolchain:
    candidates = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    if candidates[0] and shutil.which(candidates[0]) is None:
        raise NoTool(f"CC={candidates[0]}: no such command (one word, without options)")
    path = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if path is None:
        raise NoTool("no C compiler here: install gcc or clang (Debian: apt install gcc)")
    stat = Path(path).resolve().stat()
    key = digest(path, str(stat.st_size), str(stat.st_mtime_ns), Path(__file__).read_bytes())
    kept = build / "cache" / f"toolchain-{key[:16]}.json"
    raw = read_json(kept)
    if raw is not None:
        names = ("flags", "sanitizers", "includes")
        return Toolchain(raw["compiler"], raw["version"], *(tuple(raw[name]) for name in names))
    tried = _try_compiler(path, build)
    write_whole(kept, json.dumps(asdict(tried)).encode())
    return tried


def _try_compiler(path: str, build: Path) -> Toolchain:
    with scratch_folder(build) as folder:
        trial = folder / "trial.c"
        trial.write_text("int main(void) { return 0; }\n")
        says = _run([path, "--version"], folder).stdout.decode("utf-8", "replace")
        base = [*STANDARD, *WARNINGS, *FLOATS, *FRAMES]
        usual = [*base, *SANITIZE, *OPTIONAL[:2]]
        if _sees_leaks([path, *usual], folder):  # then all of them work, in one go
            seen = ("address", "undefined", "leak")
            return Toolchain(path, _name(says), tuple(usual), seen, _includes(path, folder))

        def accepts(*flags: str) -> bool:
            command = [path, *base, *flags, "-Werror", str(trial), "-o", str(folder / "trial")]
            return _run(command, folder).status == 0

        if not accepts():
            raise NoTool(f"{path} does not compile an empty program")
        sanitize = list(SANITIZE) if accepts(*SANITIZE) and _starts(folder / "trial") else []
        extra: list[str] = []
        for flag in OPTIONAL:
            linker_chosen = any(f.startswith("-fuse-ld") for f in extra)
            if not (flag.startswith("-fuse-ld") and linker_chosen) and accepts(*sanitize, flag):
                extra.append(flag)
        sanitizers = ["address", "undefined"] if sanitize else []
        if sanitize and _sees_leaks([path, *base, *sanitize], folder):
            sanitizers.append("leak")
        flags = (*base, *sanitize, *extra)
        return Toolchain(path, _name(says), flags, tuple(sanitizers), _includes(path, folder))


def _includes(path: str, folder: Path) -> tuple[str, ...]:
    """Where the compiler looks for <headers>, by its own account."""
    said = _run([path, "-E", "-v", "-xc", os.devnull], folder).stderr.decode("utf-8", "replace")
    listed = said.partition("#include <...> search starts here:")[2].partition("End of search")[0]
    folders = [line.split(" (framework")[0].strip() for line in listed.splitlines()]
    return tuple(os.path.realpath(name) for name in folders if name)


def _starts(program: Path, env: dict[str, str] | None = None) -> bool:
    """Whether a program ends with 0, if need be without address randomisation."""
    job = sandbox.Job((str(program),), program.parent, _environment(program.parent) | (env or {}))
    return sandbox.run_all([job], 1)[0].status == 0 or (
        (again := sandbox.run_again(job)) is not None and again.status == 0
    )


def _sees_leaks(command: list[str], folder: Path) -> bool:
    source, program = folder / "leak.c", folder / "leak"
    source.write_text(LEAK)
    if _run([*command, "-Werror", str(source), "-o", str(program)], folder).status != 0:
        return False
    return _starts(program, {"ASAN_OPTIONS": "leak_check_at_exit=0"})


def _name(says: str) -> str:
    """`gcc 12.2.0` from the first line of --version."""
    first = says.splitlines()[0] if says else ""
    version = re.search(r"\d+\.\d+(\.\d+)?", first)
    family = "clang" if "clang" in first else "gcc"
    return f"{family} {version[0]}" if version else family


def _run(command: Sequence[str], folder: Path) -> sandbox.Outcome:
    job = sandbox.Job(tuple(command), folder, _environment(folder), LIMITS)
    return sandbox.run_all([job], 1)[0]


def _environment(folder: Path) -> dict[str, str]:
    """What a compiler sees: messages in English, temporary files in our own folder."""
    path = os.environ.get("PATH", "/usr/bin:/bin")
    kept = {name: os.environ[name] for name in ("SDKROOT", "DEVELOPER_DIR") if name in os.environ}
    return kept | {"PATH": path, "LC_ALL": "C", "TMPDIR": str(folder), "HOME": str(folder)}


# ---------------------------------------------------------------- probes


@dataclass(frozen=True)
class Source:
    """A program to build beside the student's headers; `runtime` links the observation runtime."""

    name: str
    path: Path
    runtime: bool = True


def programs(
    sources: Sequence[Source],
    student: Path,
    tools: Toolchain,
    build: Path,
    parallel: int,
    done: Callable[[], None] = lambda: None,
) -> dict[str, Built]:
    """Builds each source with `student`/llmc/*.h, and returns name → Built; cached by content.

    A header that does not compile is no fault of ours: its Built has no binary, and says why.
    """
    theirs = read(student)
    result: dict[str, Built] = {}
    for source in sources:
        absent = missing(f"llmc/{source.name}.h", theirs) if source.runtime else None
        kept = _lookup(source, theirs, tools, build)
        if absent is not None:
            kept = Built(source.name, None, (absent,))
        if kept is not None:
            result[source.name] = kept
            done()
    left = [source for source in sources if source.name not in result]
    if left:
        runtime = _runtime(tools, build)
        with scratch_folder(build) as folder:
            (folder / "llmc").mkdir()
            for name, content in theirs.items():
                (folder / name).write_bytes(content)
            jobs = [_job(source, tools, runtime, folder) for source in left]
            outcomes = sandbox.run_all(jobs, parallel, lambda *_: done())
            for source, outcome in zip(left, outcomes, strict=True):
                result[source.name] = _keep(source, outcome, theirs, tools, build, folder)
    return {source.name: result[source.name] for source in sources}


def missing(wanted: str, theirs: Mapping[str, bytes]) -> Note | None:
    """Why a student's file is not there, perhaps for its name alone; None if it is."""
    if wanted in theirs:
        return None
    alike = next((name for name in theirs if name.lower() == wanted), "")
    what = "it is missing" + (f"; is it {alike}?" if alike else "; ./grade start brings the stub")
    return Note(wanted, what, True)


def _job(source: Source, tools: Toolchain, runtime: Path, folder: Path) -> sandbox.Job:
    """The compiler's command; `folder` holds a copy of the student's llmc/ and nothing else."""
    command = [
        tools.compiler,
        *tools.flags,
        f"-ffile-prefix-map={ROOT}{os.sep}=",
        f"-ffile-prefix-map={folder}{os.sep}llmc=llmc",  # the last one that fits is applied
        *("-iquote", str(RUNTIME), f"-I{folder}"),
        *("-MD", "-MF", str(folder / f"{source.name}.d")),
        str(source.path),
        *([str(runtime)] if source.runtime else []),
        *("-o", str(folder / source.name), "-lm"),
    ]
    return sandbox.Job(tuple(command), folder, _environment(folder), LIMITS)


def _runtime(tools: Toolchain, build: Path) -> Path:
    """The object file of observe.c, which all probes share."""
    source = RUNTIME / "observe.c"
    parts = [source.read_bytes(), (RUNTIME / "observe.h").read_bytes()]
    target = build / "cache" / f"observe-{digest(*tools.flags, tools.version, *parts)[:16]}.o"
    if not target.exists() or target.stat().st_size == 0:
        with scratch_folder(build) as folder:
            made = folder / "observe.o"
            command = [tools.compiler, *tools.flags, f"-ffile-prefix-map={ROOT}{os.sep}="]
            outcome = _run([*command, "-c", str(source), "-o", str(made)], folder)
            if outcome.status != 0:
                raise RuntimeError(f"observe.c: {outcome.stderr.decode('utf-8', 'replace')}")
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(made, target)
    return target


# The cache works as ccache's direct mode does: under a key of all that is ours lies the list of
# files that such a build read; the content of those files makes the second key, of the program.


def _first_key(source: Source, tools: Toolchain) -> str:
    ours = [source.path.read_bytes(), Path(__file__).read_bytes()]
    ours += [path.read_bytes() for path in sorted(RUNTIME.glob("*.[ch]"))]
    return digest(source.name, tools.compiler, tools.version, *tools.flags, *ours)[:16]


def _second_key(first: str, theirs: Mapping[str, bytes], files: Sequence[str]) -> str | None:
    if not all(name in theirs for name in files):
        return None
    return digest(first, *(part for name in files for part in (name, theirs[name])))[:16]


def _lookup(
    source: Source, theirs: Mapping[str, bytes], tools: Toolchain, build: Path
) -> Built | None:
    first = _first_key(source, tools)
    lists = build / "cache" / f"{source.name}-{first}"
    for path in sorted(lists.glob("*.files")) if lists.is_dir() else []:
        files = read_json(path) or []
        second = _second_key(first, theirs, files)
        raw = read_json(lists / f"{second}.json")
        if second is None or raw is None:
            continue
        if (lists / second).exists() and digest((lists / second).read_bytes()) == raw["program"]:
            notes = tuple(Note(**note) for note in raw["notes"])
            return Built(source.name, lists / second, notes, silenced(theirs, files))
    return None


def _keep(
    source: Source,
    outcome: sandbox.Outcome,
    theirs: Mapping[str, bytes],
    tools: Toolchain,
    build: Path,
    folder: Path,
) -> Built:
    if b"No space left on device" in outcome.stderr:
        raise OSError(f"no space left in {build}")
    notes = _notes(outcome.stderr.decode("utf-8", "replace"), folder)
    if outcome.status != 0:
        if not any(note.error for note in notes):
            notes += (Note(f"llmc/{source.name}.h", _why_stopped(outcome), True),)
        return Built(source.name, None, notes)
    files, strangers = _read_files(folder / f"{source.name}.d", folder, tools)
    if strangers:
        what = f"a file from outside llmc/ is included: {strangers[0]}"
        return Built(source.name, None, (Note(f"llmc/{source.name}.h", what, True), *notes))
    first = _first_key(source, tools)
    second = _second_key(first, theirs, files)
    assert second is not None, "all of these files were laid from `theirs`"
    lists = build / "cache" / f"{source.name}-{first}"
    lists.mkdir(parents=True, exist_ok=True)
    target = lists / second
    program = digest((folder / source.name).read_bytes())
    os.replace(folder / source.name, target)
    record = {"program": program, "notes": [asdict(note) for note in notes]}
    write_whole(lists / f"{second}.json", json.dumps(record).encode())
    write_whole(lists / f"{digest(*files)[:16]}.files", json.dumps(files).encode())
    return Built(source.name, target, notes, silenced(theirs, files))


def _why_stopped(outcome: sandbox.Outcome) -> str:
    if outcome.stopped:
        return f"the compiler ran out of {outcome.stopped}"
    return f"the compiler ended with status {outcome.status}"


def _read_files(rule: Path, folder: Path, tools: Toolchain) -> tuple[list[str], list[str]]:
    """What a dependency rule names: the student's files, as llmc/NAME, and files of nobody's.

    The system's headers and ours are in neither list. That a file claims to be the system's, with a
    pragma or a line marker, does not make it so.
    """
    known = (*OURS, *(f"{name}{os.sep}" for name in tools.includes))
    text = os.fsdecode(rule.read_bytes()).replace("\\\n", " ").partition(": ")[2]
    words = [word for word in re.split(r"(?<!\\)\s+", text) if word]
    plain = [re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words]
    theirs: set[str] = set()
    strangers: list[str] = []
    for path in map(os.path.realpath, plain):
        if path.startswith(os.path.realpath(folder / "llmc") + os.sep):
            theirs.add(f"llmc/{os.path.basename(path)}")
        elif not path.startswith(known):
            strangers.append(os.path.basename(path))
    return sorted(theirs), strangers


OURS = tuple(os.path.realpath(ROOT / name) + os.sep for name in ("assignments", "dev"))
NOTE = re.compile(
    r"^(.+?):(\d+):(?:\d+:)? (fatal error|error|warning): (.*)$"
    r"(?:\n *\d+ \| ?(.*)\n *\| ?(.*))?",
    re.MULTILINE,
)
LINK = re.compile(  # GNU ld and gold, lld and mold, Apple's
    r"^(?:.*: )?(multiple definition of .*|undefined reference to .*|undefined symbol: .*"
    r"|duplicate symbol.*|Undefined symbols for architecture.*)$",
    re.MULTILINE,
)


def _notes(text: str, folder: Path) -> tuple[Note, ...]:
    """The compiler's errors and warnings, with paths that mean something to the student."""
    text = text.replace(f"{folder}{os.sep}", "").replace(f"{ROOT}{os.sep}", "")
    notes = [
        Note(f"{where}:{line}", what[:400], kind != "warning", f"{code}\n{mark}" if code else "")
        for where, line, kind, what, code, mark in NOTE.findall(text)
    ]
    notes += [Note("link", what, True) for what in LINK.findall(text)]
    return tuple(sorted(notes, key=lambda note: not note.error)[:20])
