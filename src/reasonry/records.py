"""The records of runs and sessions, and the protocol of a store."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypedDict, Unpack

from msgspec import Struct

from .errors import NotFoundError, UsageError

DAY_MS = 86_400_000
RETRY_S = 0.25
"""Seconds between two attempts to reach a store that is unavailable."""


class Line(Struct, frozen=True):
    """One stored line of a run's journal.

    `digest` has 16 bytes. It is made from `body` and from the digest of the previous line, so it reveals damage.
    """

    seq: int
    body: bytes
    digest: bytes


Outcome = Literal["solved", "answered", "stopped", "unsolved", "error", "waiting"]
"""How a run ended: `solved` (a verifier proved the answer), `answered` (no verifier proved it), `stopped` (a budget or
a person ended the run, which has at most a best answer so far), `unsolved` (a search found no answer), `error`, or
`waiting` (the run waits for answers from its caller)."""
ANSWERED = ("solved", "answered")
"""The outcomes of runs that have an answer."""


class RunRow(Struct, frozen=True, omit_defaults=True):
    """A row in a store's list of runs. Times are UTC, in milliseconds since 1970."""

    run_id: str
    session_id: str
    strategy: str
    model: str
    problem: str
    status: Literal["active", "done", "failed", "cancelled"]
    created_at_ms: int
    updated_at_ms: int
    outcome: Outcome | None = None
    """None while the run is active. An exception is `waiting`, since a waiting run is still active."""
    reason: str | None = None
    detail: str = ""
    """The reason in words, or the message of an error."""
    answer: str | None = None
    """The answer if the run is `solved` or `answered`. Otherwise, the best answer so far, or None if there is none."""
    owner: str = ""
    """The owner of the run, set when the run is created. Empty for the operator."""
    unattended: bool = False
    """Whether the run is a job. The process that drives the store's jobs drives this run."""
    paused: bool = False
    calls: int = 0
    """How many model calls the run had made at the last write of this row. Answers that a fork copied do not count."""
    samples: int = 0
    """How many replies the models gave. A call that asks for several samples brings several replies."""
    tokens: int = 0
    usd: float | None = None
    """The cost in dollars. None if unknown."""


class JobOptions(Struct, frozen=True):
    """The options of a job: how an unattended run waits for a worker.

    Args:
        priority: The priority, from 0 (starts first) to `MAX_PRIORITY`.
        at_ms: The earliest start, UTC, in milliseconds since 1970. None means that the run may start at once.
        carrier: The trace context of the run's caller.
    """

    queue: str = "default"
    priority: int = 5
    at_ms: int | None = None
    carrier: Mapping[str, str] = {}


MAX_PRIORITY = 9


class QueueStatus(Struct, frozen=True):
    """The number of waiting jobs, the longest wait, and the number of processes that drive jobs."""

    depth: int = 0
    oldest_s: float = 0.0
    workers: int = 0


class RequestKey(Struct, frozen=True):
    """The idempotency key of a request to begin a run. A repeat within `KEY_LIFE_MS` begins no other run."""

    key: str
    digest: bytes
    """The digest of the whole request."""
    at_ms: int
    """The time of the request, UTC, in milliseconds since 1970."""

    @classmethod
    def of(cls, key: str, asked: bytes, at_ms: int) -> RequestKey:
        """Build the record of a request. Clients put secrets into keys, so the record has only a digest of the key."""
        name = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
        return cls(name, hashlib.sha256(asked).digest(), at_ms)


KEY_LIFE_MS = DAY_MS


class RunFilters(TypedDict, total=False):
    """The filters of a list of runs. A filter that is None excludes nothing."""

    status: str | None
    outcome: str | None
    reason: str | None
    strategy: str | None
    model: str | None
    unattended: bool | None
    paused: bool | None
    since_ms: int | None
    """Only runs created at this time or later."""
    until_ms: int | None
    """Only runs created before this time."""
    min_usd: float | None
    """Only runs with a known cost of at least this many dollars."""
    query: str | None
    """Only runs with this text in the problem, answer, error or thoughts. Case makes no difference."""


UsageGroup = Literal["strategy", "model", "outcome"]


class UsageTotal(Struct, frozen=True):
    """The total usage of runs."""

    group: str = ""
    """The strategy, model or outcome that the counted runs share. Empty for the total of all runs."""
    runs: int = 0
    calls: int = 0
    samples: int = 0
    tokens: int = 0
    usd: float = 0.0
    """The known cost in dollars."""


