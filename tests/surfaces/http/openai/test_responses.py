"""Responses through OpenAI's own client."""

import time
from typing import Any

import openai
import pytest

from ....servers import ModelServer
from .talking import RESPONSE_TOOLS, SMALL, City, Talk, outputs_of, reply, talking


def quoted_in(prompt: str) -> list[str]:
    """Return the conversation that a prompt quotes."""
    return [line.removeprefix("> ") for line in prompt.splitlines() if line.startswith("> ")]


def test_a_response_has_the_thoughts_as_a_summary_and_then_the_answer(talk: Talk) -> None:
    whole = talk.respond("Which capital?", instructions="Brief.")
    assert "> Brief." in talk.prompt
    reasoning, message = whole.output
    assert "\n\nThe north has a capital." in reasoning.summary[0].text
    assert (message.content[0].text, whole.output_text, whole.status) == ("Oslo", "Oslo", "completed")
    assert whole.usage.input_tokens + whole.usage.output_tokens == whole.usage.total_tokens
    with talk.usual.responses.stream(model=SMALL, input="Which capital?") as events:
        seen: list[Any] = list(events)
        final = events.get_final_response()
    numbers = [event.sequence_number for event in seen if hasattr(event, "sequence_number")]
    assert numbers == [*range(len(seen))]
    pieces = [event.delta for event in seen if event.type == "response.reasoning_summary_text.delta"]
    assert "".join(pieces) == final.output[0].summary[0].text  # pyright: ignore
    assert final.output_text == "Oslo"


def test_a_response_goes_on_from_an_earlier_one(talk: Talk) -> None:
    first = talk.respond("Which capital?")
    second = talk.respond("And why?", previous_response_id=first.id)
    talk.respond("Sure?", previous_response_id=second.id)
    assert talk.prompt.startswith("Problem: Sure?\n")
    said = ["user: Which capital?", "assistant: Oslo", "user: And why?", "assistant: Oslo"]
    assert quoted_in(talk.prompt) == [f"user (earlier): {said[0]}", *said[1:]]
    with pytest.raises(openai.BadRequestError) as caught:
        talk.respond("x", previous_response_id="resp_gone")
    assert (caught.value.param, caught.value.code) == ("previous_response_id", "previous_response_not_found")


def test_reasoning_that_comes_back_is_left_out(talk: Talk) -> None:
    thought = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "secret"}]}
    items: Any = [{"role": "user", "content": "Hi."}, thought, {"role": "user", "content": "Which capital?"}]
    talk.respond(items)
    assert "secret" not in str(talk.model.bodies[-1])


def test_a_response_is_in_the_form_that_is_wanted_and_as_short(talk: Talk) -> None:
    parsed = talk.usual.responses.parse(model=SMALL, input="Which?", text_format=City)
    assert parsed.output_parsed == City(city="Oslo", letters=4)
    cut = talk.respond("Which, at length?", max_output_tokens=4)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_a_format_whose_schema_cannot_be_used_is_named_as_responses_name_it(talk: Talk) -> None:
    for schema in ({"type": "x"}, None):
        text: Any = {"format": {"type": "json_schema", "name": "City", "schema": schema}}
        with pytest.raises(openai.BadRequestError) as caught:
            talk.respond("Which?", text=text)
        assert caught.value.param == "text.format"


def test_a_response_of_which_nothing_comes_says_why(talk: Talk) -> None:
    limit: Any = {"reasonry": {"budget": {"calls": 1, "closes": False}}}
    with talk.client().responses.stream(model="step_back@small", input="Which?", extra_body=limit) as events:
        last: Any = list(events)[-1]
    assert (last.type, last.response.error.code) == ("response.failed", "budget_exceeded")


def test_a_response_that_a_limit_stopped_goes_on_with_its_best_text(talk: Talk) -> None:
    limit = {"reasonry": {"budget": {"calls": 1, "closes": False}}}
    first = talk.respond("Which capital?", model="refine@small", extra_body=limit)
    assert (first.status, first.output_text) == ("incomplete", "Oslo")
    talk.respond("And why?", previous_response_id=first.id)
    assert "> assistant: Oslo" in talk.prompt


