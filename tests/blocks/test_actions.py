"""Actions: one meaning in whatever form it is written; what cannot be carried out says why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.blocks.actions import Action, Written, action_lines, read_actions, resolve_action
from reasonry.core.toolcard import ToolCard
from reasonry.reading.fit import Unreadable

SEARCH = ToolCard(
    "search",
    "Finds pages.",
    {
        "type": "object",
        "properties": {"words": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["words"],
    },
)
PYTHON = ToolCard(
    "python", "", {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
)
WEATHER = ToolCard(
    "weather",
    "",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days_ahead": {"type": "integer"}},
        "required": ["city", "days_ahead"],
    },
)
NOW = ToolCard("now", "The time.", {"type": "object", "properties": {}})
PAIR = ToolCard("pair", "", {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})
CARDS = (SEARCH, PYTHON, WEATHER, NOW, PAIR)
THOUGHT = "I need it first."


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that come of a reply."""
    reading = read_actions(CARDS, text)
    assert not isinstance(reading, Unreadable), reading.reason
    found = [resolve_action(CARDS, action) for action in reading[0].actions]
    assert all(isinstance(call, Action) for call in found), found
    return [(call.tool, call.arguments) for call in found if isinstance(call, Action)]


def _data_forms(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return one call as data, in each of the forms models write."""
    text = next(iter(arguments.values())) if len(arguments) == 1 else arguments
    return {
        "actions": {"actions": [{"tool": tool, "arguments": arguments}]},
        "one action": {"actions": {"tool": tool, "arguments": arguments}},
        "action": {"action": {"tool": tool, "arguments": arguments}},
        "LangChain": {"action": tool, "action_input": text},
        "LangChain, object": {"action": tool, "action_input": arguments},
        "tool and input": {"tool": tool, "input": text},
        "input in a list": {"actions": [{"tool": tool, "input": text}]},
        "name and arguments": {"name": tool, "arguments": arguments},
        "arguments as text": {"name": tool, "arguments": json.dumps(arguments)},
        "OpenAI": {"tool_calls": [{"type": "function", "function": {"name": tool, "arguments": arguments}}]},
        "by name": {"actions": [{tool: arguments}]},
        "object by name": {"actions": {tool: arguments}},
        "flat": {"tool": tool, **arguments},
        "flat in a list": {"actions": [{"tool": tool, **arguments}]},
        "text": {"actions": [f"{tool} {json.dumps(arguments)}"]},
    }


@settings(deadline=None)
@given(
    st.sampled_from([(SEARCH, "words"), (PYTHON, "code")]),
    st.text("ab =+'*(),.", min_size=1, max_size=12).map(str.strip).filter(bool),
    st.sampled_from(sorted(_data_forms("f", {"x": 1}))),
)
def test_a_call_is_the_same_call_in_every_form_of_data(
    tool: tuple[ToolCard, str], given_: str, form: str
) -> None:
    card, name = tool
    data = _data_forms(card.name, {name: given_})[form]
    for text in (json.dumps({"thought": THOUGHT, **data}), f"```json\n{json.dumps(data)}\n```"):
        assert calls(text) == [(card.name, {name: given_})]


@pytest.mark.parametrize("form", sorted(_data_forms("f", {"x": 1, "y": 2})))
def test_a_call_with_two_arguments_is_the_same_call_too(form: str) -> None:
    data = _data_forms("weather", {"city": "Lisbon", "days_ahead": 2})[form]
    assert calls(json.dumps({"thought": THOUGHT, **data})) == [
        ("weather", {"city": "Lisbon", "days_ahead": 2})
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Thought: t\nAction: weather[city='Lisbon', days_ahead=2]",
        'Thought: t\nAction: weather(city="Lisbon", days_ahead=2)',
        'Thought: t\nAction: weather("Lisbon", 2)',
        'Thought: t\nAction: weather {"city": "Lisbon", "days_ahead": 2}',
        'Thought: t\nAction: weather: {"city": "Lisbon", "daysAhead": "2"}',
        'Thought: t\nAction: weather\nAction Input: {"city": "Lisbon", "days_ahead": 2}',
        'Thought: t\n**Action:** `weather`\n**Action Input:** {"city": "Lisbon", "days_ahead": 2}\nObservation:',
        'Thought: t\nAction:\n```json\n{"action": "weather", "action_input": {"city": "Lisbon", "days_ahead": 2}}\n```',
        'Thought: t\nAction: {"tool": "weather", "arguments": {"city": "Lisbon", "days_ahead": 2}}',
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Lisbon", "days_ahead": 2}}\n</tool_call>',
        "thought: t\naction:\n  tool: weather\n  arguments:\n    city: Lisbon\n    days_ahead: 2",
        "thought: t\nactions:\n  - tool: weather\n    arguments:\n      city: Lisbon\n      days_ahead: 2",
    ],
)
def test_a_call_is_the_same_call_in_every_form_of_text(text: str) -> None:
    assert calls(text) == [("weather", {"city": "Lisbon", "days_ahead": 2})]


arguments_ = st.dictionaries(
    st.sampled_from(["words", "limit"]), st.text(max_size=20) | st.integers(0, 99), min_size=1
).map(lambda found: {"words": "x", **found})


@settings(deadline=None)
@given(st.lists(arguments_, min_size=1, max_size=3))
def test_the_transcripts_own_form_of_an_action_is_read(found: list[dict[str, Any]]) -> None:
    actions = [Action("search", one) for one in found]
    numbers = ["" if len(actions) == 1 else f" {number}" for number in range(1, len(actions) + 1)]
    text = "Thought: t" + "".join(
        f"\nAction{number}: {action.text}" for number, action in zip(numbers, actions, strict=True)
    )
    reading = read_actions(CARDS, text)
    assert not isinstance(reading, Unreadable)
    assert [(one.tool, one.arguments, one.fault) for one in reading[0].actions] == [
        ("search", one, "") for one in found
    ]


def test_code_is_taken_out_of_its_fence() -> None:
    text = "Thought: t\nAction: python\nAction Input:\n```python\nfor n in range(3):\n    print(n)\n```\nObservation: 0"
    assert calls(text) == [("python", {"code": "for n in range(3):\n    print(n)"})]
    assert calls("Action: python[print(max(1, 2))]") == [("python", {"code": "print(max(1, 2))"})]


def test_several_calls_are_read_in_their_order() -> None:
    two = [("search", {"words": "a"}), ("now", {})]
    as_data = [{"tool": "search", "input": "a"}, {"tool": "now"}]
    assert calls(json.dumps(as_data)) == two
    assert calls(json.dumps({"actions": as_data})) == two
    assert calls("".join(f"<tool_call>{json.dumps(one)}</tool_call>\n" for one in as_data)) == two
    assert calls("Action 1: search[a]\nAction 2: now[]") == two
    assert calls("Action: search\nAction Input: a\nAction: now\nAction Input:") == two


@pytest.mark.parametrize(
    "text",
    [
        "Thought: t\nFinal Answer: Hampshire",
        "Thought: t\nAnswer: Hampshire",
        "Thought: t\nAction: finish[Hampshire]",
        "Thought: t\nAction: Final Answer\nAction Input: Hampshire",
        '{"thought": "t", "action": "Final Answer", "action_input": "Hampshire"}',
        '{"thought": "t", "actions": [{"tool": "finish", "arguments": {"answer": "Hampshire"}}]}',
        '{"thought": "t", "actions": null, "answer": "Hampshire"}',
        '{"thought": "t", "actions": "none", "answer": "Hampshire"}',
        "She was born in Steventon. So the final answer is: Hampshire",
    ],
)
def test_an_answer_is_handed_in_in_many_ways(text: str) -> None:
    reading = read_actions(CARDS, text)
    assert not isinstance(reading, Unreadable), reading.reason
    assert (reading[0].actions, reading[0].answer) == ((), "Hampshire")


def test_what_follows_an_observation_of_the_writers_own_making_does_not_count() -> None:
    text = (
        "Thought: t\nAction: search[a]\nObservation: It is b.\nThought: Done.\nAction: search[b]\n"
        "Final Answer: b"
    )
    reading = read_actions(CARDS, text)
    assert not isinstance(reading, Unreadable)
    assert (calls(text), reading[0].answer, reading[0].thought) == ([("search", {"words": "a"})], None, "t")


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (
            ("search", {"size": 3, "kind": "x"}),
            "search has no argument size, kind; it is called search(words",
        ),
        (("weather", {"town": "Lisbon", "days_ahead": 2}), "weather has no argument town"),
        (("weather", {"city": "Lisbon"}), "weather needs days_ahead; it is called weather(city: string, d"),
        (("now", {"zone": "UTC"}), "now has no argument zone; it is called now()"),
        (("python", {}), "python needs code; it is called python(code: string)"),
    ],
)
def test_no_argument_gets_lost(given_: tuple[str, dict[str, Any]], said: str) -> None:
    found = resolve_action(CARDS, Written(*given_))
    assert isinstance(found, Unreadable)
    assert said in found.reason


@given(st.text("abcdefgh_", min_size=1, max_size=9), st.text(max_size=9))
def test_the_only_argument_of_a_tool_goes_by_any_name(name: str, value: str) -> None:
    assert resolve_action(CARDS, Written("python", {name: value})) == Action("python", {"code": value})


def test_a_tool_whose_arguments_nobody_knows_is_given_all() -> None:
    cards = (ToolCard("any"), ToolCard("more", "", {"properties": {"a": {}}, "additionalProperties": True}))
    assert resolve_action(cards, Written("any", {"x": 1})) == Action("any", {"x": 1})
    assert resolve_action(cards, Written("more", {"a": 1, "x": 1})) == Action("more", {"a": 1, "x": 1})


def test_every_action_line_is_an_action_or_the_answer() -> None:
    text = (
        "Thought: x\nAction 1: Search[cats [big]]\nAction: dance(now)\nAction: Finish[42]\nAction: Search[no]"
    )
    actions, answer = action_lines((SEARCH,), text)
    assert [one.tool for one in actions] == ["Search", "dance", "Search"]
    assert actions[0].arguments == {"words": "cats [big]"}
    assert answer == "42"


brackets = st.recursive(
    st.text("ab ,.", max_size=4),
    lambda inner: st.lists(inner, max_size=3).map("\n".join).map("[{}]".format),
)
lines = st.one_of(
    brackets.map(lambda given: (f"search[{given}]", given.strip() or None)),
    st.sampled_from(
        [
            ('search[{"words": "cats", "limit": 3}]', {"words": "cats", "limit": 3}),
            ("search[x ] y]", "x ] y"),
            ('search[len("[")]', 'len("[")'),
            ("search(cats).", "cats"),
            ("pair[1, 2]", None),
            ("search[a] and search[b]", None),
            ("search[no end", None),
            ("I look it up", None),
            ("", None),
            ("now[today]", None),
        ]
    ),
)
lead = st.sampled_from(["Action: ", "action 2:", "**Action:** ", "- Action 3 : ", "> ACTION: `"])
between = st.sampled_from(["", "\n", "\nThought: the Action: next [", "\n\nso"])


@settings(deadline=None)
@given(st.lists(st.tuples(lead, lines, between), min_size=1, max_size=5))
def test_every_line_that_begins_an_action_is_one_or_says_what_is_wrong(written: list) -> None:
    text = "I take Actions: two.\n" + "\n".join(f"{start}{line}{end}" for start, (line, _), end in written)
    actions, answer = action_lines((SEARCH, NOW, PAIR), text)
    assert (len(actions), answer) == (len(written), None)
    for action, (_, (line, expected), _) in zip(actions, written, strict=True):
        if expected is None:
            assert action.fault
            assert action.text.startswith(line[:5])
        else:
            wanted = expected if isinstance(expected, dict) else {"words": expected}
            assert (action.tool, action.arguments, action.fault) == ("search", wanted, "")


@settings(deadline=None)
@given(
    st.text(max_size=200) | st.lists(st.sampled_from(["Action:", "a[", "]", "(", "\n", "x)"])).map("".join)
)
def test_no_text_makes_the_reading_of_actions_stumble(text: str) -> None:
    actions, _ = action_lines((SEARCH,), text)
    reading = read_actions((SEARCH,), text)
    assert isinstance(reading, Unreadable) or not actions or reading[0].actions or reading[0].answer


def test_equal_calls_have_equal_texts_whatever_the_order_of_their_arguments() -> None:
    assert Action("f", {"a": 1, "b": 2}).text == Action("f", {"b": 2, "a": 1}).text
