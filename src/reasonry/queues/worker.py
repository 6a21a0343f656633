"""A worker: Procrastinate takes the jobs of a store, and the supervisor of this process drives their runs.

Rule 1: Procrastinate's worker stops when the database is down. Until `end` is called, this module restarts the worker.
Rule 2: a worker that sends no heartbeat for `DEAD_S` counts as dead. Every `BEAT_S`, the other workers look for dead
        workers and requeue their jobs. After an outage of the database, workers first wait for `DEAD_S`, so that live
        workers can renew their leases and write down their answers.
Rule 3: if the database does not answer for `HANGS_S`, the worker is restarted. If hanging connections keep the worker
        from stopping within `STUCK_S`, the process ends, and systemd or a container's restart policy restarts it.
"""

import asyncio
import contextlib
import logging
import os
import re
import socket
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import procrastinate
import procrastinate.worker
import psycopg_pool
from procrastinate.exceptions import ConnectorException

from ..engine.telemetry import trace_work
from ..errors import NotFoundError, ReasonryError, UsageError
from ..records import JobOptions
from ..stores.postgres import PostgresStore
from ..stores.postgres.jobs import DEAD_S, TASK, WORKER
from ..stores.postgres.nul_escapes import read
from ..supervisor import Supervisor
from ..supervisor.job_taking import REST_S, rest_s
from ..system.masking import SECRETS

DEFAULT_QUEUE: Final = JobOptions().queue
BEAT_S: Final = 2.0
POLL_S: Final = 1.0
HANGS_S: Final = 7.0
STUCK_S: Final = 11.0
GRACE_S: Final = 10.0
"""Seconds for jobs to end after the supervisor has released their runs."""
FIRST_RETRY_S: Final = 0.1

_log = logging.getLogger("reasonry.worker")


class Later(Exception):
    """Raised so that Procrastinate retries a job after a delay, in any worker."""

    def __init__(self, delay_s: float, why: object) -> None:
        super().__init__(f"{why}")
        self.delay_s = delay_s


async def perform_job(
    supervisor: Supervisor,
    run_id: str,
    owner: str = "",
    queue: str = "",
    carrier: Mapping[str, Any] | None = None,
) -> None:
    """Drive a job's run. If the job must be tried again, raise `Later`. `carrier` is the trace context of the job."""
    facts = {
        "messaging.system": "procrastinate",
        "messaging.destination.name": queue,
        "messaging.operation.type": "process",
        "reasonry.run_id": run_id,
    }
    with trace_work(f"process {queue}", "CONSUMER", facts, carrier):
        try:
            ended = await supervisor.drive_job(run_id, owner)
        except NotFoundError:
            return
        except ReasonryError as error:
            raise Later(rest_s(run_id, error), error) from None
        if ended is None:
            return
        await asyncio.wait([ended])
        if supervisor.draining:
            raise Later(0.0, "this worker ends")
        if error := ended.exception():
            raise Later(REST_S, error)
        left = ended.result()
        if left.status == "active" and left.outcome is None and left.termination.reason != "paused":
            raise Later(REST_S, "its provider takes no more calls for now")


class Worker:
    """Takes jobs from queues of a store in the background, `concurrency` at a time."""

    def __init__(
        self, store: PostgresStore, supervisor: Supervisor, queues: Sequence[str], concurrency: int
    ) -> None:
        self._store, self._supervisor = store, supervisor
        self._queues, self._concurrency = [*queues], concurrency
        self._ending = asyncio.Event()
        self._was_away = False
        """Whether the connection to the database has been lost before."""

    async def work(self) -> None:
        """Drive runs until `end` is called. The caller of `end` must also drain the supervisor."""
        _quieten()
        while not self._ending.is_set():
            try:
                await self._work_once()
            except Exception as error:
                self._was_away = True
                _log.warning("the queue cannot be used at present: %s", reason_of(error))
            if not self._ending.is_set():
                await asyncio.sleep(POLL_S)

    def end(self) -> None:
        """Stop taking jobs."""
        self._ending.set()

    async def _work_once(self) -> None:
        """Work until the connection is lost or `end` is called."""
        # If the queue's tables were lost, runs have no jobs.
        await self._store.put_missing_jobs()
        queue = self._opened_app()
        async with queue.open_async():
            work = queue.run_worker_async(
                queues=self._queues,
                concurrency=self._concurrency,
                fetch_job_polling_interval=POLL_S,
                update_heartbeat_interval=BEAT_S,
                stalled_worker_timeout=DEAD_S,
                shutdown_graceful_timeout=GRACE_S,
                delete_jobs="successful",
                install_signal_handlers=False,
            )
            rescue = _rescue(queue, DEAD_S * self._was_away)
            works: tuple[Coroutine[Any, Any, Any], ...] = (work, rescue, self._ending.wait())
            tasks = [*map(asyncio.create_task, works)]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                if (await asyncio.wait(tasks, timeout=STUCK_S))[1]:
                    _log.error("the connection of the queue hangs; this process ends, to be started again")
                    os._exit(1)
            for task in tasks:
                if not task.cancelled():
                    task.result()

    def _opened_app(self) -> procrastinate.App:
        schema = self._store.address.schema
        queue = app_of(self._store, f"{WORKER}:{schema} {os.getpid()}@{socket.gethostname()}")

        @queue.task(name=TASK, retry=_Again(), pass_context=True)
        async def drive(  # pyright: ignore[reportUnusedFunction]
            context: Any, run_id: str, owner: str, carrier: dict[str, Any]
        ) -> None:
            await perform_job(self._supervisor, read(run_id), read(owner), context.job.queue, carrier)

        return queue


