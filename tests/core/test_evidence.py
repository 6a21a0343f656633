"""Plans of calls that refer to one another's results."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.evidence import (
    PlannedCall,
    call_arguments,
    evidence_id,
    parse_plan,
    plan_fault,
    references,
    substitute,
)
from reasonry.core.parse import Unreadable
from reasonry.core.toolcard import ToolCard

CARD = ToolCard("search", "", {"type": "object", "properties": {"q": {"type": "string"}}})
brackets = st.recursive(
    st.text("ab #E1,", max_size=4),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"[{''.join(parts)}]"),
)


def test_plan_lines_are_read_with_their_reasons() -> None:
    calls = parse_plan(
        """Here is the plan.
```
Plan 1: Find the author.
#E1 = search[who wrote Emma]
Plan 2: Find her birthplace. #E2 = search[where was #E1
born]
- #E3 = search[population of #E2]
```"""
    )
    assert calls == (
        PlannedCall("#E1", "search", "who wrote Emma", "Find the author."),
        PlannedCall("#E2", "search", "where was #E1\nborn", "Find her birthplace."),
        PlannedCall("#E3", "search", "population of #E2"),
    )


@given(st.lists(brackets, min_size=1, max_size=4))
def test_nested_brackets_survive(inputs: list[str]) -> None:
    text = "\n".join(f"Plan: step\n#E{n} = search[{one}]" for n, one in enumerate(inputs, 1))
    calls = parse_plan(text)
    assert not isinstance(calls, Unreadable)
    assert [call.input for call in calls] == [one.strip() for one in inputs]


def test_an_input_ends_with_its_own_bracket_whatever_follows() -> None:
    calls = parse_plan('#E1 = search[a] # as in [b]\n#E2 = search[len("]")]')
    assert not isinstance(calls, Unreadable)
    assert [call.input for call in calls] == ["a", 'len("]")']


@given(st.text(max_size=200))
def test_any_text_is_a_plan_or_unreadable(text: str) -> None:
    assert isinstance(parse_plan(text), tuple | Unreadable)


def test_references_are_whole_numbers() -> None:
    assert references("#E1 and #E10, #e2s, E3, #E12345") == ("#E1", "#E10", "#E2")
    assert references({"a": ["#E1", {"b": "x#E3"}], "c": 4}) == ("#E1", "#E3")
    assert [evidence_id(one) for one in ("#E1", "e02", "3", "E", "first", "")] == [
        "#E1",
        "#E2",
        "#E3",
        None,
        None,
        None,
    ]


@given(
    st.dictionaries(st.integers(1, 30), st.text(max_size=6), max_size=8),
    st.lists(st.integers(1, 30), max_size=8),
)
def test_substitution_is_exact(evidence: dict[int, str], order: list[int]) -> None:
    given_text = "|".join(f"<#E{n}>" for n in order)
    expected = "|".join(f"<{evidence[n]}>" if n in evidence else f"<#E{n}>" for n in order)
    assert substitute(given_text, {f"#E{n}": text for n, text in evidence.items()}) == expected


def test_evidence_is_put_in_once() -> None:
    assert substitute("a #E1", {"#E1": "#E2", "#E2": "no"}) == "a #E2"
    assert substitute(["#E1", 3, {"x": "n=#E1"}], {"#E1": 7}) == [7, 3, {"x": "n=7"}]


def test_a_deeply_nested_input_is_a_fault_and_no_crash() -> None:
    deep = '{"q": ' + "[" * 400 + "]" * 400 + "}"
    assert plan_fault([PlannedCall("#E1", "search", deep)], [CARD]) == "#E1: the input is nested too deeply"


def test_an_input_is_the_one_argument_or_an_object() -> None:
    assert call_arguments(CARD, PlannedCall("#E1", "search", "cats"), {}) == {"q": "cats"}
    assert call_arguments(CARD, PlannedCall("#E1", "search", '{"q": "cats"}'), {}) == {"q": "cats"}
    assert call_arguments(CARD, PlannedCall("#E1", "search", '{"cats": 1}'), {}) == {"q": '{"cats": 1}'}
    assert call_arguments(CARD, PlannedCall("#E1", "search", {"q": "#E2"}), {"#E2": "x"}) == {"q": "x"}
