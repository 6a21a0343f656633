"""`reasonry submit`: a file of problems as jobs of a store, and what came of each."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from ...app.participants import Participants
from ...app.use_cases import RunRequest
from ...app.wiring import App
from ...core.text import escaped_json
from ...engine.engine import Order
from ...errors import ConflictError, StoreError, UsageError
from ...records import JobOptions, RequestKey, RunRow
from ...regular_files import read_regular_file
from ...strategies import DEFAULT_STRATEGY
from .candidates import StrategyName
from .output import check_writable, print_document, print_note, print_notes
from .own_jobs import OwnJobs, note_who_drives, read_job
from .settings import Common, Limits, Workers, pairs, run_async, with_app
from .whole_numbers import WholeNumber

MAX_FILE_BYTES: Final = 1 << 28
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
    strategy: StrategyName = DEFAULT_STRATEGY,
    option: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    priority: WholeNumber | None = None,
    at: str | None = None,
    queue: str | None = None,
    results: Path | None = None,
    workers: Workers = Workers(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Have the problems of a file solved by the server or the workers of the store, and wait for the answers.

    Where no server runs and no workers share the store, this command solves them itself.

    The same file again, within a day, begins nothing anew: it waits for what is not done, and shows what came of it.

    Parameters
    ----------
    file
        JSON Lines: each {"problem": …}, and if you like "id", "strategy", "options".
    strategy
        The way of thinking, where a line names none.
    option
        An option of the strategy, as NAME=VALUE; may be repeated.
    priority
        From 0, the first to be begun, to 9; with PostgreSQL, as are --at and --queue.
    at
        Not before this time, as 2026-12-24T18:00 (of your clock) or with an offset.
    queue
        The queue they wait in: workers that were started with --queues take them from there.
    results
        Write each result as a JSON line to this file.
    """
    problems = _read_problems(file)
    if results is not None:
        check_writable(results)

    async def work(app: App) -> dict[str, Any]:
        job = read_job(app.store, priority, at, queue)
        terms = RunRequest(
            strategy=strategy,
            options=pairs(option),
            budget=limits.budget(),
            participants=workers.participants(),
        )
        run_ids = await Submission(app, terms, job).accept(problems)
        rows = [await _persist(partial(app.store.run, run_id)) for run_id in run_ids]
        over = sum(row.status != "active" for row in rows)
        print_notes([f"{len(rows)} runs, {over} of them over before; after Ctrl-C, the same command goes on"])
        if over < len(rows):
            await _persist(lambda: note_who_drives(app, here=True))
        lines = {run_id: problem.line for run_id, problem in zip(run_ids, problems, strict=True)}
        return await _wait(app, lines, results)

    counts = run_async(with_app(common.app(workers.policy()), work))
    if common.json:
        print_document({"runs": len(problems), **counts, "results": str(results) if results else None})
    else:
        print_note(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 0 if set(counts) <= {"solved", "answered"} else 1


class Problem(NamedTuple):
    """A line of the file, and which."""

    number: int
    line: ProblemLine


class Submission:
    """Accepts lines of a file as runs, each once.

    Args:
        terms: What all of them have in common.
    """

    def __init__(self, app: App, terms: RunRequest, job: JobOptions) -> None:
        self._app, self._terms, self._job = app, terms, job

    async def accept(self, problems: Sequence[Problem]) -> list[str]:
        """Return the ids of the runs of problems, in their order.

        Raises:
            UsageError: Some cannot be run; they are named, and none was accepted.
            ConflictError: An id stood for another problem not long ago; those before it were accepted.
        """
        participants = await self._app.equip(self._terms.participants, self._terms.budget)
        wanted, faults = list[tuple[int, Order, RequestKey]](), dict[int, str]()
        for number, line in problems:
            try:
                wanted.append((number, *self._read(line, participants)))
            except UsageError as error:
                faults[number] = str(error)
        if faults:
            raise _faults_error(faults)
        return [await self._accept(number, order, key) for number, order, key in wanted]

    def _read(self, line: ProblemLine, participants: Participants) -> tuple[Order, RequestKey]:
        request = replace(
            self._terms,
            problem=line.problem,
            strategy=line.strategy or self._terms.strategy,
            options={**self._terms.options, **line.options},
            participants=participants,
        )
        order, _ = self._app.order(request)
        asked = [line, order.strategy.name, request.options, request.budget, order.participants.model]
        digest = hashlib.sha256(msgspec.json.encode(asked)).digest()
        name = digest.hex() if line.id is None else f"{line.id}"
        return order, RequestKey(f"submit:{name}"[:200], digest, time.time_ns() // 1_000_000)

    async def _accept(self, number: int, order: Order, key: RequestKey) -> str:
        try:
            accepted = await _persist(lambda: self._app.engine.accept_once(order, job=self._job, key=key))
        except ConflictError as error:
            raise ConflictError(
                f"line {number}: its id stood for another problem not long ago; give it another one. "
                "The lines before it have been accepted",
                code=error.code,
                line=number,
            ) from None
        return accepted.run_id


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
    alike = dict[str, list[int]]()
    for number, why in faults.items():
        alike.setdefault(why, []).append(number)
    shown = [f"{_spell_lines(numbers)}: {why}" for why, numbers in islice(alike.items(), SHOWN_FAULTS)]
    if len(alike) > SHOWN_FAULTS:
        shown.append("and others")
    return UsageError(f"nothing was begun. {'; '.join(shown)}", lines=[*islice(faults, SHOWN_FAULTS)])


def _spell_lines(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    rest = f" and {len(numbers) - SHOWN_FAULTS} more" if len(numbers) > SHOWN_FAULTS else ""
    return f"lines {', '.join(map(str, numbers[:SHOWN_FAULTS]))}{rest}"


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
