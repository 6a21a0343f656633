"""`reasonry worker`: drives the jobs of a store in PostgreSQL, beside other workers."""

from __future__ import annotations

import asyncio

import msgspec

from ...app.agent_app import AgentApp
from ...app.wiring import App
from ...engine.policy import Policy
from ...extras import check_extra
from ...records import JobOptions
from ...supervisor import CONCURRENCY, Supervisor
from ..present import masked_output
from ..signals import on_ending
from .arguments import Count
from .output import print_line, print_notes
from .settings import AgentSettings, Common, ProviderRates
from .submit import DRAIN_S
from .tables import Column, print_table

_COLUMNS = (
    Column("PROCESS", "process", narrowest=8),
    Column("SINCE", lambda row: f"{row['since_s']:.0f} s", align_right=True),
)


def worker(
    *,
    list: bool = False,
    concurrency: Count = CONCURRENCY,
    queues: str = JobOptions().queue,
    agents: AgentSettings = AgentSettings(),
    rates: ProviderRates = ProviderRates(),
    common: Common = Common(),
) -> int:
    """Drive the runs that wait in a store in PostgreSQL, until a signal comes.

    Any number of workers, on any number of machines that reach the store, share its runs. Those of a worker that dies
    are driven on by others within seconds. A store of one machine needs none: `reasonry serve` drives what waits there.

    Parameters
    ----------
    list
        Show which workers are alive and what waits, rather than drive anything.
    concurrency
        How many runs it drives at once.
    queues
        The names of the queues it takes runs from, with commas between.
    """
    check_extra("server", "reasonry worker")
    from ...queues import Worker, postgres_store, read_queues

    names = read_queues(queues)
    if list:
        return _show(common)
    environ = agents.environ()
    from ..http.settings import USD_A_DAY, ServerSettings, read_usd_a_day

    # What an owner may spend in a day holds whoever drives the owner's runs.
    spending = ServerSettings(usd_a_day=read_usd_a_day(environ.get(USD_A_DAY, "")))

    async def work(app: App) -> None:
        store = postgres_store(app.store, "reasonry worker")
        # A store that cannot be used says why.
        await store.job_standing()
        ending = asyncio.Event()
        on_ending(ending.set)
        supervisor = Supervisor(
            app,
            max_runs=concurrency,
            usd_a_day=spending.usd_a_day_of,
            reopen=AgentApp(app).recorded_participants,
        )
        driving = Worker(store, supervisor, names, concurrency)
        working = asyncio.create_task(driving.work())
        if common.as_data:
            common.show({"store": store.name, "queues": names, "concurrency": concurrency}, "")
        print_notes([f"driving up to {concurrency} runs of {store.name} at once (Ctrl-C ends it)"])
        await ending.wait()
        driving.end()
        await asyncio.gather(supervisor.drain(DRAIN_S), working)

    with masked_output(environ):
        common.do(work, Policy(rates=rates.limits()), environ)
    return 0


def _show(common: Common) -> int:
    from ...queues import postgres_store

    async def look(app: App) -> dict[str, object]:
        store = postgres_store(app.store, "reasonry worker")
        return {
            "store": store.name,
            "queue": await store.job_standing(),
            "workers": [worker._asdict() for worker in await store.workers()],
        }

    found = msgspec.to_builtins(common.do(look))

    def draw() -> None:
        print_table(_COLUMNS, found["workers"])
        standing = found["queue"]
        waits = f", the first for {standing['oldest_s']:.1f} s" if standing["depth"] else ""
        print_line(f"workers: {standing['workers']:,}; runs waiting: {standing['depth']:,}{waits}")

    return common.show(found, draw)
