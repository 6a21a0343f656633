"""Calls to models: attempts, one flight for equal questions, a warm cache first, spans."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from reasonry.core.budget import Budget, Ledger
from reasonry.core.effects import Ask, CallTool, Verify
from reasonry.core.events import Answered, Failed, Usage, Verified
from reasonry.core.machine import Pending
from reasonry.engine.budget_guard import BudgetExhausted, BudgetGuard
from reasonry.engine.calls import MAX_FALLBACKS, WARM_PREFIX_CHARS, Calls
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Performers, Policy
from reasonry.engine.rate_limits import RateLimits
from reasonry.errors import ModelError
from reasonry.system.masking import SECRETS

from .playing import CountingModel

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

pytestmark = pytest.mark.anyio


async def intend(_: str, refused: bool) -> None:
    pass


async def withdraw() -> None:
    pass


def calls(
    model: Any,
    policy: Policy | None = None,
    budget: Budget | None = None,
    judge: Any = None,
    watch: Observer | None = None,
) -> Calls:
    guard, policy = BudgetGuard(Ledger(budget or Budget())), policy or Policy(backoff_s=0.001)
    return Calls(Performers(model, judge), guard, policy, watch or Observer(), intend, withdraw, lambda: 7)


async def ask(desk: Calls, *asks: Ask | tuple[str, Ask]) -> list[Any]:
    named = [one if isinstance(one, tuple) else (f"e{n}", one) for n, one in enumerate(asks, 1)]
    pending = [(Pending(name, "stage", ask, 1), ask) for name, ask in named]
    return await asyncio.gather(*(desk.ask(*one) for one in pending), return_exceptions=True)


# -- one flight


async def test_equal_questions_asked_at_once_share_one_call_which_is_paid_once_and_one_asked_later_does_not() -> (
    None
):
    model = CountingModel(latency_s=0.01, usage=Usage(input_tokens=5))
    desk = calls(model)
    answers = await ask(desk, Ask("same"), Ask("same"), Ask("same"))
    assert model.calls == 1
    await ask(desk, Ask("same"))
    assert model.calls == 2
    assert [one.text for one in answers] == ["same of e1"] * 3
    assert [one.usage.calls for one in answers] == [1, 0, 0]
    assert [one.usage.input_tokens for one in answers] == [5, 0, 0]


@pytest.mark.parametrize(
    "other",
    [
        Ask("same", sample=1),
        Ask("same", temperature=0.1),
        Ask("same", system="be brief"),
        Ask("same", max_output_tokens=5),
        Ask("same", form={"type": "object"}),
        Ask("same", facts={"n": 1}),
        ("e9/e1", Ask("same")),
        Ask("same", by="judge"),
    ],
)
async def test_questions_that_differ_in_anything_or_go_to_another_model_are_asked_each(other: Any) -> None:
    model, judge = CountingModel(latency_s=0.005), CountingModel(latency_s=0.005)
    judge.name = "judge"
    await ask(calls(model, judge=judge), Ask("same"), other)
    assert model.calls + judge.calls == 2


async def test_those_who_share_a_call_share_its_failure() -> None:
    model = CountingModel(latency_s=0.005, fault=lambda n: ModelError("no key", code="provider_auth"))
    answers = await ask(calls(model), Ask("same"), Ask("same"))
    assert [type(one) for one in answers] == [Failed, Failed]
    assert [one.usage.calls for one in answers] == [1, 0]
    refused = await ask(calls(model, budget=Budget(calls=1)), Ask("a"), Ask("b"), Ask("b"))
    assert [type(one) for one in refused] == [Failed, BudgetExhausted, BudgetExhausted]


# -- a warm cache


class Caching(CountingModel):
    caches_prompts = True


LONG = "x" * WARM_PREFIX_CHARS


def fan_out(prefix: str, width: int = 4) -> list[Ask]:
    return [Ask(f"{n}", system=prefix) for n in range(width)]


@pytest.mark.parametrize(
    ("kind", "wanted", "prefix", "most"),
    [
        (Caching, None, LONG, 3),
        (Caching, None, "short", 4),
        (CountingModel, None, LONG, 4),
        *((kind, True, LONG, 3) for kind in (Caching, CountingModel)),
        *((kind, False, LONG, 4) for kind in (Caching, CountingModel)),
    ],
)
async def test_the_first_of_a_fan_out_goes_alone_where_a_cache_is_to_be_warmed(
    kind: type[CountingModel], wanted: bool | None, prefix: str, most: int
) -> None:
    model = kind(latency_s=0.02)
    desk = calls(model, Policy(cache_warmup=wanted))
    await ask(desk, *fan_out(prefix))
    assert model.most_in_flight == most
    # What was warmed once is not waited for again.
    await ask(desk, *fan_out(prefix))
    assert model.most_in_flight == 4


async def test_a_first_call_that_fails_holds_nobody_up() -> None:
    model = Caching(fault=lambda n: ModelError("no", code="provider_error") if n == 1 else None)
    answers = await asyncio.wait_for(ask(calls(model), *fan_out(LONG)), 2)
    assert [type(one) for one in answers] == [Failed, Answered, Answered, Answered]


# -- attempts


async def test_retry_after_is_waited_for_and_bounded() -> None:
    waits = {1: ModelError("slow down", retryable=True, retry_after_s=0.08)}
    began = time.monotonic()
    (answer,) = await ask(calls(CountingModel(fault=waits.get)), Ask("?"))
    assert time.monotonic() - began >= 0.08
    assert answer.usage.calls == 2
    waits[1] = ModelError("slow down", retryable=True, retry_after_s=999_999)
    await ask(calls(CountingModel(fault=waits.get), Policy(max_backoff_s=0.05)), Ask("?"))


def picky(number: int) -> ModelError | None:
    """Take no request as it is, but for the fourth, which fails, and from the eighth on."""
    refusal = ModelError("not that", retryable=True, retry_after_s=0.0, degraded=number != 4)
    return refusal if number < 8 else None


def conceding(number: int) -> ModelError:
    return ModelError("no", retryable=True, retry_after_s=0.0, degraded=True)


def busy(number: int) -> ModelError:
    return ModelError("busy", code="provider_timeout", retryable=True)


@pytest.mark.parametrize(
    ("model", "attempts", "code", "sent"),
    [
        (CountingModel(fault=busy), 3, "provider_timeout", 3),
        (CountingModel(latency_s=60), 2, "provider_timeout", 2),
        (CountingModel(fault=picky), 2, None, 8),
        (CountingModel(fault=conceding), 3, "provider_error", MAX_FALLBACKS + 3),
    ],
    ids=["busy", "late", "what a server does not take is no attempt", "never content"],
)
async def test_attempts_are_bounded_and_all_counted(
    model: CountingModel, attempts: int, code: str | None, sent: int
) -> None:
    policy = Policy(call_timeout_s=0.02, max_attempts=attempts, backoff_s=0.001)
    (answer,) = await ask(calls(model, policy), Ask("?"))
    assert getattr(answer, "code", None) == code
    assert (answer.usage.calls, model.calls, model.in_flight, answer.at_ms) == (sent, sent, 0, 7)


@pytest.mark.parametrize("rates", [RateLimits(1), RateLimits(tokens=1000)], ids=["calls", "its own tokens"])
async def test_a_call_that_waits_for_its_rate_limit_has_not_been_made(rates: RateLimits) -> None:
    model = CountingModel(usage=Usage(input_tokens=900, output_tokens=100))
    desk = calls(model, Policy(rates=rates))
    await ask(desk, Ask("1"))
    waiting = asyncio.create_task(ask(desk, Ask("2")))
    await asyncio.sleep(0.02)
    assert (model.calls, dict(desk.in_flight)) == (1, {})
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert desk.guard.ledger.spent.calls == 1
    assert desk.guard.ledger.reserved.calls == 0


async def test_half_a_character_in_an_answer_is_replaced_so_that_it_can_be_kept() -> None:
    (answer,) = await ask(calls(CountingModel(reply=lambda _: "half \ud800 a char")), Ask("?"))
    assert answer.text.encode() == "half \ufffd a char".encode()


# -- other effects


class Broken:
    name = "broken"

    async def verify(self, claim: Verify) -> Verified:
        raise RuntimeError("bug in the verifier")

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        raise RuntimeError("bug in the tool")


async def test_a_verifier_or_a_tool_that_breaks_is_an_event_like_any_other() -> None:
    performers = Performers(CountingModel(), verifier=Broken(), tools=Broken())
    calls = Calls(performers, BudgetGuard(Ledger()), Policy(), Observer(), intend, withdraw, lambda: 0)
    verdict = await calls.perform(Pending("e1", "stage", Verify("p", ("a",)), 1))
    assert isinstance(verdict, Verified)
    assert verdict.verdict == "unknown"
    assert "bug in the verifier" in verdict.detail
    failed = await calls.perform(Pending("e2", "stage", CallTool("t"), 1))
    assert isinstance(failed, Failed)
    assert (failed.code, "bug in the tool" in failed.message) == ("tool_error", True)


# -- spans


async def test_each_call_is_a_span_where_an_sdk_is_set_up(spans: InMemorySpanExporter) -> None:
    from opentelemetry.trace import SpanKind, StatusCode

    usage = Usage(input_tokens=11, output_tokens=5, usd=0.25)
    model = CountingModel(usage=usage, fault={1: ModelError("busy", retryable=True)}.get)
    await ask(calls(model), Ask("SECRET", temperature=0.5))
    failed, done = spans.get_finished_spans()
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == "provider_error"
    assert done.kind is SpanKind.CLIENT
    assert done.name == "chat counting"
    assert done.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "counting",
        "gen_ai.request.model": "counting",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 5,
        "reasonry.stage": "stage",
        "reasonry.effect_id": "e1",
        "reasonry.cost_usd": 0.25,
    }
    assert "SECRET" not in str([one.to_json() for one in (failed, done)])
    assert not failed.events, "an exception would be recorded with all that a library has put into it"

    SECRETS.keep("sk-CANARY0123456789abcdef")
    broken = CountingModel(fault={1: RuntimeError("Bearer sk-CANARY0123456789abcdef")}.get)
    await ask(calls(broken), Ask("SECRET"))
    *_, span = spans.get_finished_spans()
    assert (span.attributes["error.type"], span.status.description) == ("RuntimeError", "Bearer ***")
    assert "CANARY" not in span.to_json()
