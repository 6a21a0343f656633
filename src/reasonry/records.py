"""The records of runs and sessions, and the protocol of a store."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack

from msgspec import Struct

from .errors import NotFoundError, UsageError

T = TypeVar("T")

DAY_MS = 86_400_000
RETRY_S = 0.25
"""Seconds between two tries of a store that is away."""


class Line(Struct, frozen=True):
    """One line of a journal as a store keeps it.

    `digest` has 16 bytes and covers `body` and the previous digest, so that damage shows.
    """

    seq: int
    body: bytes
    digest: bytes


Outcome = Literal["solved", "answered", "stopped", "unsolved", "error", "waiting"]
"""The end of a run in one word: `solved` (a verifier proved the answer), `answered`, `stopped` (by a budget or a
person, at most with the best so far), `unsolved` (a search without an answer), `error`, or `waiting` for its
caller's answers."""
ANSWERED = ("solved", "answered")
"""The outcomes of runs that have an answer."""


class RunRow(Struct, frozen=True, omit_defaults=True):
    """A run as a store lists it. Instants are UTC, milliseconds since 1970."""

    run_id: str
    session_id: str
    strategy: str
    model: str
    problem: str
    status: Literal["active", "done", "failed", "cancelled"]
    created_at_ms: int
    updated_at_ms: int
    outcome: Outcome | None = None
    """None while the run works or is paused."""
    reason: str | None = None
    detail: str = ""
    """The reason for people, or the message of an error."""
    answer: str | None = None
    """The answer of a `solved` or `answered` run, else the best so far, if any."""
    owner: str = ""
    """The owner, which never changes. Empty for the operator."""
    unattended: bool = False
    """Whether the run is a job, driven by the process that drives the store's jobs."""
    paused: bool = False
    calls: int = 0
    """Calls of the run itself at the last write of its row, without a fork's copied answers."""
    samples: int = 0
    """Replies of models: several for a call that asks for several samples."""
    tokens: int = 0
    usd: float | None = None
    """None if unknown."""


class JobOptions(Struct, frozen=True):
    """How an unattended run waits for a worker.

    Args:
        priority: From 0, which starts first, to `MAX_PRIORITY`.
        at_ms: The earliest start, UTC, milliseconds since 1970. None means at once.
        carried: The trace context of its caller.
    """

    queue: str = "default"
    priority: int = 5
    at_ms: int | None = None
    carried: Mapping[str, str] = {}


MAX_PRIORITY = 9


class QueueStatus(Struct, frozen=True):
    """The number of waiting jobs, the longest wait, and the number of processes that drive jobs."""

    depth: int = 0
    oldest_s: float = 0.0
    workers: int = 0


class RequestKey(Struct, frozen=True):
    """The idempotency key of a request to begin a run: it identifies an owner's repeats for `KEY_LIFE_MS`."""

    key: str
    digest: bytes
    """The digest of the whole request."""
    at_ms: int
    """Now, UTC, milliseconds since 1970."""

    @classmethod
    def of(cls, key: str, asked: bytes, at_ms: int) -> RequestKey:
        """Return the record of a request, with a digest of its key, since clients put secrets into keys."""
        name = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
        return cls(name, hashlib.sha256(asked).digest(), at_ms)


KEY_LIFE_MS = DAY_MS


class RunFilters(TypedDict, total=False):
    """The filters of a list of runs. None excludes nothing."""

    status: str | None
    outcome: str | None
    reason: str | None
    strategy: str | None
    model: str | None
    unattended: bool | None
    paused: bool | None
    since_ms: int | None
    """Created then or later."""
    until_ms: int | None
    """Created before."""
    min_usd: float | None
    """The least known cost."""
    query: str | None
    """A text in the problem, answer, error or thoughts, in any case."""


UsageGroup = Literal["strategy", "model", "outcome"]


class UsageTotal(Struct, frozen=True):
    """The total usage of runs."""

    group: str = ""
    """The common value of the group. Empty for all runs."""
    runs: int = 0
    calls: int = 0
    samples: int = 0
    tokens: int = 0
    usd: float = 0.0
    """The known cost."""


class Use(Struct, frozen=True):
    """The part of a run's session row that needs no journal; writing it counts as use of the session."""

    thoughts: int
    at_ms: int
    added: tuple[ThoughtRow, ...] = ()
    """The latest thoughts. The store skips thoughts that it already has."""


