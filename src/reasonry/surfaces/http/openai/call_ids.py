"""Ids of tool calls: each names the run and the effect that wait for its result.

`call_`, the 16 bytes of the run's id in base64 for URLs, and the effect's id with `-` for `/`: at most 40 characters of
those that every provider takes, because clients carry a conversation from one to another.
"""

from __future__ import annotations

import base64
import re
from typing import NamedTuple
from uuid import UUID

from ....errors import UsageError

_CALL = re.compile(r"call_([A-Za-z0-9_-]{22})_(e\d{1,9}(?:-e\d{1,9}){0,8})")


class CallId(NamedTuple):
    """A call of a run."""

    run_id: str
    effect: str

    def __str__(self) -> str:
        """Return the id as clients see it."""
        raw = base64.urlsafe_b64encode(UUID(self.run_id).bytes).rstrip(b"=").decode()
        return f"call_{raw}_{self.effect.replace('/', '-')}"


def read_call_id(text: str, field: str) -> CallId:
    """Return the call that an id names.

    Raises:
        UsageError: It is none of ours.
    """
    found = _CALL.fullmatch(text)
    if found is None:
        raise unknown_call(text, field)
    raw = base64.urlsafe_b64decode(found[1] + "==")
    call = CallId(str(UUID(bytes=raw)), found[2].replace("-", "/"))
    if str(call) != text:
        # The last character of the run's part has bits that mean nothing.
        raise unknown_call(text, field)
    return call


def unknown_call(text: str, field: str) -> UsageError:
    """Return the error for an id that names no call that waits."""
    return UsageError(
        f"{field}: no call {text[:80]!r} waits for a result here; ids of calls come from this server's own replies",
        field=field,
    )
