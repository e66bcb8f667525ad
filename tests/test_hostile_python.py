"""Hostile Python: no attack earns a point; each costs only its own rows, and is named."""

from __future__ import annotations

import platform
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from autograder import sandbox, zygote
from autograder.rubric import ROOT
from staff.trees import Tree, lost

START = "        old = self._state\n        self._state ="  # of PCG32.next_u32, which others call
ALWAYS = """
class Yes(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
"""
# Code at the start of next_u32 -> a word of what the report must say of the row.
ATTACKS = {
    "always equal": (f"{ALWAYS}\nreturn Yes(7)", "want it of type int"),
    "numpy subclass": (
        "import numpy as np\nclass A(np.ndarray): pass\nreturn np.zeros(1).view(A)",
        "want it of type int",
    ),
    "patched numpy": ("import numpy as np\nnp.array = lambda *a: 1 / 0", "division by zero"),
    "patched builtins": ("import builtins\nbuiltins.type = lambda x: int\nreturn 1.5", ""),
    "patched observe": ("import sys\nsys.modules['observe']._record = lambda *a: None", ""),
    "os._exit": ("import os\nos._exit(0)", "ended itself with status 0"),
    "sys.exit": ("import sys\nsys.exit(0)", "SystemExit"),
    "atexit": ("import atexit, os\natexit.register(os._exit, 0)\nreturn 1", ""),
    "threads": (
        "import threading, time\nt = threading.Thread(target=time.sleep, args=(97.531,))\n"
        "t.start()\nreturn 1",
        "",
    ),
    "memory": ("kept = []\nwhile True: kept.append(b'x' * (1 << 24))", "memory"),
    "stopped server": ("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)", ""),
    "recursion": ("return self.next_u32()", "RecursionError"),
    "signals": (
        "import signal\nfor n in range(1, 64):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass",
        "ran out of time",
    ),
    "every descriptor": (
        "import os\nfor fd in range(256):\n    try: os.write(fd, b'x 1\\n')\n"
        "    except OSError: pass\nreturn 1",
        "observation descriptor",
    ),
    "kill the server": ("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(60)", "SIGKILL"),
    "the interpreter's end": ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
    "frames": (
        "import gc, sys\nf = sys._getframe()\nwhile f: f.f_locals.clear(); f = f.f_back\nreturn 1",
        "",
    ),
    "pickle": ("import os, pickle\nos.write(3, pickle.dumps([1] * 99))\nreturn 1", "observation"),
}


def tree(name: str, code: str) -> Tree:
    text = (ROOT / "reference" / "llmc" / "rand.py").read_text()
    assert text.count(START) == 1
    lines = "".join(f"        {line}\n" for line in code.strip().split("\n"))
    return Tree(
        f"python-{name.replace(' ', '-')}", {"rand.py": text.replace(START, lines + START).encode()}
    )


@pytest.fixture
def impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that an endless loop reaches soon, and memory before time, however slow memory is;
    what is tested is that they are reached."""
    seconds = 30 if "[memory]" in request.node.name else 1
    short = sandbox.Limits(cpu_seconds=seconds, wall_seconds=60, memory_mib=256)
    monkeypatch.setattr(sandbox, "Limits", lambda **_: short)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_an_attack_costs_only_what_it_touches(name: str, graded) -> None:
    code, said = ATTACKS[name]
    result = graded(tree(name, code), "pcg32_next_u32", "splitmix64", "fnv1a64")
    assert lost(result) == ["pcg32_next_u32"]
    (row,) = [item.first for part in result.parts for item in part.items if item.first]
    assert said in row.message, row


@pytest.mark.parametrize(
    "module", ["probe", "numpy", "json", "observe", "conftest", "sitecustomize"]
)
def test_modules_named_like_ours_change_nothing(module: str, graded, tmp_path: Path) -> None:
    files = {f"{module}.py": b"raise SystemExit('hijacked')\n"}
    assert lost(graded(Tree(f"python-{module}", files), "splitmix64", "fnv1a64")) == []


def test_nothing_is_left_running(graded) -> None:
    sleep = "os.execv('/bin/sleep', ['sleep', '96.4321'])"
    graded(
        tree("orphan", f"import os\nif os.fork() == 0:\n    os.setsid()\n    {sleep}"),
        "pcg32_next_u32",
    )
    listing = subprocess.run(["ps", "-axo", "args="], capture_output=True, text=True, check=True)
    assert "96.4321" not in listing.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="clone(2)")
def test_brothers_of_a_case_end_with_the_grader(graded) -> None:
    code = """
        import ctypes, os, signal
        if ctypes.CDLL(None).syscall(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:  # CLONE_PARENT
            os.setsid()
            os.execv("/bin/sleep", ["sleep", "83.1234"])
    """
    if platform.machine() != "x86_64":
        pytest.skip("the number of clone(2) here is unknown")
    graded(tree("brother", textwrap.dedent(code)), "pcg32_next_u32", "splitmix64")
    listing = subprocess.run(["ps", "-axo", "args="], capture_output=True, text=True, check=True)
    assert "sleep 83.1234" not in listing.stdout


def test_garbage_from_the_server_costs_it_its_life() -> None:
    with zygote.Zygote() as server:
        server.warm()
        first = server.process
        theirs, server.connection = server.connection, socket.socketpair()[0]
        for line in (b"garbage\n", b"started 0 0\n", b"started -1 0\n", b"ended 1 x\n"):
            ours, end = socket.socketpair()
            server.connection = ours
            end.sendall(line)
            server.listen(1)
            assert (server.started, server.statuses) == ([], {})
        assert first is not None
        first.wait()
        assert server.has_died()
        theirs.close()
