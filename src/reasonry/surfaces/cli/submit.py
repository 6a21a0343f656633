"""`reasonry submit` and `reasonry runs start`: problems as jobs of a store, and what came of each."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import Struct

from ...app.use_cases import RunRequest
from ...app.wiring import App
from ...core.text import escaped_json
from ...engine.engine import Order
from ...engine.result import Result
from ...errors import ConflictError, OverloadedError, StoreError, UsageError
from ...records import MAX_PRIORITY, JobOptions, RequestKey, RunRow, Store
from ...regular_files import read_regular_file
from ...strategies import DEFAULT_STRATEGY
from ...supervisor import CONCURRENCY, Supervisor
from .arguments import Options, Strategy, Text, WholeNumber, read_instant
from .output import check_writable, print_note, print_notes
from .settings import RunSettings, Shown
from .solve import read_problem, show_result

LineStrategy = Annotated[Strategy, Parameter(help="The way of thinking, where a line names none.")]
Priority = Annotated[
    WholeNumber | None,
    Parameter(
        help="From 0, the first to be begun, to 9; with PostgreSQL, as are --at and --queue.",
        validator=Number(gte=0, lte=MAX_PRIORITY),
    ),
]
Begins = Annotated[
    str | None,
    Parameter(help="Not before this time, as 2026-12-24T18:00 (of your clock) or with an offset."),
]
QueueName = Annotated[
    str | None,
    Parameter(help="The queue to wait in: workers that were started with --queues take runs from there."),
]
MAX_FILE_BYTES: Final = 1 << 28
LOOK_EVERY_S: Final = 0.5
DRAIN_S: Final = 3.0
TOGETHER: Final = 100
"""Runs that are looked at at a time."""
PATIENCE_S: Final = 60
"""A batch that runs for hours outlives a store that is started again."""
SHOWN_FAULTS: Final = 10

T = TypeVar("T")


class ProblemLine(Struct, frozen=True, forbid_unknown_fields=True):
    """One problem of a file; what it does not name is as the command says."""

    problem: str
    id: str | int | None = None
    strategy: str | None = None
    options: dict[str, Any] = {}


def submit(
    file: Path,
    /,
    *,
    strategy: LineStrategy = DEFAULT_STRATEGY,
    option: Options = (),
    priority: Priority = None,
    at: Begins = None,
    queue: QueueName = None,
    results: Path | None = None,
    settings: RunSettings = RunSettings(),
) -> int:
    """Have the problems of a file solved by the server or the workers of the store, and wait for the answers.

    Where no server runs and no workers share the store, this command solves them itself.

    The same file again, within a day, starts no run again: it waits for what is not done, and shows what came of it.

    Parameters
    ----------
    file
        JSON Lines: each {"problem": …}, and if you like "id", "strategy", "options".
    results
        Write each result as a JSON line to this file.
    """
    problems = _read_problems(file)
    if results is not None:
        check_writable(results)

    async def work(app: App) -> dict[str, Any]:
        job = read_job(app.store, priority, at, queue)
        terms = settings.request(None, strategy, option)
        run_ids = await accept_lines(app, problems, terms, job)
        rows = [await _persist(partial(app.store.run, run_id)) for run_id in run_ids]
        over = sum(row.status != "active" for row in rows)
        print_notes(
            [f"{len(rows)} runs, {over} of them over before; after Ctrl-C, the same command continues"]
        )
        if over < len(rows):
            await _persist(lambda: note_who_drives(app, here=True))
        lines = {run_id: problem.line for run_id, problem in zip(run_ids, problems, strict=True)}
        return await _wait(app, lines, results)

    counts = settings.do(work)
    document = {"runs": len(problems), **counts, "results": str(results) if results else None}
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    settings.common.show(document, lambda: print_note(said))
    return 0 if set(counts) <= {"solved", "answered"} else 1


def start_(
    problem: Annotated[Text, Parameter(help="What is to be solved; `-` reads it from standard input.")],
    /,
    *,
    detach: bool = False,
    strategy: Strategy = DEFAULT_STRATEGY,
    option: Options = (),
    priority: Priority = None,
    at: Begins = None,
    queue: QueueName = None,
    shown: Shown = Shown(),
    settings: RunSettings = RunSettings(),
) -> int:
    """Begin a run that the server or the workers of the store drive, whatever becomes of this command.

    Parameters
    ----------
    detach
        Do not wait for its end.
    """
    text = read_problem(problem) or ""

    async def work(app: App) -> str | Result:
        order, _ = await app.receive(settings.request(text, strategy, option))
        job = read_job(app.store, priority, at, queue)
        if detach and not app.store.durable:
            raise UsageError("a store in memory ends with this command; give --store a path", option="store")
        run_id, _ = await app.engine.accept_once(order, job=job)
        await note_who_drives(app, here=not detach)
        if detach:
            return run_id
        jobs = OwnJobs(app)
        try:
            while (row := await app.store.run(run_id)).status == "active" and not row.paused:
                await jobs.drive([run_id])
        finally:
            await jobs.close()
        return await app.engine.result(run_id)

    begun = settings.do(work)
    if isinstance(begun, Result):
        return show_result(begun, settings.common, shown)
    return settings.common.show({"run_id": begun}, begun)


class Problem(NamedTuple):
    """A line of the file, and which."""

    number: int
    line: ProblemLine


async def accept_lines(
    app: App, problems: Sequence[Problem], terms: RunRequest, job: JobOptions
) -> list[str]:
    """Accept each line of a file as a run, once, and return the ids of the runs in their order.

    Args:
        terms: What all of them have in common.

    Raises:
        UsageError: Some cannot be run; they are named, and none was accepted.
        ConflictError: An id stood for another problem not long ago; those before it were accepted.
    """
    terms = replace(terms, participants=await app.equip(terms.participants, terms.budget))
    wanted, faults = list[tuple[int, Order, RequestKey]](), dict[int, str]()
    for number, line in problems:
        try:
            wanted.append((number, *_read_line(app, line, terms)))
        except UsageError as error:
            faults[number] = str(error)
    if faults:
        raise _faults_error(faults)
    return [await _accept(app, number, order, job, key) for number, order, key in wanted]


def _read_line(app: App, line: ProblemLine, terms: RunRequest) -> tuple[Order, RequestKey]:
    request = replace(
        terms,
        problem=line.problem,
        strategy=line.strategy or terms.strategy,
        options={**terms.options, **line.options},
    )
    order, _ = app.order(request)
    asked = [line, order.strategy.name, request.options, request.budget, order.participants.model]
    digest = hashlib.sha256(msgspec.json.encode(asked)).digest()
    name = digest.hex() if line.id is None else f"{line.id}"
    return order, RequestKey(f"submit:{name}"[:200], digest, time.time_ns() // 1_000_000)


async def _accept(app: App, number: int, order: Order, job: JobOptions, key: RequestKey) -> str:
    try:
        return (await _persist(lambda: app.engine.accept_once(order, job=job, key=key))).run_id
    except ConflictError as error:
        raise ConflictError(
            f"line {number}: its id stood for another problem not long ago; give it another one. "
            "The lines before it have been accepted",
            code=error.code,
            line=number,
        ) from None


async def _persist(action: Callable[[], Awaitable[T]]) -> T:
    """Do what may be done twice; as long as the store does not answer, up to a minute, try again."""
    end = None
    while True:
        try:
            return await action()
        except StoreError as error:
            if not error.retryable or (end is not None and time.monotonic() > end):
                raise
            if end is None:
                end = time.monotonic() + PATIENCE_S
                print_note(f"{error}; trying again for {PATIENCE_S} s")
        await asyncio.sleep(1)


def _read_problems(file: Path) -> list[Problem]:
    data = read_regular_file(file, MAX_FILE_BYTES, label="file of problems", option="file")
    problems, faults, numbers = list[Problem](), dict[int, str](), dict[str, int]()
    for number, text in enumerate(data.splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = msgspec.json.decode(text, type=ProblemLine)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            faults[number] = f"it is broken: {error}"
            continue
        first = number if line.id is None else numbers.setdefault(f"{line.id}", number)
        if first != number:
            faults[number] = f"its id is that of line {first}"
        problems.append(Problem(number, line))
    if faults:
        raise _faults_error(faults)
    if not problems:
        raise UsageError(f'{file} holds no problem; a line is {{"problem": …}}', option="file")
    return problems


def _faults_error(faults: dict[int, str]) -> UsageError:
    shown = [f"line {number}: {why}" for number, why in islice(faults.items(), SHOWN_FAULTS)]
    if len(faults) > SHOWN_FAULTS:
        shown.append(f"and {len(faults) - SHOWN_FAULTS} more")
    return UsageError(f"nothing was begun. {'; '.join(shown)}", lines=[*islice(faults, SHOWN_FAULTS)])


async def _wait(app: App, lines: dict[str, ProblemLine], results: Path | None) -> dict[str, int]:
    """Wait until all have ended; say how many have, and write down each as it does."""
    waiting, counts, shown, jobs = dict(lines), dict[str, int](), time.monotonic(), OwnJobs(app)
    try:
        with results.open("w", encoding="utf-8") if results else nullcontext() as out:
            while waiting:
                for run_id in [*waiting][:TOGETHER]:
                    row = await _persist(partial(app.store.run, run_id))
                    line = waiting.pop(run_id)
                    if row.status == "active":
                        waiting[run_id] = line
                        continue
                    outcome = row.outcome or row.status
                    counts[outcome] = counts.get(outcome, 0) + 1
                    if out is not None:
                        out.write(escaped_json(_result_line(row, line)) + "\n")
                if out is not None:
                    out.flush()
                if waiting:
                    await _persist(lambda: jobs.drive([*waiting]))
                    if time.monotonic() - shown > 5:
                        shown = time.monotonic()
                        print_note(f"{len(lines) - len(waiting)} of {len(lines)} runs are over")
    finally:
        await jobs.close()
    return counts


def _result_line(row: RunRow, line: ProblemLine) -> str:
    document = {
        "id": line.id,
        "run_id": row.run_id,
        "outcome": row.outcome,
        "status": row.status,
        "answer": row.answer if row.outcome in ("solved", "answered") else None,
        "reason": row.reason,
        "usage": {"calls": row.calls, "tokens": row.tokens, "usd": row.usd},
    }
    return msgspec.json.encode(document).decode()


# -- how jobs wait, and who drives them where no workers share the store


def read_job(store: Store, priority: int | None, at: str | None, queue: str | None) -> JobOptions:
    """Return what the options of a command say of how jobs wait.

    Raises:
        UsageError: One of them is not valid, or there are no workers that it could be for.
    """
    named = {"priority": priority, "at": at, "queue": queue}
    asked = [name for name, value in named.items() if value is not None]
    if not asked:
        return JobOptions()
    if not store.has_workers:
        raise UsageError(
            f"--{asked[0]} is for a store in PostgreSQL, which workers share; here jobs begin in their order",
            option=asked[0],
        )
    from ...queues import read_queues

    name, *others = read_queues(queue or JobOptions().queue)
    if others:
        raise UsageError("--queue takes one name", option="queue")
    return JobOptions(name, JobOptions().priority if priority is None else priority, _instant_ms(at))


def _instant_ms(at: str | None) -> int | None:
    try:
        return None if at is None else max(time.time_ns() // 1_000_000, read_instant(at))
    except ValueError:
        message = f"--at takes a time such as 2026-12-24T18:00, got {at:.60}"
        raise UsageError(message, option="at") from None


async def note_who_drives(app: App, *, here: bool) -> None:
    """Say so if nobody drives the jobs of the store but, perhaps, this command."""
    if (await app.store.job_standing()).workers:
        return
    if app.store.has_workers:
        print_note(
            "no worker is there: `reasonry worker` or `reasonry serve` on this store drives what waits"
        )
    elif here:
        print_note("no server runs on this store: this command drives the runs itself")
    else:
        print_note("no server runs on this store: `reasonry serve` drives what waits")


class OwnJobs:
    """Drives jobs of a command, as long as no server does and no workers share the store."""

    def __init__(self, app: App) -> None:
        self._app, self._supervisor = app, Supervisor(app, max_runs=CONCURRENCY)
        self._at_work = dict[str, asyncio.Future[Result]]()

    async def drive(self, run_ids: Collection[str]) -> None:
        """Begin to drive what nobody drives, as far as there are places; return when something may have ended.

        Raises:
            ReasonryError: One of them cannot be driven.
        """
        store, ended = self._app.store, set[asyncio.Future[Result]]()
        if not store.has_workers and not (await store.job_standing()).workers:
            for run_id in run_ids:
                if len(self._at_work) >= CONCURRENCY:
                    break
                if run_id not in self._at_work:
                    await self._take_up(run_id)
        if self._at_work:
            ended, _ = await asyncio.wait(
                self._at_work.values(), timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
            )
        else:
            await asyncio.sleep(LOOK_EVERY_S)
        self._at_work = {run_id: drive for run_id, drive in self._at_work.items() if drive not in ended}

    async def _take_up(self, run_id: str) -> None:
        try:
            drive = await self._supervisor.take_up(run_id)
        except (ConflictError, OverloadedError):
            # Another drives it.
            return
        if drive is not None:
            self._at_work[run_id] = drive

    async def close(self) -> None:
        """Let go of what is at work."""
        await self._supervisor.drain(DRAIN_S)
