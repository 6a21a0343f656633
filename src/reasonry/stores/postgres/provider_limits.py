"""Limits on the calls to each provider, shared by all workers of a store."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ...errors import StoreError, UsageError
from .. import sql
from .jobs import DEAD_S, QUEUE_STATUS

if TYPE_CHECKING:
    from . import PostgresStore

WINDOW_MS: Final = 60_000
LOOK_EVERY_S: Final = 5.0
"""Seconds between two reads of the limits."""
BUSY_S: Final = 0.2
"""Seconds until a waiting call checks again whether an unfinished call has ended."""
_SPARE_S: Final = 5.0
"""If a process dies, its calls count as unfinished until this many seconds after their timeouts."""

_LIMIT = "SELECT requests, at_once, set_at_ms FROM provider_limit WHERE provider = $1"
_SET = """
INSERT INTO provider_limit (provider, requests, at_once, set_at_ms) VALUES ($1, $2, $3, $4) ON CONFLICT (provider)
DO UPDATE SET requests = excluded.requests, at_once = excluded.at_once, set_at_ms = excluded.set_at_ms
"""
_COUNT = """
SELECT count(*) FILTER (WHERE sent_at_ms > $2), min(sent_at_ms) FILTER (WHERE sent_at_ms > $2),
  count(*) FILTER (WHERE until_ms > $3) FROM provider_call WHERE provider = $1
"""
_FORGET = "DELETE FROM provider_call WHERE provider = $1 AND sent_at_ms <= $2 AND until_ms <= $3"
_TAKE = "INSERT INTO provider_call (provider, sent_at_ms, until_ms) VALUES ($1, $2, $3) RETURNING id"
_GIVE_BACK = "UPDATE provider_call SET until_ms = 0 WHERE id = $1"


class ProviderLimit(NamedTuple):
    """How many calls a provider may get per minute, and how many at the same time (None for no limit)."""

    requests: int
    at_once: int | None

    def __str__(self) -> str:
        """Return the limits as the user writes them, such as `120/min,16`."""
        return f"{self.requests}/min" + (f",{self.at_once}" if self.at_once else "")


class ProviderLimits:
    """Keeps calls within a store's provider limits; see `rate_limits.SharedLimits`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store, self._known, self._read_at_s = store, set[str](), -LOOK_EVERY_S
        self._turns = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def declare(self, limits: Mapping[str, ProviderLimit]) -> dict[str, ProviderLimit]:
        """Store new limits. If the active workers have a different limit for a provider, return the lower limit."""
        held = {
            name: await self._store.write(lambda tx, n=name: _declare(tx, n, limits[n])) for name in limits
        }
        return {name: limit for name, limit in held.items() if limit is not None}

    @asynccontextmanager
    async def __call__(
        self, provider: str, lease_s: float, pausing: Callable[[float], None]
    ) -> AsyncGenerator[int | None]:
        """Wait until a provider has a free place for a call, and hold the place during the call; see `SharedLimits`."""
        place = await self._take(provider, int((lease_s + _SPARE_S) * 1_000), pausing)
        try:
            yield place
        finally:
            if place is not None:
                with suppress(StoreError):
                    await self._store.write(lambda tx: tx.execute(_GIVE_BACK, (place,)))

    async def _take(self, provider: str, lease_ms: int, pausing: Callable[[float], None]) -> int | None:
        if time.monotonic() >= self._read_at_s + LOOK_EVERY_S:
            with suppress(StoreError):
                names = await self._store.read(lambda tx: tx.rows("SELECT provider FROM provider_limit"))
                self._known, self._read_at_s = {name for (name,) in names}, time.monotonic()
        name = provider if provider in self._known else provider.partition(":")[0]
        if name not in self._known:
            return None
        # Only one waiting call at a time asks the database.
        async with self._turns[name]:
            while True:
                place, wait_s = None, 1.0
                with suppress(StoreError):
                    place, wait_s = await self._store.write(lambda tx: _place(tx, name, lease_ms))
                if place is not None:
                    return place
                pausing(wait_s)
                await asyncio.sleep(wait_s)


def read_provider_limits(texts: Sequence[str]) -> dict[str, ProviderLimit]:
    """Parse limits as the user writes them, such as `openai=120/min,16`, or raise UsageError."""
    limits = dict[str, ProviderLimit]()
    for text in texts:
        found = re.fullmatch(r"(\S+)=([1-9]\d{0,8})/min(?:,([1-9]\d{0,8}))?", text)
        if found is None:
            message = f"a limit is PROVIDER=CALLS/min,AT_ONCE, such as openai=120/min,16, got {text[:60]!r}"
            raise UsageError(message, option="provider_limit")
        limits[found[1]] = ProviderLimit(int(found[2]), int(found[3]) if found[3] else None)
    return limits


def _declare(tx: sql.Tx, provider: str, limit: ProviderLimit) -> ProviderLimit | None:
    """Store the lower of a new limit and the active workers' limit. If these limits differ, return the lower limit."""
    named, stored = limit, limit
    now, found = tx.now_ms(), tx.rows(_LIMIT + tx.dialect.lock, (provider,))
    if found and (found[0][2] > now - DEAD_S * 1_000 or tx.rows(QUEUE_STATUS)[0][2]):
        stored = ProviderLimit(*found[0][:2])
        both = [number for number in (named.at_once, stored.at_once) if number is not None]
        limit = ProviderLimit(min(named.requests, stored.requests), min(both, default=None))
    tx.execute(_SET, (provider, *limit, now))
    return None if stored == named else limit


def _place(tx: sql.Tx, provider: str, lease_ms: int) -> tuple[int | None, float]:
    """Reserve a place for a call. Return the id of the place (None if none is free) and the seconds to wait."""
    requests, at_once, _ = tx.rows(_LIMIT + tx.dialect.lock, (provider,))[0]
    now = tx.now_ms()
    since = now - WINDOW_MS
    tx.execute(_FORGET, (provider, since, now))
    sent, first, in_flight = tx.rows(_COUNT, (provider, since, now))[0]
    if sent >= requests:
        return None, max(first - since, 1) / 1_000
    if at_once is not None and in_flight >= at_once:
        return None, BUSY_S
    return tx.rows(_TAKE, (provider, now, now + lease_ms))[0][0], 0.0
