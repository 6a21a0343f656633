"""Reading what a model wrote: the pure part of the repair ladder."""

from __future__ import annotations

from msgspec import Struct


class Unreadable(Struct, frozen=True):
    """Why a reply cannot be used; shown to whoever is asked again."""

    reason: str
