"""Computes the standing of each strategy: the accuracy, the uncertainty of the accuracy, and the price.

Rule 1: each accuracy has a 95 % interval. A test of two strategies counts only the problems that one strategy alone
        solved. Problems that both solved or that neither solved show no difference.
Rule 2: `right` tells whether the given answer is right. `any_right` tells whether any candidate is right: the answer, a
        candidate of a search, or an answer in a vote.
Rule 3: a run without an answer, and an answer without a verdict, count as not right.
Rule 4: a strategy that was never right is not worth any price, so it is never on the Pareto front.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb, sqrt
from statistics import fmean
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..core.events import NOTHING, Failed, Usage
from ..engine.result import Result
from ..engine.run import Run
from ..strategies import BASE
from ..text import display_line
from .grading import Item, Judge, all_found, judged_answer

SIGNIFICANT = 0.05
"""The significance level: a difference with a higher p-value may be due to chance."""
MAX_REASONS, REASON_CHARS = 5, 200
"""How many reasons for missing answers a report gives per strategy, and the most characters of a reason."""


class Trial(Struct, frozen=True, kw_only=True):
    """The result of a run of a strategy on a problem.

    Attributes:
        right: Whether the answer is right, or None if the judge could not decide.
        any_right: Whether any candidate is right, or None if the candidates were not checked.
        usd: The cost in US dollars, or None if the price is unknown.
    """

    item: str
    strategy: str
    run_id: str
    status: str
    reason: str
    answer: str | None
    right: bool | None
    any_right: bool | None
    calls: int
    rounds: int
    tokens: int
    usd: float | None
    seconds: float
    samples: int = 0
    """How many replies the models gave. Each sample of a call counts."""
    asked_again: int = 0
    """How many replies answered a question that was asked again after an unusable reply."""
    unread: int = 0
    """How many replies were unusable. Replies to a question that was asked again do not count."""
    ran: str = ""
    """The strategy that ran. If `strategy` is `auto`, this is the strategy that `auto` chose."""
    code: str | None = None
    """The code of an external failure that prevented the answer or the verdict."""
    detail: str = ""
    """The reason why the run ended, as a text for display."""
    began_at_ms: int = 0
    is_thin: bool = False
    """Whether the answer won a vote in which no two votes agreed."""
    share_up: float | None = None
    """For a cascade: the share of the possible steps to a more expensive model that the run took."""

    @property
    def verdict(self) -> str:
        """The verdict and the answer, or the reason for a missing answer, in a few words."""
        verdict = {True: "right", False: "wrong", None: "not judged"}[self.right]
        return f"no answer · {self.why_no_answer}" if self.answer is None else f"{verdict} · {self.answer}"

    @property
    def why_no_answer(self) -> str:
        """The reason for a missing answer: the termination reason, the error code and the details."""
        reasons = [] if self.reason == "error" and (self.code or self.detail) else [self.reason]
        reasons += [self.code] if self.code and self.code != self.reason else []
        return ": ".join([", ".join(reasons), *([self.detail] if self.detail else [])]).removeprefix(": ")


def failure_of(result: Result, run: Run) -> str | None:
    """Return the error code of a failed run. None if the run did not fail or has no code."""
    # A strategy that handles a failure may end the run with another reason, which has no code.
    codes = [settled.event.code for settled in run.events if isinstance(settled.event, Failed)]
    return (result.termination.code or next(reversed(codes), None)) if result.status == "failed" else None


def trial_of(item: Item, strategy: str, run: Run, result: Result, judge: Judge | None) -> Trial:
    """Return the trial of a run that has ended. Without `judge`, the answer has no verdict yet."""
    document, usage = result.document(), result.usage
    answer = judged_answer(document)
    verdicts = [] if judge is None else [judge(item, found) for found in all_found(document)]
    right = False if answer is None else verdicts[0] if verdicts else None
    replied = [asked for asked in run.asked.values() if asked.reply is not None]
    # `e4.2` is the second try of the question `e4`.
    repeated = [asked for asked in replied if "." in asked.id.rpartition("/")[2]]
    # Only a vote that decides has a confidence.
    counts = [vote["count"] for vote in document.get("votes") or () if "confidence" in document]
    return Trial(
        item=str(item.id),
        strategy=strategy,
        run_id=result.run_id,
        status=result.status,
        reason=result.termination.reason,
        detail=result.termination.detail,
        answer=answer,
        right=right,
        any_right=None if judge is None else any(verdicts),
        calls=usage.calls,
        samples=len(replied),
        asked_again=len(repeated),
        unread=sum(asked.read.startswith("unreadable") for asked in replied if asked not in repeated),
        rounds=result.rounds,
        tokens=usage.tokens,
        # The cost of calls without tokens, such as refused calls, is unknown and counts as 0.
        usd=usage.usd if usage.tokens else usage.usd or 0.0,
        seconds=result.duration_ms / 1000,
        ran=run.begun.strategy,
        code=failure_of(result, run),
        began_at_ms=run.begun.created_at_ms,
        is_thin=len(counts) > 1 and max(counts) == 1 and result.outcome != "solved",
        share_up=document.get("share_up"),
    )


class Gain(Struct, frozen=True):
    """The gain in accuracy of a strategy over the strategy `direct`, and the price of this gain.

    Attributes:
        points: The difference of the accuracies, in percentage points.
        times: The tokens of the strategy divided by the tokens of `direct`, or None if `direct` used no tokens.
        p: The p-value of the sign test over the problems that both strategies ran.
    """

    points: float
    times: float | None
    p: float

    @property
    def cost(self) -> str:
        """The gain and its cost, such as `+12 for 3.5× tokens`."""
        times = "" if self.times is None else f" for {self.times:.1f}× tokens"
        return f"{self.points:+.0f}{times}"

    @property
    def verdict(self) -> str:
        """A phrase that says whether the strategy helps the model more than `direct` does."""
        if self.p > SIGNIFICANT:
            return "may help this model" if self.points > 0 else "does not help this model"
        return "helps this model" if self.points > 0 else "harms this model"


class Standing(Struct, frozen=True, kw_only=True):
    """The results of a strategy over its runs. The counts and costs from `calls` to `seconds` are means per run.

    Attributes:
        low: The lower end of the 95 % interval of the accuracy. `high` is the upper end.
        unjudged: How many answers the judge could not judge. These answers count as not right.
        any_accuracy: The share of runs with at least one right candidate. None if the candidates were not checked.
        samples: How many replies the models gave per run. Each sample of a call counts.
        in_form: The share of first replies that had the requested form. None if there were no first replies.
        seconds: The duration of a run. None if a run overlapped in time with another run of the comparison.
        thin: How many answers won a vote in which no two votes agreed.
        share_up: For a cascade: the mean share of the possible steps to a more expensive model that a run took.
        front: Whether the strategy was right at least once and is on the Pareto front of accuracy and price.
    """

    strategy: str
    runs: int
    right: int
    accuracy: float
    low: float
    high: float
    any_accuracy: float | None
    unjudged: int
    failed: int
    calls: float
    samples: float
    in_form: float | None
    asked_again: float
    rounds: float
    tokens: float
    usd: float | None
    seconds: float | None
    thin: int = 0
    share_up: float | None = None
    gain: Gain | None = None
    front: bool = False


class Report(Struct, frozen=True, kw_only=True):
    """The plan of a comparison, and the results of its runs so far.

    Attributes:
        facts: The settings of the runs and of the judge. `document` repeats these settings.
        keys: The session ids of the runs: for each problem in order, one id per strategy.
        spent: The usage of this call of the comparison, which includes judging and calls that were cut off.
    """

    facts: dict[str, Any]
    strategies: list[str]
    items: list[Item]
    keys: list[str]
    found: Mapping[tuple[str, str], Trial] = {}
    reused: int = 0
    spent: Usage = NOTHING

    @property
    def places(self) -> dict[tuple[str, str], str]:
        """Maps each pair (problem id, strategy) to the session id of the pair's run."""
        places = ((str(item.id), name) for item in self.items for name in self.strategies)
        return dict(zip(places, self.keys, strict=True))

    @property
    def trials(self) -> list[Trial]:
        """The trials so far, problem by problem."""
        return [self.found[place] for place in self.places if place in self.found]

    @property
    def complete(self) -> bool:
        """Whether every strategy has been run on every problem."""
        return len(self.found) == len(self.keys)

    def document(self) -> dict[str, Any]:
        """Return the report as one JSON document."""
        trials = self.trials
        rows = standings(trials, self.strategies)
        return {
            **self.facts,
            "problems": len(self.items),
            "items": to_builtins(self.items),
            "compared": self.strategies,
            "complete": self.complete,
            "runs": {"wanted": len(self.keys), "there": len(self.found), "reused": self.reused},
            "spent": to_builtins(self.spent),
            "strategies": to_builtins(rows),
            "findings": [*describe_differences(trials, rows), *describe_gaps(trials, rows)],
            "trials": [{**to_builtins(trial), "why": trial.why_no_answer} for trial in trials],
        }


