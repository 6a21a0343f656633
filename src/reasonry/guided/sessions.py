"""Guided sessions: an agent submits its thoughts; they are stored, listed, searched and exported.

Rule 1: every change is a transaction of the store. A refused call has changed nothing.
Rule 2: the store keeps all thoughts. A process keeps no thoughts in memory.
Rule 3: nothing runs in the background. A call archives or deletes the expired sessions, at most once a minute.
"""

import builtins
import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Unpack

import msgspec
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..errors import ConflictError, NotFoundError, StoreError, UsageError
from ..records import (
    ID_CHARS,
    LAST,
    MIN_PREFIX_CHARS,
    SessionChange,
    SessionFilters,
    SessionView,
    Store,
    may_be_short,
    missing_error,
    new_id,
    now_ms,
)
from . import session_calls as calls
from . import session_documents as documents
from .export import KIND, VERSION, markdown
from .lines import MAIN, RowsView, ancestry, decode_head, encode, find_thought
from .placement import with_guidance_given
from .session_calls import Arguments
from .session_choice import Thinker, run_record_error
from .session_documents import Document
from .session_settings import SessionSettings
from .stored_sessions import StoredSessions, Unfinished, begun_here, find_unfinished, list_unfinished
from .thinking_tool import Notice, actions_schema
from .tool_arguments import name_arguments, position_of, unknown_arguments
from .transcripts import read_session
from .turn import SHOWN_CHARS, ThinkingTurn, TurnResult, cut_history

MOST_LOOKED_AT = 500
"""The most sessions that `list` reads for a page."""
RESUMED = 3
"""How many of the latest thoughts `resume` returns by default."""
_ON_A_LINE = {"thought_number", "branch_id", "branch_from_thought", "merge_branch"}
"""Arguments that place a thought on a line. Without them, a command's revision goes to the revised thought's line."""
_OF_THE_CURRENT = frozenset({"get", "export", "pin"})
"""Actions that default to the caller's current session."""
_CHANGING = ("delete", "pin", "resume")
"""Actions that change something, and refuse unknown arguments. All other actions ignore them and add a notice."""


