"""`reasonry coach`: the engine runs the algorithm, whoever sits at the shell answers its questions."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.agent_calls import MAX_PAGE_ENTRIES, ListRuns
from ...app.agent_runs import list_runs
from ...app.use_cases import RunRequest
from ...app.wiring import App
from ...engine.answers import SHAPE
from ...errors import AnswerRefusedError, UsageError
from ...ids import shorten_ids
from ...strategies import DEFAULT_STRATEGY
from .. import present
from .candidates import RunId, SessionId, StrategyName
from .instants import local_time
from .output import print_document, print_line, print_note, print_warnings
from .settings import Common, Equipment, Limits, pairs, run_async, with_app
from .solve import read_problem
from .tables import Column, print_table
from .whole_numbers import WholeNumber

Brief = Annotated[bool, Parameter(negative=())]


def start_(
    problem: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    session: SessionId | None = None,
    strategy: StrategyName = DEFAULT_STRATEGY,
    option: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    brief: Brief = False,
    equipment: Equipment = Equipment(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Start a run whose questions you answer.

    Parameters
    ----------
    problem
        What is to be solved; `-` reads it from standard input. With --session it may be left out.
    session
        A session whose thoughts come with the problem, as quoted text: its id, the beginning of it, or `last`. Without
        a problem its first thought is the problem.
    strategy
        The way of thinking; `reasonry strategies` lists them.
    option
        An option of the strategy, as NAME=VALUE; may be repeated.
    brief
        Refer to texts that were shown before, rather than repeat them; equal questions come as one.
    """
    text = read_problem(problem)

    async def work(app: App) -> dict[str, Any]:
        request = RunRequest(
            problem=text,
            session=session,
            strategy=strategy,
            options=pairs(option),
            budget=limits.budget(),
            participants=equipment.participants(),
        )
        return await app.coach_start(request, brief=brief)

    return show_coached(work, common, equipment)


def answer_(
    run_id: RunId,
    answer: str | None = None,
    /,
    *,
    answers: Path | None = None,
    brief: Brief = False,
    equipment: Equipment = Equipment(),
    common: Common = Common(),
) -> int:
    """Answer questions of a run; without ANSWER they are read from a file or from standard input.

    Several questions are answered as `{"ID": ANSWER, …}`. An ANSWER is text, or data in the form of the question's
    answer_schema: `{"e1": "42", "e2": {"answer": 7}}`. `{"answers": [{"id": "e1", "answer": "42"}]}` will do too. Where
    a single question waits, its answer alone is enough: `42`, plain text, or data. The id of a question that is asked
    several times (`e1..e5`) takes the list of its answers. An answer that cannot be read is refused, with the reason,
    and its question stays open; the others are taken.

    Parameters
    ----------
    run_id
        As `coach start` gave it, how that begins, or `last`.
    answer
        The answers, in any of these forms.
    answers
        The file with the answers.
    brief
        As for `coach start`.
    """
    if answer is not None and answers is not None:
        raise UsageError("ANSWER and --answers both have answers: give one of them", option="answers")
    answers_read = _read_answers(answers) if answer is None else _parse_answers(answer, "ANSWER")

    async def work(app: App) -> dict[str, Any]:
        found = await app.run_id(run_id)
        participants = await app.equip(equipment.participants(), run_id=found)
        return await app.coach_answer(found, answers_read, participants, brief=brief)

    return show_coached(work, common, equipment)


def list_(*, limit: WholeNumber = 20, cursor: str | None = None, common: Common = Common()) -> int:
    """List runs, those that wait for your answers first.

    Parameters
    ----------
    limit
        How many at most.
    cursor
        `next_cursor` of the page before.
    """
    if not 1 <= limit <= MAX_PAGE_ENTRIES:
        raise UsageError(f"--limit must be from 1 to {MAX_PAGE_ENTRIES}, got {limit}", option="limit")

    async def work(app: App) -> tuple[dict[str, Any], dict[str, str]]:
        document = await list_runs(app.engine, ListRuns(limit=limit, cursor=cursor))
        return document, await shorten_ids([row["run_id"] for row in document["runs"]], app.store.run_ids)

    document, short = run_async(with_app(common.app(), work))
    if common.json:
        print_document(document)
        return 0
    rows = document["runs"]
    print_table(
        _COLUMNS,
        [_row(row, short[row["run_id"]], local_time(row.get("updated_at", ""))) for row in rows],
        [_row(row, row["run_id"], row.get("updated_at", "")) for row in rows],
    )
    if not rows:
        print_note("no runs yet; `reasonry coach start PROBLEM` starts one")
    elif document["next_cursor"]:
        print_note(f"go on with: --cursor {document['next_cursor']}")
    return 0


_COLUMNS = (
    Column("ID"),
    Column("USED", rank=2),
    Column("STATUS", rank=1),
    Column("QUESTIONS", rank=3, align_right=True),
    Column("STRATEGY", rank=4),
    Column("PROBLEM", narrowest=20),
)


def _row(row: dict[str, Any], name: str, used: str) -> tuple[str, ...]:
    waits = "questions_open" in row
    questions = str(row["questions_open"]) if waits else ""
    return name, used, "waiting" if waits else row["status"], questions, row["strategy"], row["problem"]


