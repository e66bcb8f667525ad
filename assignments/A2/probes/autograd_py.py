"""Calls the backward half of llmc/autograd.py, and its engine on operations of the probe's own."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import numpy as np
from observe import DTYPES, WrongType, number, numbers, outcome, tensor, text
from samples import SAMPLES, SUMMED, Array, Draw, along, class_of, inputs, samples
from tiny import TINY, assembled, projected

Case = Callable[[int], None]
DEEP = 5000  # nodes, of which Python could not call one from within the other
LAYERS = 12  # of a graph through which 2^12 paths lead


def case_unbroadcast(seed: int) -> None:
    from llmc.autograd import unbroadcast

    draw = Draw(seed, 0)
    for name, shape, wanted in SUMMED:
        text(f"{name}_text", f"from {shape} to {wanted}".replace(", ", ","))
        grad = draw(*shape)
        for kind, dtype in DTYPES.items():
            tensor(f"{name}_{kind}", unbroadcast(grad.astype(dtype), wanted), kind)


def backward(operation: str) -> Case:
    """A case: the gradients by each input, on each sample in both dtypes."""

    def case(seed: int) -> None:
        from llmc import autograd as ad

        changed = 0
        for sample in samples(operation, seed):
            text(f"{sample.name}_text", sample.text)
            for kind, dtype in DTYPES.items():
                arrays = [array.astype(dtype) for array in sample.arrays]
                made = getattr(ad, class_of(operation))(*sample.options(dtype))
                result = made(*(ad.Tensor(array, requires_grad=True) for array in arrays))
                grad = np.array(along(seed, result.data), dtype)
                grad.flags.writeable = False  # as what Sum hands on
                kept = result.data.copy()
                made.backward(grad)
                found = as_many(made.backward(grad), inputs(operation))  # once more gives the same
                changed += not np.array_equal(result.data, kept)
                for name, by_input in found.items():
                    tensor(f"{sample.name}_by_{name}_{kind}", by_input, kind)
                for after, before in zip(arrays, sample.arrays, strict=True):
                    changed += not np.array_equal(after, before)
        number("changed", changed)

    return case


def as_many(found: object, names: list[str]) -> dict[str, object]:
    if type(found) not in (tuple, list) or len(found) != len(names):
        what = f"{len(found)} in a tuple" if isinstance(found, tuple) else type(found).__name__
        raise WrongType(f"backward returned {what}, want a tuple: by {', '.join(names)}")
    return dict(zip(names, found, strict=True))


# ---------------------------------------------------------------- the engine


def operations(ad: ModuleType) -> SimpleNamespace:
    """Operations that are right whatever the student's are, and count how often they go back."""
    calls = [0]

    class Scale(ad.Operation):
        """by x."""

        def __init__(self, by: float) -> None:
            self.by = by

        def forward(self, one: Array) -> Array:
            return self.by * one

        def backward(self, arrived: Array) -> tuple[Array, ...]:
            calls[0] += 1
            return (self.by * arrived,)

    class Pair(ad.Operation):
        """a + 2 b."""

        def forward(self, a: Array, b: Array) -> Array:
            return a + 2 * b

        def backward(self, grad: Array) -> tuple[Array, ...]:
            calls[0] += 1
            return grad, 2 * grad

    class Both(ad.Operation):
        """a + b, with one array as both gradients, as Add has."""

        def forward(self, a: Array, b: Array) -> Array:
            return a + b

        def backward(self, grad: Array) -> tuple[Array, ...]:
            shared = np.broadcast_to(grad, grad.shape)  # must not be written
            return shared, shared

    def scale(x: object, by: float) -> object:
        return Scale(by)(x)

    def pair(a: object, b: object) -> object:
        return Pair()(a, b)

    return SimpleNamespace(calls=calls, scale=scale, pair=pair, both=lambda a, b: Both()(a, b))


def leaf(ad: ModuleType, *values: float, dtype: str = "float64") -> object:
    return ad.Tensor(np.array(values, dtype), requires_grad=True)


def case_order(seed: int) -> None:
    from llmc import autograd as ad

    ops = operations(ad)
    a, b, plain = leaf(ad, 1.0), leaf(ad, 2.0), ad.Tensor(np.array([3.0]))
    x = ops.pair(a, b)
    y = ops.scale(x, 3.0)
    for name, z in (("some", ops.pair(y, x)), ("other", ops.pair(x, y))):  # a short cut to x
        last = ops.pair(z, plain)
        numbers(name, places(ad.topological_order(last), [a, b, x, y, z, last, plain]))
    numbers("leaf", places(ad.topological_order(a), [a]))
    many = [a]
    for _ in range(LAYERS):
        many.append(ops.pair(many[-1], many[-1]))
    numbers("paths", places(ad.topological_order(many[-1]), many))
    deep = chain(ops, a)
    numbers("deep", places(ad.topological_order(deep[-1]), deep))


def places(order: object, tensors: list[object]) -> list[int]:
    """Where each of the order's stands among the tensors; -1 for another one."""
    if type(order) is not list:
        raise WrongType(f"topological_order returned {type(order).__name__}, want a list")
    known = {id(tensor): place for place, tensor in enumerate(tensors)}
    return [known.get(id(tensor), -1) for tensor in order]


def chain(ops: SimpleNamespace, first: object) -> list[object]:
    found = [first]
    for i in range(DEEP):
        found.append(ops.scale(found[-1], (2.0, 0.5)[i % 2]))
    return found


