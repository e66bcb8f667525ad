"""Mechanical mutants: which edits there are, which are left out, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder import rubric
from autograder.run import REFERENCE
from staff import auto
from staff.auto import Mutant, Outcome


def c_file(*body: str, before: str = "") -> bytes:
    lines = [f"static int f(int a, int b) {{{before}", "// BEGIN SOLUTION", *body]
    return "\n".join([*lines, "// END SOLUTION", "}", ""]).encode()


def after(kind: str, *body: str) -> list[str]:
    """The changed lines of all mutants of one kind."""
    return [m.after for m in auto.mutants(c_file(*body), "f.h") if m.kind == kind]


def test_operators_become_others_of_their_form() -> None:
    assert after("operator", "a = a + b * 3;") == ["a = a - b * 3;", "a = a + b / 3;"]
    assert after("operator", "a = a << b;", "a |= b;") == ["a = a >> b;", "a &= b;"]
    assert after("operator", "if (a && !b) a++;") == [
        "if (a || !b) a++;",
        "if (a && b) a++;",
        "if (a && !b) a--;",
    ]
    assert after("operator", "*p = &a;", "a = b;") == []  # these have no neighbour


def test_constants_become_0_and_0_becomes_1() -> None:
    assert after("constant", "a = 7 + N;") == ["a = 0 + N;"]
    assert after("constant", "a = 7 + LIMIT;") == ["a = 0 + LIMIT;", "a = 7 + 0;"]
    assert after("constant", "a = 0x0u + b;", "b = 0.0f;") == ["a = 1 + b;", "b = 1;"]
    assert after("constant", r"s[1] = '\0';") == [r"s[0] = '\0';", "s[1] = 1;"]


def test_off_by_one_is_a_constant_or_a_bound() -> None:
    assert after("off by one", "a = 7;") == ["a = (7 + 1);", "a = (7 - 1);"]
    assert after("off by one", "a = LIMIT;") == ["a = (LIMIT + 1);", "a = (LIMIT - 1);"]
    assert after("off by one", "while (a < b) a++;") == ["while (a <= b) a++;"]
    assert after("off by one", "a = b >= a;", "a = b == a;") == ["a = b > a;"]
    assert after("off by one", "int c[8];") == ["int c[(8 - 1)];"]


def test_a_statement_is_dropped_with_all_that_is_in_it() -> None:
    assert after("dropped statement", "if (a) {", "b++;", "}", "return b;") == [
        ";",
        ";",
        ";",
    ]
    assert after("dropped statement", "for (;;) break;") == [";", "for (;;) ;"]
    assert after("dropped statement", "int c = a;") == []


def test_neighbouring_arguments_are_swapped() -> None:
    assert after("swapped arguments", "g(a, b, a + b);") == ["g(b, a, a + b);", "g(a, a + b, b);"]
    assert after("swapped arguments", "g(a, a);", "h(a);", "k();") == []


def test_conditions_and_their_sides_are_negated() -> None:
    assert after("negated condition", "if (a > b && b) a = b;") == [
        "if (!(a > b && b)) a = b;",
        "if (!(a > b) && b) a = b;",
        "if (a > b && !(b)) a = b;",
    ]
    assert after("negated condition", "for (; a < b;) a = a ? b : a;") == [
        "for (; !(a < b);) a = a ? b : a;",
        "for (; a < b;) a = !(a) ? b : a;",
    ]


def test_only_solution_regions_are_mutated() -> None:
    source = c_file("return a;", before=" a = 1 + 2;") + b"static int g(int a) { return a + 1; }\n"
    assert [m.after for m in auto.mutants(source, "f.h")] == [";"]


def test_messages_are_left_as_they_are() -> None:
    said = 'fprintf(stderr, "%d", a + 1);'
    assert auto.mutants(c_file(said), "f.h") == []
    assert after("operator", f"if (a + b) {said}") == ["if (a - b) " + said]
    assert after("dropped statement", 'die("less", "%d", a + 1);') == [";"]
    assert len(auto.mutants(c_file('die("less", "%d of %d", a + 1, b);'), "f.h")) == 1
    assert after("swapped arguments", 'printf("%d", a);') == ['printf(a, "%d");']


def test_a_mutant_names_its_place_and_edits_that_give_the_same_text_are_one() -> None:
    source = c_file("a =", "    b + 1;")
    made = auto.mutants(source, "f.h")
    assert {(m.file, m.line, m.function) for m in made} == {("f.h", 3, "f"), ("f.h", 4, "f")}
    texts = [m.apply(source) for m in made]
    assert len(set(texts)) == len(texts)
    dropped = made[0]
    assert (dropped.before, dropped.after) == ("a = b + 1;", ";")
    assert dropped.apply(source) == c_file(";")


LOADED = rubric.load("A0")
HALF = next(part for part in LOADED.parts if part.id == "c")
SAMPLER = (REFERENCE / "llmc" / "sampler.h").read_bytes()


def test_equal_object_code_is_recognised() -> None:
    """Also of functions that nobody calls, and that another would be inlined into."""
    ours = auto.object_code("sampler.h", SAMPLER)
    edits = {
        (b"for (int i = 0; i < n; i++) sum", b"for (int i = 0; n > i; ++i) sum"): "same",
        (b">> 27", b">> 28"): "other",
        (b"running > goal", b"running >= goal"): "other",
        (b"= 0.0;", b"= ;"): "none",
    }
    for (find, replace), wanted in edits.items():
        code = auto.object_code("sampler.h", SAMPLER.replace(find, replace))
        found = "none" if code is None else "same" if code == ours else "other"
        assert found == wanted, find


def test_mutants_are_sorted_out_by_their_code() -> None:
    def edit(find: bytes, replace: bytes) -> Mutant:
        start = SAMPLER.index(find)
        place = (start, start + len(find), replace)
        return Mutant("sampler.h", 1, "random_u32", "constant", place, "", replace.decode())

    made = [
        edit(b">> 27", b">> 0x1b"),
        edit(b">> 27", b">> 28"),
        edit(b">> 27", b">> 0x1c"),
        edit(b">> 27", b">> )"),
    ]
    found = auto.sort_out({"sampler.h": SAMPLER}, made)
    assert {name: [m.after for m in part] for name, part in found.items()} == {
        "same": [">> 0x1b"],
        "distinct": [">> 28"],
        "twice": [">> 0x1c"],
        "broken": [">> )"],
    }


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [  # Newcombe 1998, table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_wilsons(hits: int, of: int, low: float, high: float) -> None:
    assert auto.wilson(hits, of) == pytest.approx((low, high), abs=5e-5)


def mutant(after: str, function: str = "randint64") -> Mutant:
    return Mutant("rand.h", 104, function, "operator", (0, 0, b""), "before", after)


def test_entries_that_no_longer_hold_are_stale() -> None:
    made = [mutant("alive"), mutant("killed"), mutant("not graded")]
    outcomes = [Outcome(made[0], (), (), "A0"), outcome("killed", "randint64")]
    known = {m.key: "a reason" for m in (*made, mutant("gone"), mutant("alive", "randint32"))}
    assert auto.stale(known, made, outcomes) == {
        mutant("killed").key: "it is killed",
        mutant("gone").key: "no such mutant",
        mutant("alive", "randint32").key: "no such mutant",
    }


ENTRY = '[[survivor]]\nfunction = "f"\nbefore = "a  <\\n b"\nafter = "a <= b"\nreason = "{}"\n'


def test_reasons_are_read_by_function_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "A0.survivors.toml"
    assert auto.reasons(path) == {}
    path.write_text(ENTRY.format("equal"))
    assert auto.reasons(path) == {("f", "a < b", "a <= b"): "equal"}
    for wrong in (ENTRY.format(" "), ENTRY.format("one") + ENTRY.format("two")):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=r"A0\.survivors\.toml"):
            auto.reasons(path)


def test_every_mutant_of_the_reference_has_an_item_of_its_own() -> None:
    own = {
        name: auto.own_items(HALF, Mutant(file, 1, name, "", (0, 0, b""), "", ""))
        for file, name in (
            ("rand.h", "randint64"),
            ("dataloader.h", "dataloader_resume"),
            ("dataloader.h", "evalloader_free"),
            ("sampler.h", "a_helper"),
        )
    }
    assert own == {
        "randint64": ("randint64",),
        "dataloader_resume": ("loader_order",),
        "evalloader_free": ("clean",),
        "a_helper": ("sample_softmax", "clean"),
    }


def outcome(after: str, *lost: str) -> Outcome:
    return Outcome(mutant(after), lost, ("randint64",), "A0")


@pytest.mark.parametrize(
    ("outcomes", "known", "fine"),
    [
        ([outcome("a", "randint64")], {}, True),
        ([outcome("a", "randint64", "clean")] * 19 + [outcome("b")], {"b": "equal"}, True),
        ([outcome("a", "randint64")] * 19 + [outcome("b")], {}, False),  # no reason
        ([outcome("a", "randint64")] * 18 + [outcome("b")], {"b": "equal"}, False),  # below 95 %
        ([outcome("a", "randint64")] * 18 + [outcome("b", "randint32")], {}, False),  # not on top
        ([outcome("a", "clean")], {}, False),  # nor here: it is no row of this function's
        ([outcome("a", "randint64")], {"gone": "equal"}, False),
    ],
)
def test_enough_must_be_killed_on_top_and_the_rest_explained(
    outcomes: list[Outcome], known: dict[str, str], fine: bool, capsys: pytest.CaptureFixture
) -> None:
    made = [each.mutant for each in outcomes]
    entries = {mutant(name).key: reason for name, reason in known.items()}
    assert auto.report(made, {"distinct": made}, outcomes, entries) is fine
    said = capsys.readouterr().out
    killed = sum(each.killed for each in outcomes)
    assert f"killed: {killed} of {len(made)}, " in said
    assert ("NO REASON" in said) == any(
        not o.killed and o.mutant.after not in known for o in outcomes
    )


def test_what_a_later_stage_killed_is_said(capsys: pytest.CaptureFixture) -> None:
    later = Outcome(mutant("b"), ("add_grad",), ("add_grad",), "A2")
    both = [outcome("a", "randint64"), later]
    assert auto.report([o.mutant for o in both], {"distinct": []}, both, {}) is True
    assert "by rows of A0: 1\n  by rows of A2: 1" in capsys.readouterr().out


def test_a_method_without_a_row_has_its_class_s() -> None:
    part = next(part for part in rubric.load("A2").parts if part.id == "python")
    kept = Mutant("autograd.py", 1, "Add.forward", "", (0, 0, b""), "", "")
    assert auto.own_items(part, kept) == ("add_grad",)


@pytest.mark.slow
def test_what_a_forward_pass_keeps_is_seen_by_the_next_stage() -> None:
    source = (REFERENCE / "llmc" / "autograd.py").read_bytes()
    made = auto.mutants(source, "autograd.py", "A1")
    kept = [m for m in made if m.function == "Mul.forward" and m.kind == "dropped statement"]
    outcomes = auto.grade_by_stages("A1", "python", {"autograd.py": source}, kept)
    assert [(o.stage, o.on_top) for o in outcomes] == [("A2", True), ("A1", True)]


@pytest.mark.slow
def test_the_mutants_of_one_function_are_killed_in_its_own_row() -> None:
    source = (REFERENCE / "llmc" / "rand.h").read_bytes()
    made = [m for m in auto.mutants(source, "rand.h") if m.function == "randint64"]
    distinct = auto.sort_out({"rand.h": source}, made)["distinct"]
    outcomes = auto.grade(LOADED, HALF, {"rand.h": source}, distinct)
    assert len(outcomes) >= 5
    assert all(outcome.on_top for outcome in outcomes)


def test_a_stage_mutates_its_own_regions_alone() -> None:
    source = (REFERENCE / "llmc" / "layers.h").read_bytes()
    of = {
        stage: {m.function for m in auto.mutants(source, "layers.h", stage)}
        for stage in ("A1", "A2")
    }
    assert {name.rpartition("_")[2] for name in of["A1"]} == {"forward"}
    assert {name.rpartition("_")[2] for name in of["A2"]} == {"backward"}