def status_(run_id: RunId, /, *, brief: Brief = False, common: Common = Common()) -> int:
    """Say where a run stands and what it asks.

    Parameters
    ----------
    run_id
        As `coach start` gave it, how that begins, or `last`.
    brief
        As for `coach start`.
    """

    async def work(app: App) -> dict[str, Any]:
        return await app.coach(brief=brief).status(await app.run_id(run_id), tree=not brief)

    show_coached(work, common)
    return 0


def resume_(
    run_id: RunId,
    /,
    *,
    brief: Brief = False,
    equipment: Equipment = Equipment(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Take a run up again after a cancellation, a limit or a failure, whoever answered its questions so far.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    brief
        As for `coach start`.
    """
    return take_over(run_id, equipment, limits, common, brief=brief)


def take_over(run: str, equipment: Equipment, limits: Limits, common: Common, *, brief: bool = False) -> int:
    """Hand a run over to its caller and show where it stands."""

    async def work(app: App) -> dict[str, Any]:
        run_id = await app.run_id(run)
        participants = await app.equip(equipment.participants(), limits.budget(), run_id=run_id)
        return await app.coach_take_over(run_id, participants, limits.budget(), brief=brief)

    return show_coached(work, common, equipment)


def fork_(
    run_id: RunId,
    /,
    *,
    at: WholeNumber,
    option: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    brief: Brief = False,
    equipment: Equipment = Equipment(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Start a run whose questions you answer from a point of another.

    Parameters
    ----------
    run_id
        As `runs list` shows it, how that begins, or `last`.
    at
        How many of the run's recorded answers the new one starts with; 0 starts afresh.
    option
        An option of the strategy to set anew, as NAME=VALUE; may be repeated.
    brief
        As for `coach start`.
    """

    async def work(app: App) -> dict[str, Any]:
        source = await app.engine.recorded_run(await app.run_id(run_id))
        budget = limits.budget() or source.budget
        participants = await app.equip(equipment.participants(), budget)
        document, _ = await app.coach_fork(
            source, at, pairs(option), budget, lambda _: participants, brief=brief
        )
        return document

    return show_coached(work, common, equipment)


def cancel_(run_id: RunId, /, *, common: Common = Common()) -> int:
    """End a run.

    Parameters
    ----------
    run_id
        As `coach start` gave it, how that begins, or `last`.
    """

    async def work(app: App) -> dict[str, Any]:
        return await app.coach().cancel(await app.run_id(run_id))

    show_coached(work, common)
    return 0


def _read_answers(path: Path | None) -> Any:
    place = "standard input" if path is None else str(path)
    if path is None and sys.stdin.isatty():
        print_note("Type the answers; end with Ctrl-D on a line of its own (on Windows Ctrl-Z and Enter).")
    try:
        content = sys.stdin.buffer.read() if path is None else path.read_bytes()
        return _parse_answers(content.decode("utf-8-sig"), place)
    except OSError as error:
        raise UsageError(f"{place} cannot be read: {error.strerror}", option="answers") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{place} is not UTF-8 text (byte {error.start})", option="answers") from None


def _parse_answers(text: str, place: str) -> Any:
    """Return answers that are JSON as data; what does not begin like JSON is the text of a single answer."""
    if not text.strip():
        raise UsageError(f"there are no answers in {place}; {SHAPE}", option="answers")
    try:
        return json_.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip()[0] in '{["':
            raise UsageError(f"{place} is not JSON: {error}; {SHAPE}", option="answers") from None
        return text.strip()


def show_coached(
    work: Callable[[App], Awaitable[dict[str, Any]]], common: Common, equipment: Equipment = Equipment()
) -> int:
    """Do something with a coached run and show where it stands."""
    try:
        document = run_async(with_app(common.app(equipment.policy()), work))
    except AnswerRefusedError as error:
        if not common.json:
            _print_standing(error.standing)
        raise
    if common.json:
        print_document(document)
    else:
        _print_standing(document)
    result = document.get("result")
    return 0 if result is None else present.exit_code_of(result)


def _print_standing(document: dict[str, Any]) -> None:
    result = document.get("result")
    if result is not None:
        _print_result(result)
        return
    heads = (document["run_id"], document.get("strategy"), document.get("progress", {}).get("stage"))
    print_note("run " + " · ".join(filter(None, heads)))
    for text_id, text in document.get("shared", {}).items():
        print_line(f"--- #{text_id}")
        print_line(text if isinstance(text, str) else json_.dumps(text, ensure_ascii=False))
    for question in document["questions"]:
        print_line(f"--- {question['id']} ({question['stage']})")
        print_line(question["prompt"])
        if "note" in question:
            print_line(question["note"])
    if document["questions"]:
        print_note(f"answer with: {_answer_command(document)}")
    if "note" in document:
        print_note(document["note"])


def _print_result(result: dict[str, Any]) -> None:
    print_note(present.end_text(result))
    print_warnings({"warnings": (), **result})
    if result["outcome"] not in ("solved", "answered"):
        print_note(f"take it up again with: reasonry coach resume {result['run_id']}")
    if result["answer"] is not None:
        print_line(result["answer"])


def _answer_command(document: dict[str, Any]) -> str:
    """Return the command that answers what is asked, with the places of the answers in capitals."""
    questions, command = document["questions"], f"reasonry coach answer {document['run_id']}"
    if len(questions) == 1 and ".." not in questions[0]["id"]:
        return f"{command} ANSWER"
    listed = ", ".join(f'"{question["id"]}": ANSWER' for question in questions[:3])
    return f"{command} '{{{listed}{', …' if len(questions) > 3 else ''}}}'"
