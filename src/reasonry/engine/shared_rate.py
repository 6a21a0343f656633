"""A provider's rate limit over all processes of a store, each of which takes slices of it ahead.

Rule 1: a slice counts from when it is taken until a minute after its end, used or not; what was not used is taken off
        as soon as its holder says so, or else when the minute is over. So no minute holds more than the limit.
Rule 2: a slice ends by the clock of its holder, which began to count before the store's was read; what is let through
        has `GRACE_MS` to go out.
Rule 3: nobody takes more than half of what is left, unless one call needs it, nor more ahead than the limit allows in
        the time of a slice. So others get their share.
Rule 4: without an answer of the store nothing goes out.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import StoreError
from ..records import SharedValues

WINDOW_MS: Final = 60_000

SLICE_S: Final = 2.0
"""How long a slice may be used, unless the store answers slowly."""

LONGEST_SLICE_S: Final = 30.0

EVERY_S: Final = 0.1
"""The store is asked at most so often."""

LOOK_EVERY_S: Final = 5.0
"""How long to wait at most where the limit is used up: others may give back what they did not use."""

GRACE_MS: Final = 1_000

SLOT_MS: Final = 1_000
"""Slices that end within the same time are counted together."""


class Amount(NamedTuple):
    """Of requests and tokens."""

    requests: int
    tokens: int


class Slot(Struct, frozen=True, array_like=True):
    """What was taken in slices that end by `end`, as a number of slots since the store's time began."""

    end: int
    requests: int
    tokens: int


class Ceiling(NamedTuple):
    """What a minute may hold; None: any number."""

    requests: int | None
    tokens: int | None


class Grant(NamedTuple):
    """What was taken; where there is too little left for the first call, how long to wait."""

    amount: Amount | None
    end: int
    pause_ms: int = 0


