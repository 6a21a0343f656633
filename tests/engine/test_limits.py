"""Limits are hard: under concurrency, over HTTP, through crashes, stops and changes of limits."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Event, Stopped, Usage
from reasonry.core.pending import Pending
from reasonry.engine.budget_guard import LEAST_ROOM
from reasonry.engine.calls import Calls
from reasonry.engine.coach import Coach
from reasonry.engine.control import Control
from reasonry.engine.drive import drive_run
from reasonry.engine.engine import Engine
from reasonry.engine.in_flight import InFlight
from reasonry.engine.journal import TermsChanged
from reasonry.engine.policy import Performers, Policy
from reasonry.engine.ports import OnText, Question
from reasonry.engine.rate_limits import RateLimits
from reasonry.engine.result import Result
from reasonry.errors import ModelError
from reasonry.models.openai_compatible import OpenAICompatibleModel
from reasonry.records import Line
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies.self_consistency import SELF_CONSISTENCY
from tests.servers import ModelServer, ServerProcess

from .answering import order
from .crashing import ALL, Job, perform
from .playing import LOOP, STRATEGIES, CountingModel, by
from .running import accept, drive, order_and_solve, resume, trace_of

pytestmark = pytest.mark.anyio


async def solved(server: ModelServer, budget: Budget, width: int = 30, steps: int = 1) -> Result:
    # Each sample is a request of its own here.
    model = OpenAICompatibleModel(server.url, "test-model", takes_n=False)
    policy = Policy(max_concurrency=30)
    async with App("memory", policy, strategies=ALL) as app:
        options = {"steps": steps, "width": width}
        result = await order_and_solve(app, "count", LOOP, options=options, budget=budget, model=model)
    await model.close()
    return result


async def test_of_thirty_calls_wanted_at_once_ten_are_sent_and_answered() -> None:
    with ModelServer(latency_ms=500) as server:
        result = await solved(server, Budget(calls=10))
        stats = server.stats()
    assert (stats["requests"], stats["answered"], result.usage.calls) == (10, 10, 10)
    assert stats["max_inflight"] == 10
    assert (result.status, result.termination.reason) == ("failed", "max_calls")


async def test_a_limit_between_two_rounds_ends_with_the_best_so_far() -> None:
    with ModelServer() as server:
        result = await solved(server, Budget(calls=10), width=4, steps=5)
        assert server.stats()["requests"] == result.usage.calls == 10
    assert (result.status, result.termination.reason) == ("done", "max_calls")
    assert (result.outcome, result.answer) == ("stopped", None)
    assert result.best_answer


async def test_tokens_over_http_are_used_up_and_never_passed() -> None:
    with ModelServer(latency_ms=5) as server:
        one = await solved(server, Budget(), width=1)
        server.reset()
        limit = int(10.5 * one.usage.tokens)
        result = await solved(server, Budget(tokens=limit))
        stats = server.stats()
    assert stats["requests"] == result.usage.calls
    assert result.usage.tokens == stats["prompt_tokens"] + stats["completion_tokens"]
    assert limit - one.usage.tokens - LEAST_ROOM < result.usage.tokens <= limit
    assert result.termination.reason == "max_tokens"


# -- through crashes


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(samples="ignored") as server:
        yield server


def killed_on_and_on(job: Job, rng: random.Random) -> tuple[dict[str, Any], int]:
    """Kill a run, kill it again when it is resumed, and so on; return its result and how often it was killed."""
    kills = 0
    while True:
        # Ten commits come at least, for the run and its calls; those of answers may be one, on a busy machine.
        kill = None if kills > 5 else (rng.randint(2, 14 if kills else 10), rng.choice(["before", "after"]))
        told = perform(replace(job, kill=kill))
        if told["signal"] == 0:
            return told["result"], kills
        kills += 1
        job = replace(job, run_id=job.run_id or only_run(job.path))


def only_run(path: str) -> str:
    async def work() -> str:
        async with App(path, strategies=ALL) as app:
            return (await app.store.runs())[0].run_id

    return asyncio.run(work())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_however_often_a_run_is_killed_its_limit_of_ten_calls_holds(
    server: ServerProcess, folder: Path, seed: int
) -> None:
    server.reset(latency_ms=3)
    rng = random.Random(seed)
    job = Job(path=str(folder / "s.db"), model=server.model, options={"steps": 1, "width": 30},
              budget=Budget(calls=10), max_concurrency=rng.choice([3, 30]))  # fmt: skip
    result, kills = killed_on_and_on(job, rng)
    assert kills > 0
    assert server.stats()["requests"] <= 10
    assert (result["termination"]["reason"], result["usage"]["calls"]) == ("max_calls", 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_however_often_a_run_is_killed_lost_answers_count_against_its_tokens(
    server: ServerProcess, folder: Path, seed: int
) -> None:
    server.reset()
    options = {"steps": 1, "width": 1}
    first = perform(Job(path=str(folder / "one.db"), model=server.model, options=options))["result"]
    tokens = first["usage"]["input_tokens"] + first["usage"]["output_tokens"]
    server.reset(latency_ms=3)
    job = Job(path=str(folder / "s.db"), model=server.model, options={"steps": 1, "width": 30},
              budget=Budget(tokens=int(10.5 * tokens)))  # fmt: skip
    result, kills = killed_on_and_on(job, random.Random(seed))
    assert kills > 0
    assert result["termination"]["reason"] == "max_tokens"
    # What nobody has seen an answer of has no known price, so one call may be lost for nothing at each kill.
    assert server.stats()["requests"] <= 11 + kills


# -- through stops and changes of limits


def engine(policy: Policy | None = None) -> Engine:
    return Engine(MemoryStore(), STRATEGIES, policy)


async def went_on(engines: Engine, run_id: str, seconds: float, model: CountingModel) -> None:
    """Drive for a while, then interrupt."""
    task = asyncio.create_task(resume(engines, run_id, Performers(model)))
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("announced", [False, True])
async def test_every_call_is_counted_once_however_often_a_run_is_interrupted(announced: bool) -> None:
    """With a limit, a call that was written down and interrupted before it went out counts all the same."""
    engines, model = engine(), CountingModel(latency_s=0.004)
    budget = Budget(calls=1000) if announced else Budget()
    run_id = await accept(engines, order(LOOP, LOOP.options(steps=40, width=3), budget))
    for number in range(4):
        await went_on(engines, run_id, 0.002 * (number + 1), model)
        unsent = (await engines.result(run_id)).usage.calls - model.calls
        assert 0 <= unsent <= (3 * (number + 1) if announced else 0)
    result = await resume(engines, run_id, Performers(model))
    assert (result.status, result.usage.calls) == ("done", model.calls + unsent)


async def test_calls_cut_without_a_limit_count_when_there_is_one() -> None:
    engines, slow, model = engine(), CountingModel(latency_s=60), CountingModel()
    run_id = await accept(engines, order(LOOP, LOOP.options(steps=1, width=30)))
    await went_on(engines, run_id, 0.02, slow)
    assert slow.calls == 8
    result = await resume(engines, run_id, Performers(model), budget=Budget(calls=10))
    assert (model.calls, result.usage.calls, result.termination.reason) == (2, 10, "max_calls")


async def test_calls_lost_in_a_crash_count_when_the_limit_changes() -> None:
    engines, model = engine(), CountingModel(latency_s=60)
    run_id = await accept(engines, order(LOOP, LOOP.options(steps=1, width=5), Budget(calls=100)))
    task = asyncio.create_task(drive(engines, run_id, Performers(model)))
    lines: list[Line] = []
    while len(lines) < 6:
        await asyncio.sleep(0.005)
        lines = (await engines.store.lines(run_id))[:6]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    # One line begins the run; five calls went out; then the process died.
    found = engine()
    await found.store.create_run(replace(await engines.store.run(run_id), status="active"), lines)
    assert (await found.result(run_id)).usage.calls == 5
    without = await resume(found, run_id, Performers(CountingModel()), budget=Budget(seconds=60))
    assert (without.status, without.usage.calls) == ("done", 10)


async def test_run_time_up_to_a_stop_counts_when_a_run_goes_on() -> None:
    engines, slow = engine(), CountingModel(latency_s=60)
    run_id = await accept(engines, order(LOOP, LOOP.options(steps=2), Budget(seconds=0.1)))
    await drive(engines, run_id, Performers(slow))
    again = await resume(engines, run_id, Performers(slow), budget=Budget(seconds=0.1))
    assert (again.termination.reason, slow.calls) == ("max_seconds", 1)
    longer = await resume(engines, run_id, Performers(slow), budget=Budget(seconds=0.2))
    assert (longer.termination.reason, slow.calls) == ("max_seconds", 2)
    assert 150 <= longer.duration_ms < 1000


async def test_an_answer_that_has_come_in_is_kept_when_the_run_is_stopped() -> None:
    # The second answer comes in while the first one is being written down, and the interruption comes then too.
    class SlowStore(MemoryStore):
        async def append(self, *given: Any, **named: Any) -> None:
            await asyncio.sleep(0.3)
            await super().append(*given)

    engines = Engine(SlowStore(), STRATEGIES)
    run_id = await accept(engines, order(LOOP, LOOP.options(steps=1, width=3)))
    model = Staggered()
    task = asyncio.create_task(drive(engines, run_id, Performers(model)))
    await model.has_second.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    trace = await trace_of(engines, run_id)
    assert trace["status"] == "cancelled"
    assert [one["reply"] is not None for one in trace["questions"]] == [True, True, False]
    assert trace["usage"]["calls"] == 3


class Staggered(CountingModel):
    """Answers the first call at once, the second soon, the others never."""

    def __init__(self) -> None:
        super().__init__()
        self.has_second = asyncio.Event()

    async def answer(self, question: Any, on_text: Any = None) -> Any:
        number = self.calls
        self.latency_s = [0.001, 0.05, 60][min(number, 2)]
        answer = await super().answer(question, on_text)
        if number == 1:
            self.has_second.set()
        return answer


async def test_dollars_of_lost_answers_count_through_a_crash() -> None:
    price = Usage(usd=0.1)
    engines, model = engine(), CountingModel(latency_s=0.002, usage=price)
    run_id = await accept(engines, order(LOOP, LOOP.options(steps=1, width=30), Budget(usd=1.05)))
    await drive(engines, run_id, Performers(model))
    assert model.calls == 11
    lines = await engines.store.lines(run_id)
    row = replace(await engines.store.run(run_id), status="active")
    for count in range(1, len(lines) - 1):
        found, later = engine(), CountingModel(usage=price)
        await found.store.create_run(row, lines[:count])
        run = (await found.read(run_id)).run
        sent = run.usage.calls
        result = await resume(found, run_id, Performers(later))
        nothing_known = not run.events
        assert sent + later.calls <= 11 + nothing_known
        assert result.termination.reason == "max_usd"


async def test_a_failed_call_is_no_measure_of_what_the_next_ones_cost() -> None:
    model = CountingModel(
        latency_s=0.002,
        usage=Usage(output_tokens=30),
        fault=lambda number: ModelError("busy", retryable=True) if number == 1 else None,
    )
    engines = engine(Policy(max_concurrency=30, backoff_s=0.001))
    run_id = await accept(engines, order(LOOP, LOOP.options(steps=1, width=30), Budget(tokens=40)))
    result = await drive(engines, run_id, Performers(model))
    assert (model.calls, result.usage.calls, result.usage.tokens) == (2, 2, 30)


@pytest.mark.parametrize(("calls", "stop"), [(1, "beta"), (3, "beta"), (9, "exact"), (19, "full")])
@pytest.mark.parametrize("coached", [False, True])
async def test_every_sample_that_was_paid_for_votes_at_a_limit_and_none_twice_afterwards(
    calls: int, stop: str, coached: bool
) -> None:
    voting, seven = SELF_CONSISTENCY, lambda _: '{"answer": "7"}'
    engines = Engine(MemoryStore(), {voting.name: voting})
    wanted = order(voting, msgspec.convert({"stop": stop}, voting.options), Budget(calls=calls))
    run_id = await accept(engines, wanted)
    if coached:
        nobody, model = Performers(CountingModel()), "caller"
        shown = await Coach(engines).answer(run_id, (), by(nobody))
        while shown["status"] == "active":
            answer = {"id": shown["questions"][0]["id"], "answer": {"answer": "7"}}
            shown = await Coach(engines).answer(run_id, [answer], by(nobody))
        document = shown["result"]
    else:
        model = CountingModel(reply=seven)
        document = (await drive(engines, run_id, Performers(model))).document()
    assert (document["outcome"], document["answer"]) == ("answered", "7")
    assert document["termination"]["reason"] == "max_calls"
    assert document["warnings"][0].startswith("answered from what was known by then: reached the limit of")
    assert (document["samples_used"], document["votes"]) == (calls, [{"answer": "7", "count": calls}])
    with_more = CountingModel(reply=seven)
    after = (await resume(engines, run_id, Performers(with_more), budget=Budget())).document()
    alone = await accept(engines, order(voting, msgspec.convert({"stop": stop}, voting.options)))
    never_stopped = (await drive(engines, alone, Performers(CountingModel(reply=seven)))).document()
    assert after["votes"] == never_stopped["votes"]
    assert calls + with_more.calls == after["samples_used"]


async def test_a_first_call_is_recorded_with_its_run_and_withdrawn_if_it_does_not_go_out() -> None:
    engine, model = Engine(MemoryStore(), STRATEGIES), CountingModel()
    for budget, drains, calls in (
        (Budget(calls=9), False, 1),
        (Budget(tokens=1), False, 0),
        (Budget(calls=9), True, 0),
    ):
        run_id, opened = await engine.accept(order(LOOP, LOOP.options(steps=1), budget), drive=True)
        assert len(await engine.store.lines(run_id)) == 2
        control = Control()
        if drains:
            control.drain()
        async with engine.open(run_id, opened) as driven:
            result = await drive_run(driven, Performers(model), control=control)
        assert (result.usage.calls, model.calls) == (calls, 1)
        assert (await engine.result(run_id)).usage.calls == calls
    assert (await resume(engine, run_id, Performers(model))).usage.calls == 1


async def test_a_first_call_that_waits_for_its_rate_counts_only_once_it_goes_out() -> None:
    engine, model = Engine(MemoryStore(), STRATEGIES, Policy(rates=RateLimits(requests=1))), CountingModel()
    used = list[int]()
    for waits in (False, True):
        accepted = await engine.accept(order(LOOP, LOOP.options(steps=1), Budget(calls=1)), drive=True)
        async with engine.open(*accepted) as opened:
            driving = asyncio.create_task(drive_run(opened, Performers(model)))
            while waits and len(await engine.store.lines(accepted.run_id)) < 3:
                await asyncio.sleep(0.01)
            if waits:
                await engine.command(accepted.run_id, Stopped("cancelled", ""))
            await driving
        used.append((await engine.result(accepted.run_id)).usage.calls)
    assert (used, model.calls) == ([1, 0], 1)


class SlowToIntend(MemoryStore):
    """Is in the middle of recording a call while `held` is not set."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.held = asyncio.Event(), asyncio.Event()
        self.held.set()

    async def append(self, run_id: str, lines: Sequence[Line], *args: Any, **named: Any) -> None:
        if b'["sent"' in lines[0].body and not self.held.is_set():
            self.reached.set()
            await self.held.wait()
        await super().append(run_id, lines, *args, **named)


