"""Copies the content of a store into another store of any kind.

Each transaction writes a few whole runs or sessions, so an interrupted copy leaves a valid store. If the copy is
repeated, it compares existing entries and updates earlier states. At the end, the whole target is verified.
"""

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.problem import without_quoted
from ..engine import journal
from ..engine.record import proved_row
from ..records import Finding, OnProgress, RunRow, SessionRow, Whole, WholeKind, WholeRun, WholeSession
from ..text import shorten
from .row_store import RowStore
from .sql import STRAY
from .transfer import PARTS, check_whole

BATCH = 20
"""The most runs or sessions in a transaction."""


class CopyCount(Struct):
    """Counts of the copied runs or sessions."""

    new: int = 0
    continued: int = 0
    """Entries that the target had in an earlier state, which was updated."""
    same: int = 0
    differs: int = 0
    """Entries whose id belongs to a different entry of the target. The target's entry was kept."""
    damaged: int = 0
    """Damaged entries, which were not copied."""
    unproved: int = 0
    """Salvaged sessions whose rows no journal proves. The digests of a session protect only its thoughts."""


class CopyReport(Struct):
    """The result of copying a store."""

    source: str
    target: str
    runs: CopyCount = field(default_factory=CopyCount)
    sessions: CopyCount = field(default_factory=CopyCount)
    conflicts: list[str] = field(default_factory=list[str])
    """The ids of the entries that `differs` counts."""
    damage: list[str] = field(default_factory=list[str])
    """Messages about the damage that was found in the source and in the target."""


async def copy_store(
    source: RowStore,
    target: RowStore,
    *,
    owner: str | None = None,
    batch: int = BATCH,
    verify: bool = True,
    salvage: bool = False,
    on_progress: OnProgress | None = None,
) -> CopyReport:
    """Copy a store's undamaged runs and sessions, or only the ones of `owner`. Then verify the target.

    Args:
        salvage: Whether the source is read without checks. If so, rows are rebuilt from journals. The report then lists
            rows that differ from their journals, and lines or thoughts that belong to no run or session, as damage.
    """
    report, done = CopyReport(source.name, target.name), 0
    tallies = (await source.stats()).tallies
    total = sum(tally.count for tally in tallies if owner in (None, tally.owner))
    for kind, part in PARTS.items():
        after = 0
        while page := await source.read_whole(kind, after, batch, owner):
            after = page[-1][0]
            await _copy_page(target, kind, [whole for _, whole in page], report, salvage)
            done += len(page)
            if on_progress is not None:
                on_progress(min(done, total), total)
        stray = STRAY.format(part=part, kind=kind)
        if salvage and await source.read(lambda tx, stray=stray: tx.rows(stray)):
            report.damage.append(f"{source.name}: {part}s of {kind}s that are gone")
    if verify:
        async for finding in target.whole.verify():
            if finding.state == "damaged":
                report.damage.append(f"{target.name}: {finding.message}")
    return report


async def _copy_page(
    target: RowStore, kind: WholeKind, page: list[Whole | Finding], report: CopyReport, salvage: bool
) -> None:
    ids, wholes, count = list[str](), list[Whole](), report.runs if kind == "run" else report.sessions
    for found in page:
        finding = check_whole(found)
        if isinstance(found, Finding) or finding.state == "damaged":
            count.damaged += 1
            report.damage.append(finding.message)
            continue
        if salvage:
            if isinstance(found, WholeRun):
                found, stated = _run_as_proved(found)
            else:
                found, stated = await _session_as_proved(found, target)
            count.unproved += stated is None
            if stated not in (None, found.row):
                message = "its row said something else than its journal, and is copied as the journal has it"
                report.damage.append(f"{kind} {finding.id}: {message}")
        ids.append(finding.id)
        wholes.append(found)
    for id, written in zip(ids, await target.write_whole(wholes), strict=True):
        setattr(count, written, getattr(count, written) + 1)
        if written == "differs":
            report.conflicts.append(id)


def _run_as_proved(run: WholeRun) -> tuple[WholeRun, RunRow]:
    """Rebuild a run's row from the run's journal. Return the rebuilt run, and the old row for comparison."""
    entries, _ = journal.read(run.row.run_id, run.lines)
    row = proved_row(run.row, entries)
    stated = run.row
    if row.status == "active":
        # The row of an active run is not written with each line.
        stated = replace(stated, calls=row.calls, samples=row.samples, tokens=row.tokens, usd=row.usd)
    # The journal does not prove which request a key stands for.
    return replace(run, row=row, request=None), stated


async def _session_as_proved(
    session: WholeSession, target: RowStore
) -> tuple[WholeSession, SessionRow | None]:
    """Rebuild a session's row from its run's journal, if possible. Return the session, and the old row if replaced."""
    row, run_id = session.row, session.row.run_id or ""
    runs = await target.rows([run_id])
    if not runs or runs[0].session_id != row.session_id:
        return session, None
    begun, *_ = journal.terms(journal.read(run_id, await target.lines(run_id))[0])
    purpose = shorten(without_quoted(begun.problem), journal.HEAD_CHARS, one_line=True)
    proved = replace(row, strategy=begun.strategy, created_at_ms=begun.created_at_ms, purpose=purpose)
    return replace(session, row=replace(proved, thoughts=len(session.thoughts))), row
