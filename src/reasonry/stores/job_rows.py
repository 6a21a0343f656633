"""Which jobs of a store wait for the one process that drives them."""

from __future__ import annotations

import time
from collections.abc import Collection

from ..records import JobStanding
from . import lease_rows, sql

JOB = "run.status = 'active' AND run.unattended = 1 AND run.paused = 0"
HOLDERS = f"""
SELECT DISTINCT holder FROM run INDEXED BY run_job JOIN lease ON lease.key = run.key
WHERE {JOB} AND holder IS NOT NULL AND until_ms > $1
"""
WAITING = f"""
FROM run INDEXED BY run_job LEFT JOIN lease ON lease.key = run.key
WHERE {JOB} AND (holder IS NULL OR holder NOT IN ({{living}}))
"""
FIRST = f"""
SELECT {sql.RUN_COLUMNS} FROM run WHERE key IN (
  SELECT min(run.key) {WAITING} AND run_id NOT IN ({{skip}}) GROUP BY owner
) ORDER BY key
"""
STANDING = f"SELECT count(*), min(created_at_ms) {WAITING}"


def first_of_each_owner(tx: sql.Tx, skip: Collection[str], now_ms: int) -> list[tuple[object, ...]]:
    """Return the rows of the jobs that have waited longest."""
    living = _find_living(tx, now_ms)
    lists = {"living": sql.values(len(living)), "skip": sql.values(len(skip), len(living) + 1)}
    return tx.rows(FIRST.format(**lists), [*living, *skip])


def standing(tx: sql.Tx, now_ms: int) -> JobStanding:
    """Return how the jobs stand."""
    living = _find_living(tx, now_ms)
    depth, created_at_ms = tx.rows(STANDING.format(living=sql.values(len(living))), living)[0]
    waited_s = time.time() - (created_at_ms or 0) / 1_000 if depth else 0.0
    return JobStanding(depth, max(0.0, waited_s), int(lease_rows.has_job_driver(tx, now_ms)))


def _find_living(tx: sql.Tx, now_ms: int) -> list[str]:
    return [holder for (holder,) in tx.rows(HOLDERS, (now_ms,)) if lease_rows.find_living(holder)]
