"""Runs that a supervisor has accepted come to their end, whatever is done to them or to its process."""

import asyncio
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.runs import coach_answer, continue_paused, resumable
from reasonry.core.budget import Budget
from reasonry.core.events import Usage
from reasonry.engine.engine import Accepted
from reasonry.engine.policy import Performers, Policy
from reasonry.errors import ConflictError, NotFoundError, OverloadedError, UsageError
from reasonry.records import JobOptions, Line, RequestKey, now_ms
from reasonry.stores import leases, run_rows
from reasonry.supervisor import Jobs, Supervisor
from reasonry.supervisor.deaths import MAX_DEATHS, RESTS_S
from reasonry.supervisor.run_events import Feed, FeedReader, RunEvent
from reasonry.system.masking import SECRETS

from ..engine.playing import STRATEGIES, CountingModel, GatedModel, turns
from ..engine.test_engine import order
from .test_watching import read

pytestmark = pytest.mark.anyio


def app(path: Path, **policy: Any) -> App:
    return App(str(path / "runs.db"), Policy(**policy), environ={}, strategies=STRATEGIES)


def supervising(app: App, model: CountingModel, **limits: Any) -> Supervisor:
    """Return a supervisor that takes runs up with this model."""
    app.pool._recorded_model = lambda spec, named: model  # pyright: ignore
    return Supervisor(app, **limits)


async def fork(
    supervisor: Supervisor, app: App, run_id: str, at: int, model: Any, key: RequestKey | None = None
) -> Accepted:
    source = await app.engine.recorded_run(run_id)
    order, performers = await app.order_fork(source, Participants(model=model), {}, None)
    return await supervisor.start(app, order, performers, source.fork(at), key=key)


async def test_a_paused_run_goes_on_where_it_stood_and_its_reader_sees_every_event_once(folder: Path) -> None:
    async with app(folder) as here:
        model = CountingModel(latency_s=0.005)
        supervisor = supervising(here, model)
        run_id, _ = await supervisor.start(here, order(steps=60, width=2), Performers(model))
        reading = asyncio.create_task(read(supervisor, here, run_id))
        for _ in range(3):
            await asyncio.sleep(0.005)
            await supervisor.pause(here, run_id)
            with pytest.raises(ConflictError, match="paused already"):
                await supervisor.pause(here, run_id)
            result = await supervisor.wait(here, run_id)
            assert (result.status, result.termination.reason) == ("active", "paused")
            assert not supervisor.is_driven(run_id)
            await supervisor.resume(here, run_id)
        with pytest.raises(ConflictError):
            await supervisor.resume(here, run_id)
        # Before what is in flight has come in, the same drive continues.
        await supervisor.pause(here, run_id)
        await supervisor.resume(here, run_id)
        ended = await supervisor.wait(here, run_id)
        assert (ended.status, ended.usage.calls, model.calls) == ("done", 120, 120)
        events = [event for event in await reading if event.id]
        assert [event.id for event in events] == [*range(1, len(events) + 1)]
        kinds = [event.kind for event in events]
        assert kinds.count("paused") == kinds.count("resumed") + kinds.count("continued") == 4


@pytest.mark.parametrize("after", [None, *range(0, 60, 4)])
@pytest.mark.parametrize("pauser", ["here", "there"])
async def test_a_resume_after_a_pause_holds_whatever_process_drives_the_run_and_however_far_it_is(
    folder: Path, pauser: str, after: int | None
) -> None:
    """The first calls come in so many turns of the loop before the resume; None: after it."""
    async with (
        app(folder, max_concurrency=2) as here,
        app(folder, max_concurrency=2) as there,
        asyncio.timeout(60),
    ):
        model = GatedModel()
        driving, other = supervising(here, model), supervising(there, model)
        run_id, _ = await driving.start(here, order(steps=1, width=6), Performers(model))
        while model.calls < 2:
            await asyncio.sleep(0)
        await (driving.pause(here, run_id) if pauser == "here" else other.pause(there, run_id))
        if after is not None:
            model.gate.set()
            await turns(after)
        await other.resume(there, run_id)
        assert not (await here.store.run(run_id)).paused
        model.gate.set()
        while (row := await here.store.run(run_id)).status == "active":
            await asyncio.sleep(0.005)
        assert (row.outcome, model.calls) == ("answered", 6)
        # Once it has ended, resuming it changes nothing, in whatever process.
        for supervisor, its in ((other, there), (driving, here)):
            await supervisor.resume(its, run_id)
        assert model.calls == 6


