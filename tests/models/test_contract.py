"""What every model behind a network owes the runtime, checked over real HTTP against the loopback server."""

import asyncio
from typing import Any

import pytest

from reasonry.core.effects import Turn
from reasonry.core.events import Usage
from reasonry.engine.calls import takes_samples
from reasonry.engine.ports import BrokenReplyError, OnText
from reasonry.engine.usage import estimate_tokens
from reasonry.errors import ModelError
from tests.servers import FAULT_KINDS, Fault, ModelServer
from tests.servers.echoes import written

from .asking import FORM, KEY, OPEN_FORM, everything_of, model_over, question

pytestmark = pytest.mark.anyio


FAILURES: dict[str, tuple[str, bool]] = {
    "rate_limit": ("rate_limited", True),
    "quota": ("rate_limited", False),
    "server_error": ("provider_error", True),
    "unavailable": ("provider_error", True),
    "bad_request": ("provider_error", False),
    "unauthorized": ("provider_auth", False),
    "not_found": ("provider_error", False),
    "redirect": ("provider_error", False),
    "reset": ("provider_error", True),
    "hang": ("provider_timeout", True),
    "trickle": ("provider_timeout", True),
    "invalid_body": ("provider_error", True),
    "half_body": ("provider_error", True),
    "html": ("provider_error", True),
    "wrong_charset": ("provider_error", True),
    "huge": ("reply_too_long", False),
    "gzip_bomb": ("provider_error", True),
    "bad_events": ("provider_error", True),
    "broken_stream": ("provider_error", True),
    "late_break": ("provider_error", True),
    "endless_line": ("reply_too_long", False),
    "endless_comments": ("reply_too_long", False),
    "endless_events": ("reply_too_long", False),
    "drip": ("provider_timeout", True),
    "key_in_error": ("provider_auth", False),
    "key_in_200": ("provider_error", True),
    "key_in_event": ("provider_error", True),
    "key_in_reason": ("provider_auth", False),
}
"""Fault → code of the error, and whether another try may help."""


@pytest.mark.parametrize("kind", FAILURES)
async def test_a_broken_call_is_a_model_error_with_the_right_code(
    server: ModelServer, kind: str, watch: OnText | None, model: Any, transport: str
) -> None:
    server.reset(faults=[Fault(kind=kind, retry_after="7")], api_key=None)
    slow = kind in ("hang", "trickle", "drip")
    with pytest.raises(ModelError) as caught:
        await model.answer(question(form=FORM, timeout_s=0.3 if slow else 20), watch)
    expected = FAILURES[kind]
    if (kind, transport) == ("gzip_bomb", "own"):
        # It unpacks a reply that was not to be packed; the other refuses it.
        expected = FAILURES["huge"]
    if (kind, watch is None, transport) == ("endless_events", False, "pydantic-ai"):
        # The SDK takes an event without data for the end.
        expected = FAILURES["bad_events"]
    assert (caught.value.code, caught.value.retryable) == expected
    if kind in ("rate_limit", "server_error", "unauthorized", "reset"):
        assert not isinstance(caught.value, BrokenReplyError), "what was refused has cost nothing"
    told_to_wait = kind in ("rate_limit", "server_error", "unavailable")
    assert caught.value.retry_after_s == (7.0 if told_to_wait else None)
    assert not [way for way in written(KEY) if way in everything_of(caught.value)]
    # On a busy machine so short a limit may run out before the request is there.
    sent = server.stats()["requests"]
    assert sent == 1 or (slow and sent == 0), "a call is sent once; trying again is the runtime's business"


CONTENT = ("fenced", "malformed", "truncated", "empty", "refusal", "content_filter")
"""Faults of a reply that is a reply all the same."""


@pytest.mark.parametrize("kind", CONTENT)
async def test_what_a_reply_says_is_handed_on_and_told_apart(
    server: ModelServer, kind: str, watch: OnText | None, model: Any
) -> None:
    server.reset(faults=[Fault(kind=kind)])
    answer = await model.answer(question(form=FORM), watch)
    refused = kind in ("refusal", "content_filter")
    assert (answer.truncated, answer.refused, answer.native) == (kind == "truncated", refused, False)
    assert ("```" in answer.text) == (kind == "fenced")
    assert (answer.text == "") == (kind in ("empty", "content_filter"))
    assert answer.usage.calls == 1


