"""Settings of guided sessions: how long they live and how large they may grow."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..errors import UsageError

OnExpiry = Literal["archive", "delete"]
MAX_COUNT = 999_999_999


class SessionSettings(Struct, frozen=True):
    """The settings; `from_environ` reads them from `REASONRY_…` variables."""

    ttl_s: float = 1_800.0
    """Seconds a session stays active after its last use."""
    on_expiry: OnExpiry | None = None
    """What becomes of it then; None: archived in a durable store, deleted in memory."""
    retention_days: float | None = None
    """Days after its last use until an archived session is deleted for good, unless it is pinned; None: never."""
    max_thoughts: int = 1_000
    """Of one session."""
    max_branches: int = 100
    """Of one session."""
    max_thought_chars: int = 50_000
    """Of one thought; its `data`, as JSON, may be as long again."""
    max_history_chars: int | None = None
    """Of the thoughts that a reply shows; None: all for the Python tool, 20,000 characters for others."""

    @staticmethod
    def from_environ(environ: Mapping[str, str]) -> SessionSettings:
        """Read the settings that are set; the others have their defaults.

        Raises:
            UsageError: A value is no legal one; `option` names the variable.
        """
        written = {name: environ.get(variable, "").strip() for name, variable in _VARIABLES.items()}
        read = {name: _value(name, text, _VARIABLES[name]) for name, text in written.items() if text}
        return SessionSettings(**read)


_VARIABLES = {
    "ttl_s": "REASONRY_SESSION_TTL_S",
    "on_expiry": "REASONRY_SESSION_ON_EXPIRY",
    "retention_days": "REASONRY_RETENTION",
    "max_thoughts": "REASONRY_MAX_THOUGHTS",
    "max_branches": "REASONRY_MAX_BRANCHES",
    "max_thought_chars": "REASONRY_MAX_THOUGHT_CHARS",
    "max_history_chars": "REASONRY_MAX_HISTORY_CHARS",
}
_UNITS = {"ttl_s": "seconds", "retention_days": "days"}


def change_settings(settings: SessionSettings, **values: object) -> SessionSettings:
    """Return settings with those that are not None in place of them.

    Raises:
        UsageError: A value is no legal one; `option` names it.
    """
    named = {name: _value(name, value, name) for name, value in values.items() if value is not None}
    return replace(settings, **named)


def _value(name: str, value: object, option: str) -> Any:
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
    if name == "on_expiry":
        wanted, found = "archive or delete", str(value).lower()
        is_legal = found in ("archive", "delete")
    elif name in _UNITS:
        wanted, found, is_legal = f"a number of {_UNITS[name]} over 0", number, 0 < number < math.inf
    else:
        wanted, is_legal = f"a whole number from 1 to {MAX_COUNT:,}", 1 <= number <= MAX_COUNT
        is_legal = is_legal and number % 1 == 0
        found = int(number) if is_legal else number
    if not is_legal:
        raise UsageError(f"{option} must be {wanted}, not {value!r:.60}", option=option)
    return found
