"""The queue of a store: takes runs that were accepted, and says what stands in it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from ..engine.telemetry import carried_context, trace_work
from ..errors import OverloadedError, StoreError, UsageError
from ..masking import SECRETS
from . import queue_tables as tables
from .queue_place import QueuePlace

if TYPE_CHECKING:
    import sqlalchemy
    from dbos import DBOSClient, EnqueueOptions
    from sqlalchemy import Connection

T = TypeVar("T")

APPLICATION: Final = "reasonry"
VERSION: Final = "1"
"""Of what a worker is told. Workers of another version leave it alone, so this changes only when they must."""
WORK: Final = "drive_run"
DEFAULT_QUEUE: Final = "default"
PRIORITY: Final = 5
MAX_QUEUED: Final = 100_000
"""Runs that wait at once; who begins one more is told to try again later."""
RETRY_AFTER_S: Final = 5.0
MAX_PRIORITY: Final = 9
"""The last to be begun; 0 is the first."""

_OVER: Final = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
KNOWN_S: Final = 30.0
"""How long what is over is known."""
_PAGE: Final = 500

_LOG = logging.getLogger("reasonry.worker")


class Waiting(Struct, frozen=True):
    """A run that is to be driven.

    Args:
        priority: From 0, the first to be begun, to `MAX_PRIORITY`.
        delay_s: How long it is to wait before it is in the queue.
    """

    run_id: str
    owner: str = ""
    priority: int = PRIORITY
    delay_s: float = 0.0
    queue: str = DEFAULT_QUEUE


class Claimed(Struct, frozen=True, array_like=True):
    """What a worker is told of a run, in the order in which it stands in the queue.

    Args:
        turn: Of the owner.
        carried: Of the trace of whoever put it into the queue.
        is_suspect: Whether a worker has died that had it; that is no part of what stands in the queue.
    """

    run_id: str
    owner: str
    queue: str
    priority: int
    turn: int
    carried: Mapping[str, str] = {}
    is_suspect: bool = False


class _Arguments(Struct, frozen=True):
    """How DBOS writes them."""

    run: Claimed = msgspec.field(name="positionalArgs")


class QueueStanding(Struct, frozen=True):
    """What stands in a queue.

    Args:
        adopted: Runs that were taken from workers which had died, ever.
    """

    depth: int
    oldest_s: float
    workers: int
    adopted: int


class WorkerStanding(Struct, frozen=True):
    """What a worker that is alive last said of itself.

    Args:
        queues: The names of those it takes runs from, with commas between.
        seen_s: How many seconds ago that was.
    """

    id: str
    host: str
    pid: int
    queues: str
    concurrency: int
    driving: int
    seen_s: float


class Queue:
    """The queue of a store, which any number of processes share. It is opened when it is first used."""

    def __init__(self, place: QueuePlace) -> None:
        self.place = place
        self._opening = threading.Lock()
        self._engine: sqlalchemy.Engine | None = None
        self._client: DBOSClient | None = None

    # -- the calling process

    async def put(self, waiting: Sequence[Waiting]) -> None:
        """Have runs driven by whoever is there; one that waits already, or is at work, stays as it is.

        Raises:
            StoreError: The queue cannot be written to.
        """
        queue = waiting[0].queue if waiting else DEFAULT_QUEUE
        facts = {
            **traced_as(queue),
            "messaging.operation.type": "send",
            "messaging.batch.message_count": len(waiting),
        }
        with trace_work(f"send {queue}", "PRODUCER", facts):
            carried = carried_context()
            await self.do(lambda: self._put(waiting, carried))

    async def standing(self) -> QueueStanding:
        """Return what stands in the queue.

        Raises:
            StoreError: The queue cannot be read.
        """

        def read(connection: Connection) -> QueueStanding:
            adopted = tables.value(connection, "adopted")
            return QueueStanding(*tables.count_waiting(connection), tables.count_workers(connection), adopted)

        return await self.do(lambda: self.transact(read))

    async def check_room(self, max_queued: int = MAX_QUEUED) -> None:
        """Make sure that a run may be begun that has to wait.

        Raises:
            OverloadedError: As many wait already as may.
            StoreError: The queue cannot be read.
        """
        if await self.do(
            lambda: self.transact(lambda connection: tables.are_waiting(connection, max_queued))
        ):
            raise full_error(max_queued)

    async def workers(self) -> list[WorkerStanding]:
        """Return the workers that are alive, those that began first before the others.

        Raises:
            StoreError: The queue cannot be read.
        """
        rows = await self.do(lambda: self.transact(tables.read_workers))
        return [WorkerStanding(*row) for row in rows]

    async def find_known(self, run_ids: Sequence[str]) -> set[str]:
        """Return which of these runs wait, or are at work, or were until a short time ago."""

        def look() -> set[str]:
            found = self.client.list_workflows(workflow_ids=[*run_ids], load_input=False, load_output=False)
            return {entry.workflow_id for entry in found}

        return await self.do(look)

    async def do(self, work: Callable[[], T]) -> T:
        """Return what comes of work on the queue, done in a thread.

        Raises:
            StoreError: The queue cannot be used at present.
        """

        def try_work() -> T:
            from sqlalchemy.exc import SQLAlchemyError

            try:
                return work()
            except (SQLAlchemyError, OSError) as error:
                # What the library says of it may hold an address with a password; what the server says does not.
                words = getattr(getattr(getattr(error, "orig", None), "diag", None), "message_primary", None)
                why = SECRETS.mask(words) if words else type(error).__name__
                message = f"the queue of the store cannot be used at present ({why})"
                raise StoreError(message, code="store_unavailable", retryable=True) from None

        return await asyncio.to_thread(try_work)

    async def close(self) -> None:
        """Let go of what is open."""
        if self._engine is not None:
            await asyncio.to_thread(self._engine.dispose)

    # -- in a thread

    @property
    def engine(self) -> sqlalchemy.Engine:
        """The engine over the place, whose tables exist."""
        return self._open()[0]

    @property
    def client(self) -> DBOSClient:
        """The client of the queue."""
        return self._open()[1]

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Return what comes of work in a transaction."""
        with self.engine.begin() as connection:
            return work(connection)

    def claim(
        self, connection: Connection, name: str, worker: str, places: int, max_running: int | None
    ) -> list[Claimed]:
        """Have a worker take those runs of a queue that are next, as part of a transaction."""
        claimed = list[Claimed]()
        for run_id, text, is_suspect in tables.claim(
            connection, queue_name(name), VERSION, worker, places, max_running
        ):
            try:
                run = msgspec.json.decode(text or "", type=_Arguments).run
                claimed.append(msgspec.structs.replace(run, is_suspect=is_suspect))
            except msgspec.DecodeError:
                _LOG.error("what stands in the queue of run %s cannot be read; it is left out", run_id)
                tables.note_over(connection, run_id, worker)
        return claimed

    def adopt(self, worker: str, *, died: bool) -> int:
        """Put back what a worker had at work, so that another drives it, and take it off the list; return how much."""
        adopted = 0
        entries = self.client.list_workflows(
            executor_id=worker, status="PENDING", load_input=False, load_output=False
        )
        if died:
            orphans = [entry.workflow_id for entry in entries]
            self.transact(lambda connection: tables.note_orphans(connection, orphans))
        for name in {entry.queue_name for entry in entries}:
            of_queue = [entry.workflow_id for entry in entries if entry.queue_name == name]
            self.client.resume_workflows(of_queue, queue_name=name)
            adopted += len(of_queue)
        self.transact(lambda connection: tables.forget_worker(connection, worker))
        return adopted

    def clear(self) -> None:
        """Forget what has been over for long; all that is known of it stands in the journals.

        Until then nobody puts a run back that no worker can drive at present.
        """
        until = datetime.fromtimestamp(time.time() - KNOWN_S, UTC).isoformat()
        entries = self.client.list_workflows(
            status=[*_OVER], completed_before=until, limit=_PAGE, load_input=False, load_output=False
        )
        if entries:
            self.client.delete_workflows([entry.workflow_id for entry in entries])

    def _put(self, waiting: Sequence[Waiting], carried: Mapping[str, str]) -> None:
        over = self.client.list_workflows(
            workflow_ids=[entry.run_id for entry in waiting],
            status=[*_OVER],
            load_input=False,
            load_output=False,
        )
        if over:
            self.client.delete_workflows([entry.workflow_id for entry in over])

        def put(connection: Connection) -> None:
            counts = Counter((entry.queue, entry.priority, entry.owner) for entry in waiting)
            turns = {
                about: itertools.count(tables.next_turns(connection, *about, count))
                for about, count in counts.items()
            }
            for entry in waiting:
                turn = next(turns[entry.queue, entry.priority, entry.owner])
                arguments = entry.run_id, entry.owner, entry.queue, entry.priority, turn, dict(carried)
                self.client.enqueue_in_transaction(connection, _options(entry, turn), *arguments)

        self.transact(put)

    def _open(self) -> tuple[sqlalchemy.Engine, DBOSClient]:
        with self._opening:
            if self._engine is None or self._client is None:
                from dbos import DBOS, DBOSClient

                keep_quiet()
                engine = self.place.connect()
                DBOS.migrate(self.place.url, **_in_schema(self.place.schema))
                with engine.begin() as connection:
                    tables.create(connection)
                self._client = DBOSClient(
                    system_database_engine=engine,
                    dbos_system_schema=self.place.schema or None,
                    serializer=plain_serializer(),
                    application_name=APPLICATION,
                    retry_connection_errors=False,
                )
                self._engine = engine
            return self._engine, self._client


