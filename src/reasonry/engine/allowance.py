"""The dollars that the runs of one owner may take together in a day, whichever run and process a call is for.

Rule 1: as for the limit of a single run: an estimate is set aside before each call, and what it took is booked after.
Rule 2: calls go out within what this process holds of the day, see `shared_day`; it asks for more of it where that does
        not do, and says what it has spent, every `BEAT_S` at least.
Rule 3: what is spent is also read from the store before a call, at most every `LOOK_EVERY_MS`.
Rule 4: a day begins at midnight, UTC. What is in flight then is booked on the day it comes in.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from ..core.budget import HEADROOM, NOTHING, Budget, Ledger, Refusal, Usage, larger_usage
from ..errors import StoreError
from ..records import SharedValues
from .shared_day import HOLD_MS, Day, Share, Wish, hold, read_day

DAY_MS: Final = 86_400_000

LOOK_EVERY_MS: Final = 1_000

BEAT_S: Final = 2.0

WAIT_S: Final = 0.25
"""How long to wait at most until what others hold is looked at again."""

REASON: Final = "max_usd_a_day"
"""Why a run ends that meets the limit."""

Pause = Callable[[Awaitable[None]], Awaitable[None]]
"""Waits for something, unless it is not to be waited for any more."""


class Allowance:
    """What one process knows and holds of an owner's day.

    Args:
        now_ms: Reads the clock: milliseconds since 1970, UTC.
        spent_since: Reads from the store what the owner's runs have spent since an instant.
        shared: What all processes share that drive the owner's runs.
    """

    def __init__(
        self,
        usd: float,
        now_ms: Callable[[], int],
        spent_since: Callable[[int], Awaitable[float]],
        shared: SharedValues,
        owner: str = "",
    ) -> None:
        self._spent_since, self._looked_at_ms = spent_since, 0
        self._usd, self._ledger = usd, Ledger(Budget(usd=usd))
        self._now_ms, self._day = now_ms, now_ms() // DAY_MS
        self._coming: dict[object, Usage] = {}
        """What replies that stream in are estimated to have taken so far."""
        self._changed = asyncio.Event()
        self._shared = shared
        self._name = f"day:{hashlib.sha256(owner.encode(errors='surrogatepass')).hexdigest()[:32]}"
        self._holder = secrets.token_hex(8)
        self._share, self._until_s = Share(0.0, is_enough=False), 0.0
        self._settled, self._told_s = 0.0, time.monotonic()
        """What was spent since others were told, and when they were."""
        self._is_lone = False
        """Whether a call is out for which all of the rest is held."""
        self._turn, self._asking = asyncio.Lock(), asyncio.Lock()
        self._waiting = 0
        """Samples that are to be asked for."""
        self._telling: asyncio.Task[None] | None = None
        self._tell_now = asyncio.Event()

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
            self._note_spent(usd)

    def refusal(self) -> Refusal | None:
        """Return why nothing more may be begun today, if so."""
        self._begin_day()
        outcome = replace(self._ledger, reserved=NOTHING).reserve(NOTHING)
        return _of_the_day(outcome) if isinstance(outcome, Refusal) else None

    async def take(self, samples: int, pause: Pause) -> Usage | Refusal:
        """Set aside what a request for so many samples may take, once it may go out; or say why it may not.

        Raises:
            StoreError: Others may hold what is left, and the store does not answer.
        """
        self._waiting += samples
        try:
            async with self._turn:
                while True:
                    await self.catch_up()
                    async with self._asking:
                        outcome = self._reserve(samples)
                    if outcome is None:
                        outcome = await self._ask(samples)
                    if outcome is not None and not (isinstance(outcome, Refusal) and outcome.wait):
                        return outcome
                    await pause(self._wait())
        finally:
            self._waiting -= samples

    def settle(self, estimate: Usage, actual: Sequence[Usage]) -> None:
        """Give a reservation back and book what was really spent, sample by sample."""
        self._begin_day()
        for usage in actual:
            self._ledger = self._ledger.settle(estimate, Usage(calls=usage.calls, usd=usage.usd))
            self._settled += usage.usd or 0.0
            estimate = NOTHING
        if self._is_lone:
            # Others wait for it.
            self._is_lone = False
            self._tell_now.set()
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

    async def close(self) -> None:
        """Say what was spent, and hold nothing more, as far as the store answers."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
            # What the store does not take is there again soon; what was spent stands in the runs.
            with suppress(StoreError):
                await self._exchange(0)

    async def _wait(self) -> None:
        """Return when a call has come back, or others may have let go of what they hold."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self._changed.wait()

    def _reserve(self, samples: int) -> Usage | Refusal | None:
        """Set an estimate aside; None: this process holds too little for it."""
        self._begin_day()
        estimate = self._ledger.estimate(0, samples)
        outcome = self._ledger.reserve(estimate)
        if isinstance(outcome, Refusal):
            return _of_the_day(outcome)
        needed = HEADROOM * (outcome.reserved.usd or 0.0)
        holds = self._ledger.largest.calls and needed <= self._share.usd - self._settled
        is_lone = self._share.is_alone and not self._ledger.reserved.calls
        if time.monotonic() >= self._until_s or not (holds or is_lone):
            return None
        self._ledger, self._is_lone = outcome, is_lone
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._keep_telling())
        return estimate

    async def _keep_telling(self) -> None:
        while self._ledger.reserved.calls or self._share.usd or self._settled:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._tell_now.wait()
            self._tell_now.clear()
            with suppress(StoreError):
                await self._exchange(0)

    async def _ask(self, samples: int) -> Usage | Refusal | None:
        # Whoever waits may give up, but not in the middle of this.
        asking = asyncio.ensure_future(self._exchange(samples))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(self._undo)
            raise

    def _undo(self, asking: asyncio.Task[Usage | Refusal | None]) -> None:
        outcome = None if asking.cancelled() or asking.exception() else asking.result()
        if isinstance(outcome, Usage):
            self.settle(outcome, [NOTHING])

    async def _exchange(self, samples: int) -> Usage | Refusal | None:
        """Say what was spent, ask for what so many samples need besides what is in flight, and set that aside."""
        async with self._asking:
            asked_s, settled, ledger = time.monotonic(), self._settled, self._ledger
            largest = (ledger.largest.usd or 0.0) if ledger.largest.calls else None
            rate = settled / max(asked_s - self._told_s, 0.1)
            wish = Wish(
                holder=self._holder,
                number=self._day,
                limit=self._usd,
                known=ledger.spent.usd or 0.0,
                settled=settled,
                largest=largest,
                reserved=ledger.reserved.usd or 0.0,
                ahead=HEADROOM * max(rate * BEAT_S, self._waiting * (largest or 0.0)),
                in_flight=ledger.reserved.calls,
                samples=samples,
            )

            def decide(value: bytes | None, now_ms: int) -> tuple[bytes | None, tuple[Day, Share]]:
                day, share = hold(read_day(value), now_ms, wish)
                return msgspec.json.encode(day), (day, share)

            # What is held if this fails is not known.
            self._share = Share(0.0, is_enough=False)
            day, self._share = await self._shared.share(self._name, decide)
            self._until_s = asked_s + HOLD_MS / 1_000
            self._settled, self._told_s = self._settled - settled, time.monotonic()
            self._note_spent(day.spent + self._settled)
            if day.largest is not None:
                known = larger_usage(self._ledger.largest, Usage(usd=day.largest))
                self._ledger = replace(self._ledger, largest=known)
            return self._reserve(samples) if samples else None

    def _note_spent(self, usd: float) -> None:
        spent = max(usd, self._ledger.spent.usd or 0.0)
        self._ledger = replace(self._ledger, spent=Usage(calls=0, usd=spent))

    def _begin_day(self) -> None:
        day = self._now_ms() // DAY_MS
        if day > self._day:
            self._day, self._ledger = day, replace(self._ledger, spent=NOTHING)


def _of_the_day(refusal: Refusal) -> Refusal:
    return replace(refusal, reason=REASON, detail=refusal.detail.replace("US dollars", "US dollars a day"))
