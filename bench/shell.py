"""Reasonry as a process of its own, for the measurements that kill it."""

import sys


def command(*arguments: str, store: str, at_once: int) -> list[str]:
    """Return the command line; `at_once` calls of its run are performed side by side."""
    wide = ("--max-concurrency", str(at_once))
    return [sys.executable, "-m", "reasonry", *arguments, "--store", store, *wide, "--json"]
