"""What decides the items of tokenizer.h."""

from autograder.compare import Seen, refused, same


def safe_printf_single(seen: Seen) -> None:
    hint = "only what isprint or isspace accepts, asked with an unsigned char"
    same(seen, "all_bytes", input="every byte 1..255 as a token", hint=hint, at="byte")
    for name, text in (("empty", "the empty string"), ("null", "NULL")):
        same(seen, name, input=text, hint="print nothing; look at no byte that is not there")


def safe_printf_long(seen: Seen) -> None:
    for name in ("words", "utf8", "controls", "high", "percent", "newlines"):
        hint = "only single bytes are filtered; never use a token as the format"
        same(seen, name, input=f"a token of several bytes ({name})", hint=hint, at="byte")


def _fields(seen: Seen, version: int) -> None:
    for name in ("init_ok", "vocab_size", "eot_token"):
        same(seen, name, input=f"version {version}: {name}", hint="set every field of the struct")


def tokenizer_version_2(seen: Seen) -> None:
    _fields(seen, 2)
    same(seen, "first", input="tokens 0..7, each with its 0", at="byte")


def tokenizer_version_1(seen: Seen) -> None:
    _fields(seen, 1)
    same(seen, "last", input="the last 8 of 50257 tokens, each with its 0", at="byte")


def tokenizer_missing(seen: Seen) -> None:
    same(seen, "first", input="a file that is there: tokens 0..7", at="byte")
    for name, text in (
        ("init_ok", "init_ok after a file that is not there"),
        ("decodes_to_null", "decode returns NULL then"),
        ("freed", "free returns then"),
    ):
        same(seen, name, input=text, hint="no vocabulary is no error: init_ok = 0 and return")


def tokenizer_decode(seen: Seen) -> None:
    same(seen, "single", input="tokens of one byte, each with its 0", at="byte")
    hint = "the length byte runs to 255; any byte may occur inside; end with a 0"
    same(seen, "longer", input="longer tokens, each with its 0", hint=hint, at="byte")


def tokenizer_range(seen: Seen) -> None:
    for name, text in (
        ("last_is_null", "NULL for the last token"),
        ("size_is_null", "NULL for vocab_size"),
        ("huge_is_null", "NULL for 2^32 - 1"),
        ("ok_after_free", "init_ok after tokenizer_free"),
        ("null_after_free", "NULL after tokenizer_free"),
        ("freed_twice", "a second tokenizer_free returns"),
    ):
        hint = "the ids are 0 to vocab_size - 1; without init_ok there are none"
        same(seen, name, input=text, hint=hint)


def tokenizer_refuse(seen: Seen) -> None:
    refused(
        seen,
        good="a good vocabulary",
        bad_magic="another magic number",
        bad_version="version 3",
        version_1_other_size="version 1 with 300 tokens",
        length_0="a token of length 0",
        version_0="version 0",
        cut_in_token="a vocabulary cut short inside its last token",
        cut_short="a vocabulary cut short",
        header_cut_short="a header cut short",
    )


def tokenizer_gpt2(seen: Seen) -> None:
    _fields(seen, 2)
    same(seen, "text", input="tokens 15496 995 0 198 220 262 3336 50255", at="byte")


def clean_tokenizer(seen: Seen) -> None:
    seen.no_warnings()
    seen.no_files_left_open()
    seen.no_leaks(after="longer")
