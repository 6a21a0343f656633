"""The command line with shorter leases, given back late; it counts others as dead sooner and dies of one run.

The seconds of a worker may be shorter still: `python -m tests.queues.hasty HANGS_S=1 worker …`.
"""

import asyncio
import os
import signal
import sys
import time
from typing import Any

from reasonry.queues import worker
from reasonry.stores import leases
from reasonry.supervisor import Supervisor, deaths
from reasonry.surfaces.cli import main

POISON = "a run that kills who drives it"


class Mortal(Supervisor):
    """Dies of one run, soon after it has begun to drive it."""

    def _drive(self, opened: Any, *rest: Any, **named: Any) -> Any:
        if POISON in opened.run.begun.problem:
            asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGKILL)
        return super()._drive(opened, *rest, **named)


def give_back_late(*of: Any) -> None:
    """Give a lease back so late that another run may end the process before."""
    time.sleep(0.3)
    GIVE_BACK(*of)


GIVE_BACK = leases.give_back

if __name__ == "__main__":
    leases.give_back = give_back_late
    deaths.RESTS_S = (0.0,) * 4
    # Who is only slow keeps his runs by his lease, whoever counts him as dead.
    leases.LEASE_S, worker.DEAD_S, worker.BEAT_S = 4, 1, 0.25
    while "=" in sys.argv[1]:
        name, _, seconds = sys.argv.pop(1).partition("=")
        setattr(worker, name, float(seconds))
    import reasonry.surfaces.cli.servers as command

    command.Supervisor = Mortal
    sys.exit(main())
