"""Where a thought may go: laws over every strategy, the lines it is on, paths, and what a refusal says."""

from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reasonry.core.strategy import Field, Stage, Strategy
from reasonry.errors import IllegalTransitionError, UsageError
from reasonry.guided.lines import Head, ThoughtLine, decode_record, spans
from reasonry.guided.placement import MAX_PATH, Placed
from reasonry.strategies import STRATEGIES
from reasonry.text import find_name

from .walking import Session, filled

STAGES = {stage.name for strategy in STRATEGIES.values() for stage in strategy.stages}
BRANCHES = ["a", "b", "__proto__", "цвет", "main"]

Tree = partial(Session, STRATEGIES["tree_of_thoughts"])
React = partial(Session, STRATEGIES["react"])
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
Loop = partial(Session, TABLE)


# -- laws


class AnyWalk(RuleBasedStateMachine):
    """Random calls, legal and not, and what must hold of all of them."""

    @initialize(name=st.sampled_from(sorted(STRATEGIES)), begun=st.booleans())
    def begin(self, name: str, begun: bool) -> None:
        self.session = Session(STRATEGIES[name], begun=begun)

    @property
    def known(self) -> list[str]:
        return list(self.session.head.branches)

    def data_of(self, stages: list[str]) -> dict[str, Any]:
        table = self.session.strategy.by_name
        if len(stages) == 1:
            return filled(table[stages[0]])
        return {name: filled(table[name]) for name in stages}

    def line_of_a_call(self, data: st.DataObject) -> dict[str, Any]:
        """Return a way to name a line: none, the main line, a branch that is there, or a new one from anywhere."""
        numbers = sorted({thought.number for thought in self.session.view.rows})
        call: dict[str, Any] = {}
        branch = data.draw(st.sampled_from([None, "", *BRANCHES, *self.known]))
        if branch is not None:
            call["branch_id"] = branch
        if numbers and data.draw(st.booleans()):
            call["branch_from_thought"] = data.draw(st.sampled_from(numbers))
        return call

    @rule(
        data=st.data(),
        number=st.integers(1, 9),
        total=st.integers(1, 9),
        more=st.booleans(),
        over=st.booleans(),
    )
    def a_thought_that_names_no_stage_is_never_refused(
        self, data: st.DataObject, number: int, total: int, more: bool, over: bool
    ) -> None:
        line = self.line_of_a_call(data)
        placed = self.taken(number, total, needs_more_thoughts=more, next_thought_needed=not over, **line)
        assert placed.record.total_thoughts >= max(number, total)
        assert placed.record.total_thoughts > number or not more
        assert placed.head.ended == over

    @precondition(lambda self: self.session.head.stage)
    @rule(data=st.data(), number=st.integers(1, 9), merges=st.booleans())
    def what_the_latest_reply_offers_is_legal_on_every_line(
        self, data: st.DataObject, number: int, merges: bool
    ) -> None:
        following = self.session.strategy.by_name[self.session.head.stage].to
        if following:
            stage = data.draw(st.sampled_from(following))
            line = self.line_of_a_call(data)
            others = [name for name in self.known if name != line.get("branch_id")]
            if merges and others:
                line["merge_branch"] = data.draw(st.sampled_from(others))
            self.taken(number, stage=stage, data=self.data_of([stage]), **line)

    @rule(data=st.data(), number=st.integers(1, 9))
    def what_a_lines_own_latest_reply_offered_stays_legal_on_it(
        self, data: st.DataObject, number: int
    ) -> None:
        branch = data.draw(st.sampled_from([None, *self.known]))
        here = self.session.strategy.by_name.get(self.session.head.line(branch).stage)
        if here is not None and here.to:
            stage = data.draw(st.sampled_from(here.to))
            placed = self.taken(number, branch_id=branch or "", stage=stage, data=self.data_of([stage]))
            assert placed.record.from_stage in (None, here.name)

    @rule(data=st.data(), number=st.integers(1, 9), steps=st.integers(1, 6))
    def a_path_along_the_table_is_legal(self, data: st.DataObject, number: int, steps: int) -> None:
        table = self.session.strategy.by_name
        branch = data.draw(st.sampled_from([None, *self.known]))
        here = self.session.head.line(branch).stage
        path = [here or data.draw(st.sampled_from(list(table)))]
        while len(path) <= steps and table[path[-1]].to:
            path.append(data.draw(st.sampled_from(table[path[-1]].to)))
        stages = path if data.draw(st.booleans()) or len(path) == 1 else path[1:]
        placed = self.taken(number, branch_id=branch or "", stage=stages, data=self.data_of(stages))
        assert placed.record.stages == tuple(stages)

    @rule(data=st.data(), number=st.integers(1, 9))
    def any_call_is_taken_or_changes_nothing_and_says_what_would_be_taken(
        self, data: st.DataObject, number: int
    ) -> None:
        table = [*self.session.strategy.by_name]
        stages = data.draw(st.lists(st.sampled_from(table), min_size=1, max_size=4))
        call = {**self.line_of_a_call(data), "stage": stages[0] if len(stages) == 1 else stages}
        call["data"] = {} if data.draw(st.integers(0, 4)) == 0 else self.data_of(stages)
        if data.draw(st.booleans()):
            call["merge_branch"] = data.draw(st.sampled_from([*self.known, "no such branch"]))
        if data.draw(st.integers(0, 4)) == 0:
            call["revises_thought"] = data.draw(st.integers(1, 20))
        error = self.refused_or_taken(number, call)
        if error is None or "instead" not in error.details:
            return
        call |= error.details["instead"]
        stage = call["stage"]
        call["data"] = self.data_of([stage] if isinstance(stage, str) else stage)
        self.taken(number, **call)

    @rule(name=st.text(max_size=20).filter(lambda text: find_name(text, STAGES) is None))
    def an_unknown_stage_is_refused(self, name: str) -> None:
        error = self.refused_or_taken(1, {"stage": name})
        assert isinstance(error, IllegalTransitionError)
        assert set(error.details["choices"]) <= set(self.session.strategy.by_name)

    def refused_or_taken(self, number: int, call: dict[str, Any]) -> UsageError | None:
        before, encoded = self.session.head, msgspec.json.encode(self.session.head)
        try:
            self.taken(number, **call)
        except UsageError as refusal:
            error = refusal
        else:
            return None
        assert error.code == "invalid_request"
        assert len(error.message) < 3_000
        assert self.session.head is before
        assert msgspec.json.encode(before) == encoded
        return error

    def taken(self, number: int, total: int = 5, **call: Any) -> Placed:
        """Hand in a thought that is taken, and check that what is recorded is a path of the table."""
        before = self.session.head
        placed = self.session.think(number, total, **call)
        table, record = self.session.strategy.by_name, placed.record
        branch = placed.branch
        known = branch is None or branch in before.branches
        path = [*filter(None, [record.from_stage]), *record.stages]
        assert all(to in table[start].to for start, to in pairwise(path))
        assert record.stage == placed.head.line(branch).stage == placed.head.stage
        if path:
            left = [
                decode_record(thought).stage
                for thought in self.session.view.rows
                if thought.seq == record.branch_from_seq
            ]
            own = [before.line(branch).stage] if known else [left[0] if left else before.main.stage]
            merged = [before.branches[record.merge_branch].stage] if record.merge_branch else []
            assert "" in own or path[0] in [*own, *merged, before.stage]
        return placed

    @invariant()
    def the_head_is_sound(self) -> None:
        if not hasattr(self, "session"):
            return
        head = self.session.head
        assert head.thoughts == len(self.session.view.rows)
        assert head.thoughts == head.main.thoughts + sum(one.thoughts for one in head.branches.values())
        assert msgspec.json.decode(msgspec.json.encode(head), type=Head) == head


