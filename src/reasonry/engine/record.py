"""The record of a run that has ended: all there is to see of it, so that it reads without the code of its day."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..core.bodies import Thought
from ..core.budget import NOTHING, Budget
from ..errors import ReasonryError
from ..records import RunRow, ThoughtRow
from .journal import Begun, Ended, Entry, ParticipantNames, Settled, terms
from .result import Result, Termination, result_of
from .run import PromptLog, Run

LISTS: Final = ("path", "events", "questions", "thoughts", "effects", "origins")
"""What a trace has many of, in the order of the document."""

_REPLAYED: Final = ("events", "path", "thoughts")
"""Those that a replay compares."""

CHUNK: Final = 500
"""Entries of a list that are taken together, so that a part of a long run is read without the rest."""

Rows = Callable[[Iterable[Thought], int, dict[str, int]], Sequence[ThoughtRow]]
"""Turns thoughts of a run into rows, from how many come before them and the first thought of each branch so far."""

Chunk = tuple[str, list[Any]]
"""Entries of one of the lists, as JSON data."""


@dataclass(frozen=True)
class Record:
    """All there is to see of a run: its result and the rest of its trace.

    Args:
        head: The trace but for its lists.
        read_chunks: Yields the lists piece by piece, prompts as a `PromptLog` shortens them.
    """

    result: Result
    head: Mapping[str, Any]
    read_chunks: Callable[[Sequence[str]], Iterator[Chunk]]

    def chunks(self, names: Sequence[str] = LISTS) -> Iterator[Chunk]:
        """Yield the entries of these lists, a list after the other, in the order of the document."""
        prompts = PromptLog()
        for name, entries in self.read_chunks(names):
            yield (
                name,
                [_whole_question(entry, prompts) for entry in entries] if name == "questions" else entries,
            )

    def entries(self, name: str) -> Iterator[Any]:
        """Yield the entries of one list."""
        for _, entries in self.chunks([name]):
            yield from entries

    def fork_points(self) -> dict[str, int]:
        """Return for each answered question how many events came before its answer: a fork there asks it again."""
        settled = (event for event in self.entries("events") if event["id"] is not None)
        return {event["id"]: place for place, event in enumerate(settled)}

    def document(self) -> dict[str, Any]:
        """Return the trace document whole, as it would have been made on the day the run ended."""
        lists: dict[str, list[Any]] = {name: [] for name in LISTS}
        for name, entries in self.chunks():
            lists[name] += entries
        return {**self.result.document(), **self.head, **lists}

    def thoughts(self) -> Iterator[Thought]:
        """Yield the thoughts of the run."""
        for _, entries in self.chunks(["thoughts"]):
            yield from msgspec.convert(entries, list[Thought])

    def pack(self) -> bytes:
        """Return the record as deflated lines of JSON: the result with the head, then the chunks."""
        lines = itertools.chain(
            [{"result": self.result, "trace": self.head}],
            ({name: entries} for name, entries in self.read_chunks(LISTS)),
        )
        return zlib.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


class _FirstLine(Struct, frozen=True):
    result: Result
    trace: dict[str, Any]


def unpack(packed: bytes) -> Record:
    """Return the record that was packed."""
    head, *lines = zlib.decompress(packed).splitlines()
    first = msgspec.json.decode(head, type=_FirstLine)

    def read_chunks(names: Sequence[str]) -> Iterator[Chunk]:
        for line in lines:
            name = line[2 : line.index(b'"', 2)].decode()
            if name in names:
                yield name, msgspec.json.decode(line)[name]

    return Record(first.result, first.trace, read_chunks)


def _whole_question(question: dict[str, Any], prompts: PromptLog) -> dict[str, Any]:
    shared = question.get("shared", 0)
    prompt = prompts.restore(question["id"], shared, question["prompt"])
    return {
        name: prompt if name == "prompt" else value for name, value in question.items() if name != "shared"
    }


def ending(row: RunRow, run: Run) -> list[Ended]:
    """Return the entry that closes a run's journal, if the run has ended."""
    if run.snapshot.status == "active":
        return []
    return [Ended(record_as_it_stands(row, run).pack())]


