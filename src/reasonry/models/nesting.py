"""How deep servers ask each other: a server that is configured as its own model must not ask itself for ever."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from ..errors import UsageError

HEADER: Final = "X-Reasonry-Depth"
MAX_DEPTH: Final = 2
"""How many servers may ask each other for one request."""

_depth: ContextVar[int] = ContextVar("reasonry_depth", default=0)


def enter_nested(header: str | None) -> None:
    """Note that what follows in this context works for a request that came with this header.

    Raises:
        UsageError: It has come through too many servers.
    """
    depth = int(header) if header is not None and header.isdecimal() and len(header) < 6 else 0
    if depth >= MAX_DEPTH:
        raise UsageError(
            f"this request has come through {depth} servers of this kind: one has another, or itself, as a model",
            field=HEADER,
        )
    _depth.set(depth + 1)


def nesting_header() -> dict[str, str]:
    """Return what a request to a model says of how deep it is; nothing outside a server."""
    return {HEADER: str(_depth.get())} if _depth.get() else {}
