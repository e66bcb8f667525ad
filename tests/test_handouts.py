"""What the handouts promise: their generated blocks, programs, numbers, tables and commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from autograder import rubric
from autograder.rubric import ROOT
from staff import handouts, mutants, prose, release, strip, syntax
from staff.handouts import Wrong
from staff.trees import Tree

HANDOUTS = sorted(handouts.FOLDER.glob("*.md"))
A0 = handouts.FOLDER / "A0-data-and-randomness.md"
PARTS = {
    (stage, half): handouts.FOLDER / f"{stage}-{half}.md"
    for stage in ("A0", "A1", "A2")
    for half in ("c", "python")
} | {("A0", "c"): A0}
C = {stage: path for (stage, part), path in PARTS.items() if part == "c"}
PYTHON = {stage: path for (stage, part), path in PARTS.items() if part == "python"}
FENCE = re.compile(r"^( *)```(.*)\n(?s:(.*?))^\1```$", re.MULTILINE)
TODO = re.compile(r"(?://|#) TODO \((A\d)\): ([\w.]+)")
API = re.compile(r"<!-- generated: api (\S+)(?: A\d)? -->")
HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
NO_PITFALL = {"init_identity_permutation", "exp", "key", "gradients", "steps"}
NO_PITFALL |= {"exam_logits", "exam_steps"}
NO_PITFALL |= {"learns_xor", "learns_moons", "same_seed", "bigram_floor"}
NO_PITFALL |= {f"exam_{group}" for group in ("embeddings", "attention", "mlp", "norms")}
# All that the diagrams are written in: a small part of mermaid that every renderer knows.
SHAPE = r"""(?:\(\["[^"]+"\]\)|\[\("[^"]+"\)\]|\["[^"]+"\]|\{"[^"]+"\})"""
NODE = rf"(?!end\b|call\b|click\b|style\b|class\b|default\b)\w+{SHAPE}?"
ARROW = r"""(?:-->|-- "[^"]+" -->|-\. "[^"]+" \.->)"""
EDGE = re.compile(rf"    (?P<start>{NODE})(?: {ARROW} (?P<end>{NODE}))?")
GROUP = re.compile(r'    subgraph \w+ \["[^"]+"\]|        \w+\["[^"]+"\]|    end')


@dataclass(frozen=True)
class Fence:
    """A fenced block: where it stands, its tag, its lines."""

    where: str  # file:line
    tag: str
    body: str


def fences(path: Path) -> list[Fence]:
    text = path.read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [
        Fence(f"{path.name}:{text.count(chr(10), 0, m.start()) + 1}", *m.groups()[1:])
        for m in found
    ]


@pytest.fixture(scope="module")
def known() -> prose.Known:
    return prose.known_to_students()


def programs() -> list[tuple[Fence, Fence]]:
    """Each `c run` and `python run` block with the block behind it."""
    pairs = [pair for path in HANDOUTS for pair in pairwise([*fences(path), Fence("", "", "")])]
    return [(program, output) for program, output in pairs if program.tag in RUN]


def run_c(source: str, folder: Path) -> str:
    """Compiles against the reference, without a warning, and returns what the program prints."""
    (folder / "build" / "try").mkdir(parents=True)
    (folder / "build" / "try" / "try.c").write_text(source)
    flags = ["-std=gnu11", "-O1", "-Wall", f"-I{ROOT / 'reference'}"]
    command = ["cc", *flags, "-o", "build/try/try", "build/try/try.c", "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    program = folder / "build" / "try" / "try"
    ran = subprocess.run([program], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def run_python(source: str, folder: Path) -> str:
    """Runs beside the reference, without a warning, and returns what the program prints."""
    command = [sys.executable, "-W", "error", "-c", source]
    env = os.environ | {"PYTHONPATH": str(ROOT / "reference")}
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


RUN = {"c run": run_c, "python run": run_python}


def equations(path: Path) -> list[str]:
    return [line for f in fences(path) if f.tag == "example" for line in f.body.splitlines()]


# Whether an expression gives what an example says. Arrays are shown as lists, and of a float at
# least four digits behind the point.
AGREES = """
def agrees(got, said):
    got = got.tolist() if hasattr(got, "tolist") else got
    if type(got) is not type(said):
        return False
    if isinstance(said, (list, tuple)):
        return len(got) == len(said) and all(map(agrees, got, said))
    if isinstance(said, float):
        return round(got, max(4, len(repr(said).partition(".")[2]))) == said
    return got == said
