"""Guided sessions: an agent submits its thoughts; they are stored, listed, searched and exported.

Rule 1: every change is a transaction of the store. A refused call has changed nothing.
Rule 2: thoughts live in the store. A process keeps none of them.
Rule 3: nothing runs in the background. Expired sessions are swept, at most once a minute, when sessions are used.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Unpack

import msgspec
from msgspec.structs import replace

from ..core.registry import resolve
from ..core.strategy import Strategy
from ..errors import ConflictError, NotFoundError, StoreError, UsageError
from ..ids import find_id, may_be_short, no_session, now_ms
from ..ids import new_id as new_uuid
from ..records import SessionChange, SessionFilters, SessionRow, SessionView, Store, Sweep, ThoughtRow
from ..text import show_value
from . import export, session_calls, session_documents
from .lines import Head, RowsView, ancestry, decode_head, encode, find_thought
from .placement import with_guidance_given
from .session_choice import Thinker
from .session_documents import Document
from .session_review import with_verdicts
from .session_settings import SessionSettings
from .thinking_tool import Notice, actions_schema
from .tool_arguments import name_arguments, position_of, unknown_arguments
from .transcripts import continuation_id, copy_run, read_session
from .turn import SHOWN_CHARS, Taken, ThinkingTurn, cut_history, has_expired
from .unfinished_sessions import Unfinished, begun_here, find_unfinished, list_unfinished, next_number

Arguments = Mapping[str, Any]

SWEEP_EVERY_MS = 60_000
MOST_LOOKED_AT = 500
"""The most sessions read for a page."""
RESUMED = 3
"""The default number of latest thoughts in `resume`."""
_MAIN_LINE = ("branch_id",)
"""The argument of `get` whose empty text means the main line."""
_MAIN_LINE_ONLY = "An empty branch_id means the main line; leave it out for the thoughts of the branches too."
_PLACING = {"thought_number", "branch_id", "branch_from_thought", "revises_thought", "stage"}
"""Arguments of a command that name the line of its thought."""
_ON_A_LINE = {"thought_number", "branch_id", "branch_from_thought", "merge_branch"}
"""Arguments with which a revision may be on another line than the revised thought."""
_OF_THE_CURRENT = frozenset({"get", "export", "pin"})
"""Actions that default to the caller's current session."""
_CHANGING = ("delete", "pin", "resume")
"""Actions with effects. They refuse an argument without effect; other actions only note it."""


