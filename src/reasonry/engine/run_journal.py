"""The journal of one run and what is folded from it, kept in step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..ids import now_ms
from ..records import JobOptions, RunRow, Store, Use
from . import journal
from .journal import Chain, Entry
from .record import Rows, ending
from .result import Result, outcome_of, result_of, row_after
from .run import Run, fold


class ReadRun(NamedTuple):
    """A run as its journal has it.

    Attributes:
        kept: The line of the checkpoint it was folded from.
    """

    row: RunRow
    run: Run
    chain: Chain
    kept: int = 0


class RunJournal:
    """A run that this task may write to, read once.

    Args:
        rows: Turns thoughts into the rows of the run's session.
    """

    def __init__(self, store: Store, read: ReadRun, rows: Rows) -> None:
        self.store, self._rows = store, rows
        self.row, self.run, self.chain, self.kept = read
        self._thoughts = self.run.skipped.thoughts
        """How many thoughts the session has, as far as is known here."""

    @property
    def result(self) -> Result:
        """Where the run stands."""
        return result_of(self.row.run_id, self.row.session_id, self.run)

    async def write(
        self,
        *entries: Entry,
        says_row: bool = True,
        is_use: bool = True,
        job: JobOptions | None = None,
        on_written: Callable[[int, Sequence[Entry]], Any] = lambda seq, entries: None,
    ) -> None:
        """Write down entries that are folded in, and what the end of the run adds to them.

        A write once begun is finished even if this task is cancelled meanwhile.

        Args:
            says_row: Whether lists show the run as it now is; is_use: whether it counts as use of the session. The end
                of a run is both.
            on_written: Told of the entries once they are durable, with the number of the last line.
        """
        now = now_ms()
        if self.run.snapshot.status != "active" and not self.run.is_whole:
            # Its record has the whole history.
            before, _ = journal.read(self.row.run_id, await self.store.lines(self.row.run_id))
            self.run = fold([*before, *entries], self.run.strategies)
        ended = [] if self.run.ended else ending(self.row, self.run)
        lines = self.chain.lines([*entries, *ended])
        use = self._use(now) if is_use or ended else None
        says_row = says_row or bool(ended) or outcome_of(self.run) != self.row.outcome
        row = row_after(self.row, self.run, now) if says_row else None
        writing = asyncio.ensure_future(self.store.append(self.row.run_id, lines, row, use, job=job))
        try:
            await asyncio.shield(writing)
        finally:
            if not writing.done():
                await asyncio.wait([writing])
            if writing.exception() is None:
                self.chain.extend(lines)
                self.row = row or self.row
                self._thoughts = use.thoughts if use else self._thoughts
                on_written(self.chain.seq, entries)

    async def reload(self) -> list[Entry]:
        """Read and fold the journal once more; return the entries that somebody else has written meanwhile."""
        row, lines = await self.store.run(self.row.run_id), await self.store.lines(self.row.run_id)
        known = self.chain.seq
        entries, self.chain = journal.read(row.run_id, lines)
        self.row, self.run = row, fold(entries, self.run.strategies)
        return entries[known:]

    def _use(self, at_ms: int) -> Use:
        """Return the use of the session now, with the thoughts that it has not yet."""
        run, known = self.run, self._thoughts
        new = run.thoughts[known - run.skipped.thoughts :]
        return Use(run.counts.thoughts, at_ms, tuple(self._rows(new, known, run.branches)))
