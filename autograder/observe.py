"""Runs the cases of built probes and parses what they report: typed, bounded, never evaluated."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from autograder import sandbox
from autograder.files import digest, read_json, write_whole
from autograder.sandbox import REPORT_STATUS
from autograder.zygote import Zygote

TYPES = {
    b"i64": np.int64,
    b"i32": np.int32,
    b"u64": np.uint64,
    b"u32": np.uint32,
    b"u8": np.uint8,
    b"f32": np.float32,
    b"f64": np.float64,
}
RECORD = re.compile(rb"([a-zA-Z][a-zA-Z0-9_]{0,63}) ([a-z0-9]{2,3}) ([0-9]{1,8}) ([0-9a-f]*)")
GIVEN = ("llmc/utils.h", "llmc/todo.h")  # a finding in there is its caller's
PLACE = re.compile(  # of a stack frame, as sanitizers write it and as valgrind does
    r"(?:#\d+ 0x[0-9a-f]+ in|(?:at|by) 0x[0-9A-F]+:) (\w+) \(?(?:\S*/)?(llmc/[\w.]+:\d+)"
)
VALGRIND = re.compile(r"^==\d+==(?: |$)", re.MULTILINE)  # how its lines start, unlike ASan's
RECORDS = 256  # in one case
STREAMS = ("stdout", "stderr", "observations")  # of an outcome, as bytes
TODO_STATUS = 77
RAISED_STATUS = 98  # of a Python case that an exception ended

Array = np.ndarray


class Malformed(Exception):
    """What came through the observation descriptor is not what a probe writes."""


@dataclass(frozen=True)
class Ending:
    """How a case ended. `kind`: ended, todo, report, raised, signal, exit, time, memory, output,
    processes.

    `what` says more, in words that are the same in every run: the unwritten function, the
    sanitizer's finding, the signal's name, the exit status.
    """

    kind: str
    what: str = ""


@dataclass(frozen=True)
class Observed:
    """What one case reported: named arrays, and how it ended."""

    values: Mapping[str, Array] = field(default_factory=dict)
    ending: Ending = Ending("ended")
    unwritten: str = ""  # the last unwritten function it met, also in a child
    leak: str = ""  # where the first lost block was allocated
    said: str = ""  # its last line on stderr
    seconds: float = 0.0
    restarted: bool = False  # ASan did not start until address randomisation was switched off


@dataclass(frozen=True)
class Case:
    """One thing to run: a case of a built probe."""

    binary: Path
    name: str
    limits: sandbox.Limits
    seed: int
    data: Path | None = None
    leaks: bool = False  # whether to look for lost memory
    runner: tuple[str, ...] = ()  # a command to run the program under
    forked: bool = False  # `binary` is a bundle of Python, to be forked off the zygote
    native: Path | None = None  # the shared library with what Python calls of C

    def argv(self) -> tuple[str, ...]:
        data = (str(self.data),) if self.data else ()
        return (*self.runner, str(self.binary), self.name, str(self.seed), *data)


def environment(
    home: Path, limits: sandbox.Limits, leaks: bool = False, native: Path | None = None
) -> dict[str, str]:
    """All that a probe sees of the environment. ASan's own limit comes before the sandbox's.

    `leaks` says that this compiler's leak checker was seen to work; `native` is llmc/native.py's
    library.
    """
    asan = {
        "exitcode": REPORT_STATUS,
        "leak_check_at_exit": 0,
        "max_malloc_fill_size": 1 << 30,
        "malloc_fill_byte": 190,
        "hard_rss_limit_mb": limits.memory_mib,
        "detect_stack_use_after_return": 0,
        "handle_abort": 0,
        "allocator_may_return_null": 0,
    }
    library = {"LLMC_NATIVE": str(native)} if native else {}
    return library | {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "LC_ALL": "C",
        "OBSERVE_LEAKS": str(int(leaks)),
        "ASAN_OPTIONS": ":".join(f"{name}={value}" for name, value in asan.items()),
        "UBSAN_OPTIONS": f"exitcode={REPORT_STATUS}:print_stacktrace=1",
    }


def run(
    cases: Sequence[Case],
    build: Path,
    parallel: int,
    cached: bool = False,
    done: Callable[[], None] = lambda: None,
) -> list[Observed]:
    """Runs the cases, each in an empty folder of its own that is removed afterwards.

    `cached` takes what an earlier run of the same program saw: for staff's many runs of code that
    does not change. A student's run always runs.
    """
    kept = [_kept(case, build) if cached else None for case in cases]
    missing = [i for i, outcome in enumerate(kept) if outcome is None]
    fresh = _run([cases[i] for i in missing], build, parallel, done)
    for i, outcome in zip(missing, fresh, strict=True):
        kept[i] = outcome
        if cached and not outcome.stopped and not outcome.restarted:
            write_whole(_kept_path(cases[i], build), _to_json(outcome))
    return [_observed(outcome) for outcome in kept if outcome is not None]


def _run(
    cases: Sequence[Case], build: Path, parallel: int, done: Callable[[], None]
) -> list[sandbox.Outcome]:
    scratch = build / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    folders = [Path(tempfile.mkdtemp(prefix="run-", dir=scratch)) for _ in cases]
    try:
        with Zygote() as zygote:
            if any(case.forked for case in cases):
                zygote.warm()
            pairs = zip(cases, folders, strict=True)
            jobs = [_job(case, folder, zygote) for case, folder in pairs]
            outcomes = sandbox.run_all(jobs, parallel, lambda *_: done(), zygote.pids)
            for i, outcome in enumerate(outcomes):
                outcomes[i] = _second_try(cases[i], jobs[i], outcome, zygote)
        return outcomes
    finally:
        for folder in folders:
            remove(folder)


def _second_try(
    case: Case, job: sandbox.Job, outcome: sandbox.Outcome, zygote: Zygote
) -> sandbox.Outcome:
    """What was no fault of the case's: ASan did not start, or another case killed the zygote."""
    if case.forked:
        if outcome.status != -signal.SIGKILL or outcome.stopped or not zygote.has_died():
            return outcome
        return sandbox.run_all([job], 1, spare=zygote.pids)[0]
    quick = not outcome.stopped and outcome.seconds < 5
    if quick and not outcome.observations and outcome.status != 0:  # no main() reached
        again = sandbox.run_again(job)
        return again if again and again.observations else outcome
    return outcome


