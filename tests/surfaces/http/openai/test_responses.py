"""Responses through OpenAI's own client."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from .talking import Talk


class City(BaseModel):
    """A form of an answer."""

    city: str
    letters: int


def test_a_response_has_the_thoughts_as_a_summary_and_then_the_answer(talk: Talk) -> None:
    client = talk.client()
    whole: Any = client.responses.create(
        model="chain_of_thought@small", input="Which capital?", instructions="Brief."
    )
    assert "> Brief." in talk.model.bodies[-1]["messages"][-1]["content"]
    reasoning, message = whole.output
    assert reasoning.summary[0].text.startswith("The north has a capital.")
    assert (message.content[0].text, whole.output_text, whole.status) == ("Oslo", "Oslo", "completed")
    assert whole.usage.input_tokens + whole.usage.output_tokens == whole.usage.total_tokens
    with client.responses.stream(model="chain_of_thought@small", input="Which capital?") as events:
        seen: list[Any] = list(events)
        final = events.get_final_response()
    assert [event.sequence_number for event in seen if hasattr(event, "sequence_number")] == list(
        range(len(seen))
    )
    pieces = [event.delta for event in seen if event.type == "response.reasoning_summary_text.delta"]
    assert "".join(pieces) == final.output[0].summary[0].text  # pyright: ignore
    assert final.output_text == "Oslo"


def test_a_response_goes_on_from_an_earlier_one(talk: Talk) -> None:
    client = talk.client()
    first = client.responses.create(model="chain_of_thought@small", input="Which capital?")
    second = client.responses.create(
        model="chain_of_thought@small", input="And why?", previous_response_id=first.id
    )
    client.responses.create(model="chain_of_thought@small", input="Sure?", previous_response_id=second.id)
    prompt = talk.model.bodies[-1]["messages"][-1]["content"]
    assert prompt.startswith("Problem: Sure?\n")
    said = ["user: Which capital?", "assistant: Oslo", "user: And why?", "assistant: Oslo"]
    quoted = [line.removeprefix("> ") for line in prompt.splitlines() if line.startswith("> ")]
    assert quoted == [f"user (earlier): {said[0]}", *said[1:]]
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="chain_of_thought@small", input="x", previous_response_id="resp_gone")
    assert (caught.value.param, caught.value.code) == ("previous_response_id", "previous_response_not_found")


def test_reasoning_that_comes_back_is_left_out(talk: Talk) -> None:
    thought = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "secret"}]}
    items: Any = [{"role": "user", "content": "Hi."}, thought, {"role": "user", "content": "Which capital?"}]
    talk.client().responses.create(model="chain_of_thought@small", input=items)
    assert "secret" not in str(talk.model.bodies[-1])


def test_a_response_is_in_the_form_that_is_wanted_and_as_short(talk: Talk) -> None:
    client = talk.client()
    parsed = client.responses.parse(model="chain_of_thought@small", input="Which?", text_format=City)
    assert parsed.output_parsed == City(city="Oslo", letters=4)
    cut = client.responses.create(
        model="chain_of_thought@small", input="Which, at length?", max_output_tokens=4
    )
    assert (cut.status, cut.incomplete_details and cut.incomplete_details.reason) == (
        "incomplete",
        "max_output_tokens",
    )


def test_a_response_of_which_nothing_comes_says_why(talk: Talk) -> None:
    limit: Any = {"reasonry": {"budget": {"calls": 1}}}
    with talk.client().responses.stream(model="step_back@small", input="Which?", extra_body=limit) as events:
        last: Any = list(events)[-1]
    assert (last.type, last.response.error.code) == ("response.failed", "budget_exceeded")