@pytest.mark.parametrize("drains", [False, True])
async def test_a_call_that_was_recorded_but_cut_off_before_it_went_out_does_not_count(
    drains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, model, drop = SlowToIntend(), CountingModel(), InFlight.drop

    async def cut_off_first(self: InFlight) -> list[str]:
        # `drop` cancels the tasks before it waits, so the record is only finished for a call that is cut off.
        asyncio.get_running_loop().call_soon(store.held.set)
        return await drop(self)

    monkeypatch.setattr(InFlight, "drop", cut_off_first)
    engine, control = Engine(store, STRATEGIES), Control()
    run_id = await accept(engine, order(LOOP, LOOP.options(steps=3), Budget(calls=3)))
    store.held.clear()
    async with engine.open(run_id) as opened:
        driving = asyncio.create_task(drive_run(opened, Performers(model), control=control))
        await store.reached.wait()
        control.drain(cut=True) if drains else control.cancel("enough")
        assert (await driving).usage.calls == model.calls == 0
    resumed = await resume(engine, run_id, Performers(model))
    assert (resumed.usage.calls, model.calls, resumed.status) == (3, 3, "done")


class OneByOne(CountingModel):
    """Answers each question once its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = {"e1": asyncio.Event(), "e2": asyncio.Event()}

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        answered = await super().answer(question, on_text)
        await self.gates[question.id].wait()
        return answered


async def test_a_first_call_whose_limit_is_lifted_while_it_waits_stays_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released, ask = asyncio.Event(), Calls.ask

    async def wait(self: Calls, pending: Pending, effect: Ask) -> Event:
        if pending.id == "e1":
            await released.wait()
        return await ask(self, pending, effect)

    async def until(is_so: Callable[[], bool]) -> None:
        while not is_so():
            await asyncio.sleep(0.01)

    monkeypatch.setattr(Calls, "ask", wait)
    engine, model = Engine(MemoryStore(), STRATEGIES), OneByOne()
    accepted = await engine.accept(order(LOOP, LOOP.options(steps=1, width=2), Budget(calls=9)), drive=True)
    async with engine.open(*accepted) as opened:
        driving = asyncio.create_task(drive_run(opened, Performers(model)))
        await until(lambda: model.calls == 1)
        await engine.command(accepted.run_id, TermsChanged(budget=Budget()))
        await until(lambda: opened.run.budget.calls is None)
        released.set()
        await until(lambda: model.calls == 2)
        await engine.command(accepted.run_id, TermsChanged(budget=Budget(calls=9)))
        await until(lambda: opened.run.budget.calls == 9)
        model.gates["e2"].set()
        await until(lambda: opened.run.counts.answered == 1)
        assert opened.run.usage.calls == 2
        model.gates["e1"].set()
        assert (await driving).usage.calls == 2
