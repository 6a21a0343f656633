"""Ends a process whose event loop hangs, so that another process can resume its runs.

A thread could not watch the loop, since a runaway regular expression holds the interpreter lock. So the watcher is a
child process that runs this file. The file imports little, and nothing from the package.
"""

import contextlib
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator

STILL_S = 30
"""How many seconds the loop may hang. The child counts ticks, which pause while the computer is suspended."""

TICK_S = 1.0


class Watchdog:
    """Sends heartbeats from the watched process. Outside of `watching`, it does nothing."""

    def __init__(self) -> None:
        self._pipe: int | None = None

    def note_life(self, run_id: str = "") -> None:
        """Send a heartbeat. `run_id` is the run that is folded next, if any."""
        if self._pipe is not None:
            # A full pipe, or a pipe whose reader has died, must not block the process.
            with contextlib.suppress(OSError):
                os.write(self._pipe, f"{run_id}\n".encode())

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Let the watchdog end this process if the loop hangs. On Windows, do nothing."""
        import asyncio
        import subprocess

        if not hasattr(signal, "SIGKILL"):
            yield
            return

        async def beat() -> None:
            while True:
                self.note_life()
                await asyncio.sleep(TICK_S)

        reading, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        command = [sys.executable, "-I", "-S", __file__, f"{os.getpid()}", f"{STILL_S}", f"{TICK_S}"]
        with subprocess.Popen(command, stdin=reading) as child:
            os.close(reading)
            beating = asyncio.create_task(beat())
            try:
                yield
            finally:
                beating.cancel()
                os.close(self._pipe)
                self._pipe = None
                child.kill()


WATCHDOG = Watchdog()
"""The watchdog of this process."""


def watch(pid: int, still_s: float, tick_s: float) -> None:
    """Read the heartbeats of a process from standard input. Kill the process if the heartbeats stop."""
    # Ctrl-C is for the watched process, which may have work to finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_id, rest, quiet = b"", b"", 0
    while quiet * tick_s < still_s:
        if not select.select([0], [], [], tick_s)[0]:
            quiet = 0 if is_suspended(pid) else quiet + 1
            continue
        quiet, piece = 0, os.read(0, 65_536)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        run_id = next(filter(None, reversed(lines)), run_id)
    if os.getppid() == pid:
        folded = f"run {run_id.decode()}" if run_id else "none"
        warning = f"the event loop has stood still for {still_s:g} s; the last run folded in: {folded}; "
        with contextlib.suppress(OSError):
            os.write(2, f"{warning}this process ends, to be started again\n".encode())
        os.kill(pid, signal.SIGKILL)


def is_suspended(pid: int) -> bool:
    """Whether a signal or a debugger has stopped a process. Always False on a system without `/proc`."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


if __name__ == "__main__":
    watch(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
