"""Servers, workers, `reasonry submit` and PostgreSQL, killed without warning at random moments while runs are driven.

PostgreSQL is frozen, too, and the network to it cut. What was in flight at a kill is counted: the questions that the
journals have no answer for, of the runs whose lease the killed process held. All processes are frozen meanwhile.
Where PostgreSQL was away, nothing is counted: the processes live, and keep the answers that come in.
"""

import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from reasonry.app.app import App
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.puzzles.equations import false_equations
from tests.forked import ForkedProcess
from tests.servers import ServerProcess
from tests.servers.postgres import PostgresServer

PROBLEM: Final = "Use 4, 9, 10 and 13 to make 24"
OPTIONS: Final = {"expand_width": 2, "max_depth": 3}
CLIENTS: Final = 8
ROOT: Final = Path(__file__).parents[2]

HELD: Final = """
SELECT run.run_id, lease.number, pg_try_advisory_xact_lock(hashtextextended(lease.holder, 0))
FROM lease JOIN run ON run.key = lease.key WHERE run.status = 'active' AND lease.holder IS NOT NULL
"""


class Part:
    """A process that is started again whenever it was killed."""

    def __init__(self, name: str, log: Path, *arguments: str, program: Sequence[str] = ("reasonry",)) -> None:
        self.name, self._log = name, log
        self._command = [sys.executable, "-m", *program, *arguments]
        self.start()

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self.process = ForkedProcess(self._command, stdout=log, stderr=log, cwd=ROOT)

    def signal(self, number: int) -> None:
        """Send it a signal, if it is there."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """End it without warning."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Have it end."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Network:
    """The way of all parts to PostgreSQL, which can be cut."""

    def __init__(self, url: str) -> None:
        from psycopg.conninfo import conninfo_to_dict

        found = conninfo_to_dict(url)
        self._path = f"{found['host']}/.s.PGSQL.{found.get('port', 5432)}"
        self._loop, self._open = asyncio.new_event_loop(), set[asyncio.StreamWriter]()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._join, "127.0.0.1", 0))
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.url = f"postgresql://{found['user']}@127.0.0.1:{self.port}/{found['dbname']}"
        self._is_cut = False
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if not self._is_cut:
                there = await asyncio.open_unix_connection(self._path)
                pair = {writer, there[1]}
                self._open |= pair
                ways = [self._carry(reader, there[1]), self._carry(there[0], writer)]
                await asyncio.gather(*ways, return_exceptions=True)
                self._open -= pair
        writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        finally:
            writer.close()

    def _set(self, is_cut: bool) -> None:
        self._is_cut = is_cut
        for writer in [*self._open] if is_cut else []:
            writer.transport.abort()

    def cut(self, seconds: float) -> None:
        """Break every connection, and let none in for a time."""
        self._loop.call_soon_threadsafe(self._set, True)
        time.sleep(seconds)
        self._loop.call_soon_threadsafe(self._set, False)


