"""What the queue keeps beside the tables of DBOS: its workers, whose turn it is, and runs begun and not ended.

Rule 1: a worker that has not been seen for `DEAD_MS`, by the database's clock, counts as dead.
Rule 2: an owner's next run comes one turn after the owner's last, but not before the turn that is under way, as workers
        last said. So owners that wait take turns, however many runs each of them has.
Rule 3: a run that is begun again without having ended has cost its worker its life, most likely. The count starts anew
        where the run has got further. Nothing is noted of a run until a worker dies that had it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy import Connection

DEAD_MS: Final = 4_000
TURNS: Final = 2**31 // 10 - 1
"""Turns of one priority; DBOS orders by one number of 31 bits."""

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS workers (
        id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, queues TEXT NOT NULL,
        concurrency INTEGER NOT NULL, driving INTEGER NOT NULL, seen_ms BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS turns (
        queue TEXT NOT NULL, priority INTEGER NOT NULL, owner TEXT NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY (queue, priority, owner))""",
    """CREATE TABLE IF NOT EXISTS turns_begun (
        queue TEXT NOT NULL, priority INTEGER NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY (queue, priority))""",
    """CREATE TABLE IF NOT EXISTS begun (run_id TEXT PRIMARY KEY, kills INTEGER NOT NULL, events INTEGER NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, value BIGINT NOT NULL)""",
)

_NOW: Final = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
}


def create(connection: Connection) -> None:
    """Make the tables that do not exist yet."""
    if connection.dialect.name == "postgresql":
        # Of two that make the same table at once, PostgreSQL lets one fail.
        _run(connection, "SELECT pg_advisory_xact_lock(hashtext(current_schema()))")
    for statement in _TABLES:
        _run(connection, statement)


# -- workers


class Process(NamedTuple):
    """Which process a worker is, as far as others on its machine can tell."""

    host: str
    pid: int


def beat(
    connection: Connection, worker: str, process: Process, queues: str, concurrency: int, driving: int
) -> None:
    """Say that a worker is alive, and what it does."""
    _run(
        connection,
        f"""INSERT INTO workers VALUES (:id, :host, :pid, :queues, :concurrency, :driving, {_now(connection)})
        ON CONFLICT (id) DO UPDATE SET driving = :driving, seen_ms = {_now(connection)}""",
        id=worker,
        host=process.host,
        pid=process.pid,
        queues=queues,
        concurrency=concurrency,
        driving=driving,
    )


def silent_workers(connection: Connection) -> list[str]:
    """Return workers that have not been seen for long, some of them where they are many.

    Among them are those that took runs after they had been taken off the list.
    """
    rows = _run(
        connection,
        f"""SELECT id FROM workers WHERE seen_ms < {_now(connection)} - {DEAD_MS}
        UNION SELECT executor_id FROM workflow_status
        WHERE status = 'PENDING' AND executor_id NOT IN (SELECT id FROM workers) LIMIT 20""",
    )
    return [row[0] for row in rows]


def workers_of(connection: Connection, host: str) -> list[tuple[str, int]]:
    """Return the workers of a machine, with the ids of their processes."""
    rows = _run(connection, "SELECT id, pid FROM workers WHERE host = :host LIMIT 1000", host=host)
    return [(row[0], row[1]) for row in rows]


def is_first(connection: Connection, worker: str) -> bool:
    """Whether no other worker began before."""
    return _run(connection, "SELECT min(id) FROM workers").scalar() == worker


def forget_worker(connection: Connection, worker: str) -> None:
    """Take a worker off the list."""
    _run(connection, "DELETE FROM workers WHERE id = :id", id=worker)


def read_workers(connection: Connection) -> list[tuple[str, str, int, str, int, int, float]]:
    """Return id, machine, process, queues, room and work of workers that are alive, and the age of that in seconds."""
    rows = _run(
        connection,
        f"""SELECT id, host, pid, queues, concurrency, driving, ({_now(connection)} - seen_ms) / 1000.0
        FROM workers WHERE seen_ms >= {_now(connection)} - {DEAD_MS} ORDER BY id LIMIT 1000""",
    )
    return [(row[0], row[1].partition(" ")[0], *row[2:6], float(row[6])) for row in rows]


