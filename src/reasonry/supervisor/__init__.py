"""The supervisor: drives the runs of one process in the background, and streams their events to followers."""

from .job_taking import CONCURRENCY, Jobs
from .run_events import RunEvent
from .supervisor import HUNG_UP, MAX_QUEUED, MAX_RUNS, Supervisor

__all__ = ["CONCURRENCY", "HUNG_UP", "MAX_QUEUED", "MAX_RUNS", "Jobs", "RunEvent", "Supervisor"]
