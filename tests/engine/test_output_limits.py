"""Every call has a limit on its reply; one that is cut off has twice the room once, one that is endless is cut off."""

from typing import Any

import pytest

from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.machine import Pending
from reasonry.core.strategy import LONG_REPLY, SHORT_REPLY
from reasonry.engine.calls import ENDLESS_CHARS
from reasonry.engine.policy import REASONING_TOKENS, Policy
from reasonry.strategies import STRATEGIES
from tests.servers import ModelServer

from .playing import CountingModel
from .test_streaming import Listening, watched

pytestmark = pytest.mark.anyio

LOOP = "And then it says the same again. "


class Reasoner(CountingModel):
    reasons = True


def limit(policy: Policy, model: Any = None, *replies: Answered) -> int | None:
    ask = Ask("?", max_output_tokens=100)
    return policy.output_limit(Pending("e1", "s", ask, 1, replies), ask, model or CountingModel())


def test_a_cut_off_reply_has_twice_the_room_unless_it_repeated_itself_and_a_reasoning_model_has_more() -> (
    None
):
    cut, looped = Answered("One after the oth", truncated=True), Answered(LOOP * 20, truncated=True)
    assert limit(Policy()) == limit(Policy(), None, Answered("whole")) == limit(Policy(), None, looped) == 100
    assert limit(Policy(), None, cut) == 200
    assert limit(Policy(max_output_tokens=50), None, cut) == 100
    assert limit(Policy(), Reasoner()) == 100 + REASONING_TOKENS
    assert limit(Policy(max_output_tokens=50), Reasoner()) == 50


def test_every_stage_has_room_for_what_it_asks() -> None:
    for strategy in STRATEGIES.values():
        for stage in strategy.stages:
            assert stage.max_output_tokens in (SHORT_REPLY, LONG_REPLY), f"{strategy.name}.{stage.name}"


async def test_the_limit_goes_out_with_the_question_and_is_doubled_once() -> None:
    policy = Policy(backoff_s=0.001, max_output_tokens=5)
    with ModelServer(
        replies=("one two three four five six seven eight nine ten eleven twelve",) * 4
    ) as server:
        trace = await watched(server, Listening(), "loop", policy=policy, steps=1)
        assert [body["max_tokens"] for body in server.bodies] == [5, 10]
    assert trace["status"] == "failed"


async def test_a_reply_that_repeats_itself_without_end_is_cut_off_recorded_and_asked_for_again() -> None:
    observer = Listening()
    with ModelServer(replies=(LOOP * 5_000, "An end."), chunk_words=1) as server:
        trace = await watched(server, observer, "loop", steps=1)
    first, second = trace["questions"]
    assert ENDLESS_CHARS <= len(first["reply"]) < ENDLESS_CHARS * 2
    assert "repeated itself" in first["read"]
    assert second["reply"] == trace["answer"] == "An end."


async def test_replies_take_no_more_tokens_than_the_budget_leaves() -> None:
    with ModelServer(replies=("word " * 90,) * 40) as server:
        trace = await watched(server, Listening(), "loop", budget=Budget(tokens=700), steps=20)
        sent = [body["max_tokens"] for body in server.bodies]
        spent = server.stats()["prompt_tokens"] + server.stats()["completion_tokens"]
    assert trace["termination"]["reason"] == "max_tokens"
    assert sent[0] < 700
    assert sent == sorted(sent, reverse=True)
    assert spent <= 700
    # The last stream may be cut off before its usage is stated; then it is booked by an estimate.
    assert trace["usage"]["input_tokens"] + trace["usage"]["output_tokens"] >= spent
