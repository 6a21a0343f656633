"""The record of a run: the result and the trace. It stays readable even after the code of the strategy has changed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.bodies import Thought
from ..core.budget import Budget
from ..core.events import NOTHING, Usage
from ..core.problem import without_quoted
from ..errors import ReasonryError
from ..records import ANSWERED, RunRow, ThoughtRow
from .journal import HEAD_CHARS, Begun, Ended, Entry, ParticipantNames, Settled, terms
from .result import Result, Termination, result_of
from .run import PromptLog, Run

LISTS: Final = ("path", "events", "questions", "thoughts", "effects", "origins")
"""The names of the lists of a trace, in the order in which the trace document holds these lists."""

_REPLAYED: Final = ("events", "path", "thoughts", "outcome")
"""The parts of a record that a replay compares."""

Rows = Callable[[Iterable[Thought], int, dict[str, int]], Sequence[ThoughtRow]]
"""Turns thoughts into rows. Arguments: the thoughts, the count of earlier thoughts, and each branch's first number."""


@dataclass(frozen=True)
class Record:
    """The record of a run: its result and the rest of its trace.

    Args:
        head: The members of the trace that are neither lists nor parts of the result.
        read_list: Returns the entries of a list, by its name, as JSON data. A `PromptLog` has shortened the prompts.
    """

    result: Result
    head: Mapping[str, Any]
    read_list: Callable[[str], Iterable[Any]]

    def entries(self, name: str) -> Iterator[Any]:
        """Yield the entries of the list `name`. Prompts are restored to their full text."""
        prompts = PromptLog()
        for entry in self.read_list(name):
            if name == "questions":
                shared = entry.pop("shared", 0)
                entry["prompt"] = prompts.restore(entry["id"], shared, entry["prompt"])
            yield entry

    def fork_points(self) -> tuple[dict[str, int], int]:
        """Map each effect id to the index of its result among the events that a fork can copy. Also count these events.

        If a fork copies only the events before an answer, the fork asks the question again.
        """
        events = self.entries("events")
        taken = [each["id"] for each in events if not each.get("lifted", each["type"] == "stopped")]
        places = {effect_id: place for place, effect_id in enumerate(taken) if effect_id is not None}
        return places, len(taken)

    def document(self) -> dict[str, Any]:
        """Return the whole trace document."""
        return {**self.result.document(), **self.head, **{name: [*self.entries(name)] for name in LISTS}}

    def thoughts(self) -> Iterator[Thought]:
        """Yield the thoughts of the run."""
        return (msgspec.convert(entry, Thought) for entry in self.entries("thoughts"))

    def pack(self) -> msgspec.Raw:
        """Return the record as JSON."""
        lists = {name: msgspec.Raw(msgspec.json.encode([*self.read_list(name)])) for name in LISTS}
        return msgspec.Raw(msgspec.json.encode(_Packed(self.result, self.head, lists)))


class _Packed(Struct, frozen=True):
    result: Result
    head: Mapping[str, Any]
    lists: Mapping[str, msgspec.Raw]
    """Raw JSON, so that a list is decoded only on demand."""


def record_of_run(row: RunRow, run: Run) -> Record:
    """Return the record of a folded run."""
    lists: dict[str, Callable[[], Iterable[Any]]] = {
        "path": lambda: map(list, run.edges),
        "events": lambda: (
            _event_document(settled) | ({"lifted": True} if place in run.lifted else {})
            for place, settled in enumerate(run.events)
        ),
        "questions": lambda: map(msgspec.to_builtins, run.asked.values()),
        "thoughts": lambda: map(msgspec.to_builtins, run.thoughts),
        "effects": lambda: map(msgspec.to_builtins, run.performed.values()),
        "origins": lambda: run.origins,
    }
    forked, reused = run.begun.forked_at, run.reused
    head = {
        **_terms_document(run.begun, run.budget, run.participants),
        **({"reused": {"calls": reused.calls, "tokens": reused.tokens, "usd": reused.usd}} if forked else {}),
        **({"budgets": msgspec.to_builtins(run.budgets)} if len(run.budgets) > 1 else {}),
        "stage": run.snapshot.stage,
    }
    return Record(result_of(row.run_id, row.session_id, run), head, lambda name: lists[name]())


