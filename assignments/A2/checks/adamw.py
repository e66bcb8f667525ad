"""What decides the row of adamw.h."""

from autograder.compare import CLOSE_C, Seen, close_all


def adamw(seen: Seen) -> None:
    hint = "both moments are corrected by 1 - beta^t; t is 1 in the first step"
    close_all(seen, "plain", hint, bounds=CLOSE_C)


def adamw_decay(seen: Seen) -> None:
    hint = "lr decay param is taken off beside the gradient's part, of the param before the step"
    close_all(seen, "decay", hint, bounds=CLOSE_C)


def adamw_edges(seen: Seen) -> None:
    close_all(seen, "edge", "eps is added to the root, not under it", bounds=CLOSE_C)


def clean_adamw(seen: Seen) -> None:
    seen.no_warnings()
