"""The record of a run that has ended: all there is to see of it, so that it reads without the code of its day."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..core.budget import NOTHING
from ..errors import ReasonryError
from ..records import RunRow, RunStore
from .journal import Ended, Entry, Run, Settled, fold, read, row_after, terms
from .result import Result, Termination, result_of, trace_of

DIGEST_CHARS: Final = 32
"""Of the digest of a part of a record."""

_canonical = msgspec.json.Encoder(order="sorted")


class Record(Struct, frozen=True):
    """What is kept of a run that has ended: its result, and the rest of its trace."""

    result: Result
    trace: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the trace document, as `trace_of` would have made it on the day the run ended."""
        return {**self.result.document(), **self.trace}


def ending(row: RunRow, run: Run) -> list[Ended]:
    """Return the entry that closes a run's journal, if the run has ended."""
    if run.snapshot.status == "active":
        return []
    record = record_as_it_stands(row, run)
    return [Ended(digests=digests_of(run), record=zlib.compress(msgspec.json.encode(record)))]


def record_as_it_stands(row: RunRow, run: Run) -> Record:
    """Return what there is to see of a run that was folded."""
    return Record(result_of(row.run_id, row.session_id, run), trace_of(run))


async def whole_at_end(run: Run, store: RunStore, run_id: str, written: Sequence[Entry]) -> Run:
    """Return a run that has ended folded from its first line, for its record has the whole history; others as they are.

    Args:
        written: Entries that are folded in and about to be written.
    """
    if run.snapshot.status == "active" or run.is_whole:
        return run
    entries, _ = read(run_id, await store.lines(run_id))
    return fold([*entries, *written], run.strategies)


def record_of_row(row: RunRow, entries: Sequence[Entry], why: ReasonryError) -> Record:
    """Return what there is to see of a run that cannot be folded: what lists show of it, and its events."""
    assert row.status != "damaged", "only lists have those"
    begun, budget, participants = terms(entries)
    taken = [entry for entry in entries if isinstance(entry, Settled)]
    usage = sum((getattr(settled.event, "usage", NOTHING) for settled in taken), NOTHING)
    result = Result(
        answer=row.answer,
        status=row.status,
        termination=Termination(row.reason or ""),
        strategy=row.strategy,
        model=row.model,
        usage=usage,
        rounds=0,
        duration_ms=max((settled.event.at_ms for settled in taken), default=0),
        session_id=row.session_id,
        run_id=row.run_id,
        details={},
        warnings=(f"shown from its events alone: {why.message}",),
    )
    trace = {
        "problem": begun.problem,
        "options": begun.options,
        "budget": msgspec.to_builtins(budget),
        "crew": msgspec.to_builtins(participants),
        "created_at_ms": begun.created_at_ms,
        "forked_from": begun.forked_from,
        "stage": "",
        "path": [],
        "events": [{"id": settled.id, **msgspec.to_builtins(settled.event)} for settled in taken],
        "questions": [],
        "thoughts": [],
    }
    return Record(result, trace)


def record_of(entries: Sequence[Entry]) -> Record | None:
    """Return the record of a run; None while it is active, and where 0.1.0 wrote it."""
    last = entries[-1]
    if not isinstance(last, Ended) or not last.record:
        return None
    return msgspec.json.decode(zlib.decompress(last.record), type=Record)


def digests_of(run: Run) -> dict[str, str]:
    """Return a digest of each part of what a run leaves behind: its events, path, thoughts and outcome."""
    end = run.snapshot
    parts = {
        "events": [(settled.id, settled.event) for settled in run.events],
        "path": run.edges,
        "thoughts": run.thoughts,
        "outcome": (end.status, end.error, end.outcome),
    }
    return {
        name: hashlib.sha256(_canonical.encode(part)).hexdigest()[:DIGEST_CHARS]
        for name, part in parts.items()
    }


def differences(row: RunRow, run: Run) -> list[str]:
    """Return the parts in which a run that has ended, walked again, differs from its record.

    0.1.0 recorded of the outcome what lists show; that is compared then.
    """
    recorded = run.ended.digests if run.ended else {}
    if recorded:
        now = digests_of(run)
        return [name for name, digest in recorded.items() if now.get(name) != digest]
    return [] if row_after(row, run, row.updated_at_ms) == row else ["outcome"]
