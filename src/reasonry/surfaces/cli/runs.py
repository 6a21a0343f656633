"""`reasonry runs`: what was run, and going on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from ...app.wiring import App
from ...core.budget import Budget
from ...core.text import clip
from ...engine.journal import CALLER
from ...engine.readings import Readings
from ...engine.record import LISTS, Record
from ...engine.result import Result
from ...errors import ConflictError, UsageError
from ...guided.replies import instant
from ...ids import shorten_ids
from ...records import RunRow
from .. import present
from ..report_pages import text_lines
from ..run_report import outline, path_text, thought_title, whole_thought
from .candidates import RunId, StrategyName
from .coach import take_over
from .draw_tree import print_tree
from .filters import Filters
from .instants import local_time
from .output import (
    confirm,
    print_document,
    print_line,
    print_lines,
    print_long_document,
    print_note,
    print_notes,
)
from .report_files import check_report, write_report
from .settings import Common, Limits, Shown, Workers, pairs, run_async, with_app, with_run
from .solve import Driven, await_drive, show_result
from .tables import Column, print_table
from .view import watching
from .whole_numbers import WholeNumber


def list_(
    *,
    status: str | None = None,
    model: str | None = None,
    filters: Filters = Filters(),
    limit: WholeNumber = 50,
    before: str | None = None,
    common: Common = Common(),
) -> int:
    """List runs, newest first.

    Parameters
    ----------
    status
        Only those that are active, done, failed or cancelled.
    model
        Only those of this model, named as a run names it: openai:gpt-5-mini.
    limit
        How many at most.
    before
        Go on after this run, the last of the page before.
    """
    _check_status(status)
    if not 1 <= limit <= 1000:
        raise UsageError(f"--limit must be from 1 to 1000, got {limit}", option="limit")

    async def work(app: App) -> tuple[list[RunRow], dict[str, str], set[str]]:
        last = None if before is None else await app.run_id(before)
        which = filters.read(app)
        rows = await app.store.runs(status=status, model=model, limit=limit, before=last, **which)
        short = await shorten_ids([row.run_id for row in rows], app.store.run_ids)
        return rows, short, await app.resumable(rows)

    rows, short, left = run_async(with_app(common.app(), work))
    if common.json:
        cursor = rows[-1].run_id if len(rows) == limit else None
        print_document({"runs": [_document(row, left) for row in rows], "next": cursor})
        return 0
    print_table(
        _COLUMNS,
        [_row(row, left, short[row.run_id], local_time(instant(row.created_at_ms))) for row in rows],
        [_row(row, left, row.run_id, instant(row.created_at_ms)) for row in rows],
    )
    if not rows:
        is_all = status is None and model is None and not filters.are_any
        print_note("no runs yet" if is_all else "no such runs")
    elif len(rows) == limit:
        print_note(f"go on with: --before {short[rows[-1].run_id]}")
    return 0


_COLUMNS = (
    Column("ID"),
    Column("BEGUN", rank=2),
    Column("OUTCOME", rank=1),
    Column("STRATEGY", rank=3),
    Column("PROBLEM", narrowest=20),
    Column("ANSWER", rank=4, narrowest=16),
)


def _row(row: RunRow, left: set[str], name: str, begun: str) -> tuple[str, ...]:
    is_answered = row.outcome in ("solved", "answered")
    why = f"({row.detail or row.reason or ''})" if row.detail or row.reason else ""
    end = "(resumable)" if row.run_id in left else why
    answer = (row.answer or "") if is_answered else end
    return name, begun, row.outcome or row.status, row.strategy, row.problem, answer


def _check_status(status: str | None) -> None:
    if status not in (None, "active", "done", "failed", "cancelled"):
        raise UsageError(
            f"--status must be active, done, failed or cancelled, got {status!r}",
            choices=["active", "done", "failed", "cancelled"],
        )


def _document(row: RunRow, left: set[str]) -> dict[str, Any]:
    return {**msgspec.to_builtins(row), **({"resumable": True} if row.run_id in left else {})}


def show_(run_id: RunId, /, *, report: Path | None = None, common: Common = Common()) -> int:
    """Show one run: its path, thoughts, questions and result.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    report
        Write a report of it to this file too: FILE.md or FILE.html.
    """
    check_report(report)
    record = run_async(with_run(common.app(), run_id, lambda app, run_id: app.engine.record(run_id)))
    head = {**record.result.document(), **record.head}
    write_report(report, record)
    if common.json:
        print_long_document(head, LISTS, record.chunks())
    else:
        _print_trace(head, record)
    return 0


def stats_(
    *,
    limit: WholeNumber = 200,
    status: str | None = None,
    strategy: StrategyName | None = None,
    common: Common = Common(),
) -> int:
    """Show how the replies of the latest runs were read, by model and strategy.

    `native`: the provider held the reply to its form; `json`: it was JSON as a whole; the others say what it took to
    read it. `unreadable` replies were asked for again.

    Parameters
    ----------
    limit
        How many runs to look at.
    status
        Only runs that are active, done, failed or cancelled.
    strategy
        Only runs of this strategy.
    """
    _check_status(status)
    if limit < 1:
        raise UsageError(f"--limit must be at narrowest 1, got {limit}", option="limit")

    async def work(app: App) -> dict[str, Any]:
        wanted = None if strategy is None else app.strategy(strategy).name
        readings, cursor = Readings(), None
        while readings.runs < limit:
            rows = await app.store.runs(status=status, limit=100, before=cursor)
            for row in rows:
                if wanted in (None, row.strategy) and readings.runs < limit:
                    readings.add(await app.engine.record(row.run_id))
            if len(rows) < 100:
                break
            cursor = rows[-1].run_id
        return readings.document()

    document = run_async(with_app(common.app(), work))
    if common.json:
        print_document(document)
        return 0
    print_line(present.count_of(document["runs"], "run"))
    for row in document["readings"]:
        rungs = ", ".join(f"{rung} {count}" for rung, count in row["rungs"].items())
        print_line(f"{row['model']} · {row['strategy']}: {row['replies']} replies: {rungs}")
    return 0


def _print_trace(trace: dict[str, Any], record: Record) -> None:
    head = [
        f"run {trace['run_id']}  {present.end_text(trace)}",
        f"{trace['strategy']} · {trace['model']} · {present.spend(trace)}",
        f"problem: {trace['problem']}",
        f"path: {path_text(record.entries('path'), trace['stage'])}",
    ]
    print_lines(head)
    print_tree(trace)
    for number, thought in enumerate(record.thoughts(), 1):
        print_lines(whole_thought(thought_title(number, thought), thought))
    print_line("questions:")
    print_lines(line for question in record.entries("questions") for line in _question_lines(question))
    print_lines(text_lines(outline(trace)))
    print_lines(f"warning: {warning}" for warning in trace["warnings"])
    if trace.get("best_answer"):
        print_line(f"best so far, not an answer: {clip(trace['best_answer'], 400)}")
    print_line("no answer" if trace["answer"] is None else f"answer: {trace['answer']}")


def _question_lines(question: dict[str, Any]) -> list[str]:
    """Return a question, how its reply was read, and the reply where it could not be read."""
    read, reply = question["read"] or "", question["reply"]
    asked = clip(question["prompt"].rpartition("\n\n")[2], 120)
    lines = [f"  {question['id']} {question['stage']}: {asked}"]
    if reply is None:
        return [*lines, "    not answered"]
    width = 2_000 if read.startswith("unreadable") else 120
    return [*lines, f"    {read or 'read'} ← {clip(reply, width)}"]


def resume_(
    run_id: RunId,
    /,
    *,
    coach: Annotated[bool, Parameter(negative=())] = False,
    shown: Shown = Shown(),
    workers: Workers = Workers(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Go on with a run after a crash, a cancellation, a limit or a failure; what is recorded is not asked again.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    coach
        Answer its questions yourself from here on, with `coach answer`.
    """
    if coach:
        workers.refuse_models()
        return take_over(run_id, workers, limits, common)
    app = common.app(workers.policy())

    async def work(app: App, run_id: str) -> Driven:
        limit = limits.budget()
        participants = await app.equip(workers.participants(), limit, run_id=run_id)
        async with app.engine.open(run_id) as opened:
            model, budget = workers.model or opened.run.participants.model, limit or opened.run.budget
            if not common.json:
                print_notes(_reopening(opened.result))
            with watching(common.json, model, "", budget, full=shown.full) as watch:
                return await await_drive(app, run_id, app.go_on(opened, participants, limit, watch))

    return run_async(with_run(app, run_id, work)).show(common, shown)


