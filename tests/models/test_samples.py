"""Several samples in one request over the wire, with servers that take `n`, ignore it, or refuse it."""

import asyncio
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.events import NOTHING, Usage
from reasonry.engine.result import Result
from reasonry.errors import ModelError
from reasonry.models.choose import open_model
from reasonry.models.openai_compatible import OpenAICompatibleModel
from reasonry.models.openai_wire import Dialect, request_body, share_out
from tests.engine.running import order_and_solve
from tests.servers import ChatRequest, Fault, ModelServer

from .asking import FORM, question

pytestmark = pytest.mark.anyio

ANSWERS = ("42", "42", "17", "42", "23", "42")


class Votes:
    """Answers the n-th sample with the n-th of `ANSWERS`, however the samples come."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, request: ChatRequest) -> dict[str, str]:
        self.drawn += 1
        return {"reasoning": "one step after the other", "answer": ANSWERS[(self.drawn - 1) % len(ANSWERS)]}


def model_at(server: ModelServer) -> OpenAICompatibleModel:
    return OpenAICompatibleModel(server.url, "m")


async def test_several_answers_come_from_one_request_and_add_up_to_its_usage() -> None:
    with ModelServer(reply=Votes()) as server:
        model = model_at(server)
        answers = await model.answer_many(question(form=FORM), 5)
        await model.close()
        stats = server.stats()
    assert (stats["requests"], stats["samples"], len(answers), model.takes_n) == (1, 5, 5, True)
    assert len({one.text for one in answers}) == 3
    assert all(one.native for one in answers)
    total = sum((one.usage for one in answers), NOTHING)
    stated = (stats["prompt_tokens"], stats["completion_tokens"])
    assert (total.calls, total.input_tokens, total.output_tokens) == (1, *stated)
    assert [one.usage.input_tokens for one in answers] == [stats["prompt_tokens"], 0, 0, 0, 0]


async def test_a_server_that_ignores_n_is_noticed_and_its_one_answer_kept() -> None:
    with ModelServer(samples="ignored", replies=["first"]) as server:
        model = model_at(server)
        answers = await model.answer_many(question(), 5)
        await model.close()
    assert ([one.text for one in answers], model.takes_n) == (["first"], False)


async def test_a_server_that_refuses_n_is_asked_again_without() -> None:
    with ModelServer(samples="refused", replies=["first"]) as server:
        model = model_at(server)
        with pytest.raises(ModelError) as caught:
            await model.answer_many(question(), 5)
        assert (caught.value.retryable, caught.value.retry_after_s, model.takes_n) == (True, 0.0, False)
        assert [one.text for one in await model.answer_many(question(), 5)] == ["first"]
        await model.close()
        assert [body.get("n") for body in server.bodies] == [5, None]


@pytest.mark.parametrize("kind", ["invalid_body", "html", "reset", "server_error", "bad_request", "huge"])
async def test_what_breaks_is_a_model_error_and_says_nothing_about_n(kind: Any) -> None:
    with ModelServer(faults=[Fault(kind=kind)]) as server:
        model = model_at(server)
        with pytest.raises(ModelError):
            await model.answer_many(question(), 3)
        await model.close()
    assert model.takes_n


@pytest.mark.parametrize(
    ("complaint", "accepted"),
    [
        ("invalid value: 'n' must be at most 1", (False, True)),
        ("n must be 1 when using greedy sampling, got 5.", (False, True)),
        ('extra inputs are not permitted {"loc": ["body", "n"]}', (False, True)),
        ("only one completion choice is allowed", (False, True)),
        ("temperature isn't supported\\n with this model", (True, False)),
    ],
)
def test_a_complaint_about_n_costs_n_alone(complaint: str, accepted: tuple[bool, bool]) -> None:
    dialect = Dialect()
    body = request_body("m", Ask("p", form=FORM, temperature=0.7), "s", dialect, False, 5)
    assert dialect.degrade(body, complaint)
    assert (dialect.samples, dialect.temperature, dialect.format) == (*accepted, "json_schema")


def test_n_is_sent_for_several_only_and_no_larger_than_may_be() -> None:
    def sent(samples: int) -> int | None:
        return request_body("m", Ask("p"), "s", Dialect(), False, samples).get("n")

    assert [sent(samples) for samples in (1, 2, 1000)] == [None, 2, 128]


@pytest.mark.parametrize("usd", [None, 0.0, 0.017])
@pytest.mark.parametrize("samples", [1, 3, 7])
def test_shares_add_up_to_the_whole(samples: int, usd: float | None) -> None:
    whole = Usage(input_tokens=101, output_tokens=52, cached_input_tokens=64, usd=usd)
    shares = share_out(whole, samples)
    total = sum(shares, NOTHING)
    assert (len(shares), total.calls, total.tokens, total.cached_input_tokens) == (samples, 1, 153, 64)
    assert total.usd == (None if usd is None else pytest.approx(usd))
    assert all(one.calls == 0 and one.input_tokens == 0 for one in shares[1:])


def test_ollama_is_not_tried_and_the_others_are() -> None:
    keys = {"OPENAI_API_KEY": "sk-x"}
    tried = [open_model(spec, keys) for spec in ("openai:m", "openai-compatible:http://h/v1#m", "ollama:m")]
    assert [getattr(model, "takes_n", None) for model in tried] == [True, True, False]


# -- whole runs


def vote(samples: str, budget: Budget | None = None) -> tuple[Result, dict[str, Any]]:
    """Draw six samples, three side by side, and count at the server."""

    async def work(server: ModelServer) -> Result:
        async with App("memory") as app:
            options = {"samples": 6, "window": 3, "stop": "exact"}
            return await order_and_solve(
                app,
                "What is 6 times 7?",
                "self_consistency",
                options=options,
                budget=budget,
                participants=Participants(model=server.model, price="1/1"),
            )

    with ModelServer(reply=Votes(), samples=samples) as server:
        return asyncio.run(work(server)), server.stats()


def test_a_whole_vote_takes_a_request_for_each_window_and_comes_out_the_same() -> None:
    (with_n, few), (without, many) = vote("served"), vote("ignored")
    assert with_n.answer == without.answer == "42"
    for name in ("votes", "samples_used", "samples_saved", "confidence"):
        assert with_n.details[name] == without.details[name]
    drawn = with_n.details["samples_used"]
    assert drawn == few["samples"] == many["samples"] == 6
    assert (with_n.usage.calls, few["requests"]) == (2, 2)
    assert (without.usage.calls, many["requests"]) == (6, 6)
    assert few["prompt_tokens"] * 3 == many["prompt_tokens"]
    assert with_n.usage.input_tokens == few["prompt_tokens"]
    assert with_n.usage.output_tokens == few["completion_tokens"] == many["completion_tokens"]


def test_a_whole_vote_with_a_server_that_refuses_n_costs_one_request_more() -> None:
    result, stats = vote("refused")
    assert (result.answer, result.details["samples_used"], stats["failed"]) == ("42", 6, 1)
    assert result.usage.calls == stats["requests"] == 7


@pytest.mark.parametrize("samples", ["served", "ignored", "refused"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_of_calls_holds_at_the_server(samples: str, limit: int) -> None:
    result, stats = vote(samples, Budget(calls=limit))
    assert stats["requests"] == result.usage.calls <= limit


@pytest.mark.parametrize("budget", [Budget(tokens=1_000_000), Budget(usd=100)])
def test_under_a_limit_the_first_sample_shows_what_one_takes_and_the_others_share_requests(
    budget: Budget,
) -> None:
    result, stats = vote("served", budget)
    assert (result.status, stats["samples"], stats["requests"]) == ("done", 6, 3)
    assert result.usage.calls == stats["requests"]
    assert result.usage.tokens == stats["prompt_tokens"] + stats["completion_tokens"]