async def test_calls_in_flight_count_once_though_the_run_changes_while_they_are_written_down(
    folder: Path,
) -> None:
    async with app(folder) as here, app(folder) as there:
        model = GatedModel()
        driving, other = supervising(here, model), supervising(there, model)
        run_id, _ = await driving.start(here, order(steps=1, width=2), Performers(model))
        while model.calls < 2:
            await asyncio.sleep(0)
        append = here.store.append

        async def append_after_a_change(*arguments: Any, **named: Any) -> None:
            here.store.append = append
            await other.resume(there, run_id)
            await append(*arguments, **named)

        here.store.append = append_after_a_change  # type: ignore[method-assign]
        await other.pause(there, run_id)
        # The beginning, two changes, and two calls.
        while len(await there.store.lines(run_id)) < 5:
            await asyncio.sleep(0.005)
        model.gate.set()
        ended = await driving.wait(here, run_id)
        assert (ended.status, ended.usage.calls, model.calls) == ("done", 2, 2)


@pytest.mark.parametrize("resumed_elsewhere", [False, True])
async def test_a_run_can_be_paused_right_after_it_was_resumed(folder: Path, resumed_elsewhere: bool) -> None:
    async with app(folder) as here, app(folder) as elsewhere:
        model = GatedModel()
        supervisor = supervising(here, model)
        run_id, _ = await supervisor.start(here, order(steps=2), Performers(model))
        while not model.calls:
            await asyncio.sleep(0)
        await supervisor.pause(here, run_id)
        if resumed_elsewhere:
            assert await continue_paused(elsewhere, run_id, None, None)
        else:
            await supervisor.resume(here, run_id)
        await supervisor.pause(here, run_id)
        model.gate.set()
        result = await supervisor.wait(here, run_id)
        assert (result.status, result.termination.reason, model.calls) == ("active", "paused", 1)
        await supervisor.resume(here, run_id)
        assert (await supervisor.wait(here, run_id)).status == "done"


@pytest.mark.parametrize("after", range(0, 40, 2))
async def test_a_resume_of_a_run_that_ended_while_it_was_paused_changes_nothing(
    folder: Path, after: int
) -> None:
    async with app(folder) as here, asyncio.timeout(60):
        model = GatedModel()
        supervisor = supervising(here, model)
        run_id, _ = await supervisor.start(here, order(steps=1), Performers(model))
        while model.calls < 1:
            await asyncio.sleep(0)
        await supervisor.pause(here, run_id)
        model.gate.set()
        await turns(after)
        await supervisor.resume(here, run_id)
        result = await supervisor.wait(here, run_id)
        assert (result.status, model.calls) == ("done", 1)


async def test_a_run_at_work_elsewhere_can_be_resumed_once_it_is_let_go(folder: Path) -> None:
    async with app(folder) as here, app(folder) as there:
        model = GatedModel()
        driving, other = supervising(here, model), supervising(there, model)
        run_id, _ = await driving.start(here, order(steps=1), Performers(model))
        for supervisor, its in ((driving, here), (other, there)):
            with pytest.raises(ConflictError) as refused:
                await supervisor.resume(its, run_id)
            assert refused.value.retryable
        await driving.pause(here, run_id)
        # Another model cannot take it up before.
        with pytest.raises(ConflictError) as refused:
            await other.resume(there, run_id, Participants(model=model))
        assert refused.value.retryable
        model.gate.set()


