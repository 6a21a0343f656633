"""Actions: a call is read by its own form or asked for again, and is never an argument or an answer."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reasonry.blocks.actions import (
    ANSWER,
    EARLY,
    WIRES,
    Action,
    TurnRead,
    has_markup,
    is_call,
    read_turn,
    resolve_action,
)
from reasonry.blocks.toolcard import ToolCard
from reasonry.core.readings import Unreadable


def card(name: str, *required: str, **types: str) -> ToolCard:
    """Return a tool whose arguments have these types."""
    properties = {argument: {"type": kind} for argument, kind in types.items()}
    return ToolCard(name, "", {"type": "object", "properties": properties, "required": [*required]})


SEARCH, PYTHON = (
    card("search", "words", words="string", limit="integer"),
    card("python", "code", code="string"),
)
WEATHER = card("weather", "city", "days_ahead", city="string", days_ahead="integer")
PAIR = card("pair", "a", "b", a="string", b="string")
CARDS = (SEARCH, PYTHON, WEATHER, card("now"), PAIR)
THOUGHT = "I need it first."


CANNOT = "a call in it cannot be read; call a tool as you were told"


def turn(text: str) -> TurnRead:
    """Return what a reply is read as."""
    reading = read_turn(CARDS, [text])
    assert not isinstance(reading, Unreadable), reading.reason
    return reading[0]


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that come of a reply."""
    found = [resolve_action(CARDS, action) for action in turn(text).actions]
    assert all(isinstance(call, Action) for call in found), found
    return [(call.tool, call.arguments) for call in found if isinstance(call, Action)]


