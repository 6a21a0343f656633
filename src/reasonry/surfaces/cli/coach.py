"""`reasonry coach`: the engine runs a strategy, and the user answers the strategy's questions in the shell."""

import json as json_
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec.structs import replace

from ...app.app import App
from ...app.runs import coach_answer, coach_start
from ...engine.coach import Coach
from ...engine.coach_input import SHAPE
from ...engine.journal import CALLER
from ...errors import AnswerRefusedError, UsageError
from ...strategies import DEFAULT_STRATEGY, REFUTER
from .. import present
from .output import print_line, print_note
from .parameters import Context, Options, Problem, Prompts, RunId, Strategy, read_text
from .settings import AnswerSettings, CoachSettings, Common, OutputOptions
from .solve import print_result, read_problem

Brief = Annotated[
    bool,
    Parameter(
        help="Refer to texts that were shown before, rather than repeat them; equal questions come as one."
    ),
]
Claims = Annotated[tuple[str, ...], Parameter(help="A claim to refute; may be repeated.")]


def start_(
    problem: Problem = None,
    /,
    *,
    strategy: Strategy = DEFAULT_STRATEGY,
    option: Options = (),
    session: Context = None,
    prompt: Prompts = (),
    brief: Brief = False,
    settings: CoachSettings = CoachSettings(),
) -> int:
    """Start a run whose questions you answer."""
    request = settings.request(read_problem(problem), strategy, option, session, prompt)
    return show_coached(settings.do(lambda app: coach_start(app, request, brief=brief)), settings.common)


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

    Give each question to a reader that has not seen the other questions, such as a sub-agent or another model. Each
    claim is then confirmed, refuted or undecided, with the place and the reason. The session's next reply repeats this.
    """
    request = settings.request(read_problem(plan), REFUTER, (), session)
    request = replace(request, options={"claims": list(claim)} if claim else {})
    return show_coached(settings.do(lambda app: coach_start(app, request, brief=brief)), settings.common)


def answer_(
    run_id: RunId,
    answer: str | None = None,
    /,
    *,
    brief: Brief = False,
    settings: AnswerSettings = AnswerSettings(),
) -> int:
    """Answer questions of a run. If you omit ANSWER, the answers are read from standard input.

    Answer several questions with `{"ID": ANSWER, …}`. Each ANSWER is text, or data that fits the question's
    answer_schema: `{"e1": "42", "e2": {"answer": 7}}`. `{"answers": [{"id": "e1", "answer": "42"}]}` works too. If only
    one question is open, give the answer alone: `42`, plain text, or data. For a question that is asked several times
    (`e1,e2`), give a list of answers. An unreadable answer is refused with the reason, and its question stays open; the
    other answers are recorded.

    Args:
        answer: The answers, in any of these forms.
    """
    if answer is None and sys.stdin.isatty():
        print_note("Type the answers; end with Ctrl-D on a line of its own (on Windows Ctrl-Z and Enter).")
    place = "standard input" if answer is None else "ANSWER"
    read = _parse_answers(read_text("-", "answers") if answer is None else answer, place)

    async def work(app: App) -> dict[str, Any]:
        found = await app.run_id(run_id)
        return await coach_answer(app, found, read, settings.participants(), brief=brief)

    try:
        return show_coached(settings.do(work), settings.common)
    except AnswerRefusedError as error:
        if not settings.common.as_data:
            _print_status(error.status)
        raise


def status_(run_id: RunId, /, *, brief: Brief = False, common: Common = Common()) -> int:
    """Show the state of a run and its open questions."""
    _, document = common.do_on_run(run_id, lambda app, run_id: Coach(app.engine, brief=brief).status(run_id))
    show_coached(document, common)
    return 0


def _parse_answers(text: str, place: str) -> Any:
    """Parse answers as JSON. A text that does not look like JSON counts as a single answer."""
    if not text.strip():
        raise UsageError(f"there are no answers in {place}; {SHAPE}", option="answers")
    try:
        return json_.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip()[0] in '{["':
            raise UsageError(f"{place} is not JSON: {error}; {SHAPE}", option="answers") from None
        return text.strip()


def show_coached(document: dict[str, Any], output: OutputOptions) -> int:
    """Show the state of a coached run, and return the exit code."""
    output.show(document, lambda: _print_status(document))
    result = document.get("result")
    return 0 if result is None else present.exit_code_of(result)


def _print_status(document: dict[str, Any]) -> None:
    for thought in document.get("refuted", ()):
        print_note(f"refuted: {thought['thought']}: {thought['reason']}")
    if "result" in document:
        print_result({"model": CALLER, **document["result"], "run_id": document["run_id"]})
        return
    heads = (document["run_id"], document.get("strategy"), document.get("progress", {}).get("stage"))
    print_note("run " + " · ".join(filter(None, heads)))
    for text_id, text in document.get("shared", {}).items():
        if isinstance(text, str):
            print_line(f"--- #{text_id}", text)
    for question in document["questions"]:
        notes = [question["note"]] if "note" in question else []
        print_line(f"--- {question['id']} ({question['stage']})", question["prompt"], *notes)
    questions, command = document["questions"], f"reasonry coach answer {document['run_id']}"
    if len(questions) == 1 and "," not in questions[0]["id"]:
        print_note(f"answer with: {command} ANSWER")
    elif questions:
        ids = [question["id"] for question in questions[:3]]
        listed = ", ".join(f'"{name}": {"[ANSWER, …]" if "," in name else "ANSWER"}' for name in ids)
        print_note(f"answer with: {command} '{{{listed}{', …' if len(questions) > 3 else ''}}}'")
    if questions and (members := questions[0].get("answer_schema", {}).get("properties")):
        data = ", ".join(f'"{name}": …' for name in members)
        print_note(f"an ANSWER is text, or data such as {{{data}}}")
    if "note" in document:
        print_note(document["note"])
