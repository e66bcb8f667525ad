"""What those who read a document (llmc-grade/1) ask it: credits, reasons, and lines to show."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

NOT_JUDGED = ("skip", "error")  # verdicts that cost nothing and earn nothing
LONGEST = 4000  # characters of one field that a report shows
_URGENCY = {"error": 0, "FAIL": 1, "todo": 1, "skip": 2}
_SEEN = ("input", "got", "expected")


def judged(item: dict[str, Any]) -> Fraction:
    """The points of an item that were decided one way or the other."""
    counted = (c for c in item["credits"] if c["verdict"] not in NOT_JUDGED)
    return sum((Fraction(credit["points"]) for credit in counted), Fraction(0))


def first(item: dict[str, Any]) -> dict[str, Any] | None:
    """The credit to look at: the first that is not ok, lost points before skipped ones."""
    missing = [credit for credit in item["credits"] if credit["verdict"] != "ok"]
    return min(missing, key=lambda credit: _URGENCY[credit["verdict"]], default=None)


def lines(credit: dict[str, Any]) -> list[tuple[str, str]]:
    """Label and text of each field that says something, in the order in which to read them."""
    seen = [(name, credit[name]) for name in _SEEN]
    label = "differs" if any(text for _, text in seen) else "because"
    said = [*seen, (label, credit["message"]), ("hint", credit["hint"])]
    return [(label, cut(text)) for label, text in said if text]


def cut(text: str) -> str:
    """A text that fits into a report, or its beginning."""
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]} ... ({left} more characters)"


def total(part: dict[str, Any]) -> str:
    """`41 of 98 points`, and what could not be decided here and why."""
    whole = f"{part['score']} of {part['possible']} points"
    if part["skipped"] == "0":
        return whole
    missing = (c for item in part["items"] for c in item["credits"] if c["verdict"] in NOT_JUDGED)
    reasons = "; ".join(sorted({cut(credit["message"]) for credit in missing}))
    return f"{whole}; {part['skipped']} more cannot be judged here: {reasons}"


def aligned(labelled: list[tuple[str, str]]) -> list[str]:
    """Labels and texts as lines of plain text; empty texts are left out."""
    return [f"{label:9} {text}" for label, text in labelled if text]
