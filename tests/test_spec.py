"""spec/pcg32: its vectors come from their source, and rand.py and pcg32.h are held to them."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from autograder.rubric import ROOT
from autograder.run import REFERENCE
from reference.oracle import a0_rand_py as oracle

pytestmark = pytest.mark.slow

SPEC = ROOT / "spec"
STRICT = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
SANITIZED = ("-fsanitize=undefined,address", "-fno-sanitize-recover=all", "-O1", "-g")
LARGE = 3 << 30

# Prints what pcg32.h gives for each key of the file, a line `KEY SEED VALUES...` each.
PORT = r"""
#include "llmc/pcg32.h"
#include <inttypes.h>

static pcg32 start(const char *key, uint64_t seed) {
    pcg32 rng;
    pcg32_seed(&rng, seed, PCG32_SEQ);
    printf("\n%s %" PRIu64, key, seed);
    return rng;
}

int main(int argc, char **argv) {
    const uint64_t seeds[] = {0, 1, UINT64_C(1) << 63};
    for (int s = 0; s < 3; s++) {
        pcg32 rng = start("next_u32", seeds[s]);
        for (int i = 0; i < 1024; i++) printf(" %" PRIu32, pcg32_next_u32(&rng));
        rng = start("uniform_f64", seeds[s]);
        for (int i = 0; i < 64; i++) printf(" %a", pcg32_uniform(&rng));
        rng = start("below_10", seeds[s]);
        for (int i = 0; i < 64; i++) printf(" %" PRIu32, pcg32_below(&rng, 10));
        rng = start("below_3221225472", seeds[s]);
        for (int i = 0; i < 64; i++) printf(" %" PRIu32, pcg32_below(&rng, 3221225472));
        rng = start("shuffle_10", seeds[s]);
        int order[10];
        for (int i = 0; i < 10; i++) order[i] = i;
        pcg32_shuffle(order, 10, &rng);
        for (int i = 0; i < 10; i++) printf(" %d", order[i]);
        rng = start("substreams", seeds[s]);
        for (int p = 1; p <= 5; p++) {
            pcg32_next_u32(&rng);
            pcg32 child = pcg32_substream(&rng, (pcg32_purpose)p);
            printf(" %" PRIu64, pcg32_child_seed(seeds[s], (uint64_t)p));
            for (int i = 0; i < 8; i++) printf(" %" PRIu32, pcg32_next_u32(&child));
        }
    }
    pcg32 demo;
    pcg32_seed(&demo, 42, 54);
    printf("\ndemo 42");
    for (int i = 0; i < 6; i++) printf(" %" PRIu32, pcg32_next_u32(&demo));
    const uint64_t starts[] = {0, 1234567};
    for (int s = 0; s < 2; s++) {
        printf("\nsplitmix64 %" PRIu64, starts[s]);
        for (uint64_t k = 1; k <= 8; k++) {
            printf(" %" PRIu64, pcg32_splitmix64(starts[s] + k * PCG32_GOLDEN));
        }
    }
    printf("\nfnv1a64 0");
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        const size_t half = strlen(text) / 2;
        uint64_t h = pcg32_fnv1a64(text, half, PCG32_FNV_BASIS);
        printf(" %" PRIu64, pcg32_fnv1a64(text + half, strlen(text) - half, h));
    }
    printf("\n");
    return 0;
}
"""


def reference() -> ModuleType:
    place = importlib.util.spec_from_file_location("rand", REFERENCE / "llmc" / "rand.py")
    assert place and place.loader
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


rand: Any = reference()


@cache
def vectors() -> dict[str, Any]:
    return json.loads((SPEC / "pcg32.vectors.json").read_text())


def built(folder: Path, *arguments: str | Path) -> Path:
    binary = folder / "program"
    subprocess.run(["cc", *STRICT, *SANITIZED, "-o", binary, *arguments], check=True)
    return binary


def compiled(folder: Path, text: str) -> Path:
    source = folder / "main.c"
    source.write_text(text)
    return built(folder, f"-I{REFERENCE}", source)


# ---------------------------------------------------------------- the file


def test_the_vectors_are_what_their_source_prints(tmp_path: Path) -> None:
    program = built(tmp_path, SPEC / "pcg32_vectors.c")
    printed = subprocess.run([program], capture_output=True, check=True).stdout
    assert printed == (SPEC / "pcg32.vectors.json").read_bytes()


def test_the_source_of_the_vectors_shares_nothing_with_llmc() -> None:
    included = [
        line for line in (SPEC / "pcg32_vectors.c").read_text().splitlines() if "#include" in line
    ]
    assert included and all("<" in line for line in included)


def test_published_values_are_in_the_file() -> None:
    for seed, outputs in oracle.SPLIT_MIX.items():
        assert [int(word, 16) for word in vectors()["splitmix64"][str(seed)][:5]] == list(outputs)
    assert {text: int(word, 16) for text, word in vectors()["fnv1a64"].items()} == oracle.FNV


def test_the_oracle_agrees_with_the_file() -> None:
    """Two programs in two languages that share no line."""
    for seed, words in vectors()["next_u32"].items():
        assert oracle.Pcg.seeded(int(seed)).words(1024).tolist() == words
    for seed, units in vectors()["uniform_f64"].items():
        assert oracle.Pcg.seeded(int(seed)).units(64).tolist() == units
    assert oracle.Pcg.seeded(42).words(6).tolist() == list(oracle.DEMO)


def test_the_page_states_what_the_file_holds() -> None:
    page = (SPEC / "pcg32.md").read_text()
    assert " ".join(f"{word:08x}" for word in oracle.DEMO) in page.replace("\n", " ")
    assert all(
        f"`{key}`" in page for key in vectors() if key not in ("algorithm", "made_by", "seq")
    )
    assert all(f"| `{name}` | {number} |" in page for name, number in rand.PURPOSES.items())


# ---------------------------------------------------------------- rand.py


def test_oneills_demo_line() -> None:
    for rng in (rand.PCG32(42), rand.PCG32(42, 54)):
        assert [rng.next_u32() for _ in range(6)] == list(oracle.DEMO)


DRAWN: dict[str, Callable[[Any], list[Any]]] = {
    "next_u32": lambda rng: [rng.next_u32() for _ in range(1024)],
    "uniform_f64": lambda rng: [rng.uniform() for _ in range(64)],
    "below_10": lambda rng: [rng.below(10) for _ in range(64)],
    "below_3221225472": lambda rng: [rng.below(LARGE) for _ in range(64)],
    "shuffle_10": lambda rng: shuffled(rng, 10),
}


def shuffled(rng: Any, n: int) -> list[int]:
    values = list(range(n))
    rng.shuffle(values)
    return values


@pytest.mark.parametrize("key", DRAWN)
@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_rand_draws_the_vectors(key: str, seed: int) -> None:
    assert DRAWN[key](rand.PCG32(seed)) == vectors()[key][str(seed)]


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_rand_derives_the_sub_streams(seed: int) -> None:
    rng = rand.PCG32(seed)
    for name, wanted in vectors()["substreams"][str(seed)].items():
        rng.next_u32()
        child = rng.substream(name)
        assert rand.PURPOSES[name] == wanted["id"]
        assert rand.child_seed(seed, wanted["id"]) == int(wanted["child_seed"], 16)
        assert [child.next_u32() for _ in range(8)] == wanted["next_u32"]


def test_rand_hashes_the_vectors() -> None:
    for seed, outputs in vectors()["splitmix64"].items():
        got = [rand.splitmix64(int(seed) + k * rand.GOLDEN) for k in range(1, 9)]
        assert got == [int(word, 16) for word in outputs]
    for text, word in vectors()["fnv1a64"].items():
        data = text.encode()
        assert rand.fnv1a64(data) == rand.fnv1a64(data[2:], rand.fnv1a64(data[:2])) == int(word, 16)


STATES = [
    (0x9AE4F7499BA72696, 109),
    (0, 1),
    (2**64 - 1, 2**64 - 1),
    (0x853C49E6748FEA9B, 0xDA3E39CB94B95BDB),
]


@pytest.mark.parametrize("place", STATES)
@pytest.mark.parametrize("n", [0, 1, 2, 1000, 10**5 + 7])
def test_uniforms_is_n_times_uniform(place: tuple[int, int], n: int) -> None:
    one, many = rand.PCG32(0), rand.PCG32(0)
    one.set_state(place)
    many.set_state(place)
    wanted = np.array([one.uniform() for _ in range(n)], np.float64)
    got = many.uniforms(n)
    assert got.dtype == np.float64 and got.tobytes() == wanted.tobytes()
    assert many.state() == one.state()


@pytest.mark.parametrize("n", [2**14 - 1, 2**14, 2**14 + 1, 2**15, 10**6])
def test_uniforms_at_the_edges_of_its_blocks(n: int) -> None:
    rng, wanted = rand.PCG32(7), oracle.Pcg.seeded(7)
    got = rng.uniforms(n)
    wanted.skip(2 * (n - 4))
    assert got[-4:].tolist() == wanted.units(4).tolist()
    assert rng.state() == (wanted.state, wanted.inc)


def test_uniforms_needs_little_memory_beyond_the_result() -> None:
    rng = rand.PCG32(1)
    for n in (10**5, 4 * 10**6):
        tracemalloc.start()
        values = rng.uniforms(n)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak - values.nbytes < 4 << 20  # a dozen blocks of 128 KiB at a time, at most


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: rand.PCG32(-1), "-1"),
        (lambda: rand.PCG32(2**64), str(2**64)),
        (lambda: rand.PCG32(0, 2**63), str(2**63)),
        (lambda: rand.PCG32(0).set_state((5, 108)), "108"),
        (lambda: rand.PCG32(0).set_state((-5, 109)), "-5"),
        (lambda: rand.PCG32(0).uniforms(-1), "-1"),
        (lambda: rand.PCG32(0).below(0), "0"),
        (lambda: rand.PCG32(0).below(2**32 + 1), str(2**32 + 1)),
        (lambda: rand.PCG32(0).substream("weather"), "weather"),
        (lambda: rand.child_seed(0, 0), "0"),
        (lambda: rand.fnv1a64(b"", -3), "-3"),
        (lambda: rand.universal_hash(13, 3, 7, 13, 5), "13"),
        (lambda: rand.universal_hash(1, 0, 7, 13, 5), "0"),
        (lambda: rand.universal_hash(1, 3, 7, 13, 0), "0"),
    ],
)
def test_what_is_refused_is_named(call: Callable[[], Any], value: str) -> None:
    with pytest.raises(ValueError, match=value):
        call()


def test_what_is_no_integer_is_named() -> None:
    for call in (rand.PCG32, rand.PCG32(0).below, rand.PCG32(0).uniforms):
        with pytest.raises(TypeError, match=r"2\.5"):
            call(2.5)
    with pytest.raises(TypeError):
        rand.fnv1a64("text")


# ---------------------------------------------------------------- the contract


def interface(path: Path) -> dict[str, str]:
    """Public name -> its signature, or the type of a constant; methods as Class.name."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
            found |= {f"{node.name}.{item.name}": signature(item) for item in methods}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = signature(node)
    return {name: text for name, text in found.items() if not name.startswith("_")}


