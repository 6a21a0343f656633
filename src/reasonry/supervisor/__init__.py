"""The supervisor: brings the runs of one process to their end in the background, and tells those who follow them."""

from .job_taking import CONCURRENCY, Jobs
from .run_events import RunEvent
from .supervisor import HUNG_UP, MAX_QUEUED, MAX_RUNS, Supervisor

__all__ = ["CONCURRENCY", "HUNG_UP", "MAX_QUEUED", "MAX_RUNS", "Jobs", "RunEvent", "Supervisor"]
