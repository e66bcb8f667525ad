"""What decides the items of dataloader.py."""

from autograder.compare import Seen, accepted, expect, raised, same

WINDOW = "B 2, T 3"


def shard_values(seen: Seen) -> None:
    same(seen, "header", input="a header of given words", hint="all 256, as int32", at="word")
    hint = "uint16, from byte 1024 on, as many as the header says"
    for name in ("dtype", "shape", "tokens"):
        same(seen, name, input=f"a good shard: {name}", hint=hint)
    hint = "map the file (np.memmap); a copy in memory does not follow it, and costs all of it"
    same(seen, "tokens_later", input="the file's bytes change after read_shard", hint=hint)
    same(seen, "tokens_least", input="a shard of one token", hint="one is enough")


def shard_refuse(seen: Seen) -> None:
    size = int(seen.want("size")[0])
    accepted(seen, "good", "a good shard")
    raised(seen, "bad_magic", "ValueError", "magic number 20240521", 20240521)
    raised(seen, "bad_version", "ValueError", "version 2", 2)
    for name, claimed, held in (
        ("more_claimed", size + 1, 1024 + 2 * size),
        ("fewer_claimed", size - 1, 1024 + 2 * size),
        ("odd_size", size, 1023 + 2 * size),
    ):
        text = f"a header that counts {claimed} tokens, a file of {held} bytes"
        raised(seen, name, "ValueError", text, claimed, held, size)
    raised(seen, "no_tokens", "ValueError", "a shard of 0 tokens", 0)
    raised(seen, "header_cut_short", "ValueError", "a file of 2 words", 2, 8)
    raised(seen, "word_missing", "ValueError", "a file of 255 words", 255, 1020)


def shard_shuffle(seen: Seen) -> None:
    for name, size in (("one", 1), ("two", 2), ("ten", 10), ("many", 100)):
        hint = "from the last down: one word for each i, j = word mod (i + 1), swap"
        same(seen, name, input=f"{size} elements, a given generator", hint=hint)
    accepted(seen, "none", "an empty list")


def shard_draws(seen: Seen) -> None:
    for name, size in (("one", 1), ("two", 2), ("ten", 10), ("many", 100)):
        hint = f"{size} elements take {size - 1} words"
        same(seen, f"{name}_next", input=f"the word behind a shuffle of {size}", hint=hint)


def stream_fields(seen: Seen) -> None:
    hints = {
        "files": "sorted by name; glob.glob promises no order",
        "num_tokens": "of all shards together",
        "num_samples": "(ntok - 1) // (world * B * T), of the open shard",
        "tokens": "the open shard is the first one",
        "words": "RandomState(42 + rank), from which nothing is drawn unless shuffled",
    }
    names = ("files", "B", "T", "rank", "world", "num_tokens", "num_samples", "current_shard")
    for name in (*names, "current_sample", "shard_order", "tokens", "words"):
        text = {"words": "the first words of rng"}.get(name, name)
        same(seen, name, input=f"{WINDOW}, rank 1 of 2: {text}", hint=hints.get(name, ""))
    accepted(seen, "sample_order", "the attribute sample_order")
    hint = "a position in shard_order; its first sample"
    text = "load_shard(2) in shards 2 0 3 1"
    same(seen, "tokens_loaded", input=f"{text}: tokens", hint=hint)
    facts = "current_shard, current_sample, num_samples"
    same(seen, "place", input=f"{text}: {facts}", hint=hint)


def stream_refuse(seen: Seen) -> None:
    accepted(seen, "good", "shards of 13 and 12 tokens, B 2, T 3")
    accepted(seen, "good_for_2", "a shard of 13 tokens, B 2, T 3, two processes")
    raised(seen, "no_match", "FileNotFoundError", "a pattern without a match", "nothing_*.bin")
    text = "a shard of 12 tokens, one too few for two processes"
    raised(seen, "too_few_for_2", "ValueError", text, 12)
    raised(seen, "bad_rank", "ValueError", "rank 2 of 2", 2)


def stream_x(seen: Seen) -> None:
    for name in ("shapes", "x"):
        same(seen, name, input=f"the first batch, {WINDOW}: {name}", hint="(B,T) int32")
    same(seen, "current_sample", input="current_sample after it", hint="the batch that comes next")
    hint = "batch i starts at token i * B * T, and is an array of its own"
    same(seen, "x_rest", input=f"the batches after it, {WINDOW}", hint=hint, at="token")
    hint = "advance first where no sample is left"
    same(seen, "x_next", input="a batch behind the last of a shard", hint=hint, at="token")
    hint = "shuffled, sample_order says which sample comes at each position"
    same(seen, "x_ordered", input="sample_order 1 2 ... 0, shuffled", hint=hint, at="token")


def stream_y(seen: Seen) -> None:
    hint = "y is x one token later, also at the end of the batch"
    same(seen, "y", input=f"the first batch, {WINDOW}", hint=hint, at="token")
    same(seen, "y_rest", input=f"the batches after it, {WINDOW}", hint=hint, at="token")


def stream_stride(seen: Seen) -> None:
    hint = "process r starts r * B * T tokens in; all stride by world * B * T"
    for rank in range(3):
        for name in ("x", "y"):
            text = f"rank {rank} of 3, 7 batches, {WINDOW}: {name}"
            same(seen, f"{name}_{rank}", input=text, hint=hint, at="token")


