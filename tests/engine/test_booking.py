"""What a run books where usage is missing, impossible or lost, over real HTTP: the limits hold all the same."""

import asyncio
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.core.budget import Budget
from reasonry.core.events import Answered, Usage
from reasonry.engine.budget_guard import LEAST_ROOM
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Policy
from reasonry.engine.ports import OnText, Question
from reasonry.engine.result import Result
from reasonry.engine.usage import estimate_tokens
from reasonry.errors import ModelError
from tests.servers import Fault, ModelServer

from .crashing import ALL
from .playing import LOOP, CountingModel
from .running import accept, drive, order_and_solve, request_of, trace_of

pytestmark = pytest.mark.anyio

WORDS = "and so the story goes on and on without an end that anybody could see " * 10
BROKEN = (
    "no_usage", "null_usage", "negative_usage", "text_usage", "list_usage", "huge_usage", "tiny_usage", "absurd_usage"
)  # fmt: skip


class Listening(Observer):
    wants_text = True


def app(**policy: Any) -> App:
    return App("memory", Policy(backoff_s=0.001, **policy), strategies=ALL)


async def release(server: ModelServer) -> None:
    """Wait until the server has noticed whom it lost."""
    async with asyncio.timeout(5):
        while server.stats()["inflight"]:
            await asyncio.sleep(0.005)


async def solved(
    one: App, model: Any, budget: Budget, observer: Observer | None = None, **options: int
) -> Result:
    return await order_and_solve(
        one, "count", LOOP, observer=observer, options=options, budget=budget, model=model
    )


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("observer", [None, Listening()], ids=["whole", "streamed"])
async def test_a_limit_on_tokens_holds_whatever_the_provider_says(kind: Any, observer: Any) -> None:
    each = estimate_tokens("count 0") + estimate_tokens(WORDS)
    with ModelServer(replies=(WORDS,) * 20, faults=(Fault(kind=kind),)) as server:
        async with app() as one:
            result = await solved(one, server.model, Budget(tokens=int(3.5 * each)), observer, steps=20)
            replayed = await one.engine.replay(result.run_id)
        assert server.stats()["requests"] == result.usage.calls == 4
    assert result.termination.reason == "max_tokens"
    assert 3 * each <= result.usage.tokens <= 4 * each + 4
    (warning,) = result.warnings
    assert warning.startswith(f"{result.usage.tokens:,} of the {result.usage.tokens:,} tokens are estimates")
    assert result.document()["warnings"] == [warning]
    assert replayed["usage"] == result.document()["usage"], "what was booked is in the journal"
    assert replayed["warnings"] == [warning]


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("observer", [None, Listening()], ids=["whole", "streamed"])
async def test_what_came_is_booked_whole_before_surplus_choices_are_dropped(
    width: int, observer: Any
) -> None:
    with ModelServer(replies=(WORDS,) * 100, faults=(Fault(kind="surplus_choices"),)) as server:
        async with app() as one:
            result = await solved(one, server.model, Budget(), observer, steps=1, width=width)
        stats = server.stats()
    assert stats["samples"] >= 40
    assert result.usage.output_tokens == stats["completion_tokens"] > 40 * 100
    assert result.usage.input_tokens == stats["prompt_tokens"]
    assert result.warnings == ()


class Generous(CountingModel):
    """Gives more samples than it is asked for."""

    takes_n = True

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        return [await self.answer(question) for _ in range(samples + 7)]


async def test_surplus_samples_of_a_program_s_own_model_are_booked_too() -> None:
    model = Generous(usage=Usage(output_tokens=100, usd=0.5))
    async with app() as one:
        result = await solved(one, model, Budget(), steps=1, width=3)
    assert (result.usage.output_tokens, result.usage.usd) == (1_000, 5.0)
    assert (result.usage.calls, result.usage.samples) == (3, 10)


@pytest.mark.parametrize("kind", ["late_break", "half_body", "invalid_body"])
@pytest.mark.parametrize("observer", [None, Listening()], ids=["whole", "streamed"])
async def test_each_attempt_that_broke_off_is_booked(kind: Any, observer: Any) -> None:
    with ModelServer(replies=(WORDS,) * 4, faults=(Fault(kind=kind, first=2),)) as server:
        async with app() as one:
            result = await solved(one, server.model, Budget(), observer, steps=1)
            trace = await trace_of(one.engine, result.run_id)
    assert (result.status, result.usage.calls) == ("done", 3)
    asked, came = estimate_tokens("count 0"), estimate_tokens(WORDS)
    honest = Usage(output_tokens=estimate_tokens(WORDS))
    assert result.usage.input_tokens >= 2 * asked + 1
    assert result.usage.output_tokens >= honest.output_tokens / 2 + 2 * came * 0.4
    assert result.usage.estimated_tokens > 0
    assert result.usage.estimated_tokens < result.usage.tokens, "the last answer stated its usage"
    assert len(result.warnings) == 1
    assert trace["events"][0]["usage"]["estimated_tokens"] == result.usage.estimated_tokens


async def test_refused_requests_are_calls_and_nothing_else() -> None:
    with ModelServer(faults=(Fault(kind="server_error", retry_after="0"),)) as server:
        async with app() as one:
            result = await solved(one, server.model, Budget(tokens=1_000), steps=1)
    assert result.usage == Usage(calls=4)
    assert result.warnings == ()


