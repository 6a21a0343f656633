"""What the owners of runs may spend in a day, as one process knows it."""

from __future__ import annotations

from collections.abc import Callable

from ..app.wiring import App
from ..engine.allowance import Allowance
from ..engine.named_prices import check_priced
from ..engine.policy import Performers
from ..errors import UsageError
from ..ids import now_ms


class OwnersDays:
    """The allowances of the owners whose runs this process accepts or drives.

    Args:
        usd_a_day: Says how many dollars an owner may spend; None: as many as they like.
    """

    def __init__(self, usd_a_day: Callable[[str], float | None]) -> None:
        self._usd_a_day = usd_a_day
        self._allowances = dict[str, Allowance]()

    async def check(self, app: App, performers: Performers) -> Allowance | None:
        """Return what the owner may spend today, if that is limited.

        Raises:
            UsageError: `budget_exceeded`, `price_unknown`.
        """
        allowance = await self.allowance(app)
        if allowance is None:
            return None
        check_priced("max_usd_a_day", performers.models, performers.prices)
        refusal = allowance.refusal()
        if refusal is not None:
            raise UsageError(f"{refusal.detail}; it starts over at midnight, UTC", code="budget_exceeded")
        return allowance

    async def allowance(self, app: App) -> Allowance | None:
        """Return what the owner may spend today, as the store and this process know it."""
        owner = owner_of(app)
        usd = self._usd_a_day(owner)
        if usd is None:
            return None
        if owner not in self._allowances:

            async def spent_since(at_ms: int) -> float:
                return (await app.store.usage_since(at_ms, owner)).usd

            self._allowances[owner] = Allowance(usd, now_ms, spent_since)
        await self._allowances[owner].catch_up()
        return self._allowances[owner]


def owner_of(app: App) -> str:
    """Return whose runs an app sees; empty: the operator's, and everybody's."""
    return getattr(app.store, "owner", "")
