"""Draws a histogram beside the wanted one, in plain text."""

from __future__ import annotations

from autograder.compare import Histogram

BAR = 18  # columns of the longest bar
EIGHTHS = " ▏▎▍▌▋▊▉"


def text(picture: Histogram, blocks: bool) -> list[str]:
    """A head and a line for each bin, within 69 columns. `blocks` uses Unicode's block elements."""
    most = max(*picture.got, *picture.expected, 1)
    label = max(map(len, picture.bins))

    def cell(count: float) -> str:
        return f"{count:7.0f} {bar(count / most, blocks):{BAR}}"

    head = f"{'':{label}} {'got':>7} {'':{BAR}} {'expected':>8}"
    rows = zip(picture.bins, picture.got, picture.expected, strict=True)
    lines = [f"{name:>{label}} {cell(got)} {cell(want)}".rstrip() for name, got, want in rows]
    return [picture.title, head, *lines]


def bar(share: float, blocks: bool) -> str:
    """A bar of up to BAR columns; what is not nothing is seen."""
    eighths = max(round(share * BAR * 8), int(share > 0))
    if not blocks:
        return "#" * max(round(eighths / 8), int(share > 0))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
