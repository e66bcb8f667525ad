"""Counts what is done with numbers, so that a row on a slow method needs no clock.

`work = Work()`, then `merge(piece, {b"an": work.number(0)})`; after that `work.uses` says how often
ranks were compared or computed with.
"""

from collections.abc import Callable

COUNTED = (
    "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__neg__",
    "__lshift__", "__or__", "__ror__",
)  # fmt: skip


class Work:
    """`number` makes an int that is counted in `uses` whenever it is compared or computed with; so
    are the ints that come of it."""

    def __init__(self) -> None:
        self.uses = 0
        methods = {name: self._counted(getattr(int, name)) for name in COUNTED}
        self.number = type("int", (int,), {**methods, "__hash__": int.__hash__})

    def _counted(self, plain: Callable[..., object]) -> Callable[..., object]:
        def method(*operands: object) -> object:
            self.uses += 1
            result = plain(*operands)
            return self.number(result) if type(result) is int else result

        return method
