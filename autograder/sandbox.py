"""The only place that starts processes: several at a time, each with limits, none left behind."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, NoReturn, Protocol

MIB = 1 << 20
REPORT_STATUS = 99  # what a sanitizer, or valgrind, is told to end a program with


@dataclass(frozen=True)
class Limits:
    """What one process tree may use. The wall limit is generous: a busy machine is no fault."""

    cpu_seconds: int = 4
    wall_seconds: float = 60.0
    memory_mib: int = 1024
    output_mib: int = 16  # stdout and stderr together; observations have as much again
    file_mib: int = 64  # the largest file it may write
    processes: int = 256


class Process(Protocol):
    """What is asked of a started job; subprocess.Popen is one."""

    @property
    def pid(self) -> int: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


@dataclass(frozen=True)
class Job:
    """A command, by its path, to run in `folder` with `env` alone (of which a shell may have added
    PWD and the like); `observe` gives it a descriptor, OBS_FD. A `starter` starts it in another way
    than as a program: it is given the job, its environment and that descriptor."""

    argv: tuple[str, ...]
    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    observe: bool = False
    starter: Callable[[Job, Mapping[str, str], int], Process] | None = None


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `status` as subprocess has it (negative: a signal), and what it wrote.

    `stopped` names the limit that ended it: time, memory, output or processes; else it is empty.
    """

    status: int
    stopped: str
    stdout: bytes
    stderr: bytes
    observations: bytes
    seconds: float
    restarted: bool = False  # a second try, by run_again


KEPT = 256 * 1024  # bytes of stdout and of stderr that are kept for messages
TICK = 0.02  # seconds between two looks at the clock and at memory


def run_all(
    jobs: Iterable[Job],
    parallel: int,
    done: Callable[[int, Outcome], None] | None = None,
    spare: Callable[[], Collection[int]] = tuple,
) -> list[Outcome]:
    """Runs the jobs, `parallel` at a time, and returns their outcomes in order.

    While it works, any orphan that falls to this process is killed, so no other thread of the
    caller may start processes meanwhile; `spare` names those that a job's starter keeps.
    """
    waiting = list(enumerate(jobs))[::-1]
    outcomes: dict[int, Outcome] = {}
    total = len(waiting)
    with _Watch(spare) as watch:
        while len(outcomes) < total:
            while waiting and len(watch.running) < parallel:
                index, job = waiting.pop()
                watch.start(index, job)
            for index, outcome in watch.turn():
                outcomes[index] = outcome
                if done is not None:
                    done(index, outcome)
    return [outcomes[i] for i in range(total)]


def run_again(job: Job) -> Outcome | None:
    """Runs a job without address randomisation, with which ASan now and then fails to start.

    None where there is no setarch.
    """
    setarch = shutil.which("setarch")
    if setarch is None:
        return None
    plain = replace(job, argv=(setarch, platform.machine(), "-R", *job.argv))
    return replace(run_all([plain], 1)[0], restarted=True)


