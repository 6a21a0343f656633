"""A run as the fold over its journal: the state is computed from the entries alone, without a model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..blocks.answer_form import with_form
from ..blocks.reply import read_reply
from ..core.bodies import Thought
from ..core.budget import Budget, Ledger, larger_usage
from ..core.codec import dump_snapshot, load_snapshot
from ..core.effects import Ask, RunStrategy, Verify
from ..core.events import NOTHING, Answered, Closing, Event, Failed, Stopped, Usage
from ..core.machine import Step, advance, as_recorded, begin, last_questions
from ..core.pending import Pending, Snapshot, open_effects, without_failures
from ..core.registry import Registry
from ..core.strategy import Strategy
from ..errors import ConflictError, ReasonryError
from .journal import Begun, CallIntended, Ended, Entry, ParticipantNames, Resumed, Settled, TermsChanged


class Asked(Struct, frozen=True):
    """A question of a run, and the reply to it, if any."""

    id: str
    stage: str
    prompt: str
    """The prompt without the prefix that it shares with an earlier prompt; see `PromptLog`."""
    reply: str | None = None
    read: str = ""
    """How the reply was read, or why the reply is unreadable: `Reading.title`."""
    tried: tuple[str, ...] = ()
    """The failures of the requests before the reply; see `Answered.tried`."""
    shared: int = 0
    """The length of the prefix that the prompt shares with the earlier prompt."""


class Performed(Struct, frozen=True, omit_defaults=True):
    """An effect of a run, as views of the run show it."""

    id: str
    kind: Literal["ask", "call_tool", "verify"]
    stage: str
    round: int
    at_ms: int = 0
    """The run time, in milliseconds, at which the run first requested the effect."""
    about: str = ""
    sample: int = 0
    text: str = ""
    """The name of the called tool, or the text to verify."""
    arguments: dict[str, Any] = {}


class Counts(Struct, frozen=True, omit_defaults=True):
    """How many events, answers and thoughts a run has."""

    events: int = 0
    answered: int = 0
    thoughts: int = 0


class Checkpoint(Struct, frozen=True, omit_defaults=True):
    """A checkpoint: the folded state of an active run. A later fold can begin from this state."""

    begun: Begun
    strategy_version: int
    snapshot: msgspec.Raw
    counts: Counts
    budget: Budget
    participants: ParticipantNames
    spent: Usage
    dearest: Usage
    lost: int
    cut: Usage
    out: dict[str, int]
    branches: dict[str, int]
    reused: Usage = NOTHING
    unmarked: str | None = None
    in_part: tuple[str, ...] = ()
    paused: bool = False


_COPIED = Checkpoint.__struct_fields__[Checkpoint.__struct_fields__.index("budget") :]
"""Members of a checkpoint that `Run` has as attributes of the same names."""


class Run:
    """The state of a run, computed by folding the entries of the journal one by one.

    An event that does not fit the run raises ConflictError and leaves the run unchanged.
    """

    paused = False
    """Whether the run is paused and so begins no new effect."""
    closings = 0
    """How many times a limit closed the run."""
    _before_closing: tuple[Snapshot, Settled] | None = None
    """The snapshot before a limit closed the run, and the event that closed the run."""
    lifted = frozenset[int]()
    """Positions of events that no longer count: a closing that new limits lifted, and all events after the closing."""
    unmarked: str | None = None
    """The latest reply that did not mark its answer."""
    in_part: tuple[str, ...] = ()
    """For each reply that was accepted in part, the stage and the part that was left out."""
    spent = NOTHING
    reused = NOTHING
    """The usage of the answers that a fork copied. `spent` does not include this usage."""
    dearest = NOTHING
    """The usage of the most expensive answer. Each call whose answer was lost is assumed to have the same usage."""
    lost = 0
    """How many calls were recorded but never answered."""
    cut = NOTHING
    """The known usage of calls that a stop cut off in flight. `spent` includes this usage."""
    ended: Ended | None = None
    _before_end: tuple[Snapshot, Settled] | None = None
    """The snapshot before a stop or a failure ended the run, and the event that ended the run."""
    _answered = 0
    skipped = Counts()
    """The counts of the checkpoint from which the fold began. The run's lists hold only later events and thoughts."""

    def __init__(self, begun: Begun, strategies: Registry, checkpoint: Checkpoint | None = None) -> None:
        self.begun = begun
        self.budget, self.participants, self.budgets = begun.budget, begun.participants, [(0, begun.budget)]
        """`budgets`: pairs of a run time in milliseconds and the limits that applied from this time on."""
        self.strategies = strategies
        self.strategy = with_form(
            recorded_strategy(strategies, begun.strategy),
            begun.problem,
            begun.form,
            is_checked=begun.checks_form,
        )
        self.edges: list[tuple[str, str]] = []
        self.thoughts: list[Thought] = []
        self.events: list[Settled] = []
        self.asked: dict[str, Asked] = {}
        self.asked_by: dict[str, str] = {}
        """Maps the id of each question to the role that answers."""
        self.performed: dict[str, Performed] = {}
        self.branches: dict[str, int] = {}
        """Maps each branch to the number of its first thought."""
        self.origins: list[str] = []
        """For each thought, the id of the effect whose event recorded the thought, or an empty text."""
        self._prompts = PromptLog()
        self.out: Counter[str] = Counter()
        """For each effect, how many recorded calls may still be answered."""
        self.is_whole = checkpoint is None
        """Whether the fold began with the first line and so has the whole history."""
        if checkpoint is None:
            step = begin(
                self.strategy,
                begun.problem,
                msgspec.convert(begun.options, self.strategy.options),
                strategies=strategies,
                prompts=begun.prompts,
                calls_left=begun.budget.calls,
            )
            self.snapshot: Snapshot = self._note(reword(step, begun.reworded), "")
            return
        for name in _COPIED:
            setattr(self, name, getattr(checkpoint, name))
        self.out, self.skipped = Counter(checkpoint.out), checkpoint.counts
        self.snapshot = load_snapshot(bytes(checkpoint.snapshot), strategies)
        self._note_questions(self.open_effects)

    @property
    def counts(self) -> Counts:
        """How many events, answers and thoughts the run has so far."""
        before = self.skipped
        return Counts(
            before.events + len(self.events),
            before.answered + self._answered,
            before.thoughts + len(self.thoughts),
        )

    def checkpoint(self) -> Checkpoint | None:
        """Return the folded state, from which a later fold can begin. Return None if the run ended or was closed."""
        if self.snapshot.status != "active" or self._before_end or self.closings:
            return None
        snapshot = msgspec.Raw(dump_snapshot(self.snapshot))
        copied = {name: getattr(self, name) for name in _COPIED}
        return Checkpoint(self.begun, self.strategy.version, snapshot, self.counts, **copied)

    def apply(self, entry: Entry) -> Step | None:
        """Fold an entry, and return the step that results from the entry. None if there is no step."""
        match entry:
            case Settled():
                return self.take(entry)
            case CallIntended(id=effect_id, refused=True):
                self.out[effect_id] = max(0, self.out[effect_id] - 1)
            case CallIntended(id=effect_id, tokens=tokens, usd=usd):
                self.out[effect_id] += 1
                # If the run has ended, its record must be written again, to count the call too.
                self.ended = None
                if tokens or usd is not None:
                    self.dearest = larger_usage(self.dearest, Usage(input_tokens=tokens, usd=usd))
            case Resumed(budget=budget, participants=participants):
                if self._before_closing is not None and budget is not None:
                    self._before_end = self._before_closing
                    closed_at = self.events.index(self._before_closing[1])
                    self.lifted |= {*range(closed_at, len(self.events))}
                self._set_budget(budget)
                self.participants = participants or self.participants
                self.paused = False
                self._give_up_calls(cut=0)
                return self._reopen()
            case TermsChanged(budget=budget, paused=paused):
                self._set_budget(budget)
                self.paused = self.paused if paused is None else paused
            case Ended():
                self.ended = entry
            case Begun():
                raise ConflictError("a run begins once")
        return None

    def _set_budget(self, budget: Budget | None) -> None:
        if budget is not None and budget != self.budget:
            left = None if budget.calls is None else budget.calls - self.usage.calls
            self.snapshot = replace(self.snapshot, calls_left=left)
            if self._before_end is not None:
                before, last = self._before_end
                self._before_end = replace(before, calls_left=left), last
            self.budget = budget
            self.budgets.append((self.snapshot.at_ms, budget))

    def take(self, settled: Settled, step: Step | None = None) -> Step:
        """Fold an event, append its entry to `events`, and return its step. Pass `step` if `step_after` computed it."""
        effect_id, event = settled.id, settled.event
        step = step or self.step_after(settled)
        self._answered += isinstance(event, Answered)
        # An entry that came with its reading is already in the journal.
        settled = replace(settled, reading=step.reading if settled.reading is None else None)
        if isinstance(event, Stopped) or step.snapshot.error is not None:
            self._before_end = self.snapshot, replace(settled, reading=step.reading)
        if isinstance(event, Closing):
            self.closings = event.number
            self._before_closing = self._before_closing or (self.snapshot, settled)
        self.events.append(settled)
        self._book(effect_id, event)
        if effect_id in self.asked and isinstance(event, Answered | Failed):
            reply = event.text if isinstance(event, Answered) else None
            asked = self.asked[effect_id]
            read = step.reading.title if step.reading else ""
            if step.reading is not None and step.reading.unmarked:
                self.unmarked = reply
            if step.reading is not None and step.reading.lost:
                self.in_part += (f"{asked.stage}: {step.reading.lost}",)
            self.asked[effect_id] = replace(asked, reply=reply, read=read, tried=event.tried)
        self.snapshot = self._note(step, effect_id or "")
        return step

    def step_after(self, settled: Settled) -> Step:
        """Return the step that would follow an event, without folding the event. Raise the same errors as `take`."""
        snapshot, left = self.snapshot, self.snapshot.calls_left
        if left is not None and self.counts.events < (self.begun.forked_at or 0):
            # The run that was forked has paid for the answer.
            snapshot = replace(snapshot, calls_left=left + getattr(settled.event, "usage", NOTHING).calls)
        step = advance(
            self.strategy,
            snapshot,
            settled.id,
            settled.event,
            read=read_reply if settled.reading is None else as_recorded(settled.reading),
            strategies=self.strategies,
        )
        return reword(step, self.begun.reworded)

    def _reopen(self) -> Step | None:
        """Undo the end of the run if a stop or a failure caused that end. Recorded answers are kept."""
        if self._before_end is None:
            return None
        before, last = self._before_end
        answered = not isinstance(last.event, Stopped | Closing | Failed)
        if isinstance(last.event, Closing):
            self._before_closing = None
        lifted = without_failures(before, (last.id or "") if answered else "")
        asked = tuple(pending for pending in open_effects(lifted) if pending.id not in self.asked)
        step = reword(Step(replace(lifted, at_ms=self.snapshot.at_ms), asked), self.begun.reworded)
        self.snapshot = self._note(step, "")
        if answered:
            step = self.step_after(last)
            self.snapshot = self._note(step, last.id or "")
        self._before_end = self.ended = None
        return step

    def _note(self, step: Step, origin: str) -> Snapshot:
        self.edges += step.edges
        for number, thought in enumerate(step.thoughts, self.counts.thoughts + 1):
            if thought.branch is not None:
                self.branches.setdefault(thought.branch, number)
        self.thoughts += step.thoughts
        self.origins += [origin] * len(step.thoughts)
        for pending in step.effects:
            self.performed.setdefault(pending.id, _effect_to_show(pending, step.snapshot))
        self._note_questions(step.effects)
        return step.snapshot

    def _note_questions(self, effects: Iterable[Pending]) -> None:
        for pending in effects:
            if isinstance(pending.effect, Ask) and pending.id not in self.asked:
                shared, rest = self._prompts.shorten(pending.id, pending.effect.text)
                self.asked_by[pending.id] = pending.effect.by
                self.asked[pending.id] = Asked(pending.id, pending.stage, rest, shared=shared)

    @property
    def last_questions(self) -> tuple[Ask, ...] | None:
        """The questions that would close the run now. None for a run that cannot or must not be closed."""
        return last_questions(self.strategy, self.snapshot, self.strategies) if self.budget.closes else None

    @property
    def open_effects(self) -> tuple[Pending, ...]:
        """The effects for which the run waits."""
        return open_effects(self.snapshot)

    def _book(self, effect_id: str | None, event: Event) -> None:
        usage = getattr(event, "usage", NOTHING)
        if self.counts.events <= (self.begun.forked_at or 0):
            # The run that was forked has paid for the answer.
            self.reused += usage
            self.dearest = larger_usage(self.dearest, usage)
            return
        self.spent += usage
        if effect_id is None:
            self.cut += usage
            self._give_up_calls(cut=usage.calls)
        else:
            self.dearest = larger_usage(self.dearest, usage)
            self.lost += max(0, self.out.pop(effect_id, 0) - usage.calls)

    def _give_up_calls(self, cut: int) -> None:
        """Count unanswered calls as lost. Subtract `cut`, the number of calls that the usage already includes."""
        self.lost += max(0, self.out.total() - cut)
        self.out.clear()

    @property
    def usage(self) -> Usage:
        """The usage of the run. `calls` includes calls that were lost or are not answered yet."""
        return replace(self.spent, calls=self.spent.calls + self.lost + self.out.total())

    @property
    def ledger(self) -> Ledger:
        """The run's budget and usage. A lost answer is assumed to have cost as much as the most expensive answer."""
        lost, dearest, cut = self.lost + self.out.total(), self.dearest, self.cut
        unknown = lost + cut.calls
        usd = None if dearest.usd is None else max(0.0, dearest.usd * unknown - (cut.usd or 0))
        tokens = max(0, dearest.tokens * unknown - cut.tokens)
        guess = Usage(calls=lost, input_tokens=tokens, usd=usd)
        return Ledger(self.budget, self.spent + guess, largest=dearest)


