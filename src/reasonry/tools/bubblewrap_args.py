"""The small world that bubblewrap builds for code: which files of the host are in it, and nothing else."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from functools import cache
from pathlib import Path

CHILD = Path(__file__).with_name("sandbox_runner.py")
PACKAGES = ("numpy", "sympy", "mpmath")
"""What the world holds besides the standard library, where the host has it installed."""

SCRATCH_BYTES = 16 * 2**20
_PACKAGES_AT = "/packages"
_INSIDE_UID = "65534"


def bubblewrap_command(bwrap: str, rules: int, about: int, *, as_root: bool) -> list[str]:
    """Return the command line up to the interpreter's own arguments.

    Args:
        rules: Descriptor that the filter of system calls is read from.
        about: Descriptor that bubblewrap writes to which process is the first of the world.
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
        *("--remount-ro", "/", "--chdir", "/tmp", "--seccomp", str(rules), "--info-fd", str(about)),
        *("--", _interpreter(), "-I", "-S", "-B", "-X", "utf8"),
    ]


def search_path() -> list[str]:
    """Return what the child adds to where it looks for modules."""
    return [_PACKAGES_AT] if packages() else []


@cache
def packages() -> dict[str, Path]:
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
    for name, place in packages().items():
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