class Sessions:
    """The sessions of a store. Every method takes raw arguments and returns a JSON document.

    Args:
        strategies: The registry, by canonical name.
        clock: Returns milliseconds since 1970, UTC.
        directory: The working directory, recorded in new sessions so that they can be found from there.
        chooses_ids: Whether a caller may choose the id of a new session. Not in a store with sessions hidden from the
            caller, since a taken id would reveal one.
    """

    def __init__(
        self,
        store: Store,
        strategies: Mapping[str, Strategy[Any, Any]],
        settings: SessionSettings | None = None,
        clock: Callable[[], int] = now_ms,
        new_id: Callable[[], str] = new_uuid,
        directory: str = "",
        chooses_ids: bool = True,
    ) -> None:
        self.store = store
        self.settings = settings or SessionSettings()
        self._strategies = strategies
        self._clock = clock
        self._new_id = new_id
        self._directory = directory
        self._chooses_ids = chooses_ids
        self._swept_at_ms = 0
        default = "archive" if store.durable else "delete"
        self._lapses = (self.settings.on_expiry or default) == "delete"

    def strategy(self, name: str | None) -> Strategy[Any, Any]:
        """Find a strategy by its name in any spelling. None means the first strategy.

        Raises:
            UsageError: The strategy is unknown; `choices` has the names.
        """
        if name is None:
            return next(iter(self._strategies.values()))
        return resolve(name, self._strategies, field="strategy")

    # -- thinking

    async def think(
        self,
        arguments: Arguments,
        *,
        thinker: Thinker | None = None,
        exact_id: str | None = None,
        history: int | None = 0,
        begins: bool = True,
        forgives: bool = True,
        refuter: str = "A coached run with the strategy `refute`",
    ) -> Document:
        """Submit a thought and return the state of its session.

        Args:
            thinker: The caller whose sessions a call without a session id may continue. Without it the call starts a
                session.
            exact_id: The only session of this tool, overriding the arguments. Created under this id.
            history: The default number of thoughts shown in the reply; None for all.
            begins: Whether a new session may replace a named session that is unknown or is the record of a run.
                Otherwise a session must be named by its complete id.
            forgives: Whether a repeated call is the same thought rather than another one.
            refuter: The caller's way to start a refutation of a session.

        Raises:
            UsageError: The call breaks a rule. Nothing has changed.
        """
        fault: UsageError | None = None
        try:
            call, others = session_calls.read_thought(arguments, self.settings)
            strategy = None if call.strategy is None else self.strategy(call.strategy).name
        except UsageError as error:
            call, others, strategy, fault = (
                session_calls.read_session_only(arguments, error, exact_id),
                {},
                None,
                error,
            )
        async with nullcontext() if thinker is None else thinker.gate:
            named = exact_id or (call.session_id if thinker is None else thinker.session_of(call))
            if named and begins and exact_id is None and may_be_short(named):
                named = await self._id_of_guided(named)
            current = None if thinker is None else thinker.current
            turn = ThinkingTurn(
                call=call,
                session_id=named,
                thinker=thinker,
                target=named or current or self._new_id(),
                new_id=self._new_id,
                strategy=strategy,
                fault=fault,
                mark=session_calls.call_mark(call, others) if forgives else 0,
                exact=exact_id is not None,
                begins=begins,
                archives=self.store.durable,
                others=others,
                lapses=self._lapses,
                directory=self._directory,
                now_ms=self._clock(),
                settings=self.settings,
                find=self.strategy,
                history=history,
            )
            document = await self._think(turn)
        if "before_you_end" in document:
            document["before_you_end"] += f" {refuter} tries to refute the session."
        return document

    async def _think(self, turn: ThinkingTurn) -> Document:
        call, thinker = turn.call, turn.thinker
        # A new session cannot have what the call refers to; one of this directory may.
        here = await begun_here(self.store, self._directory) if turn.is_lost else []
        try:
            taken = await self._take(turn)
        except UsageError as error:
            if not here:
                raise
            more = f" This call would begin a new session. {list_unfinished(here)}"
            raise type(error)(error.message + more, code=error.code, **error.details) from None
        if turn.is_lost:
            reason = "unfinished_sessions" if here else "session_begun"
            others = (
                list_unfinished(here) if here else "To continue another, pass the session id of its reply."
            )
            message = f"Thought {call.thought_number} began a new session. {others}"
            taken.notices.append(Notice(reason, message))
        if turn.exact and call.session_id not in (None, turn.session_id):
            message = "This tool thinks in one session of its own, whatever session a call names."
            taken.notices.append(Notice("bound", message, call.session_id))
        if thinker is not None and taken.placed.head is not taken.earlier:
            thinker.learn(call, taken.row.session_id, taken.placed.head, taken.choice)
        # The thought is kept; a sweep that fails now is made up for by the next one.
        with contextlib.suppress(StoreError):
            await self.sweep()
        return session_documents.reply_document(taken)

    async def _take(self, turn: ThinkingTurn) -> Taken:
        try:
            return await self.store.change(turn.target, turn.decide)
        except ConflictError as error:
            if "run_id" not in error.details or turn.exact or not turn.begins:
                raise
        # It names the record of a run.
        if turn.call.clear_session:
            turn = replace(turn, session_id=None, thinker=None, target=self._new_id())
            return await self.store.change(turn.target, turn.decide)
        own_id, target = turn.target, continuation_id(turn.target)
        turn = replace(turn, session_id=target, target=target)
        notice = await self._continue_run(own_id, turn.decide)
        taken = await self.store.change(target, turn.decide)
        taken.notices.append(notice)
        if turn.thinker is not None and target not in turn.thinker.ids:
            taken.choice = taken.choice._replace(session=None)
        return taken

    async def _continue_run(self, own_id: str, check: Callable[[SessionView], object] = id) -> Notice:
        """Create the session that continues a run, unless it exists, and return the notice about it.

        Args:
            own_id: The session written by the run.
            check: Raises if the new session is not acceptable.

        Raises:
            ConflictError: The run has not ended.
        """
        own, target, left_out = await self.store.session(own_id), continuation_id(own_id), 0
        assert own.run_id is not None, "only sessions of runs are continued here"
        run = await self.store.run(own.run_id)
        if run.status == "active":
            raise ConflictError(
                f"session {own_id} is the record of run {own.run_id}, which has not ended: continue the run "
                "(`coach` with `answer` or `resume`) or end it (`coach` with `cancel`) first; or leave the "
                "session id out to begin a session of your own",
                session_id=own_id,
                run_id=own.run_id,
            )
        try:
            await self.store.session(target)
        except NotFoundError:
            thoughts, strategy = await self._thoughts(own_id), self.strategy(None)
            with contextlib.suppress(UsageError):
                strategy = self.strategy(own.strategy)
            copy = await asyncio.to_thread(
                copy_run, own, thoughts, run.answer, strategy, self.settings, self._clock()
            )
            left_out = len(thoughts) + bool(run.answer) - len(copy.thoughts)
            check(RowsView(copy.row, copy.thoughts))
            # Another call may have begun the session meanwhile.
            with contextlib.suppress(ConflictError):
                await self.store.import_session(copy.row, copy.thoughts)
        message = (
            f"That session is the record of run {run.run_id}, which has ended and stays as it is; this session "
            f"continues its thoughts{f' (the first {left_out} left out)' if left_out else ''}."
        )
        return Notice("run_continued", message, own_id)

    async def think_here(
        self, call: Arguments, *, begins: bool = False, refuter: str = ""
    ) -> tuple[Document, str | None]:
        """Submit a thought of a command, which may omit its numbers and the session.

        It continues the named session, else the session last used in this directory.

        Args:
            begins: Whether to start a new session.
            refuter: See `think`.

        Returns:
            The reply, and the beginning of a continued session that the command did not name.
        """
        found, is_named = list[Unfinished](), "session_id" in call
        if is_named:
            with contextlib.suppress(NotFoundError, StoreError):
                row = await self.store.session(await self._id_of_guided(call["session_id"]))
                found = [(row, decode_head(row))] if row.run_id is None else []
        elif not begins:
            found = [
                (row, head)
                for row, head in await begun_here(self.store, self._directory)
                if row.status == "active" and not has_expired(row, self.settings, self._clock())
            ]
            if found and found[0][1].has_stage and (strategy := call.get("strategy")) is not None:
                found = found if self.strategy(strategy).name == found[0][0].strategy else []
        head, follows = found[0][1] if found else None, bool(call.get("next_thought_needed", True))
        if found and "revises_thought" in call and not call.keys() & _ON_A_LINE:
            with contextlib.suppress(UsageError):
                call = {**call, "branch_id": await self._line_of(*found[0], call["revises_thought"])}
        number = 1 if head is None else next_number(head, call)
        total = max(0 if head is None else head.line(head.latest).total, number + 1) if follows else number
        # Without a number there is nothing to tell the sessions apart by.
        open_here = [] if is_named else found if "thought_number" in call else found[:1]
        purposes = {row.session_id: row.purpose for row, _ in open_here}
        numbered = {"thought_number": number, "total_thoughts": total, **call}
        if head is not None and head.branches and not call.keys() & _PLACING:
            # The number is the main line's next, whatever comes next on a branch.
            numbered["branch_id"] = head.main_name
        reply = await self.think(numbered, thinker=Thinker([*purposes], seen=None), refuter=refuter)
        return reply, purposes.get(reply["session_id"])

    async def _line_of(self, row: SessionRow, head: Head, number: object) -> str:
        """Return the branch id of a thought by its number, looked up from the latest thought's line.

        Raises:
            UsageError: The thought does not exist.
        """
        thoughts = await self._thoughts(row.session_id) if str(number).isdecimal() else ()
        meant = int(str(number)) if thoughts else 0
        found = find_thought(RowsView(row, thoughts), "revises_thought", meant, ancestry(head, head.latest))
        return found.branch or head.main_name

    async def sweep(self, *, now: bool = False) -> None:
        """Archive or delete expired sessions, and delete archived sessions past their retention.

        Args:
            now: Whether to sweep even within a minute of the last sweep.
        """
        at = self._clock()
        if not now and 0 <= at - self._swept_at_ms < SWEEP_EVERY_MS:
            return
        self._swept_at_ms = at
        days = self.settings.retention_days
        retention_ms = None if days is None else int(days * 86_400_000)
        sweep = Sweep(at, int(self.settings.ttl_s * 1_000), retention_ms, self._lapses)
        await self.store.sweep_sessions(sweep)

    # -- ids

    async def session_id(self, text: str, *, guided: bool | None = None) -> str:
        """Find the id of a session by the id, its beginning, or `last` for the last used.

        Args:
            guided: Whether `last` excludes sessions of runs; None for any session.

        Raises:
            UsageError: Several ids begin with the text; `choices` has them.
            NotFoundError: The text is `last`, and there is no session.
        """

        async def last() -> str | None:
            rows = await self.store.sessions(limit=1, guided=guided)
            return rows[0].session_id if rows else None

        return await find_id(text, "session", self.store.session_ids, last)

    async def _id_of_guided(self, text: str) -> str:
        """Find the id of a session for new thoughts. The session may not exist yet."""
        with contextlib.suppress(NotFoundError):
            return await self.session_id(text, guided=True)
        return text

    # -- looking

    async def manage(self, arguments: Arguments, thinker: Thinker | None = None) -> Document:
        """Perform the `action`, one of `ACTIONS`, with the other arguments: the tool `sessions`.

        Args:
            thinker: The caller whose current session is the default.
        """
        schema = actions_schema(session_calls.ACTIONS)
        named = name_arguments(schema, arguments, keep_empty=_MAIN_LINE)
        action = session_calls.read_action(session_calls.ACTIONS, named)
        unknown = unknown_arguments("sessions", named, schema["properties"])
        if unknown and action in _CHANGING:
            raise UsageError(" ".join(unknown), choices=builtins.list(schema["properties"]))
        if thinker is not None and action in _OF_THE_CURRENT and thinker.current is not None:
            named = {"session_id": thinker.current, **named}
        call, perform = session_calls.read_form(session_calls.ACTIONS[action], named), getattr(self, action)
        async with thinker.gate if thinker is not None and action == "resume" else nullcontext():
            document = await perform(call)
            if thinker is not None and action == "resume":
                thinker.resume(document["session_id"])
        if thinker is not None and action == "delete":
            thinker.forget(document["session_id"])
        notices = [{"reason": "unknown_argument", "message": sentence} for sentence in unknown]
        if action == "get" and named.get("branch_id") == "" and document.get("branches"):
            notices.append({"reason": "main_line_only", "message": _MAIN_LINE_ONLY})
        return {**document, "notices": [*document.get("notices", []), *notices]} if notices else document

    async def list(
        self, arguments: Arguments | session_calls.ListSessions, **which: Unpack[SessionFilters]
    ) -> Document:
        """Return sessions, last used first: `status` (active, archived, unfinished, all), `limit`, `cursor`.

        The session of an ended run has the run's outcome and is not active. Unfinished are agents' sessions, active or
        archived, that have not ended. If a page would need too many reads it is shorter and has a cursor.
        """
        call = session_calls.read_call(session_calls.ListSessions, arguments)
        limit, status = call.limit, call.status
        if (name := which.get("strategy")) is not None:
            which["strategy"] = self.strategy(name).name
        which["status"] = "active" if status == "active" else None
        if status == "unfinished":
            if which.get("guided") is False:
                return {"sessions": [], "next_cursor": None}
            which["guided"] = True
        if self._lapses:
            await self.sweep(now=True)
        looked_at = limit if status == "all" else MOST_LOOKED_AT
        rows = await self.store.sessions(limit=looked_at + 1, before=call.cursor, **which)
        shown = builtins.list[Document]()
        for row in rows[:looked_at]:
            entry = await self._document(row)
            with contextlib.suppress(StoreError):
                if row.run_id is None and decode_head(row).ended:
                    entry["ended"] = True
            if not (
                (status == "active" and entry["status"] != "active")
                or (status == "archived" and not self._is_archived(row))
                or (status == "unfinished" and "ended" in entry)
            ):
                shown.append(entry)
            if len(shown) > limit:
                return {"sessions": shown[:limit], "next_cursor": shown[limit - 1]["session_id"]}
        more = rows[looked_at - 1].session_id if len(rows) > looked_at else None
        return {"sessions": shown, "next_cursor": more}

    async def get(self, arguments: Arguments | session_calls.GetSession) -> Document:
        """Return a session and a page of its thoughts: `from`, `to` (numbers), `branch_id` ("": main line)."""
        call = session_calls.read_call(session_calls.GetSession, arguments, keep_empty=_MAIN_LINE)
        document, rows = await self._select(call, call.limit + 1)
        return {
            **document,
            "thoughts": [session_documents.thought_document(row) for row in rows[: call.limit]],
            "next_cursor": str(rows[call.limit - 1].seq) if len(rows) > call.limit else None,
        }

    async def get_all(
        self, arguments: Arguments | session_calls.GetSession
    ) -> tuple[Document, Iterator[Document]]:
        """Return a session, and one by one all the thoughts that `get` gives in pages, from `cursor` on."""
        call = session_calls.read_call(session_calls.GetSession, arguments, keep_empty=_MAIN_LINE)
        document, rows = await self._select(call, None)
        return document, map(session_documents.thought_document, rows)

    async def _select(
        self, call: session_calls.GetSession, count: int | None
    ) -> tuple[Document, Sequence[ThoughtRow]]:
        """Return a session, and a limited number of the requested thoughts."""
        row = await self._row(call.session_id)
        chosen = {"first": call.first, "last": call.last, "branch": call.branch_id}
        rows = await self._thoughts(row.session_id, position_of(call.cursor), count, **chosen)
        if call.branch_id and not rows:
            thoughts = await self._thoughts(row.session_id)
            known = [*dict.fromkeys(there.branch for there in thoughts if there.branch)]
            if call.branch_id not in known:
                raise NotFoundError(
                    f"session {row.session_id} has no branch {show_value(call.branch_id)}; its branches: "
                    f"{', '.join(known) or 'none'}",
                    field="branch_id",
                    choices=known,
                )
        return {**await self._document(row), **session_documents.position_document(row)}, rows

    async def _thoughts(
        self, session_id: str, after: int = 0, count: int | None = None, **which: Any
    ) -> Sequence[ThoughtRow]:
        """Return at most `count` thoughts after `after`."""
        if count is not None:
            return await self.store.thoughts(session_id, after_seq=after, limit=count, **which)
        rows = builtins.list[ThoughtRow]()
        while page := await self.store.thoughts(
            session_id, after_seq=after, limit=session_calls.MAX_PAGE, **which
        ):
            rows += page
            after = page[-1].seq
        return rows

    async def search(self, arguments: Arguments | session_calls.SearchThoughts) -> Document:
        """Return the thoughts that contain `query` in any case, in all sessions or one."""
        call = session_calls.read_call(session_calls.SearchThoughts, arguments)
        query, session_id, after = call.query, call.session_id, position_of(call.cursor)
        if not query:
            raise UsageError("query is empty; give the text to look for", field="query")
        if session_id is not None:
            session_id = (await self._row(session_id)).session_id
        found = await self.store.search_thoughts(
            query, session_id=session_id, after=after, limit=call.limit + 1
        )
        matches = found[: call.limit]
        has_words = not matches and after == 0 and len(query.split()) > 1
        message = "No thought has these words in just this order; try one of them."
        notices = [Notice("no_match", message)] if has_words else []
        return {
            "matches": [
                session_documents.match_document(owner, thought, query) for _, owner, thought in matches
            ],
            "next_cursor": str(matches[-1][0]) if len(found) > call.limit else None,
            "notices": msgspec.to_builtins(notices),
        }

    async def resume(self, arguments: Arguments | session_calls.ResumeSession) -> Document:
        """Resume a session, which counts as use. Returns its state and its latest thoughts.

        Without `session_id` it is the latest unfinished session, preferably of this directory.
        """
        call, at = session_calls.read_call(session_calls.ResumeSession, arguments), self._clock()
        count = RESUMED if call.history is None else call.history
        chars = self.settings.max_history_chars or SHOWN_CHARS
        wanted = call.session_id
        if wanted is None:
            found = await find_unfinished(self.store, self._directory)
            wanted = next((row.session_id for row, _ in found), None)
        if wanted is None:
            raise NotFoundError("There is no unfinished session; `list` shows which sessions there are")
        row, notices = await self._row(wanted), builtins.list[Notice]()
        session_id = row.session_id
        if row.run_id is not None:
            notices.append(await self._continue_run(session_id))
            session_id = continuation_id(session_id)

        def decide(view: SessionView) -> SessionChange:
            row = self._present(view, session_id)
            # One that has ended is continued by the next thought that names no session.
            head = with_guidance_given(self.strategy(row.strategy), decode_head(row))
            head = encode(replace(head, ended=False))
            row = replace(row, status="active", used_at_ms=at, head=head)
            return SessionChange(row, value=(row, view.latest(row.thoughts)))

        row, thoughts = await self.store.change(session_id, decide)
        return {
            **session_documents.resumed_document(self.strategy(row.strategy), decode_head(row), thoughts),
            **await self._document(row),
            **session_documents.position_document(row),
            **session_documents.history_document(cut_history(thoughts, count, chars), row.thoughts),
            **({"notices": msgspec.to_builtins(notices)} if notices else {}),
        }

    # -- taking out and in

    async def export(self, arguments: Arguments | session_calls.ExportSession) -> Document:
        """Export a whole session: as JSON data, or in `text` as `markdown` or `mermaid`."""
        call = session_calls.read_call(session_calls.ExportSession, arguments)
        document, shown = await self.get_all(session_calls.GetSession(session_id=call.session_id))
        thoughts = [*shown]
        whole = {**document, "thought_history_length": len(thoughts), "thoughts": thoughts}
        return export.export(whole, call.format)

    async def import_(self, content: str | bytes | Mapping[str, Any]) -> Document:
        """Import a session from its JSON export.

        It keeps its id if the id is free and callers may choose ids; otherwise it gets a new one.

        Raises:
            UsageError: The content is not a session, or breaks the rules of a session.
            TooLargeError: A thought or the session exceeds the limits.
        """
        brought = read_session(content, self.strategy, self.settings, self._clock())
        wanted, notices = brought.row.session_id if self._chooses_ids else "", [*brought.notices]
        row = replace(brought.row, session_id=wanted or self._new_id())
        try:
            await self.store.import_session(row, brought.thoughts)
        except ConflictError:
            message = "There is a session of this id already; the import is a copy under a new id."
            notices.append(Notice("exists", message, row.session_id))
            row = replace(row, session_id=self._new_id())
            await self.store.import_session(row, brought.thoughts)
        return {**await self._document(row), "notices": msgspec.to_builtins(notices)}

    # -- keeping and forgetting

    async def pin(self, arguments: Arguments | session_calls.PinSession) -> Document:
        """Pin a session so that it never expires, or unpin it. This does not count as use."""
        call = session_calls.read_call(session_calls.PinSession, arguments)
        session_id = await self.session_id(call.session_id)

        def decide(view: SessionView) -> SessionChange:
            row = replace(self._present(view, session_id), pinned=call.pinned)
            return SessionChange(row, value=row)

        return await self._document(await self.store.change(session_id, decide))

    async def take_verdicts(self, session_id: str, claims: Sequence[Mapping[str, Any]]) -> None:
        """Record readers' verdicts on the claims of a session, for its next reply. This does not count as use.

        Args:
            claims: Claims with `claim`, `thought`, `verdict` and `reason`.

        Raises:
            NotFoundError: The session does not exist.
        """

        def decide(view: SessionView) -> SessionChange:
            row = self._present(view, session_id)
            if row.run_id is not None:
                return SessionChange()
            return SessionChange(replace(row, head=encode(with_verdicts(decode_head(row), claims))))

        await self.store.change(session_id, decide)

    async def delete(self, arguments: Arguments | session_calls.OneSession) -> Document:
        """Delete a session with its thoughts, and the run that wrote it, if any."""
        session_id = await self.session_id(
            session_calls.read_call(session_calls.OneSession, arguments).session_id
        )
        try:
            run_id = (await self._row(session_id)).run_id
        except StoreError as error:
            if error.code != "store_corrupt":
                raise
            run_id = None
        if run_id is not None:
            with contextlib.suppress(NotFoundError):
                async with self.store.drive(run_id):
                    await self.store.delete_run(run_id)
        # Deleting the run may have taken the session along.
        with contextlib.suppress(NotFoundError):
            await self.store.delete_session(session_id)
        return {"session_id": session_id, "deleted": True}

    async def clear(self, *, confirm: bool = False) -> int:
        """Delete all guided sessions, not those of runs, and return their number.

        Args:
            confirm: Must be true for a durable store, which may hold the work of others.

        Raises:
            UsageError: The store is durable and `confirm` is false. Nothing has changed.
        """
        if self.store.durable and not confirm:
            raise UsageError(
                f"the store {self.store.name} outlives this process, and clearing it deletes every session of agents "
                "in it for good; pass confirm=True if that is meant, or use a store in memory",
                field="confirm",
            )
        count = 0
        while rows := await self.store.sessions(limit=session_calls.MAX_PAGE, guided=True):
            for row in rows:
                await self.store.delete_session(row.session_id)
            count += len(rows)
        return count

    # -- rows

    async def read_thoughts(self, session_id: str) -> Sequence[ThoughtRow]:
        """Return all thoughts of a session in order. This does not count as use.

        Raises:
            NotFoundError: The session does not exist.
        """
        return await self._thoughts((await self._row(session_id)).session_id)

    async def continues_run(self, session_id: str) -> bool:
        """Whether a session is the record of a run, or begins with copied thoughts of a run."""
        row = await self._row(session_id)
        return row.run_id is not None or decode_head(row).from_run > 0

    async def _document(self, row: SessionRow) -> Document:
        status = "archived" if self._is_archived(row) else row.status
        if row.run_id is not None:
            with contextlib.suppress(NotFoundError, StoreError):
                run = await self.store.run(row.run_id)
                status = status if run.status == "active" else run.outcome or run.status
        return session_documents.session_document(row, status)

    def _is_archived(self, row: SessionRow) -> bool:
        return row.status == "archived" or has_expired(row, self.settings, self._clock())

    async def _row(self, text: str) -> SessionRow:
        if self._lapses:
            await self.sweep(now=True)
        return await self.store.session(await self.session_id(text))

    def _present(self, view: SessionView, session_id: str) -> SessionRow:
        """Return the row unless the session is missing, or has expired and waits to be swept."""
        if view.row is None or (self._lapses and has_expired(view.row, self.settings, self._clock())):
            raise no_session(session_id)
        return view.row
