"""train_gpt2.py: trains GPT-2 on shards of tokens, and writes the exam that C has to pass.

    python train_gpt2.py        a few steps on one batch, so that there is an exam
    python train_gpt2.py --model d4 --steps 200 --overfit_single_batch 0

The exam goes to .data, or to --out: gpt2_MODEL.bin, the weights before the first step, and
gpt2_MODEL_debug_state.bin, the first batch with its logits, loss and gradients (llmc/exam.py). At
the end it samples.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from llmc import autograd as ad
from llmc import exam, optim
from llmc.autograd import Array, Ints, no_grad
from llmc.dataloader import DistributedDataLoader
from llmc.model import CONFIGS, GPT2, Config
from llmc.rand import PCG32
from llmc.sampler import sample_pcg
from llmc.tokenizer import BPE

DATA = Path(".data")
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # (in, out) in published files
SAMPLED = 32  # tokens at the end


def published(path: Path) -> dict[str, Array]:
    """Name → tensor of a .safetensors file of GPT-2, with our names and shapes.

    Raises ValueError for a file that is none, and for another type than a float of 16, 32 or 64
    bits.
    """
    try:
        found = load(path.read_bytes())
    except (SafetensorError, KeyError) as fault:  # numpy has no bfloat16
        raise ValueError(f"{path}: no safetensors file that numpy can hold ({fault})") from None
    tensors = {}
    for name, array in found.items():
        name = name.removeprefix("transformer.")
        if name.endswith((".attn.bias", ".attn.masked_bias")) or name == "lm_head.weight":
            continue  # the mask, which is no parameter; and wte once more
        if array.dtype.kind != "f":
            raise ValueError(f"{path}: {name} is of type {array.dtype}")
        tensors[name] = array.T if name.endswith(TRANSPOSED) else array
    return tensors


def config_of(tensors: Mapping[str, Array]) -> Config:
    """The sizes that tensors of GPT-2 have; its heads have 64 channels."""
    V, C = tensors["wte.weight"].shape
    L = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("h."))
    return Config(maxT=len(tensors["wpe.weight"]), V=V, L=L, NH=max(1, C // 64), C=C)


def sample(model: GPT2, tokenizer: BPE, rng: PCG32) -> str:
    """SAMPLED tokens, begun with <|endoftext|>; each costs a forward over all before it."""
    ids = [tokenizer.eot]
    with no_grad():
        for _ in range(SAMPLED):
            logits = model(np.array([ids[-model.config.maxT :]])).data[0, -1]
            ids.append(sample_pcg(logits, 1.0, rng))
    return tokenizer.decode(ids[1:])


def step(model: GPT2, optimiser: optim.AdamW, x: Ints, y: Ints, exam_to: Path | None) -> float:
    """One step on a batch x, y (B,T); returns its loss. Writes the exam before the update."""
    model.zero_grad()
    logits = model(x)
    loss = ad.CrossEntropy(y)(logits)
    loss.backward()
    if exam_to is not None:
        exam.write_model(exam_to.with_name(f"{exam_to.name}.bin"), model)
        state = exam_to.with_name(f"{exam_to.name}_debug_state.bin")
        exam.write_state(state, model, x, y, logits.data, float(loss.data))
        print(f"wrote {exam_to}.bin and {state}")
    optimiser.step()
    return float(loss.data)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", choices=CONFIGS, default="d2", help="sizes, freshly drawn")
    parser.add_argument("--init-from", type=Path, metavar="FILE.safetensors")
    parser.add_argument("--data", default=str(DATA / "*_train_*.bin"), metavar="PATTERN")
    parser.add_argument("--tokenizer", type=Path, default=DATA / "gpt2_tokenizer.bin")
    parser.add_argument("--out", type=Path, default=DATA, metavar="FOLDER")
    parser.add_argument("-B", type=int, default=4, help="rows of a batch")
    parser.add_argument("-T", type=int, default=64, help="tokens of a row")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--weight_decay", type=float, default=0.0)
    parser.add_argument("--overfit_single_batch", type=int, choices=(0, 1), default=1)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    return parser.parse_args()


def main() -> int:
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # the loss tells
            return train(parsed())
    except NotImplementedError as missing:
        print(f"train_gpt2: {missing} is not written yet", file=sys.stderr)
        return 1


def train(args: argparse.Namespace) -> int:
    """Returns the exit status."""
    try:
        if args.init_from is None:
            model, name = GPT2(CONFIGS[args.model], args.dtype), args.model
        else:
            tensors = published(args.init_from)
            model, name = GPT2(config_of(tensors), args.dtype), args.init_from.stem
            model.load_state_dict(tensors)
        loader = DistributedDataLoader(args.data, args.B, args.T)
        tokenizer = BPE.from_vocab(args.tokenizer)
    except (OSError, ValueError) as fault:
        print(f"train_gpt2: {fault}", file=sys.stderr)
        return 1
    optimiser = optim.AdamW(optim.decay_groups(model.parameters(), args.weight_decay), args.lr)
    print(f"{name}: {sum(p.data.size for p in model.parameters()):,} parameters, {args.dtype}")
    for number in range(args.steps):
        started = time.perf_counter()
        if args.overfit_single_batch:
            loader.reset()
        x, y = loader.next_batch()
        loss = step(model, optimiser, x, y, None if number else args.out / f"gpt2_{name}")
        spent = time.perf_counter() - started
        rate = args.B * args.T / spent
        print(
            f"step {number + 1:4d}  loss {loss:.6f}  {1000 * spent:6.0f} ms  {rate:6.0f} tokens/s"
        )
        if not math.isfinite(loss):
            print("train_gpt2: the loss is no number any more: a smaller --lr?", file=sys.stderr)
            return 1
    model.eval()
    print(sample(model, tokenizer, PCG32(0).substream("sample")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
