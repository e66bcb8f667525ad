"""The Python modules of A0 against their C twins: the same shards give the same batches, the same
logits and seeds the same tokens."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from autograder.rubric import ROOT

pytestmark = pytest.mark.slow

B, T = 2, 3
SIZES = (41, 24, 57, 33, 20)  # of the shards; the second has no last target for its fourth sample
SAMPLES = 1000  # tokens sampled from each row of logits
BATCHES = r"""
#include "llmc/dataloader.h"

// batches PATTERN B T RANK WORLD SHUFFLE COUNT: inputs and targets of each batch, one by one.
int main(int argc, char **argv) {
    if (argc != 8) return 2;
    DataLoader loader;
    size_t B = (size_t)atoi(argv[2]), T = (size_t)atoi(argv[3]);
    dataloader_init(&loader, argv[1], B, T, atoi(argv[4]), atoi(argv[5]), atoi(argv[6]));
    for (int i = 0; i < atoi(argv[7]); i++) {
        dataloader_next_batch(&loader);
        fwrite(loader.inputs, sizeof(int), B * T, stdout);
        fwrite(loader.targets, sizeof(int), B * T, stdout);
    }
    dataloader_free(&loader);
    return 0;
}
"""
TOKENS = r"""
#include <stdio.h>
#include <stdlib.h>

#include "llmc/sampler.h"

// tokens SEED N COUNT < logits: COUNT times a coin's 32 bits, then the token of the next coin.
int main(int argc, char **argv) {
    if (argc != 4) return 2;
    unsigned long long state = strtoull(argv[1], NULL, 10);
    int n = atoi(argv[2]), count = atoi(argv[3]);
    float *logits = malloc((size_t)n * sizeof(float));
    if (fread(logits, sizeof(float), (size_t)n, stdin) != (size_t)n) return 1;
    for (int i = 0; i < count; i++) {
        printf("%u\n", random_u32(&state));
        printf("%d\n", sample_softmax(logits, n, random_f32(&state)));
    }
    free(logits);
    return 0;
}
"""


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two C programs in it and a folder of shards."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("twins")
    for name, source in (("batches", BATCHES), ("tokens", TOKENS)):
        path = folder / f"{name}.c"
        path.write_text(source)
        flags = ["-O1", "-Wall", "-Werror", f"-I{ROOT / 'reference'}", "-o", str(folder / name)]
        subprocess.run([compiler, *flags, str(path), "-lm"], check=True)
    rng = np.random.default_rng(4)
    for i, size in enumerate(SIZES):
        header = np.zeros(256, "<i4")
        header[:3] = 20240520, 1, size
        tokens = rng.integers(0, 65536, size).astype("<u2")
        (folder / f"shard_{i}.bin").write_bytes(header.tobytes() + tokens.tobytes())
    return folder


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """llmc.NAME of the reference."""
    for known in [key for key in sys.modules if key.partition(".")[0] == "llmc"]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.syspath_prepend(str(ROOT / "reference"))
    return __import__(f"llmc.{name}", fromlist=[name])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("rank", "world"), [(0, 1), (0, 3), (1, 3), (2, 3)])
def test_batches_of_two_epochs_are_the_twins(
    twins: Path, monkeypatch: pytest.MonkeyPatch, rank: int, world: int, shuffle: bool
) -> None:
    dataloader = module("dataloader", monkeypatch)
    pattern = str(twins / "shard_*.bin")
    count = 2 * sum((size - 1) // (world * B * T) for size in SIZES) + 1
    place = map(str, (B, T, rank, world, int(shuffle), count))
    command = [str(twins / "batches"), pattern, *place]
    stdout = subprocess.run(command, check=True, capture_output=True).stdout
    want = np.frombuffer(stdout, np.int32).reshape(count, 2, B, T)
    loader = dataloader.DistributedDataLoader(pattern, B, T, rank, world, shuffle)
    for i in range(count):
        assert np.array_equal(np.stack(loader.next_batch()), want[i]), f"batch {i}"


@pytest.mark.parametrize("size", [1, 2, 50, 5000])
@pytest.mark.parametrize("seed", [1, 1337, 2**64 - 1])
def test_tokens_of_the_same_logits_and_seed_are_the_twins(
    twins: Path, monkeypatch: pytest.MonkeyPatch, size: int, seed: int
) -> None:
    sampler = module("sampler", monkeypatch)
    logits = np.random.default_rng(size).normal(0, 3, size).astype(np.float32)
    count = SAMPLES if size < 1000 else SAMPLES // 10
    command = [str(twins / "tokens"), str(seed), str(size), str(count)]
    stdout = subprocess.run(command, input=logits.tobytes(), check=True, capture_output=True).stdout
    state, got = seed, []
    for _ in range(count):
        value, state = sampler.random_u32(state)
        coin, state = sampler.random_f32(state)
        got += [value, sampler.sample_softmax(logits, coin)]
    assert got == [int(line) for line in stdout.split()]


def test_a_walk_adds_as_c_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins that lie on a running sum tell any other order of addition, or another exp, apart."""
    sampler = module("sampler", monkeypatch)
    logits = np.random.default_rng(9).normal(0, 3, 3000).astype(np.float32)
    running = 0.0
    sums = [running := running + math.exp(logit) for logit in logits.tolist()]
    coins = [float(total) / sums[-1] for total in sums[:-1]]
    got = [sampler.sample_softmax(logits, coin) for coin in coins[::29]]
    want = [next(i for i, total in enumerate(sums) if total > c * sums[-1]) for c in coins[::29]]
    assert got == want
