"""Writes assignments/*/golden/*.json from reference/oracle: `python -m staff.golden [--check]`.

Where PyTorch computed the float64 values (reference/oracle/torch_golden.py), what is written here
only has to agree with them: the file stays PyTorch's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from autograder import observe, rubric
from autograder.compare import CLOSE, allowed
from autograder.files import write_whole
from autograder.rubric import ROOT

KINDS = {np.dtype(dtype): kind.decode() for kind, dtype in observe.TYPES.items()}


def oracle(assignment: str) -> dict[str, Any]:
    """Probe → case → (origin, function of the seed), of reference/oracle/a0*.py."""
    found: dict[str, Any] = {}
    for path in sorted((ROOT / "reference" / "oracle").glob(f"{assignment.lower()}*.py")):
        found |= importlib.import_module(f"reference.oracle.{path.stem}").CASES
    return found


def files(assignment: str) -> dict[Path, bytes]:
    """Path → content of each golden file of an assignment, one for each probe."""
    loaded = rubric.load(assignment)
    return {
        loaded.folder / "golden" / f"{probe}.json": content(probe, cases, loaded.seed)
        for probe, cases in oracle(assignment).items()
    }


def content(probe: str, cases: dict[str, Any], seed: int, **more: str) -> bytes:
    """One case a line: readable in a diff, and no longer than it must be. `more` goes into the
    head."""
    lines = []
    for name, (origin, compute) in cases.items():
        values = {key: [KINDS[array.dtype], array.tolist()] for key, array in compute(seed).items()}
        case = json.dumps({"origin": origin, "values": values}, separators=(",", ":"))
        lines.append(f"{json.dumps(name)}: {case}")
    head = {
        "probe": probe,
        "seed": seed,
        "command": "python -m staff.golden",
        "numpy": np.__version__,
        **more,
    }
    text = json.dumps(head)[:-1] + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n"
    return text.encode()


def agree(stored: bytes, made: bytes) -> bool:
    """Whether a file is what was made. Float64 values of PyTorch's, and of A1's and A2's formulas,
    only have to be close: numpy's exp and tanh differ in the last bit between processors.
    """
    if stored == made:
        return True
    old, new = json.loads(stored), json.loads(made)
    of_torch = "torch" in old
    if not of_torch and {**old, "cases": 0} != {**new, "cases": 0}:
        return False
    return old["cases"].keys() == new["cases"].keys() and all(
        _same_case(entry, new["cases"][case], of_torch) for case, entry in old["cases"].items()
    )


def _same_case(old: dict[str, Any], new: dict[str, Any], of_torch: bool) -> bool:
    same_but_values = old == new | {"values": old["values"]}
    may_be_close = of_torch or (same_but_values and "float64, numpy" in new["origin"])
    if not may_be_close:
        return old == new
    return old["values"].keys() == new["values"].keys() and all(
        _close(*value, *new["values"][name]) for name, value in old["values"].items()
    )


def _close(kind: str, value: list[Any], other_kind: str, other: list[Any]) -> bool:
    if kind != other_kind or len(value) != len(other) or kind != "f64":
        return (kind, value) == (other_kind, other)
    old, new = np.array(value), np.array(other)
    return bool(np.all(np.abs(old - new) <= allowed(new, CLOSE["f64"])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a file would change")
    check = parser.parse_args().check
    stale = []
    for assignment in rubric.assignments():
        for path, made in files(assignment).items():
            if path.exists() and agree(path.read_bytes(), made):
                continue
            stale.append(path.relative_to(ROOT))
            if not check:
                write_whole(path, made)
    for path in stale:
        print(f"{path}: {'differs from its source' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
