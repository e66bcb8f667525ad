"""What decides the items of tokenizer.py."""

from itertools import pairwise, zip_longest

import numpy as np

from autograder.compare import Seen, accepted, expect, raised, same
from autograder.observe import Array


def _cut(joined: Array, lengths: Array) -> list[bytes]:
    """The strings that were reported joined, with the length of each."""
    ends = [0, *np.cumsum(lengths).tolist()]
    return [joined.tobytes()[start:end] for start, end in pairwise(ends)]


def _shown(strings: list[bytes], first: int) -> str:
    """A few strings around an index, as Python would write them."""
    start = max(0, first - 2)
    shown = [_quoted(string) for string in strings[start : start + 5]]
    return " ".join(["..."] * (start > 0) + shown + ["..."] * (start + 5 < len(strings)))


def _quoted(string: bytes) -> str:
    try:
        return ascii(string.decode())
    except UnicodeDecodeError:
        return repr(string)


def _strings(seen: Seen, name: str, *, input: str, hint: str, what: str = "piece") -> None:
    """The same strings in the same order."""
    got = _cut(seen.got(name), seen.got(f"{name}_lengths"))
    want = _cut(seen.want(name), seen.want(f"{name}_lengths"))
    differ = [i for i, (one, other) in enumerate(zip_longest(got, want)) if one != other]
    expect(
        not differ,
        f"first at {what} {min(differ, default=0)}, {len(got)} in all, want {len(want)}",
        input=input,
        got=_shown(got, min(differ, default=0)),
        expected=_shown(want, min(differ, default=0)),
        hint=hint,
    )
    same(seen, f"{name}_lengths", input=input, hint=hint, at=what)
    same(seen, name, input=input, hint=hint, at="byte")


def _little_work(seen: Seen, most: int, *, input: str, what: str, hint: str) -> None:
    """How often the numbers that the case gave were compared or computed with. Merging: 15 to 27
    times a byte with a heap, 400 with a pass for each rank, 900 with one for each merge. Learning:
    3 to 23 times a letter, with a heap or a look at each pair's count, 60 if they are counted
    again. Who makes plain ints of them first is not noticed; the CPU limit is left."""
    uses = seen.number("uses")
    expect(
        uses <= most,
        "too much work",
        input=input,
        got=f"{what} compared or computed with {uses} times",
        expected=f"at most {most} times",
        hint=hint,
    )


def _digest(seen: Seen, name: str, *, input: str, hint: str) -> None:
    _strings(seen, f"{name}_first", input=f"{input}: the first 40", hint=hint, what="part")
    same(seen, f"{name}_count", input=f"{input}: how many", hint=hint)
    same(seen, f"{name}_sum", input=f"{input}: CRC-32 of lengths and bytes", hint=hint)


# ---------------------------------------------------------------- functions


def letters_table(seen: Seen) -> None:
    hint = "visible Latin-1 as it is, the others from U+0100 on in ascending order"
    same(seen, "letters", input="the letters of bytes 0..255, in UTF-8", hint=hint, at="byte")


def letters_order(seen: Seen) -> None:
    hint = "first the visible ones, then the others: GPT-2's first 256 ids"
    same(seen, "bytes", input="the keys, in their order", hint=hint)


def split_words(seen: Seen) -> None:
    hint = "seven endings in lower case with a straight apostrophe; letters of any script"
    _strings(seen, "pieces", input="words and endings", hint=hint)


def split_numbers(seen: Seen) -> None:
    hint = r"\p{N} holds more than 0-9; a combining mark is neither letter nor number"
    _strings(seen, "pieces", input="numbers and marks", hint=hint)


def split_spaces(seen: Seen) -> None:
    hint = "the last white space before a word goes to the word if it is a space"
    _strings(seen, "pieces", input="white space of all kinds", hint=hint)


def split_any(seen: Seen) -> None:
    hint = "every character belongs to one piece"
    _strings(seen, "pieces", input="all of that, and what nobody expects", hint=hint)


def merge_order(seen: Seen) -> None:
    hint = "the lowest rank first, wherever it stands; look at the new neighbours then"
    _strings(seen, "parts", input="random words of a, b, c", hint=hint, what="part")


def merge_edges(seen: Seen) -> None:
    for name, text in (
        ("empty", "an empty piece"),
        ("single", "a piece of one byte"),
        ("none", "a piece without a pair that has a rank"),
        ("pair", "two bytes, whose rank is 0"),
        ("run", "seven equal letters: the leftmost pair first"),
        ("run_twice", "eleven equal letters, two ranks"),
        ("later", "a pair that only a merge makes"),
        ("parts_unranked", "a token whose parts have no rank"),
    ):
        _strings(seen, name, input=text, hint="rank 0 is a rank, None is none", what="part")


def merge_long(seen: Seen) -> None:
    hint = "do not look at all parts again after each merge: a heap and a linked list"
    input = "a word of 2 500 bytes"
    _digest(seen, "parts", input=input, hint="as in the short words above, only more of them")
    _little_work(seen, 2500 * 150, input=input, what="ranks", hint=hint)


# ---------------------------------------------------------------- BPE


def encode_words(seen: Seen) -> None:
    hint = "split, merge, then the id of each part"
    same(seen, "ids", input="words and newlines", hint=hint, at="token")
    same(seen, "empty", input="an empty text", at="token")


