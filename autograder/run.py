"""Grades one student's tree: builds, observes, checks, and adds up."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np

from autograder import build, observe, python, sandbox
from autograder.build import Built, Source, Toolchain
from autograder.compare import Cannot, Mismatch, Seen, Waiting
from autograder.files import scratch_folder, sweep
from autograder.imports import needed
from autograder.observe import Array, Case, Observed
from autograder.results import ItemResult, Options, PartResult, Result, Row
from autograder.rubric import PYTHON, ROOT, Credit, Item, Part, Rubric, load, module
from autograder.sources import read, stub_line

REFERENCE = ROOT / "reference"
# What a case may use that works on a file past 2 GiB, and may well hold all of it in memory.
BIG = sandbox.Limits(cpu_seconds=60, memory_mib=6144, file_mib=4096)
ROOM = 16 << 20  # bytes that must be free, or a case may have failed for want of them
SLOWER = 30  # how much more time valgrind is given
NATIVE = Source("native", build.RUNTIME / "native.c", runtime=False)
NATIVE_ROW = ("A1", "matmul_forward")  # what must pass before Python calls it
HARNESS = Source("test_dataloader", ROOT / "dev" / "test" / "test_dataloader.c", runtime=False)


def real_data() -> Path | None:
    """The folder that `make data` fills, if it did."""
    data = ROOT / ".data"
    whole = (data / "gpt2_tokenizer.bin").exists() and any(data.glob("*_train_*.bin"))
    return data if whole else None


class UnknownName(Exception):
    """No item and no part is called so, nor starts so."""


Progress = Callable[[str, int, int], None]  # (what, done, of)


def grade(rubric: Rubric, options: Options, progress: Progress = lambda *_: None) -> Result:
    """Grades what `options.names` selects (item ids, their beginnings, or parts; none: all).

    Raises build.NoTool and UnknownName.
    """
    started = time.monotonic()
    selected = select(rubric, options.names)
    if not options.cached:
        sweep(options.build)
    tools = build.toolchain(options.build, options.valgrind)
    whole = {part.id: _with_needs(part, items) for part, items in selected}
    credits = [credit for items in whole.values() for item in items for credit in item.credits]
    built = _build(rubric, credits, options.student, tools, options, progress)
    wanted = _wanted(rubric, credits, built, tools, options)
    native = _native(options.student, tools, options) if _calls_c(credits) else None
    if native is not None and options.by_hand:
        _link([Built(NATIVE.name, native)], options.build / "probes")
    observed = _observe(rubric, credits, built, tools, options, progress, native=native)
    checks = {probe: checks_of(rubric, probe) for probe in {credit.probe for credit in credits}}
    leaks = "leak" in tools.sanitizers
    run = _Run(rubric, options, built, wanted, observed, checks, leaks, native is not None)
    parts = []
    for part, items in selected:
        results = run.judge(part, whole[part.id])
        broken = tuple(built[probe] for probe in part.probes if _is_broken(built.get(probe)))
        remarks = _remarks(items, built.get(HARNESS.name), options)
        remarks |= _stood_in(rubric, items, options, native)
        parts.append(PartResult(part, tuple(results[item.id] for item in items), broken, remarks))
    restarted = sum(seen.restarted for seen in observed.values())
    return Result(rubric, options, tools, tuple(parts), time.monotonic() - started, restarted)


def _is_broken(built: Built | None) -> bool:
    return built is not None and built.binary is None


def select(rubric: Rubric, names: Sequence[str]) -> list[tuple[Part, list[Item]]]:
    """The parts and their items that the names mean; a part's name leaves out the other parts."""
    parts = {part.id for part in rubric.parts} & set(names) or {part.id for part in rubric.parts}
    others = [name for name in names if name not in parts]
    for name in others:
        if not any(_means((name,), part, item) for part, item in rubric.items()):
            raise UnknownName(name)
    chosen = []
    for part in rubric.parts:
        items = [item for item in part.items if _means(others, part, item)]
        if items and part.id in parts:
            chosen.append((part, items))
    if not chosen:
        raise UnknownName(others[0])
    return chosen


