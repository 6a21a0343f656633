"""Tools of the caller: described to the run, and called by whoever asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.toolcard import ToolCard
from ..errors import ToolError


class CallersTool:
    """Stands in a catalog for a tool that only the caller can call: a drive leaves its calls open."""

    def __init__(self, card: ToolCard) -> None:
        self.card = card
        self.name, self.description, self.parameters = card.name, card.description, card.parameters

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Refuse."""
        raise ToolError(f"{self.name} is the caller's to call")


def callers_cards(tools: Iterable[Any]) -> tuple[ToolCard, ...]:
    """Return the cards of those tools that are the caller's."""
    return tuple(tool.card for tool in tools if isinstance(tool, CallersTool))
