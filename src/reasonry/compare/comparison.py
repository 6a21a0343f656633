"""Comparisons run every strategy on every problem, but do not repeat the runs that the store already has.

Rule 1: the id of a run's session is a digest of the run's request: strategy, problem, options, prompts, budget and
        participants. A comparison finds its existing runs by these ids. The table of trials is only for observers.
Rule 2: a repeated comparison resumes interrupted runs and does not repeat ended runs, so it pays only for the rest.
        Problems and strategies may be added between two calls.
Rule 3: each call judges all answers again, so a change of the judge costs nothing. Only the judge `model` needs runs.
"""

import asyncio
import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import count
from math import inf
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from ..app.app import App
from ..app.composition import read_composition
from ..app.participants import Participants
from ..app.requests import RunRequest, strategies_in
from ..core.budget import Budget
from ..core.effects import Ask, Effect, Verify
from ..core.events import NOTHING, Answered, Event, ToolReturned, Usage, Verified
from ..core.registry import strategy_names
from ..engine.drive import drive_run
from ..engine.journal import Begun, Settled
from ..engine.observer import Observer
from ..engine.policy import Performers
from ..engine.prices import check_priced
from ..engine.result import Result
from ..engine.run import Run
from ..engine.usage import estimate_tokens
from ..errors import NotFoundError, ReasonryError, UsageError
from ..reading.vote import normalise
from ..records import COMPARISON, RunRow
from ..strategies import SHORT_ANSWER
from ..strategies.choice import AUTO
from ..text import display_line
from .grading import Item, check_items
from .problem_set import ProblemSet, find_judge
from .recorded_table import check_all_asked
from .standings import Report, Trial, failure_of, trial_of
from .trial_table import ENDED, TrialTable

JUDGED_CHARS = 4_000
"""The most characters of an answer that the judge `model` sees."""

REPLY_TOKENS = 200
"""The fewest tokens that an estimate assumes for a reply."""

VERDICT = """Problem: {problem}

{expected}Answer given: {answer}

Is the answer given right? It may be worded otherwise. Answer with one word: yes or no."""


class Job(NamedTuple):
    """A run that a comparison needs. The session of the first attempt has the id `key`."""

    item: Item
    strategy: str
    order: Begun
    performers: Performers
    participants: Participants
    key: str