def _data_forms(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return one call as data, in the form that is asked for and in those of protocols."""
    return {
        "actions": {"actions": [{"tool": tool, "arguments": arguments}]},
        "one action": {"actions": {"tool": tool, "arguments": arguments}},
        "tool and arguments": {"tool": tool, "arguments": arguments},
        "name and arguments": {"name": tool, "arguments": arguments},
        "name and parameters": {"name": tool, "parameters": arguments},
        "tool_name and tool_args": {"tool_name": tool, "tool_args": arguments},
        "arguments as text": {"name": tool, "arguments": json.dumps(arguments)},
        "OpenAI": {"tool_calls": [{"type": "function", "function": {"name": tool, "arguments": arguments}}]},
        "action and action_input": {"action": tool, "action_input": arguments},
    }


@given(
    st.sampled_from([(SEARCH, "words"), (PYTHON, "code")]),
    st.text("ab =+'*(),.{}", min_size=1, max_size=12).map(str.strip).filter(bool),
    st.sampled_from(sorted(_data_forms("f", {}))),
)
def test_a_call_is_the_same_call_in_every_form_of_data(
    tool: tuple[ToolCard, str], given_: str, form: str
) -> None:
    called, name = tool
    data = json.dumps(_data_forms(called.name, {name: given_})[form])
    for text in (data, f"```json\n{data}\n```", f"{THOUGHT}\n{data}"):
        assert calls(text) == [(called.name, {name: given_})]
    assert turn(f"{THOUGHT}\n{data}").thought == THOUGHT


WEATHER_JSON = '{"city": "Lisbon", "days_ahead": 2}'
ON_THE_WIRE = {
    "Qwen3-Coder": "<tool_call>\n<function=weather>\n<parameter=city>\nLisbon\n</parameter>\n"
    "<parameter=days_ahead>\n2\n</parameter>\n</function>\n</tool_call>",
    "Anthropic": '<function_calls>\n<invoke name="weather">\n<parameter name="city">Lisbon</parameter>\n'
    '<parameter name="days_ahead">2</parameter>\n</invoke>\n</function_calls>',
    "GLM": "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Lisbon</arg_value>\n<arg_key>days_ahead</arg_key>\n"
    "<arg_value>2</arg_value>\n</tool_call>",
    "Hermes": f'<tool_call>\n{{"name": "weather", "arguments": {WEATHER_JSON}}}\n</tool_call>',
    "DeepSeek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n"
    f"```json\n{WEATHER_JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
    f"{WEATHER_JSON}<|tool_call_end|><|tool_calls_section_end|>",
    "gpt-oss": f"<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{WEATHER_JSON}<|call|>",
    "Mistral": f"[TOOL_CALLS]weather[ARGS]{WEATHER_JSON}",
    "Mistral, earlier": f'[TOOL_CALLS][{{"name": "weather", "arguments": {WEATHER_JSON}}}]</s>',
    "Llama and Granite": f'<|python_tag|>{{"name": "weather", "parameters": {WEATHER_JSON}}}<|eom_id|>',
    "DSPy": "[[ ## next_thought ## ]]\nx\n[[ ## next_tool_name ## ]]\nweather\n[[ ## next_tool_args ## ]]\n"
    f"{WEATHER_JSON}\n[[ ## completed ## ]]",
}


def test_each_row_of_the_wires_has_a_reply() -> None:
    assert ON_THE_WIRE.keys() == WIRES.keys()


@pytest.mark.parametrize("provider", ON_THE_WIRE)
def test_a_providers_markup_is_a_call_read_by_its_own_form(provider: str) -> None:
    for text in (ON_THE_WIRE[provider], f"{THOUGHT}\n\n{ON_THE_WIRE[provider]}"):
        assert calls(text) == [("weather", {"city": "Lisbon", "days_ahead": 2})]
    assert turn(f"{THOUGHT}\n\n{ON_THE_WIRE[provider]}").thought.startswith(THOUGHT)


@pytest.mark.parametrize(
    "provider",
    [name for name in ON_THE_WIRE if name not in ("Mistral, earlier", "Llama and Granite", "DSPy")],
)
def test_several_calls_on_a_wire_are_read_in_their_order(provider: str) -> None:
    one = ON_THE_WIRE[provider]
    two = f"{one}\n{one.replace('Lisbon', 'Porto')}"
    assert [arguments["city"] for _, arguments in calls(two)] == ["Lisbon", "Porto"]


@pytest.mark.parametrize("provider", ON_THE_WIRE)
def test_markup_that_is_not_whole_is_asked_for_again_and_is_never_an_argument_or_an_answer(
    provider: str,
) -> None:
    whole = ON_THE_WIRE[provider]
    assert has_markup(whole)
    place = whole.index("2")
    broken = f"{whole[:place]}<tool_call>{whole[place:]}"
    for text in (whole[:place], broken, f"<answer>{whole}</answer>"):
        reading = read_turn(CARDS, [text])
        assert isinstance(reading, Unreadable), reading
        assert not reading.is_unmarked


def test_calls_of_the_protocol_are_read_beside_any_text() -> None:
    last = json.dumps(
        {"tool_calls": [{"name": "search", "arguments": '{"words": "a"}'}]}, separators=(",", ":")
    )
    assert calls(last) == [("search", {"words": "a"})]
    reading = turn(f"I look it up.\nObservation: none yet.\n<answer>a guess</answer>\n{last}")
    assert [action.tool for action in reading.actions] == ["search"]
    assert reading.answer is None


def test_several_calls_are_read_in_their_order() -> None:
    two = [("search", {"words": "a"}), ("now", {})]
    as_data = [{"tool": "search", "arguments": {"words": "a"}}, {"tool": "now", "arguments": {}}]
    assert calls(json.dumps(as_data)) == two
    assert calls(json.dumps({"actions": as_data})) == two
    assert calls("Action 1: search[a]\n**Action 2:** `now[]`") == two


@pytest.mark.parametrize(
    "text",
    [
        "t\n<answer>Hampshire</answer>",
        "t\nFinal Answer: Hampshire",
        "t\nAction: finish[Hampshire]",
        "t\nAction: Finish[Hampshire]\nAction: Finish[The task is now complete.]",
        '{"thought": "t", "action": "Final Answer", "action_input": "Hampshire"}',
        '{"thought": "t", "actions": [{"tool": "finish", "arguments": {"answer": "Hampshire"}}]}',
        '{"thought": "t", "actions": null, "answer": "Hampshire"}',
        '{"thought": "t", "actions": [], "answer": "Hampshire"}',
    ],
)
def test_an_answer_is_marked_or_handed_in(text: str) -> None:
    assert turn(text) == TurnRead("t", (), "Hampshire")


@pytest.mark.parametrize(
    "text",
    [
        "Action: search[a]\nAction: Finish[b]\nAction: search[c]",
        '{"thought": "t", "actions": [{"tool": "search", "arguments": {"words": "a"}}], "answer": "b"}',
        't\n{"tool": "search", "arguments": {"words": "a"}}\n<answer>b</answer>',
    ],
)
def test_an_answer_beside_actions_cannot_be_taken(text: str) -> None:
    reading = turn(text)
    assert (reading.answer, reading.actions[1:]) == (None, (Action("finish", {"answer": "b"}),))
    assert resolve_action(CARDS, reading.actions[1]) == Unreadable(EARLY)


def test_what_follows_an_observation_of_the_writers_own_making_does_not_count() -> None:
    text = "t\nAction: search[a]\nObservation: It is b.\nAction: search[b]\n<answer>b</answer>"
    assert turn(text) == TurnRead("t", (Action("search", {"words": "a"}),))
    report = "A report.\n<answer>\nObservation: it is cold.\nAction: close the window.\n</answer>"
    assert turn(report).answer == "Observation: it is cold.\nAction: close the window."


@pytest.mark.parametrize(
    "text",
    [
        "Action: search",
        "Action: search a",
        "Action: search\nAction Input: a",
        "Action: search[a] and search[b]",
        "Action: search[no end",
        'search(words="a")',
        '[search(words="a")]',
        '```tool_code\nprint(search("a"))\n```',
        "<search><words>a</words></search>",
        "<tool_call>look for a</tool_call>",
        '{"thought": "t", "actions": ["search a"]}',
        '{"thought": "t", "actions": [{"tool": "search", "words": "a"}]}',
    ],
)
def test_a_call_in_another_form_is_asked_for_again_and_is_never_an_answer(text: str) -> None:
    assert read_turn(CARDS, [text]) == Unreadable(CANNOT)
    assert read_turn(CARDS, [f"<answer>\n{text}\n</answer>"]) == Unreadable(CANNOT) or text.startswith("{")


@pytest.mark.parametrize(
    "text",
    [
        'The form {"a": 1} is no call. <answer>4</answer>',
        'She is {"name": "Ada", "age": 36}. <answer>4</answer>',
        "Action: none is needed. <answer>4</answer>",
    ],
)
def test_what_only_resembles_a_call_does_not_stand_in_the_way_of_an_answer(text: str) -> None:
    assert (turn(text).actions, turn(text).answer) == ((), "4")


def test_a_reply_with_neither_is_unmarked() -> None:
    reading = read_turn(CARDS, ["I should look it up first."])
    assert isinstance(reading, Unreadable)
    assert reading.is_unmarked


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
    found = resolve_action(CARDS, Action(*given_))
    assert isinstance(found, Unreadable)
    assert said in found.reason


@given(st.text("abcdefgh_", min_size=1, max_size=9), st.text(max_size=9))
def test_the_only_argument_of_a_tool_goes_by_any_name(name: str, value: str) -> None:
    assert resolve_action(CARDS, Action("python", {name: value})) == Action("python", {"code": value})


def test_a_tool_whose_arguments_nobody_knows_is_given_all() -> None:
    cards = (ToolCard("any"), ToolCard("more", "", {"properties": {"a": {}}, "additionalProperties": True}))
    assert resolve_action(cards, Action("any", {"x": 1})) == Action("any", {"x": 1})
    assert resolve_action(cards, Action("more", {"a": 1, "x": 1})) == Action("more", {"a": 1, "x": 1})


MARKS = "Action: search[ ] ( <tool_call> </tool_call> <function=search> <parameter=words> [TOOL_CALLS] [ARGS] <arg_key>"
MARKS += " <answer> </answer> } Observation: x"
pieces = st.sampled_from([*MARKS.split(), '{"tool": "search"', "\n"])


@pytest.mark.parametrize(
    "answer", ["Use <tool_call> tags", "Write <parameter=q>.", "Type `search(` and go", "See <search>"]
)
def test_an_answer_may_talk_about_calls(answer: str) -> None:
    assert read_turn(CARDS, [f"So it is.\n<answer>{answer}</answer>"]) == (
        TurnRead("So it is.", answer=answer),
        "marked",
    )
    found = read_turn(CARDS, [json.dumps({"thought": "So it is.", "answer": answer})])
    assert found == (TurnRead("So it is.", answer=answer), "json")


CALL = '<tool_call>{"name": "search"}</tool_call>'


@pytest.mark.parametrize(
    ("before", "answer"),
    [("<tool_call>search", "7"), ("I use <tool_call> tags.", "7"), ("search(x)", "7"), ("", f"See: {CALL}")],
)
def test_what_seems_to_call_outside_the_mark_or_calls_in_it_is_asked_again(before: str, answer: str) -> None:
    assert isinstance(read_turn(CARDS, [f"{before}\n<answer>{answer}</answer>"]), Unreadable)


@given(st.text(max_size=200) | st.lists(pieces, max_size=12).map("".join))
@example('{"tool": "search"}<answer><tool_call>')
def test_whatever_is_read_has_no_call_in_it(text: str) -> None:
    reading = read_turn(CARDS, [text])
    if not isinstance(reading, Unreadable):
        # An answer may name a tag; beside actions it is one of them.
        acts, answer = reading[0].actions, reading[0].answer
        if acts and acts[-1].tool == ANSWER:
            acts, answer = acts[:-1], str(acts[-1].arguments["answer"])
        assert not any(has_markup(act.text) for act in acts)
        assert answer is None or not is_call(CARDS, answer)
        assert reading[0].actions or reading[0].answer


def test_equal_calls_have_equal_texts_whatever_the_order_of_their_arguments() -> None:
    assert Action("f", {"a": 1, "b": 2}).text == Action("f", {"b": 2, "a": 1}).text