TestAnyWalk = AnyWalk.TestCase
TestAnyWalk.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


# -- lines


def valued_branches(*names: str) -> Session:
    """Return a tree of thoughts with branches that were begun side by side and valued."""
    session = Tree()
    session.think(1, stage="problem_reception")
    session.think(2, stage="approach_exploration")
    for number, name in enumerate(names):
        session.think(3 + 3 * number, branch_id=name, stage="branch_creation")
        session.think(4 + 3 * number, branch_id=name, stage="branch_development")
        session.think(5 + 3 * number, branch_id=name, stage="branch_evaluation", data={"score": number / 10})
    return session


def test_branches_named_alone_are_begun_side_by_side() -> None:
    session = valued_branches("A", "B", "C")
    assert [(line.branch_from, line.parent) for line in session.head.branches.values()] == [(2, None)] * 3
    assert [line.score for line in session.head.branches.values()] == [0.0, 0.1, 0.2]


def test_merging_brings_the_branchs_position_along() -> None:
    session = valued_branches("A", "B")
    merging = session.think(9, merge_branch="A")
    assert (merging.record.stage, session.head.main.stage) == ("branch_evaluation", "branch_evaluation")
    session = valued_branches("A", "B")
    session.think(9, branch_id="B", stage="branch_selection")
    session.think(10, branch_id="B", stage="continuation_decision")
    solved = session.think(11, merge_branch="B", stage="solution_formulation")
    assert solved.record.from_stage == "continuation_decision"
    assert session.head.branches["B"].merged


