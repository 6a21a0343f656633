"""Error documents in which a server gives the caller's key away, written in every way that servers write it."""

import json
import re
from urllib.parse import quote

import msgspec


def written(key: str) -> list[str]:
    """Return ways to write a key in a text: as it is, and escaped for JSON and URLs."""
    escaped = json.dumps(key)[1:-1]
    return [
        key,
        escaped,
        escaped.replace("/", "\\/"),
        re.sub(r"[^a-zA-Z0-9]", lambda char: f"\\u{ord(char[0]):04x}", key),
        quote(key),
        quote(key, safe=""),
        re.sub(r"[^a-zA-Z0-9]", lambda char: f"%{ord(char[0]):02x}", key),
    ]


def echo(key: str) -> bytes:
    """Return an error document with the key in it, in all these ways."""
    ways = " | ".join(written(key))
    error = {"message": f"Bad key: {ways}", "type": "auth", "code": "bad_key", "param": key}
    return msgspec.json.encode({"type": "error", "error": error})