def app_of(store: PostgresStore, application: str = "reasonry") -> procrastinate.App:
    """Return Procrastinate's app for the queue of a store. `application` is the name of its database connections."""
    address = store.address
    timeouts = "-c statement_timeout=5000 -c idle_in_transaction_session_timeout=5000"
    connector = procrastinate.PsycopgConnector(
        conninfo=address.url,
        kwargs={
            "options": f"-c search_path={address.schema} {timeouts}",
            "connect_timeout": 3,
            "application_name": application,
        },
        min_size=1,
        max_size=4,
        timeout=5,
        reconnect_timeout=5,
    )
    return procrastinate.App(connector=connector)


async def _rescue(queue: procrastinate.App, rest_s: float) -> None:
    """Requeue the jobs of dead workers at intervals. Raise TimeoutError if the database hangs for `HANGS_S`."""
    await asyncio.sleep(rest_s)
    while True:
        looking = asyncio.create_task(_put_back(queue))
        try:
            # To cancel a hanging query takes seconds too, and nothing here needs its result.
            if (await asyncio.wait([looking], timeout=HANGS_S))[1]:
                raise TimeoutError("the database does not answer")
            looking.result()
        finally:
            looking.cancel()
        await asyncio.sleep(BEAT_S)


async def _put_back(queue: procrastinate.App) -> None:
    for job in await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=DEAD_S):
        with contextlib.suppress(ConnectorException):
            # Another worker was faster.
            await queue.job_manager.retry_job(job)


class _Again(procrastinate.BaseRetryStrategy):
    def get_retry_decision(self, *, exception: BaseException, job: Any) -> procrastinate.RetryDecision:
        delay_s = exception.delay_s if isinstance(exception, Later) else 60.0
        # The right to drive a run is often released a moment later.
        delay_s = min(delay_s, FIRST_RETRY_S * 2 ** min(job.attempts, 20))
        return procrastinate.RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=delay_s))


def reason_of(error: BaseException) -> str:
    """Return the type and the first line of an error. If the queue's connection failed, describe the cause instead."""
    while isinstance(error, ConnectorException) and error.__cause__ is not None:
        error = error.__cause__
    line = SECRETS.mask(f"{error}", error=True).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line}"


def _quieten() -> None:
    """Remove tracebacks from the logs of libraries, because tracebacks may quote stored data."""

    def strip(record: logging.LogRecord) -> bool:
        message, error = record.getMessage(), record.exc_info and record.exc_info[1]
        record.msg, record.args = SECRETS.mask(message, error=True).partition("\n")[0], None
        if error:
            record.msg += f" ({reason_of(error)})"
        record.exc_info = record.exc_text = None
        return record.levelno >= logging.WARNING

    def is_news(record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        # The end of a job could not be written down; the job will come again.
        return not (kind and kind.__module__.startswith("procrastinate"))

    own = (procrastinate.__name__, psycopg_pool.__name__, "psycopg")
    for name in (*logging.root.manager.loggerDict, f"{procrastinate.worker.__name__}.worker"):
        if name.startswith(own):
            logging.getLogger(name).addFilter(strip)
    logging.getLogger("asyncio").addFilter(is_news)


def read_queues(text: str) -> tuple[str, ...]:
    """Read names of queues, separated by commas.

    Raises:
        UsageError: A name is empty, has over 64 characters, or has a character that is no letter, digit, `-` or `_`.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            raise UsageError(
                f"the name of a queue is of letters, digits, - and _, got {name[:60]!r}", option="queues"
            )
    return names


def postgres_store(store: object, command: str = "this") -> PostgresStore:
    """Return `store` if it is a PostgreSQL store. Otherwise, raise UsageError. The message begins with `command`."""
    if isinstance(store, PostgresStore):
        return store
    raise UsageError(
        f"{command} needs a PostgreSQL store. With a SQLite store, `reasonry serve` (or `reasonry submit`) runs the "
        "queue.",
        option="store",
        choices=["postgresql://USER:PASSWORD@HOST:PORT/DATABASE"],
    )
