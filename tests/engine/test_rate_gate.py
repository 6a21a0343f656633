"""A provider's rate limit is not a failure: its gate closes, opens for one call first, and no attempt is used up."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Failed
from reasonry.engine import journal, rate_limits
from reasonry.engine.budget_guard import BudgetExhausted
from reasonry.engine.drive import drive_run
from reasonry.engine.journal import CallIntended
from reasonry.engine.policy import Policy
from reasonry.engine.ports import OnText, Question
from reasonry.engine.rate_limits import gate_of
from reasonry.errors import ModelError
from reasonry.records import JobOptions
from reasonry.supervisor import Supervisor

from .playing import CountingModel
from .running import request_of
from .test_calls import ask, calls

pytestmark = pytest.mark.anyio

CALL = object()
FAST = Policy(max_attempts=2, backoff_s=0.0001, max_backoff_s=0.001)


def limited(wait_s: float | None = None) -> ModelError:
    return ModelError("slow down", code="rate_limited", retryable=True, retry_after_s=wait_s)


def overloaded(wait_s: float | None) -> ModelError:
    return ModelError("overloaded", retryable=True, retry_after_s=wait_s, status=503)


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock of the gates that a test sets forward."""
    clock = SimpleNamespace(ahead_s=0.0)
    clock.monotonic = lambda: time.monotonic() + clock.ahead_s
    monkeypatch.setattr(rate_limits, "time", clock)
    monkeypatch.setattr("reasonry.engine.calls.time", clock)
    return clock


def close(gate: rate_limits.Gate, wait_s: float | None) -> None:
    gate.close(wait_s, Policy().longest_pause_s)


class Door:
    """A model that refuses each call while it is shut, and else answers once it is told to."""

    name = "door"

    def __init__(self) -> None:
        self.shut, self.calls, self.answering = True, 0, 0
        self.may_answer, self.asked = asyncio.Event(), asyncio.Event()

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        self.calls += 1
        await asyncio.sleep(0)
        if self.shut:
            raise limited()
        self.answering += 1
        self.asked.set()
        await self.may_answer.wait()
        return Answered("yes", model=self.name)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("refusal", [limited(), limited(0.0), overloaded(0.0), overloaded(None)])
async def test_a_refusal_for_the_rate_is_neither_an_attempt_nor_a_call(refusal: ModelError) -> None:
    model = CountingModel(fault=lambda number: refusal if number <= 9 else None)
    (answer,) = await ask(calls(model, FAST), Ask("?"))
    # An overload without a wait is an attempt.
    is_attempt = refusal.code != "rate_limited" and refusal.retry_after_s is None
    assert isinstance(answer, Failed if is_attempt else Answered)
    assert (answer.usage.calls, len(answer.tried), model.calls) == ((2, 1, 2) if is_attempt else (1, 9, 10))


async def test_the_limit_on_calls_counts_no_refusal_for_the_rate() -> None:
    model = CountingModel(
        fault=lambda number: limited(0.0) if number <= 3 else None, reply=lambda _: "Answer: 7"
    )
    async with App("memory", environ={}, policy=FAST) as app:
        request = request_of("?", "chain_of_thought", budget=Budget(calls=1), model=model)
        result = await app.solve(*app.order(request))
        assert (result.outcome, result.answer, result.usage.calls, model.calls) == ("answered", "7", 1, 4)
        assert (await app.store.run(result.run_id)).calls == 1
        entries, _ = journal.read(result.run_id, await app.store.lines(result.run_id))
        intended = [entry.refused for entry in entries if isinstance(entry, CallIntended)]
        assert intended == [False, True, False, True, False, True, False]


async def test_one_refusal_stops_the_calls_of_all_runs_and_one_call_goes_first() -> None:
    model = Door()
    runs = [
        asyncio.create_task(ask(calls(model, FAST), *(Ask(f"{run} {n}") for n in range(8))))
        for run in range(4)
    ]
    while gate_of(model.name).is_open:
        await asyncio.sleep(0)
    model.shut = False
    await model.asked.wait()
    # All others have had time to come through.
    await asyncio.sleep(0.05)
    assert model.answering == 1
    model.may_answer.set()
    answers = [answer for answers in await asyncio.gather(*runs) for answer in answers]
    assert [type(answer) for answer in answers] == [Answered] * 32
    assert model.answering == 32


@pytest.mark.parametrize("turns", range(16))
async def test_a_call_that_is_cancelled_in_any_turn_keeps_no_place_at_the_gate(turns: int) -> None:
    model = Door()
    model.shut = False
    gate_of(model.name).close(0.0, lambda refusals: 0.0)
    first = asyncio.create_task(ask(calls(model, FAST), Ask("first")))
    for _ in range(turns):
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    model.may_answer.set()
    async with asyncio.timeout(30):
        (answer,) = await ask(calls(model, FAST), Ask("second"))
    assert isinstance(answer, Answered)


