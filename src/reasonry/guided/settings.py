"""Settings of guided sessions: how long they live and how large they may grow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..errors import UsageError

OnExpiry = Literal["archive", "delete"]


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
        defaults = SessionSettings()
        return SessionSettings(
            ttl_s=_over_0(environ, "REASONRY_SESSION_TTL_S", "seconds") or defaults.ttl_s,
            on_expiry=_on_expiry(environ),
            retention_days=_over_0(environ, "REASONRY_RETENTION", "days"),
            max_thoughts=_count(environ, "REASONRY_MAX_THOUGHTS", defaults.max_thoughts),
            max_branches=_count(environ, "REASONRY_MAX_BRANCHES", defaults.max_branches),
            max_thought_chars=_count(environ, "REASONRY_MAX_THOUGHT_CHARS", defaults.max_thought_chars),
            max_history_chars=_count(environ, "REASONRY_MAX_HISTORY_CHARS", 0) or None,
        )


def change_settings(
    settings: SessionSettings,
    *,
    ttl_s: float | None = None,
    max_thoughts: int | None = None,
    max_thought_chars: int | None = None,
    on_expiry: OnExpiry | None = None,
) -> SessionSettings:
    """Return settings with those that are not None in the place of their own.

    Raises:
        UsageError: A value is no legal one; `option` names it.
    """
    if ttl_s is not None and not (_is_number(ttl_s) and 0 < ttl_s < math.inf):
        raise UsageError(f"ttl_s must be a number of seconds over 0, not {ttl_s!r:.60}", option="ttl_s")
    for name, count in (("max_thoughts", max_thoughts), ("max_thought_chars", max_thought_chars)):
        if count is not None and not (_is_number(count) and count % 1 == 0 and count > 0):
            raise UsageError(f"{name} must be a whole number over 0, not {count!r:.60}", option=name)
    if on_expiry not in (None, "archive", "delete"):
        raise UsageError(
            f"on_expiry must be archive or delete, not {on_expiry!r:.60}",
            option="on_expiry",
            choices=["archive", "delete"],
        )
    return replace(
        settings,
        ttl_s=settings.ttl_s if ttl_s is None else float(ttl_s),
        max_thoughts=max_thoughts or settings.max_thoughts,
        max_thought_chars=max_thought_chars or settings.max_thought_chars,
        on_expiry=on_expiry or settings.on_expiry,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _over_0(environ: Mapping[str, str], name: str, unit: str) -> float | None:
    written = environ.get(name, "").strip()
    if not written:
        return None
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(f"{name} must be a number of {unit} over 0, not {written[:40]!r}", option=name)
    return value


def _count(environ: Mapping[str, str], name: str, default: int) -> int:
    written = environ.get(name, "").strip()
    if not written:
        return default
    digits = written.replace("_", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9 and int(digits) > 0):
        raise UsageError(
            f"{name} must be a whole number from 1 to 999,999,999, not {written[:40]!r}", option=name
        )
    return int(digits)


def _on_expiry(environ: Mapping[str, str]) -> OnExpiry | None:
    written = environ.get("REASONRY_SESSION_ON_EXPIRY", "").strip().lower()
    match written:
        case "":
            return None
        case "archive" | "delete":
            return written
        case _:
            raise UsageError(
                f"REASONRY_SESSION_ON_EXPIRY must be archive or delete, not {written[:40]!r}",
                option="REASONRY_SESSION_ON_EXPIRY",
                choices=["archive", "delete"],
            )
