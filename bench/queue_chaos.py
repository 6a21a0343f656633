"""Many machines: everything killed without warning at random moments, while runs are begun and driven.

    uv run python bench/queue_chaos.py [--runs 1000] [--seed 1] [--pause-s 3] [--folder DIR]

Two thirds of the runs are begun over `POST /api/runs`, each with a key and again until it is accepted, a third by
`reasonry submit`. Four workers drive them against the loopback model server. Meanwhile, after a random pause, `kill -9`
of a worker, the server, `submit`, or PostgreSQL with all its processes, which is started again a moment later; or
PostgreSQL freezes, or its network is cut.
Target: every run ends with a right answer, none is lost or doubled, and what the model server counts beyond the
recorded answers is no more than the processes that died had in flight.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from loopback import postgres_server

from tests.queues.killing import drive_amid_kills, open_scene

WAIT_S = 3_000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause-s", type=float, default=3.0, help="between two kills, on average")
    parser.add_argument("--latency-ms", type=int, default=200)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(dir=given.folder)))
        postgres = held.enter_context(postgres_server(disk=str(folder)))
        scene = open_scene(held, postgres, folder, workers=given.workers, latency_ms=given.latency_ms)
        report = drive_amid_kills(scene, given.runs, seed=given.seed, pause_s=given.pause_s, wait_s=WAIT_S)
        tracebacks = scene.log.read_text(encoding="utf-8", errors="replace").count("Traceback (")
    killed = ", ".join(f"{name} {count}×" for name, count in sorted(report.kills.items()))
    print(f"seed {given.seed}: {len(report.runs)} runs over in {report.took_s:.0f} s; killed: {killed}")
    print(
        ", ".join(f"{count} {status}" for status, count in report.outcome.ended.items())
        + f"; {report.outcome.right} right answers; {tracebacks} tracebacks in what all wrote"
    )
    print(
        f"in flight at the kills {report.in_flight}, paid twice {report.twice}, "
        f"recorded answers {report.outcome.answers:,}"
    )
    try:
        report.check(given.runs)
    except AssertionError:
        print("TARGET MISSED")
        return 1
    print("target met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
