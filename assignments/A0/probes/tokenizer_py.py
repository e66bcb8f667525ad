"""tokenizer_py.py: observes llmc/tokenizer.py on texts, ranks and vocabulary files of its own."""

import json
import re
import struct
import zlib

from given import given_int, given_u64s
from observe import WrongType, data, number, numbers, outcome, text
from work import Work

EOT = "<|endoftext|>"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
COMMON = b"eeeeettttaaooinshrdl"

# What split is given, by what it is about. Tables of Unicode differ in the characters that were
# assigned last; none of those is here.
WORDS = (
    "I'll", "'ll", "don't", " it's", "'S", "'T", "'", " '", "''s", "we've", "I'm", "you're", "he'd",
    "'re", " caf\u00e9", "\u00dfa\u00df", "\u4e2d\u6587", " \u041c\u0438\u0440", "O\u2019Neill",
    "\u2019s", "_", "a_b", " abc", "Z", "'v", "'l", " \u05d0\u05d1", "x'd",
)  # fmt: skip
NUMBERS = (
    "0", " 12", "007", "\u0663", " \u0967\u0968", "\u00bd", "\u2167", "\u00b2", "x", " y", "3.14",
    "-5", " $9", "%", "#!", "...", " --", "1a", "a1", "\u0301", "e\u0301", "\U0001f600", " \u20ac",
    "\u2460", "\u3007",
)  # fmt: skip
SPACES = (
    " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", "\t ", " \t", "\u00a0", "\u3000", "\u2028",
    "\x0b", "\x85", "\u2003", "a", " b", "7", " 8", "!", " ?", "\u00e9", "\u200b",
)  # fmt: skip
ODD = (
    "\0", "\x7f", "\ufffd", "\u0378", "\U000e0fff", "\U0010ffff", "\ufeff", "\u200d", "\U0001f44d",
    "\U0001f3fd", "\U0001f1e9", "\u0e33", "\u1100\u1161", "\u0303", "<|endoftext|>", "\x1b", "\x1c",
    "            ", "12345678",
)  # fmt: skip
ANY = WORDS + NUMBERS + SPACES + ODD

# Merges as training would find them, the parts in visible ASCII or, as hex, any bytes.
MERGES = (
    "t h", "i n", "th e", "e r", "o u", "a n", "in g", "an d", "' s", "' l", "1 2", "l l", "12 3",
    "h a", "! !", "# #", "< |", "e n", "en d", "o f", "' t",
)  # fmt: skip
HEX_MERGES = (
    "c3 a9", "f0 9f", "f09f 98", "f09f98 80", "e4 b8", "20 20", "2020 2020", "0d 0a", "e2 80",
    "cc 81", "00 00", "c2 a0",
)  # fmt: skip


# ---------------------------------------------------------------- what goes out


def strings(name, values):
    """A list of bytes or str: the length of each in bytes, and all of them joined."""
    if type(values) is not list:
        raise WrongType(f"{name}: {type(values).__name__}, not a list")
    for value in values:
        if type(value) is not type(values[0]) or type(value) not in (bytes, str):
            raise WrongType(f"{name}: {type(value).__name__} where {type(values[0]).__name__} is")
    raw = [v.encode("utf-8", "surrogatepass") if type(v) is str else v for v in values]
    numbers(f"{name}_lengths", [len(value) for value in raw])
    data(name, b"".join(raw))


def only(kind, values):
    """The values, each of which must be of this kind."""
    for value in values:
        if type(value) is not kind:
            raise WrongType(f"{type(value).__name__}, not {kind.__name__}")
    return values


def digest(name, values):
    """How many bytes strings there are, the first of them, and a sum over all."""
    only(bytes, values)
    number(f"{name}_count", len(values))
    strings(f"{name}_first", list(values[:40]))
    lengths = b"".join(struct.pack("<I", len(value)) for value in values)
    number(f"{name}_sum", zlib.crc32(lengths + b"".join(values)))


def by_rank(bpe):
    return sorted(bpe.ranks, key=bpe.ranks.__getitem__)


# ---------------------------------------------------------------- what is given


def pick(seed, place, choices, count):
    return [choices[word % len(choices)] for word in given_u64s(seed, place, count)]