def full_error(max_queued: int) -> OverloadedError:
    """Return the error for a run that there is no room for in the queue."""
    return OverloadedError(
        f"{max_queued} runs wait to be driven, and no more may; try again later, or start more workers",
        retryable=True,
        retry_after_s=RETRY_AFTER_S,
    )


def read_queues(text: str) -> tuple[str, ...]:
    """Read names of queues, with commas between.

    Raises:
        UsageError: There is none, or one is not made of letters, digits, `-` and `_`.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            message = f"a queue has a name of letters, digits, - and _, at most 64 of them; got {name[:80]!r}"
            raise UsageError(message, option="queues")
    return names


def queue_name(name: str) -> str:
    """Return the name by which DBOS knows a queue: at least three characters, and none of its own."""
    return f"runs.{name}"


def traced_as(queue: str) -> dict[str, str]:
    """Return how a trace names a queue."""
    return {"messaging.system": "dbos", "messaging.destination.name": queue}


def keep_quiet() -> None:
    """Keep DBOS from writing to the terminal; its errors may quote an address with a password."""
    logging.getLogger("dbos").disabled = True


def plain_serializer() -> Any:
    """Return what writes arguments as JSON, where DBOS would pickle them."""
    from dbos import DBOSPortableJSONSerializer

    return DBOSPortableJSONSerializer()


def _in_schema(schema: str) -> dict[str, Any]:
    return {"schema": schema} if schema else {}


def _options(entry: Waiting, turn: int) -> EnqueueOptions:
    options: EnqueueOptions = {
        "workflow_name": WORK,
        "queue_name": queue_name(entry.queue),
        "workflow_id": entry.run_id,
        "app_version": VERSION,
        "priority": 1 + entry.priority * tables.TURNS + min(turn, tables.TURNS - 1),
    }
    if entry.delay_s > 0:
        options["delay_seconds"] = entry.delay_s
    return options