class Use(Struct, frozen=True):
    """An update of the session of a run, written together with the run. The update counts as use of the session."""

    thoughts: int
    at_ms: int
    added: tuple[ThoughtRow, ...] = ()
    """The latest thoughts. The store skips thoughts that it already has."""


class RunStore(Protocol):
    """A store of runs and their journals. An acknowledged write survives `kill -9`.

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
            drive: Whether to take the run's lease in the same transaction, for the next `drive` by this store object.
            job: The options of the run's job, if workers share the store.

        Returns:
            The run's id. If the same request began a run earlier, the result is the earlier id, and nothing is written.

        Raises:
            ConflictError: The id exists. With code `idempotency_conflict`: the owner used the key for another request.
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
        """Write lines of a run, and optionally its new row and an update of its session, in one transaction.

        Args:
            job: As in `create_run`. If `job` is not None, the write also releases the lease.

        Raises:
            ConflictError: A line with this `seq` exists, since another process drives the run. With code `lease_lost`:
                another holder has taken over the lease (see `drive`). In both cases, nothing is written.
        """

    async def run(self, run_id: str) -> RunRow:
        """Return the row of a run. Raises NotFoundError if the run does not exist."""
        ...

    async def rows(self, run_ids: Collection[str]) -> list[RunRow]:
        """Return the rows of the runs with these ids, in one read. An id without a run is skipped."""
        ...

    async def lines(self, run_id: str, after: int = 0) -> list[Line]:
        """Return the lines of a journal, oldest first. The caller checks the digests.

        Args:
            after: The `seq` of the last line to skip.

        Raises:
            NotFoundError: There is no such run.
        """
        ...

    async def tail(self, run_id: str) -> tuple[Line | None, list[Line]]:
        """Return the checkpoint of a run and the later lines. Without a checkpoint, return None and all lines.

        Raises:
            NotFoundError: There is no such run.
        """
        ...

    async def save_checkpoint(self, run_id: str, checkpoint: Line) -> None:
        """Replace the checkpoint of a run. A checkpoint is a cache and may be lost. Raises `lease_lost` like `append`.

        Args:
            checkpoint: A line with the `seq` and `digest` of a journal line. The body is the state after that line.
        """

    async def runs(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]
    ) -> list[RunRow]:
        """Return a page of runs, newest first. `before` is the last run id of the previous page."""
        ...

    async def run_ids(self, prefix: str, limit: int = 10) -> list[str]:
        """Return the run ids that begin with `prefix`, sorted."""
        ...

    async def delete_run(self, run_id: str) -> None:
        """Delete a run and its journal."""

    def drive(self, run_id: str) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that holds the lease of a run. The lease is the exclusive right to drive the run.

        Each lease has a higher fencing number than the run's earlier leases. While this store object holds the lease,
        each of its writes to the run checks in the same transaction that the number is still valid. A write by an
        object without the lease, such as a cancellation, checks nothing. The store renews the lease while the event
        loop runs. The write that ends the run releases the lease. Otherwise, the end of the context releases it. After
        a crash, the lease is free at once if the holder ran on this computer, and otherwise after some seconds.

        Raises:
            ConflictError: On entering: another process or task drives the run (`pid` in details).
            NotFoundError: On entering: there is no such run.
        """
        ...

    async def release_paused(self, run_id: str) -> bool:
        """If a run is still paused, release its lease. Return whether the run is paused."""
        ...

    async def find_driven(self, run_ids: Collection[str]) -> set[str]:
        """Return the ids of the runs whose lease has a living holder. The holder may be this store object."""
        ...

    async def close(self) -> None:
        """Finish accepted writes, then release all resources."""


class SessionRow(Struct, frozen=True, omit_defaults=True):
    """A session without its thoughts. Times are UTC, in milliseconds since 1970."""

    session_id: str
    strategy: str
    created_at_ms: int
    used_at_ms: int
    """The time of the last use. The time to live begins at this time."""
    status: Literal["active", "archived"] = "active"
    pinned: bool = False
    thoughts: int = 0
    purpose: str = ""
    """The beginning of the first thought or of the problem, to show in lists."""
    run_id: str | None = None
    """The run that writes this session, if any."""
    head: bytes = b"{}"
    """The state of each line of thought (stage, last number, totals, branches) as small JSON. Opaque to the store."""
    ttl_ms: int | None = None
    """How many milliseconds after its last use the session expires. None means the default, `Sweep.ttl_ms`."""
    owner: str = ""
    """The owner of the session, set when the session is created. Empty for the operator."""


