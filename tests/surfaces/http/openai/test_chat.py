"""Chat completions through OpenAI's own client."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import openai
import pytest

from reasonry.core import machine
from reasonry.core.problem import HEADING, INSTRUCTIONS
from reasonry.stores.row_store import RowStore

from ....servers import ModelServer
from ..serving import eventually, serve_in_thread
from .talking import ASK, SMALL, City, Talk, reply, talking


def test_the_names_that_are_listed_can_be_looked_up_one_by_one(talk: Talk) -> None:
    names = [model.id for model in talk.usual.models.list()]
    assert {"auto", "react"} <= set(names)
    assert not any(name.endswith("@offline") for name in names)
    assert talk.usual.models.retrieve("chain_of_thought@offline").id == "chain_of_thought@offline"
    assert talk.usual.models.retrieve("tree_of_thoughts@small").id == "tree_of_thoughts@small"
    with pytest.raises(openai.NotFoundError) as caught:
        talk.usual.models.retrieve("tree_of_thoughts@gpt-9")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_a_completion_is_a_run_that_is_kept_whether_it_is_streamed_or_not(talk: Talk) -> None:
    whole = talk.usual.chat.completions.with_raw_response.create(model=SMALL, messages=ASK)
    completion: Any = whole.parse()
    (run,) = completion.reasonry["runs"]
    assert whole.headers["x-reasonry-run"] == run["run_id"]
    (choice,) = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("Oslo", "stop")
    link, _, thoughts = choice.message.reasoning_content.partition("\n\n")
    assert link == f"{talk.serving.url}/#/runs/{run['run_id']}"
    assert thoughts == "The north has a capital.\n\nIt is by a fjord.\n\nOslo"
    usage = completion.usage
    assert usage.prompt_tokens + usage.completion_tokens == usage.total_tokens == run["usage"]["total_tokens"]
    assert 0 < usage.completion_tokens_details.reasoning_tokens < usage.completion_tokens

    chunks: list[Any] = list(talk.chat(stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks[:-1]]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == "Oslo"
    pieces = [getattr(delta, "reasoning_content", None) or "" for delta in deltas]
    assert "".join(pieces).partition("\n\n")[2] == thoughts
    assert [delta.content for delta in deltas].index("Oslo") > max(
        at for at, text in enumerate(pieces) if text
    )
    assert (chunks[-2].choices[0].finish_reason, chunks[-1].choices) == ("stop", [])
    assert chunks[-1].usage.prompt_tokens == usage.prompt_tokens
    assert chunks[-1].reasonry["runs"][0]["run_id"].replace("-", "") == chunks[0].id.removeprefix("chatcmpl-")


@pytest.mark.parametrize("stream", [False, True])
def test_a_completion_folds_its_run_once_and_does_not_read_it_back(
    talk: Talk, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, advanced, read = Mock(side_effect=machine.begin), Mock(side_effect=machine.advance), Mock()
    monkeypatch.setattr("reasonry.engine.run.begin", begun)
    monkeypatch.setattr("reasonry.engine.run.advance", advanced)
    monkeypatch.setattr(RowStore, "run", read)
    monkeypatch.setattr(RowStore, "lines", read)
    reply = talk.chat(stream=stream)
    list(reply)
    assert (begun.call_count, [call.args[2] for call in advanced.mock_calls]) == (1, ["e1"])
    assert not read.called


def test_thoughts_come_while_the_model_still_writes() -> None:
    """The first thought is there within moments of the model's first words, long before its last."""
    slow = f"{' '.join(['step'] * 60)} <answer>Oslo</answer>"
    with ModelServer(reply=lambda request: slow, latency_ms=30, chunk_ms=20) as model, talking(model) as talk:
        times: list[float] = []
        for chunk in talk.chat(stream=True):
            delta: Any = chunk.choices[0].delta
            if getattr(delta, "reasoning_content", None) or delta.content:
                times.append(time.monotonic())
        assert len(times) > 10
        assert times[-1] - times[0] > 0.2