def test_merging_a_branch_that_is_behind_does_not_take_the_line_back() -> None:
    session = React()
    session.think(1, stage="initial_reasoning")
    session.think(2, branch_id="side", branch_from_thought=1)
    session.think(2, branch_id="", stage="action_planning", data={"action": "look"})
    assert session.think(3, merge_branch="side").record.stage == "action_planning"


def test_main_is_the_main_line_unless_a_branch_was_begun_by_that_name() -> None:
    session = React()
    assert session.think(1, branch_id="main").branch is None
    assert session.think(2, branch_id="main", branch_from_thought=1).branch == "main"
    assert session.think(3, branch_id="main").branch == "main"


# -- numbers


def test_a_number_is_looked_up_on_the_callers_line_then_on_the_lines_it_left() -> None:
    session = Session(STRATEGIES["linear"])
    for number in (1, 2, 3):
        session.think(number)
    session.think(1, branch_id="B1", branch_from_thought=2)
    session.think(2, branch_id="B1")
    session.think(3, branch_id="B1")
    assert session.think(4, branch_id="", revises_thought=2).record.revises_seq == 2
    assert session.think(4, branch_id="B1", revises_thought=2).record.revises_seq == 5
    session.think(1, branch_id="B2", branch_from_thought=2)
    assert session.think(2, branch_id="B2", revises_thought=2).record.revises_seq == 2
    assert session.think(2, branch_id="B2", revises_thought=2).record.revises_seq == 10
    assert session.think(9, branch_id="B2", revises_thought=4).record.revises_seq == 8, "anywhere: the latest"


def test_a_new_branch_leaves_the_main_lines_thought_of_the_number() -> None:
    session = React()
    session.think(1)
    session.think(2, stage="initial_reasoning")
    session.think(3, stage="action_planning", data={"action": "look"})
    session.think(1, branch_id="B1", branch_from_thought=2)
    session.think(2, branch_id="B1")
    session.think(3, branch_id="B1")
    placed = session.think(1, branch_id="B2", branch_from_thought=3)
    assert (placed.record.stage, placed.record.branch_from_seq) == ("action_planning", 3)
    assert session.head.branches["B2"].parent is None
    session.think(4, branch_id="B1")
    assert session.think(1, branch_id="B3", branch_from_thought=4).record.branch_from_seq == 8
    assert session.head.branches["B3"].parent == "B1"


# -- paths


def test_all_that_a_path_lacks_is_in_one_error() -> None:
    session = React()
    session.think(1, stage="initial_reasoning")
    path = ["action_planning", "action_execution", "observation_reception"]
    with pytest.raises(UsageError) as caught:
        session.think(2, stage=path, data={"observation_reception": {"observation": 3}})
    assert caught.value.details["fields"] == [
        "data.action_planning.action",
        "data.observation_reception.observation",
    ]
    assert "Stage action_planning needs data.action_planning.action (text)" in caught.value.message
    assert session.head.thoughts == 1


