"""Runs a module in a process that has what a base installation brings: `python without_extras.py MODULE ARG…`.

What it brings is read from the lock: the packages that this one depends on, and those that they depend on. The
modules of all others that are installed cannot be imported.
"""

import re
import runpy
import sys
import tomllib
from importlib import metadata
from pathlib import Path

LOCK = Path(__file__).parents[2] / "uv.lock"


def base_packages() -> frozenset[str]:
    """Return the packages of a base installation on any system, by the lock."""
    packages = {package["name"]: package for package in tomllib.loads(LOCK.read_text("utf-8"))["package"]}
    found: set[tuple[str, str]] = set()
    waiting = [("reasonry", "")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        package = packages[name]
        needed = package.get("optional-dependencies", {}).get(extra) if extra else package.get("dependencies")
        for one in needed or ():
            waiting += [(one["name"], wanted) for wanted in ("", *one.get("extra", ()))]
    return frozenset(name for name, _ in found)


def without_extras(*words: str) -> list[str]:
    """Return the command that runs a module as in a base installation."""
    return [sys.executable, __file__, *words]


def hide() -> None:
    """Take it all away."""
    base = base_packages()
    for module, names in metadata.packages_distributions().items():
        if base.isdisjoint(re.sub(r"[-_.]+", "-", name).lower() for name in names):
            sys.modules[module] = None  # type: ignore[assignment]


if __name__ == "__main__":
    hide()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
