"""Session files from elsewhere, read into rows: our own JSON export, and those of think-strategies.

A session is walked again thought by thought, by the same rules as when it was thought, so nothing gets in
that could not have been handed in. Our own export must hold in full. A think-strategies file may break the
rules, since that server lets its thinkers do so: what cannot be followed there is kept in the thought's
`data` and left out of the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..core.text import first_words
from ..errors import IllegalTransitionError, ReasonryError, TooLargeError, UsageError
from ..masking import SECRETS
from ..patterns import lazy_pattern
from ..reading.arguments import MAX_INT, plain_json, read_text, show_value
from ..records import SessionRow, ThoughtRow
from .export import KIND, VERSION
from .lines import Head, Recorded
from .read_calls import read_call, read_thought
from .settings import SessionSettings
from .taking import TakenRows
from .thinking_tool import Notice, ThinkingCall
from .thought import open_session
from .turn import PURPOSE_CHARS, Find, encode

_FOREIGN_DATA = ("action", "observation", "finalAnswer", "plannedActions", "actionResults", "hypothesis")
_INSTANT = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")


class Brought(Struct, frozen=True):
    """A session read from a file, not yet written."""

    strategy: str
    thoughts: list[ThoughtRow]
    head: Head
    created_at_ms: int
    used_at_ms: int
    purpose: str
    pinned: bool = False
    session_id: str | None = None
    """None: it cannot keep the one it had."""
    notices: Sequence[Notice] = ()

    def row(self, session_id: str) -> SessionRow:
        """Return the session's row under an id."""
        return SessionRow(
            session_id,
            self.strategy,
            self.created_at_ms,
            self.used_at_ms,
            pinned=self.pinned,
            thoughts=len(self.thoughts),
            purpose=self.purpose,
            head=encode(self.head),
        )


def read_session(
    content: str | bytes | Mapping[str, Any], find: Find, settings: SessionSettings, now_ms: int
) -> Brought:
    """Read a session file.

    Raises:
        UsageError: It is no session, or breaks its rules; `line` or `thought` says where.
        TooLargeError: It is over the limits.
    """
    document = _document(content)
    if document.get("kind") == KIND:
        return _own(document, find, settings, now_ms)
    if isinstance(document.get("thoughtHistory"), list):
        return _foreign(document, find, settings, now_ms)
    raise UsageError(
        "This is no session: expected a JSON export of `reasonry sessions export`, "
        "or a session.json of think-strategies"
    )


def _document(content: str | bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        document = SECRETS.mask_data(
            content if isinstance(content, Mapping) else msgspec.json.decode(content)
        )
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"This is no session: it is not JSON ({error})") from None
    if not isinstance(document, Mapping):
        raise UsageError("This is no session: expected a JSON object")
    return document


# -- our own export


class _About(Struct, frozen=True):
    """What an export says of its session as a whole."""

    strategy: str | None = None
    purpose: str = ""
    pinned: bool = False
    session_id: str | None = None


def _own(document: Mapping[str, Any], find: Find, settings: SessionSettings, now_ms: int) -> Brought:
    if document.get("version") != VERSION:
        raise UsageError(
            f"This session was exported in version {show_value(document.get('version'))}; "
            f"this Reasonry reads version {VERSION}"
        )
    about = read_call(_About, document, keep_empty=("session_id",))
    strategy = find(about.strategy)
    thoughts = _check_thoughts(document.get("thoughts"), settings)
    has_stages = any(thought.get("stage") for thought in thoughts)
    past, head = TakenRows(), open_session(None if has_stages or about.strategy is None else strategy)
    for place, thought in enumerate(thoughts, 1):
        try:
            call = _own_call(thought, settings)
            recorded = _thoughts_on_record(thought, call, past)
            head = past.take(strategy, head, call, _instant(thought.get("at"), now_ms), recorded)
        except ReasonryError as error:
            raise _at(error, place) from None
    _check_branches(head, settings)
    return Brought(
        strategy.name,
        past.rows,
        head,
        _instant(document.get("created_at"), now_ms),
        now_ms,
        about.purpose[:PURPOSE_CHARS],
        about.pinned,
        about.session_id,
    )


def _own_call(thought: Mapping[str, Any], settings: SessionSettings) -> ThinkingCall:
    known = {name: value for name, value in thought.items() if name != "data" or value is not None}
    if "stages" in known:
        known["stage"] = known["stages"]
    defaults = {"total_thoughts": thought.get("thought_number"), "next_thought_needed": True}
    read_text("thought", thought.get("thought", ""), settings.max_thought_chars)
    if not isinstance(thought.get("data"), dict | None):
        raise UsageError(f"data must be an object, not {show_value(thought['data'])}", field="data")
    call, _ = read_thought({**defaults, **known}, settings)
    return replace(call, branch_id=call.branch_id or "")


def _thoughts_on_record(thought: Mapping[str, Any], call: ThinkingCall, past: TakenRows) -> Recorded:
    """Return which thoughts an export says its numbers mean; until 0.1.0 a branch left the latest of its number."""
    there = [] if call.branch_from_thought is None else past.with_number(call.branch_from_thought)
    latest = next((place.seq for place in there), None)
    return Recorded(
        _positive(thought.get("branch_from_seq")) or latest, _positive(thought.get("revises_seq"))
    )


# -- think-strategies


