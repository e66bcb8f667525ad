"""Times the reference's own code: one figure for each speed that the course promises of it."""

from __future__ import annotations

import random
import string
import time
import tracemalloc
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from autograder.rubric import ROOT
from staff import bench_loop
from staff.figures import MIB, Figure

NUMBERS = 10_000_000  # that `uniforms` draws
LOOP = 100_000  # that a loop of `uniform` draws, for its time on NUMBERS
TEXT = ROOT / ".data" / "shakespeare.txt"
VOCABULARY = ROOT / ".data" / "gpt2_tokenizer.bin"


def measure(rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Of Python; `say` hears of progress. Raises FileNotFoundError before `make data`."""
    say("llmc/model.py beside PyTorch")
    steps = _steps(rounds)
    say("llmc/loop.py beside PyTorch")
    trained = bench_loop.measure(rounds)
    say("llmc/rand.py")
    drawn = [_uniforms() for _ in range(rounds)]
    say("llmc/tokenizer.py")
    spent = [dict(_tokenizer()) for _ in range(rounds)]
    loop, pcg64 = (tuple(round_[i] for round_ in drawn) for i in (0, 1))
    return [
        *steps,
        *trained,
        Figure("uniforms(10^7): a loop takes", loop, "times", least=100),
        Figure("uniforms(10^7) beside numpy's PCG64", pcg64, "times", 8),
        Figure("uniforms(10^7): memory beside the result", (_memory(),), "MiB", 8),
        *(Figure(name, tuple(each[name] for each in spent), "s", most) for name, most in BPE),
    ]


STEP_B, STEP_T = 4, 128


def _steps(rounds: int) -> list[Figure]:
    """Forward, backward and AdamW of the size d4, and the same in PyTorch, one after the other."""
    import torch

    from reference.llmc import autograd, optim
    from reference.llmc.model import CONFIGS, GPT2
    from reference.oracle import gpt2_torch

    config = CONFIGS["d4"]
    ids = np.random.RandomState(1).randint(0, config.V, (STEP_B, STEP_T + 1))
    x, y = ids[:, :-1], ids[:, 1:]
    ours = GPT2(config)
    ours_adamw = optim.AdamW(optim.decay_groups(ours.parameters(), 0.1))
    theirs = {n: torch.tensor(a, requires_grad=True) for n, a in ours.state_dict().items()}
    theirs_adamw = torch.optim.AdamW(theirs.values(), weight_decay=0.1)

    def our_step() -> None:
        ours.zero_grad()
        autograd.CrossEntropy(y)(ours(x)).backward()
        ours_adamw.step()

    def their_step() -> None:
        theirs_adamw.zero_grad()
        logits = gpt2_torch.logits_of(theirs, torch.tensor(x), config.NH).reshape(-1, config.V)
        torch.nn.functional.cross_entropy(logits, torch.tensor(y).reshape(-1)).backward()
        theirs_adamw.step()

    pairs = [(seconds(our_step), seconds(their_step)) for _ in range(rounds + 1)][1:]
    torchs = tuple(their for _, their in pairs)
    tracemalloc.start()
    our_step()
    peak = tracemalloc.get_traced_memory()[1] / MIB
    tracemalloc.stop()
    return [
        Figure("step of d4, B 4, T 128: PyTorch", torchs, "s"),
        Figure("step of d4: ours", tuple(our for our, _ in pairs), "s", 2.5 * median(torchs)),
        Figure("step of d4: memory beside weights and moments", (peak,), "MiB"),
    ]


BPE = (
    ("tokenizer: encode 1 MB of plays", 3.0),
    ("tokenizer: encode a word of 100 000 letters", 2.0),
    ("tokenizer: train 1 MB to 1 024 tokens", 10.0),
)


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _uniforms() -> tuple[float, float]:
    """How many times as long a loop of `uniform` takes, and `uniforms` as numpy's PCG64."""
    from reference.llmc.rand import PCG32

    ours, one_by_one, theirs = PCG32(1), PCG32(1), np.random.Generator(np.random.PCG64(1))
    blocks = seconds(lambda: ours.uniforms(NUMBERS))
    loop = seconds(lambda: [one_by_one.uniform() for _ in range(LOOP)]) * NUMBERS / LOOP
    return loop / blocks, blocks / seconds(lambda: theirs.random(NUMBERS))


def _memory() -> float:
    """The most that `uniforms` holds at once, without the 80 MB that it returns."""
    from reference.llmc.rand import PCG32

    generator = PCG32(1)
    tracemalloc.start()
    result = generator.uniforms(NUMBERS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - result.nbytes) / MIB


def _tokenizer() -> Iterator[tuple[str, float]]:
    from reference.llmc.tokenizer import BPE as Tokenizer
    from reference.llmc.tokenizer import train_bpe

    text = TEXT.read_bytes()[: 10**6].decode("utf-8", "ignore")
    word = "".join(random.Random(5).choices(string.ascii_lowercase, k=100_000))
    gpt2 = Tokenizer.from_vocab(VOCABULARY)
    calls = (
        lambda: gpt2.encode(text),
        lambda: gpt2.encode(word),
        lambda: train_bpe(text, 1024),
    )
    for (name, _), call in zip(BPE, calls, strict=True):
        yield name, seconds(call)
