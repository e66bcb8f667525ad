"""The result as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, tostring

from autograder.report import svg
from autograder.report.markup import node
from autograder.report.reading import NOT_JUDGED, cut, first, judged, lines, total

STYLE = Path(__file__).with_name("report.css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?(e[-+]?\d+)?|inf|nan)|\.\.\.")
SANITIZERS = {"address": "ASan", "undefined": "UBSan"}


def page(document: dict[str, Any]) -> bytes:
    """The whole page, UTF-8."""
    name = document["assignment"]
    parts = document["parts"]
    scores = ", ".join(f"{part['title']} {_of(part['score'], part['possible'])}" for part in parts)
    head = node(
        "head",
        node("meta", charset="utf-8"),
        node("meta", http_equiv="Content-Security-Policy", content=POLICY),
        node("meta", name="viewport", content="width=device-width, initial-scale=1"),
        node("meta", name="color-scheme", content="light dark"),
        node("title", f"{name}: {scores}"),
        node("style", STYLE.read_text(encoding="utf-8")),
    )
    body = node("body", svg.signs(), node("main", _header(document), *map(_part, parts)))
    root = node("html", head, body, lang="en")
    return b"<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html").encode() + b"\n"


def _header(document: dict[str, Any]) -> Element:
    tool = document["tool"]
    fresh = document["mode"] == "fresh"
    facts = {
        "inputs": "fresh; expected: what the reference reports on them" if fresh else "public",
        "seed": str(document["seed"]),
        "compiler": tool["compiler"],
        "sanitizers": ", ".join(SANITIZERS.get(name, name) for name in tool["sanitizers"]),
        "sandbox": tool["sandbox"],
        "grader": tool["version"],
        "took": f"{document['seconds']:.1f} s",
    }
    shown = [node("div", node("dt", k), node("dd", cut(v))) for k, v in facts.items() if v]
    return node(
        "header",
        node("p", f"Assignment {document['assignment']}", class_="over"),
        node("h1", document["title"]),
        node("dl", *shown, class_="facts"),
    )


def _part(part: dict[str, Any]) -> Element:
    """The total, what does not compile, the table, and what there is to say on its rows."""
    explained = _explanations(part)
    heading = [node("h3", "Row by row")] if explained else []
    return node(
        "section",
        node("h2", part["title"]),
        node("p", node("strong", part["score"]), *_total(part), class_="total"),
        svg.bar(part),
        *_broken(part),
        _table(part),
        *heading,
        *explained,
    )


def _total(part: dict[str, Any]) -> list[str | Element]:
    whole, _, left = total(part).removeprefix(part["score"]).partition("; ")
    return [whole, node("span", left, class_="left")] if left else [whole]


def _broken(part: dict[str, Any]) -> list[Element]:
    """One box for each error, naming all files that it keeps from compiling."""
    files: dict[tuple[str, str], list[str]] = {}
    for broken in part["broken"]:
        files.setdefault((broken["where"], broken["error"]), []).append(broken["file"])
    return [
        node(
            "div",
            node(
                "p",
                svg.sign("FAIL"),
                node("strong", f"{', '.join(names)}: does not compile"),
                node("em", "start here"),
            ),
            _list([("at", cut(where)), ("says", cut(error))]),
            class_="broken",
        )
        for (where, error), names in files.items()
    ]


# ---------------------------------------------------------------- the table


def _table(part: dict[str, Any]) -> Element:
    head = [node("th", name, scope="col") for name in ("Verdict", "Item", "Points")]
    return node(
        "table",
        node("caption", "Items, in the order in which to write them"),
        node("thead", node("tr", *head)),
        node("tbody", *[_row(part, item) for item in part["items"]]),
    )


def _row(part: dict[str, Any], item: dict[str, Any]) -> Element:
    name: Element | str = item["title"]
    if item["verdict"] != "ok":
        name = node("a", item["title"], href=f"#{_anchor(part, item)}")
    note = _note(item)
    notes = [node("span", note, class_="note")] if note else []
    return node(
        "tr",
        node("td", svg.sign(item["verdict"]), item["verdict"], class_=f"verdict {item['verdict']}"),
        node("th", name, *_start(part, item), *notes, scope="row"),
        node("td", _points(item), class_="points"),
    )


def _start(part: dict[str, Any], item: dict[str, Any]) -> list[Element]:
    return [node("em", "start here")] if part["start"] == item["id"] else []


def _anchor(part: dict[str, Any], item: dict[str, Any]) -> str:
    return f"{part['part']}-{item['id']}"


def _points(item: dict[str, Any]) -> str:
    return _of(item["earned"] if judged(item) else "-", item["points"])


def _of(earned: str, points: str) -> str:
    return f"{earned} of {points}" if "/" in earned + points else f"{earned}/{points}"


def _note(item: dict[str, Any]) -> str:
    """The credit to look at, or what the item waits for."""
    credit = first(item)
    if credit is None or credit["message"] == f"needs {item['id']}":
        return ""
    return str(credit["says"] if credit["input"] else cut(credit["message"]))


# ---------------------------------------------------------------- explanations


def _explanations(part: dict[str, Any]) -> list[Element]:
    """One for each row that is not ok; open, and so printed, where something went wrong that no
    row above it says as well."""
    said: list[list[tuple[str, str]]] = []
    shown = []
    for item in part["items"]:
        wrong = [lines(c) for c in item["credits"] if c["verdict"] in ("FAIL", "error")]
        if item["verdict"] != "ok":
            shown.append(_explanation(part, item, any(what not in said for what in wrong)))
        said += wrong
    return shown


def _explanation(part: dict[str, Any], item: dict[str, Any], is_open: bool) -> Element:
    """The credits of an item; what two in a row would say, the first one says."""
    shown = []
    before: list[tuple[str, str]] = []
    for credit in item["credits"]:
        said = lines(credit)
        again = len(said) > 1 and said == before
        what = [("differs", "as above")] if again else said
        shown.append(node("li", *_credit(credit, what), class_=credit["verdict"]))
        before = said
    rerun = [node("p", "rerun ", node("code", item["rerun"]), class_="rerun")]
    summary = node(
        "summary",
        svg.sign(item["verdict"]),
        node("h4", item["title"]),
        *_start(part, item),
        node("span", _points(item), class_="points"),
    )
    return node(
        "details",
        summary,
        node("ul", *shown, class_="credits"),
        *(rerun if item["rerun"] else []),
        id=_anchor(part, item),
        **({"open": ""} if is_open else {}),
    )


def _credit(credit: dict[str, Any], said: list[tuple[str, str]]) -> list[Element]:
    """Verdict, claim and points; below them what there is to see."""
    earned = credit["points"] if credit["verdict"] == "ok" else "0"
    earned = "-" if credit["verdict"] in NOT_JUDGED else earned
    head = node(
        "p",
        svg.sign(credit["verdict"]),
        node("span", credit["verdict"], class_="word"),
        node("span", credit["says"], class_="says"),
        node("span", _of(earned, credit["points"]), class_="points"),
    )
    picture = [svg.histogram(credit["picture"])] if credit.get("picture") else []
    return [head, *([_list(said)] if said else []), *picture]


def _list(said: list[tuple[str, str]]) -> Element:
    """Labels and texts; numbers that were got stand above those that were expected."""
    texts = dict(said)
    pairs = _pairs(texts.get("got", ""), texts.get("expected", ""))
    entries = []
    for label, text in said:
        if pairs is not None and label == "expected":
            continue
        if pairs is not None and label == "got":
            entries += [node("dt", "got", node("br"), "expected"), node("dd", pairs)]
            continue
        entries += [node("dt", label), node("dd", text, class_=label)]
    return node("dl", *entries, class_="what")


def _pairs(got: str, expected: str) -> Element | None:
    """Each number above the wanted one, where both are equally many numbers; else None."""
    ours, theirs = got.split(), expected.split()
    if not ours or len(ours) != len(theirs):
        return None
    if not all(NUMBER.fullmatch(word) for word in ours + theirs):
        return None
    return node("ol", *map(_pair, ours, theirs), class_="pairs")


def _pair(got: str, expected: str) -> Element:
    marked = node("span", got) if got == expected else node("mark", got)
    return node("li", marked, node("span", expected))
