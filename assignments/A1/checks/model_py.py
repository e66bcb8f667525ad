"""What decides the rows of model.py."""

from autograder.compare import Seen, accepted, close, close_all, raised, same


def train_all(seen: Seen) -> None:
    hint = "self.modules() yields this one and all inside, in lists, too"
    order = "root, attribute, list, inside the attribute, list, inside the list"
    same(seen, "eval", input=f"eval(): {order}", hint=hint, at="module")
    same(seen, "train", input=f"train(): {order}", hint=hint, at="module")


def train_part(seen: Seen) -> None:
    same(seen, "part", input="root.train(False), then train() of one inside", at="module")
    hint = "set it on each module, not on the class"
    same(seen, "outside", input="a module outside", hint=hint)
    same(seen, "others", input="a new module", hint=hint)


def linear(seen: Seen) -> None:
    close_all(seen, "plain", "x @ weight transposed + bias")


def linear_edges(seen: Seen) -> None:
    close_all(seen, "edge", "the last axis of x is that of weight; the bias is for the outputs")


def _drawn(seen: Seen, name: str, text: str, hint: str) -> None:
    same(seen, name, input=text, hint=f"{hint}; one rounding, at the end", at="number")


def normals_blocks(seen: Seen) -> None:
    hint = "a uniform is the low 24 bits of a word; box_muller makes 16 of 16"
    for n in (16, 48):
        _drawn(seen, f"n_{n}", f"{n} numbers, std 0.5", hint)
        same(seen, f"after_{n}", input=f"the word after {n} numbers", hint="one word each")


def normals_tail(seen: Seen) -> None:
    hint = "of n words only whole blocks of 16 count; 16 more words make the last 16 numbers"
    for n in (20, 31):
        _drawn(seen, f"n_{n}", f"{n} numbers, std 0.5", hint)
        same(seen, f"after_{n}", input=f"the word after {n} numbers", hint="n words and 16 more")
    _drawn(seen, "second", "32 numbers after 17, std 0.02", hint)


def normals_few(seen: Seen) -> None:
    raised(seen, "few", "ValueError", "15 numbers", 15)
    raised(seen, "none", "ValueError", "0 numbers", 0)


def heads(seen: Seen) -> None:
    hint = "q, k, v are thirds of c_attn's outputs, in this order; heads are equal parts of each"
    close_all(seen, "plain", hint)


def heads_edges(seen: Seen) -> None:
    close_all(seen, "edge", "(B,T,C) to (B,T,NH,hs) to (B,NH,T,hs), and back the same way")


def block(seen: Seen) -> None:
    close_all(seen, "plain", "x + attn(ln_1(x)), and of that the same with ln_2 and mlp")


def block_edges(seen: Seen) -> None:
    close_all(seen, "edge", "x + attn(ln_1(x)), and of that the same with ln_2 and mlp")


def gpt2(seen: Seen) -> None:
    hint = "wte and wpe, the blocks, ln_f, and the logits by wte once more"
    close_all(seen, "plain", hint)


def gpt2_edges(seen: Seen) -> None:
    close_all(seen, "edge", "positions 0..T-1, also where T is below maxT")


def gpt2_refused(seen: Seen) -> None:
    accepted(seen, "good", "T = maxT = 7")
    raised(seen, "long", "ValueError", "T 8, maxT 7", 8, 7)
    raised(seen, "empty", "ValueError", "T 0", 0)
    raised(seen, "row", "ValueError", "ids of one axis")
    raised(seen, "beyond", "IndexError", "id 19 of 19", 19)
    raised(seen, "negative", "IndexError", "id -1", -1)


def key(seen: Seen) -> None:
    text = seen.want("initial_text").tobytes().decode()
    hint = "all rows above are right? then what is drawn, and in which order"
    close(seen, "initial_logits", input=f"logits, {text}", hint=hint)
    close(seen, "initial_loss", input=f"loss, {text}", hint=hint)
