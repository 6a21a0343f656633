"""The table of a comparison, problems by strategies, which is kept in the store while it fills.

Rule 1: it is a session: its first thought is the plan, every other one is a trial that was judged or a repeat that was
        begun. So it is listed, copied and deleted like any other session, and whoever reads it needs no judge.
Rule 2: of several trials in one place the latest counts.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..app.wiring import App
from ..core.budget import Usage
from ..core.text import clip
from ..engine.result import Result
from ..errors import NotFoundError
from ..guided.lines import Head, ThoughtLine, ThoughtRecord, decode_record, encode
from ..reading.vote import agree, normalise
from ..records import SessionChange, SessionRow, SessionView, Store, ThoughtRow
from ..strategies import STRATEGIES
from .judging import Item, Judge, candidates_of
from .problem_set import find_judge
from .standings import Report, Trial, standings

PREFIX = "comparison-"
"""How the id of a comparison begins."""

ENDED = ("done", "failed")
"""The status of a run that is not run again."""

_PAGE = 500


class ComparisonPlan(Struct, frozen=True):
    """What is compared.

    Attributes:
        facts: As a report's document has them.
        keys: The session of the run of each problem, for each strategy.
    """

    facts: dict[str, Any]
    strategies: list[str]
    items: list[Item]
    keys: list[list[str]]

    def item(self, id: str) -> Item:
        """Return the problem of an id.

        Raises:
            NotFoundError: There is none.
        """
        for item in self.items:
            if str(item.id) == id:
                return item
        raise NotFoundError(f"the comparison has no problem {id[:60]!r}")


class Repeat(Struct, frozen=True):
    """One more run of a strategy on a problem."""

    item: str
    strategy: str
    run_id: str


class TrialTable:
    """The table of one comparison.

    Args:
        id: Of the comparison, and of the session.
    """

    def __init__(self, store: Store, id: str) -> None:
        self.store, self.id = store, id

    async def begin(self, plan: ComparisonPlan) -> None:
        """Write the plan, unless it is there."""
        facts = plan.facts
        purpose = (
            f"Comparison: {facts['problems']} problems of {facts['dataset']} × {', '.join(plan.strategies)}"
        )
        await self._append(purpose, {"plan": to_builtins(plan)}, is_first=True)

    async def add(self, entry: Trial | Repeat) -> None:
        """Write a trial or a repeat."""
        kind = "trial" if isinstance(entry, Trial) else "repeat"
        verdict = entry.verdict if isinstance(entry, Trial) else f"once more, as run {entry.run_id}"
        await self._append(f"{entry.strategy} · {entry.item}: {verdict}", {kind: to_builtins(entry)})

    async def _append(self, text: str, data: dict[str, Any], *, is_first: bool = False) -> None:
        def decide(view: SessionView) -> SessionChange:
            if is_first and view.row is not None:
                return SessionChange()
            now_ms = time.time_ns() // 1_000_000
            row = view.row or SessionRow(
                self.id, next(iter(STRATEGIES)), now_ms, now_ms, pinned=True, purpose=clip(text, 200)
            )
            count = row.thoughts + 1
            head = Head(ThoughtLine("", count, count, count), thoughts=count, highest=count, ended=True)
            record = ThoughtRecord(total=count, next_needed=False, at_ms=now_ms, data=data)
            return SessionChange(
                replace(row, used_at_ms=now_ms, thoughts=count, head=encode(head)),
                ThoughtRow(count, count, text, body=encode(record)),
            )

        await self.store.change(self.id, decide)

    async def read(self) -> tuple[ComparisonPlan, dict[tuple[str, str], Trial], list[Repeat]]:
        """Return the plan, the trials by problem and strategy, and the repeats.

        Raises:
            NotFoundError: There is no such comparison.
        """
        entries = list[dict[str, Any]]()
        while page := await self.store.thoughts(self.id, after_seq=len(entries), limit=_PAGE):
            entries += [decode_record(thought).data or {} for thought in page]
        if not entries or "plan" not in entries[0]:
            raise NotFoundError(f"there is no comparison {self.id[:60]!r}")
        trials = [msgspec.convert(entry["trial"], Trial) for entry in entries if "trial" in entry]
        repeats = [msgspec.convert(entry["repeat"], Repeat) for entry in entries if "repeat" in entry]
        by_place = {(trial.item, trial.strategy): trial for trial in trials}
        return msgspec.convert(entries[0]["plan"], ComparisonPlan), by_place, repeats


async def read_comparison(app: App, id: str) -> dict[str, Any]:
    """Return the document of a comparison as it stands: that of its report, what is running, and the repeats.

    Raises:
        NotFoundError: There is no such comparison.
    """
    plan, trials, repeats = await TrialTable(app.store, id).read()
    places = [
        (str(item.id), name, key)
        for item, keys in zip(plan.items, plan.keys, strict=True)
        for name, key in zip(plan.strategies, keys, strict=True)
    ]
    present = [trials[item, name] for item, name, _ in places if (item, name) in trials]
    calls, tokens = (sum(getattr(trial, count) for trial in present) for count in ("calls", "tokens"))
    spent = Usage(calls, tokens, usd=sum(trial.usd or 0.0 for trial in present))
    report = Report(
        standings=standings(present, plan.strategies),
        trials=present,
        wanted=len(places),
        reused=0,
        spent=spent,
    )
    running = [await _running(app, place) for place in places if place[:2] not in trials]
    judge = find_judge(plan.facts["judge"])
    return {
        **report.document(plan.facts),
        "running": [run for run in running if run is not None],
        "repeats": [
            await _repeat(
                app, repeat, plan.item(repeat.item), trials.get((repeat.item, repeat.strategy)), judge
            )
            for repeat in repeats
        ],
    }


async def _running(app: App, place: tuple[str, str, str]) -> dict[str, Any] | None:
    item, strategy, key = place
    try:
        session = await app.store.session(key)
    except NotFoundError:
        return None
    return {"item": item, "strategy": strategy, "run_id": session.run_id}


async def _repeat(
    app: App, repeat: Repeat, item: Item, first: Trial | None, judge: Judge | None
) -> dict[str, Any]:
    answer, right = None, None
    row = await app.store.run(repeat.run_id)
    if row.status in ENDED:
        result = await app.engine.result(repeat.run_id)
        answer = judged_answer(result)
        found = candidates_of({**result.document(), "answer": answer})
        right = None if judge is None else answer is not None and judge(item, found[0])
    earlier = first.answer if first else None
    is_same = None not in (answer, earlier) and agree(normalise(answer or ""), normalise(earlier or ""))
    return {**to_builtins(repeat), "status": row.status, "answer": answer, "right": right, "same": is_same}


def judged_answer(result: Result) -> str | None:
    """Return what is judged: the answer, or the best so far of a run that a limit stopped, for all had the same one."""
    is_stopped = result.outcome == "stopped" and result.status == "done"
    return result.best_answer if is_stopped else result.answer
