"""Compression of journal lines: deflated with a dictionary of their common words they take half the space.

The first byte of what is stored names the format, so that formats can be added; none ever changes.
"""

from __future__ import annotations

import zlib

PLAIN = b"\x00"
DEFLATED = b"\x01"

MAX_BYTES = 256 * 1024 * 1024
"""Nothing unpacks to more than this, whatever a damaged or forged file says."""

# What comes last is the nearest, and so the cheapest to refer to.
_WORDS = (
    b'{"thoughts":["{"scores":{"1":0.5,"2":0.7},"score":,"reason":"{"answer":"the answer is Step 1: so '
    b'the and of to is that we have which with this for can be will first then next solution problem "]}"}'
    b'["begun",{"strategy":"tree_of_thoughts","problem":"","options":{},"budget":{},"crew":{},"created_at_ms":1'
    b'["ended","["resumed",{"type":"stopped","reason":"","detail":"{"type":"tool_returned","value":{"type":'
    b'"verified","verdict":"right""wrong""unknown","detail":"","answer":"{"type":"failed","code":"","message":"'
    b'["sent","10"]["took","10",{"type":"answered","text":"","at_ms":1000,"usage":{"calls":0,"input_tokens":1000,'
    b'"output_tokens":100,"cached_input_tokens":100,"usd":0.0001},"model":"openai:gpt-anthropic:claude-google:'
    b'gemini-ollama:","native":true}]'
)


class UnpackError(ValueError):
    """The stored bytes cannot be unpacked."""


def pack(body: bytes) -> bytes:
    """Return `body` as it is stored, which is never more than a byte longer."""
    # A short window needs little memory, which is most of the time a short line takes.
    window, memory = (12, 5) if len(body) <= 4096 else (15, 8)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -window, memory, zlib.Z_DEFAULT_STRATEGY, _WORDS)
    packed = deflate.compress(body) + deflate.flush()
    return DEFLATED + packed if len(packed) < len(body) else PLAIN + body


def unpack(stored: object) -> bytes:
    """Return what was packed.

    Raises:
        UnpackError: It is damaged.
    """
    if not isinstance(stored, bytes):
        raise UnpackError("not bytes")
    way = stored[:1]
    if way == PLAIN:
        return stored[1:]
    if way != DEFLATED:
        raise UnpackError("packed in an unknown format")
    inflate = zlib.decompressobj(-15, _WORDS)
    try:
        body = inflate.decompress(stored[1:], MAX_BYTES)
    except zlib.error as error:
        raise UnpackError(str(error)) from error
    if not inflate.eof or inflate.unused_data:
        raise UnpackError("cut short, too long, or too large")
    return body
