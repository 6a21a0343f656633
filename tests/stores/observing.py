"""All there is to read in a store, and what damage may make of it: the same, or an error, or a mark in its place."""

from collections.abc import Awaitable
from typing import Any, NamedTuple

from reasonry.app.app import App
from reasonry.engine import journal
from reasonry.errors import ReasonryError
from reasonry.records import Finding, Whole, WholeKind
from reasonry.stores.sqlite import SqliteStore
from reasonry.stores.transfer import check_whole
from tests.engine.running import order_and_solve

PUZZLE = "Use 4, 9, 10 and 13 to make 24"


class Names(NamedTuple):
    """What is in a store."""

    runs: list[str]
    sessions: list[str]


async def fill(app: App, runs: int = 2, sessions: int = 3) -> None:
    """Run puzzles and think in sessions with branches and revisions."""
    for _ in range(runs):
        await order_and_solve(app, PUZZLE, "tree_of_thoughts", model="offline")
    for number in range(sessions):
        await think(app, None, f"session {number}", 1, 6)


async def think(app: App, session_id: str | None, text: str, first: int, last: int) -> str:
    """Think from one number to another; return the session's id."""
    for number in range(first, last + 1):
        arguments: dict[str, Any] = {
            "thought": f"{text}, thought {number}: " + "is the value prime? " * number,
            "thought_number": number,
            "total_thoughts": 9,
            "next_thought_needed": True,
        }
        if number == 4:
            arguments |= {"branch_from_thought": 2, "branch_id": "other"}
        if number == 5:
            arguments |= {"is_revision": True, "revises_thought": 3}
        if session_id is not None:
            arguments["session_id"] = session_id
        session_id = (await app.sessions().think(arguments))["session_id"]
    assert session_id is not None
    return session_id


async def names(store: SqliteStore) -> Names:
    runs, sessions = await store.runs(limit=1_000), await store.sessions(limit=1_000)
    return Names([row.run_id for row in runs], [row.session_id for row in sessions])


async def observe(store: SqliteStore, there: Names) -> dict[str, Any]:
    """Read everything; the code stands for an error."""

    async def entries(run_id: str) -> Any:
        return journal.read(run_id, await store.lines(run_id))[0]

    async def whole(kind: WholeKind) -> list[Any]:
        found, after = list[Any](), 0
        while page := await store.read_whole(kind, after):
            found += [(key, kind, _checked(one)) for key, one in page]
            after = page[-1][0]
            assert len(found) < 100, "it goes round and round"
        return found

    calls: dict[str, Awaitable[Any]] = {
        "whole runs": whole("run"),
        "whole sessions": whole("session"),
        "runs": store.runs(limit=1_000),
        "done": store.runs(status="done", limit=1_000),
        "sessions": store.sessions(limit=1_000),
        "search": store.search_thoughts("prime", limit=10_000),
    }
    for run_id in there.runs:
        calls |= {f"row {run_id}": store.run(run_id), f"journal {run_id}": entries(run_id)}
    for session_id in there.sessions:
        calls |= {
            f"session {session_id}": store.session(session_id),
            f"thoughts {session_id}": store.thoughts(session_id, limit=1_000),
            f"later {session_id}": store.thoughts(session_id, first=4, last=5),
            f"other {session_id}": store.thoughts(session_id, branch="other"),
        }
    return {name: await _attempt(call) for name, call in calls.items()}


async def _attempt(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except ReasonryError as error:
        return error.code


def _checked(whole: Whole | Finding) -> Whole | Finding:
    """Return what is read whole, the lines of a run compared with each other, as copying does."""
    finding = check_whole(whole)
    return finding if finding.state == "damaged" else whole


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what was read otherwise than before without a word about damage."""
    return {
        name: after[name]
        for name in before
        if after[name] not in (before[name], "store_corrupt") and not _is_marked(before[name], after[name])
    }


def _is_marked(before: Any, after: Any) -> bool:
    """Whether a list of whole runs or sessions has each as it was, but for those that are marked as damaged."""
    if not isinstance(before, list) or not isinstance(after, list) or not isinstance(before[0], tuple):
        return False
    whole = [one for one in after if not isinstance(one[2], Finding)]
    return len(after) > len(whole) and all(one in before for one in whole)
