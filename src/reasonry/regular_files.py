"""Reads files named by a user: regular files up to a size, never a pipe or a device."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .errors import TooLargeError, UsageError

Line = TypeVar("Line", bound=msgspec.Struct)
Taken = TypeVar("Taken")
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def read_regular_file(path: str | Path, limit: int, *, label: str, option: str) -> bytes:
    """Return the content of a file.

    A named pipe or a device is refused without waiting, even if it replaces the file at the last moment.

    Args:
        limit: The largest size in bytes.
        label: The kind of file, for errors: `script`, `schema`.
        option: The option that named it.

    Raises:
        UsageError: The file is not regular or not readable; `file` in the details names it.
        TooLargeError: The file exceeds the limit; `file` in the details names it.
    """
    try:
        # Opening a device can trigger it, so a file that looks like one is not opened.
        _check_kind(os.stat(path).st_mode)
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            _check_kind(os.fstat(descriptor).st_mode)
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        message = f"the {label} {str(path)!r} cannot be read: {why}"
        raise UsageError(message, option=option, file=str(path)) from None
    if len(data) > limit:
        message = f"the {label} {str(path)!r} is over {limit:,} bytes"
        raise TooLargeError(message, limit=limit, option=option, file=str(path))
    return data


def read_problems(
    data: bytes, form: type[Line], take: Callable[[int, Line], Taken], *, name: str
) -> dict[int, Taken]:
    """Read a file of problems, and convert each line. Empty lines are skipped.

    Args:
        form: The type of a line. It has an `id`, which defaults to the line's number.
        take: Converts a line, given its number and its data.
        name: The name of the file in messages.

    Raises:
        UsageError: Lines are broken, refused, or repeat an id (`lines` has the first ten), or the file is empty.
    """
    found, faults, numbers = dict[int, Taken](), dict[int, str](), dict[str, int]()
    for number, text in enumerate(data.splitlines(), 1):
        if not text.strip():
            continue
        try:
            line: Any = msgspec.json.decode(text, type=form)
            first = numbers.setdefault(str(number if line.id is None else line.id), number)
            if first == number:
                found[number] = take(number, line)
            else:
                faults[number] = f"its id is that of line {first}"
        except (msgspec.ValidationError, UsageError) as error:
            faults[number] = str(error)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            faults[number] = f"not valid JSON ({error})"
    if faults:
        shown = dict(islice(faults.items(), 10))
        listed = "; ".join(f"line {number}: {why}" for number, why in shown.items())
        more = f"; and {len(faults) - len(shown)} more lines" * (len(faults) > len(shown))
        message = f"{name}, {listed}{more}. No run was started."
        raise UsageError(message, lines=[*shown])
    if not found:
        raise UsageError(f'{name} holds no problem; a line is {{"problem": …}}', option="file")
    return found


def _check_kind(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "a named pipe, a socket or a device"
        raise ValueError(f"it is {kind}, not a regular file")
