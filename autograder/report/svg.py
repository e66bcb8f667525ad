"""Inline drawings for the HTML report: verdict signs, the bar of points, a histogram.

Colours come from report.css, so that drawings follow light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element

from autograder.report.markup import node

# On a field of 16 by 16: each verdict has a form of its own, so that colour only repeats it.
SIGNS = {
    "ok": "M8 1a7 7 0 1 0 0 14a7 7 0 1 0 0-14zM6.9 11.6L3.6 8.3l1.3-1.3 2 2 4.2-4.2 1.3 1.3z",
    "part": "M8 1a7 7 0 1 0 0 14a7 7 0 1 0 0-14zM8 2.8a5.2 5.2 0 0 1 0 10.4z",
    "FAIL": "M3 1h10l2 2v10l-2 2H3l-2-2V3zM8 6.6L5.4 4 4 5.4 6.6 8 4 10.6 5.4 12 8 9.4"
    "l2.6 2.6 1.4-1.4L9.4 8 12 5.4 10.6 4z",
    "todo": "M8 1a7 7 0 1 0 0 14a7 7 0 1 0 0-14zM8 2.8a5.2 5.2 0 1 1 0 10.4a5.2 5.2 0 1 1 0-10.4z",
    "skip": "M1 7h14v2H1z",
    "error": "M8 1l7.5 14H.5zM7.1 6v4.5h1.8V6zM7.1 11.6v1.8h1.8v-1.8z",
}

# A histogram in units that are pixels on a phone: the field, and the frame inside it.
WIDTH, HEIGHT = 360, 226
LEFT, RIGHT, TOP, BOTTOM = 54, 344, 46, 184
LETTER = 5.6  # width of a letter of the labels


def signs() -> Element:
    """What `sign` refers to, and the hatching of the bar; once in a page, drawn nowhere."""
    symbols = [
        node(
            "symbol", node("path", d=d, fill_rule="evenodd"), id=f"sign-{name}", viewBox="0 0 16 16"
        )
        for name, d in SIGNS.items()
    ]
    line = node("path", d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5", class_="hatch")
    units = "userSpaceOnUse"
    hatch = node("pattern", line, id="hatch", width="6", height="6", patternUnits=units)
    return node("svg", *symbols, hatch, class_="signs", width="0", height="0", aria_hidden="true")


def sign(verdict: str) -> Element:
    """The sign of a verdict; the word stands beside it."""
    use = node("use", href=f"#sign-{verdict}")
    return node("svg", use, class_=f"sign {verdict}", width="16", height="16", aria_hidden="true")


def bar(part: dict[str, Any]) -> Element:
    """Earned, missing, and what cannot be judged here, as shares of a line."""
    whole = Fraction(part["total"]) or Fraction(1)
    earned, left = Fraction(part["score"]) / whole, Fraction(part["skipped"]) / whole
    rectangles = [
        _share("missing", Fraction(0), Fraction(1)),
        _share("earned", Fraction(0), earned),
        _share("skipped", 1 - left, left),
    ]
    return node("svg", *rectangles, class_="bar", aria_hidden="true")


def _share(kind: str, start: Fraction, width: Fraction) -> Element:
    x, w = (f"{float(100 * share):.3f}%" for share in (start, width))
    return node("rect", class_=kind, x=x, width=w, height="100%")


# ---------------------------------------------------------------- histogram


def histogram(picture: dict[str, Any]) -> Element:
    """Bars are what was got, the stepped line is what was expected."""
    title, bins = picture["title"], picture["bins"]
    got, expected = picture["got"], picture["expected"]
    step = _step(max([*got, *expected, 1]))
    top = step * math.ceil(max([*got, *expected, 1]) / step)
    numbers = ", ".join(
        f"{name} {g:.6g} (expected {e:.6g})" for name, g, e in zip(bins, got, expected, strict=True)
    )
    return node(
        "svg",
        node("title", f"Histogram: {title}"),
        node("desc", f"Counts by bin: {numbers}"),
        node("text", title, class_="title", x=str(LEFT), y="12"),
        *_legend(),
        *_grid(top, step),
        *_bars([count / top for count in got]),
        _steps([count / top for count in expected]),
        *_labels(bins),
        class_="histogram",
        role="img",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
    )


def _legend() -> list[Element]:
    return [
        node("rect", class_="got", x="54", y="22", width="12", height="9"),
        node("text", "got", x="71", y="30"),
        node("path", class_="expected", d="M102 27H120"),
        node("text", "expected", x="125", y="30"),
    ]


def _step(most: float) -> float:
    """The distance of grid lines: 1, 2 or 5 times a power of ten, for two to five of them."""
    power = 10.0 ** math.floor(math.log10(most / 2))
    return next(m * power for m in (1, 2, 5, 10) if m * power * 5 >= most)


def _y(share: float) -> float:
    return BOTTOM - share * (BOTTOM - TOP)


def _grid(top: float, step: float) -> list[Element]:
    turned = f"translate(10 {(TOP + BOTTOM) // 2}) rotate(-90)"
    drawn = [node("text", "count", transform=turned, text_anchor="middle")]
    for k in range(round(top / step) + 1):
        y = _y(k * step / top)
        drawn.append(node("path", class_="grid", d=f"M{LEFT} {y:.1f}H{RIGHT}"))
        x, base = str(LEFT - 6), f"{y + 3.5:.1f}"
        drawn.append(node("text", f"{k * step:.6g}", x=x, y=base, text_anchor="end"))
    return drawn


def _bars(shares: Sequence[float]) -> list[Element]:
    wide = (RIGHT - LEFT) / len(shares)
    return [
        node(
            "rect",
            class_="got",
            x=f"{LEFT + (i + 0.12) * wide:.1f}",
            y=f"{_y(share):.1f}",
            width=f"{0.76 * wide:.1f}",
            height=f"{BOTTOM - _y(share):.1f}",
        )
        for i, share in enumerate(shares)
    ]


def _steps(shares: Sequence[float]) -> Element:
    wide = (RIGHT - LEFT) / len(shares)
    steps = [f"V{_y(share):.1f}H{LEFT + (i + 1) * wide:.1f}" for i, share in enumerate(shares)]
    return node("path", class_="expected", d=f"M{LEFT} {BOTTOM}{''.join(steps)}V{BOTTOM}")


def _labels(bins: Sequence[str]) -> list[Element]:
    """As many of the bins' names as fit, at equal distances."""
    wide = (RIGHT - LEFT) / len(bins)
    every = math.ceil((max(map(len, bins)) + 1) * LETTER / wide)
    middle = f"{(LEFT + RIGHT) / 2:.0f}"
    drawn = [node("text", "bin", x=middle, y=str(BOTTOM + 35), text_anchor="middle")]
    for i in range(0, len(bins), every):
        x = f"{LEFT + (i + 0.5) * wide:.1f}"
        drawn.append(node("text", bins[i], x=x, y=str(BOTTOM + 16), text_anchor="middle"))
    return drawn
