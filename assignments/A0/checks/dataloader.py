"""What decides the items of dataloader.h."""

import numpy as np

from autograder.compare import Cannot, Seen, difference, expect, refused, same
from autograder.observe import Array

FIELDS = (
    "process_rank",
    "num_processes",
    "B",
    "T",
    "should_shuffle",
    "shards",
    "num_tokens",
    "shard_num_samples",
    "file_size_bytes",
    "header_bytes",
    "total_batch_size_bytes",
    "local_batch_offset_bytes",
    "current_shard_idx",
    "current_sample_idx",
)
BATCH = "B 2, T 3, tokens in order of the file"


def pairs_load_shard(seen: Seen) -> None:
    for shard in (1, 0):
        for name, text in (
            ("tokens", "tokens returned"),
            ("samples", "shard_num_samples"),
            ("bytes", "file_size_bytes"),
        ):
            hint = "a new shard brings new sizes; one token past the last sample is a target"
            same(seen, f"{name}_{shard}", input=f"shard {shard}: {text}", hint=hint)
    same(seen, "tokens_least", input="a shard of one token: tokens returned", hint="one is enough")
    same(seen, "samples_least", input="a shard of one token: shard_num_samples")


def pairs_init(seen: Seen) -> None:
    hints = {
        "num_tokens": "of all shards together",
        "shard_num_samples": "(ntok - 1) / (num_processes * B * T), of the open shard",
        "file_size_bytes": "the open shard is the first one",
        "total_batch_size_bytes": "two bytes a token, all processes",
        "local_batch_offset_bytes": "two bytes a token, the processes before this one",
    }
    for name in FIELDS:
        text = f"rank 1 of 2, B 2, T 3, shards of 41 and 30 tokens: {name}"
        same(seen, name, input=text, hint=hints.get(name, ""))


def pairs_inputs(seen: Seen) -> None:
    same(seen, "loaded_inputs", input="load_batch after init", hint="the first B*T tokens")
    same(
        seen,
        "inputs",
        input=f"6 batches, {BATCH}",
        hint="batch i starts at token i * B * T",
        at="token",
    )
    hint = "load_batch moves nothing on; next_batch counts up after loading"
    same(seen, "samples", input="current_sample_idx after each batch", hint=hint, at="batch")


def pairs_targets(seen: Seen) -> None:
    hint = "targets are the inputs one token later, also at the end of the batch"
    same(seen, "loaded_targets", input="load_batch after init", hint=hint)
    same(seen, "targets", input=f"6 batches, {BATCH}", hint=hint, at="token")


def pairs_far(seen: Seen) -> None:
    hint = "the offset of a token passes 2^31 bytes: 64 bits all the way to fseek"
    for name in ("samples", "first_inputs", "last_targets"):
        same(seen, name, input=f"the last batch of a shard of 2.2 GB: {name}", hint=hint)


def pairs_refuse(seen: Seen) -> None:
    refused(
        seen,
        good="a good shard",
        no_match="a pattern without a match",
        unreadable="a link to nowhere",
        bad_magic="another magic number",
        bad_version="version 2",
        more_tokens_claimed="a header that counts more tokens than there are",
        fewer_tokens_claimed="a header that counts fewer tokens than there are",
        zero_tokens="a shard of 0 tokens",
        too_few_tokens="a shard of B*T tokens, one too few",
        too_few_for_2="a shard of 2*B*T tokens, one too few for two processes",
        header_cut_short="a header cut short",
    )