def test_a_response_is_kept_read_again_and_deleted_with_its_run(talk: Talk) -> None:
    first = talk.respond("Which capital?")
    paid = talk.calls
    again: Any = talk.usual.responses.retrieve(first.id)
    assert (again.id, again.status, again.output_text) == (first.id, "completed", "Oslo")
    assert [item.to_dict() for item in again.output] == [item.to_dict() for item in first.output]
    assert (again.model, again.usage, again.reasonry) == (first.model, first.usage, first.reasonry)
    assert talk.calls == paid
    talk.usual.responses.delete(first.id)
    for response_id in (first.id, "resp_x", "resp_" + "0" * 32):
        with pytest.raises(openai.NotFoundError):
            talk.usual.responses.retrieve(response_id)
        with pytest.raises(openai.NotFoundError):
            talk.usual.responses.delete(response_id)
    assert talk.serving.client().get(f"/api/runs/{first.reasonry['runs'][0]['run_id']}").status_code == 404


def test_a_response_in_the_background_is_looked_at_until_it_has_come() -> None:
    with ModelServer(reply=reply, latency_ms=300) as model, talking(model) as talk:
        client = talk.client()
        asked = talk.respond("Which capital?", background=True)
        assert (asked.status, asked.background, asked.output) == ("queued", True, [])
        while (found := client.responses.retrieve(asked.id)).status in ("queued", "in_progress"):
            assert found.output == []
            time.sleep(0.02)
        assert (found.status, found.output_text) == ("completed", "Oslo")
        other = talk.respond("And?", background=True)
        assert client.responses.cancel(other.id).status == "cancelled"
        with pytest.raises(openai.ConflictError):
            client.responses.cancel(other.id)


def test_a_response_whose_client_hung_up_is_read_without_resuming_its_run() -> None:
    with ModelServer(reply=reply, latency_ms=600) as model, talking(model) as talk:
        client = talk.client()
        asked = talk.respond("Which?", stream=True)
        response_id = next(iter(asked)).response.id
        asked.close()
        while (found := client.responses.retrieve(response_id)).status == "in_progress":
            time.sleep(0.02)
        assert found.status == "cancelled"
        (run,) = talk.serving.client().get("/api/runs").json()["runs"]
        assert run["status"] == "cancelled"


def test_a_response_that_asked_for_calls_is_read_again_as_it_was(talk: Talk) -> None:
    asked = talk.respond("Where is it warm?", model="react@small", tools=RESPONSE_TOOLS)
    (row,) = talk.serving.client().get("/api/runs", params={"outcome": "waiting"}).json()["runs"]
    assert (row["run_id"], row["resumable"]) == (asked.reasonry["runs"][0]["run_id"], False)
    outputs = outputs_of(talk.usual.responses.retrieve(asked.id))
    assert outputs == outputs_of(asked)
    answered = talk.respond(outputs, model="react@small", previous_response_id=asked.id, tools=RESPONSE_TOOLS)
    again: Any = talk.usual.responses.retrieve(answered.id)
    assert (again.output_text, again.usage) == (answered.output_text, answered.usage)
    assert again.output[0].summary[0].text == answered.output[0].summary[0].text


def test_items_of_an_earlier_response_are_known_by_their_ids(talk: Talk) -> None:
    first = talk.respond("Which capital?")
    items: Any = [{"type": "item_reference", "id": item.id} for item in first.output]
    asked = [{"role": "user", "content": "Which capital?"}, *items, {"role": "user", "content": "And why?"}]
    talk.respond(asked)
    assert quoted_in(talk.prompt) == ["user: Which capital?", "assistant: Oslo"]


def test_a_call_is_known_by_its_id_when_its_result_comes(talk: Talk) -> None:
    question = {"role": "user", "content": "Where is it warm?"}
    first = talk.respond([question], model="react@small", tools=RESPONSE_TOOLS)
    assert len(outputs_of(first)) == 2
    brought: Any = [
        question,
        *({"type": "item_reference", "id": item.id} for item in first.output),
        *outputs_of(first),
    ]
    second = talk.respond(brought, model="react@small", tools=RESPONSE_TOOLS)
    assert second.output_text == "sunny in 2"
    assert second.reasonry["runs"][0]["run_id"] == first.reasonry["runs"][0]["run_id"]


@pytest.mark.parametrize("name", ["msg_gone", "fc_call_gone", "rs_1", "x", "", f"msg_resp_{'0' * 32}"])
def test_an_item_that_nobody_knows_is_refused(talk: Talk, name: str) -> None:
    with pytest.raises(openai.BadRequestError, match="send it whole") as caught:
        talk.respond([{"type": "item_reference", "id": name}])
    assert caught.value.param == "input"