def shuffled(seed, place, values):
    return [v for _, v in sorted(zip(given_u64s(seed, place, len(values)), values, strict=True))]


def single_bytes():
    return [bytes([byte]) for byte in range(256)]


def given_merges(seed):
    """Pairs of parts, their letters exchanged for others by a rule that depends on the seed."""
    table = dict(zip(LETTERS, shuffled(seed, 900, LETTERS), strict=True))
    plain = [tuple(_exchange(table, part) for part in line.split()) for line in MERGES]
    return plain + [tuple(bytes.fromhex(part) for part in line.split()) for line in HEX_MERGES]


def _exchange(table, part):
    return "".join(table.get(letter, letter) for letter in part).encode()


def given_bpe(seed, merges):
    """A vocabulary: the bytes, shuffled, the merged tokens, and <|endoftext|> among them."""
    from llmc.tokenizer import BPE

    merged = [left + right for left, right in merges]
    tokens = shuffled(seed, 1000, single_bytes()) + merged
    eot = given_int(seed, 1500, 10, 200)
    tokens.insert(eot, EOT.encode())
    return BPE(tokens, {token: rank for rank, token in enumerate(merged)}, eot)


def given_words(seed):
    """Different words of two letters; no two of them share one."""
    letters = shuffled(seed, 2000, LETTERS)
    return ["".join(letters[i : i + 2]) for i in range(0, 12, 2)]


def give_pieces(tokenizer, words):
    """Replaces split and merge for texts of these words: a bug in either costs its own row. They
    give what right ones would: no two words share a letter."""
    parts = re.compile("|".join([*words, "."]).encode(), re.DOTALL)
    tokenizer.split = lambda text: re.findall(r" ?[a-z]+|\n|[^a-z \n]+", text)
    tokenizer.merge = lambda piece, ranks: parts.findall(piece)


def word_bpe(seed):
    """A vocabulary of words, with split and merge given, too."""
    from llmc import tokenizer

    words = given_words(seed)
    give_pieces(tokenizer, words)
    return words, given_bpe(seed, [(word[:1].encode(), word[1:].encode()) for word in words])


# ---------------------------------------------------------------- functions


def case_letters(seed):
    from llmc.tokenizer import bytes_to_unicode

    table = bytes_to_unicode()
    numbers("bytes", list(table))
    text("letters", "".join(only(str, [table[byte] for byte in range(256)])))


def lines_of(seed, fragments, count):
    return ["".join(pick(seed, 100 * i, fragments, count)) for i in range(24)]


def observe_pieces(seed, fragments, count):
    """The pieces of many texts; an empty one stands behind each text's."""
    from llmc.tokenizer import split

    pieces = []
    for line in lines_of(seed, fragments, count):
        pieces += [*split(line), ""]
    strings("pieces", pieces)


def case_split_words(seed):
    observe_pieces(seed, WORDS, 12)


def case_split_numbers(seed):
    observe_pieces(seed, NUMBERS, 12)


def case_split_spaces(seed):
    observe_pieces(seed, SPACES, 10)


def case_split_any(seed):
    observe_pieces(seed, ANY, 20)


def random_ranks(seed):
    """Ranks of strings of 2 to 4 letters a, b, c."""
    strings = {
        bytes(pick(seed, 50 * i, b"abc", given_int(seed, 50 * i + 9, 2, 3))) for i in range(40)
    }
    return {string: 3 * i for i, string in enumerate(shuffled(seed, 5000, sorted(strings)))}


def random_words(seed):
    return [bytes(pick(seed, 7000 + 50 * i, b"abc", 6 + i)) for i in range(20)]


def case_merge_order(seed):
    from llmc.tokenizer import merge

    ranks = random_ranks(seed)
    parts = []
    for piece in random_words(seed):
        parts += [*merge(piece, ranks), b""]
    strings("parts", parts)


