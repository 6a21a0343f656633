"""The sandbox `bubblewrap`: CPython in an isolated environment, with numpy and sympy if they are installed.

Its walls, outermost first: namespaces of its own (processes, network, IPC, host name, mounts); a read-only file system
with only the interpreter and its libraries; no environment variables; a user id that no account has; a filter of system
calls; hard limits of the kernel; and the host, which ends the process at the time limit. No execution shares a sandbox.
"""

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

import msgspec
from msgspec.structs import replace

from ..system.processes import Output, run_child
from .execution import Execution, ExecutionLimits, Sandbox, conclude
from .seccomp import filter_program

CHILD = Path(__file__).with_name("sandbox_runner.py")
PACKAGES = ("numpy", "sympy", "mpmath")
"""Packages in the sandbox besides the standard library, if the host has them."""

_SCRATCH_BYTES = 16 * 2**20
_PACKAGES_AT = "/packages"
_INSIDE_UID = "65534"
_READY = b"!"
FIRST_UID, UIDS = 0x70000000, 0x0FF00000
"""User ids that no distribution assigns. Each execution gets its own id, so no execution sees another execution."""

_CPU_LIMIT = (128 + 24, -24)
"""Exit codes of a process that has used up its processor time (signal SIGXCPU)."""


class BubblewrapSandbox(Sandbox):
    """Runs code with CPython inside `bwrap`."""

    name = "bubblewrap"
    description = (
        "Run Python code and return the value of its last line and what it printed. CPython with its standard library, "
        "numpy and sympy; no network, no processes, files only under /tmp and gone afterwards."
    )

    def __init__(self) -> None:
        program, bwrap = filter_program(), find_bwrap()
        if bwrap is None:
            raise self.unavailable("it needs Linux and the program bwrap (apt install bubblewrap)")
        if program is None:
            raise self.unavailable("there is no filter of system calls for this kind of machine")
        self.bwrap, self._filter = bwrap, program

    async def _run(self, code: str, limits: ExecutionLimits, output: Output) -> Execution:
        reply, as_root = Output(8 * limits.max_output_bytes + 64 * 1024), os.geteuid() == 0
        with open(os.memfd_create("sandbox"), "w+b") as rules:
            rules.write(self._filter)
            rules.seek(0)
            try:
                ended = await run_child(
                    [*_command(self.bwrap, rules.fileno(), as_root), "-c", CHILD.read_text("utf-8")],
                    _task(code, limits),
                    limits.max_seconds,
                    reply,
                    output,
                    env={},
                    cwd="/",
                    pass_fds=(rules.fileno(),),
                    extra_groups=[] if as_root else None,
                )
            except OSError as error:
                raise self.unavailable(f"{self.bwrap} could not be started: {error}") from None
        if ended.overran or ended.code in _CPU_LIMIT:
            return conclude("timeout", output, error=f"it did not end within {limits.max_seconds:g} s")
        if not reply.kept.startswith(_READY) and not output.flooded:
            raise self.unavailable(output.text().strip()[-500:] or f"bwrap ended with {ended.code}")
        try:
            outcome = msgspec.json.decode(reply.kept[len(_READY) :], type=Execution)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            number = ended.code - 128 if ended.code > 128 else -ended.code
            fault = "it ended without a result that can be read"
            if number > 0:
                fault = f"it was killed by signal {number} before it had a result"
            return conclude("error", output, error=fault)
        execution = conclude(outcome.status, output, value=outcome.value, error=outcome.error)
        return replace(execution, truncated=execution.truncated or outcome.truncated)


def _task(code: str, limits: ExecutionLimits) -> bytes:
    seconds, files, memory = math.ceil(limits.max_seconds) + 1, 16 * 2**20, limits.max_memory_mb * 2**20
    return json.dumps(
        {
            "code": code,
            "uid": FIRST_UID + secrets.randbelow(UIDS),
            "paths": [_PACKAGES_AT] if _packages() else [],
            "max_output_bytes": limits.max_output_bytes,
            "rlimits": {
                "RLIMIT_AS": (memory, memory),
                "RLIMIT_CPU": (seconds, seconds + 1),
                "RLIMIT_NPROC": (limits.max_processes + 1,) * 2,
                "RLIMIT_FSIZE": (files, files),
                "RLIMIT_NOFILE": (64, 64),
                "RLIMIT_CORE": (0, 0),
                "RLIMIT_MSGQUEUE": (0, 0),
            },
        }
    ).encode()


# -- the isolated environment that bubblewrap builds: the few files of the host that it contains

WALLS = (
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
)
"""Arguments that isolate every bubblewrap sandbox."""
NOBODY = ("--unshare-user", "--uid", _INSIDE_UID, "--gid", _INSIDE_UID)


def find_bwrap() -> str | None:
    """Return the path of the program bwrap, or None if it is not installed."""
    return shutil.which("bwrap") if sys.platform == "linux" else None


def _command(bwrap: str, rules: int, as_root: bool) -> list[str]:
    """Return the command that starts Python in the sandbox. The caller adds the program to run.

    Args:
        rules: The file descriptor of the system-call filter.
        as_root: Whether root starts the sandbox, which then has no user namespace. The kernel does not limit root's
            processes, so the child changes to a user id of its own.
    """
    identity = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if as_root else NOBODY
    return [
        *(bwrap, *WALLS, *identity, "--hostname", "sandbox", *_files()),
        *("--perms", "1777", "--size", str(_SCRATCH_BYTES), "--tmpfs", "/tmp"),
        *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
        *("--remount-ro", "/", "--chdir", "/tmp", "--seccomp", str(rules)),
        *("--", _interpreter(), "-I", "-S", "-B", "-X", "utf8"),
    ]


@cache
def _packages() -> dict[str, str]:
    """Map the paths of packages in the sandbox to their paths on the host."""
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    places = [Path(place) for spec in specs if spec for place in (spec.submodule_search_locations or [])[:1]]
    folders = [folder for place in places for folder in (place, place.with_name(f"{place.name}.libs"))]
    return {f"{_PACKAGES_AT}/{folder.name}": str(folder) for folder in folders if folder.is_dir()}


def _interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _files() -> list[str]:
    binds = {place: place for place in [_interpreter(), *_libraries()]} | _packages()
    arguments: list[str] = []
    # If bubblewrap created the parent folders itself, only their owner, perhaps root, could open them.
    folders = {str(parent) for inside in [*binds, "/dev/null"] for parent in Path(inside).parents}
    for folder in sorted(folders - {"/"}):
        arguments += ["--perms", "0755", "--dir", folder]
    for inside, place in binds.items():
        arguments += ["--ro-bind", place, inside]
    for name in ("site-packages", "dist-packages"):
        masked = os.path.join(_stdlib(), name)
        if os.path.isdir(masked):
            arguments += ["--size", "4096", "--tmpfs", masked, "--remount-ro", masked]
    return arguments


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
