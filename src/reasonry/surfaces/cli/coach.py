"""`reasonry coach`: the engine runs the algorithm, whoever sits at the shell answers its questions."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from ...app.agent_calls import MAX_PAGE_ENTRIES, ListRuns
from ...app.agent_runs import list_runs
from ...app.wiring import App
from ...engine.answers import SHAPE
from ...engine.policy import Policy
from ...errors import AnswerRefusedError, UsageError
from ...ids import shorten_ids
from ...strategies import DEFAULT_STRATEGY, REFUTER
from .. import present
from .answer_text import print_answer
from .arguments import (
    Context,
    NewOptions,
    Options,
    Problem,
    Prompts,
    RunId,
    Strategy,
    WholeNumber,
    read_pairs,
    read_text,
)
from .output import print_line, print_note, print_warnings
from .settings import POLICY, CoachSettings, Common, Equipment
from .solve import read_problem
from .tables import Column

Brief = Annotated[
    bool,
    Parameter(
        help="Refer to texts that were shown before, rather than repeat them; equal questions come as one."
    ),
]
ListSize = Annotated[WholeNumber, Parameter(validator=Number(gte=1, lte=MAX_PAGE_ENTRIES))]
Claims = Annotated[tuple[str, ...], Parameter(help="A claim to refute; may be repeated.")]
_COLUMNS = (
    Column("ID", "run_id", kind="id"),
    Column("USED", "updated_at", kind="instant", rank=2),
    Column("STATUS", lambda row: "waiting" if "questions_open" in row else row["status"], rank=1),
    Column("QUESTIONS", "questions_open", rank=3, align_right=True),
    Column("STRATEGY", "strategy", rank=4),
    Column("PROBLEM", "problem", narrowest=20),
)


def start_(
    problem: Problem = None,
    /,
    *,
    session: Context = None,
    strategy: Strategy = DEFAULT_STRATEGY,
    option: Options = (),
    prompt: Prompts = (),
    brief: Brief = False,
    settings: CoachSettings = CoachSettings(),
) -> int:
    """Start a run whose questions you answer."""
    text = read_problem(problem)

    async def work(app: App) -> dict[str, Any]:
        return await app.coach_start(settings.request(text, strategy, option, session, prompt), brief=brief)

    return show_coached(work, settings.common, settings.policy())


def refute_(
    plan: Problem = None,
    /,
    *,
    session: Context = None,
    claim: Claims = (),
    brief: Brief = False,
    settings: CoachSettings = CoachSettings(),
) -> int:
    """Start a run whose questions ask fresh readers to refute a session's thoughts, a plan or claims.

    Put each question to someone who has not seen the others: a sub-agent, another model, a colleague. Each claim ends
    confirmed, refuted or undecided, with the place and the reason. The next thought of the session tells of it.
    """
    text = (
        None
        if session and plan is None
        else "\n".join(claim)
        if claim and plan is None
        else read_problem(plan)
    )
    options = [f"claims={json_.dumps(list(claim))}"] if claim else []

    async def work(app: App) -> dict[str, Any]:
        return await app.coach_start(settings.request(text, REFUTER, options, session), brief=brief)

    return show_coached(work, settings.common, settings.policy())


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

    Answer several questions with `{"ID": ANSWER, …}`. An ANSWER is text, or data in the form of the question's
    answer_schema: `{"e1": "42", "e2": {"answer": 7}}`. `{"answers": [{"id": "e1", "answer": "42"}]}` works too. A
    single question takes its answer alone: `42`, plain text, or data. A question that is asked several times (`e1..e5`)
    takes the list of its answers. An answer that cannot be read is refused with the reason, and its question stays
    open; the other answers are recorded.

    Parameters
    ----------
    answer
        The answers, in any of these forms.
    answers
        The file with the answers.
    """
    if answer is not None and answers is not None:
        raise UsageError("ANSWER and --answers both have answers: give one of them", option="answers")
    place = "ANSWER"
    if answer is None:
        place = "standard input" if answers is None else str(answers)
        if answers is None and sys.stdin.isatty():
            print_note(
                "Type the answers; end with Ctrl-D on a line of its own (on Windows Ctrl-Z and Enter)."
            )
        answer = read_text("-" if answers is None else str(answers), "answers")
    answers_read = _parse_answers(answer, place)

    async def work(app: App) -> dict[str, Any]:
        found = await app.run_id(run_id)
        participants = await app.equip(equipment.participants(), run_id=found)
        return await app.coach_answer(found, answers_read, participants, brief=brief)

    return show_coached(work, common, equipment.policy())


