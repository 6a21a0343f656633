"""The journal: a run as the list of what happened to it, chained by digests.

Rule 1: the journal is the truth. A run's snapshot, path, thoughts, questions and usage are one fold over it.
Rule 2: an answer is on disk before it is used; a call that counts against a budget is on disk before it goes out.
Rule 3: every line's digest covers the line before, so a changed, lost or foreign line shows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import NOTHING, Budget, Ledger, Usage, dearer
from ..core.effects import Ask
from ..core.events import Answered, Event, Failed, Stopped
from ..core.machine import Pending, Registry, Snapshot, Step, advance, begin, wanted, without_failures
from ..core.strategy import Strategy, Thought
from ..errors import ConflictError, ReasonryError, StoreError
from .ports import Line, RunRow

HEAD_CHARS = 200
"""How much of a problem or an answer is shown in lists."""

DIGEST_CHARS = 32
"""Of the digest of a part of a run's record."""

SCHEMA = 1
"""Version of the entries below; a store written by a newer one is refused."""


CALLER = "caller"
"""The crew's model where the caller answers the questions."""


class Crew(Struct, frozen=True, omit_defaults=True):
    """Who and what a run works with, as a user would write it."""

    model: str = ""
    judge_model: str | None = None
    verifier: str | None = None
    draft_model: str | None = None


class Begun(Struct, frozen=True, tag="begun", array_like=True, omit_defaults=True):
    """The first entry: what was asked for."""

    strategy: str
    problem: str
    options: dict[str, Any]
    budget: Budget = Budget()
    crew: Crew = Crew()
    created_at_ms: int = 0
    forked_from: str | None = None
    forked_at: int | None = None
    schema: int = SCHEMA
    why: str = ""
    """Why this strategy, where it was not the user who named it."""


class Sent(Struct, frozen=True, tag="sent", array_like=True, omit_defaults=True):
    """A call is about to go out; written only where a limit must survive a crash.

    `tokens` and `usd` are what the dearest answer so far took: it may have come in without being written down yet.
    """

    id: str
    tokens: int = 0
    usd: float | None = None


class Took(Struct, frozen=True, tag="took", array_like=True):
    """An event settled the effect `id`; None: the run was stopped."""

    id: str | None
    event: Event


class Resumed(Struct, frozen=True, tag="resumed", array_like=True, omit_defaults=True):
    """Someone took the run up again, perhaps with other limits or another crew; a stop before it is lifted."""

    budget: Budget | None = None
    crew: Crew | None = None


class Ended(Struct, frozen=True, tag="ended", array_like=True):
    """The run has ended; `digests` are those of what it leaves behind, for replays to compare."""

    state: str = ""
    """Of the last snapshot; written by 0.1.0 and not compared, because a state may change with the code."""
    digests: dict[str, str] = {}
    """By part; see `digests_of`. Empty where 0.1.0 wrote it."""


Entry = Begun | Sent | Took | Resumed | Ended

_encoder = msgspec.json.Encoder()
_canonical = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(Entry)


class Asked(Struct, frozen=True):
    """One question of a run and what was replied, if anything."""

    id: str
    stage: str
    prompt: str
    reply: str | None = None
    read: str = ""
    """How the reply came to be read; see `Step`."""
    tried: tuple[str, ...] = ()
    """What came of the requests before the one that was replied to; see `Answered`."""


class Chain:
    """Turns entries into lines, each digest covering the one before."""

    def __init__(self, run_id: str, seq: int = 0, digest: bytes | None = None) -> None:
        self.seq = seq
        self.digest = digest or _digest(b"", run_id.encode())

    def lines(self, entries: Iterable[Entry]) -> list[Line]:
        """Return the next lines, without taking them as written."""
        seq, digest, lines = self.seq, self.digest, list[Line]()
        for entry in entries:
            body = _encoder.encode(entry)
            seq, digest = seq + 1, _digest(digest, body)
            lines.append(Line(seq, body, digest))
        return lines

    def written(self, lines: Sequence[Line]) -> None:
        """Go on after these lines."""
        if lines:
            self.seq, self.digest = lines[-1].seq, lines[-1].digest


def _digest(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).digest()[:16]


def read(run_id: str, lines: Sequence[Line]) -> tuple[list[Entry], Chain]:
    """Check the chain and decode the entries.

    Raises:
        StoreError: `store_corrupt` names the run and the line; `store_newer` if a newer version wrote it.
    """
    chain, entries = Chain(run_id), list[Entry]()
    for line in lines:
        whole = line.seq == chain.seq + 1 and line.digest == _digest(chain.digest, line.body)
        if not whole:
            raise _damaged(run_id, line.seq)
        try:
            entries.append(_decoder.decode(line.body))
        except msgspec.DecodeError as error:
            raise _damaged(run_id, line.seq) from error
        chain.written([line])
    if not entries or not isinstance(entries[0], Begun):
        raise _damaged(run_id, 1)
    if entries[0].schema > SCHEMA:
        raise StoreError(f"run {run_id} was written by a newer version", code="store_newer", run_id=run_id)
    return entries, chain