def wilson(right: int, runs: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of the share `right / runs` (Wilson 1927)."""
    if runs == 0:
        return 0.0, 1.0
    z = 1.959964  # the quantile of the normal distribution
    share, spread = right / runs, z * z / runs
    middle = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / runs + spread / (4 * runs)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def sign_test(won: int, lost: int) -> float:
    """Return the p-value of an exact two-sided sign test of wins and losses (McNemar 1947)."""
    outcomes = won + lost
    return min(1.0, 2 * sum(comb(outcomes, at) for at in range(min(won, lost) + 1)) / 2**outcomes)


def pareto_front(points: Sequence[tuple[float, float]]) -> set[int]:
    """Return the positions of the points (cost, gain) that no other point dominates.

    A point dominates another point if it costs less and gains no less, or if it gains more and costs no more.
    """
    return {
        at
        for at, (cost, gain) in enumerate(points)
        if not any(c <= cost and g >= gain and (c, g) != (cost, gain) for c, g in points)
    }


def standings(trials: Iterable[Trial], strategies: Sequence[str]) -> list[Standing]:
    """Return the standings in the order of `strategies`. Strategies that have no trials are left out."""
    by_strategy: dict[str, list[Trial]] = {name: [] for name in strategies}
    for trial in trials:
        by_strategy[trial.strategy].append(trial)
    rows = [_row(name, runs) for name, runs in by_strategy.items() if runs]
    if shared := _share_time(by_strategy.values()):
        rows = [replace(row, seconds=None) if row.strategy in shared else row for row in rows]
    base = next((row for row in rows if row.strategy == BASE), None)
    if base is not None:
        found = _right_answers(run for runs in by_strategy.values() for run in runs)
        rows = [row if row is base else replace(row, gain=_gain(row, base, found)) for row in rows]
    right, cost = [row for row in rows if row.right], cost_of(rows)
    front = pareto_front([(getattr(row, cost), row.accuracy) for row in right])
    worth = {right[at].strategy for at in front}
    return [replace(row, front=row.strategy in worth) for row in rows]


def _share_time(compared: Iterable[Sequence[Trial]]) -> set[str]:
    """Return the strategies whose runs overlapped in time with other runs. Such runs shared the models."""
    runs = sorted((run for trials in compared for run in trials), key=lambda run: run.began_at_ms)
    shared, until, latest = set[str](), 0.0, None
    for run in runs:
        end = run.began_at_ms + 1_000 * run.seconds
        if latest is not None and run.began_at_ms < until and run.run_id != latest.run_id:
            shared |= {run.strategy, latest.strategy}
        if latest is None or end >= until:
            until, latest = end, run
    return shared


def _right_answers(trials: Iterable[Trial]) -> dict[tuple[str, str], bool]:
    """Map each pair `(strategy, problem)` to whether the answer is right."""
    return {(trial.strategy, trial.item): trial.right is True for trial in trials}


def _gain(row: Standing, base: Standing, right: Mapping[tuple[str, str], bool]) -> Gain:
    won, lost = _count_alone(right, row.strategy, base.strategy)[:2]
    times = row.tokens / base.tokens if base.tokens else None
    return Gain(100 * (row.accuracy - base.accuracy), times, sign_test(won, lost))


def _count_alone(right: Mapping[tuple[str, str], bool], first: str, other: str) -> tuple[int, int, int]:
    """Return three counts of problems: solved only by `first`, solved only by `other`, and run by both strategies."""
    pairs = [
        (is_right, right[other, item])
        for (name, item), is_right in right.items()
        if name == first and (other, item) in right
    ]
    return pairs.count((True, False)), pairs.count((False, True)), len(pairs)


def cost_of(rows: Sequence[Standing]) -> str:
    """Return the field that shows the cost: `usd`, or `calls` if a price is unknown or all runs were free."""
    is_priced = all(row.usd is not None for row in rows) and any(row.usd for row in rows)
    return "usd" if is_priced else "calls"


def describe_differences(trials: Sequence[Trial], rows: Sequence[Standing]) -> list[str]:
    """Return sentences that say which strategies are significantly worse than the best, and which are not."""
    best = max(rows, key=lambda row: row.accuracy, default=None)
    if best is None or not best.right:
        return ["no answer was right, so there is no frontier"] if rows else []
    right = _right_answers(trials)
    sentences, close = list[str](), list[str]()
    for name in [row.strategy for row in rows if row is not best]:
        won, lost, both = _count_alone(right, best.strategy, name)
        if won > lost and sign_test(won, lost) <= SIGNIFICANT:
            alone = f"it alone is right on {won}, the other alone on {lost}"
            sentences.append(f"{best.strategy} is better than {name}: of {both} problems {alone}")
        else:
            close.append(name)
    if close:
        names = f"{', '.join([best.strategy, *close[:-1]])} and {close[-1]}"
        sentences.append(f"{names} cannot be told apart with {best.runs} problem{'s' * (best.runs != 1)}")
    return sentences


def describe_gaps(trials: Sequence[Trial], rows: Sequence[Standing]) -> Iterator[str]:
    """Yield sentences about missing verdicts, unusable first replies and missing answers."""
    codes = [trial.code for trial in trials if trial.right is None]
    if codes:
        yield f"{len(codes)} of the answers are not judged (?) and count as not right"
    if None in codes:
        yield f"{codes.count(None)} times the judge said neither yes nor no"
    if failed := len(codes) - codes.count(None):
        yield f"{failed} times the judge could not be asked; --retry-failed asks again"
    unanswered = Counter((trial.strategy, trial.why_no_answer) for trial in trials if trial.answer is None)
    for row in rows:
        mine = [trial for trial in trials if trial.strategy == row.strategy]
        if unread := sum(trial.unread for trial in mine):
            first = sum(trial.samples - trial.asked_again for trial in mine)
            yield f"{row.strategy}: {unread} of {first} first replies were out of form"
        whys = [(why, times) for (name, why), times in unanswered.most_common() if name == row.strategy]
        for why, times in whys[:MAX_REASONS]:
            reason = display_line(why, REASON_CHARS)
            yield f"{row.strategy} gave no answer to {times} of {row.runs} problems: {reason}"


def _row(name: str, runs: Sequence[Trial]) -> Standing:
    verdicts = [run.right for run in runs]
    right = verdicts.count(True)
    low, high = wilson(right, len(runs))
    first = sum(run.samples - run.asked_again for run in runs)
    shares = [run.share_up for run in runs if run.share_up is not None]
    return Standing(
        strategy=name,
        runs=len(runs),
        right=right,
        accuracy=right / len(runs),
        low=low,
        high=high,
        any_accuracy=_mean_if_known([run.any_right for run in runs]),
        unjudged=verdicts.count(None),
        failed=sum(run.answer is None for run in runs),
        usd=_mean_if_known([run.usd for run in runs]),
        calls=fmean(run.calls for run in runs),
        samples=fmean(run.samples for run in runs),
        in_form=1 - sum(run.unread for run in runs) / first if first else None,
        asked_again=fmean(run.asked_again for run in runs),
        rounds=fmean(run.rounds for run in runs),
        tokens=fmean(run.tokens for run in runs),
        seconds=fmean(run.seconds for run in runs),
        thin=sum(run.is_thin for run in runs),
        share_up=fmean(shares) if shares else None,
    )


def _mean_if_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None
