"""Runs a module in a process that lacks what only POSIX has: `python without_posix.py MODULE ARG…`.

Modules cannot be imported, names are not there, and the event loop watches neither descriptors nor signals, as on
Windows. The rest of the system stays what it is.
"""

import asyncio
import os
import runpy
import select
import signal
import sys
import threading
from typing import Any

MODULES = {
    *("crypt", "fcntl", "grp", "nis", "posixshmem", "pty", "pwd", "resource", "spwd", "syslog", "termios"),
    *("tty"),
}
NAMES: dict[Any, tuple[str, ...]] = {
    select: ("poll", "epoll"),
    signal: ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "alarm", "pthread_kill"),
    os: (
        *("O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "killpg", "setsid", "fork", "geteuid"),
        *("getegid", "chown", "fchown", "fchmod", "lchown", "mkfifo", "nice", "uname", "getpgid", "setgroups"),
        *("getpriority", "sched_getaffinity", "statvfs", "sync", "pread", "pwrite", "getresuid", "setresuid"),
    ),
}  # fmt: skip


class Finder:
    """Finds no module that only POSIX has."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Loop(asyncio.SelectorEventLoop):
    """Watches neither descriptors nor signals, like the loop of Windows."""

    def _no(self, *_: Any) -> Any:
        raise NotImplementedError

    add_reader = add_writer = add_signal_handler = _no

    def run_forever(self) -> None:
        # A signal wakes the loop of Windows, whichever thread takes it.
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(self._csock.fileno())  # pyright: ignore
        super().run_forever()


class Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = Loop


def without_posix(*words: str) -> list[str]:
    """Return the command that runs a module without what only POSIX has."""
    return [sys.executable, __file__, *words]


def hide() -> None:
    """Take it all away."""
    for name in MODULES & set(sys.modules):
        del sys.modules[name]
    sys.meta_path.insert(0, Finder())
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    asyncio.set_event_loop_policy(Policy())


if __name__ == "__main__":
    hide()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