def count_workers(connection: Connection) -> int:
    """Return how many workers are alive."""
    count = _run(
        connection, f"SELECT count(*) FROM workers WHERE seen_ms >= {_now(connection)} - {DEAD_MS}"
    ).scalar()
    return count or 0


# -- turns


def next_turns(connection: Connection, queue: str, priority: int, owner: str, runs: int) -> int:
    """Return the first of as many turns as an owner has runs to wait."""
    about = {"queue": queue, "priority": priority, "owner": owner}
    begun = _turn_begun(connection, queue, priority)
    last = _run(
        connection,
        """INSERT INTO turns VALUES (:queue, :priority, :owner, :begun + :runs)
        ON CONFLICT (queue, priority, owner) DO UPDATE
        SET last = CASE WHEN turns.last < :begun THEN :begun ELSE turns.last END + :runs RETURNING last""",
        **about,
        begun=begun,
        runs=runs,
    ).scalar()
    return (last or 0) - runs + 1


def begin_turn(connection: Connection, queue: str, priority: int, turn: int) -> None:
    """Note that a run of this turn is begun."""
    if turn > _turn_begun(connection, queue, priority):
        _run(
            connection,
            """INSERT INTO turns_begun VALUES (:queue, :priority, :turn)
            ON CONFLICT (queue, priority) DO UPDATE
            SET turn = CASE WHEN turns_begun.turn < :turn THEN :turn ELSE turns_begun.turn END""",
            queue=queue,
            priority=priority,
            turn=turn,
        )
        # Who has no turn to come needs no row.
        _run(
            connection,
            "DELETE FROM turns WHERE queue = :queue AND priority = :priority AND last <= :turn",
            queue=queue,
            priority=priority,
            turn=turn,
        )


def _turn_begun(connection: Connection, queue: str, priority: int) -> int:
    turn = _run(
        connection,
        "SELECT turn FROM turns_begun WHERE queue = :queue AND priority = :priority",
        queue=queue,
        priority=priority,
    ).scalar()
    return turn or 0


# -- runs that wait


def claim(
    connection: Connection, queue: str, version: str, worker: str, places: int, max_running: int | None
) -> list[tuple[str, str | None, bool]]:
    """Have a worker take those runs of a queue that are next.

    One that counts as dead takes none before it has said that it is alive: others would take them for a dead one's.

    Args:
        queue: As DBOS names it.
        places: How many at most.
        max_running: None are taken while so many of the queue are at work, whoever has them.

    Returns:
        Of each the id, the arguments as they were written, and whether a worker has died that had it.
    """
    if max_running is not None:
        places = _places_left(connection, queue, places, max_running)
    skip = "FOR UPDATE SKIP LOCKED" if connection.dialect.name == "postgresql" else ""
    # What the status is among says which index serves, which SQLite does not conclude from what it is.
    next_up = _run(
        connection,
        f"""SELECT workflow_uuid FROM workflow_status
        WHERE queue_name = :queue AND status = 'ENQUEUED' AND status IN ('ENQUEUED', 'PENDING')
            AND application_version = :version AND EXISTS (SELECT 1 FROM workers WHERE id = :worker)
        ORDER BY priority, created_at LIMIT :places {skip}""",
        queue=queue,
        version=version,
        worker=worker,
        places=places,
    ).scalars()
    claimed = [
        # Others may have taken it since: a reader of SQLite locks nothing.
        _run(
            connection,
            f"""UPDATE workflow_status SET status = 'PENDING', executor_id = :worker, owner_xid = NULL,
                started_at_epoch_ms = {_now(connection)}, updated_at = {_now(connection)}
            WHERE workflow_uuid = :id AND status = 'ENQUEUED'
            RETURNING workflow_uuid, (SELECT inputs FROM workflow_input WHERE workflow_input.workflow_uuid = :id),
                EXISTS (SELECT 1 FROM begun WHERE run_id = :id)""",
            id=run_id,
            worker=worker,
        ).first()
        for run_id in next_up.all()
    ]
    return [(row[0], row[1], bool(row[2])) for row in claimed if row is not None]


