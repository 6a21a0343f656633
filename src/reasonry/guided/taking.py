"""Thoughts of a session that is not written yet, taken one after the other by the rules of any session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.strategy import Strategy
from ..records import ThoughtRow
from .lines import NOT_RECORDED, Head, Place, Recorded
from .thinking_tool import ThinkingCall
from .thought import submit
from .turn import encode


class TakenRows:
    """The thoughts taken so far, as the rules see them: a `Past`."""

    def __init__(self) -> None:
        self.rows: list[ThoughtRow] = []
        self._taken: list[Place] = []
        self._numbers: dict[int, list[Place]] = {}

    def with_number(self, number: int) -> Iterable[Place]:
        """See `Past`."""
        return reversed(self._numbers.get(number, []))

    def places(self) -> Iterable[Place]:
        """See `Past`."""
        return reversed(self._taken)

    def take(
        self,
        strategy: Strategy[Any, Any],
        head: Head,
        call: ThinkingCall,
        at_ms: int,
        recorded: Recorded = NOT_RECORDED,
    ) -> Head:
        """Take a thought, whose fields need not be complete; return where the session then stands.

        Raises:
            UsageError: It breaks a rule. Nothing has changed.
        """
        placed = submit(strategy, head, call, self, at_ms=at_ms, demand_fields=False, recorded=recorded)
        number, record = call.thought_number, placed.record
        row = ThoughtRow(len(self.rows) + 1, number, call.thought, placed.branch, encode(record))
        place = Place(number, placed.branch, record.stage, row.seq)
        self.rows.append(row)
        self._taken.append(place)
        self._numbers.setdefault(number, []).append(place)
        return placed.head
