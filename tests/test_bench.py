"""The benchmark: what a line says, and that the page has each figure that is wanted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from autograder import build
from staff import bench
from staff.figures import Figure


def test_a_line_has_median_and_range_and_says_whether_the_bound_holds() -> None:
    fine = Figure("warm", (0.5, 0.9, 0.7), "s", 0.8)
    assert fine.line() == "| warm | s | 0.70 | 0.50 .. 0.90 | at most 0.80 | yes |"
    slow = Figure("warm", (0.5, 0.9, 0.85), "s", 0.8)
    assert slow.line().endswith("| at most 0.80 | **no** |")
    ahead = Figure("a loop takes", (150.0,), "times", least=100)
    assert ahead.line().endswith("| at least 100.00 | yes |")
    assert Figure("a loop takes", (99.0,), "times", least=100).line().endswith("| **no** |")
    assert Figure("baseline", (1.0,), "s").line().endswith("|  |  |")


def test_the_page_keeps_every_figure_with_machine_and_date() -> None:
    text = bench.PAGE.read_text()
    halves = ("both halves, cold", "both halves, warm", "uniforms(10^7)", "tokenizer: encode 1 MB")
    for name in ("baseline", "cold", "warm", "rand.h touched", "peak memory", *halves):
        assert f"\n| {name}" in text, name
    assert bench.TABLE.search(text) is not None


@pytest.mark.slow
def test_the_baseline_builds_the_probes_and_runs_every_case(
    tmp_path: Path, tools: build.Toolchain
) -> None:
    bench.makefile(bench.ROOT, tools, tmp_path)
    subprocess.run(["make", "-j2"], cwd=tmp_path, check=True, capture_output=True)
    logs = {path.parent.name: path.read_text() for path in tmp_path.glob("*/log")}
    assert len(logs) > 40
    assert all(text.rstrip().endswith("end i64[1] 1") for text in logs.values())
