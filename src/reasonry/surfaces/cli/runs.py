"""`reasonry runs`: lists and shows runs, and sends commands to them."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from ...app.app import App
from ...app.run_head import RunHead
from ...app.run_test import ExportedLine, run_test, session_test
from ...app.runs import coach_take_over, continue_paused, delete_run, list_runs, set_limits
from ...compare.trial_table import TrialTable
from ...engine.coach import Coach
from ...engine.journal import TermsChanged
from ...engine.record import Record
from ...engine.result import Result
from ...engine.run_diff import diff_runs
from ...errors import ConflictError, ReasonryError, UsageError
from ...guided.export import plain_value
from ...guided.session_documents import instant
from ...records import ANSWERED, COMPARISON, JobOptions, RunRow, short_id
from ...supervisor import Supervisor
from ...text import display_line, nearest_difference
from .. import present
from ..run_report import report_answer, report_head, report_work
from ..web.find_page import find_page
from .coach import Brief, show_coached
from .output import Column, confirm_deletion, local_time, print_line, print_note, print_record, write_text
from .pages import check_report, write_report
from .parameters import Options, PageSize, RunChoice, RunId, WholeNumber, read_pairs
from .settings import Common, Limits, RunSettings, Shown
from .solve import drive_shown, resume_command, show_result
from .submit import note_who_drives

_PAGE = 500
OfModel = Annotated[
    str | None, Parameter(help="Only runs of this model, as a run names it: openai:gpt-5-mini.")
]

_COLUMNS = (
    Column("ID", "run_id", short_id),
    Column("BEGUN", lambda row: instant(row["created_at_ms"]), local_time),
    Column("OUTCOME", lambda row: _outcome_or_state(row)),
    Column("STRATEGY", "strategy"),
    Column("PROBLEM", "problem", narrowest=18),
    Column("ANSWER", lambda row: _answer_or_end(row), narrowest=16),
)


def list_(
    *,
    model: OfModel = None,
    which: RunChoice = RunChoice(),
    limit: PageSize = 50,
    cursor: str | None = None,
    common: Common = Common(),
) -> int:
    """List runs, newest first.

    Args:
        limit: Maximum number of entries.
        cursor: Id of the last run on the previous page; the list continues after it.
    """

    async def work(app: App) -> dict[str, Any]:
        last = None if cursor is None else await app.run_id(cursor)
        return await list_runs(app, limit, last, model=model, **which.read())

    return common.show_page(work, "runs", _COLUMNS, none="no runs found")


def _outcome_or_state(row: RunHead) -> str:
    return (
        row["outcome"] or (row["paused"] and "paused") or (row["resumable"] and "resumable") or row["status"]
    )


def _answer_or_end(row: RunHead) -> str:
    if row["answer"] is not None:
        return row["answer"]
    why = row["termination"]["detail"] or row["termination"]["reason"]
    return f"({why})" if why else ""


def show_(run_id: RunId, /, *, report: Path | None = None, common: Common = Common()) -> int:
    """Show one run: its path, thoughts, questions and result.

    Args:
        report: Also write a report of the run to this file: FILE.md or FILE.html.
    """
    check_report(report)
    _, record = common.do_on_run(run_id, lambda app, run_id: app.engine.record(run_id))
    if report is not None:
        write_report(report, record, common.strategies())
    return common.show(record.document() if common.as_data else None, lambda: _print_record(record))


def _print_record(record: Record) -> None:
    from .draw import print_blocks, print_tree

    trace: dict[str, Any] = {**record.result.document(), **record.head}
    print_blocks(report_head(trace))
    print_tree(trace)
    print_blocks(report_work(record, trace))
    print_line("", "Questions")
    for question in record.entries("questions"):
        read, reply = question["read"] or "read", question["reply"]
        asked = display_line(question["prompt"].rpartition("\n\n")[2], 120)
        width = 2_000 if read.startswith("unreadable") else 120
        answered = "not answered" if reply is None else f"{read} ← {display_line(reply, width)}"
        print_line(f"  {question['id']} {question['stage']}: {asked}", f"    {answered}")
    print_blocks(report_answer(trace))


def resume_(
    run_id: RunId | None = None,
    /,
    *,
    coach: bool = False,
    brief: Brief = False,
    of_model: OfModel = None,
    which: RunChoice = RunChoice(),
    shown: Shown = Shown(),
    settings: RunSettings = RunSettings(),
) -> int:
    """Resume a run after a crash, a cancellation, a limit or a failure. Recorded answers are reused.

    Without RUN_ID, put all runs that match the filters and have no answer back in the queue of the server or workers.

    Args:
        coach: From now on, answer the run's questions yourself, with `coach answer`.
    """
    _check_named(run_id, which, of_model)
    limit, silent = settings.limits.budget(), settings.common.as_data
    if run_id is None:
        if coach:
            raise UsageError("--coach takes one run: name it", option="coach")
        return _requeue(settings, which, of_model)

    async def work(app: App) -> tuple[Result, bool] | dict[str, Any]:
        own, participants = await app.run_id(run_id), settings.participants()
        if coach:
            return await coach_take_over(app, own, participants, limit, brief=brief)
        if await continue_paused(app, own, participants, limit):
            return await app.engine.result(own), False
        async with app.engine.open(own) as opened:
            found = opened.result
            # A run that had to answer at a limit can continue.
            is_answered = found.outcome in ANSWERED and not opened.run.closings
            if is_answered and not silent:
                print_note("This run has its answer; fork it to try another way.")
            elif found.status != "active" and not silent:
                ending = present.end_text(found.document())
                print_note(f"This run had ended ({ending}). Resuming asks only for the missing answers.")
            if is_answered:
                return found, False
            performers = await app.reopen(opened, participants, limit)
            return await drive_shown(opened, performers, settings, shown)

    if coach:
        settings.refuse_models()
    return _show_ending(settings.do(work), settings, shown)


def _requeue(settings: RunSettings, which: RunChoice, of_model: str | None) -> int:
    participants, limit, common = settings.participants(), settings.limits.budget(), settings.common

    async def requeue(app: App, row: RunRow) -> None:
        await Supervisor(app).resume(app, row.run_id, participants, limit, job=JobOptions())

    rows = _chosen(common, which, of_model, lambda row: row.outcome not in (*ANSWERED, "waiting"))
    code = _do_on_all(common, rows, requeue, "put back in the queue")
    if rows:
        common.do(lambda app: note_who_drives(app, here=False))
    return code


def _show_ending(ending: tuple[Result, bool] | dict[str, Any], settings: RunSettings, shown: Shown) -> int:
    if isinstance(ending, dict):
        return show_coached(ending, settings.common)
    return show_result(*ending, settings, shown)


def fork_(
    run_id: RunId,
    /,
    *,
    at: WholeNumber,
    option: Options = (),
    coach: bool = False,
    brief: Brief = False,
    shown: Shown = Shown(),
    settings: RunSettings = RunSettings(),
) -> int:
    """Start a new run from a point in another run, with another model, budget or options if you like.

    Args:
        at: How many recorded answers to reuse; 0 starts over.
        coach: Answer the new run's questions yourself, with `coach answer`.
    """
    budget, options = settings.limits.budget(), read_pairs(option)

    async def work(app: App) -> tuple[Result, bool] | dict[str, Any]:
        source = await app.engine.recorded_run(await app.run_id(run_id))
        order, performers = await app.order_fork(
            source, settings.participants(), options, budget, coached=coach
        )
        fork = source.fork(at)
        if coach:
            return await Coach(app.engine, brief=brief).start(order, performers, fork)
        async with app.engine.begin(order, performers, fork) as opened:
            return await drive_shown(opened, performers, settings, shown)

    if coach:
        settings.refuse_models()
    return _show_ending(settings.do(work), settings, shown)


def replay_(run_id: RunId, /, *, common: Common = Common()) -> int:
    """Replay a run from its journal, without a model, and compare the path, thoughts and outcome with the record."""
    _, document = common.do_on_run(run_id, lambda app, run_id: app.engine.replay(run_id))
    replay = document["replay"]
    verdict = {
        True: f"the same path, thoughts and {'answer' if document['answer'] else 'outcome'}",
        False: f"ANOTHER RESULT (other {', '.join(replay['differs'])})",
        None: "the run has not ended; it can be resumed",
    }[replay["identical"]]
    events = present.count_of(replay["events"], "event")
    answer = f": {document['answer']}" if document["answer"] else ""
    common.show(document, f"replayed {events}: {verdict}{answer}")
    return 1 if replay["identical"] is False else 0


def pause_(run_id: RunId, /, *, common: Common = Common()) -> int:
    """Pause a run: the run asks no new questions, but still accepts answers to open questions.

    The run pauses within a second, whichever process on this store drives the run.
    """
    paused, _ = common.do_on_run(
        run_id, lambda app, run_id: app.engine.command(run_id, TermsChanged(paused=True))
    )
    done = f"paused; resume it with: reasonry runs resume {paused}"
    return common.show({"run_id": paused, "paused": True}, done)


def limit_(run_id: RunId, /, *, limits: Limits = Limits(), common: Common = Common()) -> int:
    """Raise or lower limits of a run that has not ended.

    The limits that you do not name stay the same. The usage so far counts toward the new limits. The new limits
    apply within a second, whichever process on this store drives the run.
    """
    if not (named := limits.as_dict()):
        message = "name a limit: --max-calls, --max-tokens, --max-usd, --max-seconds, …"
        raise UsageError(message, option="budget")

    limited, budget = common.do_on_run(run_id, lambda app, run_id: set_limits(app, run_id, named))
    return common.show({"run_id": limited, "budget": msgspec.to_builtins(budget)})


def cancel_(
    run_id: RunId | None = None,
    /,
    *,
    model: OfModel = None,
    which: RunChoice = RunChoice(),
    common: Common = Common(),
) -> int:
    """End a run. The process that drives the run stops it, and you can resume the run later.

    Without RUN_ID, end all active runs that match the filters.
    """
    _check_named(run_id, which, model)
    if run_id is None:
        rows = _chosen(common, which, model, lambda row: row.status == "active")
        return _do_on_all(common, rows, lambda app, row: app.engine.cancel(row.run_id), "cancelled")
    _, result = common.do_on_run(run_id, lambda app, run_id: app.engine.cancel(run_id))
    document = result.document()
    return common.show(document, f"cancelled; resume it with: {resume_command(document)}")


def delete_(
    run_id: RunId | None = None,
    /,
    *,
    yes: bool = False,
    model: OfModel = None,
    which: RunChoice = RunChoice(),
    common: Common = Common(),
) -> int:
    """Permanently delete a run that has ended, and the session that contains its thoughts.

    Without RUN_ID, delete all ended runs that match the filters. Your own sessions are kept, even if a deleted run
    started from one of them, or if one of them continues a deleted run.

    Args:
        yes: Do not ask for confirmation.
    """
    _check_named(run_id, which, model)
    if run_id is None:
        rows = _chosen(common, which, model, lambda row: row.status != "active")
        about = f"{present.count_of(len(rows), 'run')} and their sessions"
        if rows and not yes and not confirm_deletion(f"Delete {about}?"):
            return present.EXIT_CODES["cancelled"]
        return _do_on_all(common, rows, lambda app, row: delete_run(app, row.run_id), "deleted")
    if not yes:
        run_id, row = common.do_on_run(run_id, lambda app, run_id: app.store.run(run_id))
        about = f"{row.strategy}, {row.outcome or row.status}: {display_line(row.problem, 60)}"
        if not confirm_deletion(f"Delete run {run_id} ({about}) and its session?"):
            return present.EXIT_CODES["cancelled"]
    try:
        _, document = common.do_on_run(run_id, lambda app, run_id: delete_run(app, run_id))
    except ConflictError as error:
        message = f"{error.message}: reasonry runs cancel {error.details['run_id']}"
        raise ConflictError(message, **error.details) from None
    return common.show(document, f"deleted run {document['run_id']} and its session")


_TEST = """from pathlib import Path

