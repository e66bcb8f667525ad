"""Mutates the reference mechanically and counts what the rows notice: staff.mutants --auto.

A mutant is one small edit inside a solution region. Those that do not compile, that compile to the
same code as the reference or as another mutant, or that only change a message are left out; the
rest is graded, or of each half a sample. A mutant is killed if any item loses points; the topmost
of these items should be the mutated function's, for there the student is told to start.

The edits of C are made here, those of Python in staff/auto_python.py.

A survivor either shows a hole in a check, or behaves as the reference does wherever it may be
asked: then reference/mutants/ASSIGNMENT.survivors.toml says why.

    [[survivor]]
    function = "random_permutation"
    before = "for (int i = numel - 1; i > 0; i--) {"         # the lines as they are
    after = "for (int i = numel - 1; i >= 0; i--) {"         # and as the mutant has them
    reason = "..."
"""

from __future__ import annotations

import itertools
import math
import os
import random
import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from autograder import rubric
from autograder.build import toolchain
from autograder.files import digest, scratch_folder
from autograder.rubric import ROOT, Part, Rubric
from autograder.run import REFERENCE
from staff import auto_python, syntax
from staff.auto_python import Edit
from staff.strip import MARK
from staff.trees import BUILD, Tree, grade_all, lost

SAMPLE = 300  # graded at most
SEED = 137  # of the sample
WANTED = 0.95  # of the graded killed, and of the killed with their own row on top
FLAGS = ("-std=gnu11", "-O2", "-w", "-ffp-contract=off")

Key = tuple[str, str, str]  # function, before, after


@dataclass(frozen=True)
class Mutant:
    """An edit of one of llmc/'s files. `before` and `after`: the lines it changes, on one line."""

    file: str
    line: int
    function: str
    kind: str
    edit: Edit
    before: str
    after: str

    @property
    def key(self) -> Key:
        """What names it in the list of survivors, wherever in the file the function stands."""
        return self.function, self.before, self.after

    def apply(self, source: bytes) -> bytes:
        start, end, text = self.edit
        return source[:start] + text + source[end:]


# ---------------------------------------------------------------- kinds of edits