@pytest.mark.parametrize(
    ("budget", "model", "reason"),
    [(Budget(tokens=150), "test-model", "max_tokens"), (Budget(usd=0.0004), "gpt-5-mini", "max_usd")],
)
async def test_a_stream_is_cut_when_its_estimate_passes_the_limit(
    budget: Budget, model: str, reason: str
) -> None:
    with ModelServer(replies=(WORDS * 20, "42"), chunk_ms=1, models=(model,)) as server:
        async with app() as one:
            result = await solved(one, server.model, budget, Listening(), steps=1)
            read = await one.engine.result(result.run_id)
            await release(server)
            stats = server.stats()
            later = await one.resume(
                result.run_id, budget=Budget(tokens=100_000, usd=1.0 if budget.usd else None)
            )
    assert (result.termination.reason, result.answer) == (reason, None)
    assert "cut off" in result.termination.detail
    assert (stats["requests"], stats["abandoned"], result.usage.calls) == (1, 1, 1)
    if budget.tokens:
        assert budget.tokens < result.usage.tokens < budget.tokens + 100
    else:
        assert budget.usd is not None
        assert result.usage.usd is not None
        assert budget.usd < result.usage.usd < 1.5 * budget.usd
    assert len(result.warnings) == 1
    assert (read.usage, read.warnings) == (result.usage, result.warnings), "what was booked is in the journal"
    assert (later.answer, later.usage.calls) == ("42", 2)
    assert later.usage.tokens > result.usage.tokens


async def test_streams_side_by_side_are_cut_together() -> None:
    story = " ".join(f"and the year {number} went by" for number in range(600))
    with ModelServer(replies=("hm hm hm hm", *((story,) * 3)), chunk_ms=2) as server:
        async with app() as one:
            options = {"steps": 2, "width": 2}
            result = await solved(one, server.model, Budget(tokens=2_000), Listening(), **options)
        await release(server)
    assert result.termination.reason == "max_tokens"
    assert 2_000 < result.usage.tokens < 2_400, result.usage


class Thinker:
    """Streams thoughts that are not shown, without end."""

    name = "thinker"

    def __init__(self) -> None:
        self.pieces = 0

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        assert question.on_hidden is not None
        for _ in range(10_000):
            await asyncio.sleep(0)
            self.pieces += 1
            question.on_hidden("hm, let me see ")
        return Answered("42")

    async def close(self) -> None:
        pass


async def test_reasoning_that_is_not_shown_counts_as_it_streams_in() -> None:
    model = Thinker()
    async with app() as one:
        result = await solved(one, model, Budget(tokens=500), Listening(), steps=1)
    assert result.termination.reason == "max_tokens"
    assert 500 < result.usage.tokens < 520
    assert model.pieces < 200


class Waiting(Listening):
    """Says when enough has streamed in."""

    def __init__(self, pieces: int) -> None:
        self.left, self.heard = pieces, asyncio.Event()

    def text(self, effect_id: str, piece: str) -> None:
        self.left -= 1
        if self.left == 0:
            self.heard.set()


async def test_what_came_until_a_run_was_stopped_is_booked_and_not_guessed_once_more() -> None:
    watch = Waiting(pieces=20)
    with ModelServer(replies=(WORDS * 20,), chunk_ms=5) as server:
        async with app() as one:
            chosen, performers = one.order(
                request_of("count", LOOP, options={"steps": 1}, model=server.model)
            )
            run_id = await accept(one.engine, chosen)
            driving = asyncio.create_task(drive(one.engine, run_id, performers, watch))
            await watch.heard.wait()
            driving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await driving
            result = await one.engine.result(run_id)
            run = (await one.engine.read(run_id)).run
    assert (result.status, result.usage.calls) == ("cancelled", 1)
    assert 20 * 5 / 4 < result.usage.output_tokens < estimate_tokens(WORDS * 20)
    assert result.usage.estimated_tokens == result.usage.tokens
    assert run.ledger.spent.tokens == result.usage.tokens


async def test_a_call_that_is_not_answered_in_time_has_cost_its_prompt() -> None:
    with ModelServer(faults=(Fault(kind="hang"),)) as server:
        async with app(call_timeout_s=0.05, max_attempts=2) as one:
            result = await solved(one, server.model, Budget(), steps=1)
    assert result.termination.code == "provider_timeout"
    assert (result.usage.calls, result.usage.tokens) == (2, 2 * estimate_tokens("count 0"))


async def test_a_program_s_own_model_may_keep_its_usage_to_itself_where_no_limit_depends_on_it() -> None:
    async with app() as one:
        free = await solved(one, CountingModel(), Budget(calls=50), steps=20)
        limited = await solved(one, CountingModel(), Budget(tokens=50), steps=20)
        wrong = await solved(
            one, CountingModel(usage=Usage(input_tokens=-1_000)), Budget(tokens=50), steps=20
        )
    assert (free.termination.reason, free.usage, free.warnings) == ("success", Usage(calls=20), ())
    for result in (limited, wrong):
        assert result.termination.reason == "max_tokens"
        assert 50 - 2 * LEAST_ROOM < result.usage.tokens <= 50
        assert len(result.warnings) == 1


async def test_a_failure_of_a_program_s_own_model_costs_what_was_heard_of_it() -> None:
    class Breaking(CountingModel):
        async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
            if on_text is not None:
                on_text(WORDS)
            raise ModelError("broke off", retryable=True)

    async with app() as one:
        result = await solved(one, Breaking(), Budget(tokens=10_000), Listening(), steps=1)
    assert result.usage.output_tokens == 4 * estimate_tokens(WORDS)
