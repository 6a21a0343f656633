"""The dollars that the runs of one owner may take together in a day, whichever run a call is for.

Rule 1: an estimate is set aside before each call, and what the call took is booked after, as for the limit of a single
        run (`core.budget`).
Rule 2: what the owner's runs have spent in other processes is read from the store before a call, at most every
        `LOOK_EVERY_MS`; what is in flight there counts once it is recorded.
Rule 3: a day begins at midnight, UTC. What is in flight then is booked on the day it comes in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from ..core.budget import Budget, Ledger, Refusal
from ..core.events import NOTHING
from ..errors import StoreError
from ..records import UsageTotal, now_ms
from .guard import BudgetGuard

DAY_MS: Final = 86_400_000

LOOK_EVERY_MS: Final = 1_000

REASON: Final = "max_usd_a_day"
"""Why a run ends that meets the limit."""


class Allowance(BudgetGuard):
    """What one process knows of an owner's day.

    Args:
        now_ms: Reads the clock: milliseconds since 1970, UTC.
        spent_since: Reads from the store what the owner's runs have spent since an instant.
    """

    def __init__(
        self, usd: float, now_ms: Callable[[], int], spent_since: Callable[[int], Awaitable[float]]
    ) -> None:
        super().__init__(Ledger(Budget(usd=usd)))
        self._now_ms, self._spent_since = now_ms, spent_since
        self._day, self._looked_at_ms = 0, 0

    async def catch_up(self) -> None:
        """Take in the spending of the owner's runs today, whatever process drives them.

        Raises:
            StoreError: The store was never read, and cannot be.
        """
        now_ms = self._now_ms()
        if now_ms // DAY_MS > self._day:
            self._day, self._looked_at_ms = now_ms // DAY_MS, 0
            self.ledger = replace(self.ledger, spent=NOTHING)
        if 0 <= now_ms - self._looked_at_ms < LOOK_EVERY_MS:
            return
        is_first, self._looked_at_ms = not self._looked_at_ms, now_ms
        try:
            recorded = await self._spent_since(self._day * DAY_MS)
        except StoreError:
            if is_first:
                self._looked_at_ms = 0
                raise
        else:
            usd = max(self.ledger.spent.usd or 0.0, recorded)
            self.ledger = replace(self.ledger, spent=replace(self.ledger.spent, usd=usd))

    def refusal(self) -> Refusal | None:
        """Return why nothing more may be begun today, if so; as of the last look at the store."""
        reserved = replace(self.ledger, reserved=NOTHING).reserve(NOTHING)
        return self.word(reserved) if isinstance(reserved, Refusal) else None

    def word(self, refusal: Refusal) -> Refusal:
        """See `BudgetGuard`."""
        detail = refusal.detail.replace("US dollars", "US dollars a day")
        return replace(refusal, reason=REASON, detail=detail)


class Allowances:
    """The allowances of the owners whose runs this process accepts or drives.

    Args:
        usd_a_day: Returns what an owner may spend in a day; None: as much as they like.
    """

    def __init__(self, usd_a_day: Callable[[str], float | None]) -> None:
        self._usd_a_day = usd_a_day
        self._known: dict[str, Allowance] = {}

    async def today(
        self, owner: str, usage_since: Callable[[int, str], Awaitable[UsageTotal]]
    ) -> Allowance | None:
        """Return what an owner may spend today, as the store and this process know it; None: as much as they like."""
        usd = self._usd_a_day(owner)
        if usd is None:
            return None
        if owner not in self._known:

            async def spent_since(at_ms: int) -> float:
                return (await usage_since(at_ms, owner)).usd or 0.0

            self._known[owner] = Allowance(usd, now_ms, spent_since)
        await self._known[owner].catch_up()
        return self._known[owner]
