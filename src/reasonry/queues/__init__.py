"""The queue of a PostgreSQL store. Workers of the library Procrastinate take jobs, and each job is a run to drive.

The store writes a run and its job in one transaction. The journal is the truth about a run, and the run's lease is the
right to drive the run. So a job does no harm if it arrives twice, too early, or for a run that has ended.
"""

from .worker import DEFAULT_QUEUE, Later, Worker, perform_job, postgres_store, read_queues

__all__ = ["DEFAULT_QUEUE", "Later", "Worker", "perform_job", "postgres_store", "read_queues"]
