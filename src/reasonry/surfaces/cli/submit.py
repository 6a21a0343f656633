"""`reasonry submit`: queues problems as jobs in a store, and collects the results."""

import asyncio
import time
from asyncio import FIRST_COMPLETED, Future
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Group, Parameter
from cyclopts.validators import Number
from msgspec import Struct
from msgspec.structs import replace

from ...app.app import App
from ...app.requests import RunRequest
from ...engine.journal import Begun
from ...engine.result import Result
from ...errors import ConflictError, OverloadedError, StoreError, UsageError
from ...records import ANSWERED, MAX_PRIORITY, JobOptions, RequestKey, RunRow, now_ms
from ...stores.row_store import RowStore
from ...strategies import DEFAULT_STRATEGY
from ...supervisor import CONCURRENCY, Supervisor
from ...system.processes import ProblemId, read_problems, read_regular_file
from ...text import escape_json
from .. import present
from .output import check_writable, print_note
from .parameters import Options, Prompts, Strategy, WholeNumber, read_instant
from .settings import RunSettings, T

LineStrategy = Annotated[Strategy, Parameter(help="The strategy of lines that name no strategy.")]
MAX_FILE_BYTES: Final = 1 << 28
LOOK_EVERY_S: Final = 0.5
DRAIN_S: Final = 3.0
TOGETHER: Final = 100
"""How many runs are read in one pass."""
PATIENCE_S: Final = 60
"""Seconds to wait for a store that restarts. A restart should not end a batch that has run for hours."""


class ProblemLine(Struct, frozen=True, forbid_unknown_fields=True):
    """One problem, as a line of a file. The command's options apply if the line does not override them."""

    problem: str
    id: ProblemId | None = None
    strategy: str | None = None
    options: dict[str, Any] = {}


