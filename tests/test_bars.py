"""The bars of learning rows: what of a table may differ from machine to machine."""

from __future__ import annotations

import pytest

from staff import bars

TABLE = "# head\n# task\tbar\tmean\tdeviation\nxor\t0.5\t0.25\t0.1\ndigits\t0.4\t0.3\t0.02\n"


@pytest.mark.parametrize(
    ("made", "fine"),
    [
        (TABLE, True),
        (TABLE.replace("0.25", "0.25000001"), True),
        (TABLE.replace("0.25", "0.26"), False),
        (TABLE.replace("0.02", "0.025"), True),  # float32 training ends elsewhere
        (TABLE.replace("0.02", "0.2"), False),
        (TABLE.replace("xor", "moons"), False),
        (TABLE.replace("# head", "# another"), False),
        (TABLE.partition("digits")[0], False),
    ],
)
def test_a_table_agrees_with_what_is_made_now(made: str, fine: bool) -> None:
    assert bars.agree(TABLE, made) is fine


def test_a_task_that_is_none_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "learning", lambda loaded: [])
    made = bars.table(bars.rubric.load("A2"), TABLE + "ghost\t1\t1\t1\n", with_milestone=False)
    assert [line.split("\t")[0] for line in made.splitlines()[2:]] == ["digits"]


def test_the_graded_seed_is_no_seed_of_the_bars() -> None:
    assert bars.rubric.load("A2").seed not in bars.SEEDS