def _effect_to_show(pending: Pending, snapshot: Snapshot) -> Performed:
    """Return an effect as views show it. The `about` texts of enclosing effects precede the effect's own `about`."""
    effect: Any = pending.effect
    assert not isinstance(effect, RunStrategy), "only what it asks for is performed"
    around, inside, path = list[Any](), snapshot.pending, pending.id
    while (outer := next((each for each in inside if path.startswith(f"{each.id}/")), None)) and outer.child:
        around.append(outer.effect)
        inside, path = outer.child.pending, path.removeprefix(f"{outer.id}/")
    around.append(effect)
    return Performed(
        id=pending.id,
        kind=effect.__struct_config__.tag,
        stage=pending.stage,
        round=pending.round,
        at_ms=snapshot.at_ms,
        about="/".join(each.about for each in around if each.about),
        sample=getattr(around[0], "sample", 0),
        text=effect.path[-1] if isinstance(effect, Verify) else getattr(effect, "tool", ""),
        arguments=getattr(effect, "arguments", {}),
    )


def fold(entries: Iterable[Entry], strategies: Registry) -> Run:
    """Fold a run's journal, without a model.

    Raises:
        ConflictError: `strategy_unknown`: the strategy is missing. `strategy_changed`: an entry does not fit it.
    """
    rest = iter(entries)
    first = next(rest)
    assert isinstance(first, Begun), "checked when the journal was read"
    try:
        run = Run(first, strategies)
    except msgspec.ValidationError as error:
        raise _misfit(first, 1, f"its options do not fit: {error}", strategies) from error
    for number, entry in enumerate(rest, start=2):
        try:
            run.apply(entry)
        except ReasonryError as error:
            raise _misfit(first, number, error, strategies) from error
    return run


