"""What a store is handed of another one, compared with what it has under the same id."""

from __future__ import annotations

from msgspec.structs import replace

from ..records import Whole, WholeRun, WholeSession, Written
from .checks import check_key, check_row, check_seqs, check_thoughts


def check_whole(whole: Whole) -> None:
    """Check each text and number of a run or session."""
    check_row(whole.row)
    if isinstance(whole, WholeSession):
        check_thoughts(whole.thoughts)
        return
    check_seqs(whole.lines)
    for key in whole.keys:
        check_key(key)


def compare_runs(there: WholeRun, other: WholeRun) -> Written:
    """Return what is to be done with a run where one of its id is there; checkpoints and keys do not count."""
    old, new, count = there.row, other.row, len(there.lines)
    if (old, there.lines) == (new, other.lines):
        return "same"
    began, begins = (
        (old.session_id, old.owner, old.created_at_ms),
        (new.session_id, new.owner, new.created_at_ms),
    )
    is_later = len(other.lines) > count or new.updated_at_ms > old.updated_at_ms
    return "continued" if began == begins and is_later and other.lines[:count] == there.lines else "differs"


def compare_sessions(there: WholeSession, other: WholeSession) -> Written:
    """Return what is to be done with a session where one of its id is there.

    Each store archives its sessions itself, and pinning one is no use of it: these make no difference.
    """
    old, new, count = there.row, other.row, len(there.thoughts)
    if (replace(old, status=new.status, pinned=new.pinned), there.thoughts) == (new, other.thoughts):
        return "same"
    began, begins = (old.run_id, old.owner, old.created_at_ms), (new.run_id, new.owner, new.created_at_ms)
    is_later = len(other.thoughts) > count or new.used_at_ms > old.used_at_ms
    return (
        "continued"
        if began == begins and is_later and other.thoughts[:count] == there.thoughts
        else "differs"
    )
