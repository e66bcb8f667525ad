"""What decides the rows of bigram.py."""

import json

import numpy as np

from autograder.compare import Mismatch, Seen, expect, near, raised, same

ROUNDING = 1e-12  # sums of some hundred logarithms
TABLE = 1e-6  # a logarithm near 1, in float32
TEXT = "a text of 300 ids"


def counts(seen: Seen) -> None:
    hint = "row: this id; column: the next; a pair that comes twice counts twice"
    same(seen, "abbacab", input="abbacab, V 3, row by row", hint=hint)
    same(seen, "two", input="two ids, 1 0, V 2", hint=hint)
    same(seen, "more", input="abbacab, V 4, row by row", hint="V rows and columns, whatever came")
    same(seen, "text_int64", input=TEXT, hint="each pair of neighbours once")


def counts_edges(seen: Seen) -> None:
    hint = "as for int64; i V + j does not fit into such a type"
    same(seen, "text_uint8", input=f"{TEXT}, uint8", hint=hint)
    same(seen, "wide", input="299 1 299 298 299 1, V 300: rows 1, 298, 299 of these columns")
    same(seen, "bytes", input="255 254 255, V 256: the last six rows", hint=hint)
    raised(seen, "short", "ValueError", "one id")
    raised(seen, "high", "ValueError", "id 2, V 2")
    raised(seen, "negative", "ValueError", "id -1")


def floor(seen: Seen) -> None:
    hint = "each pair's count times log(count / its row's sum), in nats; no count adds nothing"
    near(seen, "abbacab", ROUNDING, input="the counts of abbacab", hint=hint)
    near(seen, "uneven", ROUNDING, input="counts 1 2 / 0 3", hint=hint)
    near(seen, "certain", ROUNDING, input="counts 0 5 / 3 0", hint="0 log 0 adds nothing")
    near(
        seen, "empty", ROUNDING, input="counts 0 5 0 / 3 0 0 / 0 0 0", hint="nor does an empty row"
    )


def add_one(seen: Seen) -> None:
    hint = "log((count + 1) / (the row's sum + V))"
    near(seen, "abbacab", TABLE, input="abbacab, V 3, row by row", hint=hint)
    near(seen, "text", TABLE, input="a text of 90 ids, V 7, row by row", hint=hint)
    same(seen, "default", input="vocab by default", hint="bytes")
    raised(seen, "short", "ValueError", "one id")
    raised(seen, "negative", "ValueError", "id -1")


def nll(seen: Seen) -> None:
    hint = "the mean over T - 1 predictions of log Σ e^z - z[next]"
    near(seen, "text", ROUNDING, input="a text of 90 ids, any table", hint=hint)
    near(seen, "two", ROUNDING, input="two ids", hint=hint)
    near(seen, "even", ROUNDING, input="a table of zeros, V 3: log 3", hint=hint)


def nll_edges(seen: Seen) -> None:
    near(seen, "large", ROUNDING, input="rows 300 -300 / 0 1000", hint="take the maximum off")
    raised(seen, "high", "ValueError", "an id V")
    raised(seen, "negative", "ValueError", "id -1")
    raised(seen, "short", "ValueError", "one id")


SHAPES = (("line", "ids (4,)"), ("block", "ids (2,3)"), ("single", "one id, ()"))


def _rows(seen: Seen) -> None:
    for name, text in SHAPES:
        same(seen, f"{name}_f32_shape", input=f"the shape for {text}", hint="(..., V)")
        same(
            seen,
            f"{name}_f32",
            input=f"rows for {text}",
            hint="the row of each id; matmul_forward takes a weight (out, in)",
        )


def logits(seen: Seen) -> None:
    _rows(seen)
    if seen.native:  # else numpy stands in, and what is right so far is left out of the total
        hint = "llmc/native.py's matmul_forward"
        same(seen, "all_in_c", input="1: C multiplied as many rows as there are ids", hint=hint)


def logits_refused(seen: Seen) -> None:
    raised(seen, "high", "ValueError", "an id V")
    raised(seen, "negative", "ValueError", "id -1")


def rows(seen: Seen) -> None:
    same(seen, "start", input="the table at first", hint="zeros, float32")
    same(seen, "trained", input="whether it requires a gradient; parameters", hint="one parameter")
    _rows(seen)
    raised(seen, "high", "IndexError", "an id V")
    raised(seen, "negative", "IndexError", "id -1")
    same(seen, "default", input="rows by default", hint="bytes")


def first_gradient(seen: Seen) -> None:
    near(seen, "loss_f32", TABLE, input="abbacab, a table of zeros: log 3")
    hint = "each prediction adds p - 1 at the next id, p elsewhere, over 6; zeros: none arrived"
    near(seen, "gradient_f32", TABLE, input="the gradient, row by row", hint=hint)


GAP = 1e-3  # nats above the floor


