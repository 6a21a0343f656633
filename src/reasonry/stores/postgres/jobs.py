"""The jobs of a PostgreSQL store. A job tells a worker to drive a run until the run ends or pauses.

Jobs are in the tables of the package procrastinate, in the store's schema. A run and its job are thus written in one
commit, and a backup of this database has all data. The worker that performs jobs is in `queues`.
"""

from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...records import JobOptions, QueueStatus
from .. import sql
from .nul_escapes import spell

TASK: Final = "reasonry.drive"
DEAD_S: Final = 8
"""Seconds without a heartbeat after which a worker counts as dead."""
MOST_TURNS: Final = 9
"""Each waiting run of an owner lowers the priority of the owner's next run. At most this many waiting runs count."""
WORKER: Final = "reasonry-worker"
"""The prefix of the application name of a worker's connections. The schema, the process and the machine follow."""

OF_OWNER: Final = f"""
SELECT count(*) FROM (
  SELECT 1 FROM procrastinate_jobs WHERE status = 'todo' AND args->>'owner' = $1 LIMIT {MOST_TURNS}
) AS waiting
"""
WITHOUT_JOB: Final = """
SELECT run_id, owner FROM run WHERE unattended <> 0 AND status = 'active' AND paused = 0 AND NOT EXISTS (
  SELECT 1 FROM procrastinate_jobs WHERE args->>'run_id' = run_id AND status IN ('todo', 'doing')
) ORDER BY key
"""
QUEUE_STATUS: Final = f"""
WITH waiting AS (
  SELECT id FROM procrastinate_jobs WHERE status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())
)
SELECT (SELECT count(*) FROM waiting),
  coalesce((SELECT extract(epoch FROM now() - min(at)) FROM procrastinate_events
    WHERE job_id = (SELECT min(id) FROM waiting)), 0)::float8,
  (SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval '{DEAD_S} s')
"""
WORKERS: Final = f"""
WITH worker AS (
  SELECT split_part(application_name, ' ', 2) AS process, min(backend_start) AS begun FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE '{WORKER}:' || current_schema() || ' %' GROUP BY 1
)
SELECT process, (extract(epoch FROM now() - begun))::float8, ARRAY(
  SELECT run_id FROM lease JOIN run ON run.key = lease.key WHERE until_ms > $1
  AND split_part(holder, ' ', 1) || '@' || split_part(split_part(holder, ' ', 2), '/', 1) = process ORDER BY run.key
) FROM worker ORDER BY begun
"""


SCRIPTS: Final = "procrastinate/"
"""The prefix of the names of procrastinate's scripts in the store's table of migrations."""
HAS_WORKERS: Final = (
    "SELECT 1 FROM procrastinate_workers WHERE last_heartbeat > now() - interval '1 min' LIMIT 1"
)
OWN_INDEXES: Final = """
CREATE INDEX reasonry_job_owner ON procrastinate_jobs ((args->>'owner')) WHERE status = 'todo';
CREATE INDEX reasonry_job_run ON procrastinate_jobs ((args->>'run_id'));
"""


class WorkerStatus(NamedTuple):
    """A living worker: its process, the age of its oldest connection in seconds, and the ids of its runs."""

    process: str
    since_s: float
    runs: list[str]


def put(tx: sql.Tx, run_id: str, owner: str, job: JobOptions) -> None:
    """Queue a run for a worker, inside the caller's transaction.

    Among runs of the same priority, a run comes earlier if its owner had fewer waiting runs when the run was queued. A
    large batch of one owner thus does not delay the few runs of another owner.
    """
    from procrastinate.exceptions import ConnectorException

    (others,) = tx.rows(OF_OWNER, (owner,))[0]
    task = _client().configure_task(
        TASK,
        allow_unknown=True,
        queue=job.queue,
        priority=-(job.priority * (MOST_TURNS + 1) + others),
        schedule_at=None if job.at_ms is None else datetime.fromtimestamp(job.at_ms / 1_000, UTC),
        connection=tx.connection,
    )
    try:
        # JSON in PostgreSQL cannot contain NUL either.
        task.defer(run_id=spell(run_id), owner=spell(owner), carrier=dict(job.carrier))
    except ConnectorException as error:
        # The cause of this error tells whether the database is gone and whether to try the transaction again.
        raise error.__cause__ or error from None


def put_missing(tx: sql.Tx) -> int:
    """Queue every unattended run that has no job, for example after a restore. Return how many runs were queued."""
    missing = tx.rows(WITHOUT_JOB)
    for run_id, owner in missing:
        put(tx, run_id, owner, JobOptions())
    return len(missing)


def queue_status(tx: sql.Tx) -> QueueStatus:
    """Return how many jobs wait, the longest wait in seconds, and how many workers are alive."""
    return QueueStatus(*tx.rows(QUEUE_STATUS)[0])


def workers(tx: sql.Tx) -> list[WorkerStatus]:
    """Return the living workers, oldest first."""
    return [WorkerStatus(*row) for row in tx.rows(WORKERS, (tx.now_ms(),))]


@cache
def _client() -> Any:
    import procrastinate

    return procrastinate.App(connector=procrastinate.PsycopgConnector())


def pending_scripts(applied: AbstractSet[str]) -> dict[str, str]:
    """Map the names of pending Procrastinate scripts to their SQL, in the order of application."""
    # This finds the scripts without importing the package.
    spec = find_spec("procrastinate")
    assert spec is not None, "the extra `server` brings it"
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "sql"
    scripts = {f"{SCRIPTS}{path.stem}": path for path in sorted(folder.glob("migrations/*.sql"))}
    if applied.isdisjoint(scripts):
        whole = (folder / "schema.sql").read_text("utf-8") + OWN_INDEXES
        return {**dict.fromkeys(scripts, ""), min(scripts): whole}
    return {name: path.read_text("utf-8") for name, path in scripts.items() if name not in applied}
