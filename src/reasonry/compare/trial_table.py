"""The table of a comparison, in the store. The table grows by one trial for each problem and strategy.

Rule 1: the table is a session. Its first thought is the plan, and every other thought is a judged trial. Lists, copies
        and deletions treat the table like any other session. No judge is needed to read the table.
Rule 2: if the table has several trials for the same problem and strategy, the latest trial counts.
"""

from typing import Any

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from ..app.app import App
from ..errors import NotFoundError
from ..guided.lines import Head, ThoughtLine, ThoughtRecord, decode_record, encode
from ..records import SessionChange, SessionRow, SessionView, Store, ThoughtRow, now_ms
from ..strategies import STRATEGIES
from ..text import display_line
from .standings import Report, Trial

ENDED = ("done", "failed")
"""The statuses of runs that are not repeated."""

_PAGE = 500


class TrialTable:
    """The table of a comparison, which is stored as the session with the same id."""

    def __init__(self, store: Store, id: str) -> None:
        self.store, self.id = store, id

    async def begin(self, report: Report) -> None:
        """Write the plan: the report, which has no trials yet. If the table already exists, write nothing."""
        problems = f"{len(report.items)} problems of {report.facts['dataset']}"
        purpose = f"Comparison: {problems} × {', '.join(report.strategies)}"
        await self._append(purpose, {"plan": to_builtins(replace(report, found={}))}, is_first=True)

    async def add(self, trial: Trial) -> None:
        """Write a trial."""
        text = f"{trial.strategy} · {trial.item}: {trial.verdict}"
        await self._append(text, {"trial": to_builtins(trial)})

    async def _append(self, text: str, data: dict[str, Any], *, is_first: bool = False) -> None:
        def decide(view: SessionView) -> SessionChange:
            if is_first and view.row is not None:
                return SessionChange()
            now = now_ms()
            row = view.row or SessionRow(
                self.id, next(iter(STRATEGIES)), now, now, pinned=True, purpose=display_line(text, 200)
            )
            count = row.thoughts + 1
            head = Head(ThoughtLine("", count, count, count), thoughts=count, highest=count, ended=True)
            record = ThoughtRecord(total_thoughts=count, next_thought_needed=False, at_ms=now, data=data)
            return SessionChange(
                replace(row, used_at_ms=now, thoughts=count, head=encode(head)),
                ThoughtRow(count, count, text, body=encode(record)),
            )

        await self.store.change(self.id, decide)

    async def read(self) -> Report:
        """Return the comparison with its trials so far, or raise NotFoundError."""
        entries = list[dict[str, Any]]()
        while page := await self.store.thoughts(self.id, after_seq=len(entries), limit=_PAGE):
            entries += [decode_record(thought).data or {} for thought in page]
        if not entries or "plan" not in entries[0]:
            raise NotFoundError(f"there is no comparison {self.id[:60]!r}")
        trials = [msgspec.convert(entry["trial"], Trial) for entry in entries if "trial" in entry]
        plan = msgspec.convert(entries[0]["plan"], Report)
        return replace(plan, found={(trial.item, trial.strategy): trial for trial in trials})


async def read_comparison(app: App, id: str) -> dict[str, Any]:
    """Return a document with a comparison's current report and active runs, or raise NotFoundError."""
    report = await TrialTable(app.store, id).read()
    missing = {key: place for place, key in report.places.items() if place not in report.found}
    active = await app.store.runs(limit=_PAGE, status="active") if missing else []
    running = [(*missing[run.session_id], run.run_id) for run in active if run.session_id in missing]
    names = ("item", "strategy", "run_id")
    return {**report.document(), "running": [dict(zip(names, each, strict=True)) for each in running]}
