"""Settings of guided sessions: how long they live and how large they may grow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

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
        return _read(SessionSettings(), {name: text for name, text in written.items() if text}, _VARIABLES)


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


def change_settings(
    settings: SessionSettings,
    *,
    ttl_s: float | None = None,
    max_thoughts: int | None = None,
    max_thought_chars: int | None = None,
    on_expiry: OnExpiry | None = None,
) -> SessionSettings:
    """Return settings with those that are not None in place of them.

    Raises:
        UsageError: A value is no legal one; `option` names it.
    """
    values = {
        "ttl_s": ttl_s,
        "max_thoughts": max_thoughts,
        "max_thought_chars": max_thought_chars,
        "on_expiry": on_expiry,
    }
    return _read(settings, {name: value for name, value in values.items() if value is not None}, {})


def _read(
    settings: SessionSettings, values: Mapping[str, object], called: Mapping[str, str]
) -> SessionSettings:
    """Return settings with values of theirs, each a number or a text, read.

    Args:
        called: What errors call a setting, where it is not its name.
    """
    read = {name: _value(name, value, called.get(name, name)) for name, value in values.items()}
    return replace(settings, **read)


def _value(name: str, value: object, option: str) -> object:
    if name == "on_expiry":
        wanted, found = "archive or delete", value.lower() if isinstance(value, str) else value
        if found in ("archive", "delete"):
            return found
    elif name in _UNITS:
        wanted, found = f"a number of {_UNITS[name]} over 0", _number(value)
        if 0 < found < math.inf:
            return found
    else:
        wanted, found = f"a whole number from 1 to {MAX_COUNT:,}", _number(value)
        if 1 <= found <= MAX_COUNT and found % 1 == 0:
            return int(found)
    raise UsageError(f"{option} must be {wanted}, not {value!r:.60}", option=option)


def _number(value: object) -> float:
    """Return a number, or the one that a text is; otherwise not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
