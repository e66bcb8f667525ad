"""Packs what students get: `python -m staff.release` writes build/release/llmc-student-*.tar.gz.

It writes nothing unless staff/release.toml says of every file who gets it, nothing waits to be
committed, what is generated is as its source gives it, no text of a solution is in the pack, and
in the unpacked pack the stubs earn nothing and the reference earns everything.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from autograder import __version__, deps, rubric
from autograder.build import toolchain
from autograder.files import scratch_folder, write_whole
from autograder.imports import needed
from autograder.rubric import ROOT
from autograder.run import REFERENCE, native_library
from staff.strip import MARK, stubs

LISTS = ROOT / "staff" / "release.toml"
FOLDER = "llmc-student"  # what the archive unpacks into


class Refused(Exception):
    """There is no pack; each argument is a line with one reason."""


# ---------------------------------------------------------------- which files


@dataclass(frozen=True)
class Lists:
    """Patterns of what students get, of what stays with staff, and beginnings that change."""

    student: tuple[str, ...]
    staff: tuple[str, ...]
    renamed: Mapping[str, str]


def lists(path: Path = LISTS) -> Lists:
    """Reads release.toml."""
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    return Lists(tuple(raw["student"]), tuple(raw["staff"]), raw["renamed"])


def committed(root: Path) -> list[str]:
    """The files of the checkout. Raises Refused without one, or if it differs from HEAD."""
    changes = _git(root, "status", "--porcelain", "--untracked-files=all").splitlines()
    if changes:
        raise Refused(*(f"{line[3:]}: not committed" for line in changes))
    return _git(root, "ls-files").splitlines()


def _git(root: Path, *words: str) -> str:
    command = ["git", "-c", "core.quotePath=false", *words]
    try:
        seen = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Refused("a release is made from a git checkout, and git is not installed") from None
    if seen.returncode != 0:
        raise Refused(f"a release is made from a git checkout; {seen.stderr.strip()}")
    return seen.stdout


def choose(root: Path, files: Sequence[str], chosen: Lists) -> dict[str, Path]:
    """Name in the pack → file below `root`, for what students get. Raises Refused."""
    faults = []
    pack: dict[str, Path] = {}
    for file in files:
        sides = [any(covers(p, file) for p in side) for side in (chosen.student, chosen.staff)]
        if all(sides) or not any(sides):
            faults.append(f"{file}: on {'both lists' if all(sides) else 'no list'} of release.toml")
        elif sides[0]:
            name = _renamed(file, chosen.renamed)
            if name in pack:
                faults.append(f"{file}: another file of the pack is called {name}")
            pack[name] = root / file
    for pattern in chosen.student:
        if not any(covers(pattern, file) for file in files):
            faults.append(f"{pattern}: allowed in release.toml, but there is no such file")
    if faults:
        raise Refused(*faults)
    return dict(sorted(pack.items()))


def covers(pattern: str, file: str) -> bool:
    """Whether a pattern of release.toml means this file."""
    if pattern.endswith("/"):
        return file.startswith(pattern)
    return pattern.count("/") == file.count("/") and fnmatchcase(file, pattern)


def _renamed(file: str, renamed: Mapping[str, str]) -> str:
    for old, new in renamed.items():
        if file.startswith(old):
            return new + file.removeprefix(old)
    return file


def prebuilt(folder: Path) -> dict[str, Path]:
    """Name in the pack → file, made in `folder`: what `--ref-deps` puts in the place of a student's
    modules, compiled for the Python and the machine of this release. Only modules that a probe of
    another one needs."""
    made = {f"{deps.TAG}/{name}.pyc": deps.compiled(name) for name in sorted(_depended_on())}
    library = native_library(REFERENCE, toolchain(ROOT / "build"), ROOT / "build")
    assert library is not None, "the reference compiles"
    made[f"{deps.MACHINE}/libllmc.so"] = library.read_bytes()
    for name, content in made.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return {f"{deps.PREBUILT.name}/{name}": folder / name for name in made}


def _depended_on() -> set[str]:
    """Modules with solutions that a probe of another module can come to import."""
    theirs = {f"llmc/{p.name}": p.read_bytes() for p in (REFERENCE / "llmc").glob("*.py")}
    found: set[str] = set()
    for probe in ROOT.glob("assignments/*/probes/*.py"):
        used = {Path(name).stem for name in needed(probe.read_bytes(), theirs)}
        found |= used - {rubric.module(probe.stem)}
    return {name for name in found if regions(theirs[f"llmc/{name}.py"].decode())}


def drift() -> list[str]:
    """What the generators have to say about files that are not as their sources give them."""
    lines = []
    for tool in ("strip", "golden", "bars", "handouts"):
        command = [sys.executable, "-m", f"staff.{tool}", "--check"]
        seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if seen.returncode != 0:
            lines += (seen.stdout + seen.stderr).splitlines()
    return lines


# ---------------------------------------------------------------- no solution in it

# So many tokens in a row that a solution has, too, give it away. By coincidence pack and solutions
# share 18 (a loop's head and the call below it), and no more; a line of a solution has up to 40.
# Other names for its variables would hide a solution from this.
RUN = 24
Run = tuple[str, ...]

# Comments, #include and import lines count for nothing, and a string is one token.
TOKEN = r'|(?P<token>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|\w+|\S)'
C = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*include[^\n]*" + TOKEN, re.DOTALL | re.MULTILINE)
PYTHON = re.compile(
    r'#[^\n]*|""".*?"""|^[ \t]*(?:from|import) [^\n]*' + TOKEN, re.DOTALL | re.MULTILINE
)
LANGUAGES = {".h": C, ".c": C, ".cuh": C, ".cu": C, ".py": PYTHON, ".pyi": PYTHON}


def tokens(text: str, language: re.Pattern[str]) -> list[tuple[str, int]]:
    """(token, line from 1), in order."""
    found = []
    line, at = 1, 0
    for match in language.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if match["token"] is not None:
            found.append((match["token"], line))
    return found


def runs(
    words: Sequence[tuple[str, int]], length: int = RUN, first: Container[str] | None = None
) -> Iterator[tuple[Run, int]]:
    """Each run of `length` tokens, with the line that it starts in; of a first token in `first`."""
    for start in range(len(words) - length + 1):
        if first is None or words[start][0] in first:
            yield tuple(word for word, _ in words[start : start + length]), words[start][1]


def solutions(reference: Path) -> dict[Run, str]:
    """Run → the file below `reference` that has it: of its regions, its variants and its oracle.

    A region shorter than RUN is one run. What a variant shares with the stubs is no secret, nor is
    what the oracle shares with the probes: the inputs that both make.
    """
    found: dict[Run, str] = {}
    for path in sorted(reference.glob("oracle/*.py")):
        words = tokens(_text(path), PYTHON)
        found |= {run: _name(path, reference) for run, _ in runs(words)}
    for path in _inputs(reference.parent):
        for run, _ in runs(tokens(_text(path), PYTHON)):
            found.pop(run, None)
    for path in sorted(reference.glob("variants/**/*")):
        if path.suffix in LANGUAGES:
            words = tokens(_text(path), LANGUAGES[path.suffix])
            found |= {run: _name(path, reference) for run, _ in runs(words)}
    for name, stub in stubs(reference / "llmc").items():
        for run, _ in runs(tokens(stub, LANGUAGES[Path(name).suffix])):
            found.pop(run, None)
    for path in sorted(path for path in (reference / "llmc").iterdir() if path.is_file()):
        for region in regions(_text(path)):
            words = tokens(region, LANGUAGES[path.suffix])
            length = max(1, min(RUN, len(words)))
            found |= {run: _name(path, reference) for run, _ in runs(words, length)}
    return found


def _inputs(root: Path) -> list[Path]:
    """The Python that makes a probe's inputs, and ours that loads it."""
    return [*root.glob("assignments/**/*.py"), root / "autograder" / "run.py"]


