"""Options that say which runs or sessions a list has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict

from cyclopts import Parameter

from ...app.wiring import App
from .candidates import StrategyName
from .instants import read_instant


class StoreFilters(TypedDict):
    """The filters as a store takes them, for runs as for sessions."""

    strategy: str | None
    query: str | None
    since_ms: int | None
    until_ms: int | None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which ones are listed; each option excludes more.

    Args:
        strategy: Only those of this strategy.
        search: Only those that contain this text, whatever its case: in the problem, the answer or a thought.
        since: Only those begun (sessions: used) since then: 30m, 12h, 7d, 2w or an instant such as 2026-11-01T09:30.
        until: Only those begun (sessions: used) before then.
    """

    strategy: StrategyName | None = None
    search: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    since: str | None = None
    until: str | None = None

    @property
    def are_any(self) -> bool:
        """Whether anything is excluded."""
        return any(value is not None for value in vars(self).values())

    def read(self, app: App) -> StoreFilters:
        """Return the filters as a store takes them.

        Raises:
            UsageError: There is no such strategy, or an instant cannot be read.
        """
        return StoreFilters(
            strategy=None if self.strategy is None else app.strategy(self.strategy).name,
            query=self.search,
            since_ms=None if self.since is None else read_instant(self.since, "since"),
            until_ms=None if self.until is None else read_instant(self.until, "until"),
        )
