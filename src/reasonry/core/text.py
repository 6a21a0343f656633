"""Text from models and users, made harmless to show."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\U000e0000-\U000e007f]"
)


def inert(text: str) -> str:
    """Return text that does nothing to a terminal: control, bidi and invisible characters are shown, not sent."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
