"""A stage as one generator: what it yields, what it is sent, how it ends, and what it may not do."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from reasonry.core.bodies import Body, Conclusion, EffectFailed, Thought, go, request, stay
from reasonry.core.codec import dump_snapshot, load_snapshot
from reasonry.core.effects import Ask, CallTool, Effect, RunStrategy
from reasonry.core.events import STOPPED, Answered, Event, Failed, Finished, Stopped, ToolReturned
from reasonry.core.machine import MAX_SILENT_MOVES, Step, begin, open_effects
from reasonry.core.strategy import NoOptions, Stage, Strategy
from reasonry.errors import ConflictError

from ..playing import advance
from .test_machine import ids


class Log(Struct, frozen=True):
    problem: str
    options: NoOptions = NoOptions()
    heard: tuple[Any, ...] = ()


Think = Callable[[Log], Any]


def thinking(body: Think, name: str = "small", **more: Any) -> Strategy[Log, Any]:
    """A table whose first stage has this body; its conclusion is what was heard, as far as the state knows."""
    stages = (Stage("think", ("end",), body=body, **more), Stage("end"))

    def conclude(state: Log) -> Conclusion:
        return Conclusion(" ".join(map(str, state.heard)) or None)

    return Strategy(name, "", "", "", stages, state=Log, conclude=conclude)


def noted(state: Log, *heard: Any) -> Log:
    return replace(state, heard=(*state.heard, *heard))


def texts(answers: tuple[Any, ...]) -> list[str]:
    return [one.code if isinstance(one, Failed) else str(one.value) for one in answers]


def tool(name: str) -> CallTool:
    return CallTool(name)


def told(step: Step) -> list[str]:
    return [thought.text for thought in step.thoughts]


def playing(small: Strategy[Log, Any], *events: Event) -> list[Step]:
    """Answer what is wanted, in order."""
    steps = [begin(small, "P")]
    for event in events:
        steps.append(advance(small, steps[-1].snapshot, ids(steps[-1])[0], event))
    return steps


def three_questions(state: Log) -> Body:
    for number in range(3):
        (answer,) = yield request(state, Thought(f"before {number}"), tool(f"t{number}"))
        state = noted(state, answer.value)
    return go(state, "end", "done")


# -- yields


def test_a_stage_of_several_yields_goes_on_from_answer_to_answer_and_records_each_thought_once() -> None:
    steps = playing(thinking(three_questions), *map(ToolReturned, "abc"))
    assert [ids(step) for step in steps] == [["e1"], ["e2"], ["e3"], []]
    assert [step.edges for step in steps] == [(), (), (), (("think", "end"),)]
    assert steps[-1].snapshot.conclusion == Conclusion("a b c")
    assert [told(step) for step in steps] == [["before 0"], ["before 1"], ["before 2"], ["done"]]
    assert {thought.stage for step in steps for thought in step.thoughts} == {"think"}


def test_conclusion_and_readers_see_the_state_of_the_last_yield() -> None:
    seen: list[tuple[Any, ...]] = []

    def ask(state: Log) -> Body:
        for _ in range(2):
            (reply,) = yield request(state, Ask("?"))
            state = noted(state, reply.value)
        return go(state, "end")

    def read(state: Log, _: Ask, texts: Any) -> tuple[str, str]:
        seen.append(state.heard)
        return texts[-1], "text"

    steps = playing(thinking(ask, read=read), Answered("a"), Answered("b"))
    assert [step.snapshot.state.heard for step in steps] == [(), ("a",), ("a", "b")]
    assert seen == [(), ("a",)]


def test_thoughts_before_a_failure_stay() -> None:
    steps = playing(thinking(three_questions), ToolReturned("a"), Failed("tool_error", "broken"))
    assert [told(step) for step in steps] == [["before 0"], ["before 1"], []]
    assert steps[-1].snapshot.conclusion == Conclusion(None, "error", "broken")


def test_a_yield_without_effects_goes_on_at_once_and_its_thoughts_and_state_count() -> None:
    def ask(state: Log) -> Body:
        assert (yield request(noted(state, "first"), Thought("one"))) == ()
        assert (yield request(noted(state, "second"), Thought("two"), tool("t"))) == (ToolReturned(7),)
        return go(state, "end")

    step = begin(thinking(ask), "P")
    assert told(step) == ["one", "two"]
    assert step.snapshot.state.heard == ("second",)
    assert told(advance(thinking(ask), step.snapshot, "e1", ToolReturned(7))) == []


def test_yields_without_end_that_ask_nobody_are_bounded() -> None:
    seen: list[int] = []

    def ask(state: Log) -> Body:
        for number in itertools.count(1):
            seen.append(number)
            yield request(noted(state, number))
        raise AssertionError

    ended = begin(thinking(ask), "P").snapshot
    assert (ended.status, ended.error) == ("failed", "stage_loop")
    assert seen[-1] == MAX_SILENT_MOVES + 1


def test_staying_ends_the_round_and_drops_its_answers() -> None:
    def ask(state: Log) -> Body:
        (answer,) = yield request(state, tool("t"))
        state = noted(state, answer.value)
        return go(state, "end") if len(state.heard) == 50 else stay(state)

    small = thinking(ask)
    steps = playing(small, *map(ToolReturned, range(50)))
    assert all(step.snapshot.rounds_had == () for step in steps)
    assert steps[-1].snapshot.status == "done"


# -- failures


def test_the_first_failure_in_the_order_asked_is_raised_when_all_answers_are_in_and_the_stage_goes_on() -> (
    None
):
    caught: list[EffectFailed] = []

    def ask(state: Log) -> Body:
        try:
            yield request(state, tool("a"), tool("b"), tool("c"))
        except EffectFailed as lost:
            caught.append(lost)
            state = noted(state, lost.failure.code)
        (answer,) = yield request(state, tool("d"))
        return go(noted(state, answer.value), "end")

    small = thinking(ask)
    step = begin(small, "P")
    for effect_id, event in [
        ("e3", Failed("late", "c")),
        ("e2", Failed("early", "b")),
        ("e1", ToolReturned("a")),
    ]:
        assert caught == []
        step = advance(small, step.snapshot, effect_id, event)
    assert [lost.failure.code for lost in caught] == ["early"]
    assert step.snapshot.status == "active"
    step = advance(small, step.snapshot, "e4", ToolReturned("yes"))
    assert step.snapshot.conclusion == Conclusion("early yes")


# -- enough


def until(count: int, effects: tuple[Effect, ...]) -> Think:
    """A stage that goes on when `count` of its effects have come to something."""

    def is_enough(answers: tuple[Any, ...]) -> bool:
        return sum(answer is not None and not isinstance(answer, Failed) for answer in answers) >= count

    def ask(state: Log) -> Body:
        answers = yield request(state, *effects, enough=is_enough)
        return go(replace(state, heard=answers), "end")

    return ask


@given(st.permutations(range(4)), st.integers(1, 4), st.sets(st.integers(0, 3)))
def test_what_came_in_is_enough_as_soon_as_the_test_says_so(
    order: list[int], count: int, broken: set[int]
) -> None:
    small = thinking(until(count, tuple(map(tool, "abcd"))))
    step, left, good = begin(small, "P"), ["e1", "e2", "e3", "e4"], 0
    for place in order:
        effect_id = f"e{place + 1}"
        event = Failed("tool_error", "broken") if place in broken else ToolReturned(effect_id)
        step = advance(small, step.snapshot, effect_id, event)
        left.remove(effect_id)
        good += place not in broken
        if good >= count or not left:
            break
        assert (ids(step), step.cancelled) == (left, ())
    assert step.snapshot.stage == "end"
    assert list(step.cancelled) == left
    for place, answer in enumerate(step.snapshot.state.heard):
        effect_id = f"e{place + 1}"
        cut = effect_id in left
        assert isinstance(answer, Failed) == (cut or place in broken)
        assert not cut or answer.code == STOPPED


def test_an_answer_to_what_was_cancelled_is_refused() -> None:
    def ask(state: Log) -> Body:
        yield request(state, tool("a"), tool("b"), enough=lambda answers: any(answers))
        yield request(state, tool("c"))
        return go(state, "end")

    small = thinking(ask)
    step = advance(small, begin(small, "P").snapshot, "e2", ToolReturned("b"))
    assert (step.cancelled, ids(step)) == (("e1",), ["e3"])
    with pytest.raises(ConflictError):
        advance(small, step.snapshot, "e1", ToolReturned("late"))
    assert advance(small, step.snapshot, "e3", ToolReturned("c")).snapshot.stage == "end"


def test_runs_inside_that_nobody_waits_for_are_cancelled_with_their_best_so_far() -> None:
    inner = thinking(three_questions, "inner")
    outer = thinking(until(1, tuple(RunStrategy("inner", f"P{n}") for n in range(3))), "outer")
    strategies = {"inner": inner, "outer": outer}
    step = begin(outer, "P", strategies=strategies)
    for effect_id in ("e1/e1", "e2/e1", "e2/e2", "e2/e3"):
        step = advance(outer, step.snapshot, effect_id, ToolReturned(effect_id[-1]), strategies=strategies)
    first, second, third = step.snapshot.state.heard
    assert step.cancelled == ("e1/e2", "e3/e1")
    assert all(isinstance(one, Finished) for one in (first, second, third))
    assert (second.status, second.answer) == ("done", "1 2 3")
    assert (first.status, first.answer) == ("cancelled", "1")
    assert (third.status, third.answer) == ("cancelled", None)


def test_a_run_that_had_enough_is_found_again_when_it_is_folded_from_json() -> None:
    small = thinking(until(1, (tool("a"), tool("b"))))
    before = begin(small, "P").snapshot
    loaded = load_snapshot(dump_snapshot(before), {"small": small})
    event = ToolReturned("b")
    assert (
        advance(small, loaded, "e2", event).cancelled
        == advance(small, before, "e2", event).cancelled
        == ("e1",)
    )


# -- stops


def counting(state: Log) -> Body:
    for number in range(3):
        answers = yield request(state, tool("a"), tool("b"), give_failures=True)
        state = noted(state, *(f"{number}{text}" for text in texts(answers)))
    return go(state, "end")


def test_a_stop_in_the_middle_of_a_stage_counts_what_came_in_and_takes_nothing_from_a_resume() -> None:
    small = thinking(counting)
    steps = playing(small, *map(ToolReturned, "abc"))
    stop = Stopped("max_calls", "limit")
    nothing_new = advance(small, steps[2].snapshot, None, stop).snapshot
    assert nothing_new.conclusion == Conclusion("0a 0b", "max_calls", "limit", certainty="best_so_far")
    half = advance(small, steps[3].snapshot, None, stop).snapshot
    assert half.conclusion == Conclusion("0a 0b 1c 1stopped", "max_calls", "limit", certainty="best_so_far")
    assert (half.state, half.status) == (steps[3].snapshot.state, "done")
    resumed = advance(small, steps[3].snapshot, "e4", ToolReturned("d"))
    assert resumed.snapshot.state.heard == ("0a", "0b", "1c", "1d")


def test_a_stop_that_meets_a_failure_nobody_catches_keeps_what_was_known() -> None:
    def ask(state: Log) -> Body:
        (first,) = yield request(state, tool("a"))
        yield request(noted(state, first.value), tool("b"), tool("c"))
        raise AssertionError

    small = thinking(ask)
    steps = playing(small, *map(ToolReturned, "ab"))
    ended = advance(small, steps[-1].snapshot, None, Stopped("max_seconds")).snapshot
    assert ended.conclusion == Conclusion("a", "max_seconds", certainty="best_so_far")


# -- what a stage may not do


def test_a_body_that_raises_ends_the_run_and_its_answers_are_kept() -> None:
    def raising(state: Log) -> Body:
        yield from three_questions_of("ab")(state)
        raise KeyError("oops")

    events = [ToolReturned("a"), ToolReturned("b")]
    ended = playing(thinking(raising), *events)[-1].snapshot
    assert (ended.status, ended.error, ended.state.heard) == ("failed", "stage_error", ("a",))
    assert ended.conclusion == Conclusion(None, "error", "stage 'think' raised KeyError: 'oops'")
    mended = playing(thinking(three_questions_of("ab")), *events)[-1].snapshot
    assert mended.conclusion == Conclusion("a b"), "the same answers serve the stage once it is mended"


def three_questions_of(names: str) -> Think:
    def ask(state: Log) -> Body:
        for name in names:
            (answer,) = yield request(state, tool(name))
            state = noted(state, answer.value)
        return go(state, "end")

    return ask


def _without_move(state: Log) -> Any:
    yield request(state, tool("t"))


def _leaking(state: Log) -> Body:
    yield request(state, tool("t"))
    return go(noted(state, next(iter(()))), "end")


def _no_request(state: Log) -> Any:
    yield state, tool("t")


def _not_a_move(state: Log) -> Any:
    return state


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (_without_move, "returned no move"),
        (_leaking, "StopIteration"),
        (_no_request, "AttributeError"),
        (_not_a_move, "TypeError"),
    ],
)
def test_a_body_that_keeps_no_rule_ends_the_run_as_the_stage_s_own_fault(body: Think, why: str) -> None:
    step = begin(thinking(body), "P")
    if step.snapshot.status == "active":
        step = advance(thinking(body), step.snapshot, "e1", ToolReturned(1))
    assert (step.snapshot.status, step.snapshot.error) == ("failed", "stage_error")
    assert step.snapshot.conclusion is not None
    assert why in step.snapshot.conclusion.detail


@pytest.mark.parametrize("later", ["other", "more", "fewer", "nothing"])
def test_a_body_that_asks_something_else_when_it_is_run_again_is_found_at_once(later: str) -> None:
    runs = itertools.count()
    asks: dict[str, tuple[Effect, ...]] = {"other": (tool("b"),), "more": (tool("a"), tool("b"))}

    def ask(state: Log) -> Body:
        effects = asks.get(later, ()) if next(runs) else (tool("a"),)
        yield request(state, *effects)
        if later != "nothing":
            yield request(state, tool("c"))
        return go(state, "end")

    small = thinking(ask)
    step = begin(small, "P")
    with pytest.raises(ConflictError) as error:
        advance(small, step.snapshot, "e1", ToolReturned("a"))
    assert (error.value.code, error.value.details["stage"]) == ("strategy_changed", "think")
    assert ids(step) == ["e1"], "nothing changed"


# -- between two answers there is nothing but data


class Reply(Struct, frozen=True):
    word: str


def words(state: Log) -> Body:
    """A stage of several yields of every kind, one of them with a strategy run inside."""
    (first,) = yield request(state, Ask("first?"))
    state = noted(state, first.value.word)
    answers = yield request(state, tool("a"), RunStrategy("inner", "P"), Thought("both"), give_failures=True)
    state = noted(state, *("failed" if isinstance(one, Failed) else "came" for one in answers))
    for _ in range(2):
        try:
            (reply,) = yield request(state, Ask(f"{len(state.heard)}?", retries=1))
            state = noted(state, reply.value.word)
        except EffectFailed as lost:
            state = noted(state, lost.failure.code)
    return go(state, "end")


EVENTS = st.sampled_from(["good", "bad", "unreadable"])


def _event(effect: Effect, kind: str) -> Event:
    if kind == "bad":
        return Failed("down", "")
    if isinstance(effect, Ask):
        return Answered('{"word": "w"}' if kind == "good" else "mumble")
    return ToolReturned("x")


@given(st.lists(EVENTS, min_size=15, max_size=15), st.randoms(use_true_random=False))
def test_a_stage_of_several_yields_survives_json_at_each_step(kinds: list[str], random: Any) -> None:
    outer = thinking(words, reply=Reply)
    strategies = {"small": outer, "inner": thinking(three_questions, "inner")}
    step = begin(outer, "P", strategies=strategies)
    for kind in kinds:
        if not (waiting := open_effects(step.snapshot)):
            break
        data = dump_snapshot(step.snapshot)
        loaded = load_snapshot(data, strategies)
        assert loaded == step.snapshot
        assert dump_snapshot(loaded) == data
        one = random.choice(waiting)
        event = _event(one.effect, kind)
        step = advance(outer, step.snapshot, one.id, event, strategies=strategies)
        again = advance(outer, loaded, one.id, event, strategies=strategies)
        assert again == step
    else:
        raise AssertionError("it does not end")
    assert step.snapshot.status == ("failed" if step.snapshot.error else "done")