def _means(names: Sequence[str], part: Part, item: Item) -> bool:
    """An item's whole name means it alone, though another begins with it."""
    if not names:
        return True
    ids = {other.id for other in part.items}
    exact = ids | _forms(part.files)
    whole = {item.id, item.title, *item.functions}
    whole |= {function.rpartition(".")[2] for function in item.functions}  # PCG32.below: below
    whole |= _forms(part.files_of(item)) - ids
    return any(
        name in whole or (name != "" and name not in exact and item.id.startswith(name))
        for name in names
    )


def _forms(files: Sequence[str]) -> set[str]:
    """What a file may be called: llmc/rand.h, rand.h, rand."""
    paths = [Path(name) for name in files]
    return {form for path in paths for form in (str(path), path.name, path.stem)}


@dataclass(frozen=True)
class _Run:
    """All that was built and seen, and what judges it."""

    rubric: Rubric
    options: Options
    built: Mapping[str, Built]
    wanted: Mapping[tuple[str, str], Mapping[str, Array]]
    observed: Mapping[tuple[str, str], Observed]
    checks: Mapping[str, ModuleType]
    leaks: bool
    native: bool

    def judge(self, part: Part, items: Sequence[Item]) -> dict[str, ItemResult]:
        """Item id -> its result; items stand behind those that they need."""
        theirs = read(self.options.student)
        results: dict[str, ItemResult] = {}
        for item in items:
            rows = [self._judge(credit, results) for credit in item.credits]
            rows = [_with_place(row, theirs, part) for row in _unstarted(rows)]
            keys = dict.fromkeys((credit.probe, credit.case) for credit in item.credits)
            spent = sum(self.observed[key].seconds for key in keys if key in self.observed)
            rerun = f"./grade {self.rubric.assignment} {item.id}{self.options.rerun}"
            results[item.id] = ItemResult(item, tuple(rows), spent, rerun)
        return results

    def _judge(self, credit: Credit, above: Mapping[str, ItemResult]) -> Row:
        key = (credit.probe, credit.case)
        seen = Seen(
            self.observed.get(key, Observed()),
            self.wanted.get(key, {}),
            self.built[credit.probe],
            self.options.data,
            self.leaks,
            self.native,
        )
        check = getattr(self.checks[credit.probe], credit.check)
        row = _judge(credit, check, seen, key in self.observed, above)
        if credit.native and row.verdict == "ok" and not self.native:
            stage, name = NATIVE_ROW
            return Row(credit, "skip", f"needs {stage}'s {name}")
        return row


def _unstarted(rows: list[Row]) -> list[Row]:
    """Code that is not there needs no data, either: beside nothing but todo, a skip is todo."""
    if rows[0].verdict != "todo" or any(row.verdict not in ("todo", "skip") for row in rows):
        return rows
    waits = rows[0].message
    return [r if r.verdict == "todo" else replace(r, verdict="todo", message=waits) for r in rows]


def _with_place(row: Row, theirs: Mapping[str, bytes], part: Part) -> Row:
    """Where the line is that a todo met: it may be left over, below a function that is written."""
    function = row.message.removeprefix("needs ")
    where = stub_line(theirs, part.files, function) if row.verdict == "todo" else ""
    if not where or row.waits:
        return row
    return replace(row, hint=f"write it at {where}, in place of the line that says TODO")


def _with_needs(part: Part, items: Sequence[Item]) -> list[Item]:
    """The items and those their credits need, in the rubric's order."""
    wanted = {item.id for item in items}
    for item in items:
        wanted |= {name for credit in item.credits for name in credit.needs}
    return [item for item in part.items if item.id in wanted]


# ---------------------------------------------------------------- build and observe


