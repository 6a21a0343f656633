"""Files of one JSON document a line, read whole and checked line by line before anything is made of them."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from ..errors import UsageError
from ..regular_files import read_regular_file

MAX_FILE_BYTES = 256_000_000

L = TypeVar("L", bound=Struct)


def read_lines(path: str, kind: type[L], noun: str) -> list[L]:
    """Return the lines of a file; empty ones are passed over.

    Args:
        path: UTF-8, with or without a byte order mark.
        kind: What each line holds.
        what: What the file is called in errors: `script`, `recording`.

    Raises:
        UsageError: It is no regular file or cannot be read, or a line is broken: `line` says which, the message why.
        TooLargeError: The file is over 256 MB.
    """
    data = read_regular_file(path, MAX_FILE_BYTES, label=noun, option="model")
    decoder = msgspec.json.Decoder(kind)
    # Only line feeds part lines: JSON text may hold other line separators as they are.
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [_read(decoder, path, noun, n, line) for n, line in enumerate(lines, 1) if line.strip()]


def _read(decoder: msgspec.json.Decoder[L], path: str, noun: str, number: int, line: bytes) -> L:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(
            f"line {number} of the {noun} {path!r} is broken: {why}", option="model", line=number, file=path
        ) from None