class Spending(Observer):
    """Adds up the usage of a comparison's runs. It also tells the user about delayed retries."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note, self._ended = note, NOTHING
        self._open: dict[str, tuple[Run, Usage]] = {}
        """The runs that are active or were cut off, each with its usage when its drive began."""

    def began(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
        self._open[run_id] = run, run.usage

    def ended(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
        self._ended += _difference(run.usage, self._open.pop(run_id)[1])

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        if delay_s >= 1:
            self._note(f"{reason}; again in {delay_s:.0f} s")

    @property
    def spent(self) -> Usage:
        """The usage of all runs since this object was made, including runs that have not ended."""
        running = (_difference(run.usage, before) for run, before in self._open.values())
        return sum(running, self._ended)


def check_strategies(names: Iterable[str], app: App) -> list[str]:
    """Return the canonical names of the strategies to compare. `auto` is also a valid name.

    Raises:
        UsageError: No strategy is named, or a strategy is unknown or named twice.
    """
    checked: list[str] = []
    for name in filter(None, map(str.strip, names)):
        written = read_composition(name)
        checked.append(AUTO if name.lower() == AUTO else written.spell(app.strategy(written.name).name))
        if checked[-1] in checked[:-1]:
            raise UsageError(f"--strategies names {checked[-1]} twice", option="strategies")
    if not checked:
        choices = [*strategy_names(app.strategies), AUTO]
        message = "name the strategies: --strategies takes names with commas between them"
        raise UsageError(message, option="strategies", choices=choices)
    return checked


class Comparison:
    """A comparison of strategies on problems. The store of the app keeps the runs.

    Args:
        strategies: Names returned by `check_strategies`.
        request: The request for each run, except the problem and the strategy. Its prompts must fit every strategy.
        judge: A value of `--judge`. If empty, the data set's judge is used. If the data set has none, `exact` is used.
        series: A name for this series of runs. A new name runs everything again and keeps the earlier runs.
        retry_failed: Whether to repeat runs and verdicts that failed because of a provider or a tool.
        total_usd: The limit on the spending of this call, in US dollars. At the limit, no more runs start.
        note: Called with a line of text about the result of each run, and about the reason for each delay.

    Raises:
        UsageError: A problem, a strategy or the judge is invalid. Nothing was run.
    """

    def __init__(
        self,
        app: App,
        problems: ProblemSet,
        strategies: Sequence[str],
        request: RunRequest,
        *,
        judge: str = "",
        parallel: int = 4,
        series: str = "",
        retry_failed: bool = False,
        total_usd: float | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.app, self.engine, self.note, self.spending = app, app.engine, note, Spending(note)
        self.series, self.retry_failed, self.total_usd = series, retry_failed, total_usd
        self.strategies, self.problems = list(strategies), problems
        self.judged_by = judge or (problems.name if problems.judge else "exact")
        self.judge = problems.judge if problems.judge and not judge else find_judge(self.judged_by)
        check_items(problems.items, self.judged_by)
        self.request, participants = request, request.participants
        if participants.model is None:
            # Look up the model in the environment once for all runs.
            performers = app.pool.open(participants, problems.items[0].problem)
            self.request = structs.replace(
                request, participants=structs.replace(participants, model=performers.model)
            )
        self.jobs = list(self._plan_jobs())
        if total_usd is not None:
            working = [self.jobs[0].performers]
            if self.judge is None:
                working.append(app.pool.open(self._judging_participants(), self.jobs[0].order.problem))
            for performers in working:
                check_priced("total_usd", performers.models, performers.prices)
        self.trials: dict[tuple[str, str], Trial] = {}
        self.reused = 0
        self._slots = asyncio.Semaphore(parallel)
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)

    def _plan_jobs(self) -> Iterator[Job]:
        seen = Counter[str]()
        for item in self.problems.items:
            for strategy in self.strategies:
                request = structs.replace(self.request, problem=item.problem, strategy=strategy)
                try:
                    yield self._plan_job(item, strategy, request, seen[item.problem])
                except UsageError as error:
                    message = f"problem {item.id}: {error.message}"
                    raise UsageError(message, code=error.code, **error.details) from error
            seen[item.problem] += 1

    def _plan_job(self, item: Item, strategy: str, request: RunRequest, same: int = 0) -> Job:
        """Return the job for a problem and a strategy.

        Args:
            same: How many earlier problems of the data set are equal to this problem.
        """
        order, performers = self.app.order(request)
        if order.options.get("solvers") == 0:
            message = (
                f"{strategy} tests the claims of a text and answers no question: name it with (solvers=2)"
            )
            raise UsageError(message, option="strategies")
        participants = order.participants
        if order.budget.usd is None:
            # Without a cost limit, prices do not change a run.
            participants = structs.replace(participants, price=())
        asked = (order.strategy, order.problem, order.options, order.prompts, order.budget)
        digest = hashlib.sha256(msgspec.json.encode((*asked, participants, same, self.series)))
        key = f"compare-{digest.hexdigest()[:32]}"
        return Job(item, strategy, order, performers, request.participants, key)

    @property
    def id(self) -> str:
        """The id of this comparison's table. Comparisons with the same data set, judge and runs share a table."""
        asked = (self.problems.name, self.judged_by, [job.key for job in self.jobs])
        return COMPARISON + hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:16]

    def report(self) -> Report:
        """Return the report with the results so far."""
        order = self.jobs[0].order
        facts = {
            "kind": "comparison",
            "id": self.id,
            "dataset": self.problems.name,
            "seed": self.problems.seed,
            "level": self.problems.level,
            "judge": self.judged_by,
            "series": self.series,
            "model": order.participants.model,
            "judge_model": order.participants.judge_model,
            "verifier": order.participants.verifier,
            "budget": msgspec.to_builtins(order.budget),
            "max_output_tokens": self.engine.policy.max_output_tokens,
            "options": {job.strategy: job.order.options for job in self.jobs},
            "reasonry": metadata.version("reasonry"),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        return Report(
            facts=facts,
            strategies=self.strategies,
            items=self.problems.items,
            keys=[job.key for job in self.jobs],
            found=self.trials,
            reused=self.reused,
            spent=self.spending.spent,
        )

    async def missing(self) -> list[Job]:
        """Return the jobs whose runs do not exist or have not ended."""
        found = [(job, (await self._find(job.key))[0]) for job in self.jobs]
        return [job for job, row in found if row is None or row.status not in ENDED]

    async def run(self) -> Report:
        """Run the missing jobs, judge all answers, and return the report.

        Raises:
            ReasonryError: The store cannot be used, or another process drives one of the runs.
            ModelError: `script_left_over`: the complete comparison did not ask every question of a recording.
            asyncio.CancelledError: The caller was cancelled; `report` has the results so far.
        """
        table = TrialTable(self.engine.store, self.id)
        await table.begin(self.report())
        written = (await table.read()).found
        try:
            async with asyncio.TaskGroup() as group:
                for job in self.jobs:
                    group.create_task(self._do(job, table, written))
        except* ReasonryError as errors:
            raise errors.exceptions[0] from None
        report = self.report()
        if report.complete and self.judge is not None:
            await check_all_asked(self.engine, report, self.jobs[0].performers.models)
        return report

    # -- one run

    async def _do(self, job: Job, table: TrialTable, written: Mapping[tuple[str, str], Trial]) -> None:
        async with self._slots, self._locks[job.key]:
            result = await self._result(job, is_counted=True)
            trial = await self._judge(job, result) if result else None
        if trial is None:
            return
        if written.get((trial.item, trial.strategy)) != trial:
            await table.add(trial)
        self.trials[trial.item, trial.strategy] = trial
        came = f"{trial.strategy} · {trial.item}: {display_line(trial.verdict, 73)}"
        self.note(f"{len(self.trials)}/{len(self.jobs)} {came}")

    async def _result(self, job: Job, *, is_counted: bool = False) -> Result | None:
        """Return the result of a job, and run the job if necessary. None if the spending limit prevents the run."""
        row, session_id = await self._find(job.key)
        if row is not None and row.status in ENDED:
            self.reused += is_counted
            return await self.engine.result(row.run_id)
        if self.total_usd is not None and (self.spending.spent.usd or 0) >= self.total_usd:
            return None
        if row is not None:
            return await self.app.resume(row.run_id, job.participants, observer=self.spending)
        async with self.engine.begin(job.order, job.performers, session_id=session_id) as opened:
            return await drive_run(opened, job.performers, self.spending)

    async def _find(self, key: str) -> tuple[RunRow | None, str]:
        """Return the latest run for a key (None if a new run is needed), and the session id that a new run gets."""
        found, session_id = "", key
        for attempt in count(2):
            try:
                found = (await self.engine.store.session(session_id)).run_id or ""
            except NotFoundError:
                break
            session_id = f"{key}-{attempt}"
        if not found:
            return None, session_id
        opened = await self.engine.read(found) if self.retry_failed else None
        is_again = opened is not None and failure_of(opened.result, opened.run)
        return None if is_again else await self.engine.store.run(found), session_id

    # -- judging

    async def _judge(self, job: Job, result: Result) -> Trial | None:
        """Return the judged trial of a run. None if the spending limit prevents the judgment."""
        run = (await self.engine.read(result.run_id)).run
        trial = trial_of(job.item, job.strategy, run, result, self.judge)
        if self.judge is not None or trial.answer is None:
            return trial
        judging = await self._ask_judge(job.item, trial.answer)
        if judging is None:
            return None
        right = {"yes": True, "no": False}.get(normalise(judging.answer or "").text)
        code = failure_of(judging, (await self.engine.read(judging.run_id)).run)
        return structs.replace(trial, right=right, code=code)

    def _judging_participants(self) -> Participants:
        named = self.request.participants
        return Participants(model=named.judge_model or named.model, price=named.prices)

    async def _ask_judge(self, item: Item, answer: str) -> Result | None:
        """Ask the judge model for yes or no, and return the result. If the spending limit is reached, return None."""
        expected = "" if item.expected is None else f"Right answer: {item.expected}\n\n"
        strategy, options = SHORT_ANSWER
        request = RunRequest(
            problem=VERDICT.format(problem=item.problem, expected=expected, answer=answer[:JUDGED_CHARS]),
            strategy=strategy,
            options={**options, "temperature": 0.0},
            budget=Budget(),
            participants=self._judging_participants(),
        )
        job = self._plan_job(item, strategy, request)
        async with self._locks[job.key]:
            return await self._result(job)


def _difference(after: Usage, before: Usage) -> Usage:
    was, now = structs.asdict(before), structs.asdict(after)
    taken: dict[str, Any] = {
        name: None if count is None else count - (was[name] or 0) for name, count in now.items()
    }
    return Usage(**taken)


# -- the estimate: each strategy is rehearsed once, with the example replies of its stages. No model, tool, verifier or
# store is used: the machine is told that every final answer is right and that every tool returns an empty text. The
# estimate cannot know how long a real model thinks and when the model finds the answer.


async def estimate(comparison: Comparison) -> tuple[int, Usage]:
    """Return how many runs are missing, and an estimate of their usage."""
    missing = await comparison.missing()
    orders = {job.strategy: job.order for job in missing}
    rehearsed = {name: _rehearse(comparison.app, order) for name, order in orders.items()}
    total = sum((rehearsed[job.strategy] for job in missing), NOTHING)
    if comparison.judge is None:
        total += Usage(len(missing), total.input_tokens // max(1, total.calls) * len(missing))
    performers, usd = comparison.jobs[0].performers, 0.0
    if missing and not getattr(performers.model, "is_free", False):
        usd = performers.prices.price_of(performers.model)(total.input_tokens, total.output_tokens, 0)
    return len(missing), structs.replace(total, usd=usd)


def _rehearse(app: App, order: Begun) -> Usage:
    """Return the usage of a simulated run in which each question gets the example reply of its stage."""
    stages = [
        stage for strategy in reversed(strategies_in(order, app.strategies)) for stage in strategy.stages
    ]
    shown = {stage.name: dict(stage.example) for stage in stages if stage.example}
    run, limit = Run(order, app.strategies), order.budget.calls or inf
    while run.open_effects and run.usage.calls < limit:
        asked = run.open_effects[0]
        run.take(Settled(asked.id, _answer(asked.effect, shown.get(asked.stage, {"answer": "4"}))))
    return run.usage


def _answer(effect: Effect, shown: Mapping[str, Any]) -> Event:
    if isinstance(effect, Verify):
        return Verified("right" if effect.final else "unknown")
    if not isinstance(effect, Ask):
        return ToolReturned("")
    reply = msgspec.json.encode(shown).decode()
    tokens = max(REPLY_TOKENS, estimate_tokens(reply))
    return Answered(reply, usage=Usage(input_tokens=estimate_tokens(effect.text), output_tokens=tokens))
