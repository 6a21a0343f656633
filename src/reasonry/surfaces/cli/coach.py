"""`reasonry coach`: the engine runs the algorithm, whoever sits at the shell answers its questions."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app import App
from ...core.budget import Budget
from ...engine.answers import SHAPE
from ...errors import AnswerRefusedError, UsageError
from ...strategies import DEFAULT_STRATEGY
from .. import present
from .output import print_document, print_line, print_note, print_warnings
from .settings import Common, Equipment, Limits, pairs, run_async, with_app
from .solve import read_problem

Brief = Annotated[bool, Parameter(negative=())]


def start_(
    problem: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    session: str | None = None,
    strategy: str = DEFAULT_STRATEGY,
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
        participants = await app.equip(equipment.participants(), limits.budget())
        whole, session_id = await app.problem_after(text, session)
        return await app.coach_start(
            whole,
            strategy,
            pairs(option),
            limits.budget() or Budget(),
            participants,
            session_id,
            brief=brief,
        )

    return show_coached(work, common, equipment)


def answer_(
    run_id: str,
    /,
    *,
    answers: Path | None = None,
    brief: Brief = False,
    equipment: Equipment = Equipment(),
    common: Common = Common(),
) -> int:
    """Answer questions of a run; reads {"ID": ANSWER, …} from a file or from standard input.

    An ANSWER is text, or data in the form of the question's answerSchema: `{"e1": "42", "e2": {"answer": 7}}`.
    `[{"id": "e1", "answer": "42"}]` will do too. The id of a question that is asked several times (`e1..e5`) takes the
    list of its answers. An answer that cannot be read is refused, with the reason, and its question stays open; the
    others are taken.

    Parameters
    ----------
    run_id
        As `coach start` gave it, how that begins, or `last`.
    answers
        The file with the answers; without it, standard input.
    brief
        As for `coach start`.
    """
    answers_read = _read_answers(answers)

    async def work(app: App) -> dict[str, Any]:
        found = await app.run_id(run_id)
        participants = await app.equip(equipment.participants(), run_id=found)
        return await app.coach_answer(found, answers_read, participants, brief=brief)

    return show_coached(work, common, equipment)


def status_(run_id: str, /, *, brief: Brief = False, common: Common = Common()) -> int:
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


def cancel_(run_id: str, /, *, common: Common = Common()) -> int:
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
    try:
        text = sys.stdin.buffer.read() if path is None else path.read_bytes()
    except OSError as error:
        raise UsageError(f"{place} cannot be read: {error.strerror}", option="answers") from None
    try:
        return json_.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is not JSON: {error}; {SHAPE}", option="answers") from None


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
    heads = (document["runId"], document.get("strategy"), document.get("progress", {}).get("stage"))
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
        print_note(
            f"answer with: reasonry coach answer {document['runId']}, "
            f'and {{"{document["questions"][0]["id"]}": ANSWER, …}} on its standard input'
        )
    if "note" in document:
        print_note(document["note"])


def _print_result(result: dict[str, Any]) -> None:
    print_note(f"{result['status']}: {result['termination']['reason']}  {result['termination']['detail']}")
    print_warnings({"warnings": (), **result})
    if result["answer"] is not None:
        print_line(result["answer"])