def test_what_was_said_before_is_quoted_and_the_system_instructs(talk: Talk) -> None:
    messages: Any = [
        {"role": "system", "content": "Answer in Norwegian."},
        {"role": "user", "content": "Good morning."},
        {"role": "assistant", "content": "God morgen."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Which capital"}, {"type": "text", "text": "is north?"}],
        },
    ]
    completion = talk.chat(messages=messages)
    prompt = talk.prompt
    assert (
        f"Problem: Which capital\nis north?\n\n{INSTRUCTIONS}\n> Answer in Norwegian.\n\n{HEADING}\n"
        in prompt
    )
    assert "\n> user: Good morning.\n> assistant: God morgen.\n" in prompt
    assert completion.choices[0].message.content == "Oslo"


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_is_in_the_form_that_is_wanted(talk: Talk, stream: bool) -> None:
    if stream:
        with talk.usual.chat.completions.stream(model=SMALL, messages=ASK, response_format=City) as events:
            message = events.get_final_completion().choices[0].message
    else:
        completion = talk.usual.chat.completions.parse(model=SMALL, messages=ASK, response_format=City)
        message = completion.choices[0].message
    assert message.parsed == City(city="Oslo", letters=4)
    asked = talk.model.bodies[-1]["response_format"]["json_schema"]
    assert asked["strict"]
    assert asked["schema"]["required"] == ["city", "letters"]


def test_any_json_object_will_do_where_that_is_asked(talk: Talk) -> None:
    completion = talk.chat(response_format={"type": "json_object"})
    assert json.loads(completion.choices[0].message.content or "") == {"city": "Oslo", "letters": 4}


def test_limits_on_the_answer_leave_the_run_alone(talk: Talk) -> None:
    ask = [{"role": "user", "content": "Which capital, at length?"}]
    answer = "It is Oslo, the capital by the fjord."
    short = talk.chat(messages=ask, max_tokens=4)
    assert short.choices[0].finish_reason == "length"
    assert 0 < len(short.choices[0].message.content) < len(answer)
    assert answer.startswith(short.choices[0].message.content)
    stopped = talk.chat(messages=ask, stop=[","])
    assert (stopped.choices[0].finish_reason, stopped.choices[0].message.content) == ("stop", "It is Oslo")


def test_options_and_budgets_come_in_a_field_of_their_own(talk: Talk) -> None:
    own = {"options": {"max_depth": 1}, "budget": {"calls": 40}}
    completion = talk.chat("tree_of_thoughts@small", extra_body={"reasonry": own})
    run_id = completion.reasonry["runs"][0]["run_id"]
    recorded = asyncio.run(talk.serving.app.engine.recorded_run(run_id))
    assert recorded.begun.options["max_depth"] == 1
    assert recorded.budget.calls == 40
    with pytest.raises(openai.BadRequestError) as caught:
        talk.chat("react@small", extra_body={"reasonry": {"budget": {"calls": 0}}})
    assert caught.value.param == "reasonry.budget.calls"


