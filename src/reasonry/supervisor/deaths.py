"""Retries of runs whose processes died. Each retry comes after a pause."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ..errors import ConflictError

MAX_DEATHS: Final = 5
"""How many processes may die in succession while they drive a run. Then the run is stopped."""

RESTS_S: Final = (1.0, 10.0, 60.0, 600.0)
"""The pauses, in seconds, after the first to the fourth death. During a pause, no process of the store takes the job of
the run. If processes keep dying nevertheless, the cause is not the run."""


@contextmanager
def register_retry(driven: list[int], run_id: str, deaths: int, since_s: float) -> Generator[None]:
    """Register the retry of a run whose processes died. During a run's last retry, this process retries no other run.

    Args:
        driven: The death counts of the runs with deaths that this process drives now.
        since_s: Seconds since the last death. Infinite if the last process released the run.

    Raises:
        ConflictError: The run must wait for another run, or for the end of its pause.
    """
    last, why = MAX_DEATHS - 1, ""
    if not deaths:
        yield
        return
    left_s = RESTS_S[deaths - 1] - since_s if deaths < MAX_DEATHS else 0.0
    if last in driven or (deaths == last and driven):
        why = f"the process of run {run_id} has died {deaths} times; another such run goes first"
    elif left_s > 0:
        why = f"run {run_id} is retried in {left_s:.0f} s: its process has died"
    if why:
        raise ConflictError(why, run_id=run_id, retryable=True)
    driven.append(deaths)
    try:
        yield
    finally:
        driven.remove(deaths)