def signature(node: ast.FunctionDef) -> str:
    assert node.returns is not None
    return f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns).strip(chr(39))}"


def test_the_contract_is_that_of_the_code() -> None:
    contract = REFERENCE / "llmc" / "rand.pyi"
    assert interface(contract) == interface(contract.with_suffix(".py"))
    stated = [
        node for node in ast.parse(contract.read_text()).body if isinstance(node, ast.AnnAssign)
    ]
    constants = {ast.unparse(node.target): ast.unparse(node.annotation) for node in stated}
    assert set(constants) == {name for name in vars(rand) if name.isupper()} - {"T", "PCG32"}
    for name, kind in constants.items():
        assert type(getattr(rand, name)).__name__ == kind.partition("[")[0]


# ---------------------------------------------------------------- pcg32.h


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[str]]:
    program = compiled(tmp_path_factory.mktemp("port"), PORT)
    command = [program, *oracle.FNV]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in out.splitlines() if line]
    return {(key, seed): values for key, seed, *values in lines}


@pytest.mark.parametrize("key", DRAWN)
@pytest.mark.parametrize("seed", ["0", "1", str(2**63)])
def test_the_port_draws_the_vectors(port: Any, key: str, seed: str) -> None:
    read = float.fromhex if key == "uniform_f64" else int
    assert [read(value) for value in port[key, seed]] == vectors()[key][seed]


