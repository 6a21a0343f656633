"""The dollars that the runs of one owner may take together in a day, whichever run a call is for.

Rule 1: as for the limit of a single run: an estimate is set aside before each call, and what it took is booked after.
Rule 2: what other processes have spent is read from the store before a call, at most every `LOOK_EVERY_MS`.
Rule 3: a day begins at midnight, UTC. What is in flight then is booked on the day it comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..core.budget import NOTHING, Budget, Ledger, Refusal, Usage
from ..errors import StoreError

DAY_MS: Final = 86_400_000

LOOK_EVERY_MS: Final = 1_000

REASON: Final = "max_usd_a_day"
"""Why a run ends that meets the limit."""


class Allowance:
    """What one process knows of an owner's day.

    Args:
        now_ms: Reads the clock: milliseconds since 1970, UTC.
        spent_since: Reads from the store what the owner's runs have spent since an instant.
    """

    def __init__(
        self, usd: float, now_ms: Callable[[], int], spent_since: Callable[[int], Awaitable[float]]
    ) -> None:
        self._spent_since, self._looked_at_ms = spent_since, 0
        self._ledger = Ledger(Budget(usd=usd))
        self._now_ms, self._day = now_ms, now_ms() // DAY_MS
        self._coming: dict[object, Usage] = {}
        """What replies that stream in are estimated to have taken so far."""
        self._changed = asyncio.Event()

    async def catch_up(self) -> None:
        """Take in what the store knows of the day: other processes, and this owner's runs before this process began.

        Raises:
            StoreError: The store was never read, and cannot be.
        """
        self._begin_day()
        now_ms, day, last_ms = self._now_ms(), self._day, self._looked_at_ms
        if 0 <= now_ms - last_ms < LOOK_EVERY_MS:
            return
        self._looked_at_ms = now_ms
        try:
            usd = await self._spent_since(day * DAY_MS)
        except StoreError:
            if not last_ms:
                self._looked_at_ms = 0
                raise
            return
        self._begin_day()
        if day == self._day:
            # What came back here is booked before the store has it.
            spent = max(usd, self._ledger.spent.usd or 0.0)
            self._ledger = replace(self._ledger, spent=Usage(calls=0, usd=spent))

    def refusal(self) -> Refusal | None:
        """Return why nothing more may be begun today, if so."""
        self._begin_day()
        outcome = replace(self._ledger, reserved=NOTHING).reserve(NOTHING)
        return _of_the_day(outcome) if isinstance(outcome, Refusal) else None

    def reserve(self, samples: int) -> Usage | Refusal:
        """Set aside what a request for so many samples may take, or say why it may not go out."""
        self._begin_day()
        estimate = self._ledger.estimate(0, samples)
        outcome = self._ledger.reserve(estimate)
        if isinstance(outcome, Refusal):
            return _of_the_day(outcome)
        self._ledger = outcome
        return estimate

    async def wait(self) -> None:
        """Return when a call has come back."""
        self._changed.clear()
        await self._changed.wait()

    def settle(self, estimate: Usage, actual: Sequence[Usage]) -> None:
        """Give a reservation back and book what was really spent, sample by sample."""
        self._begin_day()
        for usage in actual:
            self._ledger = self._ledger.settle(estimate, Usage(calls=usage.calls, usd=usage.usd))
            estimate = NOTHING
        self._changed.set()

    def watch(self, reply: object, so_far: Usage) -> Refusal | None:
        """Note what a reply that streams in has taken so far; return the limit if it is passed by now."""
        self._coming[reply] = so_far
        refusal = self._ledger.passed_by(
            Usage(calls=0, usd=sum(each.usd or 0 for each in self._coming.values()))
        )
        return None if refusal is None else _of_the_day(refusal)

    def forget(self, reply: object) -> None:
        """Watch a reply no longer."""
        self._coming.pop(reply, None)

    def _begin_day(self) -> None:
        day = self._now_ms() // DAY_MS
        if day > self._day:
            self._day, self._ledger = day, replace(self._ledger, spent=NOTHING)


def _of_the_day(refusal: Refusal) -> Refusal:
    return replace(refusal, reason=REASON, detail=refusal.detail.replace("US dollars", "US dollars a day"))
