"""The result as one plain document, llmc-grade/1, from which the other reports are written.

Points are strings: integers, decimals or fractions, never floats. At the top: assignment, title,
mode (public or fresh, and what stood in by --ref-deps), seed, names (what was asked for; empty:
all), seconds, tool, parts. A part has score, possible (what this machine can verify), skipped,
total, start (the item to look at first), broken (files that do not compile) and items. An item has
the verdict and the message, input, got, expected and hint of the credit to look at; below `credits`
all of them have theirs, and `picture` where a distribution is off.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder import __version__
from autograder.build import Built
from autograder.results import ItemResult, Options, PartResult, Result, Row
from autograder.rubric import Item, Part, Rubric, shown


def json_text(content: dict[str, Any]) -> bytes:
    """A document as it stands in a file."""
    return json.dumps(content, indent=1).encode() + b"\n"


def document(result: Result) -> dict[str, Any]:
    """The result as llmc-grade/1. Points are strings: integers or fractions, never floats."""
    tool = {
        "version": __version__,
        "compiler": result.tools.version,
        "sanitizers": [s for s in result.tools.sanitizers if s != "leak"],
        "sandbox": "none",
    }
    return _document(result.rubric, result.options, result.parts, result.seconds, tool)


def unfinished(
    rubric: Rubric, options: Options, selected: list[tuple[Part, list[Item]]]
) -> dict[str, Any]:
    """What stands in the file until there are results: every item an error."""
    tool = {"version": __version__, "compiler": "", "sanitizers": [], "sandbox": "none"}
    parts = tuple(
        PartResult(part, tuple(ItemResult(item, _unreached(item), 0.0, "") for item in items))
        for part, items in selected
    )
    return _document(rubric, options, parts, 0.0, tool)


def _unreached(item: Item) -> tuple[Row, ...]:
    return tuple(Row(credit, "error", "the grader did not get here") for credit in item.credits)


def _with(options: Options) -> str:
    """What stood in for a student's own, for none of their points are theirs alone."""
    names = [Path(name).stem for name in options.stand_ins.modules]
    names += ["layers.h"] if options.stand_ins.library else []
    return f", with the reference's {', '.join(names)}" if names else ""


def _document(
    rubric: Rubric,
    options: Options,
    parts: Sequence[PartResult],
    seconds: float,
    tool: dict[str, Any],
) -> dict[str, Any]:
    return {
        "schema": "llmc-grade/1",
        "assignment": rubric.assignment,
        "title": rubric.title,
        "mode": ("public" if options.fresh is None else "fresh") + _with(options),
        "seed": rubric.seed if options.fresh is None else options.fresh,
        "names": list(options.names),
        "seconds": round(seconds, 3),
        "tool": tool,
        "parts": [_part(part) for part in parts],
    }


def _part(part: PartResult) -> dict[str, Any]:
    return {
        "part": part.part.id,
        "title": part.part.title,
        "score": shown(part.earned),
        "possible": shown(part.possible),
        "skipped": shown(part.total - part.possible),
        "total": str(part.total),
        "start": part.start.item.id if part.start and not part.broken else "",
        "broken": [_broken(built) for built in part.broken],
        "items": [_item(item) for item in part.items],
    }


def _broken(built: Built) -> dict[str, str]:
    assert built.error is not None
    return {"file": built.file, "where": built.error.where, "error": built.error.what}


def _item(item: ItemResult) -> dict[str, Any]:
    row = item.first or Row(item.item.credits[0], "ok")
    return {
        "id": item.item.id,
        "title": item.item.title,
        "points": shown(item.item.points),
        "earned": shown(item.earned),
        "verdict": item.verdict,
        "seconds": round(item.seconds, 3),
        **_what(row),
        "rerun": item.rerun,
        "credits": [_credit(row) for row in item.rows],
    }


def _credit(row: Row) -> dict[str, Any]:
    return {
        "check": row.credit.check,
        "says": row.credit.says,
        "kind": row.credit.kind,
        "points": shown(row.credit.points),
        "verdict": row.verdict,
        **_what(row),
    }


def _what(row: Row) -> dict[str, Any]:
    """What a row shows; `picture` is there only where there is one."""
    fields = ("message", "input", "got", "expected", "hint")
    picture = {"picture": asdict(row.picture)} if row.picture else {}
    return {name: getattr(row, name) for name in fields} | picture
