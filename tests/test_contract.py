"""The contract: stubs earn nothing, right code everything, wrong code loses exactly its rows."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from autograder import build, rubric
from autograder.report import document
from autograder.results import Options
from autograder.rubric import ROOT
from autograder.run import checks_of, grade, real_data
from staff import golden, mutants
from staff.trees import BUILD, Tree, grade_tree, lost

VARIANTS = ROOT / "reference" / "variants"
FRESH = (20_261, 77_003)  # seeds of the fresh runs; any would do


def variants(assignment: str) -> dict[str, Tree]:
    folders = sorted(path for path in (VARIANTS / assignment).iterdir() if path.is_dir())
    return {
        f"{assignment}-{folder.name}": Tree(
            f"variant-{folder.name}", {path.name: path.read_bytes() for path in folder.iterdir()}
        )
        for folder in folders
    }


ASSIGNMENTS = rubric.assignments()
RUBRICS = {name: rubric.load(name) for name in ASSIGNMENTS}
MUTANTS = [(name, mutant) for name in ASSIGNMENTS for mutant in mutants.load(name)]
RIGHT = {
    (name, tree.name, fresh): Tree(tree.name, tree.files, fresh)
    for name in ASSIGNMENTS
    for tree in [Tree("reference", {}), *variants(name).values()]
    for fresh in (None, *FRESH)
}


def explain(result) -> str:
    rows = [row for part in result.parts for item in part.items for row in item.rows]
    return "\n".join(f"{r.credit.check}: {r.message} {r.got}" for r in rows if r.verdict != "ok")


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@pytest.mark.parametrize("data", [None, real_data()], ids=["without-data", "with-data"])
def test_stubs_earn_nothing_and_every_row_says_todo(assignment: str, data: Path | None) -> None:
    result = grade(rubric.load(assignment), Options(student=ROOT, build=BUILD, data=data))
    for part in result.parts:
        assert {item.verdict for item in part.items} == {"todo"}, explain(result)
        assert (part.earned, part.possible) == (0, 100)


@pytest.mark.parametrize("key", RIGHT, ids=lambda key: "-".join(map(str, key)))
@pytest.mark.slow
def test_right_code_earns_all_that_this_machine_can_verify(key: tuple) -> None:
    result = grade_tree(key[0], RIGHT[key])
    for part in result.parts:
        credits = [credit for item in part.part.items for credit in item.credits]
        skipped = 0 if real_data() else sum(credit.points for credit in credits if credit.data)
        assert not lost(result), explain(result)
        assert part.earned == part.possible == 100 - skipped
    assert result.tools.sanitizers == ("address", "undefined", "leak")


@pytest.mark.parametrize(("assignment", "mutant"), MUTANTS, ids=lambda x: getattr(x, "id", x))
@pytest.mark.slow
def test_a_mutant_loses_exactly_what_it_names(assignment: str, mutant: mutants.Mutant) -> None:
    result = grade_tree(assignment, mutant.tree())
    assert lost(result) == list(mutant.loses), explain(result)


@pytest.mark.parametrize(("assignment", "mutant"), MUTANTS, ids=lambda x: getattr(x, "id", x))
def test_the_first_item_a_mutant_loses_is_the_mutated_functions(
    assignment: str, mutant: mutants.Mutant
) -> None:
    text = (ROOT / "reference" / "llmc" / mutant.file).read_text()
    place = text.index(mutant.find) + len(mutant.find)
    above = re.findall(r"TODO \(A\d\): ([\w.]+)", text[:place])
    items = [item for _, item in RUBRICS[assignment].items()]
    own = {item.id for item in items if above and above[-1] in item.functions}
    assert mutant.loses[0] in own | {"clean"}


def test_there_are_enough_mutants_and_variants() -> None:
    of_python = [mutant for mutant in mutants.load("A0") if mutant.file.endswith(".py")]
    assert len(mutants.load("A0")) - len(of_python) >= 60
    assert len(of_python) >= 52
    assert len(mutants.load("A1")) >= 60
    assert len(mutants.load("A2")) >= 80
    for name in ("A1", "A2"):
        of_c = [mutant for mutant in mutants.load(name) if mutant.file.endswith(".h")]
        assert len(of_c) >= 120
    python = [name for name in variants("A0") if name.startswith("A0-py-")]
    assert min(len(python), len(variants("A0")) - len(python)) >= 12
    for name in ("A1", "A2"):
        python = [key for key in variants(name) if key.startswith(f"{name}-py-")]
        assert min(len(python), len(variants(name)) - len(python)) >= 6


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_rubric_checks_cases_and_golden_values_correspond(assignment: str, tools) -> None:
    loaded = rubric.load(assignment)
    credits = [credit for _, item in loaded.items() for credit in item.credits]
    oracle = golden.oracle(assignment)
    for probe in {credit.probe for credit in credits}:
        module = checks_of(loaded, probe)
        public = {
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
        }
        assert public == {credit.check for credit in credits if credit.probe == probe}
        cases = cases_of(loaded.probe(probe))
        assert cases == {credit.case for credit in credits if credit.probe == probe}
        assert set(oracle[probe]) <= cases


def cases_of(probe: Path) -> set[str]:
    if probe.suffix == ".py":
        return set(runpy.run_path(str(probe))["CASES"])  # imports nothing of llmc yet
    return set(re.findall(r'\{"(\w+)", case_\w+\},', probe.read_text()))


def without_times(content: dict) -> dict:
    text = re.sub(r'"seconds": [0-9.]+', '"seconds": 0', json.dumps(content))
    return json.loads(text)


@pytest.mark.parametrize("student", ["stubs", "reference", "leaky"])
@pytest.mark.slow
def test_two_runs_give_the_same_json_apart_from_times(student: str, graded, edited) -> None:
    trees = {
        "stubs": ROOT,
        "reference": Tree("reference-twice", {}),
        "leaky": edited("tokenizer.h", "    free(tokenizer->token_table);\n", ""),
    }
    first, second = (without_times(document.document(graded(trees[student]))) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_reference_is_pedantic_c11_in_two_translation_units(
    compiler: str, tmp_path: Path
) -> None:
    if build.shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    headers = sorted(path.name for path in (ROOT / "reference" / "llmc").glob("*.h"))
    for name in ("one", "two"):
        main = "int main(void) { return 0; }\n" if name == "one" else ""
        includes = "".join(f'#include "llmc/{header}"\n' for header in headers)
        (tmp_path / f"{name}.c").write_text(includes + main + f"int {name};\n")
    for root in (ROOT / "reference", ROOT):
        strict = "-std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror"
        command = [compiler, *strict.split(), "-Wno-unused-parameter", f"-I{root}"]
        sources = [str(tmp_path / "one.c"), str(tmp_path / "two.c")]
        made = subprocess.run(
            [*command, *sources, "-o", str(tmp_path / "both"), "-lm"],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
