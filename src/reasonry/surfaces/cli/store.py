"""`reasonry store`: checks, backups and copies of the store."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from ...app.app import App
from ...errors import UsageError
from ...records import Finding, OnProgress
from ...stores import find_file, open_pair
from ...stores.copy import CopyReport, copy_store
from ...stores.row_store import RowStore
from .. import present
from .output import print_note
from .settings import Common, run_async

_MANY = 1_000
"""Progress is shown if the store has at least this number of runs and sessions."""


def verify_(*, all: bool = False, common: Common = Common()) -> int:
    """Check everything in the store. The check changes nothing, and other processes may write meanwhile.

    The exit code is 6 if anything is damaged.

    Args:
        all: Also list the parts that are not damaged.
    """
    file, *parts = findings = common.do(_verify)
    kinds = {kind: [part for part in parts if part.kind == kind] for kind in ("run", "session")}
    states = {kind: Counter(part.state for part in found) for kind, found in kinds.items()}
    is_whole = not any(finding.state == "damaged" for finding in findings)
    document = {
        "store": file.id,
        "whole": is_whole,
        "file": file.state,
        **{f"{kind}s": {state: states[kind][state] for state in ("whole", "damaged")} for kind in kinds},
        "lines": sum(part.entries for part in kinds["run"]),
        "thoughts": sum(part.entries for part in kinds["session"]),
        "findings": [
            msgspec.to_builtins(finding) | {"state": finding.state}
            for finding in findings
            if all or finding.state != "whole"
        ],
    }
    common.show(document)
    return 0 if is_whole else present.EXIT_CODES["store_corrupt"]


def backup_(file: Path, /, *, force: bool = False, common: Common = Common()) -> int:
    """Copy the store to a file, even while it is in use, and verify the copy.

    Do not back up the store's file in another way: such a copy may lack the latest data.

    Args:
        file: The file to write.
        force: Overwrite an existing file.
    """

    def back_up(store: RowStore) -> Awaitable[Any]:
        find_file(store)
        return store.whole.back_up(file, force=force, on_progress=_note_progress("copied"))

    return _show(common, back_up)


def restore_(file: Path, /, *, common: Common = Common()) -> int:
    """Replace the store and all its content with a backup. No other process may have the store open.

    If the backup is damaged, the store is left unchanged.

    Args:
        file: A file that `store backup` wrote.
    """
    return _show(common, lambda store: store.whole.restore(file, on_progress=_note_progress("copied")))


def _show(common: Common, work: Callable[[RowStore], Awaitable[object]]) -> int:
    async def do(app: App) -> dict[str, Any]:
        return {"store": app.store.name, **msgspec.to_builtins(await work(app.store))}

    return common.show(common.do(do))


def copy_(
    source: str, target: str, /, *, owner: str | None = None, salvage: bool = False, common: Common = Common()
) -> int:
    """Copy all runs and sessions of a store into another store, then verify that store.

    The target keeps its contents. If the target has an earlier state of a run or session, the command updates that
    state. If the target has a different run or session with the same id, the command shows the id, and the exit code is
    5. If any data is damaged, the exit code is 6. After an interruption or later changes, run the command again.

    Args:
        source: The store to copy, in the same form as for --store.
        target: The store to copy into; a file is created if there is none.
        owner: Copy only the runs and sessions of this owner. The source keeps them.
        salvage: Read a file that another program has changed, ignore its page checksums, and write a new file with only
            the data that the digests of the journals prove. `damage` lists the rest; the exit code is then 6.
    """
    if common.store is not None:
        raise UsageError("store copy takes two stores as arguments, not --store", option="store")

    async def work() -> CopyReport:
        stores = open_pair(source, target, salvage=salvage)
        try:
            progress = _note_progress("copied")
            return await copy_store(*stores, owner=owner, salvage=salvage, on_progress=progress)
        finally:
            for store in stores:
                await store.close()

    report = run_async(work())
    common.show(msgspec.to_builtins(report))
    if report.damage:
        return present.EXIT_CODES["store_corrupt"]
    return present.EXIT_CODES["conflict"] if report.conflicts else 0


def stats_(*, common: Common = Common()) -> int:
    """Count runs and sessions by status and owner, and show the space they use."""
    return _show(common, lambda store: store.stats())


def vacuum_(*, common: Common = Common()) -> int:
    """Return the space of deleted data to the disk. Other processes wait meanwhile."""

    async def work(store: RowStore) -> dict[str, int]:
        before = (await store.stats()).bytes
        await store.whole.vacuum()
        return {"bytes_before": before, "bytes": (await store.stats()).bytes}

    return _show(common, work)


def _note_progress(word: str) -> OnProgress | None:
    """Return a function that prints progress in steps of 10 %. Return None if standard error is not a terminal."""
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
    find_file(app.store)
    findings, say = list[Finding](), _note_progress("checked")
    if say:
        print_note(f"checking {app.store.name}")
    async for finding in app.store.whole.verify():
        findings.append(finding)
        if say and findings[0].entries >= _MANY:
            say(len(findings) - 1, findings[0].entries)
    return findings