def order_rollover(seen: Seen) -> None:
    hint = "a shard ends where no whole sample is left; behind the last comes the first"
    for name in ("x", "y"):
        same(seen, name, input=f"two epochs of four shards: {name}", hint=hint, at="token")
    same(seen, "place", input="current_shard, current_sample, one batch later", hint=hint)


def order_shuffled(seen: Seen) -> None:
    hint = "each epoch first the shards, then each shard's samples as it opens"
    same(seen, "x", input="two shuffled epochs of four shards", hint=hint, at="token")


def order_ranks(seen: Seen) -> None:
    for rank in range(2):
        hint = "each process draws its own orders, from seed 42 + rank"
        same(seen, f"x_{rank}", input=f"rank {rank} of 2, shuffled", hint=hint, at="token")


def resume_place(seen: Seen) -> None:
    same(seen, "place", input="resume(2, 3): current_shard, current_sample, num_samples")
    hint = "open that shard; the next batch is that sample"
    same(seen, "x", input="from (2, 3) to the end of the shard", hint=hint, at="token")
    text = "resume at the end of shard 1: current_shard, current_sample, num_samples"
    same(seen, "place_end", input=text, hint="num_samples is a place, too")
    accepted(seen, "first_shard", "resume(0, 0)")
    beyond = int(seen.want("beyond")[0])
    raised(seen, "no_shard", "IndexError", "resume(4, 0) with four shards", 4)
    raised(seen, "negative_shard", "IndexError", "resume(-1, 0)", -1)
    raised(seen, "no_sample", "IndexError", f"resume(1, {beyond}), one behind the end", beyond)
    raised(seen, "negative_sample", "IndexError", "resume(1, -1)", -1)


def resume_shuffled(seen: Seen) -> None:
    hint = "resume draws nothing and permutes nothing; both arguments are positions in the orders"
    text = "resume(1, 1) in shards 2 0 3 1, samples in reverse order"
    same(seen, "x", input=text, hint=hint, at="token")
    same(seen, "place", input=f"{text}, to its end: current_shard, current_sample", hint=hint)
    same(seen, "shard_order", input=f"{text}: shard_order", hint=hint)
    same(seen, "next_word", input=f"{text}: the next word of rng", hint=hint)


def eval_rows(seen: Seen) -> None:
    same(seen, "counts", input="5 examples, B 10: num_examples, num_batches")
    at_first = seen.got("at_first")
    expect(
        at_first.shape == (4,) and not at_first.any(),
        "the first batch is there too early",
        input="inputs, targets, mask, label before next_batch",
        got=" ".join(map(str, at_first)) + " that are not 0",
        expected="all 0",
    )
    hints = {
        "mask": "true where the target belongs to the completion: from the end of the context on",
        "inputs": "context, then completion; the rest of the row is 0",
        "targets": "inputs one token later",
        "label": "of each example; 0 where there is none",
    }
    for i in range(3):
        for name, hint in hints.items():
            same(seen, f"{name}_{i}", input=f"{name} of batch {i}, B 10, T 24", hint=hint)
    same(seen, "inputs_again", input="the first batch after a reset")


def eval_ranks(seen: Seen) -> None:
    hint = "ceil(7 / world) examples each, in order; the last ones may have fewer, or none"
    for world in (3, 5, 8):
        text = f"7 examples, each of {world}: num_batches, examples, first token, masked tokens"
        same(seen, f"of_{world}", input=text, hint=hint, at="fact")


def eval_stat(seen: Seen) -> None:
    hint = "mean loss where mask is true, lowest wins, rows without mask do not count"
    text = "40 batches of three and two examples in turn: right answers"
    same(seen, "right", input=text, hint=hint, at="batch")
    text = "three examples, all losses equal, labels 0, 1, 2: right answers"
    same(seen, "right_of_equals", input=text, hint="of equal means the first wins")


def eval_refuse(seen: Seen) -> None:
    accepted(seen, "good", "a good eval file")
    accepted(seen, "good_4", "a good eval file, B 4")
    for name, text, values in (
        ("rows_below_4", "B 3", (3,)),
        ("longer_than_T", "example 2 has 24 tokens, T is 23", (2, 24)),
        ("bad_magic", "the magic number of a shard", (20240520,)),
        ("more_claimed", "a header that counts 4 examples of 3", (3, 4)),
        ("no_mark", "example 2 does not start with the mark", (2, 65534)),
        ("no_mark_passed", "example 0, of the process before, does not", (0, 65534)),
        ("three_completions", "example 2 counts three completions", (2, 3)),
        ("too_many_bytes", "example 2 is longer than the file", (2,)),
        ("label_4", "example 2 has label 4 of 4 completions", (2, 4)),
        ("odd_bytes", "example 2 has an odd number of bytes", (2,)),
        ("head_alone", "example 2 is a head and nothing else", (2,)),
        ("last_token_missing", "example 2 lacks its last token", (2,)),
        ("half_a_word", "a header that counts 3 examples, then one byte", (0, 3)),
        ("header_alone", "a header that counts 3 examples, then nothing", (0, 3)),
        ("token_missing", "example 1 of 3 lacks its last token", (1,)),
        ("empty_completion", "a completion of example 2 has no tokens", (2,)),
        ("completion_missing", "example 2 ends after its third completion", (2,)),
    ):
        raised(seen, name, "ValueError", text, *values)