def _kept_path(case: Case, build: Path) -> Path:
    """The program's name is the hash of all that it was made of; the rest is what it was given."""
    files = sorted(case.data.iterdir()) if case.data else []
    data = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files]
    given = environment(Path(), case.limits, case.leaks, case.native)
    key = digest(repr(case.limits), *(x for item in given.items() for x in item), *data)[:12]
    return build / "cache" / "observed" / f"{case.binary.name}-{case.name}-{case.seed}-{key}.json"


def _kept(case: Case, build: Path) -> sandbox.Outcome | None:
    path = _kept_path(case, build)
    raw = read_json(path)
    if raw is None:
        return None
    streams = {name: raw.pop(name).encode("latin-1") for name in STREAMS}
    return sandbox.Outcome(**raw, **streams)


def _to_json(outcome: sandbox.Outcome) -> bytes:
    raw = asdict(outcome)
    return json.dumps(raw | {name: raw[name].decode("latin-1") for name in STREAMS}).encode()


def _job(case: Case, folder: Path, zygote: Zygote) -> sandbox.Job:
    env = environment(folder, case.limits, case.leaks, case.native)
    roomy = replace(case.limits, memory_mib=case.limits.memory_mib + 512)
    starter = zygote.start if case.forked else None
    return sandbox.Job(case.argv(), folder, env, roomy, observe=True, starter=starter)


def remove(folder: Path) -> None:
    """Removes a folder that a student's code may have made unreadable, very deep, or removed."""
    if folder.is_symlink():  # a job may have put one in its place
        folder.unlink()
        return
    try:
        for path, folders, _ in os.walk(folder):
            for inner in (Path(path, name) for name in folders):
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
    except (OSError, RecursionError):  # deeper than Python goes
        env = {"PATH": "/usr/bin:/bin"}
        for command in (("chmod", "-R", "u+rwX"), ("rm", "-rf")):
            sandbox.run_all([sandbox.Job((*command, str(folder)), folder.parent, env)], 1)


