"""The result for other programs: JUnit XML, and Gradescope's results.json."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element, indent, tostring

from autograder.report.markup import node, plain
from autograder.report.reading import credits, judged, lines, total

# What a testcase holds where a credit is not ok.
OUTCOMES = {
    "FAIL": "failure",
    "part": "failure",
    "todo": "failure",
    "skip": "skipped",
    "error": "error",
}


def junit(document: dict[str, Any]) -> bytes:
    """A testsuite for each part and a testcase for each credit, as Jenkins' junit-10.xsd has it.

    Points are not part of the format; a credit that is not written yet is a failure of type todo.
    """
    suites = [_suite(document, part) for part in document["parts"]]
    root = node("testsuites", *suites, name=document["assignment"])
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.set("time", f"{document['seconds']:.3f}")
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(document: dict[str, Any], part: dict[str, Any]) -> Element:
    name = f"{document['assignment']}.{part['part']}"
    cases = [_case(name, item, credit) for item in part["items"] for credit in credits(item)]
    outcomes = [child.tag for case in cases for child in case]
    return node(
        "testsuite",
        *cases,
        name=name,
        tests=str(len(cases)),
        failures=str(outcomes.count("failure")),
        errors=str(outcomes.count("error")),
        skipped=str(outcomes.count("skipped")),
        time=f"{sum(item['seconds'] for item in part['items']):.3f}",
    )


def _case(suite: str, item: dict[str, Any], credit: dict[str, Any]) -> Element:
    """The credits of an item share its processes, so each is said to take as long as the others."""
    seconds = item["seconds"] / len(credits(item))
    name = f"{item['title']}: {credit['says']}"
    case = node("testcase", classname=suite, name=name, time=f"{seconds:.3f}")
    if credit["verdict"] != "ok":
        body = "\n".join(_aligned([*lines(credit), ("rerun", item["rerun"])]))
        tag, kind, says = OUTCOMES[credit["verdict"]], credit["verdict"], credit["message"]
        case.append(node(tag, body, type=kind, message=says))
    return case


def _aligned(labelled: list[tuple[str, str]]) -> list[str]:
    return [f"{label:9} {text}" for label, text in labelled if text]


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
        title = f"{document['assignment']} {part.get('title', part['part'])}"
        said.append(plain(f"{title}: {total(part)}."))
        for broken in part.get("broken", []):
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
    for credit in credits(item):
        said.append(f"{credit['verdict']:5} {credit['says']} ({credit['points']})")
        said += ["      " + line for line in _aligned(lines(credit))]
    if possible := Fraction(item["points"]) - judged(item):
        said.append(f"{possible} of {item['points']} points are not judged here, and do not count.")
    if item["verdict"] != "ok":
        said += _aligned([("rerun", item["rerun"])])
    return [plain(line) for line in said]
