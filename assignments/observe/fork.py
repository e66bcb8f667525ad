"""Runs cases of Python probes, each in a process forked from one that has imported numpy already.

    fork.py SOCKET               the server behind autograder/zygote.py
    fork.py BUNDLE CASE SEED     one case, here and now, for people

numpy takes a fifth of a second to import; thirty cases need not pay it thirty times. The server
itself never runs a student's code.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import pathlib  # noqa: F401
import resource
import select
import signal
import socket
import sys
from importlib.machinery import SourcelessFileLoader
from types import ModuleType
from typing import Any, NoReturn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# For all cases; each of these takes longer to import than most cases to run.
import dataclasses  # noqa: F401

import given  # noqa: F401
import numpy.random
import numpy.typing  # noqa: F401
import observe
import regex  # noqa: F401
import samples  # noqa: F401
import tiny  # noqa: F401
import work  # noqa: F401

sys.dont_write_bytecode, sys.pycache_prefix = True, None  # a bundle has its own beside it


def run(bundle: str, case: str, seed: int) -> int:
    """Runs one case of the probe in a bundle, beside the student's llmc/ there."""
    sys.path.append(bundle)
    probe = ModuleType("probe")  # runpy would import for longer than most cases run
    SourcelessFileLoader("probe", os.path.join(bundle, "probe.pyc")).exec_module(probe)
    return observe.run(probe.CASES[case], seed)


def serve(connection: socket.socket) -> None:
    """A line of JSON and three descriptors start a case; answered by its number, and, when it has
    ended, by that and its status. Ends with the connection."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: no case gets at our memory
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    gc.freeze()  # a case that collects garbage need not write to, and so copy, all that is here
    while True:
        ready, _, _ = select.select([connection, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            for pid, status in _ended():
                connection.sendall(f"ended {pid} {status}\n".encode())
        if connection in ready:
            line, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
            if not line:
                return
            pid = os.fork()
            if pid == 0:
                connection.close()
                _become(json.loads(line), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            connection.sendall(f"started {pid} 0\n".encode())


def _ended() -> list[tuple[int, int]]:
    found = []
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
            found.append((ended[0], os.waitstatus_to_exitcode(ended[1])))
    return found


def _become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """In the child: takes on what a process of its own would have, and runs the case."""
    status = observe.RAISED_STATUS
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as other processes are
        for target, descriptor in enumerate(descriptors, 1):
            os.dup2(descriptor, target + 100)
        for target in (1, 2, 3):
            os.dup2(target + 100, target)
        os.closerange(4, 256)
        os.environ.clear()
        os.environ.update(request["env"], OBS_FD="3")
        os.chdir(request["folder"])
        for what, soft, hard in request["limits"]:
            ceiling = resource.getrlimit(what)[1]
            if ceiling != resource.RLIM_INFINITY:
                soft, hard = min(soft, ceiling), min(hard, ceiling)
            resource.setrlimit(what, (soft, hard))
        status = run(request["bundle"], request["case"], request["seed"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(socket.socket(fileno=int(sys.argv[1])))
    else:
        try:
            sys.exit(run(sys.argv[1], sys.argv[2], int(sys.argv[3])))
        except KeyError as unknown:
            sys.exit(f"fork.py: no case is called {unknown}")