def requests_in(run: Run, entries: Iterable[Entry]) -> Iterator[Pending]:
    """Fold the entries after `Begun` into `run`, and yield all requests in order. Recorded readings are ignored."""
    yield from run.open_effects
    for entry in entries:
        if step := run.apply(replace(entry, reading=None) if isinstance(entry, Settled) else entry):
            yield from step.effects


def fold_from(checkpoint: bytes, entries: Sequence[Entry], strategies: Registry) -> Run | None:
    """Fold the entries after a checkpoint. Return None if the checkpoint is unusable."""
    try:
        state = msgspec.json.decode(checkpoint, type=Checkpoint)
        if recorded_strategy(strategies, state.begun.strategy).version != state.strategy_version:
            return None
        run = Run(state.begun, strategies, state)
        for entry in entries:
            run.apply(entry)
    except (msgspec.MsgspecError, ReasonryError):
        return None
    return run


def _misfit(begun: Begun, line: int, error: Exception | str, strategies: Registry) -> ReasonryError:
    """Return the error for a journal whose entry at `line` does not fit the strategy."""
    if getattr(error, "code", "") in ("strategy_unknown", "plugin_failed"):
        # The strategy of an inner run is missing.
        return ConflictError(str(error), code="strategy_unknown", line=line)
    today = recorded_strategy(strategies, begun.strategy).version
    return ConflictError(
        f"the run was begun with version {begun.version} of the strategy {begun.strategy!r}, and line {line} of its "
        f"journal does not fit version {today} as it is here: {error}. Its record can be shown; a fork continues from "
        "an answer that still fits",
        code="strategy_changed",
        line=line,
        version=begun.version,
    )


