"""Processes: their limits hold, what they write comes back, and nothing of them stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder import sandbox
from autograder.sandbox import Job, Limits, Outcome, run_all
from tests.conftest import wait_for

needs_setsid = pytest.mark.skipif(shutil.which("setsid") is None, reason="no setsid here")


def run(tmp_path: Path, *argv: str, observe: bool = False, **limits: float) -> Outcome:
    env = {"PATH": os.environ["PATH"]}
    return run_all([Job(argv, tmp_path, env, Limits(**limits), observe)], 1)[0]


def shell(tmp_path: Path, script: str, **limits: float) -> Outcome:
    return run(tmp_path, "sh", "-c", script, observe=True, **limits)


def python(tmp_path: Path, script: str, **limits: float) -> Outcome:
    return run(tmp_path, sys.executable, "-c", script, observe=True, **limits)


def processes_with(word: str) -> int:
    listing = subprocess.run(["ps", "-axo", "args="], capture_output=True, text=True, check=True)
    return sum(word in line for line in listing.stdout.splitlines())


def test_status_and_all_three_streams_come_back(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "os.write(1, b'out'); os.write(2, b'err'); os.write(int(os.environ['OBS_FD']), b'seen')\n"
        "sys.exit(5)"
    )
    seen = python(tmp_path, script)
    assert (seen.status, seen.stopped) == (5, "")
    assert (seen.stdout, seen.stderr, seen.observations) == (b"out", b"err", b"seen")


def test_a_signal_is_a_negative_status(tmp_path: Path) -> None:
    assert shell(tmp_path, "kill -SEGV $$").status == -11


def test_outcomes_keep_the_order_of_the_jobs(tmp_path: Path) -> None:
    naps = [0.3, 0.0, 0.1]
    jobs = [Job(("sh", "-c", f"sleep {n}; echo {n}"), tmp_path, dict(os.environ)) for n in naps]
    assert [float(seen.stdout) for seen in run_all(jobs, 3)] == naps


def test_a_busy_loop_ends_at_its_cpu_limit(tmp_path: Path) -> None:
    assert shell(tmp_path, "while :; do :; done", cpu_seconds=1).stopped == "time"


def test_ignoring_the_signal_of_the_cpu_limit_does_not_help(tmp_path: Path) -> None:
    script = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert python(tmp_path, script, cpu_seconds=1).status == -9


def test_sleeping_ends_at_the_wall_limit(tmp_path: Path) -> None:
    started = time.monotonic()
    assert shell(tmp_path, "sleep 100", wall_seconds=0.3).stopped == "time"
    assert time.monotonic() - started < 30


def test_printing_without_end_is_stopped_and_not_kept(tmp_path: Path) -> None:
    seen = shell(tmp_path, "head -c 200000000 /dev/zero")
    assert seen.stopped == "output"
    assert len(seen.stdout) <= 256 * 1024


def test_memory_is_watched(tmp_path: Path) -> None:
    script = "kept = []\nwhile True: kept.append(b'x' * 10**7)"
    assert python(tmp_path, script, memory_mib=200).stopped == "memory"


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    assert shell(tmp_path, "head -c 3000000 /dev/zero > big", file_mib=1).status != 0
    assert (tmp_path / "big").stat().st_size <= 1 << 20


@needs_setsid
def test_fifty_sleepers_in_sessions_of_their_own_are_gone_afterwards(tmp_path: Path) -> None:
    seen = shell(tmp_path, "for i in $(seq 50); do setsid sleep 98.7654 & done; echo started")
    assert seen.stdout == b"started\n"
    assert processes_with("98.7654") == 0


def test_a_fork_bomb_is_stopped_and_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import os, time\n"
        "for _ in range(2000):\n"
        "    if os.fork() == 0: time.sleep(98.7655); os._exit(0)\n"
        "time.sleep(98.7655)"
    )
    assert python(tmp_path, script, processes=100, wall_seconds=30).stopped == "processes"
    assert processes_with("98.7655") == 0


@needs_setsid
def test_a_background_process_that_holds_the_pipes_does_not_hold_us(tmp_path: Path) -> None:
    started = time.monotonic()
    assert shell(tmp_path, "(setsid sleep 98.7656 &); exit 0").status == 0
    assert time.monotonic() - started < 30
    assert processes_with("98.7656") == 0


@needs_setsid
def test_processes_of_the_caller_are_left_alone(tmp_path: Path) -> None:
    mine = subprocess.Popen(["sleep", "98.7657"])
    try:
        shell(tmp_path, "setsid sleep 98.7658 & exit 0")
        assert mine.poll() is None
    finally:
        mine.kill()
        mine.wait()


def test_nothing_of_our_environment_or_input_reaches_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_GRADER", "1")
    seen = shell(tmp_path, "env; cat")
    assert b"SECRET" not in seen.stdout


def test_without_proc_ps_tells_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CHILDREN", tmp_path / "nothing")
    script = "kept = []\nwhile True: kept.append(b'x' * 10**6)"
    assert python(tmp_path, script, memory_mib=300).stopped == "memory"
    sleeper = subprocess.Popen(["sleep", "60"])
    sandbox._ps.cache_clear()
    assert sandbox._children(os.getpid()) == [sleeper.pid], "ps itself is none of them"
    sleeper.kill()
    sleeper.wait()


@pytest.mark.skipif(not sandbox.end_with_us(), reason="no setpriv here")
def test_a_killed_grader_leaves_no_job_behind(tmp_path: Path) -> None:
    word = f"4{os.getpid()}"  # seconds to sleep, unlike anybody else's
    script = (
        "import sys; sys.path.append(sys.argv[1]); from pathlib import Path\n"
        "from autograder import sandbox\n"
        "sandbox.run_all([sandbox.Job(('/bin/sleep', sys.argv[2]), Path(sys.argv[3]))], 1)"
    )
    command = [sys.executable, "-c", script, str(sandbox.__file__).rpartition("/autograder/")[0]]
    grader = subprocess.Popen([*command, word, str(tmp_path)])
    wait_for(lambda: processes_with(f"/bin/sleep {word}") > 0)
    grader.kill()
    grader.wait()
    wait_for(lambda: processes_with(f"/bin/sleep {word}") == 0)


def test_a_lower_limit_in_force_stays(tmp_path: Path) -> None:
    script = (
        "import resource, sys; sys.path.append(sys.argv[1]); from pathlib import Path\n"
        "from autograder import sandbox\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (3, 3))\n"
        "job = sandbox.Job(('/bin/sh', '-c', 'ulimit -t; ulimit -H -t'), Path(sys.argv[2]))\n"
        "print(sandbox.run_all([job], 1)[0].stdout.decode())"
    )
    root = str(sandbox.__file__).rpartition("/autograder/")[0]
    command = [sys.executable, "-c", script, root, str(tmp_path)]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    assert seen.stdout.split() == ["3", "3"]


def test_a_program_that_is_not_there_is_our_fault_and_no_status(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/nonexistent/program: cannot be run"):
        run(tmp_path, "/nonexistent/program")
    (tmp_path / "text").write_text("no program")
    with pytest.raises(FileNotFoundError, match="cannot be run"):
        run(tmp_path, str(tmp_path / "text"))


@pytest.mark.skipif(sys.platform != "linux", reason="setpriv is Linux's")
def test_an_old_setpriv_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "setpriv").write_text("#!/bin/sh\necho unrecognized option >&2\nexit 1\n")
    (tmp_path / "setpriv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sandbox.end_with_us.cache_clear()
    try:
        assert sandbox.end_with_us() == []
        assert shell(tmp_path, "exit 5").status == 5
    finally:
        sandbox.end_with_us.cache_clear()
