"""Trees to grade: the reference with some of its files replaced; and what a tree lost."""

from __future__ import annotations

import functools
import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder import rubric
from autograder.files import digest, write_whole
from autograder.results import Options, Result
from autograder.rubric import ROOT
from autograder.run import REFERENCE, grade, real_data

BUILD = ROOT / "build"


@dataclass(frozen=True)
class Tree:
    """A name, and the files of llmc/ that are not the reference's. `fresh` seeds new inputs;
    `items`: what to grade, where not all."""

    name: str
    files: Mapping[str, bytes]
    fresh: int | None = None
    items: tuple[str, ...] = ()


def lay(tree: Tree) -> Path:
    """Writes the tree and returns the folder that holds its llmc/; once for the same content."""
    ours = {
        path.name: path.read_bytes() for path in (REFERENCE / "llmc").iterdir() if path.is_file()
    }
    files = dict(sorted((ours | dict(tree.files)).items()))
    key = digest(*(part for item in files.items() for part in item))[:12]
    folder = BUILD / "trees" / f"{tree.name}-{key}"
    for name, content in files.items():
        if not (folder / "llmc" / name).exists():
            write_whole(folder / "llmc" / name, content)
    return folder


def grade_tree(assignment: str, tree: Tree) -> Result:
    """Grades one tree with what earlier runs of the same programs reported."""
    options = Options(
        student=lay(tree),
        build=BUILD,
        data=real_data(),
        names=tree.items,
        fresh=tree.fresh,
        parallel=1,
        cached=True,
        by_imports=True,
        by_hand=False,
    )
    return grade(_rubric(assignment), options)


_rubric = functools.cache(rubric.load)  # reading it takes as long as running ten cases


def lost(result: Result) -> list[str]:
    """Items of which points are missing, in the rubric's order."""
    return [
        item.item.id
        for part in result.parts
        for item in part.items
        if item.earned < item.possible or item.verdict == "error"
    ]


def grade_all(assignment: str, trees: Sequence[Tree]) -> Iterator[Result]:
    """Grades trees in parallel and yields their results in order."""
    grade_tree(assignment, Tree("reference", {}))  # what most of them share is then known
    with multiprocessing.Pool(initializer=_ignore_interrupt) as pool:
        yield from pool.imap(partial(grade_tree, assignment), trees)


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