@Parameter(name="*", group=Group("Queue, with a store in PostgreSQL", sort_key=7))
@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The options for how a job waits for a worker.

    Args:
        priority: Priority from 0 (starts first) to 9 (starts last).
        at: Earliest start, such as 2026-12-24T18:00, in local time or with an offset.
        queue: Name of the queue; workers whose --queues include this name drive the runs.
    """

    priority: Annotated[WholeNumber | None, Parameter(validator=Number(gte=0, lte=MAX_PRIORITY))] = None
    at: str | None = None
    queue: str | None = None

    def read(self, store: RowStore) -> JobOptions:
        """Return the options for a job. Raise `UsageError` if an option is set and the store cannot have workers."""
        asked = [name for name, value in vars(self).items() if value is not None]
        if not asked:
            return JobOptions()
        if not store.has_workers:
            message = "needs a PostgreSQL store; here jobs begin in their order"
            raise UsageError(f"--{asked[0]} {message}", option=asked[0])
        from ...queues import read_queues

        name, *others = read_queues(self.queue or JobOptions().queue)
        if others:
            raise UsageError("--queue takes one name", option="queue")
        at_ms = read_instant("at", self.at, "a time such as 2026-12-24T18:00")
        priority = JobOptions().priority if self.priority is None else self.priority
        return JobOptions(name, priority, at_ms and max(now_ms(), at_ms))


def submit(
    file: Path,
    /,
    *,
    strategy: LineStrategy = DEFAULT_STRATEGY,
    option: Options = (),
    prompt: Prompts = (),
    results: Path | None = None,
    waiting: Waiting = Waiting(),
    settings: RunSettings = RunSettings(),
) -> int:
    """Let the server or the workers of the store solve the problems in a file, and wait for the answers.

    If no server runs, this command drives the runs itself. Only a store in PostgreSQL needs a server or a worker. If
    you submit the same file again within a day, the command starts no new runs. It waits for the active runs, and then
    shows all results.

    Args:
        file: A file in JSON Lines. Each line is {"problem": …}, with optional "id", "strategy" and "options".
        results: Write each result as a JSON line to this file.
    """
    data = read_regular_file(file, MAX_FILE_BYTES, label="file of problems", option="file")
    if results is not None:
        check_writable(results)

    async def work(app: App) -> Counter[str]:
        terms, job = settings.request(None, strategy, option, prompts=prompt), waiting.read(app.store)
        terms = replace(terms, participants=await app.equip(terms.participants, terms.budget))
        problems = read_problems(data, ProblemLine, partial(_read_line, app, terms), name=str(file))
        lines = {
            await _accept(app, number, order, key, job): line
            for number, (line, order, key) in problems.items()
        }
        rows = [await _persist(partial(app.store.run, run_id)) for run_id in lines]
        over = sum(row.status != "active" for row in rows)
        runs = present.count_of(len(rows), "run")
        print_note(f"{runs}, {over} of them ended before; after Ctrl-C, the same command continues")
        if over < len(rows):
            await _persist(lambda: note_who_drives(app, here=True))
        counts, shown = Counter[str](), time.monotonic()
        async with AsyncExitStack() as opened:
            out = (
                opened.enter_context(results.open("w", 1, encoding="utf-8", newline="\n"))
                if results
                else None
            )
            async for row in await opened.enter_async_context(aclosing(drive_to_end(app, lines))):
                counts[row.outcome or row.status] += 1
                if out is not None:
                    result = await _persist(partial(app.engine.result, row.run_id))
                    document = {"id": lines[row.run_id].id, **result.document()}
                    out.write(escape_json(msgspec.json.encode(document).decode()) + "\n")
                if time.monotonic() - shown > 5:
                    shown = time.monotonic()
                    print_note(f"{counts.total()} of {len(lines)} runs have ended")
        return counts

    counts = settings.do(work)
    document = {"runs": counts.total(), **counts, "results": str(results) if results else None}
    line = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    settings.common.show(document, lambda: print_note(line))
    return 0 if set(counts) <= set(ANSWERED) else 1


def _read_line(
    app: App, terms: RunRequest, number: int, line: ProblemLine
) -> tuple[ProblemLine, Begun, RequestKey]:
    request = replace(
        terms,
        problem=line.problem,
        strategy=line.strategy or terms.strategy,
        options={**terms.options, **line.options},
    )
    order, _ = app.order(request)
    names = order.strategy, order.participants.model
    asked = line, names, request.options, order.prompts, request.budget
    document = msgspec.json.encode(asked)
    name = f"submit:{document if line.id is None else line.id}"
    return line, order, RequestKey.of(name, document, now_ms())


async def _accept(app: App, number: int, order: Begun, key: RequestKey, job: JobOptions) -> str:
    try:
        return (await _persist(lambda: app.engine.accept(order, job=job, key=key))).run_id
    except ConflictError as error:
        message = f"line {number}: its id recently named another problem; give it another id"
        raise ConflictError(message, code=error.code, line=number) from None


async def _persist(action: Callable[[], Awaitable[T]]) -> T:
    """Perform an idempotent action. While the store does not answer, retry the action for up to a minute."""
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


async def note_who_drives(app: App, *, here: bool) -> None:
    """Warn if no server or worker drives the jobs of the store."""
    if (await app.store.queue_status()).workers:
        return
    if app.store.has_workers:
        print_note("no worker runs: `reasonry worker` or `reasonry serve` on this store drives the queue")
    else:
        driver = "this command drives the runs itself" if here else "`reasonry serve` drives the queue"
        print_note(f"no server runs on this store: {driver}")


async def drive_to_end(app: App, run_ids: Iterable[str]) -> AsyncGenerator[RunRow]:
    """Yield runs as they end. If the store is not PostgreSQL and has no server, drive the runs in this process."""
    waiting, driven, store = dict.fromkeys(run_ids), set[Future[Result]](), app.store
    supervisor = Supervisor(app, max_runs=CONCURRENCY)
    try:
        while waiting:
            is_ours = not store.has_workers and not (await _persist(store.queue_status)).workers
            for run_id in [*waiting][:TOGETHER]:
                del waiting[run_id]
                row = await _persist(partial(store.run, run_id))
                if row.status != "active":
                    yield row
                    continue
                waiting[run_id] = None
                if is_ours and not supervisor.is_full and not supervisor.is_driven(run_id):
                    # The supervisor refuses a run that another process drives.
                    with suppress(ConflictError, OverloadedError):
                        if drive := await _persist(partial(supervisor.drive_job, run_id)):
                            driven.add(drive)
            if driven:
                _, driven = await asyncio.wait(driven, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            elif waiting:
                await asyncio.sleep(LOOK_EVERY_S)
    finally:
        await supervisor.drain(DRAIN_S)