_SELDOM: Final = ("forked_at", "from_session", "reworded", "prompts")
"""Members of the journal's first entry that the trace document omits if they are empty."""


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
    """Make a record from the row and the events of a run that cannot be folded."""
    begun, budget, participants = terms(entries)
    taken = [entry for entry in entries if isinstance(entry, Settled)]
    is_answered = row.outcome in ANSWERED
    result = Result(
        answer=row.answer if is_answered else None,
        outcome=row.outcome,
        status=row.status,
        termination=Termination(row.reason or ("active" if row.status == "active" else ""), row.detail),
        strategy=row.strategy,
        model=row.model,
        usage=_usage_of(begun, entries),
        rounds=0,
        duration_ms=max((settled.event.at_ms for settled in taken), default=0),
        session_id=row.session_id,
        run_id=row.run_id,
        details={},
        warnings=(f"shown from its events alone: {why.message}",),
        best_answer=None if is_answered else row.answer,
    )
    head = {**_terms_document(begun, budget, participants), "stage": ""}
    return Record(result, head, lambda name: map(_event_document, taken if name == "events" else ()))


def record_of(last: Entry | None) -> Record | None:
    """Return the record in `last`, if `last` is an `Ended` entry. Otherwise, return None."""
    if not isinstance(last, Ended):
        return None
    whole = msgspec.json.decode(last.record, type=_Packed)
    return Record(whole.result, whole.head, lambda name: msgspec.json.decode(whole.lists[name]))


def proved_row(row: RunRow, entries: Sequence[Entry]) -> RunRow:
    """Return a run's row, corrected with the facts in the run's journal. The strategy's code is not needed.

    The journal does not tell the owner, the time of the last write, or whether the run is a job. For an active run, it
    does not tell the usage of lost calls either, and the row decides whether the run is paused.
    """
    begun, _, participants = terms(entries)
    recorded = record_of(entries[-1])
    row = replace(
        row,
        strategy=begun.strategy,
        model=participants.model,
        problem=without_quoted(begun.problem)[:HEAD_CHARS],
        created_at_ms=begun.created_at_ms,
        paused=row.paused and recorded is None,
    )
    if recorded is None:
        outcome = "waiting" if row.outcome == "waiting" else None
        row = replace(row, status="active", outcome=outcome, reason=None, detail="", answer=None)
        usage = _usage_of(begun, entries)
    else:
        end = recorded.result
        answer, usage = end.best_answer if end.answer is None else end.answer, end.usage
        row = replace(
            row,
            session_id=end.session_id,
            status=end.status,
            outcome=end.outcome,
            reason=end.termination.reason or None,
            detail=end.termination.detail[:HEAD_CHARS],
            answer=None if answer is None else answer[:HEAD_CHARS],
        )
    return replace(row, calls=usage.calls, samples=usage.samples, tokens=usage.tokens, usd=usage.usd)


def _usage_of(begun: Begun, entries: Sequence[Entry]) -> Usage:
    """Return the usage of a run's own answers. Answers that a fork has copied do not count."""
    taken = [entry for entry in entries if isinstance(entry, Settled)]
    own = taken[begun.forked_at or 0 :]
    return sum((getattr(settled.event, "usage", NOTHING) for settled in own), NOTHING)


def differences(row: RunRow, run: Run) -> list[str]:
    """Return the names of the parts in which the fold of an ended run differs from the run's record.

    The parts are `events`, `path`, `thoughts` and `outcome`.
    """
    recorded = record_of(run.ended)
    if recorded is None:
        return []
    encode = msgspec.json.Encoder(order="sorted").encode

    def part(record: Record, name: str) -> bytes:
        end = record.result
        outcome = (end.status, end.termination, end.answer, end.best_answer, end.why, end.details)
        return encode(outcome if name == "outcome" else [*record.read_list(name)])

    now = record_of_run(row, run)
    return [name for name in _REPLAYED if part(recorded, name) != part(now, name)]