async def die_with(here: App, run_id: str, deaths: int, ago_s: float = 0.0) -> None:
    """Have a process die while it drives a run, the last of so many, some seconds ago."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    _, host, _ = here.store._leases.holder.split(" ", 2)

    def die(tx: Any) -> None:
        key, until_ms = run_rows.key_of(tx, run_id), tx.now_ms() + round((leases.LEASE_S - ago_s) * 1_000)
        tx.execute(leases.TAKE, (key, f"{dead.pid} {host} dead", 1, until_ms, deaths - 1))

    await here.store.write(die)


@pytest.mark.parametrize("deaths", [1, 2, 3, 4])
async def test_a_run_whose_process_died_rests_the_longer_the_more_did_the_same_for_all_processes(
    folder: Path, deaths: int
) -> None:
    assert RESTS_S == (1, 10, 60, 600)
    rest_s = RESTS_S[deaths - 1]
    async with app(folder) as here:
        model = CountingModel()
        accepted = await here.engine.accept(order(steps=1), job=JobOptions())
        await die_with(here, accepted.run_id, deaths, ago_s=rest_s - 0.9)
        # Any number of processes, and none begins the rest again.
        for _ in range(MAX_DEATHS):
            with pytest.raises(ConflictError, match="retried in") as resting:
                await supervising(here, model).drive_job(accepted.run_id)
            assert resting.value.retryable
            assert (await here.store.deaths_of(accepted.run_id))[0] == deaths
        await die_with(here, accepted.run_id, deaths, ago_s=rest_s)
        ended = await supervising(here, model).drive_job(accepted.run_id)
        assert ended is not None
        assert ((await ended).status, model.calls) == ("done", 1)


async def test_a_reader_sees_a_line_whose_writer_is_cancelled(folder: Path) -> None:
    async with app(folder) as here:
        supervisor, append, intending = Supervisor(here), here.store.append, asyncio.Event()

        async def append_slowly(run_id: str, lines: list[Line], *arguments: Any, **named: Any) -> None:
            await append(run_id, lines, *arguments, **named)
            if b'"sent"' in lines[0].body:
                intending.set()
                await asyncio.sleep(0.05)

        here.store.append = append_slowly  # type: ignore[method-assign]
        run_id, _ = await supervisor.start(here, order(Budget(calls=9), steps=2), Performers(CountingModel()))
        reading = asyncio.create_task(read(supervisor, here, run_id))
        await intending.wait()
        await supervisor.cancel(here, run_id)
        events = [event for event in await asyncio.wait_for(reading, 10) if event.id]
        assert [event.id for event in events] == [*range(1, len(events) + 1)]
        assert events[-1].kind == "ended"


async def test_a_process_that_drains_leaves_jobs_that_the_next_one_brings_to_their_end(folder: Path) -> None:
    answered = CountingModel(latency_s=0.03)
    async with app(folder) as first:
        supervisor = supervising(first, answered)
        driving = asyncio.create_task(Jobs(first, supervisor, 3).take())
        runs, wanted = dict[str, str](), (order(steps=12, width=2), Performers(answered))
        for owner in ("", "ann", "ann", "bob"):
            run_id, _ = await supervisor.start(first.for_owner(owner), *wanted, job=JobOptions())
            runs[run_id] = owner
        stuck = CountingModel(latency_s=60)
        slow, _ = await supervisor.start(first, order(Budget(calls=50), steps=1), Performers(stuck))
        paused, _ = await supervisor.start(first, order(), Performers(CountingModel(latency_s=0.01)))
        await supervisor.pause(first, paused)
        async with asyncio.timeout(10):
            while sum(map(supervisor.is_driven, runs)) < 3:
                await asyncio.sleep(0.005)
        # Owners take turns: of the owner with two, one waits.
        assert [supervisor.is_driven(run_id) for run_id in runs] == [True, True, False, True]
        await asyncio.wait_for(supervisor.drain(0.2), 2)
        await driving
        assert (supervisor.running, supervisor.draining) == (0, True)
        with pytest.raises(OverloadedError):
            await supervisor.start(first, order(), Performers(answered))
        assert (await supervisor.wait(first, slow)).usage.calls == 1
    async with app(folder) as second:
        rows = await second.store.runs(status="active", limit=100)
        assert {row.run_id for row in rows} == {*runs, slow, paused}
        supervisor = supervising(second, answered, max_runs=2)
        driving, calls = asyncio.create_task(Jobs(second, supervisor, 2).take()), 0
        for run_id, owner in runs.items():
            result = await supervisor.wait(second.for_owner(owner), run_id)
            assert result.status == "done"
            calls += result.usage.calls
        # What is no job stands still until somebody resumes it.
        assert await resumable(second.store, rows) == {slow}
        async with asyncio.timeout(10):
            # The last lease may still be given back.
            while supervisor.running:
                await asyncio.sleep(0.005)
        await supervisor.resume(second, slow)
        # The calls that were cut off are counted, and made again.
        assert (await supervisor.wait(second, slow)).usage.calls == 2
        assert (await second.store.run(paused)).paused
        await supervisor.drain()
        await driving
    assert answered.calls == calls + 1
    assert 4 * 24 <= calls <= 4 * (24 + 2)


async def test_another_owners_run_is_like_one_that_does_not_exist(folder: Path) -> None:
    async with app(folder) as here:
        supervisor, ann, bob = Supervisor(here), here.for_owner("ann"), here.for_owner("bob")
        run_id, _ = await supervisor.start(ann, order(), Performers(CountingModel(latency_s=0.5)))
        for act in (
            lambda: read(supervisor, bob, run_id),
            lambda: supervisor.wait(bob, run_id),
            lambda: supervisor.cancel(bob, run_id),
            lambda: supervisor.pause(bob, run_id),
            lambda: supervisor.resume(bob, run_id),
            lambda: supervisor.set_limits(bob, run_id, {"calls": 1}),
            lambda: bob.engine.recorded_run(run_id),
            lambda: coach_answer(bob, run_id, {}),
        ):
            with pytest.raises(NotFoundError):
                await act()
        assert (await supervisor.cancel(ann, run_id)).status == "cancelled"


async def test_the_same_request_begins_one_run(folder: Path) -> None:
    async with app(folder) as here:
        supervisor, ann, bob = Supervisor(here), here.for_owner("ann"), here.for_owner("bob")
        model = CountingModel(latency_s=0.001)
        request = {"key": RequestKey("k", b"d" * 32, now_ms())}
        begun = await asyncio.gather(
            *(supervisor.start(ann, order(steps=2), Performers(model), **request) for _ in range(5))  # pyright: ignore
        )
        assert len({run_id for run_id, _ in begun}) == 1
        assert sum(written is not None for _, written in begun) == 1
        other, written = await supervisor.start(bob, order(steps=2), Performers(model), **request)  # pyright: ignore
        assert written is not None
        with pytest.raises(ConflictError, match="key"):
            await supervisor.start(
                ann, order(steps=3), Performers(model), key=RequestKey("k", b"e" * 32, now_ms())
            )
        await supervisor.wait(ann, begun[0][0])
        await supervisor.wait(bob, other)
        assert model.calls == 4


async def test_a_full_process_gives_a_request_that_is_sent_again_its_run(folder: Path) -> None:
    async with app(folder) as here:
        model, request = CountingModel(latency_s=60), {"key": RequestKey("k", b"d" * 32, now_ms())}
        supervisor = supervising(here, model, max_runs=1)
        begun, _ = await supervisor.start(here, order(steps=1), Performers(model), **request)  # pyright: ignore
        again = await supervisor.start(here, order(steps=1), Performers(model), **request)  # pyright: ignore
        assert again == (begun, None)
        with pytest.raises(OverloadedError):
            await supervisor.start(
                here, order(steps=1), Performers(model), key=RequestKey("another", b"d", now_ms())
            )
        await supervisor.cancel(here, begun)
        key = RequestKey("f", b"f" * 32, now_ms())
        forked, written = await fork(supervisor, here, begun, 0, model, key)
        assert written is not None
        again = await fork(supervisor, here, begun, 0, model, key)
        assert again == (forked, None)
        await supervisor.cancel(here, forked)


async def test_two_processes_on_one_store_count_the_dollars_of_a_day_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.engine.budget_guard.LOOK_EVERY_MS", 1)
    model, limits = CountingModel(latency_s=0.01, usage=Usage(usd=0.1)), {"ann": 1.0}.get
    async with app(folder) as one, app(folder) as other:
        apps = [(Supervisor(each, usd_a_day=limits), each.for_owner("ann")) for each in (one, other)]
        begun = [
            (supervisor, ann, (await supervisor.start(ann, order(steps=30), Performers(model)))[0])
            for supervisor, ann in apps
        ]
        results = [await supervisor.wait(ann, run_id) for supervisor, ann, run_id in begun]
    assert {result.termination.reason for result in results} == {"max_usd_a_day"}
    # Passed by one call of each process at most.
    assert 0.95 <= sum(result.usage.usd or 0 for result in results) <= 1.25


async def test_the_dollars_of_a_day_bound_all_runs_of_an_owner_together_and_outlive_the_process(
    folder: Path,
) -> None:
    model = CountingModel(latency_s=0.005, usage=Usage(usd=0.1))
    limits = {"ann": 1.0}.get
    async with app(folder) as here:
        supervisor, ann, bob = (
            Supervisor(here, usd_a_day=limits),
            here.for_owner("ann"),
            here.for_owner("bob"),
        )
        begun = [await supervisor.start(ann, order(steps=2, width=3), Performers(model)) for _ in range(4)]
        results = [await supervisor.wait(ann, run.run_id) for run in begun]
        spent = sum(result.usage.usd or 0 for result in results)
        # Passed by one call at most.
        assert 0.95 <= spent <= 1.15
        assert "max_usd_a_day" in {result.termination.reason for result in results}
        with pytest.raises(UsageError, match="a day"):
            await supervisor.start(ann, order(), Performers(model))
        free, _ = await supervisor.start(bob, order(steps=1), Performers(model))
        assert (await supervisor.wait(bob, free)).status == "done"
    async with app(folder) as again:
        supervisor = Supervisor(again, usd_a_day=limits)
        with pytest.raises(UsageError) as refused:
            await supervisor.start(again.for_owner("ann"), order(), Performers(model))
        assert refused.value.code == "budget_exceeded"


async def test_limits_of_a_run_under_way_can_be_changed_and_a_fork_begins_where_it_is_told(
    folder: Path,
) -> None:
    async with app(folder) as here:
        model = CountingModel(latency_s=0.01)
        supervisor = supervising(here, model)
        run_id, _ = await supervisor.start(here, order(steps=20), Performers(model))
        await asyncio.sleep(0.03)
        await supervisor.set_limits(here, run_id, {"calls": 1})
        result = await supervisor.wait(here, run_id)
        assert result.termination.reason == "max_calls"
        with pytest.raises(ConflictError):
            await supervisor.set_limits(here, run_id, {"calls": 100})
        await supervisor.resume(here, run_id, budget=Budget(calls=100))
        kinds = [event.kind for event in await read(supervisor, here, run_id)]
        assert (kinds.count("ended"), kinds[-1]) == (2, "ended")
        whole = await supervisor.wait(here, run_id)
        assert whole.usage.calls == 20
        forked, written = await fork(supervisor, here, run_id, 15, model)
        assert written is not None
        assert (await supervisor.wait(here, forked)).answer == whole.answer
        assert model.calls == 25


def read_pieces(reader: FeedReader) -> list[str]:
    return [event.data["text"] for event in reader.take_passing(1)]


async def feed_of_a_new_run(folder: Path, *, text: bool = False) -> Feed:
    async with app(folder) as here:
        _, written = await here.engine.accept(order())
        assert written is not None
        return Feed(written, text=text)


async def test_the_pieces_a_reader_gets_are_the_same_whichever_keys_are_kept(folder: Path) -> None:
    async def said() -> list[str]:
        feed, reader = await feed_of_a_new_run(folder, text=True), FeedReader(text=True)
        for guess in ("sk-guess-CANARX", "sk-guess-CANARY", "sk-guess-CANARZ", "done"):
            feed.text("e1", guess)
            feed.text("e1", "\n")
        feed.admit(reader)
        return read_pieces(reader)

    before = await said()
    SECRETS.keep("sk-guess-CANARYab9Kd2Qx7")
    assert await said() == before


async def test_a_reader_who_comes_in_the_middle_of_a_key_sees_nothing_of_it(folder: Path) -> None:
    SECRETS.keep("sk-middle-0123456789abcdef")
    feed, reader = await feed_of_a_new_run(folder), FeedReader(text=True)
    feed.text("e1", "it is sk-middle-01")
    feed.admit(reader)
    feed.text("e1", "23456789abcdef and more ")
    assert read_pieces(reader) == ["*** and more "]


async def test_text_comes_in_pieces_in_order_and_without_keys(folder: Path) -> None:
    key = "sk-live-0123456789abcdef"
    SECRETS.keep(key)

    # A reader who comes once the run has ended gets no pieces.
    begun = asyncio.Event()

    class Streaming(CountingModel):
        async def answer(self, question: Any, on_text: Any = None) -> Any:
            await begun.wait()
            reply = f"before {key} after"
            for at in range(0, len(reply), 5):
                await asyncio.sleep(0)
                if on_text:
                    on_text(reply[at : at + 5])
            return await super().answer(question)

    async with app(folder) as here:
        supervisor = Supervisor(here)
        performers = Performers(Streaming(reply=lambda question: f"before {key} after"))
        run_id, _ = await supervisor.start(here, order(steps=2), performers, text=True)
        events = list[RunEvent]()
        async with aclosing(supervisor.watch(here, run_id, text=True)) as found:
            async for event in found:
                events.append(event)
                begun.set()
        ends = [event.kind for event in events if event.data.get("text", "").endswith("after")]
        assert ends == ["text", "answered"] * 2
        pieces = "".join(event.data["text"] for event in events if event.kind == "text")
        assert "0123456789" not in pieces
        assert pieces.count("after") == 2
