"""Comparisons: every strategy on every problem, each as a run of its own, found again by what was asked for.

Rule 1: a run is known by its question: strategy, problem, options, budget, participants. Its session's id is made from
        these, so the store itself says which runs are there already. The table of trials is for those who look on.
Rule 2: what has ended is not run again, what was interrupted is continued, so a comparison that is called again pays
        only for what is missing. Problems and strategies may be added between two calls.
Rule 3: answers are judged when a comparison is called, so another judge costs nothing; only the judge `model` has runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ..app.participants import Participants
from ..app.use_cases import RunRequest
from ..app.wiring import App
from ..core.budget import NOTHING, Budget, Usage
from ..core.composition import read_composition
from ..core.registry import strategy_names
from ..engine.engine import Order
from ..engine.follow import Observer
from ..engine.named_prices import check_priced, dollar_limit, prices_of
from ..engine.policy import Performers
from ..engine.result import Result
from ..errors import NotFoundError, ReasonryError, UsageError
from ..reading.vote import normalise
from ..strategies import SHORT_ANSWER
from ..strategies.choice import AUTO
from .judging import Item, Judge, candidates_of, check_items, judged_answer
from .problem_set import find_judge
from .standings import ComparisonPlan, Report, Trial
from .trial_table import ENDED, PREFIX, TrialTable

JUDGED_CHARS = 4_000
"""How much of an answer the judge `model` is shown."""

VERDICT = """Problem: {problem}

{expected}Answer given: {answer}

Is the answer given right?{hint} Answer with one word: yes or no."""


class Terms(Struct, frozen=True, kw_only=True):
    """How a comparison goes.

    Args:
        budget: Of each run.
        prompts: What stages ask in place of their strategy's words, by `STRATEGY.STAGE`; each strategy must have them.
        dataset: What the problems are called.
        judge: As a user writes it after `--judge`, or the data set whose own judge it is.
        parallel: Runs at once.
        series: Another name runs everything again beside what is there.
        retry_failed: Run once more what failed because the world did: a provider, a tool. Verdicts too.
        total_usd: No run is begun once this call has spent so much.
    """

    budget: Budget = Budget()
    prompts: Mapping[str, str] = {}
    dataset: str = ""
    judge: str = "exact"
    parallel: int = 4
    series: str = ""
    retry_failed: bool = False
    total_usd: float | None = None


class Wanted(NamedTuple):
    """One run that is wanted; its session's id is the key."""

    order: Order
    performers: Performers
    participants: Participants
    key: str


class Job(NamedTuple):
    """One strategy on one problem."""

    item: Item
    strategy: str
    run: Wanted