def regions(text: str) -> list[str]:
    """What stands between BEGIN SOLUTION and END SOLUTION, of each pair."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        mark = MARK.match(line)
        if mark is not None:
            inside = mark[3] == "BEGIN"
            found += [""] if inside else []
        elif inside:
            found[-1] += f"{line}\n"
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _name(path: Path, reference: Path) -> str:
    return f"reference/{path.relative_to(reference)}"


def leaks(secrets: Mapping[Run, str], pack: Mapping[str, Path]) -> list[str]:
    """One line for each file of the pack with text of a solution: where the first one starts.

    Every file is read as C and as Python, whatever it is: a handout may hold either.
    """
    firsts: dict[int, set[str]] = {}  # length of a run → the tokens that such runs begin with
    for run in secrets:
        firsts.setdefault(len(run), set()).add(run[0])
    faults = []
    for name, path in pack.items():
        text = _text(path)
        hits = [
            (line, secrets[run])
            for words in (tokens(text, C), tokens(text, PYTHON))
            for length, first in firsts.items()
            for run, line in runs(words, length, first)
            if run in secrets
        ]
        if hits:
            line, origin = min(hits)
            faults.append(f"{name}:{line}: has text of a solution, of {origin}")
    return faults


# ---------------------------------------------------------------- the archive


def archive(pack: Mapping[str, Path], when: int) -> bytes:
    """The pack as .tar.gz: the same bytes for the same files and `when`, their time of change."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, path in pack.items():
            about = tarfile.TarInfo(f"{FOLDER}/{name}")
            about.size = path.stat().st_size
            about.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            about.mtime = when
            with path.open("rb") as file:
                tar.addfile(about, file)
    return gzip.compress(raw.getvalue(), mtime=0)


