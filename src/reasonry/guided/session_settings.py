"""Settings of guided sessions: their lifetime and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ..errors import UsageError
from ..records import SessionRow
from .thinking_tool import tool_schema
from .tool_arguments import read_argument

OnExpiry = Literal["archive", "delete"]
Count = Annotated[int, Meta(ge=1, le=999_999_999)]
Time = Annotated[float, Meta(gt=0)]


class SessionSettings(Struct, frozen=True):
    """The settings of guided sessions. `from_environ` reads them from `REASONRY_…` variables."""

    ttl_s: Time = 1_800.0
    """Seconds for which a session stays active after its last use."""
    on_expiry: OnExpiry | None = None
    """Whether an expired session is archived or deleted. Defaults to archived in a durable store, deleted in memory."""
    retention_days: Time | None = None
    """Days after the last use until an archived, unpinned session is deleted for good. None means never."""
    max_thoughts: Count = 1_000
    """The most thoughts in one session."""
    max_branches: Count = 100
    """The most branches in one session."""
    max_thought_chars: Count = 50_000
    """The most characters of a thought. Its `data`, as JSON, has the same limit."""
    max_history_chars: Count | None = None
    """The most characters of thoughts in a reply. Defaults to 20,000, but the Python tool has no limit by default."""

    def has_expired(self, row: SessionRow, now_ms: int) -> bool:
        """Whether the time to live of a session has run out."""
        ttl_ms = self.ttl_s * 1_000 if row.ttl_ms is None else row.ttl_ms
        return not row.pinned and row.used_at_ms + ttl_ms < now_ms

    @staticmethod
    def from_environ(environ: Mapping[str, str], **values: object) -> SessionSettings:
        """Read the settings from the environment. Unset settings have their defaults.

        Args:
            values: Settings by name, which override the environment. A value of None overrides nothing.

        Raises:
            UsageError: A value is illegal; `option` is the name of the setting or of its variable.
        """
        written = {name: environ.get(variable, "").strip() for name, variable in _VARIABLES.items()}
        read = {name: _value(name, text, _VARIABLES[name]) for name, text in written.items() if text}
        named = {name: _value(name, value, name) for name, value in values.items() if value is not None}
        return SessionSettings(**{**read, **named})


_VARIABLES = {
    "ttl_s": "REASONRY_SESSION_TTL_S",
    "on_expiry": "REASONRY_SESSION_ON_EXPIRY",
    "retention_days": "REASONRY_RETENTION",
    "max_thoughts": "REASONRY_MAX_THOUGHTS",
    "max_branches": "REASONRY_MAX_BRANCHES",
    "max_thought_chars": "REASONRY_MAX_THOUGHT_CHARS",
    "max_history_chars": "REASONRY_MAX_HISTORY_CHARS",
}


def _value(name: str, value: object, option: str) -> Any:
    try:
        return read_argument(option, value, tool_schema(SessionSettings)["properties"][name])
    except UsageError as error:
        raise UsageError(error.message, option=option) from None
