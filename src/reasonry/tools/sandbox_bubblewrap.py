"""The sandbox `bubblewrap`: CPython, with numpy and sympy where they are installed, in an environment of its own.

Its walls, outermost first: namespaces of its own (processes, network, IPC, host name, mounts); a read-only file system
with the interpreter and its libraries alone; no environment; a user id that nobody has; a filter of system calls;
hard limits of the kernel; and the host, which ends it all when the time is up. Every execution is a new world.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import secrets
import shutil
import signal
import sys
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import SandboxError
from .bubblewrap_args import CHILD, bubblewrap_command, search_path
from .execution import FLOOD_MESSAGE, Execution, ExecutionLimits, Output, Sandbox, Status, conclude
from .seccomp import filter_program

_READY = b"!"
_FIRST_UID, _UIDS = 0x70000000, 0x0FF00000
"""User ids that no distribution hands out; one for each execution, so that no two can see each other."""

_AFTER_KILL_S = 1.0
_CPU_LIMIT = (128 + 24, -24)
"""How a process ends that has used up its processor time: signal SIGXCPU."""


class _Envelope(Struct, frozen=True, forbid_unknown_fields=True):
    status: Status
    value: Any = None
    error: str | None = None
    cut: bool = False


class BubblewrapSandbox(Sandbox):
    """Runs code with CPython inside `bwrap`.

    Raises:
        SandboxError: It cannot be used here; the message says why.
    """

    name = "bubblewrap"

    def __init__(self) -> None:
        program = filter_program()
        bwrap = shutil.which("bwrap") if sys.platform == "linux" else None
        if bwrap is None:
            raise self._unavailable("it needs Linux and the program bwrap (apt install bubblewrap)")
        if program is None:
            raise self._unavailable("there is no filter of system calls for this kind of machine")
        self.bwrap, self._filter = bwrap, program

    async def _run(self, code: str, limits: ExecutionLimits) -> Execution:
        output, channel, overran = Output(limits.max_output_bytes), bytearray(), False
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            wires = _wires(ours, theirs)
            wires.fill(_task(code, limits, wires.result_in), self._filter)
            process = await self._start(wires)
            theirs.close()
            try:
                async with asyncio.timeout(limits.max_seconds):
                    await _listen(process, wires.result_out, output, channel, limits)
            except TimeoutError:
                overran = True
            finally:
                await _end(process, wires.about_out)
        return self._judge(process.returncode or 0, overran, output, bytes(channel), limits)

    async def _start(self, wires: _Wires) -> asyncio.subprocess.Process:
        as_root = os.geteuid() == 0
        try:
            return await asyncio.create_subprocess_exec(
                *bubblewrap_command(self.bwrap, wires.rules, wires.about_in, as_root=as_root),
                "-c",
                CHILD.read_text("utf-8"),
                stdin=wires.task,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={},
                cwd="/",
                pass_fds=(wires.rules, wires.about_in, wires.result_in),
                extra_groups=[] if as_root else None,
            )
        except OSError as error:
            raise self._unavailable(f"{self.bwrap} could not be started: {error}") from None

    def _judge(
        self, code: int, overran: bool, output: Output, channel: bytes, limits: ExecutionLimits
    ) -> Execution:
        def failure(status: Status, error: str) -> Execution:
            return conclude(status, self.name, output, limits, error=error)

        if output.flooded:
            return failure("error", FLOOD_MESSAGE)
        if overran or code in _CPU_LIMIT:
            return failure("timeout", f"it did not end within {limits.max_seconds:g} s")
        if not channel.startswith(_READY):
            raise self._unavailable(output.text().strip()[-500:] or f"bwrap ended with {code}")
        try:
            envelope = msgspec.json.decode(channel[len(_READY) :], type=_Envelope)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return failure("error", _ending(code))
        execution = conclude(
            envelope.status, self.name, output, limits, value=envelope.value, error=envelope.error
        )
        return replace(execution, truncated=execution.truncated or envelope.cut)

    def _unavailable(self, reason: str) -> SandboxError:
        return SandboxError(f"the sandbox {self.name} cannot be used: {reason}", sandbox=self.name)


def _task(code: str, limits: ExecutionLimits, channel: int) -> bytes:
    mebibyte = 2**20
    seconds = math.ceil(limits.max_seconds) + 1
    files = 16 * mebibyte
    return json.dumps(
        {
            "code": code,
            "channel": channel,
            "uid": _FIRST_UID + secrets.randbelow(_UIDS),
            "paths": search_path(),
            "max_output_bytes": limits.max_output_bytes,
            "rlimits": {
                "RLIMIT_AS": (limits.max_memory_mb * mebibyte,) * 2,
                "RLIMIT_CPU": (seconds, seconds + 1),
                "RLIMIT_NPROC": (limits.max_processes + 1,) * 2,
                "RLIMIT_FSIZE": (files, files),
                "RLIMIT_NOFILE": (64, 64),
                "RLIMIT_CORE": (0, 0),
                "RLIMIT_MSGQUEUE": (0, 0),
            },
        }
    ).encode()


class _Wires(Struct, frozen=True):
    """Descriptors between here and the world; `_in` is its end, `_out` ours."""

    task: int
    rules: int
    result_in: int
    result_out: int
    about_in: int
    about_out: int

    def fill(self, task: bytes, rules: bytes) -> None:
        for descriptor, content in ((self.task, task), (self.rules, rules)):
            os.write(descriptor, content)
            os.lseek(descriptor, 0, os.SEEK_SET)


def _wires(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> _Wires:
    def pipe() -> tuple[int, int]:
        out, into = os.pipe()
        ours.callback(os.close, out)
        theirs.callback(os.close, into)
        os.set_blocking(out, False)
        return out, into

    def memory() -> int:
        descriptor = os.memfd_create("sandbox")
        theirs.callback(os.close, descriptor)
        return descriptor

    result_out, result_in = pipe()
    about_out, about_in = pipe()
    return _Wires(memory(), memory(), result_in, result_out, about_in, about_out)


async def _listen(
    process: asyncio.subprocess.Process,
    ours: int,
    output: Output,
    channel: bytearray,
    limits: ExecutionLimits,
) -> None:
    assert process.stdout is not None
    loop = asyncio.get_running_loop()
    enough = 8 * limits.max_output_bytes + 64 * 1024
    answered = loop.create_future()

    def take() -> None:
        piece = os.read(ours, 64 * 1024)
        channel.extend(piece)
        if (not piece or len(channel) > enough) and not answered.done():
            loop.remove_reader(ours)
            answered.set_result(None)

    loop.add_reader(ours, take)
    try:
        while not output.flooded and (piece := await process.stdout.read(64 * 1024)):
            output.add(piece)
        if not output.flooded:
            await answered
            await process.wait()
    finally:
        loop.remove_reader(ours)


async def _end(process: asyncio.subprocess.Process, about: int) -> None:
    """Kill what is left: its first process, with which all of the world dies, then bubblewrap itself."""
    if process.returncode is None:
        _kill_first(about)
    for seconds in (_AFTER_KILL_S, _AFTER_KILL_S):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # Until the last end of the pipe is closed, somebody in there is still alive.
                while process.stdout is not None and await process.stdout.read(64 * 1024):
                    pass
                await process.wait()
                return
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def _kill_first(about: int) -> None:
    # Bubblewrap waits for it, so the number still means the same process.
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        os.kill(int(json.loads(os.read(about, 4096))["child-pid"]), signal.SIGKILL)


def _ending(code: int) -> str:
    number = code - 128 if code > 128 else -code
    if number > 0:
        return f"it was killed by signal {number} before it had a result"
    return "it ended without a result that can be read"
