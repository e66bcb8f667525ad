"""The edits that staff/auto.py makes in Python: one node of the syntax tree, at its place."""

from __future__ import annotations

import ast
import itertools
import marshal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType

Edit = tuple[int, int, bytes]  # bytes [start, end) of the file become these

OPERATORS = {
    **{"+": "-", "-": "+", "*": "//", "/": "*", "//": "*", "%": "//", "**": "*"},
    **{"<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|", "and": "or", "or": "and"},
}
PREFIXES = {"-": "+", "not": "", "~": ""}
BOUNDARIES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
SYMBOLS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|"},
    **{ast.BitXor: "^", ast.And: "and", ast.Or: "or", ast.USub: "-", ast.Not: "not"},
    **{ast.Invert: "~", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
}
STATEMENTS = (
    *(ast.Expr, ast.AugAssign, ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Delete),
    *(ast.If, ast.For, ast.While, ast.With, ast.Try),
)
SYMMETRIC = ("min", "max", "np.minimum", "np.maximum")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Source:
    """A file, the byte at which each of its lines starts, and its names of numbers."""

    text: bytes
    lines: tuple[int, ...]
    numbers: frozenset[str]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The bytes [start, end) of an expression or a statement; brackets around it are none."""
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.lines[node.lineno - 1] + node.col_offset
        return start, self.lines[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end].decode()

    def instead(self, node: ast.AST, text: str) -> Edit:
        return *self.span(node), text.encode()

    def between(self, left: ast.AST, symbol: str, right: ast.AST, other: str) -> Edit:
        """Another operator in the place of the one that stands between two nodes."""
        end, start = self.span(left)[1], self.span(right)[0]
        at = self.text.index(symbol.encode(), end, start)
        return at, at + len(symbol), other.encode()


def read(text: bytes, tree: ast.Module) -> Source:
    """The source of a syntax tree."""
    sizes = [len(line) for line in text.splitlines(keepends=True)]
    return Source(text, (0, *itertools.accumulate(sizes)), frozenset(_numbers(tree)))


def _numbers(tree: ast.Module) -> Iterator[str]:
    """Names in capitals that the module gives to numbers."""
    arithmetic = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.Tuple)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            parts = [part for part in ast.walk(node.value) if not isinstance(part, ast.Load)]
            values = [part.value for part in parts if isinstance(part, ast.Constant)]
            if all(isinstance(part, arithmetic) for part in parts) and all(map(_counts, values)):
                names = itertools.chain.from_iterable(map(ast.walk, node.targets))
                yield from (name.id for name in names if isinstance(name, ast.Name))


def _counts(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ---------------------------------------------------------------- kinds of edits


def operators(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Another operator of the same form."""
    if isinstance(node, ast.UnaryOp) and (symbol := SYMBOLS.get(type(node.op))) is not None:
        start = source.span(node)[0]
        yield start, start + len(symbol), PREFIXES[symbol].encode()
    for left, operator, right in _pairs(node):
        symbol = SYMBOLS.get(type(operator))
        if symbol in OPERATORS:
            yield source.between(left, symbol, right, OPERATORS[symbol])


def _pairs(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST, ast.AST]]:
    """Left side, operator and right side of each operator that stands between two."""
    if isinstance(node, ast.BinOp):
        yield node.left, node.op, node.right
    if isinstance(node, ast.AugAssign):
        yield node.target, node.op, node.value
    if isinstance(node, ast.BoolOp):
        for left, right in itertools.pairwise(node.values):
            yield left, node.op, right
    if isinstance(node, ast.Compare):
        sides = itertools.pairwise([node.left, *node.comparators])
        for (left, right), operator in zip(sides, node.ops, strict=True):
            yield left, operator, right


def _is_number(source: Source, node: ast.AST) -> bool:
    """A number, or a name in capitals that has one."""
    if isinstance(node, ast.Name):
        return node.id in source.numbers
    return isinstance(node, ast.Constant) and _counts(node.value)


def constants(source: Source, node: ast.AST) -> Iterator[Edit]:
    """0 for a number, 1 for 0; the other truth value."""
    if _is_number(source, node):
        is_zero = isinstance(node, ast.Constant) and node.value == 0
        yield source.instead(node, "1" if is_zero else "0")
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield source.instead(node, str(not node.value))


