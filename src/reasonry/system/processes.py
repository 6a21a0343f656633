"""Access to the operating system: child processes, and regular files that a user names.

If the use of a child ends or is cancelled while the child runs, the child is killed with its process group.
"""

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import stat
from asyncio.subprocess import PIPE, Process
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from ..errors import TooLargeError, UsageError
from ..text import without_surrogates

FLOOD_BYTES = 16 * 1024 * 1024
"""A child that writes more output than this is killed. Output beyond the limit of an `Output` is only dropped."""
_REAPED_S = 5.0
"""Seconds to wait until the system has ended a process that was killed."""
_CLOSED_S = 0.1
"""Seconds to wait until the input pipe of an ended child is closed."""

PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TERM|TMPDIR|TMP|TEMP|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|APPDATA"
    r"|LOCALAPPDATA|PROGRAMDATA|PROGRAMFILES|USERPROFILE|HOMEDRIVE|HOMEPATH|SSL_CERT_FILE|SSL_CERT_DIR"
    r"|NODE_EXTRA_CA_CERTS|HTTPS?_PROXY|NO_PROXY|(?:LC|XDG)_\w+",
    re.IGNORECASE,
)
"""Matches the names of the environment variables that child programs get."""


def bare_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the environment variables that a child program gets. API keys are left out."""
    return {name: value for name, value in environ.items() if PASSED_ON.fullmatch(name)}


def split_words(line: str, option: str, *, windows: bool = os.name == "nt") -> list[str]:
    """Split a command line into words. On Windows, a backslash is part of a path and escapes nothing.

    Raises:
        UsageError: A quote is not closed.
    """
    try:
        words = shlex.split(line, posix=not windows)
    except ValueError as error:
        raise UsageError(f"the {option} command cannot be read: {error}", option=option) from None
    return [word[1:-1] if windows and word[:1] == word[-1:] in ('"', "'") else word for word in words]


def split_command(text: str, option: str = "model") -> list[str]:
    """Split a command into words. Replace the first word with the program's path, or raise UsageError."""
    words = split_words(text, option)
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise UsageError(f"there is no program {words[0] if words else ''!r} on the path", option=option)
    return [program, *words[1:]]


class Output:
    """Collects the output of a child, and keeps the output up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.kept = bytearray()
        self.seen_bytes = 0

    def add(self, piece: bytes) -> None:
        """Add a piece of output."""
        self.seen_bytes += len(piece)
        self.kept += piece[: self.limit_bytes - len(self.kept)]

    @property
    def flooded(self) -> bool:
        """Whether the child has written too much and must be killed."""
        return self.seen_bytes > FLOOD_BYTES

    @property
    def truncated(self) -> bool:
        """Whether output was dropped."""
        return self.seen_bytes > len(self.kept)

    def text(self) -> str:
        """Return the kept output as text."""
        return without_surrogates(self.kept.decode(errors="ignore" if self.truncated else "replace"))


class ChildEnd(NamedTuple):
    """The end of a child: its exit code, and whether it was killed at its time limit."""

    code: int
    overran: bool


async def run_child(
    command: Sequence[str], task: bytes, max_seconds: float, reply: Output, printed: Output, **options: Any
) -> ChildEnd:
    """Run a program with a task as its standard input. Kill it at the time limit or after `FLOOD_BYTES` of output.

    Args:
        reply: Collects the program's standard output.
        printed: Collects the program's standard error.

    Raises:
        OSError: The program cannot be started.
    """
    child = await start(command, **options)
    overran = False

    def stop() -> None:
        nonlocal overran
        overran = True
        send_signal(child, "SIGKILL")

    timer = asyncio.get_running_loop().call_later(max_seconds, stop)
    try:
        await asyncio.gather(
            _give(child.stdin, task), _take(child, child.stdout, reply), _take(child, child.stderr, printed)
        )
        await child.wait()
    finally:
        timer.cancel()
        await end(child)
    return ChildEnd(child.returncode or 0, overran)


async def _give(pipe: asyncio.StreamWriter | None, task: bytes) -> None:
    assert pipe is not None
    with contextlib.suppress(ConnectionError):
        pipe.write(task)
        await pipe.drain()
    pipe.close()


async def _take(child: Process, pipe: asyncio.StreamReader | None, output: Output) -> None:
    assert pipe is not None
    while piece := await pipe.read(64 * 1024):
        output.add(piece)
        if output.flooded:
            send_signal(child, "SIGKILL")


async def start(command: Sequence[str], **options: Any) -> Process:
    """Start a child with pipes, in its own process group. If the start is cancelled, the child is killed.

    First, the start is completed: asyncio never finishes a start that is cancelled while the pipes are connected.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, **options
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await end(await starting)
        raise


