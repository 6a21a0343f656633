"""The contract of the tool `sessions`: what each of its actions takes, by wire names.

Its schema and its reader are made from these Structs; a member of one name means the same in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from .export import Format
from .thinking_tool import ThoughtNumber

PAGE = 50
MAX_PAGE = 500
MAX_QUERY_CHARS = 1_000

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class OneSession(Struct, frozen=True, kw_only=True):
    """What any action on one session takes."""

    session_id: str


class ListSessions(Struct, frozen=True, kw_only=True):
    """Arguments of `list`."""

    status: Annotated[
        Literal["active", "archived", "unfinished", "all"], Meta(description="list: default all")
    ] = "all"
    limit: Limit = PAGE
    cursor: str | None = None


class GetSession(OneSession, frozen=True, kw_only=True):
    """Arguments of `get`."""

    first: Annotated[ThoughtNumber | None, Meta(description="get: first thought number")] = field(
        default=None, name="from"
    )
    last: Annotated[ThoughtNumber | None, Meta(description="get: last thought number")] = field(
        default=None, name="to"
    )
    branch_id: Annotated[str | None, Meta(description="get: one branch; empty: main line")] = None
    limit: Limit = PAGE
    cursor: str | None = None


class SearchThoughts(Struct, frozen=True, kw_only=True):
    """Arguments of `search`."""

    query: Annotated[
        str, Meta(max_length=MAX_QUERY_CHARS, description="search: a word or phrase as it stands")
    ]
    session_id: str | None = None
    limit: Limit = PAGE
    cursor: str | None = None


class ResumeSession(Struct, frozen=True, kw_only=True):
    """Arguments of `resume`."""

    session_id: str | None = None
    history: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="resume: most thoughts wanted in the reply")
    ] = None


class ExportSession(OneSession, frozen=True, kw_only=True):
    """Arguments of `export`."""

    format: Format = "json"


class PinSession(OneSession, frozen=True, kw_only=True):
    """Arguments of `pin`."""

    pinned: Annotated[bool, Meta(description="pin: false to unpin")] = True


ACTIONS: Mapping[str, type[Struct]] = {
    "list": ListSessions,
    "get": GetSession,
    "search": SearchThoughts,
    "resume": ResumeSession,
    "export": ExportSession,
    "delete": OneSession,
    "pin": PinSession,
}
