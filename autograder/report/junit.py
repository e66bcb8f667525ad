"""The result as JUnit XML, for CI."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, indent, tostring

from autograder.report.markup import node
from autograder.report.reading import aligned, lines

# What a testcase holds where a credit is not ok.
OUTCOMES = {
    "FAIL": "failure",
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
    cases = [_case(name, item, credit) for item in part["items"] for credit in item["credits"]]
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
    seconds = item["seconds"] / len(item["credits"])
    name = f"{item['title']}: {credit['says']}"
    case = node("testcase", classname=suite, name=name, time=f"{seconds:.3f}")
    if credit["verdict"] != "ok":
        body = "\n".join(aligned([*lines(credit), ("rerun", item["rerun"])]))
        tag, kind, says = OUTCOMES[credit["verdict"]], credit["verdict"], credit["message"]
        case.append(node(tag, body, type=kind, message=says))
    return case
