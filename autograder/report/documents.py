"""The result as documents: JSON (llmc-grade/1), JUnit, Gradescope."""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from autograder import __version__
from autograder.build import Built
from autograder.files import write_whole
from autograder.rubric import Item, Part, Rubric
from autograder.run import ItemResult, Options, Result, Row


def write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1).encode() + b"\n"
    if path.exists() and not path.is_file():
        path.write_bytes(text)  # a pipe or a device stays what it is
    else:
        write_whole(path.resolve(), text)


def unfinished(
    rubric: Rubric, options: Options, selected: list[tuple[Part, list[Item]]]
) -> dict[str, Any]:
    """What stands in the file until there are results: every item an error."""
    tool = {"version": __version__, "compiler": "", "sanitizers": [], "sandbox": "none"}
    parts = [
        {
            "part": part.id,
            "score": "0",
            "possible": "0",
            "skipped": str(sum((item.points for item in items), Fraction(0))),
            "total": str(sum((item.points for item in items), Fraction(0))),
            "items": [
                {
                    "id": item.id,
                    "title": item.title,
                    "points": str(item.points),
                    "earned": "0",
                    "verdict": "error",
                    "seconds": 0.0,
                    "message": "the grader did not get here",
                }
                | dict.fromkeys(("input", "got", "expected", "hint", "rerun"), "")
                for item in items
            ],
        }
        for part, items in selected
    ]
    seed = rubric.seed if options.fresh is None else options.fresh
    return _document(rubric, options, seed, 0.0, tool, parts)


def document(result: Result) -> dict[str, Any]:
    """The result as llmc-grade/1. Points are strings: integers or fractions, never floats."""
    tool = {
        "version": __version__,
        "compiler": result.tools.version,
        "sanitizers": [s for s in result.tools.sanitizers if s != "leak"],
        "sandbox": "none",
    }
    parts = [
        {
            "part": part.part.id,
            "score": str(part.earned),
            "possible": str(part.possible),
            "skipped": str(part.total - part.possible),
            "total": str(part.total),
            "broken": [_broken(built) for built in part.broken],
            "items": [_item(item) for item in part.items],
        }
        for part in result.parts
    ]
    return _document(result.rubric, result.options, result.seed, result.seconds, tool, parts)


def _document(
    rubric: Rubric,
    options: Options,
    seed: int,
    seconds: float,
    tool: dict[str, Any],
    parts: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "schema": "llmc-grade/1",
        "assignment": rubric.assignment,
        "mode": "public" if options.fresh is None else "fresh",
        "seed": seed,
        "seconds": round(seconds, 3),
        "tool": tool,
        "parts": parts,
    }


def _broken(built: Built) -> dict[str, str]:
    assert built.error is not None
    return {"file": f"llmc/{built.probe}.h", "where": built.error.where, "error": built.error.what}


def _item(item: ItemResult) -> dict[str, Any]:
    row = item.first or Row(item.item.credits[0], "ok")
    picture = {"picture": asdict(row.picture)} if row.picture else {}
    return {
        "id": item.item.id,
        "title": item.item.title,
        "points": str(item.item.points),
        "earned": str(item.earned),
        "verdict": item.verdict,
        "seconds": round(item.seconds, 3),
        "message": row.message,
        "input": row.input,
        "got": row.got,
        "expected": row.expected,
        "hint": row.hint,
        "rerun": item.rerun,
    } | picture
