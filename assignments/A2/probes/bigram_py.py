"""Calls llmc/bigram.py on tables and texts of the probe's own, and prints what it made."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from given import given_u64s
from observe import array, data, number, numbers, outcome, tensor, text
from samples import Array, Draw

ABBACAB = np.array([0, 1, 1, 0, 2, 0, 1])  # the text of the example by hand
V = 7


def written(seed: int, n: int, vocab: int) -> Array:
    """A text of n ids, (n,) int64: after i mostly the ids that come soon behind it; not all pairs,
    and the last id only at the end."""
    steps = np.array(given_u64s(seed, 500_000, n), np.uint64) % np.uint64(6)
    hops = np.array([1, 1, 1, 2, 2, 3])[steps.astype(np.int64)]
    ids = np.cumsum(hops) % (vocab - 1)
    ids[-1] = vocab - 1
    return ids


def table(seed: int, vocab: int = V) -> Array:
    return Draw(seed, 510_000)(vocab, vocab, scale=8).astype(np.float32)


def case_counts(seed: int) -> None:
    from llmc.bigram import pair_counts

    array("abbacab", pair_counts(ABBACAB, 3), "i64")
    array("more", pair_counts(ABBACAB, 4), "i64")
    array("two", pair_counts(np.array([1, 0]), 2), "i64")
    for kind in (np.int64, np.uint8):
        array(f"text_{np.dtype(kind)}", pair_counts(written(seed, 300, 17).astype(kind), 17), "i64")
    array("bytes", pair_counts(np.array([255, 254, 255], np.uint8), 256)[250:], "i64")
    wide = pair_counts(np.array([299, 1, 299, 298, 299, 1]), 300)
    array("wide", wide[[1, 298, 299]][:, [1, 298, 299]], "i64")
    outcome("short", pair_counts, ABBACAB[:1], 3)
    outcome("high", pair_counts, np.array([0, 2]), 2)
    outcome("negative", pair_counts, np.array([1, -1]), 3)


def case_floor(seed: int) -> None:
    from llmc.bigram import floor_nll

    number("abbacab", floor_nll(np.array([[0, 2, 1], [1, 1, 0], [1, 0, 0]])), "f64")
    number("certain", floor_nll(np.array([[0, 5], [3, 0]])), "f64")
    number("empty", floor_nll(np.array([[0, 5, 0], [3, 0, 0], [0, 0, 0]])), "f64")
    number("uneven", floor_nll(np.array([[1, 2], [0, 3]])), "f64")


def case_add_one(seed: int) -> None:
    from llmc.bigram import BigramLM

    for name, ids, vocab in (("abbacab", ABBACAB, 3), ("text", written(seed, 90, V), V)):
        array(name, BigramLM.from_counts(ids, vocab).weight, "f32")
    number("default", BigramLM.from_counts(ABBACAB).vocab)
    outcome("short", BigramLM.from_counts, ABBACAB[:1], 3)
    outcome("negative", BigramLM.from_counts, np.array([1, -1]), 3)


def case_nll(seed: int) -> None:
    from llmc.bigram import BigramLM

    lm = BigramLM(table(seed))
    number("text", lm.nll(written(seed, 90, V)), "f64")
    number("two", lm.nll(np.array([3, 5])), "f64")
    number("even", BigramLM(np.zeros((3, 3), np.float32)).nll(ABBACAB), "f64")
    large = np.array([[300, -300], [0, 1000]], np.float32)
    number("large", BigramLM(large).nll(np.array([0, 1, 1])), "f64")
    outcome("high", lm.nll, np.array([0, V]))
    outcome("negative", lm.nll, np.array([1, -1]))
    outcome("short", lm.nll, np.array([1]))


def multiplied() -> int:
    """How many rows the C function has multiplied so far; 0 where there is no library."""
    path = os.environ.get("LLMC_NATIVE")
    if not path:
        return 0
    count = ctypes.CDLL(path).llmc_rows
    count.restype = ctypes.c_longlong
    return int(count())


def case_logits(seed: int) -> None:
    from llmc.bigram import BigramLM

    lm = BigramLM(table(seed))
    all_in_c = []
    for name, ids in shaped().items():
        before = multiplied()
        tensor(f"{name}_f32", lm.logits(ids), "f32")
        all_in_c.append(int(multiplied() - before >= ids.size))
    numbers("all_in_c", all_in_c)
    outcome("high", lm.logits, np.array([0, V]))
    outcome("negative", lm.logits, np.array([-1]))


def shaped() -> Mapping[str, Array]:
    return {
        "line": np.array([3, 0, 6, 3]),
        "block": np.array([[1, 2, 0], [6, 5, 4]]),
        "single": np.array(2),
    }


def case_rows(seed: int) -> None:
    from llmc.bigram import BigramLogits

    model = BigramLogits(V)
    array("start", model.weight.data, "f32")
    model.weight.data = table(seed)
    for name, ids in shaped().items():
        tensor(f"{name}_f32", model(ids).data, "f32")
    numbers("trained", [int(model.weight.requires_grad), len(model.parameters())])
    outcome("high", model, np.array([0, V]))
    outcome("negative", model, np.array([0, -1]))
    number("default", len(BigramLogits().weight.data))


def case_first_gradient(seed: int) -> None:
    """The example by hand: from zeros, the text abbacab."""
    from llmc.autograd import CrossEntropy
    from llmc.bigram import BigramLogits

    model = BigramLogits(3)
    loss = CrossEntropy(ABBACAB[1:])(model(ABBACAB[:-1]))
    loss.backward()
    tensor("loss_f32", loss.data, "f32")
    grad = np.zeros((3, 3), np.float32) if model.weight.grad is None else model.weight.grad
    tensor("gradient_f32", grad, "f32")


def case_trained(seed: int) -> None:
    """A table trained on a text, all pairs at each step; the check measures it."""
    from llmc import optim
    from llmc.autograd import CrossEntropy
    from llmc.bigram import BigramLogits

    optim.clip_grad_norm_ = lambda parameters, max_norm: 0.5  # nothing is clipped here
    from llmc.loop import train_step

    ids = written(seed, 400, V)
    model = BigramLogits(V)
    optimiser = optim.AdamW(optim.decay_groups(model.parameters(), 0.0))
    for step in range(STEPS):
        optimiser.lr = 1.0 - step / STEPS
        train_step(
            model,
            {"x": ids[:-1], "y": ids[1:]},
            lambda model, batch: CrossEntropy(batch["y"])(model(batch["x"])),
            optimiser,
        )
    array("text", ids, "i64")
    array("table", model.weight.data, "f32")


STEPS = 200


def case_to_lm(seed: int) -> None:
    from llmc.bigram import BigramLM, BigramLogits

    model = BigramLogits(V)
    model.weight.data = table(seed)
    lm = model.to_lm()
    array("copy", lm.weight, "f32")
    model.weight.data += 1
    array("after_training", lm.weight, "f32")
    lm.weight[0, 0] = 99
    array("of_the_model", model.weight.data, "f32")
    number("class", int(type(lm) is BigramLM))
    model.weight.data = table(seed).astype(np.float64)
    array("converted", model.to_lm().weight, "f32")


def case_sample(seed: int) -> None:
    from llmc.bigram import BigramLM

    lm = BigramLM(table(seed))
    for i, temperature in enumerate(TEMPERATURES):
        numbers(f"ids_{i}", lm.sample(i, 40, seed + i, temperature))
    numbers("default", lm.sample(0, 20, seed))
    numbers("again", lm.sample(0, 20, seed))
    numbers("none", lm.sample(0, 0, seed))
    near = np.zeros((2, 2), np.float32)
    near[0] = 1000.0, 1000.5
    numbers("large", BigramLM(near).sample(0, 30, seed))
    numbers("far", BigramLM(table(seed) + np.float32(2**22)).sample(0, 60, seed, 0.75))
    outcome("start", lm.sample, V, 1, seed)
    outcome("negative", lm.sample, -1, 1, seed)


TEMPERATURES = (0.5, 1.0, 2.0)


# ---------------------------------------------------------------- files


def case_save(seed: int) -> None:
    from llmc.bigram import BigramLM

    folder = Path("made", "model")
    lm = BigramLM(table(seed))
    array("table", table(seed), "f32")
    lm.save(folder)
    data("weights", (folder / "model.safetensors").read_bytes())
    data("config", (folder / "config.json").read_bytes())
    BigramLM(np.ascontiguousarray(table(seed).T).T).save(str(folder))
    data("turned", (folder / "model.safetensors").read_bytes())


def laid(name: str, config: object, tensors: Mapping[str, Array]) -> str:
    """A model directory of the probe's own."""
    folder = Path(name)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    kinds = {"float32": "F32", "float64": "F64"}
    entries, body = {}, b""
    for key, one in tensors.items():
        raw = one.tobytes()
        span = [len(body), len(body) + len(raw)]
        entries[key] = {"dtype": kinds[str(one.dtype)], "shape": one.shape, "data_offsets": span}
        body += raw
    head = json.dumps(entries).encode()
    head += b" " * (-len(head) % 8)
    content = len(head).to_bytes(8, "little") + head + body
    (folder / "model.safetensors").write_bytes(content)
    return name


