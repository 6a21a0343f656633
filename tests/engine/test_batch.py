"""Samples of one question go out as one request: how many requests, who pays, what a limit means then."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.events import NOTHING, Answered, Failed, Usage
from reasonry.core.machine import Pending
from reasonry.engine.budget_guard import LEAST_ROOM, BudgetExhausted
from reasonry.engine.calls import Calls
from reasonry.engine.control import Control
from reasonry.engine.engine import Engine
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Performers, Policy
from reasonry.engine.ports import Question
from reasonry.errors import ModelError
from reasonry.records import Line
from reasonry.stores.sqlite import MemoryStore

from .playing import LOOP, STRATEGIES, CountingModel, Loops
from .running import accept, drive, driven, order_of, trace_of
from .test_calls import ask as draw
from .test_calls import calls as calls_of

pytestmark = pytest.mark.anyio


class Sampler(CountingModel):
    """Draws several samples in one request; `gives` of them at most.

    Attributes:
        sizes: Samples asked for, request by request.
    """

    def __init__(self, gives: int = 1_000, takes_n: bool = True, **given: Any) -> None:
        super().__init__(**given)
        self.gives, self.takes_n = gives, takes_n
        self.sizes: list[int] = []

    async def answer(self, question: Question, on_text: Any = None) -> Answered:
        self.sizes.append(1)
        return await super().answer(question, on_text)

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        self.sizes.append(samples)
        first = await super().answer(question)
        other = Usage(calls=0, output_tokens=self.usage.output_tokens, usd=self.usage.usd)
        return [first, *[replace(first, usage=other)] * (min(samples, self.gives) - 1)]


def calls(model: Any, budget: Budget | None = None, watch: Observer | None = None) -> Calls:
    return calls_of(model, Policy(backoff_s=0.001, max_attempts=2), budget, watch=watch)


def samples(count: int, prompt: str = "?") -> list[Ask]:
    return [Ask(prompt, sample=number) for number in range(count)]


async def test_samples_of_one_question_go_out_as_one_request_whose_prompt_is_paid_once() -> None:
    model = Sampler(usage=Usage(input_tokens=100, output_tokens=7))
    desk = calls(model)
    answers = await draw(desk, *samples(5))
    assert model.sizes == [5]
    assert all(isinstance(one, Answered) and one.at_ms == 7 for one in answers)
    total = sum((one.usage for one in answers), NOTHING)
    assert (total.calls, total.input_tokens, total.output_tokens) == (1, 100, 35)
    assert desk.guard.ledger.spent == total
    assert (desk.guard.ledger.reserved.calls, desk.guard.ledger.reserved.tokens) == (0, 0)
    assert dict(desk.in_flight) == {}


@pytest.mark.parametrize("watched", [False, True])
async def test_different_questions_share_nothing_whether_or_not_somebody_watches_the_text(
    watched: bool,
) -> None:
    model, watch = Sampler(), Observer()
    watch.wants_text = watched
    await draw(calls(model, watch=watch), *samples(2, "a"), *samples(3, "b"), Ask("c"))
    assert sorted(model.sizes) == [1, 2, 3]


async def test_runs_inside_the_run_draw_samples_of_an_equal_question_from_one_request() -> None:
    model = Sampler()
    desk = calls(model)
    pending = [Pending(f"e{number}/e1", "stage", Ask("?"), 1) for number in range(3)]
    answers = await asyncio.gather(*(desk.ask(one, Ask("?")) for one in pending))
    assert (model.sizes, [one.usage.calls for one in answers]) == ([3], [1, 0, 0])


async def test_a_single_question_waits_one_turn_of_the_loop_at_most() -> None:
    model = Sampler()
    task = asyncio.create_task(calls(model).ask(Pending("e1", "stage", Ask("?"), 1), Ask("?")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert model.sizes == [1]
    await task


class Learning(Sampler):
    """Is found to give one answer at a time."""

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        self.takes_n = False
        return (await super().answer_many(question, samples))[:1]


class Mute(Sampler):
    """Gives no answer at all to a request for several, which is a failed attempt."""

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        await super().answer_many(question, samples)
        return []


def failing(error: ModelError) -> Sampler:
    return Sampler(fault={1: error}.get)


@pytest.mark.parametrize(
    ("model", "asked", "sizes", "failed"),
    [
        (Sampler(), [*samples(2), *samples(2)], [2], 0),
        (Sampler(gives=2), samples(5), [5, 3, 1], 0),
        (Learning(latency_s=0.01), samples(5), [5, 1, 1, 1, 1], 0),
        (Sampler(takes_n=False, latency_s=0.01), samples(4), [1] * 4, 0),
        (failing(ModelError("busy", retryable=True)), samples(3), [3, 3], 0),
        (failing(ModelError("no", code="provider_error")), samples(3), [3, 1, 1], 1),
        (Mute(), samples(2), [2, 2, 1], 1),
    ],
    ids=["equal", "missing", "learning", "single", "again", "for good", "mute"],
)
async def test_what_a_request_does_not_bring_is_asked_for_again_and_each_request_counts_once(
    model: Sampler, asked: list[Ask], sizes: list[int], failed: int
) -> None:
    answers = await draw(calls(model), *asked)
    assert model.sizes == sizes
    assert [type(one) for one in answers] == [Failed] * failed + [Answered] * (len(asked) - failed)
    assert sum(one.usage.calls for one in answers) == model.calls == len(sizes)
    # Single questions go out side by side.
    assert model.most_in_flight == max(1, sizes.count(1))


@pytest.mark.parametrize("budget", [Budget(tokens=10**9), Budget(usd=10**6)])
@pytest.mark.parametrize("usd", [None, 0.01])
async def test_under_a_limit_the_first_sample_is_the_measure_and_the_others_share_a_request(
    budget: Budget, usd: float | None
) -> None:
    model = Sampler(usage=Usage(input_tokens=10, output_tokens=5, usd=usd))
    await draw(calls(model, budget), *samples(6))
    assert model.sizes == [1, 5]


async def test_a_limit_of_calls_is_hard_and_a_request_is_one_call() -> None:
    model = Sampler()
    desk = calls(model, Budget(calls=1))
    answers = await draw(desk, *samples(6))
    assert all(isinstance(one, Answered) for one in answers)
    refused = await draw(desk, *samples(2, "more"))
    assert all(isinstance(one, BudgetExhausted) for one in refused)
    assert model.calls == desk.guard.ledger.spent.calls == 1


@pytest.mark.parametrize("limit", [60, 100, 333])
async def test_a_limit_of_tokens_is_passed_by_one_sample_at_most(limit: int) -> None:
    model = Sampler(usage=Usage(input_tokens=10, output_tokens=10, usd=0.5))
    desk = calls(model, Budget(tokens=limit, usd=100))
    for number in range(20):
        await draw(desk, *samples(8, f"question {number}"))
    assert limit - LEAST_ROOM - 10 < desk.guard.ledger.spent.tokens <= limit + 20
    assert model.calls == desk.guard.ledger.spent.calls


async def test_cutting_off_a_round_leaves_one_call_in_flight() -> None:
    model = Sampler(latency_s=60)
    desk = calls(model)
    asking = asyncio.create_task(draw(desk, *samples(4)))
    await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    in_flight = sum(desk.in_flight.values(), NOTHING)
    assert (model.sizes, in_flight.calls, desk.guard.ledger.spent.calls) == ([4], 1, 1)


# -- whole runs


async def run_with(
    model: CountingModel, budget: Budget, policy: Policy | None = None
) -> tuple[Any, Any, Any]:
    engine = Engine(MemoryStore(), STRATEGIES, policy)
    order = order_of(LOOP, "p", Loops(steps=3, width=6), budget=budget)
    run_id = await accept(engine, order)
    result = await drive(engine, run_id, Performers(model))
    return result, await trace_of(engine, run_id), await engine.replay(run_id)


@pytest.mark.parametrize("budget", [Budget(), Budget(calls=3)], ids=["no limit", "as many calls as needed"])
async def test_a_run_journals_each_sample_and_counts_each_request(budget: Budget) -> None:
    model = Sampler(usage=Usage(input_tokens=10, output_tokens=2))
    # A request takes one slot, however many samples it draws.
    result, trace, replay = await run_with(model, budget, Policy(max_concurrency=1))
    assert (result.status, model.sizes) == ("done", [6, 6, 6])
    assert len(trace["events"]) == 18
    assert (result.usage.calls, result.usage.input_tokens, result.usage.output_tokens) == (3, 30, 36)
    assert replay["replay"]["identical"] is True


@pytest.mark.parametrize("turns", range(12))
async def test_the_answers_of_one_request_are_written_together_whenever_the_drive_looks(turns: int) -> None:
    """So a crash never leaves half of a request that was paid."""

    class Slow(Sampler):
        async def answer_many(self, question: Question, samples: int) -> list[Answered]:
            for _ in range(turns):
                await asyncio.sleep(0)
            return await super().answer_many(question, samples)

    class NotedStore(MemoryStore):
        async def append(self, run_id: str, lines: Sequence[Line], *more: Any, **named: Any) -> None:
            commits.append(len(lines))
            await super().append(run_id, lines, *more, **named)

    async def keep_waking(control: Control) -> None:
        while True:
            control.wake()
            await asyncio.sleep(0)

    commits, engine = list[int](), Engine(NotedStore(), STRATEGIES)
    run_id = await accept(engine, order_of(LOOP, "p", Loops(steps=3, width=6)))
    async with driven(engine, run_id, Slow()) as (control, driving):
        waking = asyncio.create_task(keep_waking(control))
        await driving
    waking.cancel()
    # The last one has the end of the run too.
    assert commits == [6, 6, 7]


async def test_a_run_cut_off_by_its_time_counts_the_request_in_flight_once() -> None:
    model = Sampler(latency_s=60)
    result, _, _ = await run_with(model, Budget(seconds=0.05))
    assert (result.termination.reason, result.usage.calls, model.sizes) == ("max_seconds", 1, [6])
