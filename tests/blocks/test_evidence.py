"""Plans of calls that refer to one another's results."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.blocks.evidence import (
    PlannedCall,
    call_arguments,
    evidence_id,
    is_plan_text,
    parse_plan,
    plan_fault,
    references,
    substitute,
)
from reasonry.core.toolcard import ToolCard
from reasonry.reading.fit import Unreadable

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
        PlannedCall(id="#E1", tool="search", input="who wrote Emma", plan="Find the author."),
        PlannedCall(id="#E2", tool="search", input="where was #E1\nborn", plan="Find her birthplace."),
        PlannedCall(id="#E3", tool="search", input="population of #E2"),
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


PROSE = [
    "",
    "see [1] first",
    "issue #5 first.",
    "using #E1 and #E2",
    "- ",
    "**",
    "`",
    "Plan: b",
    "Plan 2: c.",
    "then, with #E1 known, I compute",
    "(as in [a [b]])",
    "# as in [b]",
    "plan. Next",
    "1)",
]
before = st.tuples(st.sampled_from(["", " ", "\n", "\n\n", "\n```\n"]), st.sampled_from(PROSE)).map(
    lambda parts: f"{parts[0]}{parts[1]} "
)
head = st.sampled_from(
    ["#E{} = search[", "#E{}=search[", "#e0{} =  search [", "#E{}\n= search[", "**#E{}** = `search["]
)


@given(st.lists(st.tuples(before, head, brackets), min_size=1, max_size=5), st.sampled_from(PROSE))
def test_every_call_that_is_written_down_is_read_whatever_stands_around_it(
    written: list[tuple[str, str, str]], end: str
) -> None:
    text = "".join(f"{lead}{form.format(n)}{one}]" for n, (lead, form, one) in enumerate(written, 1)) + end
    calls = parse_plan(text)
    assert not isinstance(calls, Unreadable), calls.reason
    assert [(call.id, call.tool, call.input) for call in calls] == [
        (f"#E{n}", "search", one.strip()) for n, (_, _, one) in enumerate(written, 1)
    ]


pieces = st.sampled_from(
    [
        *PROSE,
        "#E1 = ",
        "#E2=",
        "#E12345 =",
        "search[",
        "search[x]",
        "]",
        "[",
        "\n",
        " ",
        "#e3\t= a[b]",
        '{"a": 1}',
        "x",
        "E4 = f[",
        "```",
    ]
)


@given(st.lists(pieces, max_size=12).map("".join))
def test_each_place_where_a_call_begins_is_a_call_or_the_plan_is_unreadable(text: str) -> None:
    calls = parse_plan(text)
    heads = re.findall(r"#E\d+\s*=", text, re.IGNORECASE)
    assert isinstance(calls, Unreadable) or len(calls) >= len(heads)


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("Plan: see [1] first #E1 = rec[foo]\nPlan: b #E2 = rec[bar]", ["foo", "bar"]),
        ("Plan: issue #5 first. #E1 = rec[foo]\nPlan: b\n#E2 = rec[bar]", ["foo", "bar"]),
        ("#E1=rec[a]\nThen I use #E1 to compute #E2 = rec[b #E1]", ["a", "b #E1"]),
        ("Plan: a #E1 = rec[foo] Plan: b #E2 = rec[bar #E1]", ["foo", "bar #E1"]),
        ("#E1 = rec[see [a]\nPlan: b]\nE2: rec[c]", ["see [a]\nPlan: b", "c"]),
    ],
)
def test_no_planned_call_vanishes(text: str, inputs: list[str]) -> None:
    assert is_plan_text(text)
    calls = parse_plan(text)
    assert not isinstance(calls, Unreadable)
    assert [call.input for call in calls] == inputs


def test_plans_on_one_line_keep_their_reasons() -> None:
    calls = parse_plan("Plan: a #E1 = rec[foo] Plan: b #E2 = rec[bar #E1]")
    assert not isinstance(calls, Unreadable)
    assert [call.plan for call in calls] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#E1 = rec[a]\n#E2 = look it up", "`#E2 = look it up` is no call"),
        ("#E1 = rec[a #E2 = rec[b] c]", "the input of #E1 has no closing bracket"),
        ("#E1 = rec[a]\n#E2 = rec(b)", "`#E2 = rec(b)` is no call"),
        ('#E1 = rec[len("[")]\nas in [b]', "the input of #E1 has no closing bracket"),
    ],
)
def test_a_call_that_cannot_be_read_makes_the_plan_unreadable_and_is_named(text: str, line: str) -> None:
    read = parse_plan(text)
    assert isinstance(read, Unreadable)
    assert line in read.reason


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
    assert (
        plan_fault([PlannedCall(id="#E1", tool="search", input=deep)], [CARD])
        == "#E1: the input is nested too deeply"
    )


def test_an_input_is_the_one_argument_or_an_object() -> None:
    assert call_arguments(CARD, PlannedCall(id="#E1", tool="search", input="cats"), {}) == {"q": "cats"}
    assert call_arguments(CARD, PlannedCall(id="#E1", tool="search", input='{"q": "cats"}'), {}) == {
        "q": "cats"
    }
    assert call_arguments(CARD, PlannedCall(id="#E1", tool="search", input='{"cats": 1}'), {}) == {
        "q": '{"cats": 1}'
    }
    assert call_arguments(CARD, PlannedCall(id="#E1", tool="search", input={"q": "#E2"}), {"#E2": "x"}) == {
        "q": "x"
    }