def case_load(seed: int) -> None:
    from llmc.bigram import BigramLM

    good, weight = {"tl_arch": "bigram", "vocab_size": V}, table(seed)
    name = "bigram.weight"
    array("table", BigramLM.load(laid("good", good, {name: weight})).weight, "f32")
    more = {"extra": np.zeros(3, np.float32), name: weight}
    array("more", BigramLM.load(Path(laid("more", good, more))).weight, "f32")
    for bad, config, tensors in (
        ("other", {**good, "tl_arch": "mlp"}, {name: weight}),
        ("no_arch", {"vocab_size": V}, {name: weight}),
        ("no_object", ["tl_arch", "bigram"], {name: weight}),
        ("other_size", {**good, "vocab_size": V + 1}, {name: weight}),
        ("no_tensor", good, {"weight": weight}),
        ("doubles", good, {name: weight.astype(np.float64)}),
        ("not_square", good, {name: weight[:5]}),
    ):
        outcome(bad, BigramLM.load, laid(bad, config, tensors))
    cut = Path(laid("cut", good, {name: weight}), "model.safetensors")
    cut.write_bytes(cut.read_bytes()[:-4])
    outcome("cut", BigramLM.load, "cut")
    outcome("nowhere", BigramLM.load, "nowhere")
    Path(laid("no_weights", good, {}), "model.safetensors").unlink()
    outcome("no_weights", BigramLM.load, "no_weights")
    text("name", name)


CASES = {
    "counts": case_counts,
    "floor": case_floor,
    "add_one": case_add_one,
    "nll": case_nll,
    "logits": case_logits,
    "rows": case_rows,
    "first_gradient": case_first_gradient,
    "trained": case_trained,
    "to_lm": case_to_lm,
    "sample": case_sample,
    "save": case_save,
    "load": case_load,
}