def test_the_port_derives_and_hashes_the_vectors(port: Any) -> None:
    for seed, purposes in vectors()["substreams"].items():
        wanted: list[int] = []
        for purpose in purposes.values():
            wanted += [int(purpose["child_seed"], 16), *purpose["next_u32"]]
        assert [int(value) for value in port["substreams", seed]] == wanted
    for seed, outputs in vectors()["splitmix64"].items():
        assert [f"0x{int(value):016x}" for value in port["splitmix64", seed]] == outputs
    assert [int(value) for value in port["fnv1a64", "0"]] == list(oracle.FNV.values())
    assert [int(value) for value in port["demo", "42"]] == list(oracle.DEMO)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("pcg32_below(&rng, 0);", "error: below 0 (it must be 1 to 2^32)"),
        ("pcg32_below(&rng, 4294967297);", "error: below 4294967297 (it must be 1 to 2^32)"),
        (
            "pcg32_seed(&rng, 0, UINT64_C(1) << 63);",
            "error: stream 9223372036854775808 (it must be less than 2^63)",
        ),
    ],
)
def test_the_port_refuses_with_one_line(tmp_path: Path, call: str, line: str) -> None:
    text = (
        f'#include "llmc/pcg32.h"\nint main(void) {{ pcg32 rng; pcg32_seed(&rng, 1, 2); {call} }}'
    )
    done = subprocess.run([compiled(tmp_path, text)], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (1, line)


def test_the_port_links_from_two_files(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text(
        '#include "llmc/pcg32.h"\nuint32_t other(pcg32 *rng);\n'
        "uint32_t other(pcg32 *rng) { return pcg32_next_u32(rng); }\n"
    )
    (tmp_path / "one.c").write_text(
        '#include "llmc/pcg32.h"\nuint32_t other(pcg32 *rng);\n'
        "int main(void) { pcg32 rng; pcg32_seed(&rng, 0, 54);"
        " return other(&rng) != 1203932051u; }\n"
    )
    program = built(tmp_path, f"-I{REFERENCE}", tmp_path / "one.c", tmp_path / "other.c")
    assert subprocess.run([program]).returncode == 0
