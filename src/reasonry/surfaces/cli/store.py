"""`reasonry store`: looking after the place where runs and sessions are kept."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from ...app.wiring import App
from ...errors import UsageError
from ...records import Backup, Finding, OnProgress, Store, StoreStats
from ...stores import open_pair
from ...stores.copy import CopyReport, copy_store
from .. import present
from .output import Column, print_line, print_note, print_table
from .settings import Common, run_async

_MANY = 1_000
"""Runs and sessions whose check takes so long that its progress is shown."""
_TALLIES = (
    Column("WHAT", lambda row: f"{row['kind']}s"),
    Column("OWNER", "owner", narrowest=8),
    Column("STATUS", "status"),
    Column("COUNT", lambda row: f"{row['count']:,}"),
)
_FINDINGS = (
    Column("STATE", "state"),
    Column("WHAT", "kind"),
    Column("ID", lambda row: "" if row["kind"] == "file" else row["id"], narrowest=8),
    Column("MESSAGE", "message", narrowest=20, wraps=True),
)


def verify_(*, all: bool = False, common: Common = Common()) -> int:
    """Check everything in the store. Nothing is changed, and others may continue writing.

    The exit code is 6 if anything is damaged.

    Args:
        all: List undamaged parts too.
    """
    document = _document(common.do(_verify), every=all)
    common.show(document, lambda: _show(document))
    return 0 if document["whole"] else present.EXIT_CODES["store_corrupt"]


def backup_(file: Path, /, *, force: bool = False, common: Common = Common()) -> int:
    """Copy the store to a file, also while it is in use. The copy is checked before it is said to be made.

    A copy of the store's file by other means is no backup: the latest data may be missing from it.

    Args:
        file: The file to write.
        force: Write over a file that is there.
    """
    say = _note_progress("copied")
    return _show_backup(common, "written to", lambda store: store.back_up(file, force=force, on_progress=say))


def restore_(file: Path, /, *, common: Common = Common()) -> int:
    """Replace the store, and all that is in it, with a backup. No other process may have the store open.

    The store stays as it was if anything is wrong with the backup.

    Args:
        file: A file that `store backup` wrote.
    """
    say = _note_progress("copied")
    return _show_backup(common, "restored from", lambda store: store.restore(file, on_progress=say))


def _show_backup(common: Common, action: str, work: Callable[[Store], Awaitable[Backup]]) -> int:
    async def do(app: App) -> tuple[str, Backup]:
        return app.store.name, await work(app.store)

    store, backup = common.do(do)
    counts = f"{backup.runs:,} runs and {backup.sessions:,} sessions, {backup.bytes:,} bytes"
    document = {"store": store, **msgspec.to_builtins(backup)}
    return common.show(document, f"{action} {backup.file}: {counts}, all whole")


def copy_(source: str, target: str, /, *, owner: str | None = None, common: Common = Common()) -> int:
    """Copy all runs and sessions of a store into another one, then verify that.

    The target keeps its contents. An earlier state of the same run or session is brought up to date; a run or session
    that differs is named, and the exit code is 5. If something is damaged, the exit code is 6. After an interruption,
    run the same command again. It also copies later changes of the source.

    Args:
        source: The store to copy, as after --store.
        target: The store to copy into; a file is created if there is none.
        owner: Copy the runs and sessions of this owner alone. The first store keeps them.
    """
    if common.store is not None:
        raise UsageError("store copy takes the two stores by themselves, not --store", option="store")

    async def work() -> CopyReport:
        stores = open_pair(source, target)
        try:
            return await copy_store(*stores, owner=owner, on_progress=_note_progress("copied"))
        finally:
            for store in stores:
                await store.close()

    report = run_async(work())
    common.show(msgspec.to_builtins(report), lambda: _show_copy(report, owner))
    if report.damage:
        return present.EXIT_CODES["store_corrupt"]
    return present.EXIT_CODES["conflict"] if report.conflicts else 0


def _show_copy(report: CopyReport, owner: str | None) -> None:
    for name, counts in (("runs", report.runs), ("sessions", report.sessions)):
        numbers = msgspec.structs.asdict(counts).items()
        parts = [f"{number:,} {_BECAME[key]}" for key, number in numbers if number]
        print_line(f"{name}: {', '.join(parts) or 'none'}")
    print_line(*(f"differs and was not copied: {name}" for name in report.conflicts))
    print_line(*(f"damaged: {message}" for message in report.damage))
    if not report.conflicts and not report.damage:
        whose = "" if owner is None else f"of {owner!r} "
        print_line(f"{report.target} has all {whose}of {report.source} and is whole")


_BECAME = {
    "new": "copied",
    "continued": "brought up to date",
    "same": "there already",
    "differs": "not copied: other ones there have their ids",
    "damaged": "not copied: damaged",
}


def stats_(*, common: Common = Common()) -> int:
    """Count what is kept, by status and owner, and say how much space it takes."""

    async def work(app: App) -> tuple[str, StoreStats]:
        return app.store.name, await app.store.stats()

    name, stats = common.do(work)
    document = {"store": name, **msgspec.to_builtins(stats)}

    def draw() -> None:
        print_table(_TALLIES, document["tallies"])
        print_line(f"{stats.lines:,} lines of journals and {stats.thoughts:,} thoughts")
        free = "" if stats.free_bytes is None else f", of which {stats.free_bytes:,} bytes are empty"
        print_line(f"{name} takes {stats.bytes:,} bytes{free}")

    return common.show(document, draw)


def vacuum_(*, common: Common = Common()) -> int:
    """Give the space of what was deleted back to the disk. Others wait while the store is rewritten."""

    async def work(app: App) -> dict[str, Any]:
        before = await app.store.stats()
        await app.store.vacuum()
        after = await app.store.stats()
        return {"store": app.store.name, "bytes_before": before.bytes, "bytes": after.bytes}

    document = common.do(work)
    was = f"before it took {document['bytes_before']:,} bytes"
    return common.show(document, f"{document['store']} takes {document['bytes']:,} bytes; {was}")


def _note_progress(word: str) -> OnProgress | None:
    """Return a function that says how far the work has come, every tenth, where a person looks on."""
    if not sys.stderr.isatty():
        return None
    shown = [0]

    def say(done: int, total: int) -> None:
        percent = 100 * done // max(total, 1)
        if percent >= shown[0] + 10:
            shown[0] = percent - percent % 10
            print_note(f"{shown[0]} % is {word}")

    return say


async def _verify(app: App) -> list[Finding]:
    findings, say = list[Finding](), _note_progress("checked")
    if say:
        print_note(f"checking {app.store.name}")
    async for finding in app.store.verify():
        findings.append(finding)
        if say and findings[0].entries >= _MANY:
            say(len(findings) - 1, findings[0].entries)
    return findings


def _document(findings: list[Finding], *, every: bool) -> dict[str, Any]:
    file, *parts = findings
    kinds = {kind: [part for part in parts if part.kind == kind] for kind in ("run", "session")}
    states = {kind: Counter(part.state for part in found) for kind, found in kinds.items()}
    shown = [finding for finding in findings if every or finding.state != "whole"]
    return {
        "store": file.id,
        "whole": all(finding.state != "damaged" for finding in findings),
        "file": file.state,
        **{f"{kind}s": {state: states[kind][state] for state in ("whole", "damaged")} for kind in kinds},
        "lines": sum(part.entries for part in kinds["run"]),
        "thoughts": sum(part.entries for part in kinds["session"]),
        "findings": [msgspec.to_builtins(finding) | {"state": finding.state} for finding in shown],
    }


def _show(document: dict[str, Any]) -> None:
    print_table(_FINDINGS, document["findings"])
    for kind, entries in (("runs", "lines"), ("sessions", "thoughts")):
        counts = [f"{number:,} {state}" for state, number in document[kind].items() if number]
        print_line(f"{kind}: {', '.join(counts) or 'none'}; {document[entries]:,} {entries} checked")
    print_line(f"the store {document['store']} is {'whole' if document['whole'] else 'DAMAGED'}")
