"""Which of a tree's modules a Python probe can come to import, as far as their text tells."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping

INIT = "llmc/__init__.py"  # where there is one, it runs before any other
AT_RUN_TIME = {"__builtins__", "__import__", "eval", "exec"}
AT_RUN_TIME |= {"builtins", "importlib", "pkgutil", "runpy"}


def needed(probe: bytes, theirs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those of `theirs` (`llmc/NAME` -> content) that a probe reaches through import statements;
    all of them, should something that it reaches import in another way."""
    reached: set[str] = set()
    left = [probe, theirs.get(INIT, b"")]
    while left:
        modules = _imports(left.pop())
        if modules is None:
            return dict(theirs)
        files = {f"llmc/{module}.py" for module in modules} & set(theirs) - reached
        left += [theirs[name] for name in files]
        reached |= files
    return {name: content for name, content in theirs.items() if name in reached | {INIT}}


@functools.lru_cache(maxsize=256)
def _imports(text: bytes) -> frozenset[str] | None:
    """The modules of llmc/ that a file may import, without suffix, perhaps with names that are no
    modules; None where its text does not tell."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    dotted = [name for node in nodes for name in _imported(node)]
    found = frozenset(name.removeprefix("llmc.").partition(".")[0] for name in dotted)
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    return None if "*" in found or (found | words) & AT_RUN_TIME else found


def _imported(node: ast.AST) -> list[str]:
    """`llmc.rand.PCG32` for `from .rand import PCG32`: what a node imports; none where it is no
    import statement."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = ".".join(filter(None, ("llmc" if node.level else "", node.module)))
        return [f"{module}.{alias.name}" for alias in node.names]
    return []