def _foreign(document: Mapping[str, Any], find: Find, settings: SessionSettings, now_ms: int) -> Brought:
    thoughts = _check_thoughts(_with_branches(document), settings)
    named = document.get("strategy") or next((thought.get("strategy") for thought in thoughts), None)
    strategy, notices = _foreign_strategy(named, find)
    past, head = TakenRows(), open_session(strategy)
    ended_at = _instant(document.get("timestamp"), now_ms)
    for place, thought in enumerate(thoughts, 1):
        try:
            call = _foreign_call(thought, place, past, settings)
            at_ms = _instant(thought.get("timestamp"), ended_at)
            head = _take_foreign(strategy, head, call, past, at_ms, settings)
        except ReasonryError as error:
            raise _at(error, place) from None
    _check_branches(head, settings)
    purpose = document.get("sessionPurpose") or (past.rows[0].text if past.rows else "")
    short = first_words(str(purpose), PURPOSE_CHARS)
    begun_at = min([_instant(thought.get("timestamp"), ended_at) for thought in thoughts], default=ended_at)
    return Brought(strategy.name, past.rows, head, begun_at, now_ms, short, notices=notices)


def _foreign_strategy(name: Any, find: Find) -> tuple[Strategy[Any, Any], Sequence[Notice]]:
    try:
        return find(str(name)), ()
    except UsageError:
        default = find(None)
        message = (
            f"Strategy {show_value(name)} is not known here; the session was imported as {default.name}."
        )
        return default, (Notice("strategy", message),)


def _with_branches(document: Mapping[str, Any]) -> list[Any]:
    """Return the history, and behind it the branches whose thoughts it lacks."""
    thoughts: list[Any] = list(document["thoughtHistory"])
    names = [thought.get("branchId") for thought in thoughts if isinstance(thought, dict)]
    there = {name for name in names if isinstance(name, str)}
    branches = document.get("branches")
    for name, own in (branches if isinstance(branches, dict) else {}).items():
        if name not in there and isinstance(own, list):
            thoughts += [{"branchId": name, **thought} for thought in own if isinstance(thought, dict)]
    return thoughts


def _foreign_call(
    thought: Mapping[str, Any], place: int, past: TakenRows, settings: SessionSettings
) -> ThinkingCall:
    number = _positive(thought.get("thoughtNumber")) or place
    data: dict[str, Any] = {name: thought[name] for name in _FOREIGN_DATA if thought.get(name) is not None}
    branch = thought.get("branchId")
    stage = thought.get("currentStage") or thought.get("stage")
    return ThinkingCall(
        thought=read_text("thought", thought.get("thought", ""), settings.max_thought_chars),
        thought_number=number,
        total_thoughts=_positive(thought.get("totalThoughts")) or number,
        next_thought_needed=thought.get("nextThoughtNeeded") is not False,
        is_revision=thought.get("isRevision") is True,
        revises_thought=_known_number(thought, "revisesThought", past, data),
        branch_from_thought=_known_number(thought, "branchFromThought", past, data),
        branch_id=read_text("branchId", branch) if isinstance(branch, str) else "",
        stage=stage if isinstance(stage, str) else None,
        data=data,
    )


def _take_foreign(
    strategy: Strategy[Any, Any],
    head: Head,
    call: ThinkingCall,
    past: TakenRows,
    at_ms: int,
    settings: SessionSettings,
) -> Head:
    """Take a thought; a stage that the table does not lead to is noted in its data."""
    data = plain_json("data", call.data, settings.max_thought_chars) or None
    try:
        return past.take(strategy, head, replace(call, data=data), at_ms)
    except IllegalTransitionError:
        noted = plain_json("data", {**(data or {}), "stage": call.stage}, settings.max_thought_chars)
        return past.take(strategy, head, replace(call, stage=None, data=noted), at_ms)


def _known_number(thought: Mapping[str, Any], name: str, past: TakenRows, data: dict[str, Any]) -> int | None:
    number = _positive(thought.get(name))
    if number is None or any(past.with_number(number)):
        return number
    data[name] = number
    return None


def _positive(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= MAX_INT:
        return None
    return int(value)


# -- both


def _check_thoughts(thoughts: Any, settings: SessionSettings) -> list[dict[str, Any]]:
    if not isinstance(thoughts, list) or not all(isinstance(thought, dict) for thought in thoughts):
        raise UsageError("This is no session: its thoughts must be a list of objects")
    if len(thoughts) > settings.max_thoughts:
        raise TooLargeError(
            f"The session has {len(thoughts):,} thoughts; the limit is {settings.max_thoughts:,}",
            limit=settings.max_thoughts,
        )
    return thoughts


def _check_branches(head: Head, settings: SessionSettings) -> None:
    if len(head.branches) > settings.max_branches:
        raise TooLargeError(
            f"The session has {len(head.branches):,} branches; the limit is {settings.max_branches:,}",
            limit=settings.max_branches,
        )


def _instant(written: Any, default: int) -> int:
    if not isinstance(written, str) or not _INSTANT.fullmatch(written):
        return default
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        return default
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(int(at.timestamp() * 1_000), 0)


def _at(error: ReasonryError, place: int) -> ReasonryError:
    kind: Callable[..., ReasonryError] = type(error)
    return kind(f"thought {place} of the session: {error.message}", thought=place, **error.details)
