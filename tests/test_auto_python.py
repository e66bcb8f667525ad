"""Mechanical mutants of Python: which edits there are, and which are left out."""

from __future__ import annotations

import pytest

from autograder import rubric
from autograder.run import REFERENCE
from staff import auto, auto_python
from staff.auto import Mutant


def py_file(*body: str, before: str = "pass") -> bytes:
    inside = ["# BEGIN SOLUTION", *body, "# END SOLUTION"]
    lines = ["LIMIT = 2**7 - 1", 'NAMES = {"a": 1}', "def f(a, b):", f"    {before}"]
    return "\n".join([*lines, *(f"    {line}" for line in inside), ""]).encode()


def after(kind: str, *body: str) -> list[str]:
    """The changed lines of all mutants of one kind."""
    return [m.after for m in auto.mutants(py_file(*body), "f.py") if m.kind == kind]


def test_operators_become_others_of_their_form() -> None:
    assert after("operator", "a = (a) + (b * 3)") == ["a = (a) - (b * 3)", "a = (a) + (b // 3)"]
    assert after("operator", "a = a << b", "a |= -b") == ["a = a >> b", "a &= -b", "a |= +b"]
    assert after("operator", "return a and not b and b") == [
        "return a or not b and b",
        "return a and not b or b",
        "return a and b and b",
    ]
    assert after("operator", "a = b", "a = a == b") == []  # these have no neighbour


def test_constants_become_0_and_0_becomes_1() -> None:
    assert after("constant", "a = 7 + LIMIT") == ["a = 0 + LIMIT", "a = 7 + 0"]
    assert after("constant", "a = 0.0", "b = 0x0") == ["a = 1", "b = 1"]
    assert after("constant", "a[b] = True") == ["a[b] = False"]
    assert after("constant", "a = NAMES, 'text', None, b") == []


def test_off_by_one_is_a_constant_or_a_bound() -> None:
    assert after("off by one", "a = 7") == ["a = (7 + 1)", "a = (7 - 1)"]
    assert after("off by one", "a = LIMIT") == ["a = (LIMIT + 1)", "a = (LIMIT - 1)"]
    assert after("off by one", "a = b < a <= b", "a = b == a") == [
        "a = b <= a <= b",
        "a = b < a < b",
    ]
    assert after("off by one", "for a in range(b): pass") == [
        "for a in range((b + 1)): pass",
        "for a in range((b - 1)): pass",
    ]
    assert after("off by one", "return a[b:]", "return b[a]") == [
        "return a[(b + 1):]",
        "return a[(b - 1):]",
    ]


def test_a_statement_is_dropped_unless_a_name_would_be_missing() -> None:
    assert after("dropped statement", "if a:", "    b += 1", "return b") == ["pass"] * 3
    assert after("dropped statement", "while a: break") == ["pass", "while a: pass"]
    assert after("dropped statement", "c = a", "import os", "def g(): 'text'") == []
    assert after("dropped statement", "a = g(a)", "a[0] = b", "a.c = b", "g(a)") == ["pass"] * 4


def test_neighbouring_arguments_are_swapped() -> None:
    assert after("swapped arguments", "g(a, (b), a + b)") == [
        "g(b, (a), a + b)",
        "g(a, (a + b), b)",
    ]
    assert after("swapped arguments", "g(a, a)", "h(a)", "k(a, c=b)", "max(a, b)") == []


def test_conditions_and_their_sides_are_negated() -> None:
    assert after("negated condition", "if (a > b) and b: a = b") == [
        "if (not ((a > b) and b)): a = b",
        "if ((not (a > b))) and b: a = b",
        "if (a > b) and (not (b)): a = b",
    ]
    assert after("negated condition", "c = [a if b else 0 for b in a if b]") == [
        "c = [a if (not (b)) else 0 for b in a if b]",
        "c = [a if b else 0 for b in a if (not (b))]",
    ]


def test_only_solution_regions_are_mutated() -> None:
    source = py_file("return a", before="a = 1 + 2") + b"def g(a): return a + 1\n"
    assert [m.after for m in auto.mutants(source, "f.py")] == ["pass"]


def test_messages_are_left_as_they_are() -> None:
    error = 'raise ValueError(f"{a + 1}", g(a, 2), -b)'
    assert [m.after for m in auto.mutants(py_file(error), "f.py")] == ["pass"]
    assert after("operator", f"if a + b: {error}") == [f"if a - b: {error}"]
    assert after("constant", 'return f"{a + 1}"') == []


def test_a_mutant_names_its_place_and_positions_count_bytes() -> None:
    source = py_file("a = '→', (", "    b + 1)") + b"class C:\n" + b"    def m(self):\n"
    source += b"        # BEGIN SOLUTION\n        def g(): return 2\n        # END SOLUTION\n"
    made = auto.mutants(source, "f.py")
    places = {("f.py", 7, "f"), ("f.py", 12, "C.m")}
    assert {(m.file, m.line, m.function) for m in made} == places
    assert made[0].apply(source) == source.replace(b"b + 1", b"b - 1")
    texts = [m.apply(source) for m in made]
    assert len(set(texts)) == len(texts)


SAMPLER = (REFERENCE / "llmc" / "sampler.py").read_bytes()


def test_equal_byte_code_is_recognised() -> None:
    ours = auto_python.byte_code(SAMPLER)
    edits = {
        (b"2**24", b"16777216"): "same",
        (b"(value >> 8) /", b"((value >> 8)) /\\\n"): "same",
        (b">> 27", b">> 28"): "other",
        (b"if not 0 <= coin", b"if (not (not 0 <= coin"): "none",
    }
    for (find, replace), wanted in edits.items():
        assert SAMPLER.count(find) == 1
        code = auto_python.byte_code(SAMPLER.replace(find, replace))
        found = "none" if code is None else "same" if code == ours else "other"
        assert found == wanted, find


def test_mutants_are_sorted_out_by_their_code() -> None:
    def edit(replace: bytes) -> Mutant:
        start = SAMPLER.index(b">> 27")
        place = (start, start + len(b">> 27"), replace)
        return Mutant("sampler.py", 1, "random_u32", "constant", place, "", replace.decode())

    made = [edit(text) for text in (b">> 0x1b", b">> 28", b">> (27 + 1)", b">> )")]
    found = auto.sort_out({"sampler.py": SAMPLER}, made)
    assert {name: [m.after for m in part] for name, part in found.items()} == {
        "same": [">> 0x1b"],
        "distinct": [">> 28"],
        "twice": [">> (27 + 1)"],
        "broken": [">> )"],
    }


def test_every_function_of_the_reference_is_named_by_an_item() -> None:
    loaded = rubric.load("A0")
    part = next(part for part in loaded.parts if part.id == "python")
    named = {name for item in part.items for name in item.functions}
    for file in part.files:
        name = file.removeprefix("llmc/")
        made = auto.mutants((REFERENCE / file).read_bytes(), name)
        assert made
        assert {mutant.function for mutant in made} <= named


@pytest.mark.slow
def test_the_mutants_of_one_function_are_killed_in_its_own_row() -> None:
    loaded = rubric.load("A0")
    part = next(part for part in loaded.parts if part.id == "python")
    made = [m for m in auto.mutants(SAMPLER, "sampler.py") if m.function == "random_f32"]
    distinct = auto.sort_out({"sampler.py": SAMPLER}, made)["distinct"]
    outcomes = auto.grade(loaded, part, {"sampler.py": SAMPLER}, distinct)
    assert len(outcomes) >= 5
    assert all(outcome.on_top for outcome in outcomes)
