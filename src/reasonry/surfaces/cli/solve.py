"""`reasonry solve` and `reasonry select`: start a run, show it live, and print its answer."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...app.app import App
from ...app.requests import RunRequest, explain_choice
from ...engine.drive import drive_run
from ...engine.journal import CALLER
from ...engine.open_run import OpenRun
from ...engine.policy import Performers
from ...engine.result import Result
from ...strategies import DEFAULT_STRATEGY, SELECTOR
from ...text import display_line
from .. import present
from ..run_report import outline
from .output import print_note
from .pages import check_report, write_report
from .parameters import Context, Criteria, Options, Problem, Prompts, Strategy, Text, read_pairs, read_text
from .settings import AnswerSettings, Limits, RunSettings, Shown

_FINAL_REFUSALS = ("model_refused", "script_exhausted", "context_overflow")


def solve(
    problem: Problem = None,
    /,
    *,
    strategy: Strategy = DEFAULT_STRATEGY,
    option: Options = (),
    session: Context = None,
    prompt: Prompts = (),
    report: Path | None = None,
    explain: bool = False,
    shown: Shown = Shown(),
    settings: RunSettings = RunSettings(),
) -> int:
    """Solve a problem.

    Args:
        report: Also write a report of the run to this file: FILE.md or FILE.html.
        explain: Show which strategy `auto` chooses for the problem and why, and run nothing.
    """
    check_report(report)
    text = read_problem(problem)
    if explain:
        request = settings.request(text, DEFAULT_STRATEGY, option)
        explained = explain_choice(request, settings.common.strategies())
        return settings.common.show(explained, "{strategy} ({why})".format(**explained))

    return _solve(settings.request(text, strategy, option, session, prompt), report, shown, settings)


def _solve(request: RunRequest, report: Path | None, shown: Shown, settings: RunSettings) -> int:

    async def work(app: App) -> tuple[Result, bool]:
        order, performers = await app.receive(request)
        if not settings.common.as_data:
            print_note(*(f"warning: {warning}" for warning in order.warnings))
        async with app.engine.begin(order, performers) as opened:
            ending = await drive_shown(opened, performers, settings, shown, app.pool.model_why)
        if report is not None:
            write_report(report, opened.record, app.strategies)
        return ending

    return show_result(*settings.do(work), settings, shown)


def select(
    *files: Text,
    problem: Text | None = None,
    criteria: Criteria = (),
    option: Options = (),
    report: Path | None = None,
    shown: Shown = Shown(),
    settings: RunSettings = RunSettings(),
) -> int:
    """Compare texts that exist already, and print the best one.

    If there is a verifier, it checks all texts first. A judge compares the texts not proved wrong. No text is written.

    Args:
        files: The files of the candidates, at most 64.
        problem: The task that the texts should solve; `-` reads it from standard input.
        report: Also write a report of the run to this file: FILE.md or FILE.html.
    """
    check_report(report)
    sentences = read_pairs(criteria, "criteria", "NAME=SENTENCE")
    texts = {file: read_text(file, "files") for file in files}
    request = settings.request(read_problem(problem), SELECTOR, option)
    request = replace(request, options={**request.options, "candidates": texts, "criteria": sentences})
    return _solve(request, report, shown, settings)


async def drive_shown(
    opened: OpenRun, performers: Performers, settings: AnswerSettings, shown: Shown, why: str = ""
) -> tuple[Result, bool]:
    """Drive a run and show its progress. Return the result, and whether a signal interrupted the run.

    Args:
        why: The reason why the default model was chosen, if the user named no model.
    """
    from .watch import watching

    is_interrupted = False
    with watching(settings.common.as_data, why, full=shown.full) as watch:
        try:
            await drive_run(opened, performers, watch)
        except asyncio.CancelledError:
            is_interrupted = True
    performers.check_used(opened.run)
    return opened.result, is_interrupted


def show_result(result: Result, is_interrupted: bool, settings: AnswerSettings, shown: Shown) -> int:
    """Print a result as JSON or as text for people. Return the exit code."""
    document = result.document()
    settings.common.show(document, lambda: print_result(document, shown, settings.options_again()))
    return present.EXIT_CODES["cancelled"] if is_interrupted else present.exit_code_of(document)


def print_result(document: dict[str, Any], shown: Shown = Shown(), repeated: str = "") -> None:
    """Print a result. The answer goes to standard output, and everything else to standard error.

    Args:
        repeated: The options that a later command on the same run must repeat, as a part of a command line.
    """
    from .draw import print_answer, print_blocks

    blocks = outline(document)
    print_blocks(blocks, sys.stderr)
    if blocks:
        print_note("")
    if why := document.get("why"):
        print_note(f"why: {why['text']}")
    print_note(present.end_text(document))
    if "usage" in document:
        print_note(f"{present.spend(document)} · run {document['run_id']}")
    print_note(*(f"warning: {warning}" for warning in document.get("warnings", ())))
    best = document.get("best_answer")
    if best and not shown.partial:
        print_note(f"best so far, not an answer (--partial prints it whole): {display_line(best, 400)}")
    if document["outcome"] in ("stopped", "error") and document["termination"].get("code") != "stage_error":
        print_note(f"resume with: {resume_command(document, repeated)}")
    answer = best if document["answer"] is None and shown.partial else document["answer"]
    if answer is not None:
        print_answer(answer)


def resume_command(document: Mapping[str, Any], repeated: str = "") -> str:
    """Return the command that resumes a run. If a limit must be raised, the command has a part like `--max-calls N`."""
    end = document["termination"]
    reason = end["reason"]
    changed = f" --{reason.replace('_', '-')} N" * hasattr(Limits, reason)
    # The same model would refuse the same question again.
    changed = " --model NAME" if end.get("code") in _FINAL_REFUSALS else changed
    coach = " --coach" * (document["model"] == CALLER)
    return f"reasonry runs resume {document['run_id']}{coach}{repeated}{changed}"


def read_problem(problem: str | None) -> str | None:
    """Return the problem. If `problem` is `-`, read the problem from standard input."""
    return problem if problem != "-" else read_text("-", "problem").rstrip("\n")
