"""An exploration reports each broken law with its path, and the edges that no path takes."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from reasonry.compare.explore import explore
from reasonry.core.bodies import Body, Conclusion, go, request, stay
from reasonry.core.effects import Ask, Verify
from reasonry.core.strategy import NoOptions, Stage, Strategy


class State(Struct, frozen=True):
    problem: str
    options: NoOptions
    answer: str | None = None
    drafts: int = 0


def made_of(body: Callable[[State], Body]) -> Strategy[State, Any]:
    """Build a strategy of one body, with an edge to another stage."""
    return Strategy(
        name="small",
        title="Small",
        source="test",
        summary="Asks.",
        state=State,
        conclude=lambda s: Conclusion(s.answer),
        stages=(
            Stage("asking", ("checking", "end"), body=body),
            Stage("checking", ("end",), body=body),
            Stage("end"),
        ),
    )


def sound(s: State) -> Body:
    (reply,) = yield request(s, Ask(s.problem))
    is_sure = s.answer is not None or "42" in reply.text
    return go(replace(s, answer=reply.text), "end" if is_sure else "checking")


def raises(s: State) -> Body:
    (reply,) = yield request(s, Ask(s.problem), give_failures=True)
    return go(replace(s, answer=reply.text), "end")


def verifies(s: State) -> Body:
    (reply,) = yield request(s, Ask(s.problem))
    s = replace(s, answer=reply.text)
    yield request(s, Verify(s.problem, (reply.text,)))
    return go(s, "end")


def loops(s: State) -> Body:
    yield request(s, Ask(s.problem))
    return stay(s)


numbers = count()


def remembers(s: State) -> Body:
    (reply,) = yield request(s, Ask(s.problem))
    return go(replace(s, answer=f"{reply.text} {next(numbers)}"), "end")


def test_a_sound_strategy_has_no_fault_and_all_of_its_edges() -> None:
    found = explore(made_of(sound))
    assert not found.faults
    assert not found.untaken
    assert (found.limits, found.states, found.events) == (2, 15, 50)


def test_more_depth_walks_more() -> None:
    shallow, deep = (explore(made_of(sound), depth) for depth in (0, 2))
    assert shallow.untaken == (("asking", "checking"), ("checking", "end"))
    assert deep.events > explore(made_of(sound)).events > shallow.events


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (
            raises,
            "stage 'asking' raised AttributeError: 'Failed' object has no attribute 'text': e1 asking: failed",
        ),
        (verifies, "a refuted answer is given: e1 asking: fits '<answer>42</answer>' > e2 asking: wrong"),
        (loops, "the run does not end: e1 asking: "),
        (remembers, "a crash changes the run: e1 asking: "),
    ],
)
def test_a_broken_law_is_reported_with_its_path(body: Callable[[State], Body], fault: str) -> None:
    found = explore(made_of(body)).faults
    assert any(each.startswith(fault) for each in found), found[:1]
