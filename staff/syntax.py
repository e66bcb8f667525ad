"""Finds C functions with tree-sitter, in code that need not compile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_c
from tree_sitter import Language, Node, Parser

C = Language(tree_sitter_c.language())


@dataclass(frozen=True)
class Function:
    """A definition. `start` and `end` are byte offsets of all of it; `node` is its syntax tree."""

    name: str
    start: int
    end: int
    node: Node

    @property
    def line(self) -> int:
        """Where it starts in the file, from 1."""
        return self.node.start_point[0] + 1

    @property
    def text(self) -> str:
        """The definition as it stands in the file."""
        assert self.node.text is not None
        return self.node.text.decode("utf-8", "replace")

    def tokens(self) -> tuple[bytes, ...]:
        """Its tokens without comments: equal for definitions that differ in formatting alone."""
        return tuple(leaf.text or b"" for leaf in leaves(self.node))


def parse(source: bytes) -> Node:
    """The root of a file's syntax tree; what is no C is in it as nodes of type ERROR."""
    return Parser(C).parse(source).root_node


def functions(source: bytes | Node) -> dict[str, Function]:
    """Name → definition, in the order of a file or its tree; of a name defined twice, the last.

    Definitions within a definition are its own affair.
    """
    found = {}
    waiting = [parse(source) if isinstance(source, bytes) else source]
    while waiting:
        node = waiting.pop()
        if node.type == "function_definition" and (name := _name(node)) is not None:
            found[name] = Function(name, node.start_byte, node.end_byte, node)
        else:
            waiting.extend(reversed(node.children))
    return found


def unread(root: Node) -> int | None:
    """The first line, from 1, that the parser cannot make sense of; None if it reads them all."""
    nodes = (node for node in walk(root) if node.is_error or node.is_missing)
    return next((node.start_point[0] + 1 for node in nodes), None)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def leaves(node: Node) -> Iterator[Node]:
    """The tokens below a node, without comments."""
    return (leaf for leaf in walk(node) if leaf.child_count == 0 and leaf.type != "comment")


def _name(definition: Node) -> str | None:
    node = definition.child_by_field_name("declarator")
    while node is not None and node.type != "identifier":
        inner = node.child_by_field_name("declarator")
        if node.type == "parenthesized_declarator":
            inner = next((child for child in node.named_children if child.type != "comment"), None)
        node = inner
    return None if node is None or node.text is None else node.text.decode("utf-8", "replace")
