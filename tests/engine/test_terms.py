"""A run that is paused, continued or given other limits at any of its events comes to the same end."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.runs import set_limits
from reasonry.core.budget import Budget
from reasonry.core.events import Answered, Stopped, Usage
from reasonry.engine.control import Control
from reasonry.engine.drive import drive_run
from reasonry.engine.engine import Engine
from reasonry.engine.journal import Entry, TermsChanged
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Performers, Policy
from reasonry.engine.ports import OnText, Question
from reasonry.engine.record import record_of
from reasonry.engine.result import Result
from reasonry.errors import ConflictError, ModelError
from reasonry.records import Line
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES as ALL

from ..playing import World
from .answering import WorldModel, order
from .playing import LOOP, STRATEGIES, CountingModel, GatedModel, turns
from .running import accept, drive, driven, resume, trace_of

pytestmark = pytest.mark.anyio

SAME = ("answer", "status", "path", "thoughts", "rounds", "termination")
SEARCH = ("tree_of_thoughts", {"max_depth": 2, "expand_width": 2, "branching_factor": 2})
VOTE = ("self_consistency", {"samples": 5})


class PacedModel(WorldModel):
    """Each answer takes its own time, so that they come in one by one."""

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        await asyncio.sleep(0.0005 * len(question.id) + 0.05 * question.ask.sample)
        return await super().answer(question, on_text)


def model() -> PacedModel:
    return PacedModel(World(3, 0.0))


async def begin(strategy: str, options: dict[str, Any], budget: Budget | None = None) -> tuple[Engine, str]:
    engine = Engine(MemoryStore(), ALL, Policy(backoff_s=0.001))
    wanted = ALL[strategy]
    return engine, await accept(engine, order(wanted, wanted.options(**options), budget))


def same(trace: dict[str, Any]) -> dict[str, Any]:
    shown = {name: trace[name] for name in SAME}
    shown["termination"] = {name: shown["termination"].get(name) for name in ("reason", "code")}
    return shown


async def command(engine: Engine, run_id: str, control: Control, entry: TermsChanged) -> bool:
    """Command a run and wake its drive; return whether the run could be commanded."""
    try:
        await engine.command(run_id, entry)
    except ConflictError:
        return False
    control.wake()
    return True


class Commander(Observer):
    """Has something done to a drive once its journal has so many lines."""

    def __init__(self, at: int, wanted: TermsChanged) -> None:
        self.at, self.wanted, self.done = at, wanted, list[asyncio.Task[bool]]()
        self.control = Control()

    def note_lines(self, lines: Sequence[Line], entries: Sequence[Entry]) -> None:
        if lines[-1].seq >= self.at and not self.done:
            self.done.append(asyncio.ensure_future(self.command(self.wanted)))

    async def drive(self, engine: Engine, run_id: str, model: Any) -> Result:
        self.command = partial(command, engine, run_id, self.control)
        async with engine.open(run_id) as opened:
            return await drive_run(opened, Performers(model), self, control=self.control)


async def looping(steps: int, width: int, budget: Budget | None = None, most: int = 2) -> tuple[Engine, str]:
    engine = Engine(MemoryStore(), STRATEGIES, Policy(max_concurrency=most))
    return engine, await accept(engine, order(LOOP, LOOP.options(steps=steps, width=width), budget))


@pytest.mark.parametrize(("strategy", "options"), [SEARCH, VOTE], ids=[SEARCH[0], VOTE[0]])
async def test_pausing_at_every_event_and_going_on_gives_what_not_pausing_gives(
    strategy: str, options: dict[str, Any]
) -> None:
    engine, run_id = await begin(strategy, options)
    undisturbed = model()
    await drive(engine, run_id, Performers(undisturbed))
    whole, last = same(await trace_of(engine, run_id)), len(await engine.store.lines(run_id))
    paused = 0
    for at in range(2, last):
        engine, run_id = await begin(strategy, options)
        answering, commander = model(), Commander(at, TermsChanged(paused=True))
        result = await commander.drive(engine, run_id, answering)
        if result.status == "active":
            paused += 1
            assert result.termination.reason == "paused"
            assert (await engine.store.run(run_id)).paused
            at_rest = sum(answering.asked.values())
            await asyncio.sleep(0.003)
            assert sum(answering.asked.values()) == at_rest
            await resume(engine, run_id, Performers(answering))
        assert not (await engine.store.run(run_id)).paused
        assert same(await trace_of(engine, run_id)) == whole
        assert answering.asked == undisturbed.asked
        assert (await engine.replay(run_id))["replay"]["identical"]
    assert paused >= last // 3


async def test_limits_raised_or_lowered_at_every_event_are_kept() -> None:
    strategy, options = SEARCH
    engine, run_id = await begin(strategy, options)
    whole = await drive(engine, run_id, Performers(model()))
    for at in range(2, whole.usage.calls + 1):
        # Raised before it is met: as if there were none.
        engine, run_id = await begin(strategy, options, Budget(calls=at))
        raised = Commander(2, TermsChanged(Budget(calls=1_000)))
        result = await raised.drive(engine, run_id, model())
        assert await raised.done[0] is False or (result.answer, result.status) == (whole.answer, whole.status)
        # Lowered: no call goes out beyond it, but for those that are in flight.
        engine, run_id = await begin(strategy, options)
        answering, lowered = model(), Commander(at, TermsChanged(Budget(calls=2)))
        result = await lowered.drive(engine, run_id, answering)
        assert result.usage.calls == sum(answering.asked.values())
        assert result.status != "active"
        if result.usage.calls < whole.usage.calls:
            assert result.termination.reason == "max_calls"


async def test_seconds_given_to_a_run_under_way_hold_at_once() -> None:
    engine, run_id = await begin(*VOTE)
    async with driven(engine, run_id, CountingModel(latency_s=60)) as (control, driving):
        await asyncio.sleep(0.02)
        assert await command(engine, run_id, control, TermsChanged(Budget(seconds=0.05)))
        result = await driving
    assert result.termination.reason == "max_seconds"


@pytest.mark.parametrize("fault", ["busy", None])
async def test_a_run_at_rest_has_begun_nothing_new_and_counts_every_call(fault: str | None) -> None:
    """Also where it waits to try again."""
    faults = (lambda number: ModelError("busy", retryable=True, retry_after_s=60)) if fault else None
    busy = CountingModel(latency_s=0.01 if fault else 1, fault=faults)
    engine = Engine(MemoryStore(), ALL, Policy(max_concurrency=2))
    run_id = await accept(engine, order(ALL["self_consistency"], ALL["self_consistency"].options(samples=6)))
    async with driven(engine, run_id, busy) as (control, driving):
        await asyncio.sleep(0.015 if fault else 0.005)
        assert await command(engine, run_id, control, TermsChanged(paused=True))
        result = await driving
        assert (result.status, result.usage.calls) == ("active", busy.calls)
        assert (await engine.store.run(run_id)).calls == busy.calls
        assert busy.calls <= (6 if fault else 2)
        with pytest.raises(ConflictError):
            await engine.command(run_id, TermsChanged(paused=True))


async def test_a_new_limit_on_calls_counts_those_in_flight_before_they_are_answered() -> None:
    held, (engine, run_id) = GatedModel(), await looping(1, 6)
    async with driven(engine, run_id, held) as (control, driving):
        while held.calls < 2:
            await asyncio.sleep(0)
        assert await command(engine, run_id, control, TermsChanged(Budget(calls=3)))
        while (calls := (await engine.result(run_id)).usage.calls) < 2:
            await asyncio.sleep(0)
        held.gate.set()
        result = await driving
    assert (calls, result.termination.reason, result.usage.calls, held.calls) == (2, "max_calls", 3, 3)


async def test_a_run_cancelled_by_its_user_counts_what_was_in_flight() -> None:
    held, (engine, run_id) = GatedModel(), await looping(1, 6)
    async with driven(engine, run_id, held) as (control, driving):
        while held.calls < 2:
            await asyncio.sleep(0)
        control.cancel("enough")
        result = await driving
    assert (result.status, result.termination.detail, result.usage.calls) == ("cancelled", "enough", 2)


@pytest.mark.parametrize("after", range(24))
async def test_a_run_that_is_resumed_while_its_pause_still_comes_in_asks_for_all_that_is_open(
    after: int,
) -> None:
    """However many turns of the loop lie between the end of the first calls and the resume."""
    held = GatedModel()
    engine, run_id = await looping(1, 6)
    async with driven(engine, run_id, held) as (control, driving):
        while held.calls < 2:
            await asyncio.sleep(0)
        assert await command(engine, run_id, control, TermsChanged(paused=True))
        held.gate.set()
        await turns(after)
        await command(engine, run_id, control, TermsChanged(paused=False))
        result = await driving
    if result.status == "active":
        # The drive had ended before.
        result = await resume(engine, run_id, Performers(held))
    assert (result.status, result.usage.calls, held.calls) == ("done", 6, 6)


@pytest.mark.parametrize("after", range(24))
async def test_limits_that_are_raised_while_a_refusal_still_comes_in_hold(after: int) -> None:
    held = GatedModel(usage=Usage(input_tokens=5_000, output_tokens=5_000))
    engine, run_id = await looping(1, 6, Budget(tokens=9_000))
    async with driven(engine, run_id, held) as (control, driving):
        while held.calls < 1:
            await asyncio.sleep(0)
        held.gate.set()
        await turns(after)
        is_written = await command(engine, run_id, control, TermsChanged(Budget(tokens=1_000_000)))
        result = await driving
    if is_written:
        assert (result.status, result.usage.calls) == ("done", 6)
    else:
        assert result.termination.reason == "max_tokens"


@pytest.mark.parametrize("seed", range(40))
async def test_a_run_commanded_at_random_moments_asks_everything_once_and_ends(seed: int) -> None:
    """The moments are of the event loop, between any two states of the drive; what is in flight takes its own time."""
    chance = random.Random(seed)

    class UnevenModel(CountingModel):
        async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
            await turns(chance.randrange(30))
            return await super().answer(question, on_text)

    uneven, (engine, run_id), result = UnevenModel(), await looping(4, 10, most=3), None
    while result is None or result.status == "active":
        async with engine.open(run_id) as opened:
            await opened.reopen()
        async with driven(engine, run_id, uneven) as (control, driving):
            while not driving.done():
                await turns(chance.randrange(40))
                limits = TermsChanged(Budget(calls=chance.randrange(100, 200)))
                await command(engine, run_id, control, chance.choice([limits, TermsChanged(paused=True)]))
                await turns(chance.randrange(10))
                if chance.random() < 0.8:
                    await command(engine, run_id, control, TermsChanged(paused=False))
            result = await driving
    assert (result.outcome, result.usage.calls, uneven.calls) == ("answered", 40, 40)


async def test_a_run_ended_from_outside_keeps_a_record_that_counts_what_was_in_flight() -> None:
    held, (engine, run_id) = GatedModel(), await looping(1, 6)
    async with driven(engine, run_id, held) as (_, driving):
        while held.calls < 2:
            await asyncio.sleep(0)
        await engine.command(run_id, Stopped("cancelled", "from outside"))
        with suppress(ConflictError):
            await driving
    row, (*_, last) = await engine.store.run(run_id), (await engine.recorded_run(run_id)).entries
    recorded = record_of(last)
    assert recorded is not None
    assert (recorded.result.status, recorded.result.usage.calls, row.calls) == ("cancelled", 2, 2)
    assert (await engine.replay(run_id))["replay"]["identical"]


async def resume_soon(engine: Engine, run_id: str, performers: Performers) -> Result:
    """Resume a run as soon as whoever drove it has let it go, which comes after the drive has returned."""
    while True:
        try:
            return await resume(engine, run_id, performers)
        except ConflictError:
            await asyncio.sleep(0.02)


async def test_another_process_commands_what_is_driven_here(folder: Any) -> None:
    path = str(folder / "runs.db")
    async with (
        App(path, environ={}, strategies=STRATEGIES) as here,
        App(path, environ={}, strategies=STRATEGIES) as elsewhere,
    ):
        wanted = LOOP.options(steps=1, width=40)
        run_id = await accept(here.engine, order(LOOP, wanted, Budget(calls=1_000)))
        commanded = asyncio.Event()

        class HeldModel(CountingModel):
            async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
                if self.calls >= 5:
                    await commanded.wait()
                return await super().answer(question, on_text)

        slow = HeldModel()
        driving = asyncio.create_task(drive(here.engine, run_id, Performers(slow)))
        await set_limits(elsewhere, run_id, {"calls": 999, "thoughts": 500})
        await elsewhere.engine.command(run_id, TermsChanged(paused=True))
        commanded.set()
        result = await asyncio.wait_for(driving, 5)
        assert (result.status, result.termination.reason) == ("active", "paused")
        assert slow.calls < 40
        assert (await here.engine.recorded_run(run_id)).budget == Budget(calls=999, thoughts=500)
        ended = await resume_soon(elsewhere.engine, run_id, Performers(slow))
        assert ended.status == "done"
        assert (ended.usage.calls, slow.calls) == (40, 40)
        with pytest.raises(ConflictError, match="has ended"):
            await here.engine.command(run_id, TermsChanged(paused=True))
