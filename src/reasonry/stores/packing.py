"""Compression of journal lines. The first byte of a stored line names its format."""

from __future__ import annotations

import zlib

PLAIN = b"\x00"
DEFLATED = b"\x01"

MAX_BYTES = 256 * 1024 * 1024
"""Nothing unpacks to more than this, whatever a damaged or forged file says."""


class UnpackError(ValueError):
    """The stored bytes cannot be unpacked."""


def pack(body: bytes) -> bytes:
    """Return `body` as it is stored, which is never more than a byte longer."""
    # A short window needs little memory, which is most of the time a short line takes.
    window, memory = (12, 5) if len(body) <= 4096 else (15, 8)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -window, memory)
    packed = deflate.compress(body) + deflate.flush()
    return DEFLATED + packed if len(packed) < len(body) else PLAIN + body


def unpack(stored: bytes) -> bytes:
    """Return what was packed.

    Raises:
        UnpackError: It is damaged.
    """
    if stored[:1] == PLAIN:
        return stored[1:]
    if stored[:1] != DEFLATED:
        raise UnpackError("packed in an unknown format")
    inflate = zlib.decompressobj(-15)
    try:
        body = inflate.decompress(stored[1:], MAX_BYTES)
    except zlib.error as error:
        raise UnpackError(str(error)) from error
    if not inflate.eof or inflate.unused_data:
        raise UnpackError("cut short, too long, or too large")
    return body
