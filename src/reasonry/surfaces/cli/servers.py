"""`reasonry mcp` serves MCP to an agent, `reasonry serve` serves HTTP, and `reasonry worker` drives queued jobs."""

import asyncio
import os
import sys
import webbrowser
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from ...app.app import App
from ...engine.policy import Policy
from ...engine.watchdog import WATCHDOG
from ...errors import UsageError
from ...records import JobOptions
from ...supervisor import CONCURRENCY, MAX_QUEUED, MAX_RUNS, Supervisor
from ...system.plugins import check_extra
from ..signals import on_ending
from .output import print_note
from .parameters import Count, WholeNumber
from .settings import Common, Listed, ProviderRates, overlay
from .submit import DRAIN_S

_IN_A_TERMINAL = (
    "This is Reasonry's MCP server. It waits for an agent that speaks MCP on its standard input; agents start it by "
    "themselves, once they know it.",
    "Tell yours with: reasonry setup (`reasonry setup --help` lists the agents)",
    "Ctrl-C ends it.",
)
"""The note for a user who starts the MCP server in a terminal."""


def mcp(*, listed: Listed = Listed(), common: Common = Common()) -> int:
    """Serve MCP over standard input and output until the client disconnects."""
    from ..mcp.serve import main

    if sys.stdin.isatty():
        print_note(*_IN_A_TERMINAL)
    main(common.store, listed.environ(), strategies=common.strategies())
    return 0


def serve(
    *,
    host: str = "127.0.0.1",
    port: WholeNumber = 8080,
    tokens_file: Path | None = None,
    allowed_hosts: str | None = None,
    usd_a_day: str | None = None,
    requests_per_minute: WholeNumber | None = None,
    max_runs: WholeNumber = MAX_RUNS,
    concurrency: Annotated[WholeNumber, Parameter(validator=Number(gte=0))] = CONCURRENCY,
    max_queued: WholeNumber = MAX_QUEUED,
    open: bool = False,
    listed: Listed = Listed(),
    rates: ProviderRates = ProviderRates(),
    common: Common = Common(),
) -> int:
    """Serve the web page, the API, the OpenAI-compatible endpoint and MCP over HTTP until a signal ends the server.

    Args:
        host: The address to listen on. An address that other machines can reach requires tokens.
        port: The port; 0 takes any free port.
        tokens_file: A file of PRINCIPAL=TOKEN lines. Each request then needs a token. Default: REASONRY_TOKENS.
        allowed_hosts: Host names by which clients may call the server, such as the name of a proxy. Names that other
            machines can reach require tokens. Default: REASONRY_ALLOWED_HOSTS.
        usd_a_day: Dollars that runs may cost in a day: USD for each principal, or PRINCIPAL=USD,…. Default:
            REASONRY_USD_A_DAY.
        requests_per_minute: Maximum requests of a principal in any minute; the server refuses additional requests.
        max_runs: Maximum runs, queued jobs included, to drive at once; the server refuses additional runs.
        concurrency: Maximum jobs (such as runs from POST /api/runs) to drive at once; 0 leaves all jobs to workers.
        max_queued: Maximum jobs in the queue; the server refuses additional jobs.
        open: Show the page in the browser.
    """
    check_extra("server", "reasonry serve")
    # `auto_loop_factory` returns uvloop's event loop, or Python's own event loop if uvloop is not available.
    from uvicorn.loops.auto import auto_loop_factory

    from ..http import server_settings as http
    from ..http.server import serve as serve_http

    policy = Policy(rates=rates.limits())
    environ = overlay(listed.environ(), {"allowed_hosts": allowed_hosts, "usd_a_day": usd_a_day})
    settings = http.ServerSettings(
        host=host,
        port=port,
        tokens=_take_tokens(environ, tokens_file),
        allowed_hosts=http.read_allowed_hosts(environ.get(http.ALLOWED_HOSTS, "")),
        usd_a_day=http.read_usd_a_day(environ.get(http.USD_A_DAY, "")),
        requests_per_minute=requests_per_minute,
        max_runs=max_runs,
        concurrency=concurrency,
        max_queued=max_queued,
    )
    settings.check()

    async def work(app: App) -> None:
        async with AsyncExitStack() as held:

            async def tell(address: str) -> None:
                # The watchdog starts only now, since imports at the start can take long on a busy machine.
                await held.enter_async_context(WATCHDOG.watching())
                if common.as_data:
                    common.show({"url": address}, "")
                print_note(f"Reasonry is at {address} (Ctrl-C ends it)")
                if open:
                    webbrowser.open(address)

            await serve_http(app, settings, tell)

    common.do(work, policy, environ, auto_loop_factory())
    return 0


