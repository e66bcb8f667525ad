"""The reports for people and programs: HTML, JUnit, Gradescope, from really graded trees."""

from __future__ import annotations

import copy
import itertools
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from autograder import rubric, run
from autograder.report import document as documents
from autograder.report import gradescope, html, junit, svg
from autograder.results import Options
from autograder.rubric import ROOT
from autograder.run import REFERENCE, select

FLOAT = "return (float)(randint32(state) & ((1u << 24) - 1)) * (1.0f / (float)(1u << 24));"
SQUARED = f"float f = {FLOAT.removeprefix('return ')} return f * f;"
HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;<!--]]>"
    "\0\x1b[2J\x85\u202eevil\u2066\u2028\ud800\ufffe\t\r\n"
)
VOID = {"meta", "br"}
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "section", "div", "p"}
TAGS |= {"h1", "h2", "h3", "h4", "dl", "dt", "dd", "ul", "ol", "li", "details", "summary", "a"}
TAGS |= {"table", "caption", "thead", "tbody", "tr", "th", "td", "span", "em", "strong", "code"}
TAGS |= {"mark", "br", "svg", "symbol", "use", "pattern", "path", "rect", "text", "desc"}


@pytest.fixture
def failing(edited, graded) -> dict[str, Any]:
    """A wrong randfloat32: number windows, two histograms, a row that passes."""
    tree = edited("rand.h", FLOAT, SQUARED)
    return documents.document(graded(tree, "c", "randint64", "randfloat32", cached=True))


@pytest.fixture
def broken(edited, graded) -> dict[str, Any]:
    """rand.h does not compile, and so two probes do not."""
    tree = edited("rand.h", "    y ^= y >> 18;\n", "    y ^= y >> 18\n")
    names = ("manual_seed", "next_state", "loader_order", "safe_printf")
    return documents.document(graded(tree, *names, cached=True))


@pytest.fixture
def skipping(graded) -> dict[str, Any]:
    """Right, on a machine without data: one credit of the tokenizer's cannot be judged."""
    return documents.document(graded(REFERENCE, "c", "tokenizer_init", cached=True))


@pytest.fixture
def todo(graded) -> dict[str, Any]:
    """Nothing is written yet."""
    names = ("manual_seed", "next_state", "randint32", "normal_", "clean")
    return documents.document(graded(ROOT, *names, cached=True))


@pytest.fixture
def unfinished() -> dict[str, Any]:
    loaded = rubric.load("A0")
    return documents.unfinished(loaded, Options(student=ROOT), select(loaded, ("c",)))


@pytest.fixture
def faulty(graded, monkeypatch) -> dict[str, Any]:
    """A check of ours that stumbles."""
    original = run.checks_of

    def checks(loaded, probe: str):
        module = original(loaded, probe)
        if probe == "sampler":
            module.random_u32 = lambda seen: 1 / 0
        return module

    monkeypatch.setattr(run, "checks_of", checks)
    return documents.document(graded(REFERENCE, "c", "sample_softmax", cached=True))


