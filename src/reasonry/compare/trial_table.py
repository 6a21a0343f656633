"""The table of a comparison, problems by strategies, kept in the store while it grows.

Rule 1: the table is a session. Its first thought is the plan; every other thought is a judged trial or a started
        repeat. Lists, copies and deletions treat it like any other session, and reading it needs no judge.
Rule 2: of several trials for the same problem and strategy, the latest counts.
"""

from typing import Any

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..app.app import App
from ..engine.journal import HEAD_CHARS
from ..errors import NotFoundError
from ..guided.lines import Head, ThoughtLine, ThoughtRecord, decode_record, encode
from ..reading.vote import agree, normalise
from ..records import ANSWERED, RunRow, SessionChange, SessionRow, SessionView, Store, ThoughtRow, now_ms
from ..strategies import STRATEGIES
from ..text import clip
from .grading import Item, Judge, judged_answer
from .problem_set import find_judge
from .standings import Report, Trial

ENDED = ("done", "failed")
"""The statuses of runs that are not repeated."""

_PAGE = 500


class Repeat(Struct, frozen=True):
    """A repeated run of a strategy on a problem, or the first run while active."""

    item: str
    strategy: str
    run_id: str


class TrialTable:
    """The table of a comparison.

    Args:
        id: The id of the comparison and of its session.
    """

    def __init__(self, store: Store, id: str) -> None:
        self.store, self.id = store, id

    async def begin(self, report: Report) -> None:
        """Write the plan (the report without trials) unless it exists."""
        problems = f"{len(report.items)} problems of {report.facts['dataset']}"
        purpose = f"Comparison: {problems} × {', '.join(report.strategies)}"
        await self._append(purpose, {"plan": to_builtins(replace(report, found={}))}, is_first=True)

    async def add(self, entry: Trial | Repeat) -> None:
        """Write a trial or a repeat."""
        kind = "trial" if isinstance(entry, Trial) else "repeat"
        verdict = entry.verdict if isinstance(entry, Trial) else f"once more, as run {entry.run_id}"
        await self._append(f"{entry.strategy} · {entry.item}: {verdict}", {kind: to_builtins(entry)})

    async def _append(self, text: str, data: dict[str, Any], *, is_first: bool = False) -> None:
        def decide(view: SessionView) -> SessionChange:
            if is_first and view.row is not None:
                return SessionChange()
            now = now_ms()
            row = view.row or SessionRow(
                self.id, next(iter(STRATEGIES)), now, now, pinned=True, purpose=clip(text, 200)
            )
            count = row.thoughts + 1
            head = Head(ThoughtLine("", count, count, count), thoughts=count, highest=count, ended=True)
            record = ThoughtRecord(total_thoughts=count, next_thought_needed=False, at_ms=now, data=data)
            return SessionChange(
                replace(row, used_at_ms=now, thoughts=count, head=encode(head)),
                ThoughtRow(count, count, text, body=encode(record)),
            )

        await self.store.change(self.id, decide)

    async def read(self) -> tuple[Report, list[Repeat]]:
        """Return the current comparison and its repeats.

        Raises:
            NotFoundError: The comparison does not exist.
        """
        entries = list[dict[str, Any]]()
        while page := await self.store.thoughts(self.id, after_seq=len(entries), limit=_PAGE):
            entries += [decode_record(thought).data or {} for thought in page]
        if not entries or "plan" not in entries[0]:
            raise NotFoundError(f"there is no comparison {self.id[:60]!r}")
        trials = [msgspec.convert(entry["trial"], Trial) for entry in entries if "trial" in entry]
        repeats = [msgspec.convert(entry["repeat"], Repeat) for entry in entries if "repeat" in entry]
        plan = msgspec.convert(entries[0]["plan"], Report)
        return replace(plan, found={(trial.item, trial.strategy): trial for trial in trials}), repeats


async def read_comparison(app: App, id: str) -> dict[str, Any]:
    """Return the current document of a comparison: its report, active runs and repeats.

    Raises:
        NotFoundError: The comparison does not exist.
    """
    report, repeats = await TrialTable(app.store, id).read()
    judge, items = find_judge(report.facts["judge"]), {str(item.id): item for item in report.items}
    missing = {key: place for place, key in report.places.items() if place not in report.found}
    active = await app.store.runs(limit=_PAGE, status="active") if missing else []
    rows = {row.run_id: row for row in await app.store.rows([repeat.run_id for repeat in repeats])}
    return {
        **report.document(),
        "running": [
            Repeat(*missing[run.session_id], run.run_id) for run in active if run.session_id in missing
        ],
        "repeats": [
            await _describe_repeat(
                app, repeat, row, items[repeat.item], report.found[repeat.item, repeat.strategy], judge
            )
            for repeat in repeats
            if (row := rows.get(repeat.run_id))
        ],
    }


async def _describe_repeat(
    app: App, repeat: Repeat, row: RunRow, item: Item, first: Trial, judge: Judge | None
) -> dict[str, Any]:
    answer = row.answer if row.outcome in (*ANSWERED, "stopped") and row.status == "done" else None
    if answer is not None and len(answer) >= HEAD_CHARS:
        answer = judged_answer((await app.engine.result(row.run_id)).document())
    right, is_same = None, False
    if judge is not None and row.status in ENDED:
        right = answer is not None and judge(item, answer)
    if answer is not None and first.answer is not None:
        is_same = agree(normalise(answer), normalise(first.answer))
    return {**to_builtins(repeat), "status": row.status, "answer": answer, "right": right, "same": is_same}
