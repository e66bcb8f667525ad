"""Inputs for the operations of llmc/autograd.py: what A1's rows and A2's compute on.

All numbers are float64 that float32 holds exactly, so that both types compute on the same ones. A
sample whose name begins with `edge` is of an awkward shape or range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from given import given_units

Array = np.ndarray
Options = Callable[[str], tuple[Any, ...]]  # of the dtype: what the operation is made with


@dataclass(frozen=True)
class Sample:
    """One call of an operation; `text` says it to people."""

    name: str
    text: str
    arrays: tuple[Array, ...]
    options: Options = lambda dtype: ()


class Units:
    """Stands for a generator: hands out the numbers that it was given, and counts them."""

    def __init__(self, numbers: Array) -> None:
        self.numbers, self.used = numbers, 0

    def uniforms(self, n: int) -> Array:
        self.used += int(n)
        return self.numbers[self.used - n : self.used].copy()

    def uniform(self) -> float:
        return float(self.uniforms(1)[0])


class Draw:
    """Arrays of numbers that a seed decides, one after the other."""

    def __init__(self, seed: int, first: int) -> None:
        self.seed, self.at = seed, first

    def units(self, *shape: int) -> Array:
        """In (0, 1)."""
        count = int(np.prod(shape))
        self.at += count
        return np.array(given_units(self.seed, self.at - count, count)).reshape(shape)

    def __call__(self, *shape: int, scale: float = 4) -> Array:
        """In (-scale / 2, scale / 2), never 0; the scale is a power of two."""
        return (self.units(*shape) - 0.5) * scale

    def ids(self, V: int, *shape: int) -> Array:
        """Integers in 0..V-1."""
        return (self.units(*shape) * V).astype(np.int64)


def class_of(operation: str) -> str:
    """What llmc/autograd.py calls it."""
    return SAMPLES[operation][0]


def samples(operation: str, seed: int) -> list[Sample]:
    """Those of one operation, a key of SAMPLES."""
    place = list(SAMPLES).index(operation)
    found = SAMPLES[operation][1](Draw(seed, 10_000 * place))
    return [replace(each, arrays=tuple(map(rounded, each.arrays))) for each in found]


def rounded(x: Array) -> Array:
    """The nearest numbers that float32 has."""
    return np.asarray(x, np.float32).astype(np.float64, copy=False).reshape(np.shape(x))


def inputs(operation: str) -> list[str]:
    """What its inputs are called."""
    return INPUTS.get(operation, "x").split()


def along(seed: int, result: Array) -> Array:
    """The gradient that arrives at a result of this shape."""
    return Draw(seed, 900_000)(*result.shape)


# ---------------------------------------------------------------- element by element


def broadcast(draw: Draw) -> Iterator[Sample]:
    """Of two inputs that need not be of one shape."""
    yield Sample("plain", "(2,3) and (2,3)", (draw(2, 3), draw(2, 3)))
    for name, a, b in (
        ("front", (2, 3, 4), (4,)),
        ("axes", (2, 3, 4), (3, 1)),
        ("both", (2, 1, 4), (3, 1)),
        ("one", (), (2, 3)),
        ("kept", (2, 3), (1, 1)),
    ):
        text = f"{a} and {b}".replace(" ", "").replace("and", " and ").replace(",)", ")")
        yield Sample(f"edge_{name}", text, (draw(*a), draw(*b)))


def one_input(draw: Draw) -> Iterator[Sample]:
    yield Sample("plain", "(2,3)", (draw(2, 3),))
    wide = draw(2, 1, 4, scale=32)
    wide[0, 0, 0] /= 32  # where nothing is saturated, for the others have no gradient to speak of
    wide[0, 0, 1:3] = 16.0, -16.0
    yield Sample("edge_wide", "(2,1,4), up to 16", (wide,))
    yield Sample("edge_one", "()", (draw(),))


def saturated(draw: Draw) -> Iterator[Sample]:
    yield from one_input(draw)
    far = draw(4)
    far[1:3] = 400.0, -400.0  # e^800 is too much for a float64
    yield Sample("edge_far", "(4), two of them 400 and -400", (far,))


def positive(draw: Draw) -> Iterator[Sample]:
    yield Sample("plain", "(2,3), above 0", (4 * draw.units(2, 3),))
    yield Sample("edge_small", "(2,1,4), near 0", (draw.units(2, 1, 4) / 1024,))
    yield Sample("edge_one", "()", (4 * draw.units(),))


def half_line(draw: Draw) -> Iterator[Sample]:
    yield Sample("plain", "(3,4), of both signs", (draw(3, 4),))
    x = draw(2, 5)
    x[0, 1::2] = 0.0
    yield Sample("edge_zero", "(2,5), some 0", (x,))
    yield Sample("edge_below", "(3), all below 0", (-draw.units(3),))


def dropout(draw: Draw) -> Iterator[Sample]:
    for name, p, shape in (("plain", 0.25, (4, 5)), ("edge_axes", 0.75, (2, 3, 4))):
        x, units = draw(*shape), draw.units(int(np.prod(shape)))
        text = f"p = {p}, {shape}".replace(", ", ",").replace(",(", ", (")
        yield Sample(name, text, (x,), lambda dtype, p=p, units=units: (p, Units(units)))
    x, units = draw(8), draw.units(8)
    units[::2] = 0.5
    yield Sample(
        "edge_equal", "p = 0.5, (8), some u = 0.5", (x,), lambda dtype: (0.5, Units(units))
    )
    none = draw.units(3)
    yield Sample("edge_never", "p = 0, (3)", (draw(3),), lambda dtype: (0.0, Units(none)))


# ---------------------------------------------------------------- sums, shapes, products


def reduced(draw: Draw) -> Iterator[Sample]:
    for name, text, shape, options in (
        ("plain", "all of (2,3,4)", (2, 3, 4), ()),
        ("plain_axis", "axis 1 of (2,3,4)", (2, 3, 4), (1,)),
        ("edge_kept", "axes 0 and -1 of (2,3,4), kept", (2, 3, 4), ((0, -1), True)),
        ("edge_axes", "axes 0 and 2 of (2,3,4)", (2, 3, 4), ((0, 2),)),
        ("edge_last", "axis -1 of (1,5), kept", (1, 5), (-1, True)),
        ("edge_single", "axis 0 of (1,3)", (1, 3), (0,)),
        ("edge_all_kept", "all of (2,3), kept", (2, 3), (None, True)),
        ("edge_one", "all of ()", (), ()),
    ):
        yield Sample(name, text, (draw(*shape),), lambda dtype, options=options: options)


def reshaped(draw: Draw) -> Iterator[Sample]:
    yield Sample("plain", "(2,3,4) to (6,4)", (draw(2, 3, 4),), lambda dtype: (6, 4))
    yield Sample("edge_rest", "(2,3,4) to (3,-1)", (draw(2, 3, 4),), lambda dtype: (3, -1))
    yield Sample("edge_more", "(4) to (1,4,1)", (draw(4),), lambda dtype: (1, 4, 1))
    yield Sample("edge_none", "(1,1) to ()", (draw(1, 1),))
    yield Sample(
        "edge_turned", "a (3,4) transposed to (6,2)", (draw(4, 3).T,), lambda dtype: (6, 2)
    )


def exchanged(draw: Draw) -> Iterator[Sample]:
    for name, first, second in (
        ("plain", 0, 1),
        ("plain_far", 0, 2),
        ("edge_end", -1, -2),
        ("edge_same", 1, 1),
    ):
        text = f"axes {first} and {second} of (2,3,4)"
        yield Sample(name, text, (draw(2, 3, 4),), lambda dtype, f=first, s=second: (f, s))


def sliced(draw: Draw) -> Iterator[Sample]:
    for name, shape, axis, start, stop in (
        ("plain", (2, 6), 1, 2, 4),
        ("plain_first", (4, 3), 0, 0, 2),
        ("edge_end", (2, 3, 6), -1, 4, 6),
        ("edge_middle", (2, 5, 2), 1, 1, 4),
        ("edge_one", (3, 2), 0, 1, 2),
        ("edge_whole", (3,), 0, 0, 3),
    ):
        text = f"{start} to {stop - 1} of axis {axis}, {len(shape)} axes"
        options = axis, start, stop
        yield Sample(name, text, (draw(*shape),), lambda dtype, options=options: options)


def products(draw: Draw) -> Iterator[Sample]:
    for name, a, b in (
        ("plain", (2, 3), (3, 4)),
        ("plain_batch", (2, 5, 3), (3, 4)),
        ("edge_batches", (2, 3, 4), (2, 4, 5)),
        ("edge_one", (1, 1), (1, 1)),
        ("edge_row", (1, 1, 3), (3, 2)),
        ("edge_stretched", (2, 1, 3, 4), (5, 4, 1)),
        ("edge_left", (3, 4), (2, 4, 2)),
        ("edge_four", (2, 2, 3, 1), (1, 3)),
    ):
        text = f"{a} @ {b}".replace(", ", ",")
        yield Sample(name, text, (draw(*a), draw(*b)))


# ---------------------------------------------------------------- what a transformer is made of


def looked_up(draw: Draw) -> Iterator[Sample]:
    ids = draw.ids(5, 2, 3)
    ids[0, 1] = ids[1, 2]  # one that occurs twice
    yield Sample("plain", "6 ids of 5, one twice", (draw(5, 3),), lambda dtype: (ids,))
    small = draw.ids(4, 3).astype(np.int32)
    small[1:] = 3
    yield Sample("edge_last", "int32 ids, the last twice", (draw(4, 2),), lambda dtype: (small,))
    one = np.array([[0]], np.uint16)
    yield Sample("edge_one", "one uint16 id of one", (draw(1, 3),), lambda dtype: (one,))
    all_same = np.full((2, 2, 2), 1)
    yield Sample("edge_same", "8 times id 1", (draw(3, 1),), lambda dtype: (all_same,))


def shares(draw: Draw) -> Iterator[Sample]:
    yield Sample("plain", "(2,5)", (draw(2, 5),))
    yield Sample("edge_wide", "(2,3,4), up to 80", (wide(draw, 2, 3, 4),))
    yield Sample("edge_high", "(3), all near 80", (80 + draw(3),))
    yield Sample("edge_low", "(3), all near -800", (-800 + draw(3),))
    yield Sample("edge_rows", "(2,3), a row near 80, one near -800", (apart(draw, 3),))
    yield Sample("edge_equal", "(2,7), equal in a row", (np.repeat(draw(2, 1), 7, 1),))
    yield Sample("edge_one", "(3,1)", (draw(3, 1),))


def apart(draw: Draw, n: int) -> Array:
    """(2,n): what is no large number in one row would be in the other."""
    return np.array([[80.0], [-800.0]]) + draw(2, n)


def wide(draw: Draw, *shape: int) -> Array:
    """Logits near 80 and -80."""
    x = draw(*shape)
    return np.where(x > 0, 80.0, -80.0) + x


def normed(draw: Draw) -> Iterator[Sample]:
    def with_weights(x: Array) -> tuple[Array, ...]:
        return x, draw(x.shape[-1]), draw(x.shape[-1])

    yield Sample("plain", "(2,4)", with_weights(draw(2, 4)))
    yield Sample("edge_odd", "(2,3,5)", with_weights(draw(2, 3, 5)))
    yield Sample("edge_far", "(2,8), mean 16", with_weights(16 + draw(2, 8)))
    yield Sample("edge_small", "(2,6), below 0.01", with_weights(draw(2, 6, scale=1 / 64)))
    yield Sample("edge_one", "(2,1), eps 0.5", with_weights(draw(2, 1)), lambda dtype: (0.5,))
    yield Sample("edge_eps", "(3,4), eps 0.5", with_weights(draw(3, 4)), lambda dtype: (0.5,))


def attended(draw: Draw) -> Iterator[Sample]:
    for name, shape in (
        ("plain", (4, 8)),
        ("plain_heads", (2, 3, 4, 5)),
        ("edge_T_1", (1, 2, 1, 3)),
        ("edge_one", (1, 1, 1, 1)),
        ("edge_hs_1", (2, 1, 6, 1)),
    ):
        text = f"q, k, v {shape}".replace(", ", ",").replace(",k,v", ", k, v")
        yield Sample(name, text, (draw(*shape), draw(*shape), draw(*shape)))
    q, k = draw(1, 5, 4), draw(1, 5, 4)
    q[..., 0] = k[..., 0] = 16  # 128 in each score
    yield Sample("edge_strong", "(1,5,4), scores near 128", (q.copy(), k, draw(1, 5, 4)))
    q[0, ::2, 0] = -16  # rows of scores that are 256 apart
    yield Sample("edge_rows", "(1,5,4), scores near 128 or -128", (q.copy(), k, draw(1, 5, 4)))
    even = np.zeros((2, 4, 3)), draw(2, 4, 3), draw(2, 4, 3)
    yield Sample("edge_even", "(2,4,3), q = 0", even)


# ---------------------------------------------------------------- losses


def classified(draw: Draw) -> Iterator[Sample]:
    targets = draw.ids(5, 2, 3)
    targets[1, 1] = 4
    yield Sample("plain", "(2,3,5), one of the last class", (draw(2, 3, 5),), once(targets))
    some = np.array([3, -100, 0, -100, 6])
    yield Sample("edge_ignored", "(5,7), two targets -100", (draw(5, 7),), once(some))
    other = np.array([[2, 1], [0, 2]], np.int32)
    text = "(2,2,3), ignore_index 2"
    yield Sample("edge_other", text, (draw(2, 2, 3),), lambda dtype: (other, 2))
    four = draw.ids(9, 4)
    yield Sample("edge_wide", "(4,9), up to 80", (wide(draw, 4, 9),), once(four))
    yield Sample("edge_far", "(2,4), near -800", (-800 + draw(2, 4),), once(np.array([0, 3])))
    rows = np.array([1, 3])
    yield Sample("edge_rows", "(2,4), a row near 80, one near -800", (apart(draw, 4),), once(rows))
    equal = np.zeros((1, 1, 131))
    yield Sample("edge_equal", "(1,1,131), all 0", (equal,), once(np.array([[130]])))
    yield Sample("edge_one", "(3,1), one class", (draw(3, 1),), once(np.zeros(3, np.int64)))


def once(targets: Array) -> Options:
    return lambda dtype: (targets,)


def squares(draw: Draw) -> Iterator[Sample]:
    yield Sample("plain", "(2,3)", (draw(2, 3), draw(2, 3)))
    yield Sample("edge_axes", "(2,1,3)", (draw(2, 1, 3), draw(2, 1, 3)))
    yield Sample("edge_one", "()", (draw(), draw()))


def yes_or_no(draw: Draw) -> Iterator[Sample]:
    def about(targets: Array) -> Options:
        return lambda dtype: (targets.astype(dtype),)

    yield Sample("plain", "(2,3), targets 0 and 1", (draw(2, 3),), about(1.0 * draw.ids(2, 2, 3)))
    yield Sample("edge_between", "(4), targets between", (draw(4),), about(draw.units(4)))
    unsure = np.array([0.25, 0.75] * 4)
    yield Sample("edge_wide", "(8), up to 80", (wide(draw, 8),), about(unsure))
    far = np.array([-800.0, 800.0])
    yield Sample("edge_far", "(2), -800 and 800", (far,), about(np.array([1.0, 0.0])))
    yield Sample("edge_zero", "(1,1), 0", (np.zeros((1, 1)),), about(np.array([[0.5]])))


# Name → the class, and what it is called on.
SAMPLES: dict[str, tuple[str, Callable[[Draw], Iterator[Sample]]]] = {
    "add": ("Add", broadcast),
    "mul": ("Mul", broadcast),
    "exp": ("Exp", one_input),
    "log": ("Log", positive),
    "tanh": ("Tanh", saturated),
    "relu": ("ReLU", half_line),
    "gelu": ("GELU", one_input),
    "dropout": ("Dropout", dropout),
    "sum": ("Sum", reduced),
    "mean": ("Mean", reduced),
    "reshape": ("Reshape", reshaped),
    "transpose": ("Transpose", exchanged),
    "slice": ("Slice", sliced),
    "matmul": ("MatMul", products),
    "embedding": ("Embedding", looked_up),
    "softmax": ("Softmax", shares),
    "layernorm": ("LayerNorm", normed),
    "attention": ("CausalAttention", attended),
    "cross_entropy": ("CrossEntropy", classified),
    "mse": ("MSE", squares),
    "bce_with_logits": ("BCEWithLogits", yes_or_no),
}
SUMMED = (  # a gradient's shape, and that of the array which was broadcast to it
    ("plain_front", (2, 3), (3,)),
    ("plain_stretched", (2, 3), (2, 1)),
    ("edge_same", (2, 3), (2, 3)),
    ("edge_number", (2, 3, 2), ()),
    ("edge_both", (2, 3, 4), (3, 1)),
    ("edge_inside", (2, 3, 4), (2, 1, 4)),
    ("edge_ones", (1, 3, 1), (3, 1)),
    ("edge_one", (2, 3, 1), (1, 1)),
    ("edge_two", (3, 2), (3, 1)),
    ("edge_middle", (2, 3, 1), (2, 1, 1)),
)
INPUTS = {
    "add": "a b",
    "mul": "a b",
    "matmul": "a b",
    "mse": "a b",
    "embedding": "weight",
    "layernorm": "x weight bias",
    "attention": "q k v",
    "cross_entropy": "logits",
}
