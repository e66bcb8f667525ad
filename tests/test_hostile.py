"""Code that crashes, hangs, forks or cheats costs only its own items, and leaves nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from autograder import sandbox
from autograder.rubric import ROOT
from staff.trees import Tree, lost

START = "    const float two_pi = 6.28318530717958647692f;\n    for (int t = 0; t < 8; t++) {"
# normal_fill_16 is called by normal_fill, and through it by normal_ and the whole life of rand.h.
TOUCHED = ["normal_fill_16", "normal_fill", "normal_", "clean"]
ATTACKS = {
    "crash": "*(volatile int *)8 = 1;",
    "overflow": "volatile int i = 40; float small[4]; small[i] = mean; data[0] += small[i];",
    "abort": "abort();",
    "exit": "exit(0);",
    "_exit": "_exit(0);",
    "longjmp": "jmp_buf b; memset(&b, 0, sizeof(b)); longjmp(b, 1);",
    "flood": 'for (int i = 0; i < 200000; i++) printf("%01000d", i);',
    "sleepers": (
        "for (int i = 0; i < 50; i++) if (fork() == 0) { setsid(); alarm(0); "
        'execl("/bin/sleep", "sleep", "97.6543", (char *)NULL); } exit(0);'
    ),
    "delete": 'if (system("rm -rf \\"$PWD\\"")) return; exit(0);',
    "hide": 'if (system("mkdir -p a/b; chmod 0 a")) return; exit(0);',
    "memory": "for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); }",
    "one allocation": "volatile size_t n = (size_t)1 << 50; char *p = malloc(n); p[0] = 1;",
    "recursion": "normal_fill_16(data, mean, std + 1.0f); data[0] += 1.0f;",
    "forged records": (
        'char *fd = getenv("OBS_FD"); if (fd) dprintf(atoi(fd), "standard f32 1 00000000\\n");'
    ),
    "garbage records": 'char *fd = getenv("OBS_FD"); if (fd) dprintf(atoi(fd), "\\x01\\xff\\n");',
    "short records": (
        'char *fd = getenv("OBS_FD"); if (fd) dprintf(atoi(fd), "standard f32 0 \\n"); exit(0);'
    ),
    "deep folders": (
        'for (int i = 0; i < 1500; i++) { if (mkdir("d", 0700) || chdir("d")) break; } exit(0);'
    ),
    "close descriptors": "for (int i = 0; i < 64; i++) close(i);",
    "signals": "raise(SIGKILL);",
    "division": "volatile int zero = 0; data[0] = (float)(1 / zero);",
}
INCLUDES = "\n".join(
    f"#include <{name}.h>"
    for name in ("setjmp", "signal", "stdio", "stdlib", "string", "sys/stat", "sys/types", "unistd")
)


def attack(name: str, code: str) -> Tree:
    text = (ROOT / "reference" / "llmc" / "rand.h").read_text()
    assert text.count(START) == 1
    text = text.replace("#include <math.h>", f"{INCLUDES}\n#include <math.h>")
    text = text.replace(START, f"    {code}\n{START}")
    return Tree(f"attack-{name.replace(' ', '-')}", {"rand.h": text.encode()})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that an endless loop reaches soon; what is tested is that they are reached."""
    short = sandbox.Limits(cpu_seconds=2, wall_seconds=20, memory_mib=1536, file_mib=4096)
    monkeypatch.setattr(sandbox, "Limits", lambda **_: short)


def sleepers() -> int:
    listing = subprocess.run(["ps", "-axo", "args="], capture_output=True, text=True, check=True)
    return listing.stdout.count("97.6543")


@pytest.mark.parametrize("name", [*ATTACKS, "loop", "pause"])
@pytest.mark.slow
def test_an_attack_costs_only_what_it_touches(name: str, graded, impatient) -> None:
    code = ATTACKS.get(name) or {"loop": "for (;;) continue;", "pause": "sleep(1000);"}[name]
    names = ("manual_seed", "randfloat64", *TOUCHED, "random_permutation", "safe_printf")
    result = graded(attack(name, code), *names)
    gone = lost(result)
    assert "normal_fill_16" in gone
    assert set(gone) <= set(TOUCHED), gone
    rows = [row for item in result.parts[0].items for row in item.rows]
    first = next(row for row in rows if row.credit.check == "normal_fill_16_standard")
    assert first.verdict == "FAIL"
    assert first.message, "a verdict names what happened"
    assert name != "sleepers" or sleepers() == 0


def test_a_verdict_names_what_happened(graded) -> None:
    expected = {
        "crash": "SEGV",
        "overflow": "out of bounds",
        "abort": "SIGABRT",
        "exit": "ended itself with status 0",
        "one allocation": "allocation-size-too-big",
        "division": "division by zero",
        "garbage records": "observation descriptor",
    }
    for name, words in expected.items():
        result = graded(attack(name, ATTACKS[name]), "normal_fill_16")
        message = result.parts[0].items[0].rows[0].message
        assert words in message, f"{name}: {message}"


def test_scratch_folders_are_removed_whatever_was_done_to_them(graded, tmp_path: Path) -> None:
    for name in ("delete", "hide", "deep folders"):
        graded(attack(name, ATTACKS[name]), "normal_fill_16", build=tmp_path)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_indices_whose_difference_wraps_around_are_wrong(edited, graded) -> None:
    tree = edited(
        "sampler.h", "if (running > goal) return i;", "if (running > goal) return i ^ (1u << 31);"
    )
    rows = {row.credit.check: row for row in graded(tree, "sample_softmax").parts[0].items[0].rows}
    assert rows["softmax_distribution"].verdict == "FAIL"
