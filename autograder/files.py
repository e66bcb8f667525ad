"""Files: hashes of what went in, writes that nobody reads half, and folders that go away again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def digest(*parts: str | bytes) -> str:
    """A hash of all parts and where each ends."""
    state = hashlib.sha256()
    for part in parts:
        block = part.encode() if isinstance(part, str) else part
        state.update(len(block).to_bytes(8, "little") + block)
    return state.hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Writes beside the target and renames, so that nobody ever reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read_json(path: Path) -> Any:
    """What a file of ours holds; None where it is not there, or something spoilt it."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def sweep(build: Path) -> None:
    """Removes scratch folders that a killed run left an hour ago or earlier, and programs that were
    built a month ago or earlier: both come back when they are wanted."""
    for pattern, age in (("scratch/*", 3600), ("cache/*", 30 * 86400)):
        for path in build.glob(pattern):
            with contextlib.suppress(OSError):
                if time.time() - path.lstat().st_mtime > age:
                    is_folder = path.is_dir() and not path.is_symlink()
                    shutil.rmtree(path) if is_folder else path.unlink()


@contextlib.contextmanager
def scratch_folder(build: Path) -> Iterator[Path]:
    """An empty folder below `build`, removed afterwards."""
    scratch = build / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=scratch) as name:
        yield Path(name)
