"""Comparisons: every strategy on every problem, each as a run of its own, found again by what was asked for.

Rule 1: a run is known by its question: strategy, problem, options, budget, crew. Its session's id is made from these,
        so the store itself says which runs are there already; nothing else is written down.
Rule 2: what has ended is not run again, what was interrupted is gone on with, so a comparison that is called again pays
        only for what is missing. Problems and strategies may be added between two calls.
Rule 3: answers are judged when they are looked at, so another judge costs nothing; only the judge `model` has runs.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from ..core.budget import NOTHING, Usage
from ..core.compare import Standing, Trial, standings
from ..core.events import Failed
from ..core.judging import Candidate, Item, Judge, candidates_of, check_items, read_judge
from ..core.vote import normalise
from ..errors import NotFoundError, ReasonryError, UsageError
from .engine import Engine, Order
from .policy import Performers
from .result import Result

JUDGED_CHARS = 4_000
"""How much of an answer the judge `model` is shown."""

VERDICT = """Problem: {problem}

{expected}Answer given: {answer}

Is the answer given right?{hint} Answer with one word: yes or no."""

Ordered = tuple[Order, Performers]


@dataclass(frozen=True, kw_only=True)
class Crewed:
    """How a comparison has its runs ordered and performed.

    Args:
        order: (problem, strategy) → what to run, and by whom; raises UsageError.
        judging: (question) → the run that answers it; for the judge `model`.
        solve: Accepts a run and drives it to its end.
        resume: Goes on with a run.
    """

    order: Callable[[str, str], Ordered]
    judging: Callable[[str], Ordered]
    solve: Callable[[Order, Performers], Awaitable[Result]]
    resume: Callable[[str], Awaitable[Result]]


class Terms(Struct, frozen=True, kw_only=True):
    """How a comparison goes.

    Args:
        judge: As a user writes it after `--judge`.
        parallel: Runs at once.
        series: Another name runs everything anew beside what is there.
        retry_failed: Run once more what failed because the world did: a provider, a tool. Verdicts too.
        total_usd: No run is begun once this call has spent so much.
    """

    judge: str = "exact"
    parallel: int = 4
    series: str = ""
    retry_failed: bool = False
    total_usd: float | None = None


class Report(Struct, frozen=True, kw_only=True):
    """What came of a comparison.

    Attributes:
        wanted: How many runs it takes.
        reused: How many of them were there before.
        spent: By this call alone, judging included, and what was cut off in flight.
    """

    standings: list[Standing]
    trials: list[Trial]
    wanted: int
    reused: int
    spent: Usage

    @property
    def complete(self) -> bool:
        """Whether every strategy has been run on every problem."""
        return len(self.trials) == self.wanted


class Job(Struct, frozen=True):
    """One strategy on one problem."""

    item: Item
    strategy: str
    order: Order
    who: Performers
    key: str


class Verdict(Struct, frozen=True):
    """What a judge says of a run; see `Trial`."""

    right: bool | None
    any_right: bool | None
    code: str | None


class Comparison:
    """One comparison over one store.

    Args:
        strategies: As a user names them, `auto` included.
        told: Called after every run, with how many are there and how many are wanted.

    Raises:
        UsageError: A problem, a strategy or the judge is no good; nothing was run.
    """

    def __init__(
        self,
        engine: Engine,
        items: Sequence[Item],
        strategies: Sequence[str],
        crewed: Crewed,
        terms: Terms,
        told: Callable[[Trial, int, int], None] = lambda trial, done, wanted: None,
    ) -> None:
        self.engine, self.crewed, self.terms, self.told = engine, crewed, terms, told
        self.strategies = list(strategies)
        self.judge: Judge | None = read_judge(terms.judge)
        check_items(items, terms.judge)
        self.jobs = self._jobs(items)
        self.trials: dict[tuple[str, str], Trial] = {}
        self.reused = 0
        self.spent = NOTHING
        """By what has ended, or was cut off."""
        self._open: dict[str, Usage] = {}
        """The sessions of what is being run, and what each had spent before."""
        self._slots = asyncio.Semaphore(terms.parallel)
        self._locks: dict[str, asyncio.Lock] = {job.key: asyncio.Lock() for job in self.jobs}

    def _jobs(self, items: Sequence[Item]) -> list[Job]:
        jobs: list[Job] = []
        seen = Counter[str]()
        for item in items:
            same = seen[item.problem]
            seen[item.problem] += 1
            for strategy in self.strategies:
                try:
                    order, who = self.crewed.order(item.problem, strategy)
                except UsageError as error:
                    raise UsageError(f"problem {item.id}: {error.message}", **error.details) from error
                jobs.append(Job(item, strategy, order, who, self._key(order, same)))
        return jobs

    def _key(self, order: Order, same: int = 0) -> str:
        """Return the id of an order's session.

        Args:
            same: How many equal problems stand before it in the data set.
        """
        asked = (
            order.strategy.name,
            order.problem,
            order.options,
            order.budget,
            order.crew,
            same,
            self.terms.series,
        )
        return f"compare-{hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:32]}"

    async def run(self) -> Report:
        """Run what is missing.

        Raises:
            ReasonryError: The store cannot be used, or somebody else drives one of the runs.
            asyncio.CancelledError: The caller was cancelled; `report` has what is there.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for job in self.jobs:
                    group.create_task(self._do(job))
        except* ReasonryError as errors:
            first: BaseException = errors
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from None
        return self.report()

    def report(self) -> Report:
        """Return what is there so far."""
        order = {(str(job.item.id), job.strategy): at for at, job in enumerate(self.jobs)}
        trials = [self.trials[key] for key in sorted(self.trials, key=order.__getitem__)]
        return Report(
            standings=standings(trials, self.strategies),
            trials=trials,
            wanted=len(self.jobs),
            reused=self.reused,
            spent=self.spent,
        )

    # -- one run

    async def _do(self, job: Job) -> None:
        async with self._slots, self._locks[job.key]:
            result = await self._result(job.order, job.who, job.key, count=True)
            if result is None:
                return
            verdict = await self._judged(job, result)
        if verdict is None:
            return
        trial = _trial(job, result, verdict)
        self.trials[trial.item, trial.strategy] = trial
        self.told(trial, len(self.trials), len(self.jobs))

    async def _result(self, order: Order, who: Performers, key: str, *, count: bool = False) -> Result | None:
        """Return what came of an order, from the store if it is there; None where nothing may be spent any more."""
        run_id, session_id = await self._find(key)
        before = NOTHING
        if run_id is not None:
            result = await self.engine.result(run_id)
            if result.status in ("done", "failed"):
                self.reused += count
                return result
            before = result.usage
        if await self._is_spent():
            return None
        self._open[session_id] = before
        try:
            if run_id is not None:
                result = await self.crewed.resume(run_id)
            else:
                result = await self.crewed.solve(msgspec.structs.replace(order, session_id=session_id), who)
        except BaseException:
            taken = await self._taken(session_id)
            self.spent += taken
            raise
        else:
            self.spent += _difference(result.usage, before)
            return result
        finally:
            del self._open[session_id]

    async def _is_spent(self) -> bool:
        """Whether what has ended and what is being run have used up the money, as far as the store knows."""
        limit = self.terms.total_usd
        if limit is None:
            return False
        taken = {session_id: await self._taken(session_id) for session_id in list(self._open)}
        # What has ended meanwhile is counted in `spent`.
        running = (usage for session_id, usage in taken.items() if session_id in self._open)
        return (sum(running, self.spent).usd or 0) >= limit

    async def _taken(self, session_id: str) -> Usage:
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
            found = (session.run_id, session_id) if await self._is_kept(session.run_id or "") else None
            attempt += 1
            session_id = f"{key}-{attempt}"

    async def _is_kept(self, run_id: str) -> bool:
        try:
            row = await self.engine.store.run(run_id)
        except NotFoundError:
            # A crash between the two writes that begin a run.
            return False
        return not (self.terms.retry_failed and row.status == "failed") or await self._failure(run_id) is None

    async def _failure(self, run_id: str) -> str | None:
        """Return the code of what the world did to a run that failed, if it did anything."""
        if (await self.engine.store.run(run_id)).status != "failed":
            return None
        _, run, _ = await self.engine.read(run_id)
        # A strategy that hears of failures may end for a reason of its own.
        codes = [one.event.code for one in run.events if isinstance(one.event, Failed)]
        return run.snapshot.error or (codes[-1] if codes else None)

    # -- judging

    async def _judged(self, job: Job, result: Result) -> Verdict | None:
        """Return what the judge says; None where nothing may be spent any more."""
        found = candidates_of(result.document())
        if self.judge is not None:
            right = result.answer is not None and self.judge(job.item, found[0])
            any_right = any(self.judge(job.item, one) for one in found)
            return Verdict(right, any_right, await self._failure(result.run_id))
        if result.answer is None:
            return Verdict(False, None, await self._failure(result.run_id))
        return await self._asked(job.item, Candidate(result.answer))

    async def _asked(self, item: Item, candidate: Candidate) -> Verdict | None:
        question = VERDICT.format(
            problem=item.problem,
            expected=f"Right answer: {item.expected}\n\n" if item.expected is not None else "",
            hint=" It may be worded otherwise." if item.expected is not None else "",
            answer=candidate.answer[:JUDGED_CHARS],
        )
        order, who = self.crewed.judging(question)
        key = self._key(order)
        async with self._locks.setdefault(key, asyncio.Lock()):
            judging = await self._result(order, who, key)
        if judging is None:
            return None
        said = normalise(judging.answer or "").text
        right = {"yes": True, "no": False}.get(said)
        return Verdict(right, None, await self._failure(judging.run_id))