def become(argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> NoReturn:
    """Turns this process into a program of the user's own, without limits: a debugger."""
    os.chdir(folder)
    os.execve(argv[0], list(argv), env)


def can_write(folder: Path, mib: int) -> bool:
    """Whether a file of that size, nearly all hole, can be written there."""
    ceiling = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if ceiling != resource.RLIM_INFINITY and ceiling < mib * MIB:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(mib * MIB)
            return os.fstat(file.fileno()).st_blocks * 512 < mib * MIB // 2
    except OSError:
        return False


class _Running:
    """A started job: its process, its pipes and what came out of them so far."""

    def __init__(self, index: int, job: Job):
        self.index, self.job = index, job
        self.started = time.monotonic()
        self.stopped = ""
        self.written = {"stdout": 0, "stderr": 0, "observations": 0}
        self.kept: dict[str, bytearray] = {name: bytearray() for name in self.written}
        self.pipes: dict[int, str] = {}
        env = dict(job.env)
        passed: tuple[int, ...] = ()
        if job.observe:
            mine, theirs = os.pipe()
            self.pipes[mine] = "observations"
            env["OBS_FD"] = str(theirs)
            passed = (theirs,)
        try:
            self.process = self._start(env, passed)
        finally:
            for fd in passed:
                os.close(fd)
        assert self.process.stdout is not None and self.process.stderr is not None
        self.pipes[self.process.stdout.fileno()] = "stdout"
        self.pipes[self.process.stderr.fileno()] = "stderr"
        for fd in self.pipes:
            os.set_blocking(fd, False)

    def _start(self, env: dict[str, str], passed: tuple[int, ...]) -> Process:
        """Starts the job; its folder is made again should another job have removed it.

        Raises FileNotFoundError where there is no such program.
        """
        if self.job.starter is not None:
            return self.job.starter(self.job, env, passed[0])
        if shutil.which(self.job.argv[0], path=env.get("PATH", "")) is None:
            raise FileNotFoundError(f"{self.job.argv[0]}: cannot be run")
        for left in (2, 1, 0):
            self.job.folder.mkdir(parents=True, exist_ok=True)
            try:
                return subprocess.Popen(
                    [*_launcher(self.job.limits), *self.job.argv],
                    cwd=self.job.folder,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=passed,
                    start_new_session=True,
                )
            except FileNotFoundError:
                if not left or self.job.folder.is_dir():
                    raise
        raise AssertionError("the last try returns or raises")

    def read(self, fd: int) -> bool:
        """Takes what is in a pipe; False at its end. Bytes past the cap are counted, not kept."""
        name = self.pipes[fd]
        try:
            block = os.read(fd, MIB)
        except BlockingIOError:
            return True
        self.written[name] += len(block)
        room = self.job.limits.output_mib * MIB if name == "observations" else KEPT
        self.kept[name] += block[: max(0, room - len(self.kept[name]))]
        return bool(block)

    def over_limit(self) -> str:
        limits, pid = self.job.limits, self.process.pid
        if time.monotonic() - self.started > limits.wall_seconds:
            return "time"
        spoken = self.written["stdout"] + self.written["stderr"]
        if max(spoken, self.written["observations"]) > limits.output_mib * MIB:
            return "output"
        tree = _tree(pid)
        if len(tree) > limits.processes:
            return "processes"
        if sum(map(_resident, tree)) > limits.memory_mib * MIB:
            return "memory"
        return ""

    def kill(self) -> None:
        tree = _tree(self.process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pid in tree:
            _kill(pid)

    def outcome(self, status: int) -> Outcome:
        stopped = self.stopped
        spent = time.monotonic() - self.started
        hard = status == -signal.SIGKILL and spent >= self.job.limits.cpu_seconds  # ignored XCPU
        if not stopped and (status == -signal.SIGXCPU or hard):
            stopped = "time"
        return Outcome(
            status,
            stopped,
            bytes(self.kept["stdout"]),
            bytes(self.kept["stderr"]),
            bytes(self.kept["observations"]),
            spent,
        )


class _Watch:
    """The running jobs and the one selector on all their pipes."""

    def __init__(self, spare: Callable[[], Collection[int]]) -> None:
        self.spare = spare
        self.running: list[_Running] = []
        self.selector = selectors.DefaultSelector()
        self.looked = 0.0

    def __enter__(self) -> _Watch:
        self.subreaper = _set_subreaper(True)
        self.others = set(_children(os.getpid()))
        return self

    def __exit__(self, *exc: object) -> None:
        for run in list(self.running):
            run.kill()
            run.process.wait()
            self._close(run)
        self._reap_orphans()
        self.selector.close()
        _set_subreaper(False)

    def start(self, index: int, job: Job) -> None:
        run = _Running(index, job)
        self.running.append(run)
        for fd in run.pipes:
            self.selector.register(fd, selectors.EVENT_READ, run)

    def turn(self) -> Iterator[tuple[int, Outcome]]:
        """Waits a tick or for output; yields the jobs that ended."""
        for key, _ in self.selector.select(TICK):
            if not key.data.read(key.fd):
                self.selector.unregister(key.fd)
        look = time.monotonic() - self.looked > TICK
        self.looked = time.monotonic() if look else self.looked
        for run in list(self.running):
            if look:
                run.stopped = run.stopped or run.over_limit()
            if run.stopped:
                run.kill()
            status = run.process.poll()
            if status is None and not self._open(run) and not run.stopped:
                status = self._wait_briefly(run)
            if status is not None:
                yield run.index, self._finish(run, status)

    def _open(self, run: _Running) -> bool:
        return any(fd in self.selector.get_map() for fd in run.pipes)

    @staticmethod
    def _wait_briefly(run: _Running) -> int | None:
        """All pipes are closed: it is as good as over, so no tick need pass."""
        try:
            return run.process.wait(TICK)
        except subprocess.TimeoutExpired:
            return None

    def _finish(self, run: _Running, status: int) -> Outcome:
        run.kill()  # what is left of its group
        self.running.remove(run)
        self._reap_orphans()
        for fd in list(run.pipes):
            while fd in self.selector.get_map() and self.selector.select(0):
                before = run.written[run.pipes[fd]]
                if not run.read(fd):
                    self.selector.unregister(fd)
                elif run.written[run.pipes[fd]] == before:
                    break
        self._close(run)
        return run.outcome(status)

    def _close(self, run: _Running) -> None:
        for fd, name in run.pipes.items():
            if fd in self.selector.get_map():
                self.selector.unregister(fd)
            if name == "observations":
                os.close(fd)
        for stream in (run.process.stdout, run.process.stderr):
            if stream is not None:
                stream.close()

    def _reap_orphans(self) -> None:
        """Kills whatever a job left behind; as a subreaper we inherit it, wherever it hid."""
        if not self.subreaper:
            return
        deadline = time.monotonic() + 10  # those that change their pid faster than we look stay
        while time.monotonic() < deadline:
            ours = {run.process.pid for run in self.running} | self.others
            ours |= set(self.spare())
            orphans = [pid for pid in _children(os.getpid()) if pid not in ours]
            if not orphans:
                return
            for pid in orphans:
                for descendant in _tree(pid):
                    _kill(descendant)
            for pid in orphans:
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            _ps.cache_clear()


def _launcher(limits: Limits) -> list[str]:
    """What sets the limits and then becomes the job.

    RLIMIT_AS is not among them: ASan reserves terabytes. A lower limit that is in force stays.
    Doing it in Python, between fork and exec, costs ten times as much: numpy is forked along.
    """
    cpu, blocks = limits.cpu_seconds, limits.file_mib * MIB // 512
    lines = ("-c 0", f"-S -t {cpu}", f"-H -t {cpu + 1}", f"-f {blocks}")
    script = "".join(f"ulimit {line} 2>/dev/null; " for line in lines) + 'exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *end_with_us()]


@functools.cache
def end_with_us() -> list[str]:
    """What has the kernel kill a job should the grader be killed, where there is such a command."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    words = [setpriv or "", "--pdeathsig", "KILL"]
    if setpriv is None or subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        return []  # it came to util-linux in 2018, and BusyBox has it not
    return words


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def kill_children(pid: int) -> None:
    """Kills the children of a process of ours, and theirs, until it has none."""
    deadline = time.monotonic() + 10
    while (children := _children(pid)) and time.monotonic() < deadline:
        for child in children:
            for descendant in _tree(child):
                _kill(descendant)
        time.sleep(0.01)
        _ps.cache_clear()


def _set_subreaper(on: bool) -> bool:
    """PR_SET_CHILD_SUBREAPER; False where there is no such thing."""
    return sys.platform == "linux" and int(_libc().prctl(36, int(on), 0, 0, 0)) == 0


def _kill(pid: int) -> None:
    assert pid > 0, "0 and less are whole groups of processes"
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


CHILDREN = Path("/proc/thread-self/children")  # there if the kernel lists them


def _children(pid: int) -> list[int]:
    """Child processes, from /proc where it lists them, else from ps."""
    if not CHILDREN.exists():
        return [child for child, (parent, _) in _ps(_now()).items() if parent == pid]
    try:
        tasks = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    return [int(child) for text in tasks for child in text.split()]


def _tree(pid: int) -> list[int]:
    """A process and all its descendants, as far as the first ten thousand."""
    found = [pid]
    for known in found:
        if len(found) < 10_000:
            found += _children(known)
    return found


def _resident(pid: int) -> int:
    """Bytes of memory in use by one process; 0 if it is gone."""
    if not CHILDREN.exists():
        return _ps(_now()).get(pid, (0, 0))[1]
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * resource.getpagesize()


def _now() -> int:
    """The current quarter of a second: how long one listing of ps is good for."""
    return int(time.monotonic() * 4)


@functools.lru_cache(maxsize=1)
def _ps(now: int) -> dict[int, tuple[int, int]]:
    """pid → (parent, resident bytes), for systems without /proc."""
    if shutil.which("ps") is None:
        return {}
    with subprocess.Popen(["ps", "-axo", "pid=,ppid=,rss="], stdout=subprocess.PIPE) as listing:
        text = listing.communicate()[0]
    rows = [[int(word) for word in line.split()] for line in text.splitlines()]
    return {pid: (parent, kib * 1024) for pid, parent, kib in rows if pid != listing.pid}