def check_strategies(names: Iterable[str], app: App) -> list[str]:
    """Return the names of strategies to compare, each as the registry writes it; `auto` is one.

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
        message = "--strategies takes names with commas between them"
        raise UsageError(message, option="strategies", choices=choices)
    return checked


class Comparison:
    """One comparison over the store of an app.

    Args:
        strategies: Names as `check_strategies` returns them.
        on_trial: Called after every run, with how many are there and how many are wanted.
        judge: Of the data set; None: that of the terms.

    Raises:
        UsageError: A problem, a strategy or the judge is not valid; nothing was run.
    """

    def __init__(
        self,
        app: App,
        items: Sequence[Item],
        strategies: Sequence[str],
        participants: Participants,
        terms: Terms,
        on_trial: Callable[[Trial, int, int], None] = lambda trial, done, wanted: None,
        observer: Observer | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.app, self.engine, self.terms, self.on_trial = app, app.engine, terms, on_trial
        self.observer = observer or Observer()
        self.strategies, self.items = list(strategies), list(items)
        self.judge = judge or find_judge(terms.judge)
        check_items(items, terms.judge)
        self.participants = _settle_model(app, participants, items[0].problem)
        self.jobs = list(self._plan_jobs())
        if terms.total_usd is not None:
            self._check_priced()
        self.trials: dict[tuple[str, str], Trial] = {}
        self.reused = 0
        self.spent = NOTHING
        """By what has ended, or was cut off."""
        self._open: dict[str, Usage] = {}
        """The sessions of what is being run, and what each had spent before."""
        self._slots = asyncio.Semaphore(terms.parallel)
        self._locks: dict[str, asyncio.Lock] = {job.run.key: asyncio.Lock() for job in self.jobs}

    def _plan_jobs(self) -> Iterator[Job]:
        seen = Counter[str]()
        for item in self.items:
            for strategy in self.strategies:
                request = RunRequest(
                    problem=item.problem,
                    strategy=strategy,
                    budget=self.terms.budget,
                    participants=self.participants,
                    prompts=self.terms.prompts,
                )
                try:
                    yield Job(item, strategy, self._plan_run(request, seen[item.problem]))
                except UsageError as error:
                    message = f"problem {item.id}: {error.message}"
                    raise UsageError(message, code=error.code, **error.details) from error
            seen[item.problem] += 1

    def _plan_run(self, request: RunRequest, same: int = 0) -> Wanted:
        """Return a run that is wanted.

        Args:
            same: How many equal problems stand before it in the data set.
        """
        order, performers = self.app.order(request)
        return Wanted(order, performers, request.participants, self._key(order, same))

    def _check_priced(self) -> None:
        working = [self.jobs[0].run.performers]
        if self.judge is None:
            problem = self.jobs[0].run.order.problem
            working.append(self.app.pool.open(self._judging_participants(), problem)[0])
        for performers in working:
            check_priced("total_usd", performers.models, performers.prices)

    def _key(self, order: Order, same: int) -> str:
        """Return the id of an order's session."""
        participants = order.participants
        if dollar_limit(order.budget, [order.options]) is None:
            # What a run costs changes nothing about it then.
            participants = msgspec.structs.replace(participants, price=())
        asked = (
            order.strategy.name,
            order.problem,
            order.options,
            order.prompts,
            order.budget,
            participants,
            same,
        )
        digest = hashlib.sha256(msgspec.json.encode((*asked, self.terms.series)))
        return f"compare-{digest.hexdigest()[:32]}"

    @property
    def id(self) -> str:
        """The id under which the table of this comparison is kept: the same runs and the same judge have the same."""
        asked = (self.terms.dataset, self.terms.judge, [job.run.key for job in self.jobs])
        return PREFIX + hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:16]

    def plan(self) -> ComparisonPlan:
        """Return what is compared."""
        order, terms = self.jobs[0].run.order, self.terms
        facts = {
            "kind": "comparison",
            "id": self.id,
            "dataset": terms.dataset,
            "judge": terms.judge,
            "series": terms.series,
            "model": order.participants.model,
            "judge_model": order.participants.judge_model,
            "verifier": order.participants.verifier,
            "budget": msgspec.to_builtins(order.budget),
            "options": {job.strategy: msgspec.to_builtins(job.run.order.options) for job in self.jobs},
            "reasonry": metadata.version("reasonry"),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        return ComparisonPlan(facts, self.strategies, self.items, [job.run.key for job in self.jobs])

    async def missing(self) -> list[Job]:
        """Return what has not been run to its end."""
        found = [(job, (await self._find(job.run.key))[0]) for job in self.jobs]
        return [
            job
            for job, run_id in found
            if run_id is None or (await self.engine.store.run(run_id)).status not in ENDED
        ]

    async def run(self) -> Report:
        """Run what is missing.

        Raises:
            ReasonryError: The store cannot be used, or somebody else drives one of the runs.
            asyncio.CancelledError: The caller was cancelled; `report` has what is there.
        """
        table = TrialTable(self.engine.store, self.id)
        await table.begin(self.plan())
        _, written, _ = await table.read()
        try:
            async with asyncio.TaskGroup() as group:
                for job in self.jobs:
                    group.create_task(self._do(job, table, written))
        except* ReasonryError as errors:
            first: BaseException = errors
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from None
        return self.report()

    def report(self) -> Report:
        """Return what is there so far."""
        return Report(plan=self.plan(), found=self.trials, reused=self.reused, spent=self.spent)

    # -- one run

    async def _do(self, job: Job, table: TrialTable, written: Mapping[tuple[str, str], Trial]) -> None:
        async with self._slots, self._locks[job.run.key]:
            result = await self._result(job.run, count=True)
            if result is None:
                return
            trial = await self._judge(job, result)
        if trial is None:
            return
        if written.get((trial.item, trial.strategy)) != trial:
            await table.add(trial)
        self.trials[trial.item, trial.strategy] = trial
        self.on_trial(trial, len(self.trials), len(self.jobs))

    async def _result(self, run: Wanted, *, count: bool = False) -> Result | None:
        """Return what came of a run, from the store if it is there; None where nothing may be spent any more."""
        run_id, session_id = await self._find(run.key)
        before = NOTHING
        if run_id is not None:
            result = await self.engine.result(run_id)
            if result.status in ENDED:
                self.reused += count
                return result
            before = result.usage
        if await self._is_spent():
            return None
        self._open[session_id] = before
        try:
            if run_id is not None:
                return await self.app.resume(run_id, run.participants, observer=self.observer)
            order = msgspec.structs.replace(run.order, session_id=session_id)
            return await self.app.solve(order, run.performers, self.observer)
        finally:
            taken = await self._usage_so_far(session_id)
            # Not one statement: what others add during the await would be lost.
            self.spent += taken
            del self._open[session_id]

    async def _is_spent(self) -> bool:
        """Whether what has ended and what is being run have used up the money, as far as the store knows."""
        limit = self.terms.total_usd
        if limit is None:
            return False
        taken = {session_id: await self._usage_so_far(session_id) for session_id in list(self._open)}
        # What has ended meanwhile is counted in `spent`.
        running = (usage for session_id, usage in taken.items() if session_id in self._open)
        return (sum(running, self.spent).usd or 0) >= limit

    async def _usage_so_far(self, session_id: str) -> Usage:
        """Return what a run that is being run has taken so far in this call."""
        before = self._open.get(session_id, NOTHING)
        try:
            session = await self.engine.store.session(session_id)
            result = await self.engine.result(session.run_id or "")
        except NotFoundError:
            return NOTHING
        return _difference(result.usage, before)

    async def _find(self, key: str) -> tuple[str | None, str]:
        """Return the last run of a key, or None; and the id of its session, or of the one a new run would get."""
        found: tuple[str | None, str] | None = None
        attempt, session_id = 1, key
        while True:
            try:
                session = await self.engine.store.session(session_id)
            except NotFoundError:
                return found or (None, session_id)
            is_again = self.terms.retry_failed and await self._failure(
                await self.engine.result(session.run_id or "")
            )
            found = None if is_again else (session.run_id, session_id)
            attempt += 1
            session_id = f"{key}-{attempt}"

    async def _failure(self, result: Result) -> str | None:
        """Return the code of the failure of the world that made a run fail, if there was one."""
        if result.status != "failed":
            return None
        if result.termination.code is not None:
            return result.termination.code
        # A strategy that hears of failures may end for a reason of its own.
        events = (await self.engine.trace(result.run_id))["events"]
        codes = [event["code"] for event in events if event["type"] == "failed"]
        return codes[-1] if codes else None

    # -- judging

    async def _judge(self, job: Job, result: Result) -> Trial | None:
        """Return the trial with the judge's verdict; None where nothing may be spent any more."""
        trial = _trial(job, result, await self._failure(result))
        if self.judge is not None:
            verdicts = [self.judge(job.item, candidate) for candidate in candidates_of(result.document())]
            is_right = trial.answer is not None and verdicts[0]
            return msgspec.structs.replace(trial, right=is_right, any_right=any(verdicts))
        if trial.answer is None:
            return msgspec.structs.replace(trial, right=False)
        judging = await self._ask_judge(job.item, trial.answer)
        if judging is None:
            return None
        right = {"yes": True, "no": False}.get(normalise(judging.answer or "").text)
        return msgspec.structs.replace(trial, right=right, code=await self._failure(judging))

    def _judging_participants(self) -> Participants:
        model = self.participants.judge_model or self.participants.model
        name = model if model is None or isinstance(model, str) else model.name
        return Participants(model=model, price=prices_of(self.participants.prices, [name]))

    async def _ask_judge(self, item: Item, answer: str) -> Result | None:
        """Return the run in which the judge model says yes or no."""
        is_known = item.expected is not None
        question = VERDICT.format(
            problem=item.problem,
            expected=f"Right answer: {item.expected}\n\n" if is_known else "",
            hint=" It may be worded otherwise." if is_known else "",
            answer=answer[:JUDGED_CHARS],
        )
        strategy, options = SHORT_ANSWER
        run = self._plan_run(
            RunRequest(
                problem=question,
                strategy=strategy,
                options={**options, "temperature": 0.0},
                budget=Budget(),
                participants=self._judging_participants(),
            )
        )
        async with self._locks.setdefault(run.key, asyncio.Lock()):
            return await self._result(run)


def _settle_model(app: App, participants: Participants, problem: str) -> Participants:
    """Settle once, for all runs, what the environment would otherwise settle for each; one file takes the recording."""
    if participants.model is not None and participants.record is None:
        return participants
    performers, _ = app.pool.open(participants, problem)
    return replace(participants, model=performers.model, record=None)


def _difference(after: Usage, before: Usage) -> Usage:
    was, now = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    taken: dict[str, Any] = {
        name: None if count is None else count - (was[name] or 0) for name, count in now.items()
    }
    return Usage(**taken)


def _trial(job: Job, result: Result, code: str | None) -> Trial:
    """Return a run that nobody has judged yet."""
    usage = result.usage
    return Trial(
        item=str(job.item.id),
        strategy=job.strategy,
        run_id=result.run_id,
        status=result.status,
        reason=result.termination.reason,
        detail=result.termination.detail,
        answer=judged_answer(result.document()),
        right=None,
        any_right=None,
        calls=usage.calls,
        rounds=result.rounds,
        tokens=usage.tokens,
        # A call without tokens, such as one that was refused, cost nothing as far as is known.
        usd=usage.usd if usage.tokens else usage.usd or 0.0,
        seconds=result.duration_ms / 1000,
        ran=job.run.order.strategy.name,
        code=code,
    )
