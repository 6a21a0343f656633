"""Tool cards: how tools are shown, and how calls are read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.fit import Unreadable
from reasonry.core.toolcard import (
    Action,
    ToolCard,
    action_lines,
    arguments_for,
    before_actions,
    card_named,
    cards_text,
    one_text_fault,
    typed,
)

SEARCH = ToolCard(
    "search",
    "Finds  pages\nthat hold the words.",
    {
        "type": "object",
        "properties": {
            "words": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "default": 5},
            "sort": {"enum": ["date", "rank"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["words"],
    },
)
NOW = ToolCard("now", "The time.", {"type": "object", "properties": {}})
PAIR = ToolCard("pair", "", {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})


def test_cards_are_shown_as_signatures() -> None:
    assert cards_text((SEARCH, NOW)) == (
        '- search(words: string, limit?: integer, sort?: {"enum":["date","rank"]}, '
        'tags?: {"type":"array","items":{"type":"string"}}): Finds pages that hold the words.\n'
        "    words: What to look for.\n"
        "- now(): The time."
    )
    assert cards_text(()) == "(no tools)"


def test_a_name_is_matched_in_any_case_if_that_is_unambiguous() -> None:
    assert card_named((SEARCH, NOW), "Search") is SEARCH
    assert card_named((SEARCH, NOW), "searches") is None
    assert card_named((ToolCard("a"), ToolCard("A")), "A") == ToolCard("A")


def test_the_input_of_a_call_is_its_one_argument_or_a_json_object() -> None:
    assert arguments_for(SEARCH, " cats [and] dogs ") == {"words": "cats [and] dogs"}
    assert arguments_for(SEARCH, '{"words": "cats", "limit": 3}') == {"words": "cats", "limit": 3}
    assert arguments_for(NOW, "") == {}
    assert isinstance(arguments_for(NOW, "today"), Unreadable)
    assert isinstance(arguments_for(PAIR, "1, 2"), Unreadable)


def test_a_tool_takes_one_text_or_it_is_said_why_not() -> None:
    count = ToolCard("count", "", {"properties": {"n": {"type": "integer"}}})
    assert one_text_fault(SEARCH) is None
    assert one_text_fault(ToolCard("any")) is None
    assert one_text_fault(NOW) == "now takes no arguments"
    assert one_text_fault(PAIR) == "pair takes several arguments (a, b)"
    assert one_text_fault(count) == "count takes n, which is integer"


def test_texts_become_the_numbers_a_tool_wants() -> None:
    assert typed(SEARCH, {"words": "7", "limit": "7", "sort": "date", "more": "x"}) == {
        "words": "7",
        "limit": 7,
        "sort": "date",
        "more": "x",
    }
    assert typed(SEARCH, {"limit": "many"}) == {"limit": "many"}


def test_every_action_line_is_an_action_or_the_answer() -> None:
    text = (
        "Thought: x\nAction 1: Search[cats [big]]\nAction: dance(now)\nAction: Finish[42]\nAction: Search[no]"
    )
    actions, answer = action_lines((SEARCH,), text)
    assert [one.tool for one in actions] == ["Search", "dance", "Search"]
    assert actions[0].arguments == {"words": "cats [big]"}
    assert answer == "42"
    assert before_actions(text) == "Thought: x"


brackets = st.recursive(
    st.text("ab ,.", max_size=4),
    lambda inner: st.lists(inner, max_size=3).map("\n".join).map("[{}]".format),
)
lines = st.one_of(
    brackets.map(lambda given: (f"search[{given}]", given.strip())),
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
between = st.sampled_from(["", "\n", "\nObservation: none [1]", "\nThought: the Action: next [", "\n\nso"])


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
    assert before_actions(text) == "I take Actions: two."


@given(
    st.text(max_size=200) | st.lists(st.sampled_from(["Action:", "a[", "]", "(", "\n", "x)"])).map("".join)
)
def test_no_text_makes_the_reading_of_actions_stumble(text: str) -> None:
    actions, answer = action_lines((SEARCH,), text)
    assert bool(actions or answer is not None) == (before_actions(text) is not None)


def test_equal_calls_have_equal_texts_whatever_the_order_of_their_arguments() -> None:
    assert Action("f", {"a": 1, "b": 2}).text == Action("f", {"b": 2, "a": 1}).text
