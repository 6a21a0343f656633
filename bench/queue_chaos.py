"""The queue: everything killed without warning at random moments, while runs are begun and driven.

    uv run python bench/queue_chaos.py [--store sqlite|postgres] [--runs 500] [--seed 1] [--pause-s 2] [--folder DIR]

Two thirds of the runs are begun over `POST /api/runs`, each with a key and again until it is accepted, a third by
`reasonry submit`. A server and two workers drive them against the loopback model server. Meanwhile, after a random
pause, `kill -9` of one of them, of `submit`, or of PostgreSQL with all its processes; it is started again, PostgreSQL
some seconds later. In flight at a kill are the questions that the journals have no answer for, of the runs that the
queue says the killed process has at work (with PostgreSQL: any process); all are frozen while they are counted.
A run whose workers were killed three times at the same point is set aside, as it should be, and resumed here.
Target: every run ends with a right answer, and what the model server counts beyond the recorded answers is no more
than was in flight at the kills.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from loopback import PostgresServer, ServerProcess, postgres_server

from reasonry.app import App
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.machine import SET_ASIDE
from reasonry.puzzles.equations import false_equations

PROBLEM: Final = "Use 4, 9, 10 and 13 to make 24"
OPTIONS: Final = {"expand_width": 2, "max_depth": 3}
WORKERS: Final = 2
CLIENTS: Final = 8
WAIT_S: Final = 600


class Part:
    """A process that is started again whenever it was killed.

    Args:
        is_over: Whether it has done what it was started for when it ended by itself.
    """

    def __init__(self, name: str, log: Path, *arguments: str) -> None:
        self.name, self._log = name, log
        self._command = [sys.executable, "-m", "reasonry", *arguments]
        self.start()

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send it a signal, if it is there."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it without warning."""
        self._process.kill()
        self._process.wait()

    def ended(self) -> int | None:
        """Return its exit code; None: it has not ended."""
        return self._process.poll()

    def end(self) -> None:
        """Have it end."""
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


