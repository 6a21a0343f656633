"""Find runs, and return them to agents as JSON documents of limited size.

A page has limits on entries and characters. A shortened text says that it is shortened.
"""

import asyncio
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..engine.engine import Engine
from ..engine.journal import CALLER
from ..engine.record import Record
from ..errors import UsageError
from ..guided.session_documents import instant, thought_document
from ..guided.tool_arguments import position_of
from ..records import RunRow
from ..text import display_line, shorten
from .agent_calls import ReadTrace
from .run_thoughts import thought_rows

Document = dict[str, Any]
T = TypeVar("T")

MAX_TEXT_CHARS = 4_000
"""The most characters of a prompt, a reply or a thought. `sessions get` returns whole thoughts."""
MAX_PAGE_CHARS = 20_000
"""The most characters of a page. A page has its first entry even if this entry is longer."""
MAX_PATH_STAGES = 100
_MAX_NAMED_RUNS = 5
_OF_HEADS = (
    *("strategy", "options", "model", "budget", "forked_from", "from_session"),
    *("outcome", "termination", "why", "usage"),
)
"""Members of a page that come unchanged from the run's record."""
_OF_GUIDED_THOUGHTS = ("seq", "next_thought_needed")
"""Members of guided thoughts that are meaningless for a run's thoughts."""


# -- which run


async def find_run(engine: Engine, own: Sequence[str], *, only_open: bool) -> str:
    """Return the id of the only open run in `own`, for a call without a run id.

    Args:
        own: The ids of the connection's runs, latest last.
        only_open: Whether the run must be open. Otherwise the latest run is returned if no run is open.

    Raises:
        UsageError: There is no such run, or several runs are open; `choices` lists the ids of the open runs.
    """
    rows = await engine.store.rows(own)
    waiting = [row for row in rows if row.status == "active"]
    if len(waiting) > 1:
        raise _not_named(f"run_id is missing, and {len(waiting)} runs of this connection are open", waiting)
    if not waiting and (only_open or not rows):
        raise await no_run_named(engine, "run_id is missing, and no run of this connection is open")
    return (waiting or rows)[-1].run_id


async def no_run_named(engine: Engine, why: str) -> UsageError:
    """Return the error for a call without a run id. The error lists the latest open coached runs of the store."""
    rows = await engine.store.runs(status="active", model=CALLER, limit=_MAX_NAMED_RUNS)
    return _not_named(why, rows)


def _not_named(why: str, rows: Sequence[RunRow]) -> UsageError:
    shown = [
        f"{row.run_id} ({row.strategy}: {display_line(row.problem, 40)})" for row in rows[-_MAX_NAMED_RUNS:]
    ]
    way = (
        f"pass one of these as run_id: {'; '.join(shown)}"
        if shown
        else "`start` one, or find one with `list`"
    )
    return UsageError(f"{why}; {way}", field="run_id", choices=[row.run_id for row in rows])


# -- one run


async def read_trace(engine: Engine, run_id: str, call: ReadTrace) -> Document:
    """Return a run, a page of its thoughts and a page of its questions. Both pages begin at the same position.

    Raises:
        NotFoundError: There is no such run.
        UsageError: The cursor does not have the form of a `next_cursor`.
    """
    after = position_of(call.cursor)
    row, record = await engine.store.run(run_id), await engine.record(run_id)
    document = await asyncio.to_thread(lambda: _page(record, after, call.limit))
    about = {"run_id": run_id, "session_id": row.session_id, "status": record.result.status}
    if after:
        return {**about, **document}
    return {**about, **_head_document(record), **document}


def page_of(entries: Iterable[T], after: int, limit: int, max_chars: int) -> tuple[list[T], bool]:
    """Return a page of entries, and whether more follow. The page skips the first `after` entries."""
    found, room = list[T](), max_chars
    for entry in itertools.islice(entries, after, None):
        room -= len(msgspec.json.encode(entry))
        if len(found) == limit or (found and room < 0):
            return found, True
        found.append(entry)
    return found, False


def _page(record: Record, after: int, limit: int) -> Document:
    places, _ = record.fork_points()
    thoughts = map(_thought, thought_rows(record.thoughts()))
    asked = (_question(question, places) for question in record.entries("questions"))
    found, more = page_of(itertools.zip_longest(thoughts, asked), after, limit, MAX_PAGE_CHARS)
    return {
        "thoughts": [thought for thought, _ in found if thought is not None],
        "questions": [question for _, question in found if question is not None],
        "next_cursor": str(after + len(found)) if more else None,
    }


def _thought(row: Any) -> Document:
    members = thought_document(row).items()
    document = {name: value for name, value in members if name not in _OF_GUIDED_THOUGHTS}
    return {**document, "thought": _cut(document["thought"])}


def _question(question: Mapping[str, Any], places: Mapping[str, int]) -> Document:
    document: Document = {
        "id": question["id"],
        "stage": question["stage"],
        "prompt": _cut(question["prompt"]),
        "reply": _cut(question["reply"]),
        "read": question["read"] or None,
        "fork_at": places.get(question["id"]),
    }
    return {name: value for name, value in document.items() if value is not None}


def _head_document(record: Record) -> Document:
    trace: Document = {**record.result.document(), **record.head}
    stages = [edge[0] for edge in record.entries("path")] + [trace["stage"]]
    skipped = ["…"] if len(stages) > MAX_PATH_STAGES else []
    document: Document = {
        **{name: trace.get(name) for name in _OF_HEADS},
        **{name: _cut(trace.get(name)) for name in ("problem", "answer", "best_answer")},
        "created_at": instant(trace["created_at_ms"]),
        "path": [*skipped, *stages[-MAX_PATH_STAGES:]],
        "warnings": [_cut(warning) for warning in trace["warnings"]],
    }
    return {name: value for name, value in document.items() if value is not None and value != []}


def _cut(text: str | None) -> str | None:
    return None if text is None else shorten(text, MAX_TEXT_CHARS)