from reasonry.ext import replay


def test_{name}() -> None:
    replay(Path(__file__).with_name("{name}.jsonl"))
"""


def export_(target: str, /, *, as_test: Path, name: str = "", common: Common = Common()) -> int:
    """Write a run, a session or a comparison as tests that replay it offline: test_NAME.py and NAME.jsonl.

    A test fails if a later change to a prompt, an option, a tool or the strategy changes a request of the run.

    Args:
        target: The id or the start of the id of a run, session or comparison, or `last` (the run or session used last).
        as_test: The folder to write to. The command fails if a file exists already.
        name: The name of the test. Default: the name of the strategy. For a comparison, each name begins with this one.
    """

    async def work(app: App) -> dict[str, list[ExportedLine]]:
        page = await find_page(app, target)
        if page.id.startswith(COMPARISON):
            trials = (await TrialTable(app.store, page.id).read()).trials
            runs = {f"{name}_{each.strategy}_{each.item}": each.run_id for each in trials}
        elif page.kind == "session":
            session = await app.sessions().export({"session_id": page.id})
            return {name or session.get("strategy", "session"): session_test(session, app.strategies)}
        else:
            runs = {name or page.strategy: page.id}
        found = {key: await app.engine.recorded_run(run_id) for key, run_id in runs.items()}
        return {key: run_test(each.row.run_id, each.entries, app.strategies) for key, each in found.items()}

    texts = dict[Path, str]()
    for key, lines in common.do(work).items():
        plain = re.sub(r"[\W_]+", "_", key).strip("_")
        while as_test / f"{plain}.jsonl" in texts:
            plain += "_"
        texts[as_test / f"test_{plain}.py"] = _TEST.format(name=plain)
        texts[as_test / f"{plain}.jsonl"] = "".join(
            f"{msgspec.json.encode(line).decode()}\n" for line in lines
        )
    if there := [path for path in texts if path.exists()]:
        raise UsageError(f"{there[0]} exists; choose another --name or folder", option="name")
    try:
        as_test.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{as_test} cannot be made: {error.strerror}", option="as_test") from None
    for path, text in texts.items():
        write_text(path, text)
    return common.show({"files": [*map(str, texts)]}, lambda: print_line(*map(str, texts)))


# -- commands on all runs that match the filters


def _check_named(run_id: str | None, which: RunChoice, model: str | None) -> None:
    is_filtered = any(value is not None for value in (*which.read().values(), model))
    if is_filtered == (run_id is not None):
        message = (
            "name a run, or a filter of `runs list`: --status, --outcome, --reason, --strategy, --since, …"
        )
        raise UsageError(message + (" Not both." if is_filtered else ""), option="run_id")


def _chosen(
    common: Common, which: RunChoice, model: str | None, fits: Callable[[RunRow], bool]
) -> list[RunRow]:
    filters: dict[str, Any] = {**which.read(), "model": model}

    async def read(app: App) -> list[RunRow]:
        if filters["strategy"] is not None:
            filters["strategy"] = app.strategy(filters["strategy"]).name
        rows, last = list[RunRow](), None
        while page := await app.store.runs(limit=_PAGE, before=last, **filters):
            rows, last = rows + page, page[-1].run_id
        return [row for row in rows if fits(row)]

    return common.do(read)


def _do_on_all(
    common: Common, rows: Sequence[RunRow], act: Callable[[App, RunRow], Awaitable[object]], done: str
) -> int:
    """Call `act` for each run. Show how many calls succeeded, and the reason for each failure."""
    refused = dict[str, str]()

    async def work(app: App) -> None:
        for row in rows:
            try:
                await act(app, row)
            except ReasonryError as error:
                refused[row.run_id] = error.message

    common.do(work)
    print_note(*(f"{run_id}: {why}" for run_id, why in refused.items()))
    count = len(rows) - len(refused)
    common.show({"runs": count, "refused": refused}, f"{done}: {present.count_of(count, 'run')}")
    return 1 if refused else 0


# -- the difference between two runs


_WHATS: Mapping[str, str] = {
    "question": "the runs ask different questions",
    "outcome": "the answers differ",
    "only_a": "only A asks this",
    "only_b": "only B asks this",
    "strategy": "their strategies differ, so their paths are not compared",
    "end": "all that was asked and answered is the same; the ends differ",
}


def diff_(a: str, b: str, /, *, common: Common = Common()) -> int:
    """Show the first difference between two runs, and compare their answers, spending, options and limits.

    Args:
        a: The id of a run, the start of its id, or `last`.
        b: The other run, in the same form.
    """

    async def work(app: App) -> dict[str, Any]:
        return diff_runs(*[await app.engine.record(await app.run_id(run)) for run in (a, b)])

    document = common.do(work)
    return common.show(document, lambda: _show_diff(document))


def _show_diff(document: Mapping[str, Any]) -> None:
    a, b = (
        {**run, "run": short_id(run["run_id"]), "outcome": present.end_text({**run, "termination": run})}
        for run in document["runs"].values()
    )
    names = ("run", "strategy", "model", "outcome", "warnings")
    rows = [{"name": name, "a": a[name], "b": b[name]} for name in names]
    parted = "They go the same way to the same end, with the same answers."
    if parting := document["parting"]:
        at = ", ".join(filter(None, (parting["id"], parting["stage"])))
        parted = f"They part{f' at {at}' if at else ''}: {_WHATS[parting['what']]}."
    for name in ("problem", "parting", "answer"):
        sides = document[name] or {"a": "", "b": ""}
        first, second = plain_value(sides["a"]), plain_value(sides["b"])
        if first != second:
            # Long texts are shown from shortly before their first difference.
            _, first, second = nearest_difference(second, [first])
        if first != second or name == "answer":
            rows.append({"name": name, "a": first, "b": second})
    if fork := document["fork"]:
        print_line(f"{'B' if fork['of'] == 'a' else 'A'} is a fork of {fork['of'].upper()}.")
    print_line(parted)
    asked = document["asked"]
    alike = {"name": "alike", "a": asked["alike"], "b": asked["alike"]}
    usage = [{"name": "requests", "a": asked["a"], "b": asked["b"]}, alike, *document["spend"]]
    print_record({"runs": rows, "usage": usage, "settings": document["terms"]})