class SessionFilters(TypedDict, total=False):
    """The filters of a list of sessions. A filter that is None excludes nothing."""

    status: str | None
    strategy: str | None
    since_ms: int | None
    """Only sessions last used at this time or later."""
    until_ms: int | None
    """Only sessions last used before this time."""
    guided: bool | None
    """True: only sessions that no run writes. False: only sessions that a run writes."""
    query: str | None
    """Only sessions with this text in the purpose or thoughts. Case makes no difference."""


class ThoughtRow(Struct, frozen=True, omit_defaults=True):
    """A stored thought."""

    seq: int
    """The position in the session: 1, 2, … in the order of the calls."""
    number: int
    """The number that the author gave the thought. Several thoughts may have the same number."""
    text: str
    branch: str | None = None
    body: bytes = b"{}"
    """The other parts as JSON: stage, revised thought, branch point, data, times. Opaque to the store."""


Found = tuple[int, str, ThoughtRow]
"""A search result: its position (for `after` in `search_thoughts`), the id of the session, and the thought."""


class SessionView(Protocol):
    """The view of a session inside one transaction.

    Attributes:
        row: The row of the session. None if there is no such session.
    """

    row: SessionRow | None

    def with_number(self, number: int) -> list[ThoughtRow]:
        """Return the session's thoughts with this number, oldest first."""
        ...

    def latest(self, count: int) -> list[ThoughtRow]:
        """Return the latest `count` thoughts, oldest first."""
        ...

    def find_text(self, text: str, count: int) -> int | None:
        """Search the latest `count` thoughts for this text. Return the number of the oldest match, or None."""
        ...

    def other(self, session_id: str) -> SessionView:
        """Return the view of another session inside the same transaction."""
        ...


class SessionChange(Struct, frozen=True):
    """The changes to write in a transaction. By default there are none."""

    row: SessionRow | None = None
    thought: ThoughtRow | None = None
    delete: bool = False
    """Whether to delete the session named in the call of `change` before `row` is written."""
    value: Any = None
    """The value that `change` returns once everything is durable."""
    archive_as: str | None = None
    """If set, the session named in the call of `change` is archived under this id before `row` is written."""
    instead: str | None = None
    """If set, `row` and `thought` are written to the existing session with this id, not to the named session."""


class Sweep(Struct, frozen=True):
    """The parameters of a sweep, which archives or deletes sessions that have long been unused."""

    now_ms: int
    """The current time, UTC, in milliseconds since 1970."""
    ttl_ms: int
    """How many milliseconds after its last use an active session expires, unless it has its own `ttl_ms`."""
    retention_ms: int | None
    """How many milliseconds after its last use an archived session is deleted. None means never."""
    delete: bool
    """Whether an expired session is deleted rather than archived."""


class SessionStore(Protocol):
    """A store of sessions. An acknowledged write survives `kill -9`. Concurrent writes to a session are serialized."""

    async def change(self, session_id: str, decide: Callable[[SessionView], SessionChange]) -> Any:
        """Call `decide` in a write transaction, commit the change that it returns, and return the change's `value`.

        `decide` is pure and quick. If it raises, nothing is written, and the exception reaches the caller. If
        `row.session_id` differs from `session_id`, `row` is a new session or the session named by `instead`.
        """
        ...

    async def session(self, session_id: str) -> SessionRow:
        """Return the row of an active or archived session. Reading does not count as use of the session.

        Raises:
            NotFoundError: There is no such session.
        """
        ...

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        """Return a page of sessions, last used first. `before` is the last session id of the previous page."""
        ...

    async def session_ids(self, prefix: str, limit: int = 10) -> list[str]:
        """Return the session ids that begin with `prefix`, sorted."""
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
        """Return a page of thoughts numbered `first` to `last`, oldest first. The branch `""` is the main line."""
        ...

    async def search_thoughts(
        self,
        query: str,
        *,
        session_id: str | None = None,
        after: int = 0,
        limit: int = 50,
    ) -> list[Found]:
        """Return a page of the thoughts that contain the text `query`. Case makes no difference."""
        ...

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """Write a whole session in one transaction.

        Raises:
            ConflictError: A session with the same id exists.
        """

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """Archive or delete sessions that have long been unused, except pinned sessions."""

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
"""The result of copying a run or session into a store. `new`: the id was free. `continued`: the store had an earlier
state. `same`: the store had the same state. `differs`: the store has something else under the id, and keeps it."""