def trained(seen: Seen) -> None:
    """The table's loss on the text, and the least that is possible, are computed here."""
    same(seen, "text", input="the text")
    ids, table = seen.want("text"), seen.got("table")
    V = int(ids.max()) + 1
    fine = table.dtype == np.float32 and table.size == V * V and bool(np.isfinite(table).all())
    expect(fine, "no table", input="after 200 steps", got=f"{table.size} of {table.dtype}")
    pairs = np.zeros((V, V))
    np.add.at(pairs, (ids[:-1], ids[1:]), 1)
    z = table.astype(np.float64).reshape(V, V)
    z = z - z.max(axis=1, keepdims=True)
    nll = np.log(np.exp(z).sum(axis=1, keepdims=True)) - z
    some = np.maximum(pairs, 1e-300) / np.maximum(pairs.sum(axis=1, keepdims=True), 1)
    least = -(pairs * np.log(some)).sum() / pairs.sum()
    got = (pairs * nll).sum() / pairs.sum()
    expect(
        least - ROUNDING <= got <= least + GAP,
        "not at the floor",
        input="a text of 400 ids, 200 steps of AdamW over all pairs",
        got=f"{got:.6f} nats",
        expected=f"{least:.6f} to {least + GAP:.6f}",
        hint="the loss is convex: gradients that are right find what counting gives",
    )


def to_lm(seen: Seen) -> None:
    same(seen, "copy", input="to_lm().weight", hint="the table, float32")
    same(seen, "converted", input="to_lm().weight where training is in float64", hint="float32")
    same(seen, "class", input="1: a BigramLM")
    hint = "a copy: neither table may change the other"
    same(seen, "after_training", input="to_lm().weight after the model was trained on", hint=hint)
    same(seen, "of_the_model", input="the model after to_lm().weight[0, 0] = 99", hint=hint)


def sample(seen: Seen) -> None:
    for i, temperature in enumerate(("0.5", "1", "2")):
        text = f"40 ids after {i}, temperature {temperature}"
        hint = "one PCG32(seed) for all ids, one uniform() for each; divide by the temperature"
        same(seen, f"ids_{i}", input=text, hint=hint, at="id")
    same(seen, "default", input="20 ids after 0", hint="temperature 1", at="id")


def sample_edges(seen: Seen) -> None:
    same(seen, "again", input="the same 20 ids in another call", at="id")
    same(seen, "none", input="no ids")
    same(seen, "large", input="logits 1000 and 1000.5", hint="take the maximum off", at="id")
    text = "60 ids, logits near 2^22, temperature 3/4"
    same(seen, "far", input=text, hint="float64 before the division", at="id")
    raised(seen, "start", "ValueError", "a start of V")
    raised(seen, "negative", "ValueError", "a start of -1")


# ---------------------------------------------------------------- files


def _tensor(raw: bytes, name: str) -> np.ndarray:
    """A float32 tensor of a .safetensors file: the length of a header, 8 bytes; the header, JSON;
    then the tensors. Raises Mismatch."""
    length = int.from_bytes(raw[:8], "little")
    try:
        entries = json.loads(raw[8 : 8 + length].decode())
        spans = [entry["data_offsets"] for key, entry in entries.items() if key != "__metadata__"]
        entry = entries[name]
        (start, stop), shape = entry["data_offsets"], entry["shape"]
        whole = 8 + length + max(span[1] for span in spans) == len(raw)
        if whole and entry["dtype"] == "F32" and all(type(n) is int for n in (start, stop, *shape)):
            return np.frombuffer(raw[8 + length :][start:stop], "<f4").reshape(shape)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise Mismatch(f"no float32 tensor {name} in it", input="model.safetensors after save")


def save(seen: Seen) -> None:
    want = seen.want("table")
    for name, text in (("weights", "a table"), ("turned", "a table that lies turned in memory")):
        got = _tensor(seen.got(name).tobytes(), "bigram.weight")
        fine = got.shape == (7, 7) and np.array_equal(got.ravel(), want)
        hint = "safetensors writes memory as it lies: rows must lie one behind the other"
        expect(fine, "another table", input=f"bigram.weight of {text}", hint=hint)


def save_config(seen: Seen) -> None:
    try:
        got = json.loads(seen.got("config").tobytes().decode())
    except (ValueError, RecursionError):
        raise Mismatch("no JSON", input="config.json after save") from None
    fine = isinstance(got, dict) and got.get("tl_arch") == "bigram" and got.get("vocab_size") == 7
    wanted = '"tl_arch": "bigram", "vocab_size": 7'
    expect(fine, "other contents", input="config.json", got=str(got)[:120], expected=wanted)


def load(seen: Seen) -> None:
    same(seen, "table", input="bigram.weight of a directory, row by row")
    same(seen, "more", input="the same with another tensor beside it")


def load_refused(seen: Seen) -> None:
    for name, text in (
        ("other", 'tl_arch "mlp"'),
        ("no_arch", "no tl_arch"),
        ("no_object", "a config that is a list"),
        ("other_size", "another vocab_size than the table's"),
        ("no_tensor", "no tensor bigram.weight"),
        ("doubles", "bigram.weight in float64"),
        ("not_square", "bigram.weight (5, 7)"),
        ("cut", "model.safetensors, 4 bytes short"),
    ):
        raised(seen, name, "ValueError", text)
    for name, text in (("nowhere", "no directory"), ("no_weights", "no model.safetensors")):
        raised(seen, name, "OSError FileNotFoundError", text)