class Scene:
    """A store in PostgreSQL, and all that works on it."""

    def __init__(self, postgres: PostgresServer, model: ServerProcess, folder: Path, workers: int) -> None:
        self.postgres, self.store, self.model = postgres, postgres.url, model
        self.network = Network(postgres.url)
        self.port = free_port()
        self.log, self._folder = folder / "parts.log", folder
        self._shared = ("--store", self.network.url, "--models", model.model)
        serve = ("serve", "--concurrency", "0", "--port", str(self.port), *self._shared)
        self.parts = [Part("server", self.log, *serve)]
        self.parts += [Part("worker", self.log, "worker", *self._shared) for _ in range(workers)]
        self.results, self.over = folder / "results.jsonl", threading.Event()
        self.submit: Part | None = None
        self._counted = set[tuple[str, int]]()

    def submit_file(self, runs: int) -> None:
        """Have `reasonry submit` begin so many runs."""
        file = self._folder / "problems.jsonl"
        lines = [{"id": f"line {number}", "problem": PROBLEM, "options": OPTIONS} for number in range(runs)]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self.submit = Part(
            "submit",
            self.log,
            *("submit", str(file), "--strategy", "tree_of_thoughts", "--max-calls", "200"),
            *("--model", self.model.model, "--store", self.network.url, "--results", str(self.results)),
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
                    raise AssertionError(f"refused: {error.code} {error.read()[:500]!r}") from None
            except (OSError, ValueError):
                pass
            time.sleep(0.1)
        raise AssertionError("the server takes no run")

    def freeze(self) -> None:
        """Stop all that can be killed, as it stands."""
        for part in self.parts:
            part.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all continue."""
        for part in self.parts:
            part.signal(signal.SIGCONT)

    def count_in_flight(self) -> int:
        """Return how many calls killed processes had in flight; each is counted once."""
        import psycopg

        with psycopg.connect(self.store, options="-csearch_path=reasonry") as db:
            held = db.execute(HELD).fetchall()
        found = {(run_id, number) for run_id, number, is_free in held if is_free} - self._counted
        self._counted |= found
        return asyncio.run(open_questions(self.store, [run_id for run_id, _ in found]))

    def submitted(self) -> list[str]:
        """Return the runs of the file."""
        if not self.results.exists():
            return []
        return [json.loads(line)["run_id"] for line in self.results.read_text(encoding="utf-8").splitlines()]

    def end(self) -> None:
        """End all that works."""
        for part in (*self.parts, *([self.submit] if self.submit else [])):
            part.end()


async def open_questions(store: str, run_ids: Sequence[str]) -> int:
    """Return how many questions of runs have no answer."""
    async with App(store, environ={}) as app:
        read = [(await app.engine.read(run_id)).run for run_id in run_ids]
    return sum(
        isinstance(pending.effect, Ask)
        for run in read
        if run.snapshot.status == "active"
        for pending in run.open_effects
    )


class Chaos:
    """Kills, one after the other, and what was in flight then."""

    def __init__(self, scene: Scene, seed: int, pause_s: float) -> None:
        self._scene, self._pause_s, self._random = scene, pause_s, random.Random(seed)
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
        submit = [] if scene.submit is None else [scene.submit]
        # What finds no database when it starts ends, and whoever supervises it starts it again.
        for part in (*scene.parts, *submit):
            if part.process.poll() not in (None, 0):
                part.start()
        victims = [*scene.parts, *(part for part in submit if part.process.poll() is None)]
        victim = self._random.choice([*victims, scene.postgres, scene.postgres, scene.network])
        away_s = self._random.uniform(0, 4 * self._pause_s)
        if isinstance(victim, Network):
            self.kills["network cut"] += 1
            victim.cut(away_s)
        elif not isinstance(victim, PostgresServer):
            scene.freeze()
            victim.kill()
            self.kills[victim.name] += 1
            self.in_flight += scene.count_in_flight()
            scene.thaw()
            time.sleep(self._random.uniform(0, self._pause_s))
            victim.start()
        elif self._random.random() < 0.5:
            self.kills["database"] += 1
            victim.kill()
            time.sleep(away_s)
            victim.start()
        else:
            self.kills["database frozen"] += 1
            victim.signal(signal.SIGSTOP)
            time.sleep(away_s)
            victim.signal(signal.SIGCONT)


class Outcome(NamedTuple):
    """What became of runs.

    Attributes:
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


async def count_active(store: str) -> int:
    """Return how many runs have not ended; a page of them at most."""
    async with App(store, environ={}) as app:
        return len(await app.store.runs(limit=100, status="active"))


class Report(NamedTuple):
    """What came of runs amid the killing."""

    runs: list[str]
    outcome: Outcome
    kills: Counter[str]
    in_flight: int
    twice: int
    took_s: float

    def check(self, wanted: int) -> None:
        """Make sure that no run was lost, doubled or wrong, and that nothing but what was in flight was paid twice."""
        assert len(self.runs) == len({*self.runs}) == wanted
        assert (self.outcome.ended, self.outcome.right) == ({"done": wanted}, wanted)
        assert 0 <= self.twice <= self.in_flight, (self.twice, self.in_flight)


def drive_amid_kills(scene: Scene, runs: int, *, seed: int, pause_s: float, wait_s: float) -> Report:
    """Begin runs, a third by `submit` and the others over HTTP, and kill until all have ended."""
    chaos, accepted = Chaos(scene, seed, pause_s), [scene.begin(0)]
    begun_s = time.monotonic()
    scene.submit_file(runs // 3)
    assert scene.submit is not None
    with ThreadPoolExecutor(CLIENTS + 1) as threads:
        killing = threads.submit(chaos.keep_killing)
        try:
            accepted += threads.map(scene.begin, range(1, runs - runs // 3))
            while time.monotonic() < begun_s + wait_s and not scene.over.wait(0.5):
                # The store may be away.
                with suppress(Exception):
                    if scene.submit.process.poll() == 0 and not asyncio.run(count_active(scene.store)):
                        break
        finally:
            scene.over.set()
        killing.result()
    ids, took_s = [*accepted, *scene.submitted()], time.monotonic() - begun_s
    outcome = asyncio.run(look(scene.store, ids))
    twice = scene.model.stats()["requests"] - outcome.answers
    return Report(ids, outcome, chaos.kills, chaos.in_flight, twice, took_s)


def open_scene(
    held: ExitStack, postgres: PostgresServer, folder: Path, *, workers: int, **model: Any
) -> Scene:
    """Start a model server and all that works on the store; they end with what holds them."""
    scene = Scene(postgres, held.enter_context(ServerProcess(brain="game24", **model)), folder, workers)
    held.callback(scene.end)
    return scene