def _damaged(run_id: str, seq: int) -> StoreError:
    return StoreError(
        f"run {run_id} is damaged at line {seq} of its journal; other runs are not affected",
        code="store_corrupt",
        run_id=run_id,
        line=seq,
    )


class Folded:
    """A run as its journal tells it, kept up to date entry by entry."""

    def __init__(self, begun: Begun, strategies: Registry) -> None:
        self.begun = begun
        self.budget, self.crew = begun.budget, begun.crew
        self.strategies = strategies
        self.strategy = _strategy(strategies, begun.strategy)
        self.edges: list[tuple[str, str]] = []
        self.thoughts: list[Thought] = []
        self.events: list[Took] = []
        self.asked: dict[str, Asked] = {}
        self.asked_by: dict[str, str] = {}
        self.spent = NOTHING
        self.dearest = NOTHING
        """What the dearest answer took: the guess for calls whose answer was lost."""
        self.lost = 0
        """Calls that went out and whose answer was never recorded."""
        self.cut = 0
        """Calls that were cut off in flight when the run was stopped; counted in `spent`."""
        self.out: Counter[str] = Counter()
        """Calls written down before they went out that may still be answered, by effect."""
        self.ended: Ended | None = None
        self._before_end: tuple[Snapshot, Took] | None = None
        """Where the run stood before a stop or a failure ended it, and the event that did."""
        options = msgspec.convert(begun.options, self.strategy.options)
        self.snapshot: Snapshot = self._note(
            begin(self.strategy, begun.problem, options, strategies=strategies)
        )

    def apply(self, entry: Entry) -> Step | None:
        """Fold one more entry in; a step comes of it if it was an event.

        Raises:
            ConflictError: The event does not fit the run. Nothing changed.
        """
        match entry:
            case Took(id=effect_id, event=event):
                return self.take(effect_id, event)
            case Sent(id=effect_id, tokens=tokens, usd=usd):
                self.out[effect_id] += 1
                if tokens or usd is not None:
                    self.dearest = dearer(self.dearest, Usage(input_tokens=tokens, usd=usd))
            case Resumed(budget=budget, crew=crew):
                self.budget, self.crew = budget or self.budget, crew or self.crew
                self._give_up_calls(cut=0)
                self._reopen()
            case Ended():
                self.ended = entry
            case Begun():
                raise ConflictError("a run begins once")
        return None

    def take(self, effect_id: str | None, event: Event) -> Step:
        """Fold an event in.

        Raises:
            ConflictError: It does not fit the run. Nothing changed.
        """
        step = advance(self.strategy, self.snapshot, effect_id, event, strategies=self.strategies)
        if isinstance(event, Stopped) or step.snapshot.error is not None:
            self._before_end = self.snapshot, Took(effect_id, event)
        self.events.append(Took(effect_id, event))
        self._book(effect_id, event)
        if effect_id in self.asked and isinstance(event, Answered | Failed):
            reply = event.text if isinstance(event, Answered) else None
            asked = self.asked[effect_id]
            read = step.reading.title if step.reading else ""
            self.asked[effect_id] = replace(asked, reply=reply, read=read, tried=event.tried)
        self.snapshot = self._note(step)
        return step

    def _reopen(self) -> None:
        """Lift a stop or a failure of the world; what was answered stays answered."""
        if self._before_end is None:
            return
        before, last = self._before_end
        answered = not isinstance(last.event, Stopped | Failed)
        lifted = without_failures(before, (last.id or "") if answered else "")
        asked = tuple(one for one in wanted(lifted) if one.id not in self.asked)
        self.snapshot = self._note(Step(replace(lifted, at_ms=self.snapshot.at_ms), asked))
        if answered:
            again = advance(self.strategy, self.snapshot, last.id, last.event, strategies=self.strategies)
            self.snapshot = self._note(again)
        self._before_end = self.ended = None

    def _note(self, step: Step) -> Snapshot:
        self.edges += step.edges
        self.thoughts += step.thoughts
        for one in step.effects:
            if isinstance(one.effect, Ask):
                ask = one.effect
                prompt = f"{ask.system}\n\n{ask.prompt}" if ask.system else ask.prompt
                self.asked_by[one.id] = ask.by
                self.asked[one.id] = Asked(one.id, one.stage, prompt)
        return step.snapshot

    def asked_stages(self, by: Container[str]) -> list[tuple[str, bool]]:
        """Return the stage of each question to these, in the order asked, and whether it has been settled."""
        settled = {one.id for one in self.events}
        mine = [one for one in self.asked.values() if self.asked_by[one.id] in by]
        return [(one.stage, one.id in settled) for one in mine]

    @property
    def wanted(self) -> tuple[Pending, ...]:
        """The effects the run waits for."""
        return wanted(self.snapshot)

    def _book(self, effect_id: str | None, event: Event) -> None:
        usage = getattr(event, "usage", NOTHING)
        self.spent += usage
        if effect_id is None:
            self.cut += usage.calls
            self._give_up_calls(cut=usage.calls)
        else:
            self.dearest = dearer(self.dearest, usage)
            self.lost += max(0, self.out.pop(effect_id, 0) - usage.calls)

    def _give_up_calls(self, cut: int) -> None:
        """Book calls that were written down as lost, but for those that a stop has counted already."""
        self.lost += max(0, self.out.total() - cut)
        self.out.clear()

    @property
    def usage(self) -> Usage:
        """What was spent, calls that went out and never came back included."""
        return replace(self.spent, calls=self.spent.calls + self.lost + self.out.total())

    @property
    def ledger(self) -> Ledger:
        """The run's budget and what is spent of it; a lost answer is taken to have cost what the dearest did."""
        lost, dearest = self.lost + self.out.total(), self.dearest
        unknown = lost + self.cut
        usd = None if dearest.usd is None else dearest.usd * unknown
        guess = Usage(calls=lost, input_tokens=dearest.tokens * unknown, usd=usd)
        return Ledger(self.budget, self.spent + guess, largest=dearest)


