"""Strategies of one's own, as TOML: what holds together is read, what does not says where and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.app.strategy_table import read_table
from reasonry.errors import InvalidStrategyError

GOOD = """
name = "code_review"
summary = "Reads a change and weighs it."
aliases = ["review"]

[[stages]]
name = "reading"
description = "Take the change in."
to = ["faults", "verdict"]

[[stages]]
name = "faults"
to = ["verdict"]
fields = { severity = { type = "string", enum = ["low", "high"] }, where = { type = "string" } }
optional = ["where"]

[[stages]]
name = "verdict"
"""


def test_a_table_becomes_a_strategy_for_guided_use() -> None:
    strategy = read_table(GOOD)
    assert strategy.edges == (("reading", "faults"), ("reading", "verdict"), ("faults", "verdict"))
    assert (strategy.first, strategy.title, strategy.is_driven) == ("reading", "Code review", False)
    fields = {one.name: one.required for one in strategy.by_name["faults"].fields}
    assert fields == {"severity": True, "where": False}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('to = ["verdict"]', 'to = ["nowhere"]', "'faults' leads to 'nowhere'"),
        ('to = ["faults", "verdict"]', 'to = ["verdict"]', "'faults' cannot be reached"),
        ('to = ["verdict"]', 'to = ["faults"]', "end 'verdict' cannot be reached from stage 'faults'"),
        ('name = "faults"', 'name = "reading"', "stands twice"),
        ('name = "verdict"', 'name = "verdict"\nto = ["reading"]', "exactly one stage without a way out"),
        ('name = "code_review"', 'name = "Code Review"', "`$.name`"),
        ('optional = ["where"]', 'optional = ["when"]', "'faults' names 'when' as optional"),
        ("description", "descripton", "descripton"),
        ("[[stages]]", "[[stages", "t.toml"),
        ('summary = "', "summary = ", "t.toml"),
    ],
)
def test_what_does_not_hold_together_says_which_stage_and_why(old: str, new: str, why: str) -> None:
    with pytest.raises(InvalidStrategyError) as error:
        read_table(GOOD.replace(old, new), "t.toml")
    assert why in error.value.message
    assert "t.toml" in error.value.message


@given(st.text())
def test_any_text_is_a_table_or_a_clear_error(text: str) -> None:
    with pytest.raises(InvalidStrategyError):
        read_table(text)