def hostile(value: Any, key: str = "") -> Any:
    """The document with every string replaced but numbers and the words that the format fixes."""
    if isinstance(value, dict):
        return {k: hostile(v, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [hostile(v, key) for v in value]
    fixed = ("points", "earned", "score", "possible", "skipped", "total")
    fixed += ("verdict", "part", "mode", "schema")
    if not isinstance(value, str) or key in fixed:
        return value
    return HOSTILE + "x" * 200_000 if key == "got" else HOSTILE


# ---------------------------------------------------------------- HTML


class Reader(HTMLParser):
    """A page's tags, texts and attributes; fails where tags do not match."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []  # the innermost tag, and a text in it
        self.feed(page.decode())
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def said(self, *tags: str) -> list[str]:
        return [text for tag, text in self.texts if tag in tags or (not tags and tag != "style")]


def test_the_page_says_what_a_student_needs(failing) -> None:
    said = Reader(html.page(failing)).said()
    (part,) = failing["parts"]
    wrong = [c for item in part["items"] for c in item["credits"] if c["verdict"] == "FAIL"]
    assert len(wrong) == 3
    for credit in wrong:
        for field in ("says", "input", "message", "hint"):
            assert not credit[field] or credit[field] in said
        assert set(credit["got"].split()) <= {word for text in said for word in text.split()}
    assert "./grade A0 randfloat32" in said
    assert {"Data pipeline and random numbers", "137", "ASan, UBSan"} <= set(said)
    assert (said[said.index("randint64") + 1], "0/3" in said) == ("2/2", True)


def test_numbers_stand_above_those_that_were_expected(failing) -> None:
    credit = failing["parts"][0]["items"][1]["credits"][0]
    got, expected = credit["got"].split(), credit["expected"].split()
    page = html.page(failing).decode()
    (pairs,) = re.findall(r'<ol class="pairs">(.*?)</ol>', page)
    found = re.findall(r"<li><(?:mark|span)>(.*?)</(?:mark|span)><span>(.*?)</span></li>", pairs)
    assert found == list(zip(got, expected, strict=True))
    assert re.findall(r"<mark>(.*?)</mark>", pairs) == [
        g for g, e in zip(got, expected, strict=True) if g != e
    ]


@pytest.mark.parametrize(
    ("got", "expected", "aligned"),
    [
        ("1 -2.5e-07 nan inf ...", "1 2 3 4 ...", True),
        ("0.33362", "0.5 +- 0.006", False),
        ("1 2", "1 2 3", False),
        ("exit status 0", "accepted", False),
        ("", "", False),
    ],
)
def test_only_numbers_are_aligned(got: str, expected: str, aligned: bool) -> None:
    assert (html._pairs(got, expected) is not None) == aligned


def test_a_histogram_shows_both_counts_and_says_them(failing) -> None:
    pictures = [
        credit["picture"]
        for item in failing["parts"][0]["items"]
        for credit in item["credits"]
        if "picture" in credit
    ]
    page = html.page(failing).decode()
    drawings = re.findall(r'<svg class="histogram" role="img".*?</svg>', page)
    assert len(drawings) == len(pictures) == 2
    for picture, drawing in zip(pictures, drawings, strict=True):
        bars = re.findall(r'<rect class="got"', drawing)
        assert len(bars) == len(picture["bins"]) + 1, "the legend has one, too"
        assert f"<title>Histogram: {picture['title']}</title>" in drawing
        for name, count in zip(picture["bins"], picture["got"], strict=True):
            assert f"{name} {count} (expected 6250)" in drawing


@pytest.mark.parametrize("most", [1, 3, 7.5, 19, 100, 24910, 3e9])
def test_a_histogram_has_two_to_six_grid_lines(most: float) -> None:
    bins = [str(i) for i in range(40)]
    picture = {"title": "t", "bins": bins, "got": [most] * 40, "expected": [0.0] * 40}
    drawing = svg.histogram(picture)
    assert 2 < len(drawing.findall("path[@class='grid']")) <= 6
    bars = drawing.findall("rect[@class='got']")[1:]
    assert all(float(bar.get("y", "")) >= svg.TOP for bar in bars)
    labels = [text for text in drawing.findall("text") if text.text in bins[1:]]
    assert 5 < len(labels) < 30, "as many as fit"


def test_what_does_not_compile_stands_once_above_the_table(broken) -> None:
    page = html.page(broken).decode()
    above, table = page.split("<table>")
    assert "llmc/rand.h, llmc/dataloader.h: does not compile" in above
    assert (page.count("start here"), page.count('class="broken"')) == (1, 1)
    details = Reader(page.encode()).all("details")
    assert [("open" in entry) for entry in details] == [True, False, False], "said once"
    assert "as above" in table


def test_rows_that_are_not_written_are_closed_and_say_where_to_start(todo) -> None:
    todo["parts"][0]["start"] = "manual_seed"
    reader = Reader(html.page(todo))
    assert len(reader.all("details")) == len(todo["parts"][0]["items"]) > 4
    assert not any("open" in entry for entry in reader.all("details"))
    assert reader.said("em") == ["start here"] * 2
    assert reader.said("h4")[0] == "manual_seed"


def test_links_lead_to_the_explanations(failing, broken, unfinished) -> None:
    for document in (failing, broken, unfinished):
        reader = Reader(html.page(document))
        ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        targets = [str(link["href"]) for tag in ("a", "use") for link in reader.all(tag)]
        assert targets
        assert {target.removeprefix("#") for target in targets} <= set(ids)


def test_points_that_cannot_be_judged_are_told_apart(skipping, faulty, unfinished) -> None:
    assert "1 more cannot be judged here: run `make data`" in Reader(html.page(skipping)).said()
    assert "10/11" in Reader(html.page(skipping)).said("td")
    assert "ZeroDivisionError" in html.page(faulty).decode()
    nothing = Reader(html.page(unfinished))
    assert nothing.said("strong") == ["0"]
    assert "100 more cannot be judged here: the grader did not get here" in nothing.said()
    assert all(points.startswith("-/") for points in nothing.said("td") if "/" in points)


def test_the_page_is_sound(failing, broken, todo, skipping, unfinished) -> None:
    for document in (failing, broken, todo, skipping, unfinished):
        reader = Reader(html.page(document))
        assert reader.all("html") == [{"lang": "en"}]
        assert len(reader.said("title")[0]) > 5
        levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
        assert len(reader.all("caption")) == len(reader.all("table")) == 1
        assert {th["scope"] for th in reader.all("th")} == {"col", "row"}
        for drawing in reader.all("svg"):
            assert drawing.get("role") == "img" or drawing.get("aria-hidden") == "true"


def test_the_page_needs_nothing_else(failing) -> None:
    page = html.page(failing).decode()
    assert not re.search(r"https?:|//|\bsrc=|@import|@font-face", page.partition("<body>")[2])
    assert set(re.findall(r"url\((.*?)\)", page)) == {"#hatch"}
    (policy,) = [
        meta["content"]
        for meta in Reader(page.encode()).all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert str(policy).startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_only_how_long_it_took_depends_on_time(failing) -> None:
    later = copy.deepcopy(failing) | {"seconds": 9.9}
    for item in later["parts"][0]["items"]:
        item["seconds"] = 3.3
    pages = [html.page(document) for document in (failing, later)]
    took = [f"{document['seconds']:.1f} s".encode() for document in (failing, later)]
    assert pages[0].replace(took[0], took[1]) == pages[1]


def test_what_a_student_wrote_stays_text(failing, broken) -> None:
    for document in (failing, broken):
        page = html.page(hostile(document))
        reader = Reader(page)
        assert {tag for tag, _ in reader.tags} <= TAGS
        names = {name for _, attributes in reader.tags for name in attributes}
        assert not {name for name in names if name.startswith("on")} | (names & {"src", "style"})
        assert all(str(link["href"]).startswith("#") for link in reader.all("a"))
        assert all(c.isprintable() or c == "\n" for c in page.decode())
        assert any("<script>alert(1)</script>" in text for text in reader.said())
        assert any("more characters)" in text for text in reader.said())
        assert len(page) < 500_000


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance of #rgb or #rrggbb."""
    digits = colour.lstrip("#")
    digits = "".join(2 * c for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_text_and_signs_stand_out_light_and_dark() -> None:
    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    roots = re.findall(r":root \{(.*?)\}", html.STYLE.read_text(), re.DOTALL)
    assert len(roots) == 2
    for root in roots:
        colour = dict(re.findall(r"--(\w+): (#\w+);", root))
        for ink, paper in (("ink", "paper"), ("soft", "paper"), ("ink", "marked")):
            assert contrast(colour[ink], colour[paper]) >= 4.5, (ink, paper)
        for sign in ("blue", "orange"):
            assert contrast(colour[sign], colour["paper"]) >= 3


HARNESS = """<!DOCTYPE html><title>?</title>
<iframe src="page.html" style="width:360px;height:800px;border:0"></iframe>
<script>
addEventListener("load", () => {
    const inside = document.querySelector("iframe").contentDocument;
    const wide = [...inside.querySelectorAll("main :not(svg *)")]
        .filter(e => e.getBoundingClientRect().right > 360.5).map(e => e.tagName);
    const { scrollWidth } = inside.documentElement;
    document.title = `${scrollWidth} wide, ${inside.querySelectorAll("tr").length} rows, ` +
        `background ${getComputedStyle(inside.body).backgroundColor}, beyond: ${wide}`;
});
</script>"""
BROWSERS = [shutil.which(n) for n in ("chromium", "chromium-browser", "google-chrome")]
BROWSER = next((path for path in BROWSERS if path), None)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("kind", ["failing", "hostile", "broken"])
def test_a_phone_shows_it_without_scrolling_sideways(
    kind: str, failing, broken, tmp_path: Path
) -> None:
    document = {"failing": failing, "broken": broken, "hostile": hostile(failing)}[kind]
    (tmp_path / "page.html").write_bytes(html.page(document))
    (tmp_path / "harness.html").write_text(HARNESS)
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--hide-scrollbars", "--allow-file-access-from-files", "--enable-logging=stderr"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"file://{tmp_path / 'harness.html'}"]
    seen = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    (title,) = re.findall(r"<title>(.*?)</title>", seen.stdout)
    rows = len(document["parts"][0]["items"]) + 1
    assert title == f"360 wide, {rows} rows, background rgb(255, 255, 255), beyond: "
    assert "CONSOLE" not in seen.stderr, "an error, or something that the policy refused"


# ---------------------------------------------------------------- JUnit

# What Jenkins' junit-10.xsd allows, and requires where there is a !.
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name!", "tests!", "failures!", "errors!", "skipped", "time"},
    "testcase": {"name!", "classname", "time"},
    "failure": {"type", "message"},
    "skipped": {"type", "message"},
    "error": {"type", "message"},
}
CHILDREN = {"testsuites": {"testsuite"}, "testsuite": {"testcase"}}
CHILDREN |= {"testcase": {"failure", "skipped", "error"}}


def read_junit(document: dict[str, Any]) -> ET.Element:
    """Parses it and compares it with the schema."""
    root = ET.fromstring(junit.junit(document))
    assert root.tag == "testsuites"
    for element in root.iter():
        allowed = ATTRIBUTES[element.tag]
        assert set(element.attrib) <= {name.rstrip("!") for name in allowed}
        assert {name.rstrip("!") for name in allowed if name.endswith("!")} <= set(element.attrib)
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
        assert re.fullmatch(r"\d+\.\d+", element.get("time", "0.0"))
    return root


def test_junit_has_a_case_for_each_credit(failing, broken, todo, skipping, faulty) -> None:
    outcomes = {"FAIL": "failure", "todo": "failure", "skip": "skipped", "error": "error"}
    for document in (failing, broken, todo, skipping, faulty):
        (suite,) = read_junit(document)
        credits = [c for item in document["parts"][0]["items"] for c in item["credits"]]
        assert len(suite) == len(credits) == int(suite.get("tests", ""))
        assert len({case.get("name") for case in suite}) == len(suite)
        assert {case.get("classname") for case in suite} == {"A0.c"}
        for case, credit in zip(suite, credits, strict=True):
            tags = [child.tag for child in case]
            assert tags == ([outcomes[credit["verdict"]]] if credit["verdict"] != "ok" else [])
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(count, "")) == len(suite.findall(f"testcase/{tag}"))


def test_junit_says_what_differs_and_what_is_not_written(failing, todo) -> None:
    (suite,) = read_junit(failing)
    failure = suite.findall("testcase/failure")[0]
    credit = failing["parts"][0]["items"][1]["credits"][0]
    assert (failure.get("type"), failure.get("message")) == ("FAIL", credit["message"])
    body = str(failure.text).splitlines()
    assert f"got       {credit['got']}" in body
    assert f"expected  {credit['expected']}" in body
    assert "rerun     ./grade A0 randfloat32" in body
    assert f"differs   {credit['message']}" in body
    for failure in read_junit(todo).iter("failure"):
        assert failure.get("type") == "todo"
        assert re.match("because   (needs|waits for) ", str(failure.text))


def test_junit_survives_hostile_text(failing) -> None:
    (suite,) = read_junit(hostile(failing))
    assert len(suite.findall("testcase/failure")) == 3
    assert "<script>" in str(suite[0].get("name"))


# ---------------------------------------------------------------- Gradescope


def read_gradescope(document: dict[str, Any]) -> dict[str, Any]:
    """Parses it and looks at the types that Gradescope's specification names."""
    results = json.loads(gradescope.gradescope(document))
    assert set(results) == {
        *("execution_time", "output", "output_format", "visibility", "stdout_visibility"),
        *("tests", "extra_data"),
    }, "no score: it would override the sum of the tests"
    assert (results["visibility"], results["stdout_visibility"]) == ("visible", "hidden")
    for test in results["tests"]:
        assert isinstance(test["score"], float) and isinstance(test["max_score"], float)
        assert 0 <= test["score"] <= test["max_score"]
        assert test.get("status", "passed") in ("passed", "failed")
        assert (test["output_format"], test["visibility"]) == ("text", "visible")
        assert all(isinstance(tag, str) for tag in test["tags"])
    return results


def test_gradescope_sums_up_as_the_document_does(failing, broken, todo, skipping, faulty) -> None:
    for document in (failing, broken, todo, skipping, faulty):
        tests = read_gradescope(document)["tests"]
        (part,) = document["parts"]
        assert sum(test["score"] for test in tests) == float(Fraction(part["score"]))
        assert sum(test["max_score"] for test in tests) == float(Fraction(part["possible"]))
        assert [test["name"] for test in tests] == [item["title"] for item in part["items"]]


def test_gradescope_fails_what_lost_points_and_explains_it(failing) -> None:
    passed, failed = read_gradescope(failing)["tests"]
    assert (passed["status"], failed["status"]) == ("passed", "failed")
    assert (failed["score"], failed["max_score"], failed["number"]) == (0.0, 3.0, "1.2")
    credit = failing["parts"][0]["items"][1]["credits"][0]
    assert f"      expected  {credit['expected']}\n" in failed["output"]
    assert failed["output"].endswith("rerun     ./grade A0 randfloat32")


def test_gradescope_leaves_out_what_was_not_judged_and_says_so(skipping, faulty) -> None:
    results = read_gradescope(skipping)
    assert results["output"] == (
        "A0 C: 10 of 10 points; 1 more cannot be judged here: run `make data`."
    )
    (test,) = results["tests"]
    assert (test["score"], test["max_score"], test["status"]) == (10.0, 10.0, "passed")
    assert "1 of 11 points are not judged here, and do not count." in test["output"]
    results = read_gradescope(faulty)
    assert "2 more cannot be judged here: the grader failed: ZeroDivision" in results["output"]
    (test,) = results["tests"]
    assert (test["score"], test["max_score"], test["status"]) == (8.0, 8.0, "passed")


def test_a_grader_that_did_not_get_anywhere_costs_nothing(unfinished) -> None:
    results = read_gradescope(unfinished)
    assert {(test["score"], test["max_score"]) for test in results["tests"]} == {(0.0, 0.0)}
    assert not any("status" in test for test in results["tests"])
    assert "100 more cannot be judged here: the grader did not get here" in results["output"]
    (suite,) = read_junit(unfinished)
    assert int(suite.get("errors", "")) == int(suite.get("tests", "")) > 50
    assert html.page(unfinished)


def test_gradescope_names_what_does_not_compile(broken) -> None:
    said = read_gradescope(broken)["output"]
    assert re.search(r"^llmc/rand\.h does not compile: llmc/rand\.h:\d+$", said, re.MULTILINE)


def test_points_turn_into_floats_only_for_gradescope(failing) -> None:
    (item, _) = failing["parts"][0]["items"]
    item["points"] = item["earned"] = "3/2"
    for credit in item["credits"]:
        credit["points"] = "3/4"
    (test, _) = read_gradescope(failing)["tests"]
    assert (test["score"], test["max_score"]) == (1.5, 1.5)
    assert test["extra_data"] == {"id": "randint64", "earned": "3/2", "points": "3/2"}
    assert Reader(html.page(failing)).said("td")[1:4:2] == ["3/2 of 3/2", "0/3"]


def test_gradescope_survives_hostile_text(failing) -> None:
    def strings(value: Any) -> list[str]:
        if isinstance(value, dict | list):
            inside = value.values() if isinstance(value, dict) else value
            return [text for entry in inside for text in strings(entry)]
        return [value] if isinstance(value, str) else []

    said = strings(read_gradescope(hostile(failing)))
    assert all(c.isprintable() or c == "\n" for text in said for c in text)
    assert any("<script>" in text for text in said)