def list_(*, limit: ListSize = 20, cursor: str | None = None, common: Common = Common()) -> int:
    """List runs, those that wait for your answers first.

    Parameters
    ----------
    limit
        Entries at most.
    cursor
        `next_cursor` of the page before.
    """

    async def work(app: App) -> tuple[dict[str, Any], dict[str, str]]:
        document = await list_runs(app.engine, ListRuns(limit=limit, cursor=cursor))
        return document, await shorten_ids([row["run_id"] for row in document["runs"]], app.store.run_ids)

    document, short = common.do(work)
    more = document["next_cursor"]
    return common.show_rows(
        document,
        _COLUMNS,
        document["runs"],
        short,
        none="no runs yet; `reasonry coach start PROBLEM` starts one",
        more=f"--cursor {more}" if more else "",
    )


def status_(run_id: RunId, /, *, brief: Brief = False, common: Common = Common()) -> int:
    """Say where a run stands and what it asks."""

    async def work(app: App) -> dict[str, Any]:
        return await app.coach(brief=brief).status(await app.run_id(run_id), tree=not brief)

    show_coached(work, common)
    return 0


def resume_(run_id: RunId, /, *, brief: Brief = False, settings: CoachSettings = CoachSettings()) -> int:
    """Resume a run after a cancellation, a limit or a failure, whether a model or you answered so far."""
    return take_over(run_id, settings, brief=brief)


def take_over(run: str, settings: CoachSettings, *, brief: bool = False) -> int:
    """Hand a run over to its caller and show where it stands."""

    async def work(app: App) -> dict[str, Any]:
        run_id, budget = await app.run_id(run), settings.limits.budget()
        participants = await app.equip(settings.equipment.participants(), budget, run_id=run_id)
        return await app.coach_take_over(run_id, participants, budget, brief=brief)

    return show_coached(work, settings.common, settings.policy())


def fork_(
    run_id: RunId,
    /,
    *,
    at: WholeNumber,
    option: NewOptions = (),
    brief: Brief = False,
    settings: CoachSettings = CoachSettings(),
) -> int:
    """Start a run whose questions you answer from a point of another.

    Parameters
    ----------
    at
        Number of recorded answers to reuse; 0 starts over.
    """

    async def work(app: App) -> dict[str, Any]:
        source = await app.engine.recorded_run(await app.run_id(run_id))
        budget = settings.limits.budget() or source.budget
        participants = await app.equip(settings.participants(), budget)
        document, _ = await app.coach_fork(source, at, read_pairs(option), budget, participants, brief=brief)
        return document

    return show_coached(work, settings.common, settings.policy())


def cancel_(run_id: RunId, /, *, common: Common = Common()) -> int:
    """End a run; it can be resumed."""

    async def work(app: App) -> dict[str, Any]:
        return await app.coach().cancel(await app.run_id(run_id))

    show_coached(work, common)
    return 0


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
    work: Callable[[App], Awaitable[dict[str, Any]]], common: Common, policy: Policy = POLICY
) -> int:
    """Do something with a coached run and show where it stands."""
    try:
        document = common.do(work, policy)
    except AnswerRefusedError as error:
        if not common.as_data:
            _print_standing(error.standing)
        raise
    common.show(document, lambda: _print_standing(document))
    result = document.get("result")
    return 0 if result is None else present.exit_code_of(result)


def _print_standing(document: dict[str, Any]) -> None:
    for thought in document.get("refuted", ()):
        print_note(f"refuted: {thought['thought']}: {thought['reason']}")
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
    print_warnings(result.get("warnings", ()))
    if result["outcome"] not in ("solved", "answered"):
        print_note(f"resume it with: reasonry coach resume {result['run_id']}")
    if result["answer"] is not None:
        print_answer(result["answer"])


def _answer_command(document: dict[str, Any]) -> str:
    """Return the command that answers what is asked, with the places of the answers in capitals."""
    questions, command = document["questions"], f"reasonry coach answer {document['run_id']}"
    if len(questions) == 1 and ".." not in questions[0]["id"]:
        return f"{command} ANSWER"
    listed = ", ".join(f'"{question["id"]}": ANSWER' for question in questions[:3])
    return f"{command} '{{{listed}{', …' if len(questions) > 3 else ''}}}'"