def off_by_one(source: Source, node: ast.AST) -> Iterator[Edit]:
    """A number, or a bound of a range or a slice, one higher or lower; a comparison that takes in
    its bound, or no longer does."""
    bounds = [bound for bound in _bounds(node) if not _is_number(source, bound)]
    for bound in (*bounds, *([node] if _is_number(source, node) else [])):
        yield from (source.instead(bound, f"({source.of(bound)} {by} 1)") for by in "+-")
    for left, operator, right in _pairs(node):
        symbol = SYMBOLS.get(type(operator))
        if symbol in BOUNDARIES:
            yield source.between(left, symbol, right, BOUNDARIES[symbol])


def _bounds(node: ast.AST) -> list[ast.expr]:
    """Where a slice or a range starts and stops."""
    if isinstance(node, ast.Slice):
        return [bound for bound in (node.lower, node.upper) if bound is not None]
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id == "range":
        return node.args[:2]
    return []


def dropped_statements(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Nothing in a statement's place. Names that only this one assigns keep it: without them
    nothing would run. A docstring does nothing."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, STATEMENTS) or (isinstance(node, ast.Assign) and not _binds(node)):
        yield source.instead(node, "pass")


def _binds(node: ast.Assign) -> bool:
    """Whether it assigns a name that its own value does not use."""
    targets = itertools.chain.from_iterable(map(ast.walk, node.targets))
    stored = {n.id for n in targets if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return not stored <= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}


def swapped_arguments(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Two neighbours in a call, exchanged; not those whose order does not matter."""
    if isinstance(node, ast.Call) and source.of(node.func) not in SYMMETRIC:
        for one, other in itertools.pairwise(node.args):
            if source.of(one) != source.of(other):
                (start, first_end), (second_start, end) = source.span(one), source.span(other)
                comma = source.text[first_end:second_start].decode()
                text = f"{source.of(other)}{comma}{source.of(one)}"
                yield start, end, text.encode()


def negated_conditions(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The opposite of a condition, and of each side of `and` and `or`."""
    found: list[ast.expr] = []
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        found.append(node.test)
    if isinstance(node, ast.comprehension):
        found += node.ifs
    if isinstance(node, ast.BoolOp):
        found += node.values
    for condition in found:
        yield source.instead(condition, f"(not ({source.of(condition)}))")


KINDS: dict[str, Callable[[Source, ast.AST], Iterator[Edit]]] = {
    "operator": operators,
    "constant": constants,
    "off by one": off_by_one,
    "dropped statement": dropped_statements,
    "swapped arguments": swapped_arguments,
    "negated condition": negated_conditions,
}


# ---------------------------------------------------------------- all edits of a file


def edits(text: bytes, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[str, str, Edit]]:
    """(function, kind, edit) of each edit within one of `spans`, function by function."""
    tree = ast.parse(text)
    source = read(text, tree)
    for name, function in functions(tree).items():
        for node in acting(function):
            for kind, made in KINDS.items():
                for edit in made(source, node):
                    if any(start <= edit[0] and edit[1] <= end for start, end in spans):
                        yield name, kind, edit


def functions(tree: ast.Module) -> Mapping[str, ast.AST]:
    """Name -> function, a method as CLASS.METHOD; one within another belongs to it."""
    found: dict[str, ast.AST] = {n.name: n for n in tree.body if isinstance(n, FUNCTIONS)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, FUNCTIONS))
            found |= {f"{node.name}.{method.name}": method for method in methods}
    return found


def acting(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, without messages: what is raised, and f-strings."""
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    if not isinstance(node, ast.Raise):
        for child in ast.iter_child_nodes(node):
            yield from acting(child)


# ---------------------------------------------------------------- those that differ


def byte_code(text: bytes) -> bytes | None:
    """What a file compiles to, without the places in it; None if it does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return marshal.dumps(_without_places(compile(text, "", "exec", dont_inherit=True)), 2)
    except (SyntaxError, ValueError):
        return None


def _without_places(code: CodeType) -> CodeType:
    constants = (_without_places(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=tuple(constants))
