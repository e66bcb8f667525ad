"""Makes .venv with the packages that pyproject.toml pins. It runs before them, so on stdlib alone.

`python3 autograder/venv.py EXTRA ...` does the same with extras, for the Makefile.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class NoVenv(Exception):
    """There is no way to make .venv here; the message says the one line that helps."""


def ensure(root: str | Path, extras: Sequence[str] = ()) -> str:
    """The path of .venv's Python, after making .venv or installing what it lacks.

    Quick when nothing is to be done. Raises NoVenv.
    """
    root = Path(root)
    wanted = packages((root / "pyproject.toml").read_bytes(), extras)
    python = root / ".venv" / "bin" / "python"
    stamp = root / ".venv" / "llmc-pins"  # what was installed, a pin a line
    there = stamp.read_text().splitlines() if stamp.exists() and python.exists() else []
    if set(wanted) <= set(there):
        return str(python)
    print(f"installing into .venv: {', '.join(wanted)}", file=sys.stderr, flush=True)
    uv = shutil.which("uv")
    if not python.exists():
        _make(root / ".venv", uv)
    tool = [uv, "pip", "install", "--python", str(python)] if uv else _pip(python)
    if subprocess.run([*tool, *wanted], check=False, stdout=sys.stderr).returncode != 0:
        raise NoVenv("the packages could not be installed (is there a network?); try again")
    names = {pin.partition("==")[0] for pin in wanted}
    kept = [pin for pin in there if pin.partition("==")[0] not in names]
    stamp.write_text("\n".join([*wanted, *kept]) + "\n")
    return str(python)


def packages(pyproject: bytes, extras: Sequence[str]) -> list[str]:
    """The pinned requirements of the project and of the extras."""
    import tomllib  # not there before Python 3.11, and whoever has that should be told so

    project = tomllib.loads(pyproject.decode())["project"]
    wanted: list[str] = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    return wanted


def _make(folder: Path, uv: str | None) -> None:
    if uv:
        command = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
    elif importlib.util.find_spec("ensurepip") is not None:
        command = [sys.executable, "-m", "venv", "--clear", str(folder)]
    else:
        raise NoVenv(
            "this Python cannot make a virtual environment: run `sudo apt install python3-venv`"
            " (Debian, Ubuntu), or install uv"
        )
    if subprocess.run(command, check=False).returncode != 0:
        raise NoVenv(f"{' '.join(command)} failed; see above")


def _pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        sys.exit(f"venv: needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    try:
        ensure(Path(__file__).resolve().parent.parent, sys.argv[1:])
    except NoVenv as fault:
        sys.exit(f"venv: {fault}")
