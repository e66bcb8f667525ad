"""./grade diff: what counts as a difference, whose function is where, and how it is shown."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder import rubric
from autograder.rubric import ROOT
from autograder.run import REFERENCE
from staff import diff
from staff.diff import OUTSIDE, WIDE, Usage, align, choose, compare, shared
from staff.lines import lines
from staff.syntax import functions, parse, unread, walk

A0 = rubric.load("A0")
C = A0.parts[0]  # what is compared so far
FILES = list(C.files)
VARIANTS = sorted(path.parent for path in (REFERENCE / "variants" / "A0").glob("*/*.h"))
VARIANTS = list(dict.fromkeys(VARIANTS))
RAND = (REFERENCE / "llmc" / "rand.h").read_text()

Lay = Callable[..., Path]


@pytest.fixture(autouse=True)
def plain_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rich reads is what the test says, not whoever runs it."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """terminal(80): stdout counts as a terminal of 80 columns."""

    def be(columns: int) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(columns))

    return be


@pytest.fixture
def lay(tmp_path: Path) -> Lay:
    """lay({"rand.h": text}): the reference with these files; None leaves one out."""

    def make(files: dict[str, str | bytes | None]) -> Path:
        shutil.copytree(REFERENCE / "llmc", tmp_path / "llmc")
        for name, text in files.items():
            path = tmp_path / "llmc" / name
            if text is None:
                path.unlink()
            else:
                path.write_bytes(text.encode() if isinstance(text, str) else text)
        return tmp_path

    return make


def states(student: Path) -> dict[str, list[str]]:
    """State → names of functions; OUTSIDE stands as the file's name."""
    found: dict[str, list[str]] = {}
    for row in compare(FILES, student)[0]:
        name = row.file if row.name == OUTSIDE else row.name
        found.setdefault(row.state, []).append(name)
    return found


def replaced(text: str, find: str, by: str) -> str:
    assert text.count(find) == 1, f"`{find}` occurs {text.count(find)} times"
    return text.replace(find, by)


def without(text: str, name: str) -> tuple[str, str]:
    """A file's text without one function, and that function's."""
    one = functions(text.encode())[name]
    return replaced(text, one.text, ""), one.text


# ---------------------------------------------------------------- whole trees


def test_the_reference_is_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(states(REFERENCE)) == {"unchanged"}
    assert diff.main(["A0", "--student", str(REFERENCE)]) == 0
    out = capsys.readouterr().out
    assert out.count("100%") == len(compare(FILES, REFERENCE)[0])
    assert re.search(r"\n\nfunctions: \d+ unchanged\n$", out)


def test_every_function_of_the_rubric_is_compared() -> None:
    names = {row.name for row in compare(FILES, REFERENCE)[0]}
    assert {name for item in C.items for name in item.functions} <= names


def test_stubs_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    found = states(ROOT)
    assert set(found) == {"unchanged", "not written"}
    given = [name for name in found["unchanged"] if name not in FILES]
    assert given == ["dataloader_current_shard_"]
    assert diff.main(["A0"]) == 1
    said = f"\nfunctions: 1 unchanged, {len(found['not written'])} not written\n"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda path: path.name)
def test_a_variant_differs_in_its_own_files_alone(variant: Path, lay: Lay) -> None:
    own = {path.name: path.read_bytes() for path in variant.iterdir()}
    rows, _ = compare(FILES, lay(own))
    for row in rows:
        if Path(row.file).name not in own:
            assert row.state == "unchanged", row.name
        if row.name == "dataloader_current_shard_":  # given, but not asked for
            assert row.state in ("unchanged", "missing")
        else:
            assert row.state in ("unchanged", "changed", "extra"), row.name
    assert any(row.state == "changed" for row in rows)


def test_helpers_are_extra(lay: Lay) -> None:
    variant = REFERENCE / "variants" / "A0" / "wikipedia-macros" / "rand.h"
    student = lay({"rand.h": variant.read_bytes(), "mine.h": "int twice(int a) { return 2 * a; }"})
    assert states(student)["extra"] == ["mix", "temper", "pair", "twice"]


