"""`reasonry compare`: compares strategies on a user's own problems, or on a data set."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import structs

from ...app.app import App
from ...app.composition import split_outside
from ...compare.comparison import Comparison, check_strategies, estimate
from ...compare.grading import read_dataset
from ...compare.problem_set import ProblemSet, find_judge, open_dataset
from ...compare.recorded_table import recorded_table, score_again
from ...compare.standings import Report, cost_of, standings
from ...core.budget import Budget
from ...core.events import Usage
from ...errors import UsageError
from .. import present
from .output import Column, check_writable, confirm, print_note, print_table, write_text
from .parameters import Amount, Count, Prompts, WholeNumber, read_text
from .settings import Common, RunSettings


def compare(
    file: Path | None = None,
    /,
    *,
    dataset: str | None = None,
    seed: WholeNumber = 1,
    level: Literal[1, 2, 3] = 1,
    strategies: str | None = None,
    prompt: Prompts = (),
    judge: str | None = None,
    limit: Count | None = None,
    parallel: Count = 4,
    series: str = "",
    retry_failed: bool = False,
    total_usd: Amount | None = None,
    rescore: Path | None = None,
    yes: bool = False,
    settings: RunSettings = RunSettings(),
) -> int:
    """Run strategies on your own problems or a data set and see which strategy is worth its cost.

    The store keeps every run. If the comparison is interrupted, run the same command again to continue.

    Args:
        file: A file with one JSON object per line: {"problem": …, "answer": …, "id": …}; answer and id are optional.
        dataset: A data set instead of a file: NAME:SIZE from `reasonry datasets`, or gym/NAME:SIZE. Default size: 30.
        seed: Seed of the data set; another seed produces other problems.
        level: Level of difficulty of the data set, from 1 (the easiest) to 3.
        strategies: Strategies, separated by commas; auto is allowed. Write options and an inner strategy in
            parentheses: best_of_n(react, n=5). Default: the strategies that suit the data set.
        judge: How to judge answers: exact (the answers are equal), numeric (the last numbers are equal),
            arithmetic:TARGET, or model (asks the judge model). Default: the judge of the data set; for a file, exact.
        limit: How many problems to use, from the start of the file or data set.
        parallel: How many runs to drive at once. --max-… limits apply to each run (default for data sets: 30 calls).
        series: A name for this series of runs; with a new name, all runs start again.
        retry_failed: Repeat runs and verdicts that failed because of a provider or a tool.
        total_usd: Start no more runs once this command has spent this many dollars.
        rescore: A file that --record wrote. Its table is computed again, without a model and at no cost.
        yes: Do not ask before spending money.
    """
    record = Path(settings.record) if settings.record else None
    if record is not None:
        check_writable(record)
    if rescore is not None:
        if (file, dataset, record) != (None, None, None):
            raise UsageError("--rescore takes a recorded table and nothing else", option="rescore")
        return _show(score_again(str(rescore), settings.common.strategies()), settings.common)
    problems = _open_problems(file, dataset, seed, level, limit)
    is_told = sys.stderr.isatty() or not settings.common.as_data
    note: Callable[..., None] = print_note if is_told else lambda *lines: None

    async def work(app: App) -> tuple[Report, bool] | None:
        names = check_strategies(split_outside(strategies or problems.strategies), app)
        asked = settings.request(None, "", (), prompts=prompt)
        budget = asked.budget or (Budget() if dataset is None else None)
        tools = (*asked.participants.tools, *problems.tools)
        participants = structs.replace(asked.participants, tools=tools, record=None)
        participants = await app.equip(participants, budget, shared=True)
        asked = structs.replace(asked, budget=budget, participants=participants)
        comparison = Comparison(
            app,
            problems,
            names,
            asked,
            judge=(judge or "").strip(),
            parallel=parallel,
            series=series,
            retry_failed=retry_failed,
            total_usd=total_usd,
            note=note,
        )
        if record is not None and find_judge(comparison.judged_by) is None:
            message = f"the judge {comparison.judged_by} cannot judge a recorded table again"
            raise UsageError(f"{message}: use --judge exact or numeric", option="judge")
        runs, taken = await estimate(comparison)
        note(*_describe_start(comparison, runs, taken))
        if taken.usd and not yes and confirm("Run them?") is False:
            return None
        try:
            report = await comparison.run()
            if record is not None and report.complete:
                write_text(record, await recorded_table(app.engine, report))
            return report, False
        except asyncio.CancelledError:
            return comparison.report(), True

    outcome = settings.do(work)
    if outcome is None:
        print_note("nothing was run")
        return present.EXIT_CODES["cancelled"]
    report, is_interrupted = outcome
    return _show(report, settings.common, is_interrupted=is_interrupted)


def _show(report: Report, common: Common, *, is_interrupted: bool = False) -> int:
    whole = report.document()
    common.show(whole, lambda: _print_report(report, whole))
    if is_interrupted:
        return present.EXIT_CODES["cancelled"]
    if not report.complete:
        return present.EXIT_CODES["budget_exceeded"]
    for name in report.strategies:
        codes = [trial.code for trial in report.trials if trial.strategy == name]
        # If a strategy failed for external reasons on every problem, exit with the code of its last failure.
        if codes[-1] is not None and None not in codes:
            return present.exit_code(codes[-1])
    return 0


def _open_problems(
    file: Path | None, dataset: str | None, seed: int, level: int, limit: int | None
) -> ProblemSet:
    if (file is None) == (dataset is None):
        raise UsageError("name either a file of problems or --dataset NAME:SIZE", option="dataset")
    if dataset is not None:
        problems = open_dataset(dataset, seed, level)
    else:
        problems = ProblemSet(str(file), read_dataset(read_text(str(file), "dataset"), str(file)))
    return structs.replace(problems, items=problems.items[:limit])


def _describe_start(comparison: Comparison, runs: int, taken: Usage) -> Iterator[str]:
    model, why = comparison.jobs[0].order.participants.model, comparison.app.pool.model_why
    size = (
        f"{present.count_of(len(comparison.problems.items), 'problem')} × {', '.join(comparison.strategies)}"
    )
    yield f"{size} · model {model}{f' ({why})' if why else ''} · judge {comparison.judged_by}"
    if runs:
        costs = "at an unknown price" if taken.usd is None else f"about ${taken.usd:.2f}"
        rough = f"about {taken.calls:,} calls and {taken.tokens:,} tokens"
        yield f"{present.count_of(runs, 'run')} to go: {rough}, {'at no cost' if taken.usd == 0 else costs}"
        yield f"`reasonry serve --open` shows the table as it fills, at #/comparisons/{comparison.id}"


_COLUMNS = (
    Column("STRATEGY", lambda row: row.strategy),
    Column("FRONT", lambda row: "*" * row.front),
    Column(
        "RIGHT",
        lambda row: (
            f"{row.right}/{row.runs}"
            + f" ({row.unjudged} ?)" * (row.unjudged > 0)
            + f" ({row.thin} thin)" * (row.thin > 0)
        ),
        align_right=True,
    ),
    Column("ACCURACY", lambda row: f"{row.accuracy:.0%}", align_right=True),
    Column("95 %", lambda row: f"{row.low:.0%}–{row.high:.0%}", align_right=True),
    Column("CALLS", lambda row: f"{row.calls:.1f}", align_right=True),
    Column("TOKENS", lambda row: f"{row.tokens:,.0f}", align_right=True),
    Column("$", lambda row: _format(row.usd, ".4f"), align_right=True),
    Column("AGAINST DIRECT", lambda row: row.gain and row.gain.cost),
    Column("SAMPLES", lambda row: f"{row.samples:.1f}", align_right=True),
    Column("IN FORM", lambda row: _format(row.in_form, ".0%"), align_right=True),
    Column("ROUNDS", lambda row: f"{row.rounds:.1f}", align_right=True),
    Column("ANY", lambda row: _format(row.any_accuracy, ".0%"), align_right=True),
    Column("SECONDS", lambda row: _format(row.seconds, ".2f"), align_right=True),
    Column("UP", lambda row: None if row.share_up is None else f"{row.share_up:.0%}", align_right=True),
)


def _format(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _print_report(report: Report, whole: Mapping[str, Any]) -> None:
    rows, runs, spent = standings(report.trials, report.strategies), whole["runs"], report.spent
    print_table(_COLUMNS, rows, is_headed=True)
    cost = {"usd": "dollars", "calls": "calls"}[cost_of(rows)]
    there = f"{runs['there']} of {runs['wanted']} runs done, {runs['reused']} of them reused"
    took = present.count_of(spent.calls, "call") + (f", ${spent.usd:.4f}" if spent.usd else "")
    rest = "" if report.complete else "; the same command continues from here"
    notes = (
        f"Means per run. * = best trade-off: nothing else is as accurate with fewer {cost}, or more accurate "
        "with as many.",
        *["thin = votes in which no two agreed, so the first counts"] * any(row.thin for row in rows),
        *["SECONDS need runs one at a time: --parallel 1"] * any(row.seconds is None for row in rows),
        *whole["findings"],
        f"{there}; this command made {took}{rest}",
    )
    print_note(*notes)