async def test_what_waited_for_a_slot_does_not_go_out_into_a_closed_gate() -> None:
    model = CountingModel(fault=lambda number: limited(600.0) if number > 3 else None)
    desk = calls(model, Policy(max_concurrency=4), Budget(seconds=60))
    answers = await ask(desk, *(Ask("?", sample=number) for number in range(30)))
    assert sum(isinstance(answer, Answered) for answer in answers) == 3
    ended = [answer.refusal.reason for answer in answers if isinstance(answer, BudgetExhausted)]
    assert ended == ["rate_limited"] * 27
    assert model.calls <= 3 + 4


@pytest.mark.parametrize(
    ("told_s", "waits_s"),
    [(2.0, 2.0), (900.0, 900.0), (901.0, 60.0), (-1.0, 60.0), (float("nan"), 60.0), (None, 0.5)],
)
async def test_a_wait_that_is_too_long_or_no_wait_counts_as_a_minute(
    told_s: float | None, waits_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=lambda: 1_000.0))
    for share in (1.0, 1.25):
        monkeypatch.setattr("random.uniform", lambda low, high, share=share: share)
        gate = rate_limits.Gate()
        close(gate, told_s)
        with pytest.raises(TimeoutError):
            await gate.enter(CALL, 1_000.0 + waits_s * share, lambda pause_s: None)
        told = list[float]()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await gate.enter(CALL, 1_000.1 + waits_s * share, told.append)
        assert told == [pytest.approx(waits_s * share)]


async def test_each_refusal_in_a_row_closes_for_longer_but_those_of_one_moment_count_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(rate_limits, "time", clock)
    monkeypatch.setattr("random.uniform", lambda low, high: 1.0)
    gate, told = rate_limits.Gate(), list[float]()

    async def look() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await gate.enter(CALL, 900.0, told.append)

    for _ in range(20):
        close(gate, None)
    await look()
    for _ in range(2):
        now = clock.monotonic() + told[-1]
        clock.monotonic = lambda now=now: now
        await gate.enter(CALL, 900.0, told.append)
        gate.check(CALL)  # The gate counts it.
        close(gate, None)
        gate.leave(CALL, came_through=False)
        await look()
    assert told == [0.5, 1.0, 2.0]


class Recovering(CountingModel):
    """Refuses its first call, with a wait of ten minutes."""

    def __init__(self, refusals: int = 1) -> None:
        super().__init__(
            fault=lambda number: limited(600.0) if number <= refusals else None, reply=lambda _: "Answer: 7"
        )


@pytest.mark.parametrize("seconds", [60, None])
async def test_a_run_waits_within_its_seconds_then_ends_as_rate_limited_and_can_be_resumed(
    seconds: float | None, passing: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seconds is None:
        monkeypatch.setattr("reasonry.engine.calls.MOST_WAIT_S", 300.0)
    model = Recovering()
    async with App("memory", environ={}) as app:
        request = request_of("?", "chain_of_thought", budget=Budget(calls=1, seconds=seconds), model=model)
        result = await app.solve(*app.order(request))
        ended = result.outcome, result.status, result.termination.reason
        assert ended == ("stopped", "failed", "rate_limited")
        assert result.termination.detail == "counting takes no more calls for now; resume the run later"
        assert (await app.store.run(result.run_id)).reason == "rate_limited"
        passing.ahead_s = 800.0
        async with app.engine.open(result.run_id) as opened:
            resumed = await drive_run(opened, await app.reopen(opened, Participants(model=model)))
        assert (resumed.outcome, resumed.answer, model.calls) == ("answered", "7", 2)


async def test_a_job_goes_back_to_the_queue(
    passing: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("procrastinate")
    from reasonry.queues import Later, perform_job

    model = Recovering()
    monkeypatch.setattr("reasonry.models.choose.open_model", lambda *_, **__: model)
    async with App("memory", environ={}) as app:
        request = request_of("?", "chain_of_thought", budget=Budget(calls=1, seconds=60), model=model)
        order, _ = app.order(request)
        run_id = (await app.engine.accept(order, job=JobOptions())).run_id
        supervisor = Supervisor(app)
        with pytest.raises(Later, match="no more calls for now"):
            await perform_job(supervisor, run_id)
        row = await app.store.run(run_id)
        assert (row.status, row.outcome, row.paused) == ("active", None, False)
        assert await app.store.find_driven([run_id]) == set()
        passing.ahead_s = 800.0
        await perform_job(supervisor, run_id)
        assert (await app.engine.result(run_id)).answer == "7"
        assert model.calls == 2
