"""Writes assignments/*/golden/*.json from reference/oracle: `python -m staff.golden [--check]`."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from autograder import observe, rubric
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
        loaded.folder / "golden" / f"{probe}.json": _file(probe, cases, loaded.seed)
        for probe, cases in oracle(assignment).items()
    }


def _file(probe: str, cases: dict[str, Any], seed: int) -> bytes:
    """One case a line: readable in a diff, and no longer than it must be."""
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
    }
    text = json.dumps(head)[:-1] + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n"
    return text.encode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a file would change")
    check = parser.parse_args().check
    stale = []
    for assignment in rubric.assignments():
        for path, content in files(assignment).items():
            if path.exists() and path.read_bytes() == content:
                continue
            stale.append(path.relative_to(ROOT))
            if not check:
                write_whole(path, content)
    for path in stale:
        print(f"{path}: {'differs from its source' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