class RunStore(Protocol):
    """Keeps runs and their journals. Acknowledged writes survive kill -9.

    Raises (every method): StoreError `store_unavailable | store_busy | store_full | store_corrupt | store_newer`.
    """

    async def create_run(
        self,
        row: RunRow,
        lines: Sequence[Line],
        session: SessionRow | None = None,
        key: RequestKey | None = None,
        *,
        thoughts: Sequence[ThoughtRow] = (),
        drive: bool = False,
        job: JobOptions | None = None,
    ) -> str:
        """Write a new run, its first lines, and its optional session and key, in one transaction.

        Args:
            thoughts: The first thoughts of the session.
            drive: Whether to take the right to drive it in the same transaction, for the next `drive` of the run here.
            job: The options of its job, if workers share the store.

        Returns:
            Its id; or, without a write, the id of the run that the same request began earlier.

        Raises:
            ConflictError: A run or a session with this id exists; `idempotency_conflict`: the owner has used the key
                for another request.
        """
        ...

    async def append(
        self,
        run_id: str,
        lines: Sequence[Line],
        row: RunRow | None = None,
        use: Use | None = None,
        *,
        job: JobOptions | None = None,
    ) -> None:
        """Write lines, and the new row and the use of the run's session unless None, in one transaction.

        Args:
            job: As in `create_run`; the write then releases the lease.

        Raises:
            ConflictError: Nothing is written. A line with that number exists, since another process drives the run;
                `lease_lost`: another holder has taken over the lease of this store (see `drive`).
        """

    async def run(self, run_id: str) -> RunRow:
        """Return a run. Raises NotFoundError if it does not exist."""
        ...

    async def rows(self, run_ids: Collection[str]) -> list[RunRow]:
        """Return the existing runs among these, in one read."""
        ...

    async def lines(self, run_id: str, after: int = 0) -> list[Line]:
        """Return the lines of a journal, oldest first. The caller checks the digests.

        Args:
            after: The position of the last line to skip.

        Raises:
            NotFoundError: There is no such run.
        """
        ...

    async def tail(self, run_id: str) -> tuple[Line | None, list[Line]]:
        """Return a run's latest checkpoint, see `keep`, and the lines after it; without one, the whole journal.

        Raises:
            NotFoundError: There is no such run.
        """
        ...

    async def keep(self, run_id: str, checkpoint: Line) -> None:
        """Replace the checkpoint of a run, a cache that may be lost at any time. Raises `lease_lost` like `append`.

        Args:
            checkpoint: A line of the journal, with the folded state after this line as its body.
        """

    async def runs(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]
    ) -> list[RunRow]:
        """Return runs, newest first; `before` is the last run id of the previous page."""
        ...

    async def run_ids(self, prefix: str, limit: int = 10) -> list[str]:
        """Return ids of runs that begin with `prefix`, sorted."""
        ...

    async def delete_run(self, run_id: str) -> None:
        """Delete a run and its journal."""

    def drive(self, run_id: str) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that holds the lease of a run: the exclusive right to drive it.

        The lease has the run's next fencing number, which only grows. Writes of this store object are checked against
        it in the same transaction; other writes, such as a cancellation, are not. The lease is renewed while its event
        loop runs, and released by the write that ends the run, or soon after the context ends. The lease of a dead
        process of this computer is free at once, any other lease some seconds after its last renewal.

        Raises:
            ConflictError: On entering: another process or task drives the run (`pid` in details).
            NotFoundError: On entering: there is no such run.
        """
        ...

    async def let_go(self, run_id: str) -> bool:
        """Release the lease of a run if the run is still paused; return whether it is paused."""
        ...

    async def find_driven(self, run_ids: Collection[str]) -> set[str]:
        """Return the runs whose lease has a living holder, this store object included."""
        ...

    async def close(self) -> None:
        """Finish accepted writes, then release all resources."""


class SessionRow(Struct, frozen=True, omit_defaults=True):
    """A session without its thoughts. Instants are UTC, milliseconds since 1970."""

    session_id: str
    strategy: str
    created_at_ms: int
    used_at_ms: int
    """Last use; the time to live counts from here."""
    status: Literal["active", "archived"] = "active"
    pinned: bool = False
    thoughts: int = 0
    purpose: str = ""
    """Head of the first thought or of the problem, for lists."""
    run_id: str | None = None
    """The run that writes this session, if any."""
    head: bytes = b"{}"
    """Small JSON: the state of each line of thought (stage, last number, totals, branches). Opaque to the store."""
    ttl_ms: int | None = None
    """Time without use until it expires. None for the caller's default."""
    owner: str = ""
    """The owner, which never changes. Empty for the operator."""


class SessionFilters(TypedDict, total=False):
    """The filters of a list of sessions. None excludes nothing."""

    status: str | None
    strategy: str | None
    since_ms: int | None
    """Last used then or later."""
    until_ms: int | None
    """Last used before."""
    guided: bool | None
    """Whether no run writes it."""
    query: str | None
    """A text in the purpose or thoughts, in any case."""


