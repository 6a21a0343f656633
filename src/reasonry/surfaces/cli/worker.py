"""`reasonry worker`: drives runs that wait in the queue of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from ...app import App
from ...engine.policy import Policy
from ...errors import UsageError
from ...extras import check_extra
from ...queues import DEFAULT_QUEUE, Queue, QueueStanding, Worker, WorkerStanding, place_of, read_queues
from ...queues.worker import CONCURRENCY
from ...supervisor import Supervisor
from ..agents import AgentAccess
from ..present import masked_output
from ..signals import on_ending
from .output import print_document, print_line, print_notes
from .settings import Common, Listed, ProviderRates, SessionRules, run_async, with_app
from .tables import Column, print_table
from .whole_numbers import WholeNumber

_COLUMNS = (
    Column("MACHINE", narrowest=8),
    Column("PROCESS", align_right=True),
    Column("DRIVES", align_right=True),
    Column("SEEN", rank=1, align_right=True),
    Column("QUEUES", narrowest=8),
)

DRAIN_S = 3.0
"""How long what is in flight may take to come in when the worker ends."""


def check_max_running(max_running: int | None) -> None:
    """Raise UsageError if that is no number of runs."""
    if max_running is not None and max_running < 1:
        raise UsageError(f"--max-running must be at least 1, got {max_running}", option="max_running")


def worker(
    *,
    list: bool = False,
    concurrency: WholeNumber = CONCURRENCY,
    max_running: WholeNumber | None = None,
    queues: str = DEFAULT_QUEUE,
    listed: Listed = Listed(),
    rates: ProviderRates = ProviderRates(),
    rules: SessionRules = SessionRules(),
    common: Common = Common(),
) -> int:
    """Drive runs that wait in the queue of the store, until a signal comes.

    Any number of workers, on any number of machines that reach the store, share its queue. Runs of a worker that dies
    are driven on by others within seconds.

    Parameters
    ----------
    list
        Show which workers are alive and what waits, rather than drive anything.
    concurrency
        How many runs it drives at once.
    max_running
        How many runs of a queue all workers together drive at once; give all of them the same number.
    queues
        The names of the queues it takes runs from, with commas between.
    """
    check_extra("server", "reasonry worker")
    if list:
        return _show(common)
    if concurrency < 1:
        raise UsageError(f"--concurrency must be at least 1, got {concurrency}", option="concurrency")
    check_max_running(max_running)
    names = read_queues(queues)
    policy = Policy(rates=rates.limits())
    environ = listed.overlay(rules.environ())
    from ..http.settings import USD_A_DAY, ServerSettings, read_usd_a_day

    # What an owner may spend in a day holds whoever drives the owner's runs.
    spending = ServerSettings(usd_a_day=read_usd_a_day(environ.get(USD_A_DAY, "")))

    async def work(app: App) -> None:
        queue = await _open_queue(app)
        ending = asyncio.Event()
        on_ending(ending.set)
        supervisor = Supervisor(
            app,
            max_runs=concurrency,
            usd_a_day=spending.usd_a_day_of,
            reopen=AgentAccess(app).recorded_participants,
        )
        driving = Worker(
            app, queue, supervisor, concurrency=concurrency, queues=names, max_running=max_running
        )
        try:
            await driving.start()
            await driving.take_up_unfinished()
            if common.json:
                print_document({"worker": driving.id, "store": app.store.name, "queues": names})
            print_notes([f"driving up to {concurrency} runs of {app.store.name} at once (Ctrl-C ends it)"])
            await ending.wait()
        finally:
            await asyncio.gather(driving.drain(), supervisor.drain(DRAIN_S))
            await queue.close()

    with masked_output(environ):
        run_async(with_app(common.app(policy, environ), work))
    return 0


def _show(common: Common) -> int:
    async def look(app: App) -> tuple[QueueStanding, Sequence[WorkerStanding]]:
        queue = await _open_queue(app)
        try:
            return await queue.standing(), await queue.workers()
        finally:
            await queue.close()

    app = common.app()
    standing, workers = run_async(with_app(app, look))
    if common.json:
        document = {"store": app.store.name, "queue": standing, "workers": workers}
        print_document(msgspec.to_builtins(document))
        return 0
    print_table(
        _COLUMNS,
        [
            (
                listed.host,
                str(listed.pid),
                f"{listed.driving} of {listed.concurrency}",
                f"{listed.seen_s:.1f} s",
                listed.queues,
            )
            for listed in workers
        ],
    )
    waits = f", the first for {standing.oldest_s:.1f} s" if standing.depth else ""
    print_line(
        f"workers: {standing.workers:,}; runs waiting: {standing.depth:,}{waits}; adopted: {standing.adopted:,}"
    )
    return 0


async def _open_queue(app: App) -> Queue:
    place = place_of(app.store)
    if place is None:
        raise UsageError(
            "a store in memory has no queue: --store must name one that others reach", option="store"
        )
    # A store that cannot be used says why; its queue does not.
    await app.store.runs(limit=1)
    return Queue(place)