def _build(
    rubric: Rubric,
    credits: Sequence[Credit],
    student: Path,
    tools: Toolchain,
    options: Options,
    progress: Progress,
) -> dict[str, Built]:
    names = sorted(
        {credit.probe for credit in credits}, key=lambda name: (name != "dataloader", name)
    )
    sources = [Source(name, rubric.probe(name)) for name in names]
    if "dataloader" in names and options.by_hand and not options.cached:
        sources.append(HARNESS)
    count = [0]

    def done() -> None:
        count[0] += 1
        progress("building", count[0], len(sources))

    progress("building", 0, len(sources))
    many, by_imports = options.parallel, options.by_imports
    modules = options.stand_ins.modules
    built = programs(sources, student, tools, options.build, many, done, by_imports, modules)
    if options.by_hand:
        _link(built.values(), options.build / "probes")
    return built


def programs(
    sources: Sequence[Source],
    student: Path,
    tools: Toolchain,
    folder: Path,
    parallel: int,
    done: Callable[[], None] = lambda: None,
    by_imports: bool = False,
    stand_ins: Mapping[str, bytes] = python.NONE,
) -> dict[str, Built]:
    """Builds what is C, and bundles what is Python; what is by name is python.bundles'."""
    ours = [source for source in sources if source.path.suffix == ".py"]
    others = [source for source in sources if source not in ours]
    built = {}
    if ours:
        built = python.bundles(ours, student, folder, done, by_imports, stand_ins)
    if others:
        built |= build.programs(others, student, tools, folder, parallel, done)
    return {source.name: built[source.name] for source in sources}


def _link(built: Iterable[Built], folder: Path) -> None:
    """build/probes/NAME: the program of the last run, for running a case by hand."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in built:
        if one.binary is not None:
            beside = folder / f".{one.probe}-{os.getpid()}"
            beside.symlink_to(os.path.relpath(one.binary, folder))
            os.replace(beside, folder / one.probe)


def _calls_c(credits: Sequence[Credit]) -> bool:
    return any(credit.native for credit in credits)


def _native(student: Path, tools: Toolchain, options: Options) -> Path | None:
    """The shared library of what Python calls of C, of the student's layers.h if its row passes;
    else what stands in, or None. Sanitizers stay out: Python would have to begin with them."""
    stage, row = NATIVE_ROW
    trial = replace(options, student=student, names=("c", row), fresh=None, by_hand=False)
    (item,) = grade(load(stage), trial).parts[0].items
    if item.earned < item.item.points:
        return options.stand_ins.library
    return native_library(student, tools, options.build)


def native_library(student: Path, tools: Toolchain, folder: Path) -> Path | None:
    """Builds native.c with `student`/llmc/layers.h; None if it does not compile."""
    kept = tuple(flag for flag in tools.flags if flag not in (*build.SANITIZE, "-g"))
    plain = replace(tools, flags=(*kept, "-O2", "-shared", "-fPIC"))
    return build.programs([NATIVE], student, plain, folder, 1)[NATIVE.name].binary


def _cases(
    rubric: Rubric,
    credits: Sequence[Credit],
    built: Mapping[str, Built],
    tools: Toolchain,
    options: Options,
    native: Path | None = None,
) -> dict[tuple[str, str], Case]:
    """What there is to run: one process for each case, whatever the number of credits on it."""
    cases = {}
    for credit in credits:
        binary = built[credit.probe].binary
        if binary is None or (credit.data and options.data is None):
            continue
        if credit.big and not sandbox.can_write(options.build, BIG.file_mib):
            continue
        limits = BIG if credit.big else sandbox.Limits()
        forked = credit.probe.endswith(PYTHON)
        runner = () if forked else tools.runner
        if runner:
            limits = replace(limits, cpu_seconds=SLOWER * limits.cpu_seconds, wall_seconds=600)
        seed = rubric.seed if options.fresh is None else options.fresh
        data = options.data if credit.data else None
        leaks = "leak" in tools.sanitizers
        cases[credit.probe, credit.case] = Case(
            *(binary, credit.case, limits, seed, data, leaks, runner, forked),
            native if credit.native else None,
        )
    return cases


def case_of(credit: Credit, result: Result) -> Case | None:
    """What a credit's case runs; None where its probe does not compile, or it cannot run here."""
    rubric, options = result.rubric, result.options
    source = Source(credit.probe, rubric.probe(credit.probe))
    modules = options.stand_ins.modules
    built = programs([source], options.student, result.tools, options.build, 1, stand_ins=modules)
    cases = _cases(rubric, [credit], built, result.tools, options)
    return cases.get((credit.probe, credit.case))