def _take_tokens(environ: dict[str, str], file: Path | None) -> dict[bytes, str]:
    from ..http import server_settings as http

    # The tokens are removed from the environment that child processes inherit.
    text = environ.pop(http.TOKENS, None)
    os.environ.pop(http.TOKENS, None)
    tokens = {} if text is None else http.read_tokens(text, http.TOKENS)
    if file is None:
        return tokens
    if text is not None:
        message = f"--tokens-file and {http.TOKENS} are both set: use one of them"
        raise UsageError(message, option="tokens_file")
    return http.read_tokens_file(file)


def worker(
    *,
    list: bool = False,
    concurrency: Count = CONCURRENCY,
    queues: str = JobOptions().queue,
    provider_limit: tuple[str, ...] = (),
    metrics_port: WholeNumber | None = None,
    listed: Listed = Listed(),
    rates: ProviderRates = ProviderRates(),
    common: Common = Common(),
) -> int:
    """Drive the runs in the queue of a store in PostgreSQL, until a signal ends the worker.

    Any number of workers, on any machines that can reach the store, share the runs. If a worker dies, other workers
    resume its runs within seconds. A store on a single machine needs no worker: `reasonry serve` drives its queue.

    Args:
        list: Only show the live workers, the runs that each worker drives, and the length of the queue.
        concurrency: Maximum runs to drive at once.
        queues: Names of the queues to take runs from, separated by commas.
        metrics_port: Serve metrics for Prometheus at this port of the loopback address; 0 takes any free port.
        provider_limit: PROVIDER=CALLS/min,AT_ONCE: the maximum calls to a provider in any minute and, optionally, the
            maximum simultaneous calls, for all processes on the store together; may be repeated.
    """
    check_extra("server", "reasonry worker")
    from ...queues import Worker, postgres_store, read_queues
    from ...stores.postgres.provider_limits import read_provider_limits
    from ..http.health import Health
    from ..http.metrics import Metrics
    from ..http.server_settings import USD_A_DAY, ServerSettings, read_usd_a_day

    names, limits = read_queues(queues), read_provider_limits(provider_limit)
    if list:

        async def look(app: App) -> dict[str, object]:
            store = postgres_store(app.store, "reasonry worker")
            workers = [worker._asdict() for worker in await store.workers()]
            return {"store": store.name, "queue": await store.queue_status(), "workers": workers}

        return common.show(msgspec.to_builtins(common.do(look)))
    environ = listed.environ()
    # The limit on an owner's spending in a day applies in every process that drives the owner's runs.
    spending = ServerSettings(usd_a_day=read_usd_a_day(environ.get(USD_A_DAY, "")))

    async def work(app: App) -> None:
        store = postgres_store(app.store, "reasonry worker")
        # This raises an error with the reason if the store cannot be used.
        await store.queue_status()
        for name, held in (await store.provider_limits.declare(limits)).items():
            print_note(f"warning: other workers name another limit of {name}; the lower one holds: {held}")
        ending = asyncio.Event()
        on_ending(ending.set)
        supervisor = Supervisor(app, max_runs=concurrency, usd_a_day=spending.usd_a_day_of)
        watching = set[asyncio.Task[None]]()
        if metrics_port is not None:
            metrics, health = Metrics(), Health(store, spending.store_timeout_s)
            metrics.follow(app.engine.policy, supervisor, health)
            print_note(f"metrics are at http://127.0.0.1:{metrics.serve(metrics_port)}/metrics")
            watching = {*map(asyncio.create_task, (metrics.watch_loop(), health.watch()))}
        driving = Worker(store, supervisor, names, concurrency)
        working = asyncio.create_task(driving.work())
        if common.as_data:
            common.show({"store": store.name, "queues": names, "concurrency": concurrency}, "")
        print_note(f"driving up to {concurrency} runs of {store.name} at once (Ctrl-C ends it)")
        async with WATCHDOG.watching():
            await ending.wait()
            driving.end()
            for task in watching:
                task.cancel()
            await asyncio.gather(supervisor.drain(DRAIN_S), working)

    common.do(work, Policy(rates=rates.limits()), environ)
    return 0