OPERATORS = {
    "binary_expression": {
        **{"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<"},
        **{"&": "|", "|": "&", "^": "|", "&&": "||", "||": "&&"},
    },
    "assignment_expression": {
        **{"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "%=": "/=", "<<=": ">>=", ">>=": "<<="},
        **{"&=": "|=", "|=": "&=", "^=": "|="},
    },
    "update_expression": {"++": "--", "--": "++"},
    "unary_expression": {"-": "+", "!": "", "~": ""},
}
ZERO = re.compile(r"0(x0+|\.0*)?[uUlLfF]*|'\\0'")
BOUNDARIES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
STATEMENTS = (
    *("expression_statement", "return_statement", "break_statement", "continue_statement"),
    *("if_statement", "for_statement", "while_statement", "do_statement"),
)
CONDITIONAL = ("if_statement", "for_statement", "while_statement", "do_statement")


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


def _instead(node: Node, text: str) -> Edit:
    return node.start_byte, node.end_byte, text.encode()


def _exchanged(node: Node, table: Mapping[str, str]) -> Iterator[Edit]:
    """The node's operator, replaced by what the table has for it."""
    operator = node.child_by_field_name("operator")
    if operator is not None and _text(operator) in table:
        yield _instead(operator, table[_text(operator)])


def operators(node: Node) -> Iterator[Edit]:
    """Another operator of the same form."""
    yield from _exchanged(node, OPERATORS.get(node.type, {}))


def _is_constant(node: Node) -> bool:
    """A number, a character, or a name in capitals, as macros have."""
    text = _text(node)
    named = node.type == "identifier" and text.isupper() and len(text) > 1
    return named or node.type in ("number_literal", "char_literal")


def constants(node: Node) -> Iterator[Edit]:
    """0 for a constant, 1 for 0."""
    if _is_constant(node):
        yield _instead(node, "1" if ZERO.fullmatch(_text(node)) else "0")


def off_by_one(node: Node) -> Iterator[Edit]:
    """A constant one higher or lower; a comparison that takes in its bound, or no longer does.

    An array only becomes smaller: nothing can be seen of an element that nobody uses.
    """
    if _is_constant(node):
        if node.parent is None or node.parent.type != "array_declarator":
            yield _instead(node, f"({_text(node)} + 1)")
        yield _instead(node, f"({_text(node)} - 1)")
    if node.type == "binary_expression":
        yield from _exchanged(node, BOUNDARIES)


def dropped_statements(node: Node) -> Iterator[Edit]:
    """Nothing in a statement's place."""
    if node.type in STATEMENTS:
        yield _instead(node, ";")


def swapped_arguments(node: Node) -> Iterator[Edit]:
    """Two neighbours in a call, exchanged."""
    if node.type == "call_expression":
        arguments = node.child_by_field_name("arguments")
        assert arguments is not None, "a call has them"
        for first, second in itertools.pairwise(arguments.named_children):
            if _text(first) != _text(second):
                text = f"{_text(second)}, {_text(first)}"
                yield first.start_byte, second.end_byte, text.encode()


def negated_conditions(node: Node) -> Iterator[Edit]:
    """The opposite of a condition, and of each side of && and ||."""
    found: list[Node | None] = []
    if node.type in (*CONDITIONAL, "conditional_expression"):
        found.append(node.child_by_field_name("condition"))
    if _text(node.child_by_field_name("operator")) in ("&&", "||"):
        found += [node.child_by_field_name("left"), node.child_by_field_name("right")]
    for condition in found:
        if condition is not None and condition.type == "parenthesized_expression":
            condition = condition.named_children[0]
        if condition is not None:
            yield _instead(condition, f"!({_text(condition)})")


KINDS: dict[str, Callable[[Node], Iterator[Edit]]] = {
    "operator": operators,
    "constant": constants,
    "off by one": off_by_one,
    "dropped statement": dropped_statements,
    "swapped arguments": swapped_arguments,
    "negated condition": negated_conditions,
}


# ---------------------------------------------------------------- all mutants of a file


def mutants(source: bytes, file: str, stage: str = "") -> list[Mutant]:
    """All mutants of one file, in its order; edits that give the same text are one mutant. A
    `stage`, as A1, leaves out what is written in others."""
    made = auto_python.edits if file.endswith(".py") else edits
    found: dict[bytes, Mutant] = {}
    for function, kind, edit in made(source, regions(source, stage)):
        mutant = _mutant(source, file, function, kind, edit)
        found.setdefault(mutant.apply(source), mutant)
    return list(found.values())


def edits(source: bytes, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[str, str, Edit]]:
    """(function, kind, edit) of each edit of C within one of `spans`."""
    for function in syntax.functions(source).values():
        for node in acting(function.node):
            if not any(start <= node.start_byte and node.end_byte <= end for start, end in spans):
                continue
            for kind, made in KINDS.items():
                for edit in made(node):
                    yield function.name, kind, edit


def regions(source: bytes, stage: str = "") -> list[tuple[int, int]]:
    """The bytes [start, end) of each solution region, between its markers; of one stage, where its
    name is given: the TODO above a region says whose it is."""
    spans, opened, at, todo = [], 0, 0, b""
    for line in source.splitlines(keepends=True):
        mark = MARK.match(line.decode().rstrip("\n"))
        todo = line if b"TODO (" in line else todo
        if mark is not None and mark[3] == "BEGIN":
            opened = at + len(line)
        elif mark is not None and (not stage or f"TODO ({stage})".encode() in todo):
            spans.append((opened, at))
        at += len(line)
    return spans


def acting(node: Node) -> Iterator[Node]:
    """The node and all below it, without messages; a statement that calls die() is none."""
    if _is_message(node):
        return
    yield node
    for child in node.children:
        yield from acting(child)


def _is_message(node: Node) -> bool:
    """What die() is called with, or a statement that writes to stderr and does nothing else."""
    if node.type == "expression_statement" and node.named_children:
        arguments = node.named_children[0].child_by_field_name("arguments")
        return arguments is not None and "stderr" in map(_text, arguments.named_children)
    return node.type == "call_expression" and _text(node.child_by_field_name("function")) == "die"


def _mutant(source: bytes, file: str, function: str, kind: str, edit: Edit) -> Mutant:
    start, end, text = edit
    first = source.rfind(b"\n", 0, start) + 1
    last = source.find(b"\n", end)
    before, after = source[first:last], source[first:start] + text + source[end:last]
    line = source.count(b"\n", 0, start) + 1
    return Mutant(file, line, function, kind, edit, _one_line(before), _one_line(after))


def _one_line(text: bytes | str) -> str:
    return " ".join((text.decode() if isinstance(text, bytes) else text).split())


# ---------------------------------------------------------------- those that differ


def object_code(file: str, content: bytes) -> bytes | None:
    """What `content` as llmc/`file` compiles to at -O2, every function of it; None if it does not.

    A static function that nobody calls leaves no code: a table of their addresses keeps all.
    """
    table = ", ".join(f"(void *){name}" for name in syntax.functions(content))
    with scratch_folder(BUILD) as folder:
        (folder / "llmc").mkdir()
        (folder / "llmc" / file).write_bytes(content)
        (folder / "all.c").write_text(f'#include "llmc/{file}"\nvoid *all[] = {{{table}}};\n')
        places = (f"-I{folder}", f"-I{REFERENCE / 'llmc'}")
        command = [toolchain(BUILD).compiler, *FLAGS, *places, "-c", "all.c", "-o", "all.o"]
        made = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        return (folder / "all.o").read_bytes() if made.returncode == 0 else None


def sort_out(sources: Mapping[str, bytes], made: Sequence[Mutant]) -> dict[str, list[Mutant]]:
    """The mutants under `broken` (no code), `same` (the reference's), `twice` (another's) and
    `distinct`."""
    seen = {_code(name, content): "same" for name, content in sources.items()} | {None: "broken"}
    sorted_out: dict[str, list[Mutant]] = {"broken": [], "same": [], "twice": [], "distinct": []}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = pool.map(lambda m: _code(m.file, m.apply(sources[m.file])), made)
        for number, (mutant, code) in enumerate(zip(made, codes, strict=True), 1):
            sorted_out[seen.get(code, "distinct")].append(mutant)
            seen.setdefault(code, "twice")
            _progress("compiled", number, len(made))
    return sorted_out


def _code(file: str, content: bytes) -> str | None:
    is_python = file.endswith(".py")
    code = auto_python.byte_code(content) if is_python else object_code(file, content)
    return None if code is None else digest(file, code)


def _progress(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{what} {done} of {of} ", end="\n" if done == of else "", file=sys.stderr)


# ---------------------------------------------------------------- what came of them


@dataclass(frozen=True)
class Outcome:
    """A graded mutant: the items it lost, in the rubric's order, those of its function, and the
    assignment whose they are."""

    mutant: Mutant
    lost: tuple[str, ...]
    own: tuple[str, ...]
    stage: str

    @property
    def killed(self) -> bool:
        return bool(self.lost)

    @property
    def on_top(self) -> bool:
        """Whether the topmost of what it lost is its function's."""
        return self.killed and self.lost[0] in self.own


def own_items(part: Part, mutant: Mutant) -> tuple[str, ...]:
    """The items that name the mutated function; for one that none names, those of other methods of
    its class, else its file's."""
    named = tuple(item.id for item in part.items if mutant.function in item.functions)
    return named or _items_of_class(part, mutant.function) or _items_of(part, mutant)


def _items_of_class(part: Part, method: str) -> tuple[str, ...]:
    """The items that name a method of the same class; none for a plain function."""
    owner = method.rpartition(".")[0]
    methods = (
        item.id for item in part.items for name in item.functions if owner in name.split(".")
    )
    return tuple(dict.fromkeys(methods)) if owner else ()


def _items_of(part: Part, mutant: Mutant) -> tuple[str, ...]:
    """The items of the mutant's file."""
    return tuple(i.id for i in part.items if f"llmc/{mutant.file}" in part.files_of(i))


def grade(
    loaded: Rubric, part: Part, sources: Mapping[str, bytes], chosen: Sequence[Mutant]
) -> list[Outcome]:
    """Grades the mutants in parallel, on the public seed. In Python only in the rows of their own
    file: each row has its processes, and a file's own rows should notice what is wrong in it."""
    trees = []
    for mutant in chosen:
        names = _items_of(part, mutant) if part.id == "python" else [i.id for i in part.items]
        files = {mutant.file: mutant.apply(sources[mutant.file])}
        trees.append(Tree("auto", files, items=tuple(names)))
    outcomes = []
    for mutant, result in zip(chosen, grade_all(loaded.assignment, trees), strict=True):
        own = own_items(part, mutant)
        outcomes.append(Outcome(mutant, tuple(lost(result)), own, loaded.assignment))
        _progress("graded", len(outcomes), len(chosen))
    return outcomes


def grade_by_stages(
    assignment: str, half: str, sources: Mapping[str, bytes], chosen: Sequence[Mutant]
) -> list[Outcome]:
    """Grades by the assignment's rows, and what survives these by those of later stages that ask
    for the same files: only there is to be seen what a forward pass keeps for its backward."""
    outcomes: dict[Mutant, Outcome] = {}
    alive = list(chosen)
    for loaded, part in _stages(assignment, half):
        here = [mutant for mutant in alive if f"llmc/{mutant.file}" in part.files]
        outcomes |= {o.mutant: o for o in (grade(loaded, part, sources, here) if here else [])}
        alive = [mutant for mutant in here if not outcomes[mutant].killed]
    return [outcomes[mutant] for mutant in chosen]


def _stages(assignment: str, half: str) -> Iterator[tuple[Rubric, Part]]:
    """The half's table in the assignment and in each later one."""
    for stage in rubric.assignments():
        loaded = rubric.load(stage)
        for part in loaded.parts:
            if part.id == half and stage >= assignment:
                yield loaded, part


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share (Wilson 1927); (0, 1) of nothing."""
    if of == 0:
        return 0.0, 1.0
    z = 1.959964  # of the normal distribution, 95 % lie within
    share, spread = hits / of, z * z / of
    middle = share + spread / 2
    half = z * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return (middle - half) / (1 + spread), (middle + half) / (1 + spread)


def reasons(path: Path) -> dict[Key, str]:
    """Why known survivors survive. Raises ValueError for an entry without a reason, or a double."""
    found: dict[Key, str] = {}
    raw = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for entry in raw.get("survivor", []):
        key = entry["function"], _one_line(entry["before"]), _one_line(entry["after"])
        if key in found or not entry["reason"].strip():
            raise ValueError(f"{path.name}: {key}: two entries, or no reason")
        found[key] = _one_line(entry["reason"])
    return found


def stale(
    known: Mapping[Key, str], made: Sequence[Mutant], outcomes: Sequence[Outcome]
) -> dict[Key, str]:
    """Entries that no longer hold → why: there is no such mutant, or it is killed."""
    wrong = {key: "no such mutant" for key in known if key not in {m.key for m in made}}
    killed = {outcome.mutant.key for outcome in outcomes if outcome.killed}
    alive = {outcome.mutant.key for outcome in outcomes if not outcome.killed}
    return wrong | {key: "it is killed" for key in known if key in killed - alive}


# ---------------------------------------------------------------- the report


def _table(sorted_out: Mapping[str, Sequence[Mutant]], outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each kind, and one for all."""
    columns = {name: Counter(m.kind for m in part) for name, part in sorted_out.items()}
    graded = Counter(outcome.mutant.kind for outcome in outcomes)
    killed = Counter(outcome.mutant.kind for outcome in outcomes if outcome.killed)
    numbers = [sum(columns.values(), Counter()), *columns.values(), graded, killed]
    heads = ("made", "no code", "same code", "twice", "distinct", "graded", "killed")
    lines = [" " * 18 + "".join(f"{head:>10}" for head in (*heads, "%"))]
    for kind in (*KINDS, "all"):
        row = [part.total() if kind == "all" else part[kind] for part in numbers]
        share = f"{100 * row[-1] / row[-2]:.1f}" if row[-2] else "-"
        lines.append(f"{kind:18}" + "".join(f"{cell:>10}" for cell in (*row, share)))
    return lines


def _share(what: str, hits: int, of: int, sampled: bool) -> str:
    low, high = wilson(hits, of)
    interval = f" (95 % confidence: {100 * low:.1f} to {100 * high:.1f})" if sampled else ""
    percent = f"{100 * hits / of:.1f} %" if of else "-"
    return f"{what}: {hits} of {of}, {percent}{interval}; wanted {100 * WANTED:.0f} %"


def _by_stage(killed: Sequence[Outcome]) -> list[str]:
    """Whose rows killed how many, where it was not one assignment's alone."""
    stages = sorted(Counter(outcome.stage for outcome in killed).items())
    return [f"  by rows of {stage}: {n}" for stage, n in stages] if len(stages) > 1 else []


def _described(mutant: Mutant, note: str) -> str:
    return (
        f"  {mutant.file}:{mutant.line} {mutant.function}, {mutant.kind}: {note}\n"
        f"    {mutant.before}\n -> {mutant.after}"
    )


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *lines] if lines else []


def main(assignment: str, halves: Sequence[str]) -> int:
    """Mutates, grades, prints, each half by itself. Returns 0 if in each enough is killed, enough
    on top, and the rest explained."""
    loaded = rubric.load(assignment)
    sources = {part.id: _sources(part) for part in loaded.parts}
    made = {half: _all(files, assignment) for half, files in sources.items()}
    known = reasons(ROOT / "reference" / "mutants" / f"{assignment}.survivors.toml")
    fine = []
    for part in loaded.parts:
        if part.id in halves:
            started = time.monotonic()
            sorted_out = sort_out(sources[part.id], made[part.id])
            chosen = sample(sorted_out["distinct"])
            outcomes = grade_by_stages(assignment, part.id, sources[part.id], chosen)
            print(f"{assignment} {part.id}")
            every = [mutant for half in made.values() for mutant in half]
            fine.append(report(every, sorted_out, outcomes, known))
            print(f"{time.monotonic() - started:.0f} seconds\n")
    return 0 if all(fine) else 1


def _sources(part: Part) -> dict[str, bytes]:
    names = [Path(file).name for file in part.files]
    return {name: (REFERENCE / "llmc" / name).read_bytes() for name in names}


def _all(sources: Mapping[str, bytes], stage: str) -> list[Mutant]:
    return [m for name, source in sources.items() for m in mutants(source, name, stage)]


def sample(distinct: Sequence[Mutant]) -> list[Mutant]:
    """SAMPLE of them, always the same, in their order; all, where there are no more."""
    places = range(len(distinct))
    if len(distinct) > SAMPLE:
        return [distinct[i] for i in sorted(random.Random(SEED).sample(places, SAMPLE))]
    return list(distinct)


def report(
    made: Sequence[Mutant],
    sorted_out: Mapping[str, Sequence[Mutant]],
    outcomes: Sequence[Outcome],
    known: Mapping[Key, str],
) -> bool:
    """Prints what came of it; returns whether all is as wanted."""
    killed = [outcome for outcome in outcomes if outcome.killed]
    survivors = [outcome.mutant for outcome in outcomes if not outcome.killed]
    elsewhere = [outcome for outcome in killed if not outcome.on_top]
    on_top = len(killed) - len(elsewhere)
    wrong = stale(known, made, outcomes)
    sampled = len(outcomes) < len(sorted_out["distinct"])
    lines = [
        *_table(sorted_out, outcomes),
        _share("killed", len(killed), len(outcomes), sampled),
        *_by_stage(killed),
        _share("topmost row is the function's own", on_top, len(killed), sampled),
        *_list("another row on top", [_described(o.mutant, o.lost[0]) for o in elsewhere]),
        *_list("survivors", [_described(m, known.get(m.key, "NO REASON")) for m in survivors]),
        *_list("entries that do not hold", [f"  {why}: {key}" for key, why in wrong.items()]),
    ]
    print("\n".join(lines))
    enough = len(killed) >= WANTED * len(outcomes) and on_top >= WANTED * len(killed)
    return enough and not wrong and all(m.key in known for m in survivors)