def pairs_real(seen: Seen) -> None:
    if seen.data is None:
        raise Cannot("needs data")
    first = min(seen.data.glob("*_train_*.bin"))
    tokens = np.fromfile(first, np.uint16)[512:]
    for i in range(2):
        for name, shift in (("inputs", 0), ("targets", 1)):
            start = 256 * i + shift
            want = tokens[start : start + 256].astype(np.int32)
            got = seen.got(f"{name}_{i}")
            if not np.array_equal(got, want):
                where = _first(got, want)
                raise difference(got, want, where, input=f"{name} of batch {i}", at="token")
    used = tokens[: (tokens.size - 1) // 256 * 256].astype(np.int64)
    for name, number in (("batches", used.size // 256), ("sum", int(used.sum()))):
        got_number = seen.number(name)
        expect(
            got_number == number,
            name,
            input=f"an epoch of {first.name}, B 4, T 64: {name}",
            got=str(got_number),
            expected=str(number),
        )


def _first(got: Array, want: Array) -> int:
    size = min(got.size, want.size)
    return int(np.argmax(got[:size] != want[:size]))


def eval_rows(seen: Seen) -> None:
    for name in ("num_examples", "num_batches", "num_completions"):
        same(seen, name, input=f"5 examples, B 8: {name}")
    same(seen, "filename", input="filename is the name of the file")
    for i in range(3):
        hint = "1 where the target belongs to the completion: from the end of the context on"
        same(seen, f"mask_{i}", input=f"mask of batch {i}, B 8, T 24", hint=hint, at="position")
        _eval_rows_of_batch(seen, i)
    same(seen, "inputs_reset", input="the first example after a reset")
    text = "an example of 65 532 bytes: the last target of each row"
    same(seen, "long_targets", input=text, hint="the buffer holds EVAL_BUFFER words", at="row")


def _eval_rows_of_batch(seen: Seen, i: int) -> None:
    """Inputs up to the last masked position, targets where the mask is 1, labels of examples."""
    mask = seen.want(f"mask_{i}").reshape(8, 24) > 0
    used = np.flip(np.logical_or.accumulate(np.flip(mask, 1), axis=1), 1)
    has = mask.reshape(2, -1).any(1)
    for name, where in (("inputs", used.ravel()), ("targets", mask.ravel()), ("label", has)):
        got, want = seen.got(f"{name}_{i}"), seen.want(f"{name}_{i}")
        expect(got.dtype == want.dtype and got.shape == want.shape, f"{name}: wrong form")
        bad = where & (got != want)
        if bad.any():
            raise difference(
                got, want, int(np.argmax(bad)), input=f"{name} of batch {i}, B 8, T 24"
            )
    for name in ("inputs", "targets"):
        tokens = seen.got(f"{name}_{i}")
        expect(
            bool(((tokens >= 0) & (tokens <= 65535)).all()),
            f"{name} that are no tokens",
            input=f"{name} of batch {i}, also where the mask is 0",
            hint="what malloc left there would reach the model",
        )


def eval_ranks(seen: Seen) -> None:
    hint = "ceil(7 / processes) examples each, in order; the last ones may have fewer, or none"
    for processes in (3, 5, 7, 8):
        for name, text in (
            ("counts", "examples of each"),
            ("firsts", "first token of each"),
            ("masked", "masked tokens in the first batch of each"),
            ("batches", "num_batches of each"),
            ("places", "process_rank, num_processes of each"),
        ):
            text = f"7 examples, {processes} processes: {text}"
            same(seen, f"{name}_of_{processes}", input=text, hint=hint, at="process")


def eval_stat(seen: Seen) -> None:
    hint = "mean loss over mask 1, lowest wins, rows without mask do not count"
    text = "40 batches of three and two examples in turn: right answers"
    same(seen, "right", input=text, hint=hint, at="batch")
    text = "three examples, all losses equal, labels 0, 1, 2: right answers"
    same(seen, "right_of_equals", input=text, hint="of equal means the first wins")


def eval_refuse(seen: Seen) -> None:
    refused(
        seen,
        good="a good eval file",
        missing="a file that is not there",
        rows_below_4="B 3",
        longer_than_T="an example one token longer than T",
        bad_magic="another magic number",
        bad_version="version 2",
        cut_short="a file cut short",
        no_examples="a header that counts no examples",
        no_mark="an example that does not start with the mark",
        no_mark_passed="such an example among those of the process before",
        three_completions="an example that counts three completions",
        last_token_missing="an example that ends before its last token",
        last_completion_missing="an example that ends before its last completion",
        header_cut_short="a header cut short by one word",
    )


FOUR = "shards of 41, 24, 33 and 27 tokens, B 2, T 3"


def order_rollover(seen: Seen) -> None:
    hint = "6, 3, 5 and 4 samples; then the first shard again"
    same(seen, "inputs", input=f"two epochs, {FOUR}", hint=hint, at="token")
    same(seen, "targets", input=f"two epochs, {FOUR}", hint=hint, at="token")


def order_striding(seen: Seen) -> None:
    for rank in range(3):
        hint = "process r starts r * B * T tokens in; all stride by num_processes * B * T"
        same(seen, f"rank_{rank}", input=f"process {rank} of 3, 7 batches", hint=hint, at="token")


def order_shuffled(seen: Seen) -> None:
    hint = "seed 42 + rank; each epoch first the shards, then each shard's samples as it opens"
    same(seen, "inputs", input=f"two shuffled epochs, {FOUR}", hint=hint, at="token")


def order_shuffled_ranks(seen: Seen) -> None:
    for rank in range(2):
        hint = "each process draws its own orders, from seed 42 + rank"
        same(seen, f"rank_{rank}", input=f"process {rank} of 2, shuffled", hint=hint, at="token")


def order_resume(seen: Seen) -> None:
    for name, text in (("shard", "current_shard_idx"), ("sample", "current_sample_idx")):
        same(seen, name, input=f"resume at (2, 3): {text}")
    hint = "open that shard; the next batch is that sample"
    same(seen, "inputs", input="6 batches from (2, 3)", hint=hint, at="token")
    bad = {"no_such_shard": "shard 4 of 0 to 3", "far_shard": "shard 9 of 0 to 3"}
    refused(seen, good="shard 3 of 0 to 3", **bad)


def order_resume_shuffled(seen: Seen) -> None:
    hint = "resume draws nothing and permutes nothing: the run goes on as if never interrupted"
    same(seen, "inputs", input="24 shuffled batches from (0, 2)", hint=hint, at="token")


def clean_dataloader(seen: Seen) -> None:
    seen.no_warnings()
    seen.no_files_left_open()
    seen.no_leaks(after="inputs")
