"""The queue: which runs wait to be driven, and who of several processes drives them; on DBOS.

The journal stays the truth. What the queue loses is found again in the store; what it says twice is kept apart by the
right to drive a run.
"""

from .queue import (
    DEFAULT_QUEUE,
    MAX_PRIORITY,
    MAX_QUEUED,
    PRIORITY,
    Queue,
    QueueStanding,
    Waiting,
    WorkerStanding,
    full_error,
    read_queues,
)
from .queue_place import QueuePlace, place_of
from .worker import Worker

__all__ = [
    "DEFAULT_QUEUE",
    "MAX_PRIORITY",
    "MAX_QUEUED",
    "PRIORITY",
    "Queue",
    "QueuePlace",
    "QueueStanding",
    "Waiting",
    "Worker",
    "WorkerStanding",
    "full_error",
    "place_of",
    "read_queues",
]