def test_a_run_that_meets_its_limit_gives_its_answer_or_what_it_has_or_says_why_it_cannot(talk: Talk) -> None:
    limit = {"reasonry": {"budget": {"calls": 2}}}
    completion = talk.chat("tree_of_thoughts@small", extra_body=limit)
    assert completion.choices[0].finish_reason == "stop"
    assert completion.choices[0].message.content
    assert completion.reasonry["runs"][0]["termination"]["reason"] == "max_calls"
    limit = {"reasonry": {"budget": {"calls": 2, "closes": False}}}
    completion = talk.chat("tree_of_thoughts@small", extra_body=limit)
    assert completion.choices[0].finish_reason == "length"
    assert completion.choices[0].message.content
    assert completion.choices[0].message.reasoning_content.endswith("; its best so far is no answer")
    assert completion.reasonry["runs"][0]["termination"]["reason"] == "max_calls"
    limit = {"reasonry": {"budget": {"calls": 1, "closes": False}}}
    with pytest.raises(openai.RateLimitError) as caught:
        talk.chat("step_back@small", extra_body=limit)
    assert caught.value.code == "budget_exceeded"
    # OpenAI's clients would try again by themselves, and pay again.
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert caught.value.response.headers["x-reasonry-run"]
    with pytest.raises(openai.APIError, match="without an answer"):
        list(talk.chat("step_back@small", extra_body=limit, stream=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("leave", [False, True])
def test_a_client_that_hangs_up_ends_its_run_unless_it_asked_to_leave_it(stream: bool, leave: bool) -> None:
    # What ends with its client is given the time to.
    latency_ms = 600 if leave else 2_000
    with ModelServer(reply=reply, latency_ms=latency_ms) as model, talking(model) as talk:
        extra: Any = {"reasonry": {"on_disconnect": "leave" if leave else "cancel"}}
        client = talk.client(timeout=30 if stream else 0.4)
        if stream:
            events = talk.chat(client=client, stream=True, extra_body=extra)
            next(iter(events))
            events.close()
        else:
            with pytest.raises(openai.APITimeoutError):
                talk.chat(client=client, extra_body=extra)
        store, expected = talk.serving.app.store, "done" if leave else "cancelled"
        assert eventually(lambda: [run.status for run in asyncio.run(store.runs())] == [expected], 5)


def test_the_same_request_with_the_same_key_is_paid_once_even_if_its_client_hung_up(tmp_path: Path) -> None:
    with ModelServer(reply=reply, latency_ms=300) as model, talking(model, str(tmp_path / "a.db")) as talk:
        key = {"extra_headers": {"Idempotency-Key": "order 7"}}
        talk.chat(**key, stream=True).close()
        with pytest.raises(openai.ConflictError) as caught:
            talk.chat(**key, stop=["x"])
        assert caught.value.code == "idempotency_conflict"
        replies = [talk.chat(**key, stream=False) for _ in range(2)]
        assert [reply.choices[0].message.content for reply in replies] == ["Oslo", "Oslo"]
        assert replies[0].id == replies[1].id
        other = talk.chat(extra_headers={"Idempotency-Key": "order 8"})
        assert other.id != replies[0].id
        assert len(asyncio.run(talk.serving.app.store.runs())) == 2


def test_a_run_that_its_user_has_cancelled_is_not_taken_up_by_the_same_request() -> None:
    with ModelServer(reply=reply, latency_ms=2_000) as model, talking(model) as talk:
        sent = {"extra_headers": {"Idempotency-Key": "7"}}
        stream = talk.chat(**sent, stream=True)
        run_id = str(UUID(next(iter(stream)).id.removeprefix("chatcmpl-")))
        cancelled = talk.serving.client().post(f"/api/runs/{run_id}/cancel")
        assert cancelled.json()["status"] == "cancelled"
        stream.close()
        with pytest.raises(openai.APIStatusError, match="cancelled by its user") as caught:
            talk.chat(**sent)
        assert (caught.value.status_code, caught.value.code) == (499, "cancelled")
        assert talk.calls <= 1


def test_a_server_that_is_its_own_model_does_not_ask_itself_for_ever() -> None:
    environ = {"REASONRY_MODELS": ""}
    with serve_in_thread(environ=environ) as serving:
        own = f"loop=openai-compatible:{serving.url}/v1#chain_of_thought@loop"
        serving.app.environ["REASONRY_MODELS"] = own  # pyright: ignore[reportIndexIssue]
        refusal = serving.client().post(
            "/v1/chat/completions", json={"model": "chain_of_thought@loop", "messages": ASK}
        )
        assert refusal.status_code == 502
        assert "itself, as a model" in refusal.json()["error"]["message"]
        assert len(asyncio.run(serving.app.store.runs())) == 2