def small_merges(seed):
    """Name -> (piece, ranks)."""
    a, b, c = (letter.encode() for letter in "".join(given_words(seed))[:3])
    return {
        "empty": (b"", {a + b: 0}),
        "single": (a, {a + b: 0}),
        "none": (bytes(range(256)), {a + a: 0}),
        "pair": (a + b, {a + b: 0}),
        "run": (a * 7, {a + a: 0}),
        "run_twice": (a * 11, {a + a: 0, a * 4: 1}),
        "later": (a + b + c, {b + c: 0, a + b: 1, a + b + c: 2}),
        "parts_unranked": (a + b + c + c, {c + c: 5, a + b + c: 1}),
    }


def case_merge_edges(seed):
    from llmc.tokenizer import merge

    for name, (piece, ranks) in small_merges(seed).items():
        strings(name, merge(piece, ranks))


def long_word(seed):
    """A word of 2 500 bytes of all kinds, and a rank for each pair in it."""
    word = bytes(pick(seed, 10_000, range(256), 2500))
    pairs = sorted({word[i : i + 2] for i in range(len(word) - 1)})
    return word, {pair: rank for rank, pair in enumerate(shuffled(seed, 20_000, pairs))}


def case_merge_long(seed):
    from llmc.tokenizer import merge

    work = Work()
    word, ranks = long_word(seed)
    digest("parts", merge(word, {pair: work.number(rank) for pair, rank in ranks.items()}))
    number("uses", work.uses)


def plain_text(seed):
    words = given_words(seed)
    spaced = [" " + word for word in words]
    return "\n".join(pick(seed, 3000, [*words, *spaced, "\n", "!?"], 60))


def case_encode_words(seed):
    _, bpe = word_bpe(seed)
    numbers("ids", bpe.encode(plain_text(seed)))
    numbers("empty", bpe.encode(""))


def documents(seed):
    words = given_words(seed)
    some = "\n".join([*words, EOT, *pick(seed, 3100, [EOT, *words], 24)])
    return {"some": some, "ends": EOT + EOT + words[0] + EOT}


def case_encode_special(seed):
    _, bpe = word_bpe(seed)
    for name, string in documents(seed).items():
        numbers(f"{name}_allowed", bpe.encode(string, allowed_special={EOT}))
        numbers(f"{name}_not_allowed", bpe.encode(string))


def unicode_text(seed):
    table = dict(zip(LETTERS, shuffled(seed, 900, LETTERS), strict=True))
    words = (
        "the",
        " and",
        "thing",
        " house",
        "ends",
        " hall",
        "1234",
        "!!!!",
        "####",
        "\u00e9t\u00e9",
    )
    mine = tuple("".join(table.get(letter, letter) for letter in word) for word in words)
    return "".join(pick(seed, 3200, ANY + mine * 4, 240))


def case_encode_unicode(seed):
    numbers("ids", given_bpe(seed, given_merges(seed)).encode(unicode_text(seed)))


def case_encode_refuses(seed):
    words, bpe = word_bpe(seed)
    outcome("good", bpe.encode, words[0] + EOT, (EOT,))
    outcome("all", bpe.encode, words[0], "all")
    outcome("other", bpe.encode, words[0], {"<|pad|>", EOT})
    outcome("no_text", bpe.encode, words[0].encode())
    outcome("surrogate", bpe.encode, words[0] + "\ud8ff")


def case_decode_bytes(seed):
    bpe = given_bpe(seed, given_merges(seed))
    size = len(bpe.tokens)
    data("every", bpe.decode_bytes(list(range(size))))
    data("some", bpe.decode_bytes([given_int(seed, 4000 + i, 0, size) for i in range(50)]))
    data("empty", bpe.decode_bytes([]))


def whole_text(seed):
    return "".join(pick(seed, 4100, ANY, 30))


def case_decode_text(seed):
    from llmc.tokenizer import BPE

    class Given(BPE):
        def decode_bytes(self, ids):
            return b"".join(self.tokens[i] for i in ids)

    eot = 256
    bpe = Given([*single_bytes(), EOT.encode()], {}, eot)
    text("whole", bpe.decode([*whole_text(seed).encode(), eot]))
    text("broken", bpe.decode([given_int(seed, 4200 + i, 0, 256) for i in range(60)]))
    text("cut", bpe.decode(list("\U0001f600\u4e2d".encode())[1:5]))


