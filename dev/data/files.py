"""What every writer of data here shares: replacing a file in one step, and an error with a hint."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class DataError(Exception):
    """Something that the user can put right; prints as `WHAT (HINT)`, on one line."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what} ({hint})")


@contextmanager
def replacing(path: Path | str) -> Iterator[BinaryIO]:
    """Opens a file beside `path` for writing; it takes `path`'s place when the block ends.

    A reader sees the old file or the whole new one. If the block raises, `path` stays as it was.
    Makes the folder where there is none. Raises OSError.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            yield file
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
