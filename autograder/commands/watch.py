"""Waits for a student to save: --watch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

PAUSE = 0.1  # seconds between two looks


def saves(student: Path) -> Iterator[None]:
    """Yields at once, then each time that a file of `student`/llmc was written and is left alone.

    An editor may write beside and rename, or empty the file first: so it waits for one quiet look.
    """
    graded = _look(student)
    yield
    while True:
        seen = _look(student)
        while seen == graded or not seen:
            time.sleep(PAUSE)
            seen = _look(student)
        while (again := _look_later(student)) != seen:
            seen = again
        graded = seen
        yield


def _look_later(student: Path) -> list[tuple[str, int, int]]:
    time.sleep(PAUSE / 2)
    return _look(student)


def _look(student: Path) -> list[tuple[str, int, int]]:
    """Name, time and size of each file; a file that goes away meanwhile is not there."""
    found = []
    for path in sorted((student / "llmc").glob("[!.]*")):  # an editor's swap file is no save
        try:
            about = path.stat()
        except OSError:
            continue
        found.append((path.name, about.st_mtime_ns, about.st_size))
    return found