def fold(entries: Sequence[Entry], strategies: Registry) -> Folded:
    """Walk a run's journal once more, without a model.

    Raises:
        StoreError: `store_corrupt`: an entry does not fit; the strategy may have changed since.
    """
    first = entries[0]
    assert isinstance(first, Begun), "checked when the journal was read"
    try:
        folded = Folded(first, strategies)
    except msgspec.ValidationError as error:
        raise StoreError(
            f"the options of the run do not fit the strategy {first.strategy!r} as it is today: {error}",
            code="store_corrupt",
            line=1,
        ) from error
    for number, entry in enumerate(entries[1:], start=2):
        try:
            folded.apply(entry)
        except ReasonryError as error:
            raise StoreError(
                f"line {number} of the journal does not fit the strategy {first.strategy!r} as it is today: "
                f"{error.message}",
                code="store_corrupt",
                line=number,
            ) from error
    return folded


def digests_of(run: Folded) -> dict[str, str]:
    """Return a digest of each part of what a run leaves behind: its events, path, thoughts and outcome."""
    end = run.snapshot
    parts = {
        "events": [(one.id, one.event) for one in run.events],
        "path": run.edges,
        "thoughts": run.thoughts,
        "outcome": (end.status, end.error, end.outcome),
    }
    return {
        name: hashlib.sha256(_canonical.encode(part)).hexdigest()[:DIGEST_CHARS]
        for name, part in parts.items()
    }


def closing(run: Folded) -> list[Ended]:
    """Return the entry that closes a run's journal, if the run has ended."""
    return [] if run.snapshot.status == "active" else [Ended(digests=digests_of(run))]


def differences(row: RunRow, run: Folded) -> list[str]:
    """Return the parts in which a run that has ended, walked again, differs from its record.

    0.1.0 recorded of the outcome what lists show; that is compared then.
    """
    recorded = run.ended.digests if run.ended else {}
    if recorded:
        now = digests_of(run)
        return [name for name, digest in recorded.items() if now.get(name) != digest]
    return [] if row_after(row, run, row.updated_at_ms) == row else ["outcome"]


def row_after(row: RunRow, run: Folded, now_ms: int) -> RunRow:
    """Return what a store lists of a run, as it stands now."""
    outcome = run.snapshot.outcome
    answer = None if outcome is None or outcome.answer is None else outcome.answer[:HEAD_CHARS]
    return replace(
        row,
        status=run.snapshot.status,
        model=run.crew.model,
        updated_at_ms=now_ms,
        reason=outcome.reason if outcome else None,
        answer=answer,
    )


def _strategy(strategies: Mapping[str, Strategy[Any, Any]], name: str) -> Strategy[Any, Any]:
    try:
        return strategies[name]
    except KeyError:
        raise StoreError(
            f"the run's strategy {name!r} is not registered here", code="store_corrupt"
        ) from None