def _observe(
    rubric: Rubric,
    credits: Sequence[Credit],
    built: Mapping[str, Built],
    tools: Toolchain,
    options: Options,
    progress: Progress = lambda *_: None,
    cached: bool = False,
    native: Path | None = None,
) -> dict[tuple[str, str], Observed]:
    cases = _cases(rubric, credits, built, tools, options, native)
    count = [0]

    def done() -> None:
        count[0] += 1
        progress("running", count[0], len(cases))

    progress("running", 0, len(cases))
    cached = cached or options.cached
    seen = observe.run(list(cases.values()), options.build, options.parallel, cached, done)
    if shutil.disk_usage(options.build).free < ROOM:
        raise OSError(
            f"hardly any space is left in {options.build}: what it would say is no verdict"
        )
    return dict(zip(cases, seen, strict=True))


# ---------------------------------------------------------------- what is wanted


def _wanted(
    rubric: Rubric,
    credits: Sequence[Credit],
    built: Mapping[str, Built],
    tools: Toolchain,
    options: Options,
) -> dict[tuple[str, str], Mapping[str, Array]]:
    """Golden values; for fresh inputs what the reference reports on them."""
    probes = {credit.probe for credit in credits}
    if options.fresh is None:
        return {key: values for probe in probes for key, values in golden(rubric, probe).items()}
    sources = [Source(name, rubric.probe(name)) for name in sorted(probes)]
    many, by_imports = options.parallel, options.by_imports
    ours = programs(sources, REFERENCE, tools, options.build, many, by_imports=by_imports)
    native = _native(REFERENCE, tools, options) if _calls_c(credits) else None
    seen = _observe(rubric, credits, ours, tools, options, cached=True, native=native)
    stopped = [case for (_, case), observed in seen.items() if observed.ending.kind != "ended"]
    if stopped:
        raise RuntimeError(f"the reference did not finish {stopped[0]} on seed {options.fresh}")
    return {key: observed.values for key, observed in seen.items()}


def golden(rubric: Rubric, probe: str) -> dict[tuple[str, str], Mapping[str, Array]]:
    """(probe, case) → wanted observations, from golden/PROBE.json."""
    raw = json.loads((rubric.folder / "golden" / f"{probe}.json").read_text(encoding="utf-8"))
    types = {kind.decode(): dtype for kind, dtype in observe.TYPES.items()}
    return {
        (probe, case): {
            name: np.array(values, types[kind]) for name, (kind, values) in entry["values"].items()
        }
        for case, entry in raw["cases"].items()
    }


# ---------------------------------------------------------------- judge