def case_decode_range(seed):
    bpe = given_bpe(seed, given_merges(seed))
    size = len(bpe.tokens)
    number("size", size)
    outcome("good", bpe.decode_bytes, [0, size - 1])
    for name, id_ in (("below", -1), ("far_below", -size), ("size", size), ("huge", 2**40)):
        outcome(f"{name}_refused", bpe.decode_bytes, [3, id_])


# ---------------------------------------------------------------- files


def write_files(ids, lines):
    with open("encoder.json", "w", encoding="utf-8") as file:
        json.dump(ids, file)
    with open("vocab.bpe", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def spelled(seed):
    """(names, lines) of the given vocabulary, written with the student's own table."""
    from llmc.tokenizer import bytes_to_unicode

    letter = bytes_to_unicode()
    merges = given_merges(seed)
    both = [["".join(letter[byte] for byte in part) for part in pair] for pair in merges]
    names = shuffled(seed, 6000, [*map("".join, both), *(letter[b] for b in range(256)), EOT])
    return names, ["#version: 0.2", *map(" ".join, both)]


def observe_bpe(bpe):
    strings("tokens", list(bpe.tokens))
    strings("by_rank", by_rank(bpe))
    number("eot", bpe.eot)


def case_files_read(seed):
    from llmc.tokenizer import BPE

    names, lines = spelled(seed)
    write_files({name: i for i, name in enumerate(names)}, lines)
    observe_bpe(BPE.from_files("encoder.json", "vocab.bpe"))


def case_files_refused(seed):
    from llmc.tokenizer import BPE

    names, lines = spelled(seed)
    ids = {name: i for i, name in enumerate(names)}
    without = [name for name in names if name != EOT]
    word = lines[3].replace(" ", "")  # of three letters, and a token
    for name, changed, merges in (
        ("good", ids, lines),
        ("gap", ids | {EOT: len(ids)}, lines),
        ("no_eot", {name: i for i, name in enumerate(without)}, lines),
        ("strange", ids | {"\u2602": len(ids)}, lines),
        ("three", ids, [*lines, " ".join(word)]),
        ("one", ids, [*lines, word]),
        ("empty_part", ids, [*lines, " " + word]),
        ("unversioned", ids, lines[1:]),
    ):
        write_files(changed, merges)
        outcome(name, BPE.from_files, "encoder.json", "vocab.bpe")


def case_vocab_read(seed):
    from llmc.tokenizer import BPE

    tokens = shuffled(seed, 1000, single_bytes())
    tokens += [left + right for left, right in given_merges(seed)]
    eot = given_int(seed, 1600, 258, 20)
    tokens.insert(eot, EOT.encode())
    with open("vocab.bin", "wb") as file:
        file.write(struct.pack("<256I", 20240328, 2, len(tokens), eot, *[0] * 252))
        file.write(b"".join(bytes([len(token)]) + token for token in tokens))
    observe_bpe(BPE.from_vocab("vocab.bin"))


def case_save(seed):
    from llmc import tokenizer

    merges = given_merges(seed)[: len(MERGES)]
    made_of = {left + right: [left, right] for left, right in merges}

    def merge(piece, ranks):
        parts = made_of.get(piece, [])
        made = parts and all(len(part) == 1 or part in ranks for part in parts)
        return [piece] if piece in ranks else parts if made else [bytes([b]) for b in piece]

    tokenizer.merge = merge
    letter = tokenizer.bytes_to_unicode()
    bpe = given_bpe(seed, merges)
    bpe.save("encoder.json", "vocab.bpe")
    with open("encoder.json", encoding="utf-8") as file:
        saved = json.load(file)
    names = ["".join(letter[byte] for byte in token) for token in single_bytes() + list(made_of)]
    number("size", len(saved))
    numbers("ids", [saved[name] for name in [EOT, *names]])
    with open("vocab.bpe", encoding="utf-8", newline="") as file:
        strings("lines", file.read().removesuffix("\n").split("\n"))
    outcome("unmade", given_bpe(seed, [*merges, (b"\1", b"\2\3\4")]).save, "e.json", "v.bpe")


# ---------------------------------------------------------------- training


def random_pieces(seed, count, letters, low, span):
    pieces = {}
    for i in range(count):
        size = given_int(seed, 20 * i, low, span)
        pieces[bytes(pick(seed, 20 * i + 1, letters, size))] = given_int(seed, 20 * i + 19, 1, 20)
    return pieces


def many_pieces(seed):
    """4 000 pieces of 3 to 11 letters."""
    letters = pick(seed, 0, LETTERS.encode(), 11 * 4000)
    sizes, times = pick(seed, 60_000, range(3, 12), 4000), pick(seed, 70_000, range(1, 21), 4000)
    return {bytes(letters[11 * i : 11 * i + sizes[i]]): times[i] for i in range(4000)}


def observe_merges(name, merges):
    """The parts of all merges, two for each."""
    strings(name, [part for pair in only(tuple, merges) for part in pair])


def case_learn_order(seed):
    from llmc.tokenizer import learn_merges

    observe_merges("merges", learn_merges(random_pieces(seed, 150, COMMON, 2, 9), 60))


def small_pieces(seed):
    """Name -> (pieces, number of merges)."""
    letters = shuffled(seed, 8000, LETTERS.encode())
    a, b, c, d = (bytes([letter]) for letter in letters[:4])
    return {
        "equal": ({a + b: 2, c + d: 2, b + c: 2, d + a: 2, a + c: 2}, 5),
        "long": ({a + a + b + b: 4, a + c: 4, b + d: 4, c + b: 4}, 6),
        "runs": ({a * 7: 3, b * 4: 5, a * 3 + c: 2}, 6),
        "apart": ({a: 90, b: 90, a + c: 2, b"": 5, c + b: 1}, 2),
        "none": ({a + b: 3}, 0),
    }


def case_learn_ties(seed):
    from llmc.tokenizer import learn_merges

    for name, (pieces, count) in small_pieces(seed).items():
        observe_merges(name, learn_merges(pieces, count))
    outcome("good", learn_merges, {b"abc": 2, b"d": 1}, 2)
    outcome("too_many", learn_merges, {b"abc": 2, b"d": 1}, 3)
    outcome("empty", learn_merges, {}, 1)
    outcome("negative", learn_merges, {b"abc": 2}, -1)


def case_learn_long(seed):
    from llmc.tokenizer import learn_merges

    work = Work()
    pieces = {piece: work.number(times) for piece, times in many_pieces(seed).items()}
    merges = learn_merges(pieces, 60)
    digest("parts", [part for pair in only(tuple, merges) for part in pair])
    number("uses", work.uses)


def case_train(seed):
    from llmc import tokenizer

    words = given_words(seed)
    give_pieces(tokenizer, words)
    lines = shuffled(seed, 8500, [word for i, word in enumerate(words) for _ in range(3 + 2 * i)])
    bpe = tokenizer.train_bpe(
        EOT.join("\n".join(lines[i::16]) for i in range(16)), 257 + len(words)
    )
    strings("merged", list(bpe.tokens[256:]))
    strings("by_rank", by_rank(bpe))
    number("eot", bpe.eot)
    numbers("bytes", [only(bytes, bpe.tokens)[i][0] for i in range(256)])
    numbers("table", list(tokenizer.bytes_to_unicode()))
    outcome("good", tokenizer.train_bpe, words[0], 257)
    outcome("small", tokenizer.train_bpe, words[0], 256)
    outcome("large", tokenizer.train_bpe, words[0], 300)


CASES = {
    "letters": case_letters,
    "split_words": case_split_words,
    "split_numbers": case_split_numbers,
    "split_spaces": case_split_spaces,
    "split_any": case_split_any,
    "merge_order": case_merge_order,
    "merge_edges": case_merge_edges,
    "merge_long": case_merge_long,
    "encode_words": case_encode_words,
    "encode_special": case_encode_special,
    "encode_unicode": case_encode_unicode,
    "encode_refuses": case_encode_refuses,
    "decode_bytes": case_decode_bytes,
    "decode_text": case_decode_text,
    "decode_range": case_decode_range,
    "files_read": case_files_read,
    "files_refused": case_files_refused,
    "vocab_read": case_vocab_read,
    "save": case_save,
    "learn_order": case_learn_order,
    "learn_ties": case_learn_ties,
    "learn_long": case_learn_long,
    "train": case_train,
}