"""


def examples(path: Path) -> str:
    """A program that prints the equations of a page which do not hold. Each knows what is defined
    above it, and the names of the modules whose tables stand above it."""
    text = path.read_text(encoding="utf-8")
    lines = [AGREES]
    for found in sorted([*API.finditer(text), *FENCE.finditer(text)], key=re.Match.start):
        if found.re is API:
            lines.append(f"from llmc.{found[1].removesuffix('.py')} import *")
        elif found[2] == "python define":
            lines.append(found[3])
        elif found[2] == "example":
            for line in found[3].splitlines():
                left, _, right = line.rpartition(" = ")
                lines.append(f"if not agrees(({left}), {right}): print({left!r}, {left})")
    return "\n".join(lines)


# The same in C: floats are near what is said, to at least four digits behind the point.
AGREES_C = """
static int agrees(const float *got, const double *said, int n, double bound) {
    for (int i = 0; i < n; i++) {
        if (!(fabs(got[i] - said[i]) <= bound)) return 0;
    }
    return 1;
}
"""


def agrees_c(left: str, right: str) -> str:
    """The condition in C that what stands left of an equation gives what is said."""
    digits = max((len(number) for number in re.findall(r"\d\.(\d+)\b", right)), default=0)
    bound = f"0.501e-{max(4, digits)}"
    if right.startswith("{"):
        return f"agrees({left}, (double[]){right}, {right.count(',') + 1}, {bound})"
    return f"fabs(({left}) - ({right})) <= {bound}" if digits else f"({left}) == ({right})"


def examples_c(path: Path) -> str:
    """A program that prints the equations of a page in C which do not hold. Each knows what is
    defined above it, up to a heading."""
    text = path.read_text(encoding="utf-8")
    headers = ("stdio.h", "math.h", *(f"llmc/{header}" for header in API.findall(text)))
    lines = [f"#include <{header}>" for header in headers]
    if "= {" in "\n".join(equations(path)):
        lines.append(AGREES_C)
    lines.append("int main(void) {\n{")
    for found in sorted([*HEADING.finditer(text), *FENCE.finditer(text)], key=re.Match.start):
        if found.re is HEADING:
            lines.append("}\n{")
        elif found[2] == "c define":
            lines.append(found[3])
        elif found[2] == "example":
            for line in found[3].splitlines():
                left, _, right = line.rpartition(" = ")
                lines.append(f"if (!({agrees_c(left, right)})) puts({json.dumps(line)});")
    return "\n".join([*lines, "}\nreturn 0;\n}\n"])


def diagrams(path: Path) -> list[Fence]:
    return [fence for fence in fences(path) if fence.tag == "mermaid"]


def pitfalls(path: Path) -> set[tuple[str, str]]:
    """The file that a part of the text is about, and a row that a pitfall in it names."""
    text = path.read_text(encoding="utf-8")
    above = ["\n".join(text.splitlines()[:line]) for line, _ in prose.pitfalls(text)]
    rows = [row for _, row in prose.pitfalls(text)]
    return {(API.findall(part)[-1], row) for part, row in zip(above, rows, strict=True)}


# ---------------------------------------------------------------- what the handouts say


def test_the_handouts_agree_with_the_code() -> None:
    assert handouts.check(handouts.FOLDER) == []


def test_the_readmes_and_the_page_for_instructors_agree_with_the_code() -> None:
    assert handouts.check_pages() == []


@pytest.mark.parametrize(("stage", "half"), PARTS)
def test_a_half_has_every_row_and_file_and_no_points_of_its_own(stage: str, half: str) -> None:
    (part,) = (part for part in rubric.load(stage).parts if part.id == half)
    path = PARTS[stage, half]
    text = path.read_text(encoding="utf-8")
    blocks = handouts.blocks(text, path.name)
    words = [block.words for block in blocks if not block.words.startswith("code")]
    tasks = [f"points {stage} {half} {item.id}" for item in part.items]
    assert [w for w in words if w.startswith("points")] == [f"points {stage} {half}", *tasks]
    files = [f"api {Path(file).name}" for file in part.files]
    tables = [w for w in words if w.startswith("api")]
    assert tables == (files if stage == "A0" else [f"{file} {stage}" for file in files])
    for block in reversed(blocks):
        lines = text.splitlines()
        text = "\n".join(lines[: block.start] + lines[block.end :])
    assert re.findall(r"\b\d+(?:/\d+)? points?\b|\bpoints?: \d+", text) == []


@pytest.mark.parametrize(("stage", "half"), PARTS)
def test_every_function_of_a_half_belongs_to_a_row(stage: str, half: str) -> None:
    files = strip.SOURCE.glob("*.h" if half == "c" else "*.py")
    found = [pair for path in files for pair in TODO.findall(path.read_text(encoding="utf-8"))]
    todo = [name for of, name in found if of == stage]
    items = [item for part, item in rubric.load(stage).items() if part.id == half]
    named = {name for item in items for name in item.functions}
    assert set(todo) == named & set(todo)
    assert named - set(todo) <= {name for of, name in found if of < stage}
    count = f"There are {len(todo)} functions{'' if half == 'c' else ' and methods'}."
    assert count in PARTS[stage, half].read_text(encoding="utf-8")


def test_the_first_handout_is_the_one_that_the_grader_names_and_leads_to_the_other() -> None:
    a0 = rubric.load("A0")
    names = [a0.handout(), *(a0.handout(part) for part in a0.parts)]
    assert names == [f"handouts/{A0.name}"] * 2 + ["handouts/A0-python.md"]
    head = A0.read_text(encoding="utf-8").partition("\n## ")[0]
    assert f"({PYTHON['A0'].name})" in head and "either order" in head


@pytest.mark.parametrize(("stage", "half"), PARTS)
def test_the_grader_names_the_handout_of_each_half(stage: str, half: str) -> None:
    loaded = rubric.load(stage)
    (part,) = (part for part in loaded.parts if part.id == half)
    assert ROOT / loaded.handout(part) == PARTS[stage, half]


def test_links_between_handouts_lead_to_headings() -> None:
    for path in HANDOUTS:
        links = re.findall(r"\]\(([\w-]+\.md)?#([\w-]+)\)", path.read_text(encoding="utf-8"))
        for name, anchor in links:
            text = (handouts.FOLDER / (name or path.name)).read_text(encoding="utf-8")
            heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
            assert anchor in anchors, f"{path.name}: no heading {name}#{anchor}"


@pytest.mark.parametrize(
    ("program", "output"), [pytest.param(*pair, id=pair[0].where) for pair in programs()]
)
def test_a_program_prints_what_stands_below_it(
    program: Fence, output: Fence, tmp_path: Path
) -> None:
    assert output.tag == "output", f"no output block behind {program.where}"
    assert RUN[program.tag](program.body, tmp_path) == output.body


@pytest.mark.parametrize("stage", C)
def test_the_equations_hold_in_c(stage: str, tmp_path: Path) -> None:
    assert len(equations(C[stage])) > 0
    assert run_c(examples_c(C[stage]), tmp_path) == ""


@pytest.mark.parametrize("stage", PYTHON)
def test_the_equations_hold_in_python(stage: str, tmp_path: Path) -> None:
    assert len(equations(PYTHON[stage])) > 0
    assert run_python(examples(PYTHON[stage]), tmp_path) == ""


def test_an_equation_that_does_not_hold_is_found(tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    held = "1 / 3 = 0.3333\nnp.ones(2) = [1.0, 1.0]\n(1, np.ones(())) = (1, 1.0)\n"
    wrong = ["1 / 3 = 0.333", "np.ones(2) = [1.0]", "[2] = (2,)", "2.0 = 2", "6 = 7"]
    lines = held + "\n".join(wrong)
    page.write_text(f"```python define\nimport numpy as np\n```\n```example\n{lines}\n```\n")
    said = run_python(examples(page), tmp_path).splitlines()
    assert said == ["1 / 3 0.3333333333333333", "np.ones(2) [1. 1.]", "[2] [2]", "2.0 2.0", "6 6"]


def test_an_equation_that_does_not_hold_in_c_is_found(tmp_path: Path) -> None:
    page = tmp_path / "x.md"
    held = ["1.0 / 3 = 0.3333", "x = {1.0, 0.6667}", "2 + 2 = 4"]
    wrong = ["1.0 / 3 = 0.3334", "x = {1.0, 0.6666}", "2 + 2 = 5", "x[0] / 0.0f = 1.0"]
    define = "```c define\nfloat x[] = {1, 2 / 3.0f};\n```\n"
    lines = "\n".join(held + wrong)
    page.write_text(f"{define}```example\n{lines}\n```\n")
    assert run_c(examples_c(page), tmp_path).splitlines() == wrong


def test_the_worked_examples_of_the_generator_are_in_the_python_half() -> None:
    shown = {line.rpartition(" = ")[0] for line in equations(PYTHON["A0"])}
    calls = ["PCG32(0).state()", "PCG32(0).next_u32()", "PCG32(0).uniform()"]
    calls += ['fnv1a64(b"a")', "universal_hash(10, 3, 7, 13, 5)"]
    assert set(calls) - shown == set()


@pytest.mark.parametrize("stage", ["A1", "A2"])
def test_every_operation_has_an_example(stage: str) -> None:
    shown = "\n".join([examples(PYTHON[stage]), *(p.body for p, _ in programs())])
    items = [item for part, item in rubric.load(stage).items() if part.id == "python"]
    names = {name.partition(".")[0] for item in items for name in item.functions}
    assert {name for name in names if not re.search(rf"(?i)\b{name}\(", shown)} == set()


@pytest.mark.parametrize("stage", sorted(set(C) - {"A0"}))
def test_every_function_in_c_has_an_example(stage: str) -> None:
    tags = {"c define", "c run", "example"}
    shown = "\n".join(fence.body for fence in fences(C[stage]) if fence.tag in tags)
    items = [item for part, item in rubric.load(stage).items() if part.id == "c"]
    names = {name for item in items for name in item.functions}
    assert {name for name in names if f"{name}(" not in shown} == set()


@pytest.mark.parametrize(("stage", "half"), PARTS)
def test_a_pitfalls_row_is_the_first_that_some_mutant_of_that_file_loses(
    stage: str, half: str
) -> None:
    named = pitfalls(PARTS[stage, half])
    (part,) = (part for part in rubric.load(stage).parts if part.id == half)
    of_half = {Path(file).name for file in part.files}
    if made := [mutant for mutant in mutants.load(stage) if mutant.file in of_half]:
        assert named - {(m.file, m.loses[0]) for m in made} == set()
    files = {item.id: [Path(file).name for file in part.files_of(item)] for item in part.items}
    assert {(file, row) for file, row in named if file not in files[row]} == set()
    assert {row for _, row in named} == set(files) - NO_PITFALL


def test_the_diagram_of_the_generator_shows_who_calls_whom() -> None:
    source = (strip.SOURCE / "rand.h").read_bytes()
    functions = syntax.functions(source)
    calls = {
        (token.decode(), name)
        for name, function in functions.items()
        for token in function.tokens()
        if token.decode() in set(functions) - {name}
    }
    drawn = (EDGE.fullmatch(line) for line in diagrams(A0)[1].body.splitlines()[1:])
    assert {(edge["start"], edge["end"]) for edge in drawn} == calls


@pytest.mark.parametrize(
    "diagram", [pytest.param(d, id=d.where) for path in HANDOUTS for d in diagrams(path)]
)
def test_a_diagram_is_of_the_plain_kind(diagram: Fence) -> None:
    head, *lines = diagram.body.splitlines()
    assert head in ("flowchart LR", "flowchart TD")
    assert [line for line in lines if not EDGE.fullmatch(line) and not GROUP.fullmatch(line)] == []


def test_the_report_that_is_explained_is_what_the_mutant_gets(graded) -> None:
    (mutant,) = (m for m in mutants.load("A0") if m.id == "randint32-seeds-again")
    item = graded(mutant.tree(), "randint32").parts[0].items[0]
    (row,) = (row for row in item.rows if row.verdict == "FAIL" and row.credit.kind == "boundary")
    (shown,) = (fence.body for fence in fences(A0) if fence.tag == "text")
    said = (row.input, row.got, row.expected, row.message, row.hint, "./grade A0 randint32")
    labels = ("input", "got", "expected", "differs", "hint", "rerun")
    words = [word for pair in zip(labels, said, strict=True) for word in " ".join(pair).split()]
    by_hand = f"by hand build/probes/{row.credit.probe} {row.credit.case} 137"
    assert shown.split() == words + by_hand.split()


def test_the_first_function_alone_earns_the_first_row(graded) -> None:
    stubs = {name: text.encode() for name, text in strip.stubs(strip.SOURCE).items()}
    right = syntax.functions((strip.SOURCE / "rand.h").read_bytes())["manual_seed"].text
    stub = syntax.functions(stubs["rand.h"])["manual_seed"].text
    stubs["rand.h"] = stubs["rand.h"].replace(stub.encode(), right.encode())
    part = graded(Tree("first-row", stubs), "manual_seed", "next_state").parts[0]
    assert [item.verdict for item in part.items] == ["ok", "todo"]


# What "Write it" says, in C.
WRITTEN = """
    state->seed_ = seed;
    state->MATRIX_A[0] = 0, state->MATRIX_A[1] = 0x9908b0df;
    state->left_ = 1, state->next_ = 0;
    state->state_[0] = (unsigned int)seed;
    for (unsigned int j = 1; j < MERSENNE_STATE_N; j++) {
        unsigned int w = state->state_[j - 1];
        state->state_[j] = 1812433253u * (w ^ (w >> 30)) + j;
    }