class ThoughtRow(Struct, frozen=True, omit_defaults=True):
    """A stored thought."""

    seq: int
    """1, 2, … in the order of the calls of this session."""
    number: int
    """The thinker's own number, which may repeat."""
    text: str
    branch: str | None = None
    body: bytes = b"{}"
    """The rest as JSON: stage, revises, branch point, data, instants. Opaque to the store."""


Found = tuple[int, str, ThoughtRow]
"""A search result: its position, the session's id, and the thought."""


class SessionView(Protocol):
    """A session inside one transaction.

    Attributes:
        row: None if there is no such session.
    """

    row: SessionRow | None

    def with_number(self, number: int) -> list[ThoughtRow]:
        """Return the thoughts of the session that have this number, oldest first."""
        ...

    def latest(self, count: int) -> list[ThoughtRow]:
        """Return the latest thoughts, oldest first."""
        ...

    def other(self, session_id: str) -> SessionView:
        """Return another session inside the same transaction."""
        ...


class SessionChange(Struct, frozen=True):
    """The writes of a transaction, by default none."""

    row: SessionRow | None = None
    thought: ThoughtRow | None = None
    delete: bool = False
    """Whether to remove an earlier session with this id before writing `row`."""
    value: Any = None
    """Returned to the caller once everything is durable."""
    archive_as: str | None = None
    """The id under which to archive an earlier session with this id before writing `row`, if any."""
    instead: str | None = None
    """The existing session to write `row` and `thought` to. None for the current session, or a new one."""


class Sweep(Struct, frozen=True):
    """The parameters of a search for sessions unused for long."""

    now_ms: int
    """The time, UTC, milliseconds since 1970."""
    ttl_ms: int
    """Time without use until an active session expires, unless it has its own time to live."""
    retention_ms: int | None
    """Time without use until an archived session is deleted. None for never."""
    delete: bool
    """Whether an active session is deleted rather than archived."""


class SessionStore(Protocol):
    """Keeps sessions. Acknowledged writes survive kill -9; two writers on one session are serialised."""

    async def change(self, session_id: str, decide: Callable[[SessionView], SessionChange]) -> Any:
        """Call `decide` in a write transaction, write the change it returns, commit, and return its `value`.

        `decide` is pure and quick. An exception from it reaches the caller, and nothing is written.
        `row.session_id` may differ from `session_id`: then `row` is a new session, or the one named by `instead`.
        """
        ...

    async def session(self, session_id: str) -> SessionRow:
        """Return a session, active or archived. Reading is not use.

        Raises:
            NotFoundError: There is no such session.
        """
        ...

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        """Return sessions, last used first; `before` is the last session id of the previous page."""
        ...

    async def session_ids(self, prefix: str, limit: int = 10) -> list[str]:
        """Return ids of sessions that begin with `prefix`, sorted."""
        ...

    async def thoughts(
        self,
        session_id: str,
        *,
        first: int | None = None,
        last: int | None = None,
        branch: str | None = None,
        after_seq: int = 0,
        limit: int = 50,
    ) -> list[ThoughtRow]:
        """Return a page of thoughts in call order: numbers `first` to `last`, of one branch (`""`: the main line)."""
        ...

    async def search_thoughts(
        self,
        query: str,
        *,
        session_id: str | None = None,
        after: int = 0,
        limit: int = 50,
    ) -> list[Found]:
        """Find thoughts that contain `query`, any string in any case."""
        ...

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """Write a whole session in one transaction.

        Raises:
            ConflictError: A session with that id exists.
        """

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """Archive and delete sessions unused for long, except pinned sessions."""

    async def delete_session(self, session_id: str) -> None:
        """Delete a session and its thoughts.

        Raises:
            NotFoundError: There is no such session.
        """


class WholeRun(Struct, frozen=True):
    """Everything stored about a run except its checkpoint, for a copy into another store."""

    row: RunRow
    lines: tuple[Line, ...]
    request: RequestKey | None = None
    """The key of the request that began the run."""


class WholeSession(Struct, frozen=True):
    """Everything stored about a session, for a copy into another store."""

    row: SessionRow
    thoughts: tuple[ThoughtRow, ...]


Whole = WholeRun | WholeSession

WholeKind = Literal["run", "session"]

Written = Literal["new", "continued", "same", "differs"]
"""The result of writing a run or session to a store: it was new; it continued an earlier state; it was there
already; or the store keeps something else under its id."""


class Tally(Struct, frozen=True):
    """The number of an owner's runs or sessions with a status."""

    kind: WholeKind
    owner: str
    status: str
    count: int