def checks_of(rubric: Rubric, probe: str) -> ModuleType:
    path = rubric.folder / "checks" / f"{probe}.py"
    spec = importlib.util.spec_from_file_location(f"{rubric.assignment}_{probe}_checks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _judge(
    credit: Credit,
    check: Callable[[Seen], None],
    seen: Seen,
    was_run: bool,
    above: Mapping[str, ItemResult],
) -> Row:
    """One credit's verdict. Whatever goes wrong in here but the student's code is an `error`."""
    error = seen.built.error
    if error is not None:
        return Row(credit, "FAIL", f"does not compile: {error.where}", got=error.what, waits=True)
    if credit.data and seen.data is None:
        return Row(credit, "skip", "run `make data`")
    waits = [name for name in credit.needs if above[name].earned == 0]
    waits = [name for name in waits if above[name].verdict in ("todo", "FAIL")]
    if waits:
        todo = any(above[name].verdict == "todo" for name in waits)
        return Row(credit, "todo" if todo else "FAIL", f"waits for {waits[0]}", waits=True)
    if not was_run:
        return Row(credit, "skip", f"needs room for a sparse file of {BIG.file_mib} MiB")
    try:
        with np.errstate(all="ignore"):
            check(seen)
    except Waiting as waiting:
        return Row(credit, "todo", f"needs {waiting}" if str(waiting) else "not written yet")
    except Cannot as cannot:
        return Row(credit, "skip", str(cannot))
    except Mismatch as m:
        warned = next((f" (a warning at {w.where}: {w.what})" for w in seen.built.warnings), "")
        hint = m.hint + warned
        return Row(credit, "FAIL", m.differs, m.input, m.got, m.expected, hint, m.picture)
    except Exception:
        if not _well_formed(seen.observed, seen.wanted):
            return Row(credit, "FAIL", "something else wrote to the observation descriptor")
        last = traceback.format_exc().strip().splitlines()[-1]
        return Row(credit, "error", f"the grader failed: {last}")
    return Row(credit, "ok")


def _well_formed(observed: Observed, wanted: Mapping[str, Array]) -> bool:
    """Whether each wanted observation is there in its type and length; a check that stumbles on
    such values is at fault itself, else whoever wrote the others is."""
    return all(
        name in observed.values
        and observed.values[name].dtype == value.dtype
        and observed.values[name].shape == value.shape
        for name, value in wanted.items()
    )


def dependencies(rubric: Rubric, item: Item, student: Path, absent: Iterable[str]) -> set[str]:
    """`llmc/NAME.py` of all that an item's Python probes can come to import, but for what they
    observe; of `absent` also what the student does not have."""
    theirs = dict.fromkeys(absent, b"")
    theirs |= {n: content for n, content in read(student).items() if n.endswith(".py")}
    probes = [probe for probe in item.probes if probe.endswith(PYTHON)]
    found = {name for p in probes for name in needed(rubric.probe(p).read_bytes(), theirs)}
    return found - {f"llmc/{module(probe)}.py" for probe in probes}


def _stood_in(
    rubric: Rubric, items: Sequence[Item], options: Options, native: Path | None
) -> dict[str, str]:
    """Item id → with which of the reference's modules, for a student's, it was graded."""
    modules, library = options.stand_ins.modules, options.stand_ins.library
    found = {}
    for item in items if modules or library else []:
        used = dependencies(rubric, item, options.student, modules)
        names = [Path(name).stem for name in modules if name in used]
        if any(credit.native for credit in item.credits) and native is not None:
            names += ["layers.h"] if native == library else []
        if names:
            found[item.id] = f"with the reference's {', '.join(names)}"
    return found


def _remarks(items: Sequence[Item], harness: Built | None, options: Options) -> dict[str, str]:
    """What dev/test/test_dataloader says, beside the loader's last row; it earns nothing."""
    loader = [item.id for item in items if any(c.probe == "dataloader" for c in item.credits)]
    loader = [name for name in loader if name != "clean"]
    if not loader or harness is None or harness.binary is None:
        return {}
    with scratch_folder(options.build) as folder:
        limits = sandbox.Limits(cpu_seconds=60)
        env = observe.environment(folder, limits)
        job = sandbox.Job((str(harness.binary),), folder, env, limits)
        outcome = sandbox.run_all([job], 1)[0]
        if outcome.status != 0 and not outcome.stdout:
            outcome = sandbox.run_again(job) or outcome
    said = outcome.stdout.decode("utf-8", "replace").splitlines()
    verdicts = [line.split()[0] for line in said if line.split()]
    fine, all_lines = verdicts.count("ok"), sum(v in ("ok", "FAIL", "todo") for v in verdicts)
    text = f"dev/test/test_dataloader: {fine} of {all_lines} subtests ok (not scored)"
    return {loader[-1]: text}