def test_every_fault_of_the_server_is_in_one_of_the_tables() -> None:
    alone = {"no_json_schema", "gzip", "surplus_choices", *BROKEN_USAGES}
    assert {*FAILURES, *CONTENT} | alone == set(FAULT_KINDS)


async def test_an_answer_carries_text_usage_model_and_that_the_provider_held_the_form(
    server: ModelServer, watch: OnText | None, model: Any
) -> None:
    server.reset(faults=[], replies=[{"answer": "seven of them"}])
    answer = await model.answer(question("How many?", system="Be brief.", form=FORM), watch)
    assert answer.model == model.name
    booked = server.stats()
    assert answer.text == '{"answer": "seven of them"}'
    assert answer.native
    assert answer.usage.input_tokens == booked["prompt_tokens"] > 0
    assert answer.usage.output_tokens == booked["completion_tokens"] > 0
    assert answer.usage.usd is not None
    assert answer.usage.usd == pytest.approx(
        answer.usage.input_tokens * 0.25e-6 + answer.usage.output_tokens * 2e-6
    )
    body = server.bodies[0]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["response_format"]["json_schema"]["strict"] is True


async def test_each_turn_goes_out_as_a_message_of_the_assistant_and_one_of_the_user(
    server: ModelServer, model: Any
) -> None:
    server.reset(faults=[], replies=["four"])
    turns = (Turn("five", "That is wrong."), Turn("Four, I think.", "Write the answer alone."))
    await model.answer(question("What is 2 + 2?", system="You count.", turns=turns))
    (body,) = server.bodies
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("system", "You count."),
        ("user", "What is 2 + 2?"),
        ("assistant", "five"),
        ("user", "That is wrong."),
        ("assistant", "Four, I think."),
        ("user", "Write the answer alone."),
    ]


async def test_a_form_with_open_keys_is_not_called_strict(server: ModelServer, model: Any) -> None:
    server.reset(faults=[], replies=[])
    answer = await model.answer(question(form=OPEN_FORM))
    assert answer.native
    schema = server.bodies[0]["response_format"]["json_schema"]
    assert schema.get("strict") is not True
    assert schema["schema"]["properties"]["scores"]["additionalProperties"] == {"type": "number"}


async def test_cached_tokens_are_counted(server: ModelServer, model: Any) -> None:
    server.reset(faults=[], replies=[], cache_min_tokens=64, cache_block_tokens=16)
    prefix = "The rules of the game are long and never change. " * 20
    first = await model.answer(question("first", system=prefix))
    second = await model.answer(question("second", system=prefix))
    assert first.usage.cached_input_tokens == 0
    assert 0.8 < second.usage.cached_input_tokens / second.usage.input_tokens <= 1
    assert second.usage.cached_input_tokens == server.stats()["cached_tokens"]


async def test_text_streams_in_piece_by_piece_and_the_answer_has_the_whole(
    server: ModelServer, model: Any
) -> None:
    said = "one two three four five six seven eight nine"
    server.reset(faults=[], replies=[said], chunk_words=2)
    pieces: list[str] = []
    answer = await model.answer(question(), pieces.append)
    assert len(pieces) > 2
    assert "".join(pieces) == answer.text == said


async def test_a_server_that_knows_no_schemas_is_asked_again_without_and_then_never_with(
    server: ModelServer, model: Any
) -> None:
    server.reset(faults=[Fault(kind="no_json_schema")], replies=[])
    with pytest.raises(ModelError) as caught:
        await model.answer(question(form=FORM))
    assert caught.value.retryable
    assert caught.value.retry_after_s == 0.0
    for _ in range(3):
        assert not (await model.answer(question(form=FORM))).native
    assert server.stats()["requests"] == 4


BROKEN_USAGES = (
    "absurd_usage", "no_usage", "null_usage", "negative_usage", "text_usage", "list_usage", "huge_usage", "tiny_usage"
)  # fmt: skip
SAID = "seven of them, and an eighth that nobody has counted until now " * 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", BROKEN_USAGES)
async def test_where_usage_cannot_be_right_an_estimate_is_booked(
    server: ModelServer, kind: str, watch: OnText | None, model: Any, transport: str
) -> None:
    server.reset(faults=[Fault(kind=kind)], replies=[SAID])
    asked = question("How many are there? " * 20)
    usage = Usage()
    try:
        answer = await model.answer(asked, watch)
    except BrokenReplyError as error:
        # What its SDK takes for no reply at all has to be paid all the same.
        assert transport == "pydantic-ai"
        usage = error.usage
    else:
        assert answer.text == SAID
        usage = answer.usage
        assert usage.output_tokens == estimate_tokens(SAID)
    assert usage.input_tokens == estimate_tokens(asked.prompt)
    assert usage.output_tokens >= estimate_tokens(SAID) or watch is not None
    assert usage.estimated_tokens == usage.tokens
    assert usage.usd == pytest.approx(usage.input_tokens * 0.25e-6 + usage.output_tokens * 2e-6)


