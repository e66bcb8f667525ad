"""The result as Gradescope's results.json."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from autograder.report.markup import plain
from autograder.report.reading import aligned, judged, lines, total
from autograder.rubric import shown


def gradescope(document: dict[str, Any]) -> bytes:
    """results.json: a test for each item. What could not be judged here is left out of max_score,
    and the text above the tests says so; extra_data has the points as exact fractions.
    """
    tests = [
        _test(f"{n}.{m}", part, item)
        for n, part in enumerate(document["parts"], 1)
        for m, item in enumerate(part["items"], 1)
    ]
    exact = ("part", "score", "possible", "skipped", "total")
    results = {
        "execution_time": document["seconds"],
        "output": "\n".join(_summary(document)),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {
            "schema": document["schema"],
            "mode": document["mode"],
            "seed": document["seed"],
            "parts": [{name: part[name] for name in exact} for part in document["parts"]],
        },
    }
    return json.dumps(results, indent=1).encode() + b"\n"


def _summary(document: dict[str, Any]) -> list[str]:
    said = []
    for part in document["parts"]:
        title = f"{document['assignment']} {part['title']}"
        said.append(plain(f"{title}: {total(part)}."))
        for broken in part["broken"]:
            said.append(plain(f"{broken['file']} does not compile: {broken['where']}"))
    return said


def _test(number: str, part: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """Where nothing of an item was judged it is 0 of 0 points, neither passed nor failed."""
    earned, possible = Fraction(item["earned"]), judged(item)
    status = {"status": "passed" if earned == possible else "failed"} if possible else {}
    return {
        "number": number,
        "name": plain(item["title"]),
        "score": float(earned),
        "max_score": float(possible),
        **status,
        "output": "\n".join(_output(item)),
        "output_format": "text",
        "visibility": "visible",
        "tags": [part["part"], item["verdict"]],
        "extra_data": {"id": plain(item["id"]), "earned": item["earned"], "points": item["points"]},
    }


def _output(item: dict[str, Any]) -> list[str]:
    """Each credit with its points, and below it what there is to see."""
    said = []
    for credit in item["credits"]:
        said.append(f"{credit['verdict']:5} {credit['says']} ({credit['points']})")
        said += ["      " + line for line in aligned(lines(credit))]
    if possible := Fraction(item["points"]) - judged(item):
        said.append(
            f"{shown(possible)} of {item['points']} points are not judged here, and do not count."
        )
    if item["verdict"] != "ok":
        said += aligned([("rerun", item["rerun"])])
    return [plain(line) for line in said]