def encode_special(seen: Seen) -> None:
    for name, text in (
        ("some", "a text with <|endoftext|>"),
        ("ends", "<|endoftext|> at the ends"),
    ):
        hint = "one token where it is allowed, text where it is not"
        same(seen, f"{name}_allowed", input=f"{text}, allowed", hint=hint, at="token")
        same(seen, f"{name}_not_allowed", input=f"{text}, not allowed", hint=hint, at="token")


def encode_unicode(seen: Seen) -> None:
    hint = "if split and merge are right: UTF-8, and ids, not ranks"
    same(seen, "ids", input="240 random fragments", hint=hint, at="token")


def encode_refuses(seen: Seen) -> None:
    accepted(seen, "good", "<|endoftext|> in a tuple of allowed ones")
    raised(seen, "other", "ValueError", "another special token", "<|pad|>")
    raised(seen, "all", "ValueError", 'allowed_special="all"')
    raised(seen, "no_text", "TypeError", "bytes")
    raised(seen, "surrogate", "ValueError UnicodeEncodeError", "a lone surrogate")


def decode_bytes(seen: Seen) -> None:
    hint = "the byte strings as they are, one behind the other"
    for name, text in (("every", "every id"), ("some", "50 random ids"), ("empty", "no ids")):
        same(seen, name, input=text, hint=hint, at="byte")


def decode_range(seen: Seen) -> None:
    accepted(seen, "good", "the first id and the last")
    size = int(seen.want("size")[0])
    for name, id_ in (("below", -1), ("far_below", -size), ("size", size), ("huge", 2**40)):
        raised(seen, f"{name}_refused", "IndexError", f"id {id_} of {size} tokens", id_)


def decode_text(seen: Seen) -> None:
    for name, text in (
        ("whole", "characters of several tokens"),
        ("broken", "random bytes"),
        ("cut", "a character's rest and another's beginning"),
    ):
        hint = "join first, then decode with U+FFFD where it is no UTF-8"
        same(seen, name, input=text, hint=hint, at="byte")


def _bpe(seen: Seen, input: str) -> None:
    hint = "ids as they are stored"
    _strings(seen, "tokens", input=f"{input}: the tokens by id", hint=hint, what="id")
    same(seen, "eot", input=f"{input}: eot")


def files_read(seen: Seen) -> None:
    _bpe(seen, "two files, ids in another order than ranks")
    hint = "ranks are the lines of vocab.bpe; a line may start with #"
    _strings(seen, "by_rank", input="tokens by rank", hint=hint, what="rank")


def files_refused(seen: Seen) -> None:
    accepted(seen, "good", "two good files")
    for name, text in (
        ("gap", "ids with a gap"),
        ("no_eot", "no <|endoftext|>"),
        ("strange", "a letter that stands for no byte"),
        ("three", "a line of three parts"),
        ("one", "a line of one part"),
        ("empty_part", "a line whose first part is empty"),
        ("unversioned", "no #version"),
    ):
        raised(seen, name, "ValueError", text)


def vocab_read(seen: Seen) -> None:
    _bpe(seen, "a vocabulary file")
    hint = "every token of two bytes or more but <|endoftext|>, in the order of ids"
    _strings(seen, "by_rank", input="tokens by rank", hint=hint, what="rank")


def save(seen: Seen) -> None:
    hint = "a line for each rank, its parts as lower ranks make them"
    _strings(seen, "lines", input="vocab.bpe", hint=hint, what="line")
    same(seen, "size", input="entries of encoder.json", hint="every token once")
    same(seen, "ids", input="ids of <|endoftext|>, the bytes, the merged tokens", at="token")
    raised(seen, "unmade", "ValueError", "a token that no two others make")


# ---------------------------------------------------------------- training


def learn_order(seen: Seen) -> None:
    hint = "count again what a merge changed: the pairs left and right of it"
    _strings(seen, "merges", input="150 pieces, 60 merges", hint=hint, what="part")


def learn_ties(seen: Seen) -> None:
    for name, text in (
        ("equal", "pairs that occur equally often"),
        ("long", "equally often, of other lengths"),
        ("runs", "runs of one letter"),
        ("apart", "pieces of one letter and of none"),
        ("none", "0 merges"),
    ):
        hint = "the smallest left part, then the smallest right part; aaa holds (a, a) twice"
        _strings(seen, name, input=text, hint=hint, what="part")
    accepted(seen, "good", "as many merges as there are")
    for name, text, value in (
        ("too_many", "3 merges where there are 2", 3),
        ("empty", "a merge from no pieces", 1),
        ("negative", "-1 merges", -1),
    ):
        raised(seen, name, "ValueError", text, value)


def learn_long(seen: Seen) -> None:
    hint = "do not count all pairs again after each merge, nor sort them"
    input = "28 000 letters in 4 000 pieces, 60 merges"
    _digest(seen, "parts", input=input, hint="as with few pieces above, only more of them")
    _little_work(seen, 28_000 * 40, input=input, what="counts", hint=hint)


def train(seen: Seen) -> None:
    hint = "bytes, then merged tokens as they were learnt, then <|endoftext|>"
    _strings(seen, "merged", input="tokens from 256 on", hint=hint, what="token")
    _strings(seen, "by_rank", input="tokens by rank", hint=hint, what="rank")
    same(seen, "eot", input="eot", hint=hint)
    got, table = seen.got("bytes"), seen.got("table")
    expect(np.array_equal(got, table) and len(set(got.tolist())) == 256, "another order",
           input="tokens 0..255", expected="the order of bytes_to_unicode")  # fmt: skip
    accepted(seen, "good", "257 tokens")
    raised(seen, "small", "ValueError", "256 tokens", 256)
    raised(seen, "large", "ValueError", "more tokens than the text has")