class Tally(Struct, frozen=True):
    """How many of an owner's runs or sessions have a certain status."""

    kind: WholeKind
    owner: str
    status: str
    count: int


class StoreStats(Struct, frozen=True):
    """The counts and the size of a store's content."""

    tallies: tuple[Tally, ...]
    """The counts, sorted by kind, owner and status."""
    lines: int
    thoughts: int
    """The count of thoughts in sessions. The thoughts of runs are also in the journals of the runs."""
    bytes: int
    """The size of the store on the disk."""
    free_bytes: int | None
    """The unused bytes, which `vacuum` returns to the disk. None if unknown."""


class Finding(Struct, frozen=True, omit_defaults=True):
    """The result of checking one object for damage: the file of the store, a run, or a session."""

    kind: Literal["file", "run", "session"]
    id: str
    state: Literal["whole", "damaged"] = "whole"
    entries: int = 0
    """The count of checked lines or thoughts; for the file, the count of runs and sessions."""
    message: str = ""
    """A description of the damage and its place. Empty for a whole object."""


class Backup(Struct, frozen=True):
    """A verified copy of a store."""

    file: str
    bytes: int
    runs: int
    sessions: int


OnProgress = Callable[[int, int], None]
"""A callback that receives the amount done and the total amount. Another thread may call it."""


class Store(RunStore, SessionStore, Protocol):
    """A store of runs and sessions.

    Attributes:
        name: The value that a user gives after `--store`.
        durable: Whether acknowledged writes outlive the process.
    """

    name: str
    durable: bool


LAST = "last"
"""The word that a user gives instead of the id of the run or session that was used or started last."""
MIN_PREFIX_CHARS = 4
_WHOLE_CHARS = 36
_SHORT_CHARS = 18
"""The length of the first three groups of a UUID: in a UUIDv7, the millisecond and a counter within it."""
_SHOWN = 5
COMPARISON = "comparison-"
"""The prefix of a comparison's id. Hexadecimal digits follow."""
ID_CHARS = frozenset("0123456789abcdef-")
"""The characters of a UUID."""

_lock = threading.Lock()
_last = 0


def now_ms() -> int:
    """Return the current time, UTC, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return a UUIDv7 that sorts after every earlier id of this process."""
    global _last
    with _lock:
        # The milliseconds, then 12 bits as a counter within a millisecond (RFC 9562, section 6.2, method 1: `rand_a`).
        now = max(now_ms() << 12, _last + 1)
        _last = now
    random = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    value = (now >> 12) << 80 | 0x7 << 76 | (now & 0xFFF) << 64 | 0b10 << 62 | random
    return str(uuid.UUID(int=value))


def may_be_short(text: str) -> bool:
    """Whether a text can be the short form of an id: `last`, or the beginning of a UUID or of a comparison's id."""
    beginning = text.lower().removeprefix(COMPARISON)
    has_length = MIN_PREFIX_CHARS <= len(beginning) < _WHOLE_CHARS
    return text == LAST or (has_length and ID_CHARS.issuperset(beginning))


def missing_error(kind: WholeKind, id: str, near: Sequence[str] = ()) -> NotFoundError:
    """Return the error for a run or session that does not exist, with similar ids if known."""
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
    """Return the id that a text stands for. If the text stands for no known id, return the text unchanged.

    Args:
        kind: The noun for the object in messages.
        begins_with: A function that takes a prefix and a limit, and returns the first ids that begin with the prefix.
        last: A function that returns the id of the object used last, or None if there is no object.

    Raises:
        UsageError: Several ids begin with the text; `choices` has the first ones.
        NotFoundError: The text is `last`, and no object exists.
    """
    if not may_be_short(text):
        return text
    found = await begins_with(text.lower(), _SHOWN + 1)
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
    """Shorten a UUID to its beginning, which identifies the object within a store. Return any other id unchanged."""
    short = id[:_SHORT_CHARS]
    return short if len(id) == _WHOLE_CHARS and may_be_short(short) else id