async def end(child: Process, grace_s: float = 0) -> None:
    """End a child. If this call is cancelled, the child is killed at once.

    Args:
        grace_s: Seconds to wait after the child's input is closed, and again after SIGTERM. 0 kills the child at once.
    """
    assert child.stdin is not None
    child.stdin.close()
    try:
        if grace_s and not await _has_ended(child, grace_s):
            send_signal(child, "SIGTERM")
            await _has_ended(child, grace_s)
    finally:
        try:
            send_signal(child, "SIGKILL")
            await _has_ended(child, _REAPED_S)
        finally:
            # A grandchild may hold the pipes open; the transport must not wait for it.
            transport: Any = getattr(child, "_transport", None)
            if transport is not None:
                transport.close()
            with contextlib.suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(child.stdin.wait_closed(), _CLOSED_S)


def send_signal(child: Process, name: str) -> None:
    """Send a signal to a running child and its process group. On systems without groups, kill only the child."""
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, getattr(signal, name))
        else:
            child.kill()


async def _has_ended(child: Process, patience_s: float) -> bool:
    # Not child.wait(): it also waits for pipes that a grandchild may hold open.
    deadline = asyncio.get_running_loop().time() + patience_s
    while child.returncode is None and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
    return child.returncode is not None


ProblemId = Annotated[str, msgspec.Meta(max_length=200)] | int
"""The id of a line in a file of problems. Errors and tables show the whole id, so its length is limited."""
Line = TypeVar("Line", bound=msgspec.Struct)
Taken = TypeVar("Taken")
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def read_regular_file(path: str | Path, limit: int, *, label: str, option: str) -> bytes:
    """Return the content of a file.

    A named pipe or a device is refused without waiting, even if it replaces the file at the last moment.

    Args:
        limit: The largest size in bytes.
        label: The kind of file, for error messages, such as `script` or `schema`.
        option: The option that named the file.

    Raises:
        UsageError: The file is not regular or not readable. The error's `file` names the file.
        TooLargeError: The file exceeds the limit. The error's `file` names the file.
    """
    try:
        # Opening a device can trigger it, so a file that looks like a device is not opened.
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
    """Parse a file with one problem per line, in JSON. Return a mapping from line numbers to converted problems.

    Args:
        form: The type of a line. If the `id` of a line is None, the line's number is its id. Empty lines are skipped.
        take: Converts a line, given the line's number and its parsed object.
        name: The name of the file in messages.

    Raises:
        UsageError: The file is empty, or lines are broken, refused, or repeat an id. `lines` names the first ten.
    """
    found, faults, numbers = dict[int, Taken](), dict[int, str](), dict[str, int]()
    for number, text in enumerate(data.removeprefix(BOM_UTF8).splitlines(), 1):
        if not text.strip():
            continue
        try:
            line: Any = msgspec.json.decode(text, type=form)
            first = numbers.setdefault(str(number if line.id is None else line.id), number)
            if first == number:
                found[number] = take(number, line)
            else:
                faults[number] = f"its id is that of line {first}"
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            has_form = not isinstance(error, msgspec.ValidationError)
            faults[number] = f"not valid JSON ({error})" if has_form else str(error)
        except UsageError as error:
            faults[number] = str(error)
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
