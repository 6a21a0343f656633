"""Strategies: a table that does not hold together is refused when it is defined."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Struct

from reasonry.app.strategy_table import diagram
from reasonry.core.bodies import Conclusion, Move, Thought, fail, go, replies, stay
from reasonry.core.effects import Ask
from reasonry.core.events import Reply
from reasonry.core.strategy import Stage, Strategy
from reasonry.errors import IllegalTransitionError, InvalidStrategyError


def table(edges: Mapping[str, tuple[str, ...]], **more: Any) -> Strategy[Any, Any]:
    return Strategy("small", "", "", "", tuple(Stage(name, to) for name, to in edges.items()), **more)


@pytest.mark.parametrize(
    ("edges", "fault"),
    [
        ({"a": ()}, "at least two stages"),
        ({"a": ("b",)}, "at least two stages"),
        ({"a": ("x",), "b": ()}, "stage 'a' leads to 'x', which is not in the table"),
        ({"a": ("b",), "b": ("a",)}, "exactly one stage without a way out, the end; found none"),
        ({"a": ("b", "c"), "b": (), "c": ()}, r"exactly one .* found \['b', 'c'\]"),
        ({"a": ("c",), "b": ("c",), "c": ()}, "stage 'b' cannot be reached from 'a'"),
        ({"a": ("b", "c"), "b": ("b",), "c": ()}, "the end 'c' cannot be reached from stage 'b'"),
        ({"a": ("b", "c"), "b": ("c",), "c": ()}, "'a' has several ways out and no `body`"),
    ],
)
def test_a_table_that_does_not_hold_together_is_refused_naming_the_stage(
    edges: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InvalidStrategyError, match=fault) as error:
        table(edges, state=dict if "body" in fault else None)
    assert "'small'" in error.value.message


def test_a_stage_that_stands_twice_is_refused() -> None:
    with pytest.raises(InvalidStrategyError, match="'a' stands twice"):
        Strategy("small", "", "", "", (Stage("a", ("b",)), Stage("a", ("b",)), Stage("b")))


def test_edges_stand_in_table_order_and_moves_are_checked_against_them() -> None:
    small = table({"a": ("b",), "b": ("a", "c"), "c": ()})
    assert small.edges == (("a", "b"), ("b", "a"), ("b", "c"))
    assert small.first == "a"
    small.check_move("b", "c")
    with pytest.raises(
        IllegalTransitionError, match=r"Invalid transition from b to b\. Legal next stages: a, c\."
    ) as error:
        small.check_move("b", "b")
    assert error.value.details["choices"] == ["a", "c"]
    with pytest.raises(IllegalTransitionError, match="it is the last stage"):
        small.check_move("c", "a")


def test_a_stage_that_repeats_has_an_edge_to_itself_in_table_moves_and_diagram() -> None:
    loop = Strategy("loop", "", "", "", (Stage("a", ("b",), repeats=True), Stage("b", ("c",)), Stage("c")))
    assert loop.edges == (("a", "a"), ("a", "b"), ("b", "c"))
    loop.check_move("a", "a")
    with pytest.raises(IllegalTransitionError, match=r"Legal next stages: a, b\."):
        loop.check_move("a", "c")
    with pytest.raises(IllegalTransitionError):
        loop.check_move("b", "b")
    assert "    a --> a\n    a --> b\n" in diagram(loop)


def test_moves_say_where_to_go_and_what_to_record() -> None:
    assert go(1, "b", "text", Thought("more", branch="x")) == Move(
        1, "b", (Thought("text"), Thought("more", branch="x"))
    )
    assert stay(1, "text") == Move(1, None, (Thought("text"),))
    assert fail(1, "error", "why", "code") == Move(1, failure=("error", "why", "code"))
    assert Conclusion() == Conclusion(None, "success")


class Part(Struct):
    text: str


class Whole(Struct):
    parts: list[Part]
    again: Part | None = None


def test_a_form_has_no_references() -> None:
    form = Stage("a", reply=Whole).form
    assert form is not None
    assert "$ref" not in str(form)
    assert form["properties"]["parts"]["items"]["properties"] == {"text": {"type": "string"}}
    assert Stage("a").form is None


def test_replies_come_under_their_type_and_another_type_is_an_error() -> None:
    class Form(Struct, frozen=True):
        answer: str

    def read(value: object) -> object:
        asking = replies("state", Form, Ask("Which?"), Thought("so far"))
        asked = next(asking)
        assert (asked.effects, asked.thoughts) == ((Ask("Which?"),), (Thought("so far"),))
        with pytest.raises((StopIteration, TypeError)) as ended:
            asking.send((Reply(value, "", "json"),))
        return getattr(ended.value, "value", str(ended.value))

    assert read(Form("Oslo")) == [Form("Oslo")]
    assert read(3) == "the stage's replies are int, not Form"