def _places_left(connection: Connection, queue: str, places: int, max_running: int) -> int:
    def count_left() -> int:
        statement = """SELECT count(*) FROM workflow_status
            WHERE queue_name = :queue AND status = 'PENDING' AND status IN ('ENQUEUED', 'PENDING')"""
        return max(0, min(places, max_running - _run(connection, statement, queue=queue).scalar()))

    if count_left():
        # From here on nobody else counts until this is committed.
        add(connection, "claims", 1)
        return count_left()
    return 0


def enqueue_due(connection: Connection) -> None:
    """Have runs wait whose time has come."""
    _run(
        connection,
        f"""UPDATE workflow_status SET status = 'ENQUEUED'
        WHERE status = 'DELAYED' AND delay_until_epoch_ms <= {_now(connection)}""",
    )


# -- runs begun


def kills(connection: Connection, run_id: str, events: int) -> int:
    """Return how many workers a run has cost since it last got further.

    Args:
        events: How far it has got.
    """
    row = _run(connection, "SELECT kills, events FROM begun WHERE run_id = :id", id=run_id).first()
    if row is None:
        return 0
    return 1 if events > row[1] else row[0] + 1


def note_orphans(connection: Connection, run_ids: Sequence[str]) -> None:
    """Note that a worker has died which had these runs; what is noted of one already says so too."""
    for run_id in run_ids:
        _run(connection, "INSERT INTO begun VALUES (:id, 0, 0) ON CONFLICT DO NOTHING", id=run_id)


def note_begun(connection: Connection, run_id: str, kills: int, events: int) -> None:
    """Note that a run is begun."""
    _run(
        connection,
        """INSERT INTO begun VALUES (:id, :kills, :events)
        ON CONFLICT (run_id) DO UPDATE SET kills = :kills, events = :events""",
        id=run_id,
        kills=kills,
        events=events,
    )


def note_ended(connection: Connection, run_id: str) -> None:
    """Note that nobody has died of a run."""
    _run(connection, "DELETE FROM begun WHERE run_id = :id", id=run_id)


def note_over(connection: Connection, run_id: str, worker: str) -> None:
    """Note that the queue has nothing more to do for a run, if it is still this worker that has it at work."""
    _run(
        connection,
        f"""UPDATE workflow_status SET status = 'SUCCESS', owner_xid = NULL,
            updated_at = {_now(connection)}, completed_at = {_now(connection)}
        WHERE workflow_uuid = :id AND status = 'PENDING' AND executor_id = :worker""",
        id=run_id,
        worker=worker,
    )


# -- counts


def add(connection: Connection, name: str, amount: int) -> None:
    """Add to a count."""
    _run(
        connection,
        """INSERT INTO counts VALUES (:name, :amount)
        ON CONFLICT (name) DO UPDATE SET value = counts.value + :amount""",
        name=name,
        amount=amount,
    )


def value(connection: Connection, name: str) -> int:
    """Return a count."""
    return _run(connection, "SELECT value FROM counts WHERE name = :name", name=name).scalar() or 0


def count_waiting(connection: Connection) -> tuple[int, float]:
    """Return how many runs wait to be driven, and for how many seconds the first has."""
    row = _run(
        connection,
        f"SELECT count(*), {_now(connection)} - min(created_at) FROM workflow_status WHERE status = 'ENQUEUED'",
    ).one()
    return row[0], max(0, row[1] or 0) / 1000


def are_waiting(connection: Connection, runs: int) -> bool:
    """Whether so many runs wait to be driven, or will."""
    statement = """SELECT count(*) FROM
        (SELECT 1 FROM workflow_status WHERE status IN ('ENQUEUED', 'DELAYED') LIMIT :runs) AS waiting"""
    return _run(connection, statement, runs=runs).scalar() == runs


def _now(connection: Connection) -> str:
    return _NOW[connection.dialect.name]


def _run(connection: Connection, statement: str, **values: object) -> Any:
    from sqlalchemy import text

    return connection.execute(text(statement), values)
