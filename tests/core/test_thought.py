"""The rules of a guided session, one by one; the laws of moves are in tests/guided/test_placement.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from reasonry.core.strategy import Field, Stage, Strategy
from reasonry.errors import IllegalTransitionError, UsageError
from reasonry.guided.lines import Head, ThoughtLine, spans
from reasonry.strategies import STRATEGIES
from tests.guided import walking

TABLE: Strategy[Any, Any] = Strategy(
    name="loop",
    title="Loop",
    source="test",
    summary="Goes round until it is enough.",
    stages=(
        Stage("start", ("work",)),
        Stage(
            "work", ("check",), fields=(Field("action", {"type": "string", "description": "What to do."}),)
        ),
        Stage("check", ("work", "end")),
        Stage("end"),
    ),
)


Session = partial(walking.Session, TABLE)


# -- totals


# -- stages


def test_a_stage_demands_its_fields_only_when_it_is_named() -> None:
    session = Session()
    with pytest.raises(UsageError, match=r"data\.action.*What to do") as caught:
        session.think(stage="work")
    assert caught.value.details["field"] == "data.action"
    session.think(stage="work", data={"action": "dig"})
    assert session.think().record.stage == "work"
    with pytest.raises(UsageError, match="must be of type string"):
        session.think(stage="work", data={"action": 3})


def test_while_no_stage_was_named_any_stage_of_the_table_may_be_the_first() -> None:
    session = Session()
    session.head = Head(ThoughtLine(""))
    assert session.think(1).record.stage == ""
    assert not session.head.has_stage
    assert session.think(2, branch_id="a", branch_from_thought=1).record.stage == ""
    with pytest.raises(IllegalTransitionError, match=r"nowhere\. loop has no such stage"):
        session.think(3, stage="nowhere")
    first = session.think(3, stage="check").record
    assert (first.stage, first.from_stage) == ("check", None)
    assert session.head.has_stage
    # The number after the latest thought of a branch continues that branch.
    assert (session.head.branches["a"].stage, session.head.main.stage) == ("check", "")


def test_naming_a_strategy_alone_puts_a_line_without_a_stage_at_the_first_one() -> None:
    session = Session()
    session.head = Head(ThoughtLine(""))
    assert session.think(1, strategy="loop").record.stage == "start"
    session.think(2, stage="work", data={"action": "dig"})
    assert session.think(3, strategy="loop").record.stage == "work"


def test_a_line_keeps_the_latest_score_given_on_it() -> None:
    session = Session()
    session.think(1, branch_id="a", data={"score": 1})
    session.think(2, branch_id="a", data={"other": 0.1})
    assert session.head.branches["a"].score == 1.0
    session.think(3, branch_id="b", branch_from_thought=1, data={"score": True})
    assert (session.head.branches["b"].score, session.head.main.score) == (None, None)
    session.think(4, branch_id="a", data={"score": 0.25})
    assert session.head.branches["a"].score == 0.25


def test_a_head_stored_before_lines_had_scores_is_read() -> None:
    old = b'{"main":["start",3,5,3,null,null],"branches":{"a":["work",2,5,1,1,null]},"thoughts":4}'
    head = msgspec.json.decode(old, type=Head)
    assert (head.main.score, head.branches["a"].merged, head.branches["a"].branch_from) == (None, False, 1)


# -- branches


def test_each_line_stands_by_itself_and_a_stage_that_follows_a_branch_stays_on_it() -> None:
    session = Session()
    session.think(1)
    session.think(2, branch_from_thought=1, branch_id="a", stage="work", data={"action": "dig"})
    assert session.head.main.stage == "start"
    followed = session.think(2, stage="check")
    assert (followed.branch, followed.record.from_stage, session.head.main.stage) == ("a", "work", "start")
    assert session.think(2, branch_id="", stage="end").record.from_stage == "check"
    session.think(3, branch_id="b", branch_from_thought=1)
    with pytest.raises(IllegalTransitionError, match="from start to check"):
        session.think(4, branch_id="b", stage="check")
    assert session.think(4, branch_id="a", stage="end").record.from_stage == "check"


def test_a_branch_named_alone_is_continued_or_leaves_the_latest_thought() -> None:
    session = Session()
    session.think(1)
    session.think(2, stage="work", data={"action": "dig"})
    placed = session.think(3, branch_id="new")
    assert (placed.record.branch_from_thought, placed.record.stage) == (2, "work")
    inner = session.think(4, branch_id="inner")
    assert session.head.branches["inner"].parent == "new"
    assert inner.record.branch_from_thought == 3
    assert session.think(5, branch_id="new").branch == "new"
    assert list(session.head.branches) == ["new", "inner"]


def test_a_branch_point_alone_gets_the_next_free_name() -> None:
    session = Session()
    session.think(1)
    session.think(2, branch_id="branch-2", branch_from_thought=1)
    assert [session.think(2, branch_from_thought=1).branch for _ in range(3)] == [
        "branch-1",
        "branch-3",
        "branch-4",
    ]


def test_an_empty_branch_is_the_main_line() -> None:
    session = Session()
    session.think(1)
    assert session.think(2, branch_id="", branch_from_thought=1).branch is None
    assert session.head.branches == {}


def test_a_branch_may_be_the_first_thing_there_is() -> None:
    placed = Session().think(1, branch_id="a")
    assert (placed.branch, placed.record.branch_from_thought, placed.record.stage) == ("a", None, "start")


def test_merging_takes_a_known_branch_back_in() -> None:
    session = Session()
    session.think(1)
    session.think(2, branch_id="a")
    assert session.think(3, merge_branch="a").record.merge_branch == "a"
    assert session.head.branches["a"].merged
    session.think(3, branch_id="a")
    assert not session.head.branches["a"].merged, "gone on with, it is open again"
    with pytest.raises(UsageError, match="no branch 'b'") as caught:
        session.think(4, merge_branch="b")
    assert caught.value.details["choices"] == ["a"]
    with pytest.raises(UsageError, match="cannot merge 'a'") as caught:
        session.think(4, branch_id="a", merge_branch="a")
    assert (
        session.think(4, branch_id=caught.value.details["instead"]["branch_id"], merge_branch="a").branch
        is None
    )


# -- references and numbers


def test_revising_is_marked_with_or_without_a_number() -> None:
    session = Session()
    session.think(1)
    assert session.think(2, revises_thought=1).record.is_revision
    assert session.think(3, is_revision=True).record.revises_thought is None


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([2, 1, 2], "1-2"), ([1, 3, 4, 9], "1, 3-4, 9")]
)
def test_spans_are_short(numbers: list[int], text: str) -> None:
    assert spans(numbers) == text
    assert len(spans(range(1, 5_000, 2))) < 200


def test_the_head_stays_small_with_a_hundred_branches() -> None:
    session = walking.Session(STRATEGIES["tree_of_thoughts"])
    session.think(1)
    for count in range(100):
        session.think(2, branch_id=f"approach-{count}", branch_from_thought=1)
    encoded = msgspec.json.encode(session.head)
    assert len(encoded) < 7_600
    assert msgspec.json.decode(encoded, type=Head) == session.head


# -- laws
