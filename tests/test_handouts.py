"""What the handouts promise: their generated blocks, programs, numbers, tables and commands."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from autograder import rubric
from autograder.rubric import ROOT
from staff import handouts
from staff.handouts import Wrong

HANDOUTS = sorted(handouts.FOLDER.glob("*.md"))
A0 = handouts.FOLDER / "A0-data-and-randomness.md"
FENCE = re.compile(r"^( *)```(.*)\n(?s:(.*?))^\1```$", re.MULTILINE)
FUNCTION = re.compile(r"^static inline (?P<returns>[\w *]*?)(?P<name>\w+)\(", re.MULTILINE)
TODO = re.compile(r"// TODO \((?P<stage>A\d)\): (?P<name>\w+)")


@dataclass(frozen=True)
class Fence:
    """A fenced block: where it stands, its tag, its lines."""

    where: str  # file:line
    tag: str
    body: str


@dataclass(frozen=True)
class Row:
    """A row of a table below its head, as the text of its cells."""

    where: str
    cells: tuple[str, ...]

    def code(self, column: int) -> list[str]:
        """What stands in backticks in a cell."""
        return re.findall(r"`([^`]+)`", self.cells[column])


def fences(path: Path) -> list[Fence]:
    text = path.read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [
        Fence(f"{path.name}:{text.count(chr(10), 0, m.start()) + 1}", *m.groups()[1:])
        for m in found
    ]


def rows(path: Path, *head: str) -> Iterator[Row]:
    """The rows of all tables with this head."""
    inside = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if not line.startswith("|"):
            inside = False
        elif cells == head:
            inside = True
        elif inside and set(line) - set("|-: "):
            yield Row(f"{path.name}:{number}", cells)


def programs() -> list[tuple[Fence, Fence]]:
    """Each `c run` block with the block behind it."""
    pairs = [pair for path in HANDOUTS for pair in pairwise([*fences(path), Fence("", "", "")])]
    return [(program, output) for program, output in pairs if program.tag == "c run"]


def run_c(source: str, folder: Path) -> str:
    """Compiles against the reference, without a warning, and returns what the program prints."""
    (folder / "try.c").write_text(source.replace("/tmp/", f"{folder}/"))
    flags = ["-std=gnu11", "-O1", "-Wall", f"-I{ROOT / 'reference'}"]
    command = ["cc", *flags, "-o", "try", "try.c", "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (0, "")
    ran = subprocess.run([folder / "try"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def signatures() -> dict[str, str]:
    """Every function of the student's headers, with the type it returns."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "llmc").glob("*.h"))]
    return {m["name"]: m["returns"].strip() for text in texts for m in FUNCTION.finditer(text)}


# ---------------------------------------------------------------- what the handouts say


def test_the_generated_blocks_are_fresh() -> None:
    assert handouts.drift(handouts.FOLDER) == []


def test_the_first_handout_has_its_points_table_and_no_other_points() -> None:
    text = A0.read_text(encoding="utf-8")
    assert [block.words for block in handouts.blocks(text, A0.name)] == ["points A0 c"]
    for block in reversed(handouts.blocks(text, A0.name)):
        lines = text.splitlines()
        text = "\n".join(lines[: block.start] + lines[block.end :])
    assert re.findall(r"\b\d+(?:/\d+)? points?\b|\bpoints?: \d+", text) == []


@pytest.mark.parametrize(
    ("program", "output"), [pytest.param(*pair, id=pair[0].where) for pair in programs()]
)
def test_a_program_prints_what_stands_below_it(
    program: Fence, output: Fence, tmp_path: Path
) -> None:
    assert output.tag == "output", f"no output block behind {program.where}"
    assert run_c(program.body, tmp_path) == output.body


@pytest.mark.parametrize("path", HANDOUTS, ids=lambda path: path.name)
def test_the_equations_hold_in_c(path: Path, tmp_path: Path) -> None:
    lines = [line for f in fences(path) if f.tag == "example" for line in f.body.splitlines()]
    equations = [line.rpartition(" = ")[::2] for line in lines]
    tests = [
        f"    if (!(({left}) == ({right}))) puts({i});" for i, (left, right) in enumerate(equations)
    ]
    shown = [t.replace(f"puts({i})", f'puts("{lines[i]}")') for i, t in enumerate(tests)]
    source = "#include <stdio.h>\nint main(void) {\n" + "\n".join(shown) + "\n    return 0;\n}\n"
    assert run_c(source, tmp_path) == ""


@pytest.mark.parametrize("path", HANDOUTS, ids=lambda path: path.name)
def test_every_function_of_an_interface_table_is_in_the_headers(path: Path) -> None:
    known = signatures()
    for row in rows(path, "function", "returns", "must"):
        (name,), (returns,) = row.code(0), row.code(1)
        assert name in known, f"{row.where}: no function {name} in llmc/*.h"
        assert known[name] == returns, f"{row.where}: {name} returns {known[name]}"


def test_every_function_of_the_stage_is_in_an_interface_table() -> None:
    named = {row.code(0)[0] for row in rows(A0, "function", "returns", "must")}
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "llmc").glob("*.h")]
    todo = [m["name"] for text in texts for m in TODO.finditer(text) if m["stage"] == "A0"]
    assert sorted(named) == sorted(todo)
    assert f"There are {len(todo)} functions." in A0.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", HANDOUTS, ids=lambda path: path.name)
def test_every_row_that_a_pitfall_names_is_in_the_rubric(path: Path) -> None:
    known = {item.id for _, item in rubric.load(path.name.partition("-")[0]).items()}
    caught = list(rows(path, "pitfall", "row that catches it"))
    for row in caught:
        assert set(row.code(1)) <= known, f"{row.where}: {row.cells[1]}"
    assert {name for row in caught for name in row.code(1)} >= known - {"init_identity_permutation"}


def test_the_golden_vector_is_printed_by_the_quoted_command(tmp_path: Path) -> None:
    pairs = list(pairwise(fences(A0)))
    (command, output), *others = [p for p in pairs if p[0].body.startswith("printf '#include")]
    assert (command.tag, output.tag, others) == ("sh", "output", [])
    root = tmp_path / "root"
    root.mkdir()
    (root / "llmc").symlink_to(ROOT / "reference" / "llmc")
    here = command.body.replace("/tmp/", f"{tmp_path}/")
    ran = subprocess.run(["sh", "-c", here], cwd=root, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == output.body
    numpy_draws = np.random.RandomState(137).randint(0, 2**32, size=5, dtype=np.uint32)
    assert output.body.split() == [str(draw) for draw in numpy_draws]


@pytest.mark.parametrize("path", HANDOUTS, ids=lambda path: path.name)
def test_fences_are_of_a_known_kind_and_text_is_wrapped(path: Path) -> None:
    known = {"c run", "output", "example", "sh", "mermaid", "text"}
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
    assert "| `manual_seed` | `rand.h` | 2 | fills the 624 words (1); " in filled
    assert "| **all** | | **100** | |" in filled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "\n<!-- generated: pionts A0 c -->\n<!-- end -->\n",
            "x.md:2: unknown kind of block `pionts`",
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
    (tmp_path / "b.md").write_text("<!-- generated: pionts A0 c -->\n<!-- end -->\n")
    assert handouts.main([], tmp_path) == 1
    assert capsys.readouterr().out == "b.md:1: unknown kind of block `pionts`; there is points\n"
    assert (tmp_path / "a.md").read_text() == "<!-- generated: points A0 c -->\n<!-- end -->\n"
