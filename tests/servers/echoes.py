"""Error documents in which a server gives the caller's key away, written in every way that servers write it."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import msgspec


def written(key: str) -> list[str]:
    """Return ways to write a key in a text."""
    escaped = json.dumps(key)[1:-1]
    half = len(key) // 2
    return [
        key,
        escaped,
        json.dumps(escaped)[1:-1],
        "".join(f"\\u{ord(char):04x}" for char in key),
        quote(key, safe=""),
        "".join(f"%{ord(char):02X}" for char in key),
        "".join(f"&#{ord(char)};" for char in key),
        *(base64.b64encode(f"{user}:{key}".encode()).decode() for user in ("", "u", "us", "user")),
        base64.urlsafe_b64encode(f"user:{key}:more".encode()).decode(),
        f"{key[:half]}\r\n {key[half:]}",
        f"{key[:half]}\\n{key[half:]}",
    ]


def echo(key: str) -> bytes:
    """Return an error document with the key in it, in all these ways."""
    ways = " | ".join(written(key))
    error = {"message": f"Bad key: {ways}", "type": "auth", "code": "bad_key", "param": key}
    return msgspec.json.encode({"type": "error", "error": error})
