"""The sandbox `bubblewrap`: CPython, with numpy and sympy where they are installed, in an environment of its own.

Its walls, outermost first: namespaces of its own (processes, network, IPC, host name, mounts); a read-only file system
with the interpreter and its libraries alone; no environment; a user id that nobody has; a filter of system calls;
hard limits of the kernel; and the host, which ends it all when the time is up. Every execution is a new world.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import math
import os
import secrets
import shutil
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import SandboxError
from .execution import FLOOD_MESSAGE, Execution, ExecutionLimits, Output, Sandbox, Status, conclude
from .seccomp import filter_program

CHILD = Path(__file__).with_name("sandbox_runner.py")
PACKAGES = ("numpy", "sympy", "mpmath")
"""What the world holds besides the standard library, where the host has it installed."""

SCRATCH_BYTES = 16 * 2**20
_PACKAGES_AT = "/packages"
_INSIDE_UID = "65534"
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
            result_out, result_in = os.pipe()
            ours.callback(os.close, result_out)
            theirs.callback(os.close, result_in)
            os.set_blocking(result_out, False)
            task = _in_memory(_task(code, limits, result_in), theirs)
            process = await self._start(task, _in_memory(self._filter, theirs), result_in)
            theirs.close()
            try:
                async with asyncio.timeout(limits.max_seconds):
                    await _listen(process, result_out, output, channel, limits)
            except TimeoutError:
                overran = True
            finally:
                await _end(process)
        return self._judge(process.returncode or 0, overran, output, bytes(channel), limits)

    async def _start(self, task: int, rules: int, result: int) -> asyncio.subprocess.Process:
        as_root = os.geteuid() == 0
        try:
            return await asyncio.create_subprocess_exec(
                *_command(self.bwrap, rules, as_root=as_root),
                "-c",
                CHILD.read_text("utf-8"),
                stdin=task,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={},
                cwd="/",
                pass_fds=(rules, result),
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
            "paths": _search_path(),
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


def _in_memory(content: bytes, until: contextlib.ExitStack) -> int:
    """Return a descriptor that the content is read from."""
    descriptor = os.memfd_create("sandbox")
    until.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


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


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill bubblewrap, with which all of its world dies, and wait until the last process in there is gone."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_AFTER_KILL_S):
            # Until the last end of the pipe is closed, somebody in there is still alive.
            while process.stdout is not None and await process.stdout.read(64 * 1024):
                pass
            await process.wait()


def _ending(code: int) -> str:
    number = code - 128 if code > 128 else -code
    if number > 0:
        return f"it was killed by signal {number} before it had a result"
    return "it ended without a result that can be read"


# -- the small world that bubblewrap builds: which files of the host are in it, and nothing else


def _command(bwrap: str, rules: int, *, as_root: bool) -> list[str]:
    """Return the command line up to the interpreter's own arguments.

    Args:
        rules: Descriptor that the filter of system calls is read from.
        as_root: Started by root, no user namespace is made: the code runs under an id of its own, for the kernel counts
            the processes of root, whatever it is called inside, for nobody. The child changes to that id.
    """
    identity = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if as_root else _nobody()
    return [
        bwrap,
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"),
        *("--cap-drop", "ALL", *identity),
        *_files(),
        *("--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"),
        *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
        *("--remount-ro", "/", "--chdir", "/tmp", "--seccomp", str(rules)),
        *("--", _interpreter(), "-I", "-S", "-B", "-X", "utf8"),
    ]


def _search_path() -> list[str]:
    """Return what the child adds to where it looks for modules."""
    return [_PACKAGES_AT] if _packages() else []


@cache
def _packages() -> dict[str, Path]:
    """Return the packages that the world holds, with where the host has them."""
    found: dict[str, Path] = {}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        for place in (spec.submodule_search_locations or [])[:1] if spec else []:
            found[name] = Path(place)
    return found


def _nobody() -> list[str]:
    return ["--unshare-user", "--uid", _INSIDE_UID, "--gid", _INSIDE_UID]


def _interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _files() -> list[str]:
    binds = {place: place for place in [_interpreter(), *_libraries()]} | _package_binds()
    arguments: list[str] = []
    # Folders that bubblewrap makes by itself on the way are closed to all but their owner, who may be root.
    for folder in sorted(
        {str(parent) for inside in [*binds, "/dev/null"] for parent in Path(inside).parents}
    ):
        arguments += [] if folder == "/" else ["--perms", "0755", "--dir", folder]
    for inside, place in binds.items():
        arguments += ["--ro-bind", place, inside]
    for name in ("site-packages", "dist-packages"):
        masked = os.path.join(_stdlib(), name)
        if os.path.isdir(masked):
            arguments += ["--size", "4096", "--tmpfs", masked, "--remount-ro", masked]
    return arguments


def _package_binds() -> dict[str, str]:
    binds: dict[str, str] = {}
    for name, place in _packages().items():
        binds[f"{_PACKAGES_AT}/{name}"] = str(place)
        libraries = place.with_name(f"{name}.libs")
        if libraries.is_dir():
            binds[f"{_PACKAGES_AT}/{name}.libs"] = str(libraries)
    return binds


def _stdlib() -> str:
    return os.path.dirname(os.path.realpath(os.__file__))


def _libraries() -> list[str]:
    """Return the standard library and the folders in which the loader looks for shared libraries."""
    machine = sysconfig.get_config_var("MULTIARCH") or "-"
    shared = [f"/lib/{machine}", f"/usr/lib/{machine}"]
    if not any(map(os.path.isdir, shared)):
        shared = ["/lib", "/usr/lib"]
    places = [_stdlib(), sysconfig.get_config_var("DESTSHARED"), *shared, "/lib64", "/usr/lib64"]
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        library = sysconfig.get_config_var("INSTSONAME")
        places.append(os.path.join(sysconfig.get_config_var("LIBDIR"), library))
    return [place for place in dict.fromkeys(places) if place and os.path.exists(place)]
