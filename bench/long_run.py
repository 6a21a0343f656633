"""Long runs: seconds and megabytes that it takes to show a run of 100,000 events.

    uv run python bench/long_run.py [EVENTS]

About three minutes. Self-consistency over scratchpads of 98 steps is written through the engine with made-up answers:
once to its end, once up to the middle of its last samples. Then each command is run as a process of its own; what is
shown is its processor time, which does not depend on what else the machine does, and its peak memory.
Target: each within 3 s and 300 MB.
"""

import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from reasonry.app.app import App
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.machine import Pending
from reasonry.core.options import read_options
from reasonry.engine.journal import Ended, Entry, Settled
from reasonry.engine.record import record_of_run
from reasonry.engine.result import row_after
from reasonry.strategies import STRATEGIES
from tests.engine.running import accept, order_of

EVENTS, STEPS, BATCH = 100_000, 98, 1_000


def reply(pending: Pending, number: int) -> str:
    assert isinstance(pending.effect, Ask)
    if pending.stage == "scratchpad_initialization":
        return json.dumps({"stateVariables": {"n": 0}, "rule": "add 1"})
    if pending.stage == "result_extraction":
        return json.dumps({"answer": str(number % 2)})
    n = pending.effect.prompt.count(" + 1 = ")
    return json.dumps(
        {"calculation": f"{n} + 1 = {n + 1}", "stateVariables": {"n": n + 1}, "finished": False}
    )


async def write_run(store: str, events: int, *, ended: bool) -> tuple[str, str]:
    """Return the ids of a run and of its session."""
    strategy, samples = STRATEGIES["self_consistency"], events // (STEPS + 2)
    values: dict[str, Any] = {"over": "scratchpad", "over_options": {"max_steps": STEPS}, "stop": "exact"}
    # Of two answers as frequent as each other neither leads before the last samples are drawn.
    options = read_options(strategy, {**values, "samples": min(samples if ended else 2 * samples, 1_000)})
    async with App(store) as app:
        run_id = await accept(app.engine, order_of(strategy, "Add 1 again.", options))
        async with app.engine.open(run_id) as opened:
            run, batch, count = opened.run, list[Entry](), 0
            while run.snapshot.status == "active" and (ended or count < events * 0.98):
                pending = run.open_effects[0]
                text = reply(pending, len(run.snapshot.state.drafts))
                run.take(Settled(pending.id, Answered(text, at_ms=count)))
                batch.append(run.events[-1])
                count += 1
                if len(batch) == BATCH:
                    await app.store.append(run_id, lines := opened.chain.lines(batch))
                    opened.chain.extend(lines)
                    batch.clear()
            row = row_after(opened.row, run, time.time_ns() // 1_000_000)
            if run.snapshot.status != "active":
                batch.append(Ended(record_of_run(row, run).pack()))
            await app.store.append(run_id, opened.chain.lines(batch), row)
            return run_id, opened.row.session_id


def write_aside(*arguments: Any) -> tuple[str, str]:
    """Write a run in a process of its own: a child's peak memory begins with what its parent has."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_write, *arguments).result()


def _write(store: str, events: int, ended: bool) -> tuple[str, str]:
    return asyncio.run(write_run(store, events, ended=ended))


def measure(*arguments: str) -> tuple[float, float]:
    """Return the seconds of processor time and the peak megabytes of a command."""
    with subprocess.Popen(
        [sys.executable, "-m", "reasonry", *arguments], stdout=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def main() -> int:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store.db")
        for ended in (True, False):
            began = time.monotonic()
            run_id, session_id = write_aside(store, events, ended)
            print(
                f"{'ended' if ended else 'active'}: written in {time.monotonic() - began:.0f} s", flush=True
            )
            shows = [("runs", "show", run_id), ("sessions", "show", session_id)]
            for command in [("runs", "list"), *shows, *((*show, "--json") for show in shows)]:
                seconds, megabytes = measure(*command, "--store", store)
                missed += seconds > 3 or megabytes > 300
                name = " ".join(part for part in command if part not in (run_id, session_id))
                print(f"  {name:<22} {seconds:6.2f} s {megabytes:6.0f} MB", flush=True)
    print(f"TARGET MISSED by {missed}" if missed else "target met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