def recorded_strategy(strategies: Registry, name: str) -> Strategy[Any, Any]:
    """Return the strategy that the journal of a run names, or raise the ConflictError `strategy_unknown`."""
    try:
        return strategies[name]
    except KeyError as error:
        package, slash, _ = name.rpartition("/")
        why = (
            error.__cause__.message if isinstance(error.__cause__, ReasonryError) else "it is not known here"
        )
        way = f"install the package {package}" if slash else "bring it along (--strategies-dir, strategy=)"
        raise ConflictError(
            f"the run's strategy {name!r} is missing: {why}. To continue the run, {way}; its record can be "
            "shown",
            code="strategy_unknown",
            strategy=name,
        ) from None


def reword(step: Step, texts: Mapping[str, str]) -> Step:
    """Return a step whose open questions have new texts. `texts` maps question ids to texts."""
    if not texts:
        return step
    effects = tuple(_reword_one(pending, texts, pending.id) for pending in step.effects)
    return replace(step, snapshot=_reword_open(step.snapshot, texts, ""), effects=effects)


def _reword_open(snapshot: Snapshot, texts: Mapping[str, str], prefix: str) -> Snapshot:
    pending = tuple(_reword_one(waiting, texts, prefix + waiting.id) for waiting in snapshot.pending)
    return replace(snapshot, pending=pending)


