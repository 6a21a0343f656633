"""Records: what a store keeps of runs and sessions, and the protocol of a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct


class Line(Struct, frozen=True):
    """One line of a journal as a store keeps it.

    `digest` is 16 bytes; it covers `body` and the digest of the line before, so that damage shows.
    """

    seq: int
    body: bytes
    digest: bytes


class Checkpoint(Struct, frozen=True):
    """The folded state of a run after line `seq` of its journal, whose digest is `digest`. Opaque to the store."""

    seq: int
    digest: bytes
    body: bytes


class RunRow(Struct, frozen=True, omit_defaults=True):
    """What a store lists of a run. Instants are UTC, milliseconds since 1970.

    A list has a damaged run in its place, with nothing but `run_id` and the status `damaged`; to read such a run is
    an error.
    """

    run_id: str
    session_id: str
    strategy: str
    model: str
    problem: str
    status: Literal["active", "done", "failed", "cancelled", "damaged"]
    created_at_ms: int
    updated_at_ms: int
    reason: str | None = None
    answer: str | None = None


class Use(Struct, frozen=True):
    """What the session of a run tells of the run without its journal; whatever writes this has used the session."""

    thoughts: int
    at_ms: int


class RunStore(Protocol):
    """Keeps runs and their journals. What is acknowledged survives kill -9.

    Raises (every method): StoreError `store_unavailable | store_busy | store_full | store_corrupt | store_newer`.
    """

    async def create_run(self, row: RunRow, lines: Sequence[Line], session: SessionRow | None = None) -> None:
        """Write a new run and its first lines, and the session it writes if given, in one transaction.

        Raises:
            ConflictError: There is a run or a session of that id.
        """
        ...

    async def append(
        self, run_id: str, lines: Sequence[Line], row: RunRow | None = None, use: Use | None = None
    ) -> None:
        """Write lines, and the new row and the use of the run's session if given, in one transaction.

        Raises:
            ConflictError: A line of that number is there already: someone else drives this run.
        """
        ...

    async def run(self, run_id: str) -> RunRow:
        """Raises NotFoundError if there is no such run."""
        ...

    async def lines(self, run_id: str) -> list[Line]:
        """Return the whole journal, oldest first, down to the last line written. The caller checks the digests.

        Raises:
            NotFoundError: There is no such run.
        """
        ...

    async def tail(self, run_id: str) -> tuple[Checkpoint | None, list[Line]]:
        """Return a run's latest checkpoint and the lines after it; without one, the whole journal.

        Raises:
            NotFoundError: There is no such run.
        """
        ...

    async def keep(self, run_id: str, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint in the place of an earlier one; a cache, which may be lost at any time."""
        ...

    async def runs(
        self, *, status: str | None = None, limit: int = 50, before: str | None = None
    ) -> list[RunRow]:
        """Return runs, newest first; `before` is the run id the last page ended with.

        Those that are damaged are in every list, whatever `status` is asked for.
        """
        ...

    async def delete_run(self, run_id: str) -> None:
        """Forget a run and its journal, down to the bytes."""
        ...

    def drive(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """Hold the right to drive a run. A dead process holds nothing.

        Raises:
            ConflictError: On entering: another process, or another task of this one, drives it (`pid` in details).
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted, then give everything back."""
        ...


class SessionRow(Struct, frozen=True, omit_defaults=True):
    """What a store keeps of a session besides its thoughts. Instants are UTC, milliseconds since 1970.

    A list has a damaged session in its place, with nothing but `session_id` and the status `damaged`; to read or change
    such a session is an error.
    """

    session_id: str
    strategy: str
    created_at_ms: int
    used_at_ms: int
    """Last use; the time to live counts from here."""
    status: Literal["active", "archived", "damaged"] = "active"
    pinned: bool = False
    thoughts: int = 0
    purpose: str = ""
    """Head of the first thought or of the problem, for lists."""
    run_id: str | None = None
    """Set where a run writes this session; its thoughts are then read from the run's journal."""
    head: bytes = b"{}"
    """Small JSON: where each line stands (stage, last number, totals, branches). Opaque to the store."""


class ThoughtRow(Struct, frozen=True, omit_defaults=True):
    """One thought as a store keeps it."""

    seq: int
    """1, 2, … in the order of the calls of this session."""
    number: int
    """The number the thinker gave it; may repeat."""
    text: str
    branch: str | None = None
    body: bytes = b"{}"
    """The rest as JSON: stage, revises, branch point, data, instants. Opaque to the store."""


class InJournal(Struct, frozen=True):
    """What a search finds in place of the thoughts of a run: they may contain the query, and the journal has them."""

    run_id: str
    before: int
    """The position of each thought, less its `seq`."""


class Damaged(Struct, frozen=True):
    """What a search finds in place of the thoughts of a session that is damaged."""

    message: str


Found = tuple[int, str, ThoughtRow | InJournal | Damaged]
"""What a search finds: its position, the session's id, and the thought or what stands for thoughts."""


class SessionView(Protocol):
    """A session as it stands inside one transaction.

    Attributes:
        row: None if there is no such session.
    """

    row: SessionRow | None

    @property
    def idle_ms(self) -> int:
        """How long it has not been used, at least: by a count that does not go by the clock; 0 where none is known."""
        ...

    def has_number(self, number: int) -> bool:
        """Whether some thought of the session bears this number."""
        ...

    def latest(self, count: int) -> list[ThoughtRow]:
        """Return the latest thoughts, oldest first."""
        ...


class SessionChange(Struct, frozen=True):
    """What one transaction writes; None and nothing: it only read."""

    row: SessionRow | None = None
    thought: ThoughtRow | None = None
    delete: bool = False
    """Remove the session that stood there before writing `row`, if any."""
    value: Any = None
    """Handed back to the caller once everything is durable."""
    used: bool = True
    """Whether writing `row` is use of the session."""


class Sweep(Struct, frozen=True):
    """One look for sessions that were not used for long."""

    now_ms: int
    """What the clock says, UTC, milliseconds since 1970."""
    ttl_ms: int
    """After so long unused an active session is archived or deleted."""
    retention_ms: int
    """After so long unused an archived session is deleted."""
    delete: bool
    """Whether an active session is deleted rather than archived."""


class SessionStore(Protocol):
    """Keeps sessions. What is acknowledged survives kill -9; two writers on one session are serialised."""

    async def change(self, session_id: str, decide: Callable[[SessionView], SessionChange]) -> Any:
        """Let `decide` look and decide inside one write transaction, write, commit, return its `value`.

        `decide` is pure and quick. What it raises reaches the caller, and nothing is written.
        `row.session_id` may differ from `session_id`: then `row` is a new session.
        """
        ...

    async def session(self, session_id: str) -> SessionRow:
        """Return a session, active or archived. Reading is not use.

        Raises:
            NotFoundError: There is no such session.
        """
        ...

    async def sessions(
        self, *, status: str | None = None, limit: int = 50, before: str | None = None
    ) -> list[SessionRow]:
        """Return sessions, last used first; `before` is the session id the last page ended with.

        Those that are damaged are in every list, whatever `status` is asked for.
        """
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
        """Return thoughts in call order: numbers `first` to `last`, of one branch (`""`: the main line), paged."""
        ...

    async def search_thoughts(
        self, query: str, *, session_id: str | None = None, after: int = 0, limit: int = 50
    ) -> list[Found]:
        """Find thoughts that contain `query`, any string, whatever its case.

        Each session that a run writes is found once, at the last position its thoughts may have; so is one that is
        damaged.
        """
        ...

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """Write a whole session in one transaction.

        Raises:
            ConflictError: There is one of that id.
        """
        ...

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """Archive and delete sessions that were not used for long, but never pinned ones.

        A clock may be wrong. What it alone calls old is archived, and deleted only if it does so in two looks at least
        a day apart, with no other finding and no use in between. A day, and anything deleted at the first look, goes
        by a count that no change of the clock moves, and that never runs ahead of time.
        """
        ...

    async def delete_session(self, session_id: str) -> None:
        """Forget a session and its thoughts, down to the bytes.

        Raises:
            NotFoundError: There is no such session.
        """
        ...


class Finding(Struct, frozen=True, omit_defaults=True):
    """What a check of a store found of its file as a whole, or of one run or session."""

    kind: Literal["file", "run", "session"]
    id: str
    state: Literal["whole", "damaged", "unchecked"] = "whole"
    """`unchecked`: a version that kept no digests wrote it; nothing is known against it."""
    entries: int = 0
    """How many lines or thoughts were looked at; of the file, how many runs and sessions there are to look at."""
    message: str = ""
    """What is damaged or unchecked, and where."""


class Backup(Struct, frozen=True):
    """A copy of a store that was looked through and found whole."""

    file: str
    bytes: int
    runs: int
    sessions: int


OnProgress = Callable[[int, int], None]
"""Called, perhaps from another thread, with how much is done and how much there is to do."""


class Store(RunStore, SessionStore, Protocol):
    """One place for runs and sessions.

    Attributes:
        name: As a user would write it after `--store`.
        durable: Whether what is acknowledged outlives the process.
    """

    name: str
    durable: bool

    def verify(self) -> AsyncGenerator[Finding]:
        """Look at everything that is kept, changing nothing; first the file, then each run and session.

        Each is looked at in a moment of its own, so that others can go on writing.
        """
        ...

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """Copy everything, as it is in one moment, to a file; others can go on reading and writing.

        Args:
            force: Write over a file that is there.

        Raises:
            ConflictError: The file is there.
            StoreError: `store_corrupt`: something in the store is damaged, and no backup was made.
        """
        ...

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """Put a backup in the place of everything that is kept. After an error the store is as it was.

        Raises:
            UsageError: There is no such file.
            StoreError: `store_corrupt | store_newer`: the file is no whole store that this version can use;
                `store_busy`: someone has the store open.
        """
        ...