# ---------------------------------------------------------------- a trial of it


def trial(content: bytes) -> list[str]:
    """Unpacks it, grades stubs and reference there; a line on each part. Raises Refused.

    The packages and, if `make data` ran, the data are the ones of this folder.
    """
    lines = []
    with scratch_folder(ROOT / "build") as scratch:
        subprocess.run(["tar", "-xzf", "-"], cwd=scratch, input=content, check=True)
        tree = scratch / FOLDER
        for name in (".venv", ".data"):
            if (ROOT / name).exists():
                (tree / name).symlink_to(ROOT / name)
        for assignment in rubric.assignments():
            lines += [_unwritten(part, assignment) for part in _grade(tree, assignment)]
        shutil.copytree(ROOT / "reference" / "llmc", tree / "llmc", dirs_exist_ok=True)
        for assignment in rubric.assignments():
            lines += [_right(part, assignment) for part in _grade(tree, assignment)]
    return lines


def _grade(tree: Path, assignment: str) -> list[dict[str, Any]]:
    result = tree / "result.json"
    result.unlink(missing_ok=True)
    command = ["./grade", assignment, "--json", result.name]
    seen = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if seen.returncode not in (0, 1) or not result.exists():
        last = seen.stderr.strip().rpartition("\n")[2]
        raise Refused(f"`./grade {assignment}` in the unpacked pack: {last}")
    parts: list[dict[str, Any]] = json.loads(result.read_bytes())["parts"]
    return parts


def _unwritten(part: Mapping[str, Any], assignment: str) -> str:
    """Raises Refused unless every row says todo."""
    for item in part["items"]:
        if item["verdict"] != "todo":
            raise Refused(f"{assignment} {item['id']}: the stub says {item['verdict']}, not todo")
    return f"{assignment} {part['part']}: the stubs earn {part['score']}, every row says todo"


def _right(part: Mapping[str, Any], assignment: str) -> str:
    """Raises Refused unless every row that this machine can verify is ok, and there is one."""
    if part["possible"] == "0":
        raise Refused(f"{assignment} {part['part']}: this machine cannot verify a single point")
    for item in part["items"]:
        if item["verdict"] not in ("ok", "skip"):
            raise Refused(f"{assignment} {item['id']}: the reference says {item['verdict']}")
    earned = f"{part['score']} of {part['possible']} points here"
    return f"{assignment} {part['part']}: the reference earns {earned}"


# ---------------------------------------------------------------- all of it


def release() -> Iterator[str]:
    """Does it, and yields a line about each step. Raises Refused."""
    target = ROOT / "build" / "release" / f"{FOLDER}-{__version__}.tar.gz"
    target.unlink(missing_ok=True)  # of an earlier release: whoever finds one here may hand it out
    files = committed(ROOT)
    pack = choose(ROOT, files, lists())
    yield f"{len(pack)} of {len(files)} files are for students"
    secrets = solutions(ROOT / "reference")
    faults = drift() + leaks(secrets, pack)
    if faults:
        raise Refused(*faults)
    yield f"0 of {len(secrets)} runs of {RUN} tokens from solutions found in them"
    with scratch_folder(ROOT / "build") as folder:
        pack = dict(sorted((pack | prebuilt(folder)).items()))
        content = archive(pack, int(_git(ROOT, "log", "-1", "--format=%ct")))
    yield from trial(content)
    write_whole(target, content)
    yield f"{target.relative_to(ROOT)}: {len(content)} bytes"
    yield f"sha256 {hashlib.sha256(content).hexdigest()}"


def main() -> int:
    """The command line; returns the exit status: 0, or 1 after lines about what is wrong."""
    try:
        for line in release():
            print(line, flush=True)
    except Refused as reasons:
        for line in reasons.args:
            print(f"release: {line}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
