"""The command line, in a process that counts others as dead sooner, and whose leases are shorter."""

from __future__ import annotations

import sys

from reasonry.queues import queue_tables, worker
from reasonry.stores import leases
from reasonry.surfaces.cli import main

if __name__ == "__main__":
    leases.LEASE_S, queue_tables.DEAD_MS, worker.BEAT_S = 1.5, 1_500, 0.3
    sys.exit(main())
