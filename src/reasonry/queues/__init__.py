"""The queue of a PostgreSQL store. A worker of the library procrastinate takes jobs that say "drive this run".

The store writes a run and its job in one transaction. The journal is the truth about a run, and its lease is the right
to drive it. So a job may arrive twice, early, or for a run that has ended.
"""

from .worker import DEFAULT_QUEUE, Later, Worker, drive_run, postgres_store, read_queues

__all__ = ["DEFAULT_QUEUE", "Later", "Worker", "drive_run", "postgres_store", "read_queues"]