def test_a_step_of_a_path_that_is_no_edge_is_refused_with_the_path_that_would_be_taken() -> None:
    session = React()
    session.think(1, stage="problem_reception")
    with pytest.raises(
        IllegalTransitionError, match="Invalid transition from initial_reasoning to action_execution"
    ) as caught:
        session.think(2, stage=["initial_reasoning", "action_execution"])
    instead = caught.value.details["instead"]
    assert instead == {"stage": ["initial_reasoning", "action_planning", "action_execution"]}
    assert "The way there needs action_planning.action in data." in caught.value.message
    with pytest.raises(UsageError, match=f"one call may name {MAX_PATH}"):
        session.think(2, stage=["action_planning"] * 99)


# -- refusals


def test_a_refusal_names_the_lines_where_each_stands_and_the_argument_that_would_be_taken() -> None:
    session = valued_branches("A", "B")
    session.think(9, branch_id="C", branch_from_thought=2)
    with pytest.raises(IllegalTransitionError) as caught:
        session.think(10, stage="branch_selection")
    assert caught.value.message == (
        "Invalid transition from approach_exploration to branch_selection. Legal next stages: branch_creation. "
        "Where the lines stand: main line at approach_exploration, branch 'A' at branch_evaluation, "
        "branch 'B' at branch_evaluation, branch 'C' at approach_exploration; "
        "the latest thought at approach_exploration."
    )
    assert caught.value.details["instead"] == {"branch_id": "B"}


def test_a_stage_of_another_strategy_is_refused_with_those_there_are() -> None:
    session = React()
    with pytest.raises(IllegalTransitionError) as caught:
        session.think(1, stage="abstraction")
    assert caught.value.message == (
        "Invalid transition from problem_reception to abstraction. react has no such stage. "
        "Legal next stages: initial_reasoning."
    )


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_stages_are_listed_once_where_one_is_not_known(name: str) -> None:
    strategy = STRATEGIES[name]
    with pytest.raises(IllegalTransitionError) as caught:
        Session(strategy, begun=False).think(1, stage="no such thing")
    assert caught.value.details["choices"] == list(strategy.by_name)
    assert caught.value.message.count(", ".join(strategy.by_name)) == 1


def test_a_stage_that_is_not_known_is_asked_back_for() -> None:
    with pytest.raises(IllegalTransitionError) as caught:
        Session(STRATEGIES["linear"], begun=False).think(1, stage="verify")
    assert "linear has no such stage. Did you mean hypothesis_verification?" in caught.value.message


def test_refusals_stay_short_with_a_hundred_branches() -> None:
    session = Tree()
    session.think(1, stage="problem_reception")
    for count in range(100):
        session.think(2, branch_id=f"{count} " + "x" * 150, branch_from_thought=1)
    with pytest.raises(IllegalTransitionError, match=r"main line at problem_reception, 92 more, ") as caught:
        session.think(3, stage="branch_selection")
    assert len(caught.value.message) < 1_500


# -- one rule at a time


def test_while_no_stage_was_named_any_stage_of_the_table_may_be_the_first() -> None:
    session = Loop()
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
    session = Loop()
    session.head = Head(ThoughtLine(""))
    assert session.think(1, strategy="loop").record.stage == "start"
    session.think(2, stage="work", data={"action": "dig"})
    assert session.think(3, strategy="loop").record.stage == "work"


def test_each_line_stands_by_itself_and_a_stage_that_follows_a_branch_stays_on_it() -> None:
    session = Loop()
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


def test_a_branch_point_alone_gets_the_next_free_name() -> None:
    session = Loop()
    session.think(1)
    session.think(2, branch_id="branch-2", branch_from_thought=1)
    assert [session.think(2, branch_from_thought=1).branch for _ in range(3)] == [
        "branch-1",
        "branch-3",
        "branch-4",
    ]


def test_revising_is_marked_with_or_without_a_number() -> None:
    session = Loop()
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
    session = Tree()
    session.think(1)
    for count in range(100):
        session.think(2, branch_id=f"approach-{count}", branch_from_thought=1)
    encoded = msgspec.json.encode(session.head)
    assert len(encoded) < 7_600
    assert msgspec.json.decode(encoded, type=Head) == session.head
