"""Replay the thoughts of an exported session, one by one, under the rules for new thoughts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..errors import ReasonryError, TooLargeError, UsageError
from ..records import SessionRow, ThoughtRow, WholeSession
from ..system.masking import SECRETS
from ..text import show_value
from .export import KIND, VERSION, Document
from .lines import Head, RowsView, ThoughtLine, encode
from .placement import submit
from .session_calls import read_call, read_thought
from .session_documents import resumed_document
from .session_settings import SessionSettings
from .thinking_tool import ThinkingCall
from .tool_arguments import read_text
from .turn import PURPOSE_CHARS, Find

# -- replaying


def _replay(
    thoughts: Sequence[Document], strategy: Strategy[Any, Any], settings: SessionSettings, now_ms: int
) -> Iterator[tuple[Head, ThoughtRow]]:
    """Yield the session's state after each thought, and the thought. Raise if a thought breaks a rule."""
    head, view = Head(ThoughtLine("")), RowsView()
    for seq, thought in enumerate(thoughts, 1):
        call, at_ms = _read_thought(thought, settings), instant_ms(thought.get("at"), now_ms)
        placed = submit(strategy, head, call, view, at_ms=at_ms, demand_fields=False, recorded=thought)
        row = ThoughtRow(seq, call.thought_number, call.thought, placed.branch, encode(placed.record))
        head = placed.head
        view.add(row)
        yield head, row


def _read_thought(thought: Document, settings: SessionSettings) -> ThinkingCall:
    known = {"total_thoughts": thought.get("thought_number"), "next_thought_needed": True, **thought}
    if "stages" in known:
        known["stage"] = known["stages"]
    data = thought.get("data")
    if not isinstance(data, dict | None):
        raise UsageError(f"data must be an object, not {show_value(data)}", field="data")
    if "score" in thought:
        known["data"] = {"score": thought["score"], **(data or {})}
    read_text("thought", thought.get("thought", ""), settings.max_thought_chars)
    call, _ = read_thought(known, settings)
    return replace(call, branch_id=call.branch_id or "")


def guidance_after(
    thoughts: Sequence[Document], strategy: Strategy[Any, Any]
) -> Iterator[tuple[str, Document]]:
    """Yield the stage of each exported thought, and the document that an agent gets at this stage.

    Raises:
        ReasonryError: A thought breaks a rule of the strategy.
    """
    for head, _ in _replay(thoughts, strategy, SessionSettings(), 0):
        yield head.stage, resumed_document(strategy, head, ())


def _check_count(kind: str, count: int, limit: int) -> None:
    if count > limit:
        raise TooLargeError(f"The session has {count:,} {kind}; the limit is {limit:,}", limit=limit)


def instant_ms(written: Any, default: int) -> int:
    """Convert an ISO 8601 time to milliseconds since 1970. Return the default if the time is unreadable."""
    try:
        at = datetime.fromisoformat(written)
        return max(round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000), 0)
    except (TypeError, ValueError, OverflowError):
        return default


# -- files


class _About(Struct, frozen=True):
    """The members of an exported session that describe the session as a whole."""

    strategy: str | None = None
    purpose: str = ""
    pinned: bool = False
    session_id: str | None = None


def read_session(
    content: str | bytes | Document, find: Find, settings: SessionSettings, now_ms: int
) -> WholeSession:
    """Read an exported session. If the export has no id, the id of the session is empty.

    Raises:
        UsageError: The content is not a session, or a thought breaks a rule. `thought` is its position, from 1.
        TooLargeError: The session or a thought exceeds a limit.
    """
    document = _document(content)
    if document.get("version") != VERSION:
        raise UsageError(
            f"This session was exported in version {show_value(document.get('version'))}; "
            f"this Reasonry reads version {VERSION}"
        )
    about, thoughts = read_call(_About, document), document.get("thoughts")
    if not isinstance(thoughts, list) or not all(isinstance(thought, dict) for thought in thoughts):
        raise UsageError("This is no session: its thoughts must be a list of objects")
    strategy, head, rows = find(about.strategy), Head(ThoughtLine("")), list[ThoughtRow]()
    _check_count("thoughts", len(thoughts), settings.max_thoughts)
    try:
        for latest, row in _replay(thoughts, strategy, settings, now_ms):
            head = latest
            rows.append(row)
    except ReasonryError as error:
        kind: Callable[..., ReasonryError] = type(error)
        place = len(rows) + 1
        message = f"thought {place} of the session: {error.message}"
        raise kind(message, thought=place, **error.details) from None
    _check_count("branches", len(head.branches), settings.max_branches)
    row = SessionRow(
        about.session_id or "",
        strategy.name,
        created_at_ms=instant_ms(document.get("created_at"), now_ms),
        used_at_ms=now_ms,
        pinned=about.pinned,
        thoughts=len(rows),
        purpose=about.purpose[:PURPOSE_CHARS],
        head=encode(head),
    )
    return WholeSession(row, tuple(rows))


def _document(content: str | bytes | Document) -> Document:
    try:
        decoded = content if isinstance(content, Mapping) else msgspec.json.decode(content)
        document = SECRETS.mask_data(decoded)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"This is no session: it is not JSON ({error})") from None
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise UsageError("This is no session: expected a session that was exported as JSON")
    return document