def _reopening(result: Result) -> list[str]:
    """Return what there is to say of a run that had ended before it was gone on with."""
    if result.status == "active":
        return []
    if result.outcome in ("solved", "answered"):
        return ["This run came to its end, so there is nothing to go on with; fork it to try another way."]
    ending = f"{result.outcome}: {result.termination.reason}"
    return [f"This run had ended ({ending}); resuming reopens it. Nothing that was answered is asked again."]


def fork_(
    run_id: RunId,
    /,
    *,
    at: WholeNumber,
    option: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    shown: Shown = Shown(),
    workers: Workers = Workers(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Start a new run from a point of another, with another model, budget or options if you like.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    at
        How many of the run's recorded answers the new one starts with; 0 starts afresh.
    option
        An option of the strategy to set anew, as NAME=VALUE; may be repeated.
    """
    app = common.app(workers.policy())

    async def work(app: App, run_id: str) -> Result:
        budget: Budget | None = limits.budget()
        source = await app.engine.recorded_run(run_id)
        participants = await app.equip(workers.participants(), budget or source.budget)
        model = workers.model or source.row.model
        with watching(common.json, model, "", budget, full=shown.full) as watch:
            return await app.fork(source, at, participants, pairs(option), budget, watch)

    return show_result(run_async(with_run(app, run_id, work)), common, shown)


def replay_(run_id: RunId, /, *, common: Common = Common()) -> int:
    """Walk a run again from its journal, without a model, and compare its path, thoughts and outcome.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    """
    document = run_async(with_run(common.app(), run_id, lambda app, run_id: app.engine.replay(run_id)))
    replay = document["replay"]
    identical = replay["identical"]
    if common.json:
        print_document(document)
    else:
        verdict = {
            True: "the same",
            False: f"SOMETHING ELSE (other {', '.join(replay['differs'])})",
            None: "an unfinished run; it can be resumed",
        }[identical]
        print_line(f"{replay['events']} events lead to {verdict}: {document['answer']}")
    return 1 if identical is False else 0


def cancel_(run_id: RunId, /, *, common: Common = Common()) -> int:
    """End a run; whoever drives it stops, and it can be resumed.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    """
    result = run_async(with_run(common.app(), run_id, lambda app, run_id: app.engine.cancel(run_id)))
    if common.json:
        print_document(result.document())
    else:
        way = "coach resume" if result.model == CALLER else "runs resume"
        print_line(f"cancelled; take it up again with: reasonry {way} {result.run_id}")
    return 0


def delete_(
    run_id: RunId,
    /,
    *,
    yes: Annotated[bool, Parameter(negative=())] = False,
    common: Common = Common(),
) -> int:
    """Forget a run that has ended and the session of its thoughts, for good.

    A session of your own that the run began with, or that goes on with it, is kept.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    yes
        Do not ask.
    """

    async def find(app: App, run_id: str) -> RunRow:
        row = await app.store.run(run_id)
        if row.status == "active":
            raise ConflictError(
                f"run {run_id} has not ended; cancel it first: reasonry runs cancel {run_id}", run_id=run_id
            )
        return row

    row = run_async(with_run(common.app(), run_id, find))
    about = f"{row.strategy}, {row.outcome or row.status}: {clip(row.problem, 60)}"
    if not yes and not confirm(f"Delete run {row.run_id} ({about}) and its session?"):
        print_note("nothing was deleted")
        return present.EXIT_CODES["cancelled"]

    async def work(app: App) -> dict[str, Any]:
        await find(app, row.run_id)
        return await app.sessions().manage({"action": "delete", "session_id": row.session_id})

    document = run_async(with_app(common.app(), work))
    if common.json:
        print_document({"run_id": row.run_id, "session_id": row.session_id, **document})
        return 0
    print_line(f"deleted run {row.run_id} and its session {row.session_id}")
    return 0