"""
PLACE = re.compile(r"hint\s+write it at (\S+):(\d+), in place of the line that says\s+TODO")


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """The pack as a student has it, with the packages of this folder."""
    lists = release.lists()
    globs = [f"{p}*" if p.endswith("/") else p for p in lists.student]
    there = {str(p.relative_to(ROOT)) for pattern in globs for p in ROOT.glob(pattern)}
    content = release.archive(release.choose(ROOT, sorted(there), lists), 0)
    subprocess.run(["tar", "-xzf", "-"], cwd=tmp_path, input=content, check=True)
    (tmp_path / "llmc-student" / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path / "llmc-student"


def commands(path: Path, heading: str) -> list[str]:
    """The lines of the `sh` blocks below a heading."""
    section = path.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].partition("\n## ")[0]
    blocks = [body for _, tag, body in FENCE.findall(section) if tag == "sh"]
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.slow
def test_readme_and_handout_lead_to_the_first_point_in_an_unpacked_pack(unpacked: Path) -> None:
    def said(command: str, status: int) -> str:
        env = {name: v for name, v in os.environ.items() if not name.startswith("MAKE")}
        shell = ["sh", "-c", command]
        ran = subprocess.run(shell, cwd=unpacked, env=env, capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (status, "")
        return ran.stdout

    start, grade = commands(unpacked / "README.md", "Two commands")
    assert "handouts/A0-data-and-randomness.md" in said(start, 0)
    table = said(grade, 1)
    assert "> todo  manual_seed" in table
    assert "A0 · C: 0 of 100 points." in table
    (file, number), (first, _) = PLACE.findall(table)
    header = unpacked / file
    lines = header.read_text().splitlines(keepends=True)
    at = int(number) - 1
    shown = next(f.body for f in fences(unpacked / "handouts" / A0.name) if f.tag == "c")
    assert (first, lines[at]) == ("llmc/rand.py", '    TODO("A0: manual_seed");\n')
    assert shown.endswith("".join(lines[at - 3 : at + 2]))  # comment, line and brace
    header.write_text("".join([*lines[: at - 3], WRITTEN.lstrip("\n"), *lines[at + 1 :]]))
    (again,) = commands(unpacked / "handouts" / A0.name, "The first point, in ten minutes")
    assert "ok    manual_seed                   2/2" in said(again, 0)


def test_the_first_point_is_ten_minutes_away() -> None:
    readme = (ROOT / "README.student.md").read_text(encoding="utf-8")
    path = [readme.partition("is for looking up.")[0]]
    path += [A0.read_text(encoding="utf-8").partition("\n## How to work\n")[0]]
    assert sum(len(text.split()) for text in path) < 7 * 200  # a minute; three more to work


def test_the_golden_vector_is_printed_by_the_quoted_command(tmp_path: Path) -> None:
    pairs = list(pairwise(fences(A0)))
    (command, output), *others = [p for p in pairs if "printf '#include" in p[0].body]
    assert (command.tag, output.tag, others) == ("sh", "output", [])
    root = tmp_path / "root"
    root.mkdir()
    (root / "llmc").symlink_to(ROOT / "reference" / "llmc")
    ran = subprocess.run(["sh", "-c", command.body], cwd=root, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == output.body
    numpy_draws = np.random.RandomState(137).randint(0, 2**32, size=5, dtype=np.uint32)
    assert output.body.split() == [str(draw) for draw in numpy_draws]


@pytest.mark.parametrize("path", HANDOUTS, ids=lambda path: path.name)
def test_fences_are_of_a_known_kind_and_text_is_wrapped(path: Path) -> None:
    known = {"c", "python", "c define", "python define", *RUN, "output", "example", "sh"}
    known |= {"mermaid", "text"}
    assert {fence.tag for fence in fences(path)} <= known
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        short = len(line) <= 100 or line.startswith("|") or line.startswith("printf '#include")
        assert short, f"{path.name}:{number}: {len(line)} characters"


# ---------------------------------------------------------------- the tool

FRESH = "\n".join(
    ["<!-- generated: points A0 c -->", *handouts.points(["A0", "c"]), "<!-- end -->", ""]
)


def test_a_block_is_filled_from_the_rubric_and_the_rest_is_kept() -> None:
    empty = "above\n<!-- generated: points A0 c -->\nold\n<!-- end -->\nbelow\n"
    filled = handouts.fill(empty, "x.md")
    assert filled == f"above\n{FRESH}below\n"
    assert handouts.fill(filled, "x.md") == filled
    assert "| `manual_seed` | `rand.h` | 2 |\n" in filled
    assert "| **all** | | **100** |\n" in filled


def test_a_row_is_shown_with_functions_command_and_what_earns_it() -> None:
    assert handouts.points(["A0", "c", "manual_seed"]) == [
        "- `llmc/rand.h` · `manual_seed` · 2 points · `./grade A0 manual_seed`",
        "- fills the 624 words (1); sets left_, next_ and MATRIX_A (1)",
    ]
    text = "\n".join(handouts.points(["A0", "c", "tokenizer"]))
    assert "`tokenizer_init`, `tokenizer_decode`, `tokenizer_free` · 11 points ·\n  `./gr" in text
    assert text.endswith("decodes GPT-2's vocabulary (1, needs `make data`)")


def test_a_headers_functions_are_shown_with_contract_and_row() -> None:
    head, rule, *rows = handouts.api(["dataloader.h"])
    assert (head, rule) == ("| function | contract | row |", "|---|---|---|")
    names = syntax.functions((strip.SOURCE / "dataloader.h").read_bytes())
    table = dict(zip(names, rows, strict=True))
    assert table["evalloader_stat_losses"] == (
        "| `int evalloader_stat_losses(EvalLoader *loader, const float *losses)` | "
        "losses (B,T): how "
        "many examples of this batch the model got right. Its answer is the completion with the "
        "lowest mean loss over the positions with mask 1. Rows without an example (mask all 0) "
        "count for nothing. | `loader_pairs` |"
    )
    assert table["dataloader_current_shard_"].endswith(" Given. | given |")
    assert "size_t T, int process_rank, int num_processes)`" in table["evalloader_init"]
    assert "num_processes\\*B\\*T + 1" in table["dataloader_init"]


def test_a_modules_functions_are_shown_with_contract_and_row() -> None:
    table = dict(re.findall(r"^\| `([\w.]+)(.*)$", "\n".join(handouts.api(["sampler.py"])), re.M))
    assert table["random_f32"] == (
        "(state: int) -> tuple[float, int]` | Uniform on [0, 1) and the next state: the high 24 "
        "bits of one random_u32, times 2^-24. | `xorshift_f32` |"
    )
    assert "top_k: int \\| None = None, top_p: float \\| None = None) -> Weights`" in table["cut"]
    assert "Uniform.uniform" not in table  # it has no contract
    table = dict(re.findall(r"^\| `([\w.]+)(.*)$", "\n".join(handouts.api(["rand.py"])), re.M))
    assert table["PCG32.__init__"].startswith("(seed: int, seq: int = 54) -> None` | Stream")
    assert table["PCG32.state"].startswith("() -> tuple[int, int]` |")
    table = dict(re.findall(r"^\| `([\w.]+)(.*)$", "\n".join(handouts.api(["tokenizer.py"])), re.M))
    assert table["read_vocab"].endswith("| given |")
    assert table["BPE.from_vocab"].startswith("(path: PathLike) -> BPE` |")


def test_a_class_lends_its_contract_to_the_first_method_that_students_write() -> None:
    tables = ["\n".join(handouts.api(["autograd.py", stage])) for stage in ("A1", "A2")]
    first, second = (dict(re.findall(r"^\| `([\w.]+)(.*)$", table, re.M)) for table in tables)
    assert first["Exp.forward"] == "(x: Array) -> Array` | e^x. | `exp` |"
    assert "Exp.backward" not in second and "Tensor.__add__" not in first


def test_a_stages_table_leaves_out_what_is_another_stages() -> None:
    table = dict(
        re.findall(r"^\| `([\w.]+)(.*)$", "\n".join(handouts.api(["autograd.py", "A2"])), re.M)
    )
    assert table["Tensor.backward"].endswith("| `engine` |")  # the first row that names it
    assert table["check_ids"].endswith("| given |")
    assert "Add.forward" not in table


def test_a_name_that_both_halves_have_belongs_to_the_row_of_its_file() -> None:
    for file, row in (("rand.h", "random_permutation"), ("dataloader.py", "shard_shuffle")):
        (line,) = (line for line in handouts.api([file]) if "random_permutation(" in line)
        assert line.endswith(f"| `{row}` |")


@pytest.mark.parametrize(
    ("words", "first", "last", "lines"),
    [
        (["rand.h", "mt19937_state"], "typedef struct {", "} mt19937_state;", 7),
        (["rand.h", "LMASK"], "#define MERSENNE_STATE_N 624", "#define LMASK 0x7fffffffu", 4),
        (["sampler.h", "random_f32"], "// Uniform on [0, 1)", "}", 6),
        (["dataloader.h", "EvalLoader"], "// Multiple choice", "} EvalLoader;", 27),
        (["rand.py", "FNV_PRIME"], "MASK64 =", "LANES = 1 << 14", 6),
        (["rand.py", "PCG32"], "class PCG32:", '    """', 6),
        (["rand.py", "child_seed"], "def child_seed(", "    raise NotImplementedError", 8),
        (["autograd.py", "RECORDING"], "FLOATS =", "GELU_CUBIC = 0.044715", 4),
        (["optim.py", "Group"], "@dataclass(frozen=True)", "    weight_decay: float = 0.0", 6),
        (["autograd.py", "Add.forward"], "    def forward(", "        raise NotImpl", 4),
    ],
)
def test_a_definition_is_shown_as_students_get_it(
    words: list[str], first: str, last: str, lines: int
) -> None:
    opens, *body, closes = handouts.code(words)
    tag = "python" if words[0].endswith(".py") else "c"
    assert (opens, closes, len(body)) == (f"```{tag}", "```", lines)
    assert body[0].startswith(first) and body[-1].startswith(last)
    stub = (ROOT / "llmc" / words[0]).read_text(encoding="utf-8")
    assert "\n".join(body) in stub


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "\n<!-- generated: marks A0 c -->\n<!-- end -->\n",
            "x.md:2: unknown kind of block `marks`",
        ),
        ("<!-- generated: points A0 c -->\n", "x.md:1: the block `points A0 c` is not closed"),
        (
            f"<!-- generated: points A0 c -->\n{FRESH}",
            "x.md:1: the block `points A0 c` is not closed",
        ),
        (f"{FRESH}\n<!-- end -->\n", "the end of no block"),
        (f"<!--generated: points A0 c -->\n{FRESH}", "x.md:1: a mark is a line of its own"),
        (
            "<!-- generated: points A0 -->\n<!-- end -->\n",
            "x.md:1: `points A0`: want an assignment",
        ),
        (
            "<!-- generated: points A9 c -->\n<!-- end -->\n",
            "x.md:1: `points A9 c`: no assignment A9",
        ),
        (
            "<!-- generated: points A0 d -->\n<!-- end -->\n",
            "x.md:1: `points A0 d`: no part d in A0",
        ),
        (
            "<!-- generated: points A0 c seed -->\n<!-- end -->\n",
            "x.md:1: `points A0 c seed`: no row seed in A0",
        ),
        ("<!-- generated: api -->\n<!-- end -->\n", "x.md:1: `api`: want a file"),
        ("<!-- generated: api ran.h -->\n<!-- end -->\n", "`api ran.h`: no file ran.h in llmc/"),
        ("<!-- generated: api rand.h A9 -->\n<!-- end -->\n", "no assignment A9"),
        ("<!-- generated: code rand.h -->\n<!-- end -->\n", "want a file and a name"),
        (
            "<!-- generated: code rand.h UMASC -->\n<!-- end -->\n",
            "`code rand.h UMASC`: no definition of UMASC in rand.h",
        ),
    ],
)
def test_a_block_that_cannot_be_written_is_named(text: str, words: str) -> None:
    with pytest.raises(Wrong, match=r"^x\.md:\d+: ") as fault:
        handouts.fill(text, "x.md")
    assert words in str(fault.value)