def _difference(after: Usage, before: Usage) -> Usage:
    return Usage(
        calls=after.calls - before.calls,
        input_tokens=after.input_tokens - before.input_tokens,
        output_tokens=after.output_tokens - before.output_tokens,
        cached_input_tokens=after.cached_input_tokens - before.cached_input_tokens,
        usd=None if after.usd is None else after.usd - (before.usd or 0),
    )


def _trial(job: Job, result: Result, verdict: Verdict) -> Trial:
    usage = result.usage
    return Trial(
        item=str(job.item.id),
        strategy=job.strategy,
        run_id=result.run_id,
        status=result.status,
        reason=result.termination.reason,
        answer=result.answer,
        right=verdict.right,
        any_right=verdict.any_right,
        calls=usage.calls,
        rounds=result.rounds,
        tokens=usage.tokens,
        usd=usage.usd if usage.calls else 0.0,
        seconds=result.duration_ms / 1000,
        ran=job.order.strategy.name,
        code=verdict.code,
    )


def document(report: Report, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report as one JSON document.

    Args:
        facts: What was compared: data set, model, judge, ….
    """
    return {
        **facts,
        "complete": report.complete,
        "runs": {"wanted": report.wanted, "there": len(report.trials), "reused": report.reused},
        "spent": msgspec.to_builtins(report.spent),
        "strategies": [msgspec.to_builtins(one) for one in report.standings],
        "trials": [msgspec.to_builtins(one) for one in report.trials],
    }
