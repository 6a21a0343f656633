"""What an owner's runs have spent in a day, and what each process holds of the rest, over all processes of a store.

Rule 1: before a call, its process holds twice what all its calls in flight are expected to take; what it holds nobody
        else can. So the limit is passed by one call at most, however many processes there are, as `core.budget` says.
Rule 2: where nothing is known of what a call takes, or too little is left for that, one process holds all of the rest,
        for one call.
Rule 3: what a process holds that is not heard of for `HOLD_MS` is there again. What was spent stays spent.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import HEADROOM

HOLD_MS: Final = 10_000


class Holding(Struct, frozen=True, array_like=True):
    """What a process holds, and until when by the store's time."""

    usd: float
    until_ms: int


class Day(Struct, frozen=True, omit_defaults=True):
    """The day of an owner.

    Args:
        number: Of the day, counted from 1970.
        largest: What the dearest call has taken; None: no call has come back yet.
    """

    number: int = 0
    spent: float = 0.0
    largest: float | None = None
    held: dict[str, Holding] = {}


class Wish(Struct, frozen=True, kw_only=True):
    """What a process knows, and wants.

    Args:
        number: Of the day.
        limit: Dollars of a day.
        known: What is spent, as the store has it.
        settled: What it has spent since it said so last.
        largest: As in `Day`.
        reserved: What its calls in flight are expected to take.
        ahead: What it would like to hold beyond what it needs.
        in_flight: Its calls.
        samples: The answers it wants to ask for next; 0: it wants to keep what it needs.
    """

    holder: str
    number: int
    limit: float
    known: float
    settled: float
    largest: float | None
    reserved: float
    ahead: float
    in_flight: int
    samples: int


class Share(Struct, frozen=True):
    """What a process holds then.

    Args:
        is_enough: Whether the next call may go out.
        is_alone: It is held for one call, which may take all of it.
    """

    usd: float
    is_enough: bool
    is_alone: bool = False


def hold(day: Day, now_ms: int, wish: Wish) -> tuple[Day, Share]:
    """Return the day as it is then, and what the process holds of it."""
    if day.number < wish.number:
        day = Day(wish.number, largest=day.largest, held=day.held)
    others = {
        holder: replace(held, until_ms=min(held.until_ms, now_ms + HOLD_MS))
        for holder, held in day.held.items()
        if holder != wish.holder and held.until_ms > now_ms
    }
    spent = max(day.spent + wish.settled, wish.known)
    measured = [usd for usd in (day.largest, wish.largest) if usd is not None]
    largest = max(measured) if measured else None
    rest = wish.limit - spent
    room = rest - sum(held.usd for held in others.values())
    needed = HEADROOM * (wish.reserved + wish.samples * (largest or 0.0))
    share = Share(max(HEADROOM * wish.reserved, 0.0), is_enough=False)
    if largest is None and wish.in_flight:
        share = Share(max(rest, 0.0), is_enough=False)
    elif rest <= 0:
        pass
    elif largest is not None and needed <= room:
        ahead = max(wish.ahead, needed if wish.samples else 0.0)
        share = Share(max(needed, min(needed + ahead, room / 2)), is_enough=True)
    elif wish.samples and not (wish.in_flight or others):
        share = Share(rest, is_enough=True, is_alone=True)
    held = {**others, wish.holder: Holding(share.usd, now_ms + HOLD_MS)} if share.usd > 0 else others
    return Day(day.number, spent, largest, held), share


def read_day(value: bytes | None) -> Day:
    """Return the day that is kept so; one that is damaged begins anew."""
    try:
        return msgspec.json.decode(value, type=Day) if value else Day()
    except msgspec.MsgspecError:
        return Day()
