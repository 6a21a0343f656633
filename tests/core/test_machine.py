"""The machine: its laws, on tables small enough to see through."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from reasonry.core import machine
from reasonry.core.bodies import Body, Conclusion, Move, Thought, fail, go, request, stay
from reasonry.core.effects import Ask, CallTool, Effect, RunStrategy, Verify
from reasonry.core.events import (
    Answered,
    Event,
    Failed,
    Finished,
    Reply,
    Stopped,
    ToolReturned,
    Usage,
    Verified,
)
from reasonry.core.machine import MAX_SILENT_MOVES, Snapshot, Step, as_recorded, begin, open_effects
from reasonry.core.readings import Reading, Unreadable
from reasonry.core.strategy import LONG_REPLY, Stage, Strategy
from reasonry.errors import ConflictError, IllegalTransitionError, InvalidStrategyError, UsageError

from ..playing import advance


class Said(Struct, frozen=True):
    word: str


class Log(Struct, frozen=True):
    problem: str
    effects: tuple[Effect, ...] = ()
    heard: tuple[str, ...] = ()
    answer: str | None = None


def strategy(
    *effects: Effect,
    hears: bool = False,
    read: Any = None,
    reply: type[Struct] | None = Said,
    name: str = "small",
) -> Strategy[Log, Any]:
    """A table of three stages that asks once, logs what it hears and answers with it."""

    def ask(state: Log) -> Body:
        answers = yield request(state, *state.effects, give_failures=hears)
        heard = tuple(_heard(answer) for answer in answers)
        return go(replace(state, heard=heard, answer=" ".join(heard) or None), "end", "heard")

    return Strategy(
        name,
        "Small",
        "this project",
        "",
        (Stage("start", ("ask",)), Stage("ask", ("end",), body=ask, reply=reply, read=read), Stage("end")),
        state=Log,
        begin=lambda problem, _: Log(problem, effects),
        conclude=lambda state: Conclusion(state.answer, "success" if state.answer else "empty"),
    )


def with_body(small: Strategy[Log, Any], body: Any, at: int = 1) -> Strategy[Log, Any]:
    """Return a strategy whose stage at a place has another body."""
    stages = list(small.stages)
    stages[at] = dataclasses.replace(stages[at], body=body)
    return dataclasses.replace(small, stages=tuple(stages))


def _heard(answer: Any) -> str:
    match answer:
        case Reply(value=Said(word)):
            return word
        case Reply(value=value):
            return str(value)
        case ToolReturned(value=value):
            return f"tool:{value}"
        case Verified(verdict=verdict):
            return verdict
        case Failed(code=code):
            return f"failed:{code}"
        case Finished(answer=text, status=status):
            return f"{status}:{text}"
        case _:
            raise AssertionError(answer)


def said(word: str, **more: Any) -> Answered:
    return Answered(f'{{"word": "{word}"}}', **more)


def ids(step: Step | Snapshot) -> list[str]:
    return [one.id for one in open_effects(step.snapshot if isinstance(step, Step) else step)]


# -- beginning


def test_beginning_walks_to_the_first_stage_that_asks() -> None:
    small = strategy(Ask("?"))
    step = begin(small, "P")
    assert step.edges == (("start", "ask"),)
    assert step.snapshot.stage == "ask"
    assert step.snapshot.status == "active"
    assert step.effects == open_effects(step.snapshot)
    (one,) = step.effects
    assert one.id == "e1"
    assert isinstance(one.effect, Ask)
    assert one.effect.form == small.by_name["ask"].form
    assert one.effect.max_output_tokens == small.by_name["ask"].max_output_tokens == LONG_REPLY


def test_a_stage_that_wants_nothing_is_passed_through_and_a_run_without_an_answer_has_failed() -> None:
    step = begin(strategy(), "P")
    assert (step.snapshot.stage, step.snapshot.status) == ("end", "failed")
    assert step.edges == (("start", "ask"), ("ask", "end"))
    assert step.thoughts == (Thought("heard", stage="ask"),)


def test_a_strategy_for_guided_use_is_not_driven() -> None:
    guided = Strategy("guided", "", "", "", (Stage("start", ("end",)), Stage("end")))
    with pytest.raises(InvalidStrategyError, match="guided use only"):
        begin(guided, "P")


# -- answers


EFFECTS = (Ask("1?"), Ask("2?"), CallTool("t"), Verify("P", ("x",)))
EVENTS: tuple[Event, ...] = (said("a", at_ms=5), said("b", at_ms=3), ToolReturned(7), Verified("right"))


@given(st.permutations(range(4)))
def test_answers_are_folded_in_the_order_asked_whatever_the_order_of_arrival(order: list[int]) -> None:
    small = strategy(*EFFECTS)
    step = begin(small, "P")
    for place in order:
        step = advance(small, step.snapshot, f"e{place + 1}", EVENTS[place])
    assert step.snapshot.conclusion == Conclusion("a b tool:7 right", "success")
    assert step.snapshot.at_ms == 5
    assert step.edges == (("ask", "end"),)


@given(st.permutations(range(4)), st.integers(0, 3))
def test_nothing_is_folded_before_all_have_answered(order: list[int], until: int) -> None:
    small = strategy(*EFFECTS)
    step = begin(small, "P")
    for place in order[:until]:
        step = advance(small, step.snapshot, f"e{place + 1}", EVENTS[place])
        assert step.effects == ()
        assert step.edges == ()
    assert sorted(ids(step)) == sorted(f"e{place + 1}" for place in order[until:])
    assert step.snapshot.status == "active"


@pytest.mark.parametrize("effect_id", ["e9", "", "e2", "e1.2", "e1/e1", "../e1", "e"])
def test_an_answer_to_what_is_not_pending_is_refused_and_changes_nothing(effect_id: str) -> None:
    small = strategy(Ask("1?"), Ask("2?"))
    before = advance(small, begin(small, "P").snapshot, "e2", said("b")).snapshot
    with pytest.raises(ConflictError) as error:
        advance(small, before, effect_id, said("stale"))
    assert error.value.details.get("choices", ["e1"]) == ["e1"]
    after = advance(small, before, "e1", said("a")).snapshot
    assert after.state.heard == ("a", "b")


@pytest.mark.parametrize(
    ("effect", "event"),
    [
        (Ask("?"), ToolReturned(1)),
        (Ask("?"), Verified("right")),
        (CallTool("t"), Answered("x")),
        (Verify("P", ("x",)), Answered("x")),
    ],
)
def test_an_event_of_the_wrong_kind_is_refused(effect: Effect, event: Event) -> None:
    small = strategy(effect)
    with pytest.raises(ConflictError, match="cannot be settled by"):
        advance(small, begin(small, "P").snapshot, "e1", event)


def test_a_run_that_has_ended_takes_no_more_events() -> None:
    small = strategy(Ask("?"))
    ended = advance(small, begin(small, "P").snapshot, "e1", said("yes")).snapshot
    assert (ended.status, open_effects(ended)) == ("done", ())
    for event in (said("late"), Stopped("cancelled")):
        with pytest.raises(ConflictError, match="has ended"):
            advance(small, ended, "e1", event)


# -- asking again


def test_a_reply_that_cannot_be_read_is_asked_for_again_under_a_new_id() -> None:
    small = strategy(Ask("?", retries=2))
    step = advance(small, begin(small, "P").snapshot, "e1", Answered("{no idea"))
    (one,) = step.effects
    assert one.id == "e1.2"
    assert isinstance(one.effect, Ask)
    assert one.effect.prompt == "?"
    assert [turn.reply for turn in one.effect.turns] == ["{no idea"]
    with pytest.raises(ConflictError):
        advance(small, step.snapshot, "e1", said("late"))
    step = advance(small, step.snapshot, "e1.2", Answered(""))
    assert ids(step) == ["e1.3"]
    step = advance(small, step.snapshot, "e1.3", said("now"))
    assert step.snapshot.conclusion == Conclusion("now", "success")
    assert step.snapshot.rounds == 3


def test_ids_do_not_depend_on_the_order_of_arrival() -> None:
    small = strategy(Ask("1?", retries=1), Ask("2?", retries=1))
    for first, second in itertools.permutations(["e1", "e2"]):
        step = begin(small, "P")
        step = advance(small, step.snapshot, first, Answered("{?"))
        step = advance(small, step.snapshot, second, Answered("{?"))
        assert ids(step) == ["e1.2", "e2.2"]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_when_all_retries_are_used_up_the_failure_has_every_reply(retries: int) -> None:
    small = strategy(Ask("?", retries=retries), hears=True)
    step = begin(small, "P")
    for n in range(retries + 1):
        assert ids(step) == ["e1" if n == 0 else f"e1.{n + 1}"]
        step = advance(small, step.snapshot, ids(step)[0], Answered(f"{{mumble {n}"))
    assert step.snapshot.state.heard == ("failed:output_invalid",)


@pytest.mark.parametrize("reply", [Said, None], ids=["form", "text"])
def test_a_reply_that_was_cut_off_is_asked_for_again_once(reply: type[Struct] | None) -> None:
    small = strategy(Ask("?", retries=5), reply=reply)
    cut = Answered('{"word": "hal', truncated=True)
    step = advance(small, begin(small, "P").snapshot, "e1", cut)
    (one,) = step.effects
    assert isinstance(one.effect, Ask)
    assert "cut off" in one.effect.turns[-1].objection
    assert advance(small, step.snapshot, "e1.2", cut).snapshot.error == "output_invalid"


def test_a_reader_gets_every_reply_oldest_first() -> None:
    seen: list[list[str]] = []

    def read(state: Log, ask: Ask, texts: list[str]) -> tuple[str, str] | Unreadable:
        seen.append(list(texts))
        return ("+".join(texts), "list") if len(texts) == 2 else Unreadable("one more")

    small = strategy(Ask("?", retries=1), read=read)
    step = advance(small, begin(small, "P").snapshot, "e1", Answered("a"))
    step = advance(small, step.snapshot, "e1.2", Answered("b"))
    assert seen[:2] == [["a"], ["a", "b"]]
    assert step.snapshot.state.heard == ("a+b",)


def test_the_machine_reads_by_the_reader_that_it_is_handed_and_a_record_by_its_reading() -> None:
    read: list[tuple[str, Any, list[str]]] = []

    def shout(stage: Stage[Any], state: Any, ask: Ask, replies: Sequence[Answered]) -> Reading:
        read.append((stage.name, state, [reply.text for reply in replies]))
        is_first = len(replies) == 1
        return Reading(refusal="Louder") if is_first else Reading("shouted", Said(replies[-1].text.upper()))

    small = strategy(Ask("?"))
    begun = begin(small, "P").snapshot
    step = machine.advance(small, begun, "e1", Answered("a"), read=shout)
    assert step.effects[0].effect.turns[0].objection.startswith("Louder.")  # pyright: ignore
    step = machine.advance(small, step.snapshot, "e1.2", Answered("b"), read=shout)
    assert read == [("ask", begun.state, ["a"]), ("ask", begun.state, ["a", "b"])]
    assert step.snapshot.state.heard == ("B",)
    again = as_recorded(Reading("shouted", {"word": "B"}))
    assert machine.advance(small, begun, "e1", Answered("c"), read=again).snapshot.state.heard == ("B",)
    with pytest.raises(ConflictError) as error:
        machine.advance(small, begun, "e1", Answered("c"), read=as_recorded(Reading("json", 7)))
    assert error.value.code == "strategy_changed"


def test_a_reply_says_how_it_was_read_and_how_often_it_was_asked_for() -> None:
    replies: list[Reply] = []

    def ask(state: Log) -> Body:
        replies.extend((yield request(state, *state.effects)))
        return go(state, "end")

    small = with_body(strategy(Ask("?"), Ask("?")), ask)
    step = advance(small, begin(small, "P").snapshot, "e1", Answered('so: {"word": "a"}', at_ms=4))
    step = advance(small, step.snapshot, "e2", Answered("{?"))
    advance(small, step.snapshot, "e2.2", said("b", native=True, at_ms=9))
    assert [(one.mode, one.tries, one.at_ms) for one in replies] == [("embedded", 1, 4), ("native", 2, 9)]


# -- failures


def test_a_failure_that_a_stage_does_not_hear_ends_the_run_when_the_other_answers_are_in() -> None:
    small = strategy(Ask("1?"), Ask("2?"))
    step = advance(small, begin(small, "P").snapshot, "e1", Failed("provider_auth", "no key"))
    assert step.snapshot.status == "active"
    step = advance(small, step.snapshot, "e2", said("b"))
    assert step.snapshot.status == "failed"
    assert step.snapshot.error == "provider_auth"
    assert step.snapshot.conclusion == Conclusion(None, "error", "no key")


def test_a_stage_may_end_the_run_with_a_code() -> None:
    def give_up(state: Log) -> Body:
        yield request(state, Ask("?"))
        return fail(state, "error", "too hard", "provider_error")

    small = with_body(strategy(), give_up)
    ended = advance(small, begin(small, "P").snapshot, "e1", said("x")).snapshot
    assert (ended.status, ended.error) == ("failed", "provider_error")
    assert ended.conclusion == Conclusion(None, "error", "too hard")


# -- stops


def test_a_stop_ends_the_run_with_the_best_so_far() -> None:
    small = strategy(Ask("?"))
    hopeful = dataclasses.replace(small, conclude=lambda state: Conclusion("so far"))
    before = begin(hopeful, "P").snapshot
    at_limit = advance(hopeful, before, None, Stopped("max_calls", "limit", at_ms=8)).snapshot
    assert (at_limit.status, at_limit.at_ms) == ("done", 8)
    assert at_limit.conclusion == Conclusion("so far", "max_calls", "limit", certainty="best_so_far")
    for reason, status in (("max_calls", "failed"), ("cancelled", "cancelled")):
        ended = advance(small, begin(small, "P").snapshot, None, Stopped(reason, usage=Usage())).snapshot
        assert (ended.status, open_effects(ended)) == (status, ())
        assert ended.conclusion == Conclusion(None, reason, certainty="best_so_far")


# -- walking


def looping(move: Any) -> Strategy[int, Any]:
    start = Stage("start", ("start_again", "end"), body=move)
    stages = start, Stage("start_again", ("start",), body=move), Stage("end")
    return Strategy("looping", "", "", "", stages, state=int, begin=lambda problem, _: 0)


@pytest.mark.parametrize(
    "move",
    [lambda n: stay(n + 1), lambda n: go(n + 1, "start_again" if n % 2 == 0 else "start")],
    ids=["staying", "going round"],
)
def test_a_loop_that_asks_nobody_is_bounded(move: Any) -> None:
    ended = begin(looping(move), "P").snapshot
    assert ended.status == "failed"
    assert ended.error == "stage_loop"
    assert ended.state == MAX_SILENT_MOVES


def test_going_where_the_table_has_no_edge_is_an_error_that_names_the_legal_stages() -> None:
    with pytest.raises(IllegalTransitionError, match="Invalid transition from start to elsewhere") as error:
        begin(looping(lambda n: go(n, "elsewhere")), "P")
    assert error.value.details["choices"] == ["start_again", "end"]


# -- runs inside a run


def nested(
    inner: Strategy[Any, Any], count: int = 2, **more: Any
) -> tuple[Strategy[Any, Any], dict[str, Any]]:
    outer = strategy(
        *(RunStrategy(inner.name, f"P{n}", sample=n) for n in range(count)), name="outer", **more
    )
    return outer, {inner.name: inner, "outer": outer}


def test_runs_inside_a_run_are_answered_by_their_own_ids_in_any_order() -> None:
    for order in itertools.permutations(["e1/e1", "e2/e1"]):
        outer, strategies = nested(strategy(Ask("?"), name="inner"))
        step = begin(outer, "P", strategies=strategies)
        assert ids(step) == ["e1/e1", "e2/e1"] == [one.id for one in step.effects]
        for effect_id in order:
            step = advance(outer, step.snapshot, effect_id, said(effect_id[1]), strategies=strategies)
        assert step.snapshot.state.heard == ("done:1", "done:2")
        assert step.snapshot.rounds == 1


def test_inside_a_run_replies_are_asked_for_again_too() -> None:
    outer, strategies = nested(strategy(Ask("?"), name="inner"), count=1)
    step = begin(outer, "P", strategies=strategies)
    step = advance(outer, step.snapshot, "e1/e1", Answered("{?"), strategies=strategies)
    assert [one.id for one in step.effects] == ids(step) == ["e1/e1.2"]
    for wrong in ("e1", "e1/e1", "e1/e2", "e2/e1"):
        with pytest.raises(ConflictError):
            advance(outer, step.snapshot, wrong, said("x"), strategies=strategies)
    step = advance(outer, step.snapshot, "e1/e1.2", said("x"), strategies=strategies)
    assert step.snapshot.rounds == 2
    assert step.snapshot.conclusion == Conclusion("done:x", "success")


def test_a_run_inside_that_fails_or_asks_nobody_is_heard_as_finished() -> None:
    outer, strategies = nested(strategy(Ask("?"), name="inner"))
    step = begin(outer, "P", strategies=strategies)
    step = advance(outer, step.snapshot, "e1/e1", Failed("provider_error", "down"), strategies=strategies)
    step = advance(outer, step.snapshot, "e2/e1", said("ok"), strategies=strategies)
    assert step.snapshot.state.heard == ("failed:None", "done:ok")
    outer, strategies = nested(strategy(name="inner"))
    step = begin(outer, "P", strategies=strategies)
    assert (step.snapshot.state.heard, step.effects) == (("failed:None", "failed:None"), ())


def test_runs_nest_and_rounds_count_the_longest_way() -> None:
    inner = strategy(Ask("?"), name="inner")
    middle = strategy(RunStrategy("inner", "P"), name="middle")

    def ask_first(state: Log) -> Body:
        yield request(state, Ask("first?"))
        return go(state, "ask")

    outer = with_body(strategy(RunStrategy("middle", "P"), name="outer"), ask_first, at=0)
    strategies = {"inner": inner, "middle": middle, "outer": outer}
    step = begin(outer, "P", strategies=strategies)
    step = advance(outer, step.snapshot, "e1", Answered("go"), strategies=strategies)
    assert ids(step) == ["e2/e1/e1"]
    step = advance(outer, step.snapshot, "e2/e1/e1", said("deep"), strategies=strategies)
    assert step.snapshot.conclusion == Conclusion("done:done:deep", "success")
    assert step.snapshot.rounds == 2


def test_thoughts_of_a_run_inside_are_on_its_own_branch() -> None:
    def think(state: Log) -> Move:
        thoughts = Thought("main"), Thought("b", branch="b"), Thought("c", branch="c", leaves="b")
        return go(state, "end", *thoughts)

    inner = with_body(strategy(name="inner"), think)
    outer, strategies = nested(inner, count=1)
    thoughts = begin(outer, "P", strategies=strategies).thoughts
    assert [(one.text, one.branch, one.leaves) for one in thoughts[:3]] == [
        ("main", "e1", None),
        ("b", "e1/b", "e1"),
        ("c", "e1/c", "e1/b"),
    ]


def test_a_run_inside_of_an_unknown_strategy_is_refused_naming_the_known_ones() -> None:
    outer, strategies = nested(strategy(name="inner"))
    del strategies["inner"]
    with pytest.raises(UsageError) as error:
        begin(outer, "P", strategies=strategies)
    assert error.value.details["choices"] == ["outer"]


def test_a_stop_ends_the_runs_inside_as_well() -> None:
    outer, strategies = nested(strategy(Ask("?"), name="inner"))
    step = begin(outer, "P", strategies=strategies)
    ended = advance(outer, step.snapshot, None, Stopped("max_calls"), strategies=strategies).snapshot
    assert ended.conclusion == Conclusion(
        "cancelled:None cancelled:None", "max_calls", certainty="best_so_far"
    )
    assert open_effects(ended) == ()