def _observed(outcome: sandbox.Outcome) -> Observed:
    values: dict[str, Array] = {}
    try:
        for name, value in parse(outcome.observations):
            if name in values or len(values) == RECORDS:
                raise Malformed(f"`{name}` is reported twice, or too much is reported")
            values[name] = value
        ending = _ending(outcome, values)
    except Malformed as fault:
        ending = Ending("malformed", str(fault))
    text = outcome.stderr.decode("utf-8", "replace")
    return Observed(
        values,
        ending,
        _unwritten(text),
        _leak(text),
        _last_line(text),
        outcome.seconds,
        outcome.restarted,
    )


def parse(stream: bytes) -> Iterator[tuple[str, Array]]:
    """Yields (name, array) for each whole record. A last line without its end is a cut record.

    Raises Malformed where a line is no record: wrong form, unknown type, or wrong length.
    """
    *lines, cut = stream.split(b"\n")
    for line in lines:
        match = RECORD.fullmatch(line)
        if match is None or match[2] not in TYPES:
            raise Malformed(f"no record: {line[:40]!r}")
        name, kind, count, digits = match.groups()
        dtype = np.dtype(TYPES[kind])
        if len(digits) != 2 * dtype.itemsize * int(count):
            raise Malformed(f"`{name.decode()}` is not as long as it says")
        yield name.decode(), np.frombuffer(bytes.fromhex(digits.decode()), dtype)
    if cut and len(lines) == 0 and RECORD.match(cut) is None:
        raise Malformed(f"no record: {cut[:40]!r}")


def _ending(outcome: sandbox.Outcome, values: Mapping[str, Array]) -> Ending:
    text = outcome.stderr.decode("utf-8", "replace")
    if outcome.stopped:
        return Ending(outcome.stopped)
    if "hard rss limit exhausted" in text:
        return Ending("memory")
    if outcome.status == TODO_STATUS:
        return Ending("todo", _unwritten(text))
    if outcome.status == RAISED_STATUS:
        return Ending("raised", _last_line(text))
    if outcome.status == REPORT_STATUS:
        return Ending("report", _finding(text))
    if outcome.status < 0:
        return Ending("signal", _signal_name(-outcome.status))
    if outcome.status != 0 or "end" not in values:
        return Ending("exit", str(outcome.status))
    return Ending("ended")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:200]


def _unwritten(text: str) -> str:
    """The function that TODO() named last."""
    names = re.findall(r"^TODO: (?:A\d+: )?([\w.]{1,64}) is not", text, re.MULTILINE)
    return names[-1] if names else ""


def _place(word: str, text: str) -> str:
    """`WORD function (llmc/file.h:line)`: of the first stack the student's innermost frame."""
    stack = text[: text.find("\n\n", text.find("#0 "))] if "#0 " in text else text
    frames = PLACE.findall(stack)
    mine = next((f for f in frames if not f[1].startswith(GIVEN)), frames[0] if frames else None)
    return f"{word} {mine[0]} ({mine[1]})" if mine else ""


def _leak(text: str) -> str:
    """`24 bytes from dataloader_init (llmc/dataloader.h:120)`, of the first leak reported."""
    size = re.search(r"^(?:Direct|Indirect) leak of (\d+) byte", text, re.MULTILINE)
    if size is None:
        return ""
    return f"{size[1]} bytes" + _place(" from", text[size.end() :])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _finding(text: str) -> str:
    """The sanitizer's finding, without addresses and process numbers, with the student's line."""
    what = "a sanitizer report"
    if VALGRIND.search(text):
        return _memcheck(VALGRIND.sub("", text))
    kind = re.search(r"^SUMMARY: \w+Sanitizer: ([\w-]+)", text, re.MULTILINE)
    ubsan = re.search(r"runtime error: (.{1,120})", text)
    if ubsan:
        what = re.sub(r"0x[0-9a-f]{6,}", "an address", ubsan[1])
    elif kind:
        what = kind[1]
        access = re.search(r"^(READ|WRITE) of size (\d+)", text, re.MULTILINE)
        if access:
            what += f", {access[1].lower()} of {access[2]} bytes"
    return what + _place(", in", text)


def _memcheck(text: str) -> str:
    """Valgrind's first finding, and the student's innermost frame in its stacks."""
    finding = re.search(r"^.*(?:uninitialised|Invalid|overlap).*$", text, re.MULTILINE)
    return (finding[0][:120] if finding else "a report of valgrind") + _place(", in", text)
