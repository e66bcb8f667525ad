"""The rubric file is validated: each mistake in it is named, and is never a student's."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from autograder import rubric

GOOD = """
title = "T"
seed = 1
[[part]]
id = "c"
title = "C"
[[part.item]]
id = "a"
why = "w"
points = 40
probe = "p"
credit = [{ check = "x", unit = 40, says = "s" }]
[[part.item]]
id = "b"
why = "w"
points = "60"
probe = "p"
case = "shared"
credit = [
    { check = "y", golden = "119/2", says = "s", needs = ["a"] },
    { check = "z", property = "1/2", says = "s", case = "own" },
]
"""


def load(folder: Path, text: str) -> rubric.Rubric:
    (folder / "A9").mkdir()
    (folder / "A9" / "rubric.toml").write_text(text)
    return rubric.load("A9", folder)


def test_points_may_be_fractions_and_cases_are_inherited(tmp_path: Path) -> None:
    a, b = load(tmp_path, GOOD).parts[0].items
    assert (str(a.points), str(b.points), str(b.credits[0].points)) == ("40", "60", "119/2")
    assert [credit.case for credit in (*a.credits, *b.credits)] == ["x", "shared", "own"]


@pytest.mark.parametrize(
    ("find", "replace", "words"),
    [
        ("points = 40\n", "points = 39\n", "a: 39 points, but its credits sum to 40"),
        ("unit = 40, says", "unit = 39, says", "a: 40 points, but its credits sum to 39"),
        ('"60"\n', '"59"\n', "b: 59 points, but its credits sum to 60"),
        ('id = "b"', 'id = "a"', "two items are called a"),
        ('needs = ["a"]', 'needs = ["b"]', "b: needs b, which is no item above it"),
        ('needs = ["a"]', 'needs = "a"', "y: `needs` has the wrong type"),
        ('needs = ["a"]', 'wants = ["a"]', "y: unknown `wants`"),
        ('title = "T"\n', "", "rubric: `title` is missing"),
        ("seed = 1\n", "seed = 1\ncolour = 2\n", "rubric: unknown `colour`"),
        ('probe = "p"\ncredit', "credit", "x: neither it nor its item names a probe"),
        ('property = "1/2"', 'property = "-1/2"', "z: -1/2 points"),
        ("unit = 40", "points = 40", "x: its points stand under one of unit, golden"),
        ("unit = 40", "unit = 40, golden = 40", "x: its points stand under one of unit, golden"),
        ('id = "c"', 'id = "rust"', "part rust: there is c and python"),
        ('id = "a"\nwhy = "w"\n', 'id = "a"\n', "a: `why` is missing"),
        ("[[part]]", "[[part", "rubric.toml: "),
    ],
)
def test_a_mistake_is_named(find: str, replace: str, words: str, tmp_path: Path) -> None:
    assert GOOD.count(find) == 1
    with pytest.raises(rubric.RubricError) as fault:
        load(tmp_path, GOOD.replace(find, replace))
    assert words in str(fault.value)


def test_a_part_that_is_not_100_is_refused(tmp_path: Path) -> None:
    less = GOOD.replace("points = 40\n", "points = 30\n").replace("unit = 40,", "unit = 30,")
    with pytest.raises(rubric.RubricError, match="part c: the points sum to 90, not 100"):
        load(tmp_path, less)


@pytest.mark.parametrize(
    ("points", "said"),
    [("3", "3"), ("1/2", "0.5"), ("65/2", "32.5"), ("5/4", "1.25"), ("1/3", "1/3"), ("1/8", "1/8")],
)
def test_points_are_shown_as_people_write_them(points: str, said: str) -> None:
    assert rubric.shown(Fraction(points)) == said
    assert Fraction(said) == Fraction(points)


def test_a_credit_may_call_c(tmp_path: Path) -> None:
    native = GOOD.replace("unit = 40,", "unit = 40, native = true,")
    a, b = load(tmp_path, native).parts[0].items
    assert [credit.native for credit in (*a.credits, *b.credits)] == [True, False, False]