def test_check_reports_drift_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = "\n" + FRESH.replace("| 2 |", "| 3 |", 1)
    (tmp_path / "x.md").write_text(stale)
    assert handouts.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().out
    assert said == "x.md:2: the block `points A0 c` differs from its source\n"
    assert (tmp_path / "x.md").read_text() == stale
    assert handouts.main([], tmp_path) == 0
    assert (tmp_path / "x.md").read_text() == "\n" + FRESH
    assert handouts.main(["--check"], tmp_path) == 0


def test_one_wrong_handout_leaves_all_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.md").write_text("<!-- generated: points A0 c -->\n<!-- end -->\n")
    (tmp_path / "b.md").write_text("<!-- generated: marks A0 c -->\n<!-- end -->\n")
    assert handouts.main([], tmp_path) == 1
    said = "b.md:1: unknown kind of block `marks`; there is points, api, code\n"
    assert capsys.readouterr().out == said
    assert (tmp_path / "a.md").read_text() == "<!-- generated: points A0 c -->\n<!-- end -->\n"


@pytest.mark.parametrize(
    "text",
    [
        "`./grade A0 randint32`, `./grade A0 rand`, `./grade A0 --list`, `./grade why manual_seed`",
        "`./grade a0 llmc/rand.h next`, `./grade why random_u32`, `./grade A0 --html FILE clean`",
        "`./grade`, `./grade doctor`, `./grade pack A0 -o FILE --anyway`, `./grade start A0`",
        '```sh\ncd dev/test && make TEST_CFLAGS="-O0 -g" test_gpt2 && ./test_gpt2\n```',
        "`make data TEXT=mine.txt`, `llmc/rand.h`, `build/probes/rand`, `.data/x_y.bin`",
        "`shuffle_rng`, `manual_seed(&s, 137)`, `safe_printf(tokenizer_decode(...))`, `uint16_t`",
        "```c run\nno_such_name();\n```",
        "```sh\n\n./grade A0\n```\n` `",
        f"{prose.PITFALLS}\n|---|---|\n| a `b` | `clean` |\n",
    ],
)
def test_what_is_there_may_be_named(text: str, known: prose.Known) -> None:
    assert prose.strays(text, "x.md", known) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n`./grade A0 randint33`", "x.md:2: `./grade A0 randint33`: there is no randint33"),
        ("`./grade A0 --lits`", "x.md:1: `./grade A0 --lits`: there is no --lits"),
        ("`./grade wyh clean`", "x.md:1: `./grade wyh clean`: there is no wyh"),
        ("`./grade why the`", "x.md:1: `./grade why the`: there is no the"),
        ("`./grade A0 your`", "x.md:1: `./grade A0 your`: there is no your"),
        ("`./grade A0 --anyway`", "x.md:1: `./grade A0 --anyway`: there is no --anyway"),
        ("`./grade pack A0 clean`", "x.md:1: `./grade pack A0 clean`: there is no clean"),
        ("`./grade A0 --reference`", "x.md:1: `./grade A0 --reference`: there is no --reference"),
        ("`./grade diff A0`", "x.md:1: `./grade diff A0`: there is no diff"),
        ("`make release`", "x.md:1: `make release`: there is no release"),
        ("`make dev`", "x.md:1: `make dev`: there is no dev"),
        ("```sh\n./grade A7\n```", "x.md:2: `./grade A7`: there is no A7"),
        ("```sh\ncd x && make date\n```", "x.md:2: `make date`: there is no date"),
        ("`llmc/ran.h`", "x.md:1: `llmc/ran.h`: there is no llmc/ran.h"),
        ("`shuffle_range`", "x.md:1: `shuffle_range`: there is no shuffle_range"),
        (f"{prose.PITFALLS}\n|---|---|\n| a | `clear` |\n", "x.md:3: no row clear"),
    ],
)
def test_what_is_not_there_is_found(text: str, line: str, known: prose.Known) -> None:
    assert prose.strays(text, "x.md", known) == [line]


def test_staff_have_more_and_a_page_may_name_the_row_that_it_adds() -> None:
    staff = prose.known()
    text = "`./grade diff A0 --student DIR`, `./grade A0 --reference --fresh`, `make mutants A0`"
    assert prose.strays(f"{text}, `make dev`, `no_code_here`", "x.md", staff) == []
    text = "`./grade A0 mine`\n"
    assert prose.strays(text, "x.md", staff) == ["x.md:1: `./grade A0 mine`: there is no mine"]
    assert prose.strays(f'{text}```toml\nid = "mine"\n```\n', "x.md", staff) == []
