"""The pure machine: microseconds a step on a 1,000-step loop, beside a bare asyncio loop in the same run.

    uv run python bench/machine.py

Target: a step takes at most four times as long as one of the bare loop.
"""

import asyncio
import statistics
import sys
import time

from msgspec import Struct

from reasonry.blocks.reply import read_reply
from reasonry.core.bodies import Body, Conclusion, go, request, stay
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.machine import advance, begin
from reasonry.core.strategy import Stage, Strategy

STEPS, ROUNDS = 1_000, 15
MOST = 4.0


class Count(Struct, frozen=True):
    done: int = 0


def think(state: Count) -> Body:
    yield request(state, Ask("next?"))
    now = Count(state.done + 1)
    return go(now, "end") if now.done == STEPS else stay(now)


LOOP: Strategy[Count, Struct] = Strategy(
    name="loop",
    title="Loop",
    source="bench",
    summary="Asks the same question again and again.",
    state=Count,
    begin=lambda problem, options: Count(),
    conclude=lambda state: Conclusion(str(state.done)),
    stages=(
        Stage("think", to=("end",), body=think),
        Stage("end"),
    ),
)


def machine_us() -> float:
    start = time.perf_counter()
    step = begin(LOOP, "count")
    while step.snapshot.status == "active":
        step = advance(LOOP, step.snapshot, step.effects[0].id, Answered("yes"), read=read_reply)
    assert step.snapshot.conclusion is not None
    assert step.snapshot.conclusion.answer == str(STEPS)
    return (time.perf_counter() - start) / STEPS * 1e6


def asyncio_us() -> float:
    async def loop() -> None:
        for _ in range(STEPS):
            await asyncio.sleep(0)

    start = time.perf_counter()
    asyncio.run(loop())
    return (time.perf_counter() - start) / STEPS * 1e6


def main() -> int:
    ours, bare = list[float](), list[float]()
    for number in range(ROUNDS):
        ours.append(machine_us())
        bare.append(asyncio_us())
        print(f"\r{number + 1}/{ROUNDS}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    machine, floor = statistics.median(ours), statistics.median(bare)
    print(f"machine       {machine:6.1f} µs a step (median of {ROUNDS}; best {min(ours):.1f})")
    print(f"bare asyncio  {floor:6.1f} µs a step; ratio {machine / floor:.1f}")
    good = machine <= MOST * floor
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