class StoreStats(Struct, frozen=True):
    """The counts and the size of a store's content."""

    tallies: tuple[Tally, ...]
    """By kind, owner and status, in that order."""
    lines: int
    thoughts: int
    """Thoughts kept for sessions; the thoughts of runs are in their journals as well."""
    bytes: int
    """The size on the disk."""
    free_bytes: int | None
    """The empty part, which `vacuum` returns to the disk. None if unknown."""


class Finding(Struct, frozen=True, omit_defaults=True):
    """The result of verifying a store's file, a run or a session."""

    kind: Literal["file", "run", "session"]
    id: str
    state: Literal["whole", "damaged"] = "whole"
    entries: int = 0
    """The number of checked lines or thoughts; for the file, the number of runs and sessions."""
    message: str = ""
    """The damage, and its place."""


class Backup(Struct, frozen=True):
    """A copy of a store that was verified."""

    file: str
    bytes: int
    runs: int
    sessions: int


OnProgress = Callable[[int, int], None]
"""Called, perhaps from another thread, with the amount done and the total amount."""


class Store(RunStore, SessionStore, Protocol):
    """Keeps runs and sessions.

    Attributes:
        name: As written after `--store`.
        durable: Whether acknowledged writes outlive the process.
    """

    name: str
    durable: bool


LAST = "last"
"""Stands for the last used or started object."""
MIN_PREFIX_CHARS = 4
_WHOLE_CHARS = 36
_SHORT_CHARS = 18
"""Three groups of a UUID: in a UUIDv7 the millisecond and the counter within it."""
_SHOWN = 5
COMPARISON = "comparison-"
"""The prefix of a comparison's id. Hexadecimal digits follow."""
ID_CHARS = frozenset("0123456789abcdef-")
"""The characters of a UUID."""

_lock = threading.Lock()
_last = 0


def now_ms() -> int:
    """Return the time, UTC, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return a UUIDv7 that sorts after every earlier id of this process."""
    global _last
    with _lock:
        # Milliseconds, then 12 bits that count on within one: `rand_a` as a counter (method 1 of section 6.2).
        now = max(now_ms() << 12, _last + 1)
        _last = now
    random = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    value = (now >> 12) << 80 | 0x7 << 76 | (now & 0xFFF) << 64 | 0b10 << 62 | random
    return str(uuid.UUID(int=value))


def may_be_short(text: str) -> bool:
    """Whether a text can stand for an id: `last`, or the beginning of a UUID or of a comparison's id."""
    beginning = text.lower().removeprefix(COMPARISON)
    has_length = MIN_PREFIX_CHARS <= len(beginning) < _WHOLE_CHARS
    return text == LAST or (has_length and ID_CHARS.issuperset(beginning))


def missing_error(kind: WholeKind, id: str, near: Sequence[str] = ()) -> NotFoundError:
    """Return the error for a run or session that does not exist, with the nearest ids if known."""
    shown = id[:100]
    meant = f". Did you mean {' or '.join(near)}?" if near else f"; `{kind}s list` shows them"
    details: dict[str, Any] = {f"{kind}_id": shown} | ({"choices": [*near]} if near else {})
    return NotFoundError(f"no {kind} {shown!r}{meant}", **details)


async def find_id(
    text: str,
    kind: str,
    begins_with: Callable[[str, int], Awaitable[list[str]]],
    last: Callable[[], Awaitable[str | None]],
) -> str:
    """Find the id that a text stands for. Other texts are returned unchanged.

    Args:
        kind: The kind of object, for messages.
        begins_with: Returns the first ids with a prefix, up to a number.
        last: Returns the id of the last used object.

    Raises:
        UsageError: Several ids begin with the text; `choices` has the first ones.
        NotFoundError: The text is `last`, and no object exists.
    """
    if not may_be_short(text):
        return text
    found = await begins_with(text if text == LAST else text.lower(), _SHOWN + 1)
    if text in found:
        return text
    if text == LAST:
        latest = await last()
        if latest is None:
            raise NotFoundError(f"there is no {kind} yet, so none is the last")
        return latest
    if len(found) > 1:
        more = ", …" if len(found) > _SHOWN else ""
        raise UsageError(
            f"several {kind}s have ids that begin with {text}: {', '.join(found[:_SHOWN])}{more}. Give more of the id.",
            choices=found[:_SHOWN],
        )
    return found[0] if found else text


def short_id(id: str) -> str:
    """Return the beginning of a UUID, which stands for it among the ids of a store. Other names stay whole."""
    short = id[:_SHORT_CHARS]
    return short if len(id) == _WHOLE_CHARS and may_be_short(short) else id