# ---------------------------------------------------------------- what is no difference


def shuffled(source: bytes, chance: random.Random) -> bytes:
    """The functions in another order."""
    found = list(functions(source).values())
    bodies = [source[one.start : one.end] for one in found]
    chance.shuffle(bodies)
    text, at = b"", 0
    for one, body in zip(found, bodies, strict=True):
        text += source[at : one.start] + body
        at = one.end
    return text + source[at:]


def uncommented(source: bytes) -> str:
    for node in reversed(list(walk(parse(source)))):
        if node.type == "comment":
            source = source[: node.start_byte] + source[node.end_byte :]
    return source.decode()


def reformatted(text: str) -> str:
    """Code without comments, with comments and line ends around most of its punctuation."""
    done = []
    for line in text.splitlines():
        if line.startswith("#"):
            name, _, value = line.rpartition(" ")
            done.append(f"  {name} \\\n {value}  // directive" if name else line)
            continue
        parts = re.split(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""", line.strip())
        parts[::2] = [re.sub(r"([(){},;])", r" /* } */\n\t\1  // {\n", p) for p in parts[::2]]
        done.append("".join(parts))
    return "\r\n".join(done) + "\n"


def test_order_comments_and_formatting_are_no_difference(lay: Lay) -> None:
    chance = random.Random(1)
    files = {}
    for name in FILES:
        source = (REFERENCE / name).read_bytes()
        text = reformatted(uncommented(shuffled(source, chance)))
        assert list(functions(text.encode())) != list(functions(source))
        assert text.count("\n") > 3 * source.count(b"\n")
        files[Path(name).name] = text
    assert set(states(lay(files))) == {"unchanged"}


@pytest.mark.parametrize("style", ["GNU", "WebKit"])
def test_another_house_style_is_no_difference(lay: Lay, style: str) -> None:
    tool = shutil.which("clang-format", path=Path(sys.executable).parent)
    if tool is None:
        pytest.skip("clang-format is not installed")
    keep = "SortIncludes: Never, BreakStringLiterals: false"
    options = f"--style={{BasedOnStyle: {style}, ColumnLimit: 40, {keep}}}"
    files = {}
    for name in FILES:
        command = [tool, options, str(REFERENCE / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        files[Path(name).name] = done.stdout
    assert set(states(lay(files))) == {"unchanged"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = b+c;", "a  =  b + c ;"),
        ("a/**/b", "a b"),
        ("if (a) { b; } else { c; }", "if (a)\n{\n  b;\n}\nelse\n{\n  c;\n}\n"),
        ("#define A 1 // one\nint a;", "#define A \\\n  1\n\n/* then */ int a;"),
        ("int a;\r\nint b;\r\n", "int a; int b;"),
        ("int a[] = {1, 2}; // {\n", "int a[] =\n{\n  1,\n  2\n};"),
        ("  # ifdef A\n#endif", "#ifdef A\n#endif\n"),
        ("for (i = 0; i < n; i++) a;", "for (i = 0;\n     i < n;\n     i++)\n  a;"),
    ],
)
def test_white_space_and_comments_do_not_count(one: str, other: str) -> None:
    assert [line.tokens for line in lines(one)] == [line.tokens for line in lines(other)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a - -b", "a--b"),
        ("a b", "ab"),
        ('"a  b"', '"a b"'),
        ('"/* a */"', '""'),
        ("#define A 1\n2", "#define A 1 2"),
        ("1.0f", "1.0 f"),
        ("x = y / *z;", "x = y /*z;*/ ;"),
        ("a >> b", "a > > b"),
        ("é", "è"),
    ],
)
def test_everything_else_counts(one: str, other: str) -> None:
    assert [line.tokens for line in lines(one)] != [line.tokens for line in lines(other)]


def test_one_statement_a_line() -> None:
    text = """typedef struct { int a; } S; int f(void) { S s = {.a = 1};
    int b = (union { int c; char d; }){1}.d;
    for (int i = 0; i < 2; i++) { switch (i) { case 0: break; default: g((S){1}, "a;{"); } }
    do { s.a--; } while (s.a > 0);
    if (s.a) { return 1; } else return (int[]){1, 2}[0];
    #ifdef A
    end: return 0;
    #endif
    return f(1,
    #ifdef B
    2);
    #endif
    }"""
    shown = ["    " * line.depth + "".join(line.pieces) for line in lines(text)]
    assert (
        "\n".join(shown)
        == """typedef struct {
    int a;
}
S;
int f(void) {
    S s = {.a = 1};
    int b = (union { int c; char d; }){1}.d;
    for (int i = 0; i < 2; i++) {
        switch (i) {
            case 0:
            break;
            default:
            g((S){1}, "a;{");
        }
    }
    do {
        s.a--;
    }
    while (s.a > 0);
    if (s.a) {
        return 1;
    } else return (int[]){1, 2}[0];
#ifdef A
    end:
    return 0;
#endif
    return f(1,
#ifdef B
    2);
#endif
}"""
    )


# ---------------------------------------------------------------- what is one


@pytest.mark.parametrize(
    ("file", "find", "by", "name"),
    [
        ("rand.h", "y ^= y >> 11;", "y ^= y >> 12;", "randint32"),
        ("rand.h", "high = randint32", "high = (randint32)", "randint64"),
        ("tokenizer.h", 'printf("%s", piece)', 'printf("%s ", piece)', "safe_printf"),
        ("sampler.h", "running > goal", "running >= goal", "sample_softmax"),
        ("dataloader.h", "int best = -1;", "int best = - -1;", "evalloader_stat_losses"),
    ],
)
def test_one_token_is_found_in_one_function(
    lay: Lay, file: str, find: str, by: str, name: str
) -> None:
    text = (REFERENCE / "llmc" / file).read_text()
    rows, _ = compare(FILES, lay({file: replaced(text, find, by)}))
    (row,) = (row for row in rows if row.state != "unchanged")
    assert (row.name, row.state) == (name, "changed")
    assert row.alike is not None and 90 <= row.alike < 100


def test_a_difference_outside_functions(lay: Lay, capsys: pytest.CaptureFixture[str]) -> None:
    student = lay({"rand.h": replaced(RAND, "UMASK 0x80000000u", "UMASK 0x40000000u")})
    assert states(student)["changed"] == ["llmc/rand.h"]
    assert diff.main(["A0", "--student", str(student)]) == 1
    short = capsys.readouterr().out
    assert "0x40000000u" not in short and "\nname a file (rand.h) to see" in short
    assert diff.main(["A0", "rand.h", "--student", str(student)]) == 1
    assert "+   26 #define UMASK 0x40000000u\n" in capsys.readouterr().out


def test_a_function_in_another_file(lay: Lay, capsys: pytest.CaptureFixture[str]) -> None:
    rest, one = without(RAND, "randint64")
    (row,) = choose(compare(FILES, lay({"rand.h": rest, "mine.h": f"\n{one}"}))[0], [], "randint64")
    assert row.state == "unchanged" and row.file == "llmc/rand.h"
    assert row.theirs is not None and (row.theirs.file, row.theirs.line) == ("llmc/mine.h", 2)


def test_its_own_file_is_looked_at_first(lay: Lay) -> None:
    wrong = replaced(without(RAND, "randint64")[1], "high << 32", "high << 31")
    assert set(states(lay({"adamw.h": wrong}))) == {"unchanged"}


def test_helpers_of_other_assignments_are_not_extra(lay: Lay) -> None:
    assert set(states(lay({"layers.h": "int helper(void) { return 1; }"}))) == {"unchanged"}


def test_a_byte_order_mark_is_no_difference(lay: Lay) -> None:
    assert set(states(lay({"rand.h": "\ufeff" + RAND}))) == {"unchanged"}


def test_where_a_moved_function_is_said(lay: Lay, capsys: pytest.CaptureFixture[str]) -> None:
    rest, one = without(RAND, "randint64")
    assert diff.main(["A0", "--student", str(lay({"rand.h": rest, "utils.h": one}))]) == 0
    assert "is in llmc/utils.h" in capsys.readouterr().out


def test_a_function_that_is_missing(lay: Lay, capsys: pytest.CaptureFixture[str]) -> None:
    student = lay({"rand.h": without(RAND, "randint64")[0]})
    assert states(student)["missing"] == ["randint64"]
    assert diff.main(["A0", "randint64", "--student", str(student)]) == 1
    out = capsys.readouterr().out
    assert "functions: 1 missing" in out and "student" not in out
    assert "-  105     unsigned long long high = randint32(state);\n" in out


def test_a_file_that_is_missing(lay: Lay, capsys: pytest.CaptureFixture[str]) -> None:
    student = lay({"sampler.h": None})
    names = ["random_u32", "random_f32", "sample_softmax", "llmc/sampler.h"]
    assert states(student)["missing"] == names
    assert diff.main(["A0", "--student", str(student)]) == 1
    assert "llmc/sampler.h: not there" in capsys.readouterr().out


def test_a_function_begun_beside_its_stub_is_changed(lay: Lay) -> None:
    stub = (ROOT / "llmc" / "sampler.h").read_text()
    found = states(lay({"sampler.h": replaced(stub, 'TODO("A0: random_f32")', "return 1")}))
    assert found["changed"] == ["random_f32"]
    assert found["not written"] == ["random_u32", "sample_softmax"]


# ---------------------------------------------------------------- names


def chosen(name: str) -> list[str]:
    rows, _ = compare(FILES, REFERENCE)
    return [row.name for row in choose(rows, [item for _, item in A0.items()], name)]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("normal_", ["normal_"]),
        ("normal_fill", ["normal_fill"]),
        ("rando", None),
        ("random_p", ["random_permutation"]),
        ("tokenizer", ["tokenizer_init", "tokenizer_decode", "tokenizer_free"]),
        ("tokenizer_d", ["tokenizer_decode"]),
        ("cle", ["tokenizer_free", "dataloader_free", "evalloader_free"]),
        ("sample_softmax", ["sample_softmax"]),
        ("sampler.h", ["random_u32", "random_f32", "sample_softmax", OUTSIDE]),
        ("llmc/sampler.h", ["random_u32", "random_f32", "sample_softmax", OUTSIDE]),
        ("sampler", ["random_u32", "random_f32", "sample_softmax", OUTSIDE]),
        ("", None),
        ("(outside", None),
        ("nobody", None),
    ],
)
def test_a_name_means(name: str, wanted: list[str] | None) -> None:
    if wanted is None:
        with pytest.raises(Usage):
            chosen(name)
    else:
        assert chosen(name) == wanted


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["A9"], "no assignment A9; there is A0"),
        (["A0", "nobody"], "nothing is called nobody; there is manual_seed, next_state, "),
        (["A0", "randfloat"], "randfloat may be randfloat32, randfloat64"),
        (["A0", "--student", "/dev/null"], "/dev/null: no folder llmc in it"),
        (["A0", "--student", "a\x1b[31mb"], "a?[31mb: no folder llmc in it"),
    ],
)
def test_usage_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("grade: ") and err.count("\n") == 1
    assert words in err


def test_it_runs_by_itself() -> None:
    command = [sys.executable, "-m", "staff.diff", "A0", "--student", "reference", "randint32"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "= rand.h        randint32                     unchanged" in done.stdout


# ---------------------------------------------------------------- how it looks

WRONG = replaced(RAND, "y ^= y >> 11;", "y ^= y >> 12;  // \x1b[2J")
LONG = "if (state->MATRIX_A[0] != 0x0u || state->MATRIX_A[1] != 0x9908b0dfu)"
UNIFIED = f"""
randint32   reference llmc/rand.h:83, student llmc/rand.h:83
       ... 2 the same
    89     {LONG} manual_seed(state, 5489);
    90     if (--state->left_ <= 0) next_state(state);
    91     unsigned int y = state->state_[state->next_++];
-   92     y ^= y >> 11;
+   92     y ^= y >> 12;
    93     y ^= (y << 7) & 0x9d2c5680u;
    94     y ^= (y << 15) & 0xefc60000u;
    95     y ^= y >> 18;
       ... 2 the same
"""


def test_a_pipe_gets_whole_lines(lay: Lay, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff.main(["A0", "randint32", "--student", str(lay({"rand.h": WRONG}))]) == 1
    out = capsys.readouterr().out
    head, _, shown = out.partition("functions: 1 changed\n")
    assert re.search(r"\n~ rand\.h +randint32 +changed +11/11 +99%\n", head)
    assert shown == UNIFIED


def uncoloured(text: str) -> list[str]:
    return re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()


@pytest.mark.parametrize(
    ("columns", "unified"), [(80, False), (119, False), (120, True), (120, False), (200, False)]
)
def test_lines_fit_the_terminal(
    lay: Lay,
    terminal: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
    columns: int,
    unified: bool,
) -> None:
    terminal(columns)
    variant = REFERENCE / "variants" / "A0" / "tgmath-blocks" / "rand.h"
    student = lay({"rand.h": variant.read_bytes()})
    diff.main(["A0", "--student", str(student), *(["--unified"] * unified)])
    out = uncoloured(capsys.readouterr().out)
    assert max(map(len, out)) <= columns
    assert any(line.startswith("-   39 static") for line in out) == (columns < WIDE or unified)


@pytest.mark.parametrize("columns", [120, 140])
def test_a_wide_terminal_shows_both_side_by_side(
    lay: Lay, terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    terminal(columns)
    extra = replaced(WRONG, "if (state == NULL) return 0;", "state->left_ += 0;")
    diff.main(["A0", "randint32", "--student", str(lay({"rand.h": extra}))])
    out = uncoloured(capsys.readouterr().out)
    assert max(map(len, out)) <= columns
    rows = [" ".join(line.split()) for line in out]
    assert "92 y ^= y >> 11; | 92 y ^= y >> 12;" in rows
    assert "88 if (state == NULL) return 0; <" in rows
    assert "> 88 state->left_ += 0;" in rows
    assert "96 return y; 96 return y;" in rows


def test_colour(
    lay: Lay,
    terminal: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal(80)
    arguments = ["A0", "randint32", "--student", str(lay({"rand.h": WRONG}))]
    diff.main(arguments)
    coloured = capsys.readouterr().out
    assert "\x1b[33m-   92" in coloured and "\x1b[34m+   92" in coloured
    assert re.search(r"-   92 .*\x1b\[1;4(;33)?m11", coloured)
    assert re.search(r"\+   92 .*\x1b\[1;4(;34)?m12", coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    diff.main(arguments)
    plain = capsys.readouterr().out
    assert not re.search(r"\x1b\[(\d+;)*3\d", plain)
    assert uncoloured(plain) == uncoloured(coloured)


# ---------------------------------------------------------------- alike, aligned


def plainly_shared(a: str, b: str) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        above, row = row, [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
    return row[-1]


def test_shared_is_the_longest_common_subsequence() -> None:
    chance = random.Random(2)
    for _ in range(300):
        a, b = ("".join(chance.choices("abc", k=chance.randrange(12))) for _ in range(2))
        assert shared(list(a), list(b)) == plainly_shared(a, b), (a, b)


def test_aligning_loses_no_line_and_keeps_the_order() -> None:
    chance = random.Random(3)
    ours = lines((REFERENCE / "llmc" / "rand.h").read_text())[20:60]
    for _ in range(5):
        theirs = [line for line in ours if chance.random() < 0.8]
        theirs[chance.randrange(len(theirs))] = lines("a = b;")[0]
        pairs = align(ours, theirs)
        assert [our for our, _ in pairs if our is not None] == ours
        assert [their for _, their in pairs if their is not None] == theirs
        same = [our for our, their in pairs if our is not None and our is their]
        assert len(same) >= len(theirs) - 2


def test_braces_are_aligned_by_their_depth() -> None:
    ours, theirs = lines("void f(void) { if (a) { b; } }"), lines("void f(void) { c(); }")
    assert [(our, their) for our, their in align(ours, theirs) if our and their] == [
        (ours[0], theirs[0]),
        (ours[-1], theirs[-1]),
    ]


# ---------------------------------------------------------------- hostile files

LARGE = 1 << 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        b"(" * LARGE,
        b"void normal_(float *data) {" + b"{" * (LARGE // 2 - 20) + b"}" * (LARGE // 2 - 20),
        b"void normal_(float *data) {" + b";" * (LARGE - 50) + b"}",
        b"void normal_(float *data) { return " + b"a+" * (LARGE // 2 - 50) + b"a; }",
        random.Random(4).randbytes(LARGE),
    ],
    ids=["parentheses", "blocks", "statements", "sum", "noise"],
)
def test_a_hostile_file_is_compared(
    lay: Lay, source: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(source) <= LARGE
    started = time.process_time()
    assert diff.main(["A0", "--student", str(lay({"rand.h": source}))]) == 1
    assert time.process_time() - started < 60
    out = capsys.readouterr().out
    assert re.search(r"functions: 23 unchanged, .*\d+ missing", out)
    assert len(out) < 100_000
    assert all(c.isprintable() or c == "\n" for c in out)


@pytest.mark.parametrize(
    "source", [b"", b"\0" * 100, b"\x1b[2J\x07", b"\xff\xfe\x00", b"not C at all: \xc3\xa9\n"]
)
def test_what_is_no_c_has_no_functions(
    lay: Lay, source: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    student = lay({"sampler.h": source})
    assert states(student)["missing"] == ["random_u32", "random_f32", "sample_softmax"]
    assert diff.main(["A0", "sampler.h", "--student", str(student)]) == 1
    out = capsys.readouterr().out
    assert out.isascii() and all(c.isprintable() or c == "\n" for c in out)


def test_code_that_does_not_parse_is_said_and_compared(
    lay: Lay, capsys: pytest.CaptureFixture[str]
) -> None:
    text = replaced(RAND, "y ^= y >> 11;", "y ^= (y >> 11;")
    assert diff.main(["A0", "--student", str(lay({"rand.h": text}))]) == 1
    out = capsys.readouterr().out
    assert "llmc/rand.h:92: here the parser loses its way" in out
    assert re.search(r"^functions: \d+ unchanged, 1 changed$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("letter", "shown"), [("\N{CYRILLIC SMALL LETTER U}", "\\u0443"), ("\x02", "\\x02")]
)
def test_letters_that_look_alike_are_told_apart(
    lay: Lay, capsys: pytest.CaptureFixture[str], letter: str, shown: str
) -> None:
    text = replaced(RAND, "y ^= y >> 11;", f"y ^= {letter} >> 11;")
    assert diff.main(["A0", "randint32", "--student", str(lay({"rand.h": text}))]) == 1
    assert f"+   92     y ^= {shown} >> 11;\n" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_what_is_no_file_is_not_opened(lay: Lay) -> None:
    student = lay({"rand.h": None, "sampler.h": None})
    os.mkfifo(student / "llmc" / "rand.h")
    (student / "llmc" / "sampler.h").symlink_to("/dev/zero")
    remarks = compare(FILES, student)[1]
    assert [remark.partition(":")[0] for remark in remarks] == ["llmc/rand.h", "llmc/sampler.h"]


# ---------------------------------------------------------------- staff/syntax.py


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (b"int f(void) { return 1; }", ["f"]),
        (b"int (f)(void) { return 1; }", ["f"]),
        (b"int (*f(int a))(void) { return 0; }", ["f"]),
        (b"char f(a) int a; { return 0; }", ["f"]),
        (b"int f(void);", []),
        (b"#define f(x) { x }\n", []),
        (b"#if A\nint f(void) { return 1; }\n#else\nint f(void) { return 2; }\n#endif", ["f"]),
    ],
)
def test_functions_are_found(source: bytes, names: list[str]) -> None:
    assert list(functions(source)) == names


def test_the_first_line_that_is_not_read() -> None:
    assert unread(parse(b"int a;\nint f(void) {}\n")) is None
    assert unread(parse(b"int a;\nint f(void) { return (1; }\n")) == 2
