"""The dollars that the runs of one owner may take together in a day, whichever run and process a call is for.

Rule 1: one row of the store counts them, for all processes: an estimate is set aside in it before each call, and what
        the call took is booked after, as for the limit of a single run (`core.budget`).
Rule 2: what is spent is also read from the runs before a call, at most every `LOOK_EVERY_MS`.
Rule 3: calls of which nothing is heard for `LOST_MS` count as having taken what was set aside for them: their process
        has died.
Rule 4: a day begins at midnight, UTC. What is in flight then is booked on the day it comes in.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import NOTHING, Budget, Ledger, Refusal, Usage
from ..errors import StoreError
from ..records import SharedValues

T = TypeVar("T")

DAY_MS: Final = 86_400_000

LOOK_EVERY_MS: Final = 1_000

LOST_MS: Final = 120_000

WAIT_S: Final = 0.25
"""How long to wait at most until calls of other processes are looked at again."""

REASON: Final = "max_usd_a_day"
"""Why a run ends that meets the limit."""

Pause = Callable[[Awaitable[None]], Awaitable[None]]
"""Waits for something, unless it is not to be waited for any more."""


class Day(Struct, frozen=True, omit_defaults=True):
    """The day of an owner.

    Args:
        number: Of the day, counted from 1970.
        largest: What the dearest call has taken; None: no call has come back yet.
        held: What is set aside for calls in flight.
        calls: How many those are.
        turn: Grows when calls are given up for lost.
        at_ms: When a call last went out or came back, by the store's time.
    """

    number: int = 0
    spent: float = 0.0
    largest: float | None = None
    held: float = 0.0
    calls: int = 0
    turn: int = 0
    at_ms: int = 0


class Reserved(Struct, frozen=True):
    """What is set aside for a call: dollars, and in which turn of the day."""

    usd: float
    turn: int


class Allowance:
    """What one process knows of an owner's day.

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
        self._usd, self._now_ms, self._spent_since, self._shared = usd, now_ms, spent_since, shared
        self._name = f"day:{hashlib.sha256(owner.encode(errors='surrogatepass')).hexdigest()[:32]}"
        self._looked_at_ms, self._number, self._spent = 0, 0, 0.0
        self._coming: dict[object, float] = {}
        """What replies that stream in are estimated to have taken so far."""
        self._settled = list[tuple[Reserved, list[float | None]]]()
        """Calls that have come back, and are not booked yet."""
        self._booking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def catch_up(self) -> None:
        """Take in what the owner's runs have spent today, whoever drives them.

        Raises:
            StoreError: The store was never read, and cannot be.
        """
        now_ms, is_first = self._now_ms(), not self._looked_at_ms
        self._begin_day()
        if 0 <= now_ms - self._looked_at_ms < LOOK_EVERY_MS:
            return
        self._looked_at_ms = now_ms
        try:
            self._spent = max(self._spent, await self._spent_since(self._number * DAY_MS))
        except StoreError:
            if is_first:
                self._looked_at_ms = 0
                raise

    def refusal(self) -> Refusal | None:
        """Return why nothing more may be begun today, if so."""
        self._begin_day()
        outcome = self._ledger(Day(spent=self._spent)).reserve(NOTHING)
        return _of_the_day(outcome) if isinstance(outcome, Refusal) else None

    async def take(self, samples: int, pause: Pause) -> Reserved | Refusal:
        """Set aside what a request for so many samples may take, once it may go out; or say why it may not.

        Raises:
            StoreError: The store does not answer.
        """
        while True:
            await self.catch_up()
            # Whoever waits may give up, but not in the middle of this.
            asking = asyncio.ensure_future(self._reserve(samples))
            try:
                outcome = await asyncio.shield(asking)
            except asyncio.CancelledError:
                asking.add_done_callback(self._undo)
                raise
            if isinstance(outcome, Reserved) or not outcome.wait:
                return outcome
            await pause(self._wait())

    def settle(self, reserved: Reserved, actual: Sequence[Usage]) -> None:
        """Book what was really spent, sample by sample, in the place of what was set aside."""
        self._settled.append((reserved, [usage.usd for usage in actual]))
        if self._booking is None or self._booking.done():
            self._booking = asyncio.ensure_future(self._book())

    def watch(self, reply: object, so_far: Usage) -> Refusal | None:
        """Note what a reply that streams in has taken so far; return the limit if it is passed by now."""
        self._coming[reply] = so_far.usd or 0.0
        coming = Usage(calls=0, usd=sum(self._coming.values()))
        refusal = self._ledger(Day(spent=self._spent)).passed_by(coming)
        return None if refusal is None else _of_the_day(refusal)

    def forget(self, reply: object) -> None:
        """Watch a reply no longer."""
        self._coming.pop(reply, None)

    async def close(self) -> None:
        """Book what has come back, as far as the store answers; the runs say it as well."""
        if self._booking is not None:
            await asyncio.wait([self._booking])

    async def _reserve(self, samples: int) -> Reserved | Refusal:
        def decide(day: Day) -> tuple[Day, Reserved | Refusal]:
            ledger = self._ledger(day)
            estimate = ledger.estimate(0, samples)
            outcome = ledger.reserve(estimate)
            if isinstance(outcome, Refusal):
                return day, _of_the_day(outcome)
            usd = estimate.usd or 0.0
            return replace(day, held=day.held + usd, calls=day.calls + 1), Reserved(usd, day.turn)

        return await self._change(decide)

    async def _book(self) -> None:
        while self._settled:
            settled, self._settled = self._settled, []

            def decide(
                day: Day, settled: list[tuple[Reserved, list[float | None]]] = settled
            ) -> tuple[Day, None]:
                for reserved, samples in settled:
                    day = _book_call(day, reserved, samples)
                return day, None

            try:
                await self._change(decide)
            except StoreError:
                # The runs say what was spent; what was set aside is given up for lost in time.
                return
            finally:
                self._changed.set()

    async def _change(self, decide: Callable[[Day], tuple[Day, T]]) -> T:
        number, known = self._number, self._spent

        def change(value: bytes | None, now_ms: int) -> tuple[bytes, tuple[Day, T]]:
            before = _day_now(value, number, known, now_ms)
            after, returned = decide(before)
            if after != before:
                after = replace(after, at_ms=now_ms)
            return msgspec.json.encode(after), (after, returned)

        day, returned = await self._shared.share(self._name, change)
        if day.number == self._number:
            self._spent = max(self._spent, day.spent)
        return returned

    def _undo(self, asking: asyncio.Task[Reserved | Refusal]) -> None:
        outcome = None if asking.cancelled() or asking.exception() else asking.result()
        if isinstance(outcome, Reserved):
            self.settle(outcome, [])

    async def _wait(self) -> None:
        """Return when a call has come back here, or elsewhere one may have."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self._changed.wait()

    def _ledger(self, day: Day) -> Ledger:
        largest = NOTHING if day.largest is None else Usage(usd=day.largest)
        held = Usage(calls=day.calls, usd=day.held)
        return Ledger(Budget(usd=self._usd), Usage(calls=0, usd=day.spent), held, largest)

    def _begin_day(self) -> None:
        number = self._now_ms() // DAY_MS
        if number > self._number:
            self._number, self._spent, self._looked_at_ms = number, 0.0, 0


def _day_now(value: bytes | None, number: int, known: float, now_ms: int) -> Day:
    """Return the day that is kept so, as it is by now; one that is damaged begins anew."""
    try:
        day = msgspec.json.decode(value, type=Day) if value else Day()
    except msgspec.MsgspecError:
        day = Day()
    if day.number < number:
        day = replace(day, number=number, spent=0.0)
    if day.calls and not 0 <= now_ms - day.at_ms < LOST_MS:
        day = replace(day, spent=day.spent + day.held, held=0.0, calls=0, turn=day.turn + 1)
    return replace(day, spent=max(day.spent, known)) if day.number == number else day


def _book_call(day: Day, reserved: Reserved, samples: Sequence[float | None]) -> Day:
    spent, known = (
        sum(usd or 0.0 for usd in samples),
        [usd for usd in (*samples, day.largest) if usd is not None],
    )
    day = replace(day, largest=max(known) if known else None)
    if reserved.turn != day.turn:
        # It was given up for lost, and what was set aside for it counts as spent.
        return replace(day, spent=max(0.0, day.spent + spent - reserved.usd))
    held = max(0.0, day.held - reserved.usd)
    return replace(day, spent=day.spent + spent, held=held, calls=max(0, day.calls - 1))


def _of_the_day(refusal: Refusal) -> Refusal:
    return replace(refusal, reason=REASON, detail=refusal.detail.replace("US dollars", "US dollars a day"))
