"""Starts Python cases by forking them off a server that has imported numpy: see observe/fork.py."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from autograder.sandbox import MIB, Job, end_with_us, kill_children

TRIES = 20  # to start a case, should others kill the server
PATIENCE = 30  # seconds in which a server answers, on however busy a machine
ANSWER = re.compile(rb"(started|ended) ([1-9]\d{0,9}) (-?\d{1,3})")
SERVER = Path(__file__).resolve().parent.parent / "assignments" / "observe" / "fork.py"


class Forked:
    """A case that the server forked: what subprocess.Popen is for a program of its own."""

    def __init__(self, zygote: Zygote, pid: int, stdout: IO[bytes], stderr: IO[bytes]):
        self.zygote, self.pid, self.stdout, self.stderr = zygote, pid, stdout, stderr
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its status, or None while it runs."""
        if self.returncode is None:
            self.returncode = self.zygote.status(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its status, when it has one. Raises subprocess.TimeoutExpired."""
        started = time.monotonic()
        while (status := self.poll()) is None:
            if timeout is not None and time.monotonic() - started > timeout:
                raise subprocess.TimeoutExpired("case", timeout)
            self.zygote.listen(0.005)
        return status


class Zygote:
    """One server; should a case kill it, the next start makes another."""

    connection: socket.socket

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.statuses: dict[int, int] = {}
        self.started: list[int] = []
        self.rest = b""
        self.deaths = 0

    def pids(self) -> list[int]:
        """The server's, while there is one."""
        return [self.process.pid] if self.process is not None else []

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            kill_children(self.process.pid)  # those of a case that made itself brothers
            self.connection.close()
            self.process.kill()
            self.process.wait()

    def warm(self) -> None:
        """Starts the server, which has half a second's work before it can start a case."""
        self._ensure()

    def start(self, job: Job, env: Mapping[str, str], observations: int) -> Forked:
        """Starts a case; the job's words are a bundle, the case's name, and the seed.

        Raises OSError where no server lives long enough for that.
        """
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        try:
            pid = self._fork(_request(job, env), [out_end, err_end, observations])
        finally:
            os.close(out_end)
            os.close(err_end)
        return Forked(self, pid, os.fdopen(out, "rb", 0), os.fdopen(err, "rb", 0))

    def _fork(self, request: bytes, descriptors: list[int]) -> int:
        """The number of a new process; another case may kill the server at any moment."""
        for _ in range(TRIES):
            server = self._ensure()
            with suppress(OSError):
                socket.send_fds(self.connection, [request], descriptors)
            deadline = time.monotonic() + PATIENCE
            while not self.started and self._lives():
                self.listen(0.05)
                if time.monotonic() > deadline:
                    server.kill()
            self.listen(0)  # what it said last
            if self.started:
                return self.started.pop()
        raise OSError("the server of Python cases is killed again and again")

    def status(self, pid: int) -> int | None:
        """How a case ended; None while it runs. With the server gone, as if killed."""
        self.listen(0)
        if pid in self.statuses:
            return self.statuses.pop(pid)
        return None if self._lives() else -9

    def has_died(self) -> bool:
        """Whether a server was killed, so that cases may have died without fault."""
        return self.deaths > 0 or (self.process is not None and not self._lives())

    def _lives(self) -> bool:
        """A server that somebody stopped answers no more: it is killed."""
        if self.process is None or self.process.poll() is not None:
            return False
        if hasattr(os, "waitid"):
            how = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
            try:
                stopped = os.waitid(os.P_PID, self.process.pid, how) is not None
            except ChildProcessError:  # it ended a moment ago: who has ended cannot stop
                stopped = True
            if stopped:
                self.process.kill()
                self.process.wait()
                return False
        return True

    def listen(self, seconds: float) -> None:
        """Takes in what the server says within that time."""
        self.connection.settimeout(seconds)
        try:
            self.rest += self.connection.recv(1 << 16)
        except (BlockingIOError, TimeoutError, ConnectionError):
            return
        *lines, self.rest = self.rest.split(b"\n")
        for line in lines:
            answer = ANSWER.fullmatch(line)
            if answer is None:  # somebody else wrote to its socket
                assert self.process is not None
                self.process.kill()
                return
            if answer[1] == b"started":
                self.started.append(int(answer[2]))
            else:
                self.statuses[int(answer[2])] = int(answer[3])

    def _ensure(self) -> subprocess.Popen[bytes]:
        if self.process is not None and self._lives():
            return self.process
        if self.process is not None:
            self.connection.close()
            self.deaths += 1
            self.rest, self.started = b"", []
        self.connection, theirs = socket.socketpair()
        command = [*end_with_us(), sys.executable, "-I", "-X", "utf8"]
        if sys.pycache_prefix:
            command += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
        self.process = subprocess.Popen(
            [*command, str(SERVER), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"},
        )
        theirs.close()
        return self.process


def _request(job: Job, env: Mapping[str, str]) -> bytes:
    """A line that fork.py understands."""
    cpu, size = job.limits.cpu_seconds, job.limits.file_mib * MIB
    limits = [
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_FSIZE, size, size),
        (resource.RLIMIT_CORE, 0, 0),
    ]
    bundle, case, seed = job.argv
    words = {"bundle": bundle, "case": case, "seed": int(seed), "folder": str(job.folder)}
    return json.dumps(words | {"env": dict(env), "limits": limits}).encode() + b"\n"