def take(
    slots: Sequence[Slot],
    now_ms: int,
    ceiling: Ceiling,
    first: Amount,
    wanted: Amount,
    life_ms: int,
    back: Mapping[int, Amount] = {},
) -> tuple[list[Slot], Grant]:
    """Take a slice of what is left; return what counts then.

    Args:
        first: What is needed for the next call; nothing is taken if there is less.
        wanted: What would be used at best, with the first call.
        life_ms: How long the slice may be used.
        back: What comes off earlier slices, by their ends.
    """
    counted = _still_counting(slots, now_ms, back)
    used = Amount(sum(slot.requests for slot in counted), sum(slot.tokens for slot in counted))
    # A call larger than the whole limit goes out alone rather than never.
    alone = not used.requests and not used.tokens
    shares = [_share(*each, alone=alone) for each in zip(ceiling, used, first, wanted, strict=True)]
    end = -(-(now_ms + life_ms + GRACE_MS) // SLOT_MS)
    if None in shares:
        oldest = min(slot.end for slot in counted)
        return counted, Grant(None, end, max(1, oldest * SLOT_MS + WINDOW_MS - now_ms))
    amount = Amount(*(share or 0 for share in shares))
    if not any(amount):
        return counted, Grant(amount, end)
    return _still_counting([*counted, Slot(end, *amount)], now_ms, {}), Grant(amount, end)


def _still_counting(slots: Sequence[Slot], now_ms: int, back: Mapping[int, Amount]) -> list[Slot]:
    """Return what still counts, one slot for each end."""
    # What ends later was taken before the store's time began anew.
    last = -(-(now_ms + int(LONGEST_SLICE_S * 1_000) + GRACE_MS) // SLOT_MS)
    counted = dict[int, Slot]()
    for slot in (*slots, *(Slot(end, 0, 0) for end in back)):
        end = min(slot.end, last)
        if end * SLOT_MS + WINDOW_MS > now_ms:
            there = counted.get(end, Slot(end, 0, 0))
            counted[end] = Slot(end, there.requests + slot.requests, there.tokens + slot.tokens)
    for end, off in back.items():
        if end in counted:
            slot = counted[end]
            counted[end] = Slot(end, max(0, slot.requests - off.requests), max(0, slot.tokens - off.tokens))
    return [slot for _, slot in sorted(counted.items()) if slot.requests or slot.tokens]


def _share(ceiling: int | None, used: int, first: int, wanted: int, *, alone: bool) -> int | None:
    """Return how much is taken; None: there is too little."""
    if ceiling is None:
        return wanted
    free = ceiling - used
    if first > free:
        return first if alone else None
    return max(first, min(wanted, (free + 1) // 2))


class Sent:
    """A call that counts.

    Args:
        end: Of the slice it was taken from.
    """

    def __init__(self, end: int, tokens: int) -> None:
        self.end, self.tokens = end, tokens


class SharedRate:
    """One process's part in a limit.

    Args:
        name: Under which the processes share what they have taken.
    """

    def __init__(self, shared: SharedValues, name: str, ceiling: Ceiling) -> None:
        self._shared, self._name, self._ceiling = shared, name, ceiling
        self._turn = asyncio.Lock()
        self._waiting: list[int] = []
        """The tokens of the calls that wait."""
        self._left, self._end, self._until_s = Amount(0, 0), 0, 0.0
        self._sent = self._sent_before = 0
        """Calls of this slice and the one before."""
        self._back = dict[int, Amount]()
        self._asked_s, self._answer_s = -math.inf, 0.0
        self._asking: asyncio.Task[Grant] | None = None
        self._failure: tuple[float, StoreError | None] = -math.inf, None
        """When the store did not answer last, and what it was."""
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, tokens: int, pausing: Callable[[float], None] = lambda pause_s: None) -> Sent:
        """Return when a call of about so many tokens may go out; calls go in the order they came.

        Args:
            pausing: Told how many seconds are to be waited, where the limit is used up.

        Raises:
            StoreError: The store does not answer.
        """
        began_s = time.monotonic()
        self._waiting.append(tokens)
        try:
            async with self._turn:
                while not self._has(tokens):
                    failed_s, failure = self._failure
                    if failure is not None and failed_s > began_s:
                        raise failure
                    await asyncio.sleep(self._asked_s + EVERY_S - time.monotonic())
                    taken = await self._ask(tokens)
                    if taken.amount is None:
                        pause_s = min(taken.pause_ms / 1_000, LOOK_EVERY_S)
                        # Not all who wait ask at once.
                        pause_s += random.uniform(0, min(pause_s, 1.0))
                        pausing(pause_s)
                        await asyncio.sleep(pause_s)
                self._left = Amount(self._left.requests - 1, self._left.tokens - tokens)
                self._sent += 1
                return Sent(self._end, tokens)
        finally:
            self._waiting.remove(tokens)

    def settle(self, sent: Sent, tokens: int) -> None:
        """Note how many tokens a call really took."""
        if self._ceiling.tokens is not None and tokens != sent.tokens:
            self._give_back(sent.end, Amount(0, sent.tokens - tokens))
            sent.tokens = tokens

    async def close(self) -> None:
        """Give back what was not used, and say what calls took, as far as the store answers."""
        if self._timer is not None:
            self._timer.cancel()
        self._until_s = 0.0
        try:
            while self._left_over or self._back:
                await self._ask(None)
        except StoreError:
            # It counts as taken until its minute is over.
            return

    @property
    def _left_over(self) -> bool:
        return any(
            limit is not None and left > 0 for limit, left in zip(self._ceiling, self._left, strict=True)
        )

    def _has(self, tokens: int) -> bool:
        if time.monotonic() >= self._until_s:
            return False
        needed = zip(self._ceiling, self._left, (1, tokens), strict=True)
        return all(limit is None or left >= need for limit, left, need in needed)

    async def _ask(self, tokens: int | None) -> Grant:
        """Give back what is left, and take a slice for a call of so many tokens; None: take nothing."""
        # Whoever waits may give up, but not in the middle of this.
        while self._asking is not None:
            await asyncio.wait([self._asking])
        self._asking = asyncio.ensure_future(self._exchange(tokens))
        self._asking.add_done_callback(self._forget_asking)
        return await asyncio.shield(self._asking)

    def _forget_asking(self, asking: asyncio.Task[Grant]) -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()

    async def _exchange(self, tokens: int | None) -> Grant:
        if self._left_over:
            self._give_back(self._end, self._left)
        self._left = Amount(0, 0)
        back, self._back = self._back, {}
        first, wanted = (Amount(0, 0), Amount(0, 0)) if tokens is None else self._demand(tokens)
        life_s = min(SLICE_S + 2 * self._answer_s, LONGEST_SLICE_S)
        self._asked_s = time.monotonic()

        def decide(value: bytes | None, now_ms: int) -> tuple[bytes | None, Grant]:
            slots, taken = take(_read(value), now_ms, self._ceiling, first, wanted, int(life_s * 1_000), back)
            return (msgspec.json.encode(slots) if slots else None), taken

        try:
            taken = await self._shared.share(self._name, decide)
        except BaseException as error:
            # Whether it was done is not known. What is given back twice would be left twice: so it is not.
            for end, off in back.items():
                if off.tokens < 0:
                    self._give_back(end, Amount(0, off.tokens))
            if isinstance(error, StoreError):
                self._failure = time.monotonic(), error
            raise
        self._answer_s = time.monotonic() - self._asked_s
        if taken.amount is not None and any(taken.amount):
            self._left, self._end, self._until_s = taken.amount, taken.end, self._asked_s + life_s
            self._sent, self._sent_before = 0, self._sent
            self._plan(life_s)
        return taken

    def _demand(self, tokens: int) -> tuple[Amount, Amount]:
        ahead = max(2 * self._sent, self._sent_before)
        for limit in self._ceiling:
            if limit is not None:
                ahead = min(ahead, math.ceil(limit * SLICE_S * 1_000 / WINDOW_MS))
        calls = len(self._waiting) + ahead
        mean = sum(self._waiting) / len(self._waiting)
        return Amount(1, tokens), Amount(calls, math.ceil(sum(self._waiting) + ahead * mean))

    def _give_back(self, end: int, amount: Amount) -> None:
        there = self._back.get(end, Amount(0, 0))
        self._back[end] = Amount(there.requests + amount.requests, there.tokens + amount.tokens)
        self._plan(SLICE_S)

    def _plan(self, pause_s: float) -> None:
        """See to it that what is left over after this time is given back."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(pause_s, self._finish)

    def _finish(self) -> None:
        self._timer = None
        left_s = self._until_s - time.monotonic()
        if left_s > 0:
            self._plan(left_s)
        elif (self._left_over or self._back) and self._asking is None:
            self._asking = asyncio.ensure_future(self._exchange(None))
            self._asking.add_done_callback(self._forget_asking)


def _read(value: bytes | None) -> list[Slot]:
    try:
        return msgspec.json.decode(value, type=list[Slot]) if value else []
    except msgspec.MsgspecError:
        # Damaged: it counts a minute at most.
        return []
