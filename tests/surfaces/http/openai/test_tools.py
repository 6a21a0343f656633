"""The caller's own tools: calls handed out, results taken, over both APIs."""

import contextlib
import json
from pathlib import Path
from typing import Any

import openai
import pytest

from ....servers import ModelServer
from ..serving import TOKENS
from .talking import ASK, CHAT_TOOLS, RESPONSE_TOOLS, SMALL, City, Talk, outputs_of, reply, talking

NAMED: Any = {"type": "function", "function": {"name": "city"}}
CITY_TOOLS: Any = [
    *CHAT_TOOLS,
    {"type": "function", "function": {"name": "city", "parameters": City.model_json_schema()}},
]


def _asked(talk: Talk, **options: Any) -> tuple[Any, list[Any]]:
    """Return the completion that asks for calls, and the conversation with it."""
    completion = talk.chat("react@small", tools=CHAT_TOOLS, **options)
    assert completion.choices[0].finish_reason == "tool_calls"
    return completion, [*ASK, completion.choices[0].message.model_dump(exclude_none=True)]


def _results(completion: Any, text: str = "sunny") -> list[Any]:
    calls = completion.choices[0].message.tool_calls
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call in calls]


def test_several_calls_are_handed_out_at_once_and_the_next_request_goes_on_with_the_run(talk: Talk) -> None:
    before = talk.calls
    asked, messages = _asked(talk)
    calls = asked.choices[0].message.tool_calls
    assert [call.function.arguments for call in calls] == ['{"city":"Rome"}', '{"city":"Oslo"}']
    assert asked.choices[0].message.reasoning_content.endswith("\n\nI ask for both.")
    messages += _results(asked)
    answered = talk.chat("react@small", messages=messages, tools=CHAT_TOOLS)
    assert (answered.choices[0].message.content, answered.choices[0].finish_reason) == ("sunny in 2", "stop")
    assert answered.reasonry["runs"][0]["run_id"] == asked.reasonry["runs"][0]["run_id"]
    whole = answered.reasonry["runs"][0]["usage"]["total_tokens"]
    assert asked.usage.total_tokens + answered.usage.total_tokens == whole
    assert "I ask" not in answered.choices[0].message.reasoning_content
    # The same request again, streamed this time: the same answer, and nothing is paid for it.
    paid = talk.calls
    assert paid - before == 2
    chunks = talk.chat("react@small", messages=messages, tools=CHAT_TOOLS, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "sunny in 2"
    assert talk.calls == paid


def test_calls_may_come_one_by_one(talk: Talk) -> None:
    asked, messages = _asked(talk, parallel_tool_calls=False)
    for city in ("Rome", "Oslo"):
        (call,) = asked.choices[0].message.tool_calls
        assert city in call.function.arguments
        messages += [*([] if city == "Rome" else [asked.choices[0].message]), *_results(asked)]
        asked = talk.chat("react@small", messages=messages, tools=CHAT_TOOLS, parallel_tool_calls=False)
    assert asked.choices[0].message.content == "sunny in 2"


def test_calls_are_streamed(talk: Talk) -> None:
    with talk.usual.chat.completions.stream(model="react@small", messages=ASK, tools=CHAT_TOOLS) as events:
        completion = events.get_final_completion()
    calls = completion.choices[0].message.tool_calls or []
    assert [(call.index, call.function.name) for call in calls] == [(0, "get_weather"), (1, "get_weather")]  # pyright: ignore
    assert completion.choices[0].finish_reason == "tool_calls"


def test_a_call_is_answered_after_a_restart_of_the_server(tmp_path: Path) -> None:
    store = str(tmp_path / "a.db")
    with ModelServer(reply=reply) as model:
        with talking(model, store) as talk:
            asked, messages = _asked(talk)
        with talking(model, store) as talk:
            messages += _results(asked)
            answered = None
            while answered is None:
                # The run is held for a moment where the server is just taking it up.
                with contextlib.suppress(openai.ConflictError):
                    answered = talk.chat("react@small", messages=messages, tools=CHAT_TOOLS)
            assert answered.choices[0].message.content == "sunny in 2"
            assert talk.calls == 2


def test_a_wrong_or_foreign_id_is_a_400_that_names_the_message(tmp_path: Path) -> None:
    with ModelServer(reply=reply) as model, talking(model, str(tmp_path / "a.db"), tokens=TOKENS) as talk:
        ana, ben = (talk.client(TOKENS[name]) for name in ("ana", "ben"))
        asked, messages = _asked(talk, client=ana)
        other, _ = _asked(talk, client=ana)
        results = _results(asked)
        first = results[0]["tool_call_id"]
        unknown = f"call_{'A' * 22}_e2"
        wrong: list[tuple[openai.OpenAI, list[Any]]] = [
            (ana, [*messages, results[0]]),
            (ana, [*_results(other)[:1], results[0]]),
            (ana, [{**results[0], "tool_call_id": "call_abc"}]),
            (ana, [{**results[0], "tool_call_id": first[:-1] + "9"}]),
            (ana, [{**results[0], "tool_call_id": unknown}]),
            (ben, [results[0]]),
        ]
        refusals: list[tuple[Any, str]] = []
        for client, sent in wrong:
            with pytest.raises(openai.BadRequestError) as caught:
                talk.chat("react@small", sent, client, tools=CHAT_TOOLS)
            message = caught.value.body["message"]  # pyright: ignore
            refusals.append((caught.value.code, message.replace(first, "ID").replace(unknown, "ID")))
            assert (caught.value.param or "").startswith("messages")
        # Another's run looks exactly like one that is not there.
        assert refusals[5] == refusals[4]
        talk.chat("react@small", [*messages, *results], ana, tools=CHAT_TOOLS)
        with pytest.raises(openai.BadRequestError, match="another result"):
            talk.chat("react@small", [*messages, *_results(asked, "rain")], ana, tools=CHAT_TOOLS)


def test_tools_are_for_strategies_that_act(talk: Talk) -> None:
    passed_over = talk.chat(tools=CHAT_TOOLS)
    assert passed_over.choices[0].message.content == "Oslo"
    assert passed_over.reasonry["runs"][0]["warnings"][-1] == "tools: chain_of_thought calls no tools"
    plain = talk.chat(tools=CHAT_TOOLS, tool_choice="none")
    assert plain.choices[0].message.content == "Oslo"


def test_a_tool_that_must_be_called_is_the_form_of_the_answer(talk: Talk) -> None:
    one = talk.chat(tools=CITY_TOOLS, tool_choice=NAMED)
    (call,) = one.choices[0].message.tool_calls
    assert (one.choices[0].finish_reason, one.choices[0].message.content) == ("tool_calls", None)
    assert call.function.name == "city"
    assert json.loads(call.function.arguments) == {"city": "Oslo", "letters": 4}
    # A result of that call is a turn of the conversation like any other; so is a call of one of several.
    result = {"role": "tool", "tool_call_id": call.id, "content": "Letters must be even."}
    messages: Any = [*ASK, one.choices[0].message, result]
    with talk.usual.chat.completions.stream(
        model=SMALL, messages=messages, tools=CITY_TOOLS, tool_choice="required"
    ) as events:
        (again,) = events.get_final_completion().choices[0].message.tool_calls or []
    assert (again.function.name, json.loads(again.function.arguments)) == ("get_weather", {"city": "Rome"})
    assert "Letters must be even." in talk.prompt
    plain = talk.chat(messages=messages)
    assert plain.choices[0].message.content == "Oslo"


@pytest.mark.parametrize(
    ("tools", "choice"),
    [(CHAT_TOOLS, NAMED), ([], "required"), (CHAT_TOOLS, "any"), (CHAT_TOOLS, {"type": "web_search"})],
)
def test_a_choice_of_tools_that_cannot_be_made_is_refused(talk: Talk, tools: Any, choice: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        talk.chat("react@small", tools=tools, tool_choice=choice)
    assert (caught.value.param or "").startswith("tool_choice")


def test_auto_takes_a_strategy_that_calls_the_tools_whatever_the_problem(talk: Talk) -> None:
    puzzle: Any = [{"role": "user", "content": "Use 4, 9, 10 and 13 to make 24"}]
    for messages in (ASK, puzzle):
        completion = talk.chat("auto@small", messages=messages, tools=CHAT_TOOLS)
        (run,) = completion.reasonry["runs"]
        assert (run["strategy"], run["warnings"]) == ("react", [])
        assert completion.choices[0].finish_reason == "tool_calls"


def test_responses_hand_out_calls_and_go_on_with_what_they_bring(talk: Talk) -> None:
    stream = talk.usual.responses.stream
    with stream(model="react@small", input="Where is it warm?", tools=RESPONSE_TOOLS) as events:
        kinds = [event.type for event in events]
        asked: Any = events.get_final_response()
    assert [kinds[0], kinds[-1]] == ["response.created", "response.completed"]
    outputs = outputs_of(asked)
    linked = talk.respond(outputs, model="react@small", previous_response_id=asked.id, tools=RESPONSE_TOOLS)
    items: Any = [{"role": "user", "content": "Where is it warm?"}, *asked.output, *outputs]
    whole = talk.respond(items, model="react@small", tools=RESPONSE_TOOLS)
    assert linked.output_text == whole.output_text == "sunny in 2"
