"""The queue of a PostgreSQL store: a worker of procrastinate whose jobs are "drive this run".

The store writes a run and its job in one transaction. The journal stays the truth, and the lease the right to drive a
run: a job may come twice, early, or for a run that has ended.
"""

from .worker import DEFAULT_QUEUE, Later, Worker, drive_run, postgres_store, read_queues

__all__ = ["DEFAULT_QUEUE", "Later", "Worker", "drive_run", "postgres_store", "read_queues"]
