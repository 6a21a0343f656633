"""How long a run takes at best: what had to wait for one another, each time the slowest of what went out together.

An effect is asked for at the instant at which another one settles. It waited for that one, and for all that had been
asked for together with it and had settled by then. A call that had no place among those performed at once begins, as
far as can be told, when one of them settles.
"""

from __future__ import annotations

import heapq
import itertools
import sys
from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct

from ...engine.policy import Policy
from .page import PagePath

PLACES = Policy().max_concurrency
"""How many effects of a run are performed at once, unless its operator says otherwise; no record has it."""


class Timed(Struct, frozen=True):
    """An effect that has settled; run time."""

    id: str
    asked_at_ms: int
    settled_at_ms: int


class _Way(Struct, frozen=True):
    """The longest way to the end of an effect, and the effect it came by."""

    ms: int
    id: str
    before: _Way | None


class _Group:
    """Effects that were asked for at the same instant, as they settle."""

    def __init__(self, effects: Iterable[Timed], before: _Way | None, latencies: dict[str, int]) -> None:
        self._settled: list[int] = []
        self._longest: list[_Way] = []
        """Of those that have settled so far."""
        base = before.ms if before else 0
        for effect in sorted(effects, key=lambda effect: effect.settled_at_ms):
            way = _Way(base + latencies[effect.id], effect.id, before)
            self._settled.append(effect.settled_at_ms)
            self._longest.append(max([*self._longest[-1:], way], key=_length))

    def longest_by(self, at_ms: int) -> _Way | None:
        """Return the longest way to what had settled by then."""
        number = bisect_right(self._settled, at_ms)
        return self._longest[number - 1] if number else None


def critical_path(effects: Iterable[Timed], places: int = PLACES) -> PagePath | None:
    """Return the longest chain of waits; None where nothing has settled."""
    together: dict[int, list[Timed]] = {}
    askers: dict[int, set[int]] = {}
    """By the instant at which something settled: when it had been asked for."""
    for effect in sorted(effects, key=lambda effect: effect.asked_at_ms):
        together.setdefault(effect.asked_at_ms, []).append(effect)
        askers.setdefault(effect.settled_at_ms, set()).add(effect.asked_at_ms)
    latencies = _latencies(itertools.chain.from_iterable(together.values()), places)
    groups: dict[int, _Group] = {}
    for asked_at, members in together.items():
        # After a pause nothing settles at that instant: then it waited for all there was.
        waited_for = [groups[at] for at in askers.get(asked_at, ()) if at in groups] or groups.values()
        before = _longest(group.longest_by(asked_at) for group in waited_for)
        groups[asked_at] = _Group(members, before, latencies)
    way = _longest(group.longest_by(sys.maxsize) for group in groups.values())
    if way is None:
        return None
    path = PagePath(ms=way.ms, effects=[])
    while way is not None:
        path.effects.append(way.id)
        way = way.before
    path.effects.reverse()
    return path


def _latencies(effects: Iterable[Timed], places: int) -> dict[str, int]:
    """Return how long each took from when there was a place for it."""
    at_work: list[int] = []
    found: dict[str, int] = {}
    for effect in effects:
        free_at = heapq.heappop(at_work) if len(at_work) >= places else effect.asked_at_ms
        found[effect.id] = max(0, effect.settled_at_ms - max(free_at, effect.asked_at_ms))
        heapq.heappush(at_work, effect.settled_at_ms)
    return found


def _longest(ways: Iterable[_Way | None]) -> _Way | None:
    return max((way for way in ways if way is not None), key=_length, default=None)


def _length(way: _Way) -> int:
    return way.ms