def _reword_one(waiting: Pending, texts: Mapping[str, str], effect_id: str) -> Pending:
    if waiting.child is not None:
        return replace(waiting, child=_reword_open(waiting.child, texts, f"{effect_id}/"))
    if isinstance(waiting.effect, Ask) and effect_id in texts:
        return replace(waiting, effect=waiting.effect.in_other_words(texts[effect_id]))
    return waiting


class PromptLog:
    """Shortens each prompt of a run by the prefix shared with an earlier prompt, or restores shortened prompts.

    Prompts must come in the order asked. The earlier prompt is the previous prompt of the same inner run (`e4/e2` is in
    the inner run `e4`). For the first prompt of an inner run, it is the previous prompt of the whole run.
    """

    def __init__(self) -> None:
        self._latest: dict[str, str] = {}
        self._before = ""

    def shorten(self, effect_id: str, prompt: str) -> tuple[int, str]:
        """Return the length of the prefix that a prompt shares with an earlier prompt, and the rest of the prompt."""
        shared = _shared_length(self._earlier(effect_id), prompt)
        self._note(effect_id, prompt)
        return shared, prompt[shared:]

    def restore(self, effect_id: str, shared: int, rest: str) -> str:
        """Return the prompt that `shorten` split."""
        prompt = self._earlier(effect_id)[:shared] + rest
        self._note(effect_id, prompt)
        return prompt

    def _earlier(self, effect_id: str) -> str:
        return self._latest.get(effect_id.rpartition("/")[0], self._before)

    def _note(self, effect_id: str, prompt: str) -> None:
        self._latest[effect_id.rpartition("/")[0]] = self._before = prompt


def _shared_length(first: str, second: str) -> int:
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
