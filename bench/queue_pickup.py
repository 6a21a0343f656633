"""How long a run that is put into the queue waits until a worker has begun it.

    uv run python bench/queue_pickup.py [--runs 100] [--per-s 15] [--store sqlite|postgres]… [--folder DIR]

Two `reasonry worker` processes with room. The clock runs from before the run is put into the queue until its first
question has come to the model, which is in this process: so it has in it the opening and the first writes of the run.
Idle: one run after another, at random moments. Busy: as many a second as said, without waiting. The very first run of
all is given by itself: a worker begins its queue's threads for it. Each worker has had runs before the others.
Target: p99 at most 300 ms, idle and busy.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import time
from contextlib import closing

import plain_server
from load import quantile
from queue_places import ANSWER, KINDS, accept, new_store, queue_of, workers

from reasonry.app import App
from reasonry.queues import Queue, Waiting

P99_MS, LATENCY_S = 300, 0.06


class Model(plain_server.Connection):
    """Notes when the first question of each run comes."""

    def __init__(self, came: dict[int, asyncio.Future[float]]) -> None:
        super().__init__(LATENCY_S, ANSWER)
        self._came = came

    def data_received(self, data: bytes) -> None:
        """See when the question of a run comes."""
        for number in re.findall(rb"What is (\d+) \+ 9", data):
            if not (came := self._came[int(number)]).done():
                came.set_result(time.monotonic())
        super().data_received(data)


class Runs:
    def __init__(self, app: App, queue: Queue, spec: str, came: dict[int, asyncio.Future[float]]) -> None:
        self._app, self._queue, self._spec, self._came = app, queue, spec, came

    async def pick_up_ms(self) -> float:
        """Return how long a run waits until it asks its model."""
        number = len(self._came)
        came = self._came[number] = asyncio.get_running_loop().create_future()
        run_id = await accept(self._app, self._spec, f"What is {number} + 9?")
        began = time.monotonic()
        await self._queue.put([Waiting(run_id)])
        async with asyncio.timeout(30):
            return (await came - began) * 1e3


async def measure_store(kind: str, folder: str, count: int, per_s: float) -> bool:
    came = dict[int, asyncio.Future[float]]()
    server = await asyncio.get_running_loop().create_server(lambda: Model(came), "127.0.0.1", 0)
    spec = f"openai-compatible:http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#test-model"
    with closing(server), new_store(kind, folder) as (url, _), workers(url, spec, 2):
        async with App(url, environ={}) as app:
            queue = queue_of(app)
            await queue.standing()
            runs = Runs(app, queue, spec, came)
            first = await runs.pick_up_ms()
            # The first ones of the other worker.
            await asyncio.gather(*(runs.pick_up_ms() for _ in range(64)))
            idle, busy = list[float](), list[asyncio.Task[float]]()
            for _ in range(count):
                await asyncio.sleep(random.uniform(0.1, 0.4))
                idle.append(await runs.pick_up_ms())
            for _ in range(3 * count):
                busy.append(asyncio.create_task(runs.pick_up_ms()))
                await asyncio.sleep(1 / per_s)
            found = {"idle": idle, "busy": await asyncio.gather(*busy)}
            await queue.close()
    print(f"{kind:9} first of all  {first:7.1f} ms")
    for name, taken in found.items():
        p50, p99 = quantile(taken, 0.5), quantile(taken, 0.99)
        print(
            f"{kind:9} {name:12}  p50 {p50:7.1f} ms  p99 {p99:7.1f} ms  max {max(taken):7.1f} ms", flush=True
        )
    return all(quantile(taken, 0.99) <= P99_MS for taken in found.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=int, default=100, help="one after another; three times as many without waiting"
    )
    parser.add_argument("--per-s", type=float, default=15)
    parser.add_argument("--store", choices=KINDS, action="append")
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    missed = [
        kind
        for kind in given.store or KINDS
        if not asyncio.run(measure_store(kind, given.folder, given.runs, given.per_s))
    ]
    print(f"TARGET MISSED: {', '.join(missed)}" if missed else "target met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