@pytest.mark.parametrize("kind", ["invalid_body", "half_body", "late_break"])
async def test_a_reply_that_broke_off_says_what_it_took_until_then(
    server: ModelServer, kind: str, watch: OnText | None, model: Any, transport: str
) -> None:
    server.reset(faults=[Fault(kind=kind)], replies=[SAID * 20])
    with pytest.raises(BrokenReplyError) as caught:
        await model.answer(question("How many?"), watch)
    usage = caught.value.usage
    assert usage.input_tokens == estimate_tokens("How many?")
    whole = estimate_tokens(SAID * 20)
    assert usage.estimated_tokens == usage.tokens
    if watch is None or kind == "late_break" or transport == "own":
        assert whole / 3 < usage.output_tokens < 1.2 * whole
    assert usage.usd is not None


async def test_choices_nobody_asked_for_are_booked_and_not_mixed_into_the_answer(
    server: ModelServer, watch: OnText | None, model: Any, transport: str
) -> None:
    server.reset(faults=[Fault(kind="surplus_choices")], replies=[SAID] * 40)
    answer = await model.answer(question("How many?"), watch)
    stats = server.stats()
    assert answer.usage.output_tokens == stats["completion_tokens"] > 1_000
    assert answer.usage.estimated_tokens == 0
    if transport == "own":
        assert answer.text == SAID


@pytest.mark.parametrize("kind", ["key_in_error", "key_in_200", "key_in_event", "bad_request"])
async def test_no_key_is_shown_of_several_answers_at_once(server: ModelServer, kind: str) -> None:
    server.reset(faults=[Fault(kind=kind)], replies=[])
    async with model_over(server) as model:
        assert takes_samples(model)
        with pytest.raises(ModelError) as caught:
            await model.answer_many(question(), 3)
    assert not [way for way in written(KEY) if way in everything_of(caught.value)]


async def test_lone_surrogates_and_nul_reach_the_server_as_text(server: ModelServer, model: Any) -> None:
    server.reset(faults=[], replies=["fine"])
    answer = await model.answer(question("broken \ud800 and \x00 here", system="\udfff"))
    assert answer.text == "fine"
    assert "broken" in server.bodies[0]["messages"][-1]["content"]


async def test_a_cancelled_call_leaves_nothing_behind(
    server: ModelServer, watch: OnText | None, transport: str
) -> None:
    server.reset(faults=[Fault(kind="hang")], replies=[])
    before = asyncio.all_tasks()
    async with model_over(server, transport) as model:
        calls = [asyncio.create_task(model.answer(question(timeout_s=30), watch)) for _ in range(5)]
        while server.stats()["inflight"] < 5:
            await asyncio.sleep(0.005)
        for call in calls:
            call.cancel()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in results)
        while server.stats()["inflight"]:
            await asyncio.sleep(0.005)
        assert server.stats()["abandoned"] == 5
        server.reset(faults=[], replies=["still here"])
        assert (await model.answer(question())).text == "still here"
    assert asyncio.all_tasks() == before


async def test_calls_go_out_side_by_side(server: ModelServer, model: Any) -> None:
    server.reset(faults=[], replies=[], latency_ms=1_500)
    try:
        await asyncio.gather(*(model.answer(question(f"number {at}")) for at in range(30)))
        stats = server.stats()
    finally:
        server.reset(latency_ms=0)
    assert stats["max_inflight"] == 30
    assert stats["rounds"] == 1


async def test_a_limit_that_is_too_high_for_a_model_is_halved_until_it_takes_it(
    server: ModelServer, model: Any
) -> None:
    server.reset(faults=[], replies=["red", "blue"], api_key=None, most_output_tokens=2_048)
    asked = question(max_output_tokens=8_192)
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            await model.answer(asked)
        assert caught.value.details["degraded"]
    assert (await model.answer(asked)).text == "red"
    assert (await model.answer(asked)).text == "blue"
    sent = [body.get("max_tokens") or body["max_completion_tokens"] for body in server.bodies]
    assert sent == [8_192, 4_096, 2_048, 2_048]