def record_as_it_stands(row: RunRow, run: Run) -> Record:
    """Return what there is to see of a run that was folded."""
    lists: dict[str, tuple[Collection[Any], Callable[[Any], Any]]] = {
        "path": (run.edges, list),
        "events": (run.events, _event_document),
        "questions": (run.asked.values(), msgspec.to_builtins),
        "thoughts": (run.thoughts, msgspec.to_builtins),
        "effects": (run.performed.values(), msgspec.to_builtins),
        "origins": (run.origins, str),
    }

    def read_chunks(names: Sequence[str]) -> Iterator[Chunk]:
        for name, (entries, shown) in lists.items():
            if name in names:
                documents = map(shown, entries)
                while chunk := list(itertools.islice(documents, CHUNK)):
                    yield name, chunk

    return Record(result_of(row.run_id, row.session_id, run), _head_of(run), read_chunks)


def _head_of(run: Run) -> dict[str, Any]:
    forked, reused = run.begun.forked_at, run.reused
    return {
        **_terms_document(run.begun, run.budget, run.participants),
        **({"reused": {"calls": reused.calls, "tokens": reused.tokens, "usd": reused.usd}} if forked else {}),
        **({"budgets": msgspec.to_builtins(run.budgets)} if len(run.budgets) > 1 else {}),
        "stage": run.snapshot.stage,
    }


_SELDOM: Final = ("forked_at", "from_session", "reworded", "prompts")
"""Members of the first entry that are left out where they say nothing."""


def _terms_document(begun: Begun, budget: Budget, participants: ParticipantNames) -> dict[str, Any]:
    return {
        "problem": begun.problem,
        "options": begun.options,
        "budget": msgspec.to_builtins(budget),
        "crew": msgspec.to_builtins(participants),
        "created_at_ms": begun.created_at_ms,
        "forked_from": begun.forked_from,
        **{name: value for name in _SELDOM if (value := getattr(begun, name)) not in (None, "", {})},
    }


def _event_document(settled: Settled) -> dict[str, Any]:
    return {"id": settled.id, **msgspec.to_builtins(settled.event)}


def record_of_row(row: RunRow, entries: Sequence[Entry], why: ReasonryError) -> Record:
    """Return what there is to see of a run that cannot be folded: what lists show of it, and its events."""
    begun, budget, participants = terms(entries)
    taken = [entry for entry in entries if isinstance(entry, Settled)]
    own = taken[begun.forked_at or 0 :]
    is_answered = row.outcome in ("solved", "answered")
    usage = sum((getattr(settled.event, "usage", NOTHING) for settled in own), NOTHING)
    result = Result(
        answer=row.answer if is_answered else None,
        outcome=row.outcome,
        status=row.status,
        termination=Termination(row.reason or ("active" if row.status == "active" else ""), row.detail),
        strategy=row.strategy,
        model=row.model,
        usage=usage,
        rounds=0,
        duration_ms=max((settled.event.at_ms for settled in taken), default=0),
        session_id=row.session_id,
        run_id=row.run_id,
        details={},
        warnings=(f"shown from its events alone: {why.message}",),
        best_answer=None if is_answered else row.answer,
    )
    head = {**_terms_document(begun, budget, participants), "stage": ""}

    def read_chunks(names: Sequence[str]) -> Iterator[Chunk]:
        if "events" in names:
            yield "events", [_event_document(settled) for settled in taken]

    return Record(result, head, read_chunks)


def record_of(last: Entry) -> Record | None:
    """Return the record of a run from its last entry; None while it is active."""
    return unpack(last.record) if isinstance(last, Ended) else None


def rungs_of(record: Record) -> Counter[str]:
    """Count on which rungs of the repair ladder the replies of a run were read; `unreadable` is one."""
    replied = (question for question in record.entries("questions") if question["reply"] is not None)
    return Counter(question["read"].partition(":")[0] for question in replied if question["read"])


def differences(row: RunRow, run: Run) -> list[str]:
    """Return the parts in which a run that has ended, walked again, differs from its record.

    They are of `events`, `path`, `thoughts` and `outcome`.
    """
    recorded = None if run.ended is None else record_of(run.ended)
    if recorded is None:
        return []
    now = record_as_it_stands(row, run)
    parts: dict[str, Iterable[tuple[Any, Any]]] = {
        name: itertools.zip_longest(recorded.read_chunks([name]), now.read_chunks([name]))
        for name in _REPLAYED
    }
    before, after = (
        (end.status, end.termination, end.answer, end.best_answer, end.details)
        for end in (recorded.result, now.result)
    )
    parts["outcome"] = [(before, after)]
    encode = msgspec.json.Encoder(order="sorted").encode
    return [name for name, pairs in parts.items() if any(encode(a) != encode(b) for a, b in pairs)]
