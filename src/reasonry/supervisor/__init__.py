"""The supervisor: brings the runs of one process to their end in the background, and tells those who follow them."""

from .run_events import RunEvent
from .supervisor import Supervisor

__all__ = ["RunEvent", "Supervisor"]