class Sessions:
    """The sessions of a store. Every method takes raw arguments and returns a JSON document.

    Args:
        strategies: The registry of strategies, by canonical name.
        clock: A function that returns the time (UTC, milliseconds since 1970).
        directory: The working directory. New sessions record it, so that a later command in the directory finds them.
        chooses_ids: Whether an imported session may keep its id. False if the store has sessions that the caller must
            not see, since a taken id would reveal such a session.
    """

    def __init__(
        self,
        store: Store,
        strategies: Mapping[str, Strategy[Any, Any]],
        settings: SessionSettings | None = None,
        clock: Callable[[], int] = now_ms,
        directory: str = "",
        chooses_ids: bool = True,
    ) -> None:
        self.stored = StoredSessions(store, strategies, settings or SessionSettings(), clock)
        self.store = store
        self._directory = directory
        self._chooses_ids = chooses_ids

    # -- thinking

    async def think(
        self,
        arguments: Arguments,
        *,
        thinker: Thinker | None = None,
        exact_id: str | None = None,
        history: int | None = 0,
        begins: bool = True,
        deduplicates: bool = True,
        refuter: str = "A coached run with the strategy `refute`",
    ) -> Document:
        """Submit a thought and return the state of its session.

        Args:
            thinker: The caller whose sessions a call without a session id may continue. If there is no caller, the call
                starts a session.
            exact_id: The id of the session to use, whatever the arguments name. A missing session is created.
            history: How many thoughts the reply shows by default. None means all.
            begins: Whether a call that names an unknown session may start a new session. Otherwise the named session
                must exist, and the call must give its complete id.
            deduplicates: Whether a repeated call adds nothing. Otherwise, it adds another thought.
            refuter: How the caller can start a refutation: the subject of "… tries to refute the session" in the reply.

        Raises:
            UsageError: The call breaks a rule. Nothing has changed.
        """
        thinker, fault = thinker or Thinker(seen=None), None
        others = dict[str, Any]()
        try:
            call, others = calls.read_thought(arguments, self.stored.settings)
            if call.strategy is not None:
                call = replace(call, strategy=self.stored.strategy(call.strategy).name)
        except UsageError as error:
            call, fault = calls.read_session_only(arguments, error, exact_id), error
        async with thinker.gate:
            named = exact_id or thinker.session_of(call)
            if named and begins and exact_id is None and may_be_short(named):
                named = await self.stored.find_guided_id(named)
            turn = ThinkingTurn(
                call=call,
                session_id=named,
                thinker=thinker,
                target=named or thinker.current or new_id(),
                fault=fault,
                mark=calls.call_mark(call, others) if deduplicates else 0,
                exact=exact_id is not None,
                begins=begins,
                archives=self.store.durable,
                others=others,
                deletes_expired=self.stored.deletes_expired,
                directory=self._directory,
                now_ms=self.stored.clock(),
                settings=self.stored.settings,
                find=self.stored.strategy,
                history=history,
            )
            document = await self._think(turn)
        if "before_you_end" in document:
            document["before_you_end"] += f" {refuter} tries to refute the session."
        return document

    async def _think(self, turn: ThinkingTurn) -> Document:
        call = turn.call
        # A new session cannot have the thoughts that the call refers to. A session of this directory may have them.
        here = await begun_here(self.store, self._directory) if turn.is_lost else []
        try:
            result: TurnResult = await self.store.change(turn.target, turn.decide)
        except UsageError as error:
            if not here:
                raise
            message = f"{error.message} This call would begin a new session. {list_unfinished(here)}"
            raise type(error)(message, code=error.code, **error.details) from None
        if turn.is_lost:
            reason, how = "session_begun", "To continue another, pass the session id of its reply."
            if here:
                reason, how = "unfinished_sessions", list_unfinished(here)
            message = f"Thought {call.thought_number} began a new session. {how}"
            result.notices.append(Notice(reason, message))
        if turn.exact and call.session_id not in (None, turn.session_id):
            message = "This tool thinks in one session of its own, whatever session a call names."
            result.notices.append(Notice("bound", message, call.session_id))
        if result.placed.head is not result.earlier:
            turn.thinker.learn(call, result.row.session_id, result.placed.head, result.choice)
        # The thought is already stored. If this sweep fails, the next sweep does its work.
        with contextlib.suppress(StoreError):
            await self.stored.sweep()
        return documents.reply_document(result)

    async def think_here(
        self, call: Arguments, *, begins: bool = False, refuter: str = ""
    ) -> tuple[Document, str | None]:
        """Submit a thought from the command line. The command may omit the thought numbers and the session.

        The thought continues the named session, or starts a session under that name. If the command names no session,
        the thought continues the session that was last used in this directory.

        Args:
            begins: Whether a command without a session name starts a new session.
            refuter: See `think`.

        Returns:
            The reply, and the purpose of the session if the thought continued a session that the command did not name.

        Raises:
            NotFoundError: The name has the form of an id or of the beginning of an id, but no session has this id.
        """
        name = call.get("session_id")
        exact_id = name if name is not None and await self._is_free_name(name) else None
        found = await self._find_here(call, begins=begins)
        revised = str(call.get("revises_thought"))
        if found and revised.isdecimal() and not call.keys() & _ON_A_LINE:
            row, head = found[0]
            view, lines = (
                RowsView(row, await self.stored.thoughts(row.session_id)),
                ancestry(head, head.latest),
            )
            with contextlib.suppress(UsageError):
                thought = find_thought(view, "revises_thought", int(revised), lines)
                call = {**call, "branch_id": thought.branch or head.main_name}
        # Without a number, the sessions cannot be distinguished, so only the latest session can continue.
        open_here = [] if "session_id" in call else found if "thought_number" in call else found[:1]
        purposes = {row.session_id: row.purpose for row, _ in open_here}
        completed = calls.complete_call(call, found[0][1] if found else None)
        thinker = Thinker([*purposes], seen=None)
        reply = await self.think(completed, thinker=thinker, exact_id=exact_id, refuter=refuter)
        return reply, purposes.get(reply["session_id"])

    async def _is_free_name(self, name: str) -> bool:
        """Whether `name` is a made-up name and not an id. Raise NotFoundError for an unknown id."""
        if name != LAST and not (name and ID_CHARS.issuperset(name.lower())):
            return name.isprintable() and not {"/", "\\"} & {*name}
        found = await self.stored.find_id(name.lower(), guided=True)
        if found in await self.store.session_ids(found, 1):
            return False
        near: Sequence[str] = ()
        for end in range(len(name) - 1, MIN_PREFIX_CHARS - 1, -1):
            if near := await self.store.session_ids(name[:end].lower(), 3):
                break
        raise missing_error("session", name, near)

    async def _find_here(self, call: Arguments, *, begins: bool) -> Sequence[Unfinished]:
        """Find the sessions that a command may continue: the named session, or sessions of this directory."""
        if "session_id" in call:
            with contextlib.suppress(NotFoundError, StoreError):
                row = await self.store.session(await self.stored.find_guided_id(call["session_id"]))
                return [(row, decode_head(row))] if row.run_id is None else []
        if "session_id" in call or begins:
            return []
        found = [
            session
            for session in await begun_here(self.store, self._directory)
            if not self.stored.is_archived(session[0])
        ]
        if found and found[0][1].has_stage and (strategy := call.get("strategy")) is not None:
            return found if self.stored.strategy(strategy).name == found[0][0].strategy else []
        return found

    # -- reading

    async def manage(self, arguments: Arguments, thinker: Thinker | None = None) -> Document:
        """Call the tool `sessions`: perform its `action` (one of `ACTIONS`) with the other arguments.

        Args:
            thinker: The caller whose current session is the default session.
        """
        thinker, schema = thinker or Thinker(seen=None), actions_schema(calls.ACTIONS)
        named = name_arguments(schema, arguments)
        action = calls.read_action(calls.ACTIONS, named)
        unknown = unknown_arguments("sessions", named, schema["properties"])
        if unknown and action in _CHANGING:
            raise UsageError(" ".join(unknown), choices=builtins.list(schema["properties"]))
        if action in _OF_THE_CURRENT and thinker.current is not None:
            named = {"session_id": thinker.current, **named}
        call, perform = calls.read_form(calls.ACTIONS[action], named), getattr(self, action)
        async with thinker.gate if action == "resume" else nullcontext():
            document = await perform(call)
            if action == "resume":
                thinker.resume(document["session_id"])
        if action == "delete":
            thinker.forget(document["session_id"])
        notices = [{"reason": "unknown_argument", "message": sentence} for sentence in unknown]
        return {**document, "notices": [*document.get("notices", []), *notices]} if notices else document

    async def list(
        self, arguments: Arguments | calls.ListSessions, **which: Unpack[SessionFilters]
    ) -> Document:
        """List sessions, latest use first. Arguments: `status` (active, archived, unfinished, all), `limit`, `cursor`.

        The status of an ended run's session is the outcome of the run. An agent's session is unfinished until the agent
        ends it, even if it is archived. A page that would need too many reads is shorter than `limit` and has a cursor.
        """
        call = calls.read_call(calls.ListSessions, arguments)
        limit, status = call.limit, call.status
        if (name := which.get("strategy")) is not None:
            which["strategy"] = self.stored.strategy(name).name
        which["status"] = "active" if status == "active" else None
        if status == "unfinished":
            if which.get("guided") is False:
                return {"sessions": [], "next_cursor": None}
            which["guided"] = True
        if self.stored.deletes_expired:
            await self.stored.sweep(now=True)
        looked_at = limit if status == "all" else MOST_LOOKED_AT
        rows = await self.store.sessions(limit=looked_at + 1, before=call.cursor, **which)
        shown = builtins.list[Document]()
        for row, entry in zip(rows, await self.stored.documents(rows[:looked_at]), strict=False):
            with contextlib.suppress(StoreError):
                if row.run_id is None and decode_head(row).ended:
                    entry["ended"] = True
            has_status = {
                "active": entry["status"] == "active",
                "archived": self.stored.is_archived(row),
                "unfinished": "ended" not in entry,
            }
            if has_status.get(status, True):
                shown.append(entry)
            if len(shown) > limit:
                return {"sessions": shown[:limit], "next_cursor": shown[limit - 1]["session_id"]}
        more = rows[looked_at - 1].session_id if len(rows) > looked_at else None
        return {"sessions": shown, "next_cursor": more}

    async def get(self, arguments: Arguments | calls.GetSession, *, whole: bool = False) -> Document:
        """Return a session and a page of its thoughts. Filters: `from`, `to` (numbers) and `branch_id` (or `main`).

        Args:
            whole: Whether to return all thoughts after `cursor`, rather than a page.
        """
        call = calls.read_call(calls.GetSession, arguments)
        row, count = await self.stored.row(call.session_id), None if whole else call.limit + 1
        main = MAIN if row.run_id is not None else decode_head(row).main_name
        branch = "" if call.branch_id == main else call.branch_id
        chosen = {"first": call.first, "last": call.last, "branch": branch}
        rows = await self.stored.thoughts(row.session_id, position_of(call.cursor), count, **chosen)
        page = rows if whole else rows[: call.limit]
        return {
            **await self.stored.document(row),
            **documents.position_document(row),
            "thoughts": [documents.thought_document(row) for row in page],
            "next_cursor": str(page[-1].seq) if len(rows) > len(page) else None,
        }

    async def search(self, arguments: Arguments | calls.SearchThoughts) -> Document:
        """Return the thoughts that contain `query`, in all sessions or in one session. Case makes no difference."""
        call = calls.read_call(calls.SearchThoughts, arguments)
        query, session_id, after = call.query, call.session_id, position_of(call.cursor)
        if not query:
            raise UsageError("query is empty; give the text to look for", field="query")
        if session_id is not None:
            session_id = (await self.stored.row(session_id)).session_id
        limit = call.limit + 1
        found = await self.store.search_thoughts(query, session_id=session_id, after=after, limit=limit)
        matches = found[: call.limit]
        return {
            "matches": [documents.match_document(owner, thought, query) for _, owner, thought in matches],
            "next_cursor": str(matches[-1][0]) if len(found) > call.limit else None,
        }

    async def resume(self, arguments: Arguments | calls.ResumeSession) -> Document:
        """Resume a session, and return its state and its latest thoughts. This counts as use of the session.

        If no session is named, resume the latest unfinished session. The sessions of this directory come first.
        """
        call, at = calls.read_call(calls.ResumeSession, arguments), self.stored.clock()
        count = RESUMED if call.history is None else call.history
        chars = self.stored.settings.max_history_chars or SHOWN_CHARS
        wanted = call.session_id
        if wanted is None:
            found = await find_unfinished(self.store, self._directory)
            if not found:
                raise NotFoundError("There is no unfinished session; `list` shows which sessions there are")
            wanted = found[0][0].session_id
        session_id = (await self.stored.row(wanted)).session_id

        def decide(view: SessionView) -> SessionChange:
            row = self.stored.present(view, session_id)
            if row.run_id is not None:
                raise run_record_error(row)
            # An ended session is open again, so that the next thought without a session id continues it.
            head = with_guidance_given(self.stored.strategy(row.strategy), decode_head(row))
            head = encode(replace(head, ended=False))
            row = replace(row, status="active", used_at_ms=at, head=head)
            return SessionChange(row, value=(row, view.latest(row.thoughts)))

        row, thoughts = await self.store.change(session_id, decide)
        return {
            **documents.resumed_document(self.stored.strategy(row.strategy), decode_head(row), thoughts),
            **await self.stored.document(row),
            **documents.position_document(row),
            **documents.history_document(cut_history(thoughts, count, chars), row.thoughts),
        }

    # -- export and import

    async def export(self, arguments: Arguments | calls.ExportSession) -> Document:
        """Export a whole session as JSON data. With the format `markdown`, return a Markdown page in `text` instead."""
        call = calls.read_call(calls.ExportSession, arguments)
        whole = await self.get({"session_id": call.session_id}, whole=True)
        del whole["next_cursor"]
        whole["thought_history_length"] = len(whole["thoughts"])
        if call.format == "markdown":
            return {"session_id": whole["session_id"], "format": call.format, "text": markdown(whole)}
        return {"kind": KIND, "version": VERSION, "format": call.format, **whole}

    async def import_(self, content: str | bytes | Mapping[str, Any]) -> Document:
        """Import a session from its JSON export.

        The session keeps its id if the id is free and `chooses_ids` is true. Otherwise the session gets a new id.

        Raises:
            UsageError: The content is not a session, or breaks the rules of a session.
            TooLargeError: A thought or the session exceeds the limits.
        """
        read = read_session(content, self.stored.strategy, self.stored.settings, self.stored.clock())
        wanted, notices = read.row.session_id if self._chooses_ids else "", builtins.list[Notice]()
        row = replace(read.row, session_id=wanted or new_id())
        try:
            await self.store.import_session(row, read.thoughts)
        except ConflictError:
            message = "There is a session of this id already; the import is a copy under a new id."
            notices.append(Notice("exists", message, row.session_id))
            row = replace(row, session_id=new_id())
            await self.store.import_session(row, read.thoughts)
        return {**await self.stored.document(row), "notices": msgspec.to_builtins(notices)}

    # -- pinning and deleting

    async def pin(self, arguments: Arguments | calls.PinSession) -> Document:
        """Pin a session so that it never expires, or unpin it. Neither action counts as use."""
        call = calls.read_call(calls.PinSession, arguments)
        session_id = await self.stored.find_id(call.session_id)

        def decide(view: SessionView) -> SessionChange:
            row = replace(self.stored.present(view, session_id), pinned=call.pinned)
            return SessionChange(row, value=row)

        return await self.stored.document(await self.store.change(session_id, decide))

    async def delete(self, arguments: Arguments | calls.OneSession) -> Document:
        """Delete a session and its thoughts. If a run wrote the session, delete this run too."""
        session_id = await self.stored.find_id(calls.read_call(calls.OneSession, arguments).session_id)
        try:
            run_id = (await self.stored.row(session_id)).run_id
        except StoreError as error:
            if error.code != "store_corrupt":
                raise
            run_id = None
        if run_id is not None:
            with contextlib.suppress(NotFoundError):
                async with self.store.drive(run_id):
                    await self.store.delete_run(run_id)
        # The deletion of the run may have deleted the session too.
        with contextlib.suppress(NotFoundError):
            await self.store.delete_session(session_id)
        return {"session_id": session_id, "deleted": True}

    async def clear(self, *, confirm: bool = False) -> int:
        """Delete all guided sessions, but not the sessions of runs. Return how many sessions were deleted.

        Args:
            confirm: Must be true if the store is durable, since it may hold other people's work.

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
        while rows := await self.store.sessions(limit=calls.MAX_PAGE, guided=True):
            for row in rows:
                await self.store.delete_session(row.session_id)
            count += len(rows)
        return count