class Scene:
    """The store, its queue, and all that works on them."""

    def __init__(self, store: str, model: str, folder: Path, runs: int) -> None:
        self.store, self._folder = store, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        shared = ("--store", store, "--models", model)
        log = folder / "parts.log"
        serve = ("serve", "--port", str(self.port), *shared)
        self.parts = [Part("server", log, *serve)]
        self.parts += [Part("worker", log, "worker", *shared) for _ in range(WORKERS)]
        file = folder / "problems.jsonl"
        lines = [{"id": f"line {number}", "problem": PROBLEM, "options": OPTIONS} for number in range(runs)]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self.over = threading.Event()
        self.results = folder / "results.jsonl"
        self.submit = Part(
            "submit",
            log,
            *("submit", str(file), "--strategy", "tree_of_thoughts", "--max-calls", "200"),
            *("--model", model, "--store", store, "--results", str(self.results)),
        )

    def begin(self, number: int) -> str:
        """Begin a run over HTTP, however often that must be tried; return its id."""
        body = {
            "problem": PROBLEM,
            "strategy": "tree_of_thoughts",
            "options": OPTIONS,
            "budget": {"calls": 200},
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/runs",
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json", "idempotency-key": f"chaos-{number}"},
        )
        while not self.over.is_set():
            try:
                with urllib.request.urlopen(request, timeout=10) as response:
                    return json.load(response)["run_id"]
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503):
                    raise SystemExit(f"refused: {error.code} {error.read()[:500]!r}") from None
            except (OSError, ValueError):
                pass
            time.sleep(0.1)
        raise SystemExit("the server takes no run")

    def resume(self, run_id: str) -> bool:
        """Have a run that was set aside driven again; return whether that came about."""
        url = f"http://127.0.0.1:{self.port}/api/runs/{run_id}/resume"
        request = urllib.request.Request(url, b"{}", {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status < 300

    def at_work(self, pids: Sequence[int]) -> list[str]:
        """Return the runs that processes have at work, as the queue knows.

        Raises:
            sqlite3.OperationalError: Somebody is just writing.
        """
        statements = (
            "SELECT id FROM workers",
            "SELECT workflow_uuid, executor_id FROM workflow_status WHERE status = 'PENDING'",
        )
        if self.store.startswith("postgresql"):
            import psycopg

            with psycopg.connect(self.store, options="-csearch_path=reasonry_queue") as db:
                try:
                    workers, entries = [db.execute(statement).fetchall() for statement in statements]
                except psycopg.errors.UndefinedTable:
                    return []
        else:
            db = sqlite3.connect(f"{self.store}.queue", timeout=0.2)
            try:
                workers, entries = [db.execute(statement).fetchall() for statement in statements]
            finally:
                db.close()
        named = {worker for (worker,) in workers if int(worker.rpartition(".")[2]) in pids}
        return [run_id for run_id, executor in entries if executor in named]

    def freeze(self) -> None:
        """Stop all that can be killed, as it stands."""
        for part in self.parts:
            part.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all go on."""
        for part in self.parts:
            part.signal(signal.SIGCONT)

    async def open_questions(self, run_ids: Sequence[str]) -> int:
        """Return how many questions of runs have no answer."""
        async with App(self.store, environ={}) as app:
            read = [(await app.engine.read(run_id)).run for run_id in run_ids]
        return sum(
            isinstance(pending.effect, Ask)
            for run in read
            if run.snapshot.status == "active"
            for pending in run.open_effects
        )

    def count_in_flight(self, pids: Sequence[int]) -> int:
        """Return how many calls processes have in flight, all being frozen."""
        while True:
            try:
                found = self.at_work(pids)
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return 0
                # Whoever writes to the file was frozen in the middle of it.
                self.thaw()
                time.sleep(0.005)
                self.freeze()
            else:
                return asyncio.run(self.open_questions(found))

    def submitted(self) -> list[str]:
        """Return the runs of the file."""
        if not self.results.exists():
            return []
        return [json.loads(line)["run_id"] for line in self.results.read_text(encoding="utf-8").splitlines()]


class Chaos:
    """Kills, one after the other, and what was in flight then."""

    def __init__(self, scene: Scene, postgres: PostgresServer | None, seed: int, pause_s: float) -> None:
        self._scene, self._postgres, self._pause_s = scene, postgres, pause_s
        self._random = random.Random(seed)
        self.kills, self.in_flight = Counter[str](), 0

    def keep_killing(self) -> None:
        """Kill until all is over, and start again what has ended by itself."""
        scene = self._scene
        try:
            while not scene.over.wait(self._random.uniform(0.5, 1.5) * self._pause_s):
                self._kill_one(scene)
        finally:
            scene.over.set()
            scene.thaw()

    def _kill_one(self, scene: Scene) -> None:
        # What finds no database when it starts ends, and whoever supervises it starts it again.
        for part in (*scene.parts, scene.submit):
            if part.ended() not in (None, 0):
                part.start()
        victims = [*scene.parts, *([scene.submit] if scene.submit.ended() is None else [])]
        victim = self._random.choice([*victims, *([self._postgres] if self._postgres else [])])
        if isinstance(victim, PostgresServer):
            self._kill_postgres(victim)
        elif victim is scene.submit:
            self.kills["submit"] += 1
            victim.kill()
            victim.start()
        else:
            self._kill(victim)

    def _kill(self, victim: Part) -> None:
        scene, pid = self._scene, victim.pid
        scene.freeze()
        victim.kill()
        self.kills[victim.name] += 1
        self.in_flight += scene.count_in_flight([pid])
        scene.thaw()
        time.sleep(self._random.uniform(0, self._pause_s))
        victim.start()

    def _kill_postgres(self, victim: PostgresServer) -> None:
        scene = self._scene
        scene.freeze()
        self.in_flight += scene.count_in_flight([part.pid for part in scene.parts])
        self.kills["postgres"] += 1
        victim.kill()
        scene.thaw()
        time.sleep(self._random.uniform(0, 4 * self._pause_s))
        victim.start()


class Outcome(NamedTuple):
    """What became of runs.

    Args:
        answers: Those of the model that are recorded.
    """

    ended: Counter[str]
    right: int
    answers: int


async def look(store: str, run_ids: Sequence[str]) -> Outcome:
    """Return what became of runs."""
    ended, right, answers = Counter[str](), 0, 0
    async with App(store, environ={}) as app:
        for run_id in run_ids:
            run, row = (await app.engine.read(run_id)).run, await app.store.run(run_id)
            ended[row.status if row.status == "done" else f"{row.status} ({row.reason})"] += 1
            answer = row.answer or ""
            right += row.status == "done" and "= 24" in answer and not false_equations(answer)
            answers += sum(isinstance(event.event, Answered) for event in run.events)
    return Outcome(ended, right, answers)


async def count_active(store: str) -> tuple[int, list[str]]:
    """Return how many runs have not ended, and which were set aside; a page of them at most."""
    async with App(store, environ={}) as app:
        active, failed = [await app.store.runs(limit=100, status=status) for status in ("active", "failed")]
    return len(active), [row.run_id for row in failed if row.reason == SET_ASIDE]


def bring_to_end(scene: Scene, chaos: Chaos, runs: int) -> tuple[list[str], int]:
    """Begin runs and wait, amid all the killing, until all have ended; return them and how often one was set aside."""
    accepted, set_aside, until = list[str](), 0, time.monotonic() + WAIT_S
    with ThreadPoolExecutor(CLIENTS + 1) as threads:
        killing = threads.submit(chaos.keep_killing)
        try:
            accepted += threads.map(scene.begin, range(runs))
            while time.monotonic() < until and not scene.over.wait(0.5):
                # The store may be away.
                with suppress(Exception):
                    active, aside = asyncio.run(count_active(scene.store))
                    set_aside += sum(scene.resume(run_id) for run_id in aside)
                    if scene.submit.ended() == 0 and not active and not aside:
                        break
        finally:
            scene.over.set()
        killing.result()
    return [*accepted, *scene.submitted()], set_aside


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause-s", type=float, default=3.0, help="between two kills, on average")
    parser.add_argument("--latency-ms", type=int, default=200)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(dir=given.folder)))
        model = held.enter_context(ServerProcess(brain="game24", latency_ms=given.latency_ms))
        postgres = held.enter_context(postgres_server()) if given.store == "postgres" else None
        store = postgres.url if postgres else str(folder / "runs.db")
        scene = Scene(store, model.model, folder, given.runs // 3)
        for part in (*scene.parts, scene.submit):
            held.callback(part.end)
        chaos, begun = Chaos(scene, postgres, given.seed, given.pause_s), time.monotonic()
        runs, set_aside = bring_to_end(scene, chaos, given.runs - given.runs // 3)
        took_s = time.monotonic() - begun
        ended, right, answers = asyncio.run(look(store, runs))
        twice = model.stats()["requests"] - answers
        tracebacks = (folder / "parts.log").read_text(encoding="utf-8", errors="replace").count("Traceback (")
    killed = ", ".join(f"{name} {count}×" for name, count in sorted(chaos.kills.items()))
    print(f"{given.store}, seed {given.seed}: {len(runs)} runs over in {took_s:.0f} s; killed: {killed}")
    print(", ".join(f"{count} {status}" for status, count in ended.items()) + f"; {right} right answers")
    print(f"{set_aside} were set aside and resumed; {tracebacks} tracebacks in what all wrote")
    print(f"in flight at the kills {chaos.in_flight}, paid twice {twice}, recorded answers {answers:,}")
    good = len(runs) == len({*runs}) == given.runs == right and 0 <= twice <= chaos.in_flight
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