def case_backward(seed: int) -> None:
    from llmc import autograd as ad

    ops = operations(ad)
    for kind, dtype in DTYPES.items():
        a, b = leaf(ad, 1.0, 2.0, dtype=dtype.name), leaf(ad, 3.0, 4.0, dtype=dtype.name)
        plain = ad.Tensor(np.array([5.0, 6.0], dtype))
        x = ops.pair(a, b)
        y = ops.scale(x, 3.0)
        z = ops.pair(y, plain)
        z.backward(np.array([1.0, 10.0], dtype))
        tensor(f"a_{kind}", a.grad, kind)
        tensor(f"b_{kind}", b.grad, kind)
        number(f"without_{kind}", sum(t.grad is None for t in (plain, x, y, z)))
        one = ad.Tensor(np.array([[7.0]], dtype), requires_grad=True)
        ops.scale(one, 4.0).backward()
        tensor(f"one_{kind}", one.grad, kind)


def case_twice(seed: int) -> None:
    from llmc import autograd as ad

    ops = operations(ad)
    a = leaf(ad, 1.0)
    x = ops.scale(a, 2.0)
    ops.pair(x, x).backward()
    tensor("used", a.grad, "f64")
    for name, turned in (("long_first", False), ("short_first", True)):
        first = leaf(ad, 1.0)
        near = ops.scale(first, 2.0)
        far = ops.scale(near, 3.0)
        (ops.pair(near, far) if turned else ops.pair(far, near)).backward()
        tensor(name, first.grad, "f64")
    b = leaf(ad, 1.0)
    ends = ops.pair(ops.scale(b, 2.0), ops.scale(b, 3.0))
    ends.backward()
    tensor("diamond", b.grad, "f64")
    ends.backward()
    tensor("again", b.grad, "f64")
    c = leaf(ad, 1.0)
    last = c
    for _ in range(LAYERS):
        last = ops.pair(last, last)
    ops.calls[0] = 0
    last.backward()
    tensor("paths", c.grad, "f64")
    number("calls", ops.calls[0])


def case_copies(seed: int) -> None:
    from llmc import autograd as ad

    ops = operations(ad)
    both = leaf(ad, 1.0)
    ops.both(both, both).backward()
    tensor("both", both.grad, "f64")
    a, b = leaf(ad, 1.0, 2.0), leaf(ad, 3.0, 4.0)
    start = np.array([1.0, 10.0])
    ops.both(a, b).backward(start)
    a.grad[:] = 77.0
    tensor("other", b.grad, "f64")
    tensor("start", start, "f64")


def case_deep(seed: int) -> None:
    from llmc import autograd as ad

    a = leaf(ad, 1.0)
    chain(operations(ad), a)[-1].backward()
    tensor("grad", a.grad, "f64")


def case_refused(seed: int) -> None:
    from llmc import autograd as ad

    ops = operations(ad)
    two = np.array([1.0, 1.0])
    outcome("good", lambda: ops.scale(leaf(ad, 1.0, 2.0), 2.0).backward(two))
    outcome("nothing", lambda: ops.scale(ad.Tensor(np.array([1.0])), 2.0).backward())
    outcome("several", lambda: ops.scale(leaf(ad, 1.0, 2.0), 2.0).backward())
    outcome("shape", lambda: ops.scale(leaf(ad, 1.0, 2.0), 2.0).backward(two[:1]))
    single = two.astype(np.float32)
    outcome("dtype", lambda: ops.scale(leaf(ad, 1.0, 2.0), 2.0).backward(single))
    outcome("leaf", lambda: leaf(ad, 1.0, 2.0).backward(single))


def case_no_grad(seed: int) -> None:
    from llmc import autograd as ad

    ops, a = operations(ad), leaf(ad, 1.0)

    def remembers() -> int:
        """1 if a call is remembered, 0 if not; 2 for something between."""
        result = ops.scale(a, 2.0)
        return {(True, True): 1, (False, False): 0}.get(
            (bool(result.requires_grad), result.creator is not None), 2
        )

    @ad.no_grad()
    def decorated() -> int:
        return remembers()

    with ad.no_grad():
        inside = remembers()
        with ad.no_grad():
            deeper = remembers()
        between = remembers()
    numbers("with", [inside, remembers()])
    numbers("nested", [deeper, between, remembers()])
    numbers("decorated", [decorated(), remembers(), decorated()])
    outcome("error", fails, ad)
    numbers("after_error", [remembers()])


def fails(ad: ModuleType) -> None:
    with ad.no_grad():
        raise KeyError("the row's own")


# ---------------------------------------------------------------- all of it


def case_gradients(seed: int) -> None:
    from llmc import model
    from llmc.autograd import CrossEntropy

    for tiny in TINY:
        text(f"{tiny.name}_text", tiny.text)
        ids, targets = tiny.batch(seed)
        for kind, dtype in DTYPES.items():
            made = assembled(model, tiny, tiny.weights(seed), dtype)
            CrossEntropy(targets)(made(ids)).backward()
            grads = {name: parameter.grad for name, parameter in made.named_parameters().items()}
            for name, grad in grads.items():
                if grad is None:
                    raise WrongType(f"`{name}.grad` is None")
            tensor(
                f"{tiny.name}_{kind}", projected(grads, tiny.directions(seed)).astype(dtype), kind
            )


CASES = {
    "unbroadcast": case_unbroadcast,
    **{f"{name}_backward": backward(name) for name in SAMPLES},
    "order": case_order,
    "backward": case_backward,
    "twice": case_twice,
    "copies": case_copies,
    "deep": case_deep,
    "refused": case_refused,
    "no_grad": case_no_grad,
    "gradients": case_gradients,
}
