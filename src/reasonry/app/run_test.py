"""A recorded run as a test: its requests are made again, without a model, and compared with the record.

Rule 1: A test is a fold over the events of the run. It needs no store, no network and no clock.
Rule 2: Strategies, their prompts and defaults, and the reader of replies are those of today. Other options, replies,
        and results of tools and verifiers are those of the record.
Rule 3: In a session of an agent's own thoughts, a request is the text that the agent gets at a stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import replace

from ..core.effects import Ask
from ..core.events import Event
from ..core.options import nested_options
from ..core.pending import Pending
from ..core.registry import Registry, resolve
from ..engine.journal import Begun, CallIntended, Ended, Entry, Settled
from ..engine.record import record_of
from ..engine.result import result_of
from ..engine.run import Run
from ..errors import ConflictError, ReasonryError
from ..guided.transcripts import told
from ..masking import SECRETS
from ..models.scripted import read_lines
from ..text import first_difference, nearest_text
from .installed import installed_strategies
from .prompts import read_prompts
from .requests import strategies_in


class Line(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line of a test: first the beginning of the run, then its requests with their replies, and its end.

    Attributes:
        digest: The digest of the whole request, with its form, role, tools and limits.
        reply: The event that settled the request, or the thought that followed it.
        entry: The beginning of the run, a stop, a limit or a resumption; or the strategy of a session.
    """

    stage: str = ""
    text: str = ""
    digest: str = ""
    id: str = ""
    reply: Any = None
    entry: Entry | str | None = None


def replay(
    file: str | Path,
    *,
    strategies: Registry | None = None,
    options: Mapping[str, Any] | None = None,
    prompts: Mapping[str, str] | None = None,
    tools: Sequence[Any] = (),
) -> None:
    """Replay a run that `reasonry runs export` wrote, without a model, a network or a store.

    Args:
        strategies: All strategies by name. Defaults to the built-in strategies and those of installed packages.
        options: Options as they are now. Others are those of the record, as with `prompts` and `tools`.
        tools: Tools as they are now. They are not called.

    Raises:
        AssertionError: The run asks something else, or ends otherwise.
    """
    from ..tools.catalog import Catalog

    __tracebackhide__ = True
    first, *recorded = read_lines(str(file), Line, "run")
    known = installed_strategies() if strategies is None else strategies
    if isinstance(begun := first.entry, Begun):
        begun = replace(begun, options={**begun.options, **(options or {})})
        given = {card.name: to_builtins(card) for card in Catalog(tools).cards()}
        for level in nested_options(begun.options):
            if cards := level.get("tools"):
                cards[:] = ({card["name"]: card for card in cards} | given).values()
        now = begun.prompts | read_prompts(prompts or {}, strategies_in(begun, known))
        requests = _requests(replace(begun, prompts=now), map(_entry, recorded), known)
    else:
        requests = _session_requests(str(first.entry), [line.reply for line in recorded], known)
    then = {line.id: line for line in recorded if line.id}
    left = dict(then)
    try:
        for line in requests:
            left.pop(line.id, None)
            if fault := _fault(then, line):
                raise AssertionError(f"{Path(file).name}: {fault}")
    except ReasonryError as error:
        line = next(iter(left.values()))
        fault = f"stage {line.stage} does not ask {line.id} any more: {error.message}"
        raise AssertionError(f"{Path(file).name}: {fault}\n  recorded: {line.text}") from None


def _fault(then: Mapping[str, Line], now: Line) -> str:
    line = then.get(now.id)
    if line and (line.stage, line.digest) == (now.stage, now.digest):
        return ""
    text = line.text if line else nearest_text(now.text, (each.text for each in then.values())) or ""
    how = (
        f"differs from the record (stage {line.stage})"
        if line
        else "is not in the record, whose nearest differs"
    )
    how += " in form, role, tools or limits, not" * (text == now.text)
    place, was, asked = first_difference(text, now.text)
    return f"{now.id} of stage {now.stage} {how} at character {place}\n  recorded: {was}\n  now:      {asked}"


def _requests(begun: Begun, entries: Iterable[Entry | None], strategies: Registry) -> Iterator[Line]:
    """Yield the requests of a run as they are made, and last its end."""
    run = Run(begun, strategies)
    yield from map(_request, run.open_effects)
    for entry in entries:
        step = entry and run.apply(entry)
        yield from map(_request, step.effects if step else ())
    end = result_of("", "", run)
    yield _line("end", run.snapshot.stage, f"{end.outcome}: {end.answer}")


def _request(pending: Pending) -> Line:
    effect = replace(pending.effect, about="")
    text = effect.text if isinstance(effect, Ask) else msgspec.json.encode(effect).decode()
    return _line(pending.id, pending.stage, text, effect)


def _line(id: str, stage: str, text: str, whole: Any = None) -> Line:
    return Line(stage, text, hashlib.sha256(msgspec.json.encode(whole or text)).hexdigest()[:24], id)


def _entry(line: Line) -> Any:
    return line.entry if line.reply is None else Settled(line.id, msgspec.convert(line.reply, Event))


def _session_requests(strategy: str, thoughts: Sequence[Any], strategies: Registry) -> Iterator[Line]:
    for number, (stage, said) in enumerate(told(thoughts, resolve(strategy, strategies)), 1):
        yield _line(f"thought {number}", stage, msgspec.json.encode(said).decode())


def run_test(run_id: str, entries: Sequence[Entry], strategies: Registry) -> list[Line]:
    """Return a run as a test, with keys masked, and without options that are a default: a changed default is found.

    Raises:
        ConflictError: The run is active; `strategy_changed`: with today's strategies it asks something else.
    """
    record, begun = record_of(entries[-1]), SECRETS.mask_data(entries[0])
    if record is None or not isinstance(begun, Begun):
        raise ConflictError(f"run {run_id} is active; it becomes a test at its end", run_id=run_id)
    left_out = Begun | CallIntended | Ended
    taken = [entry for entry in SECRETS.mask_data([*entries]) if not isinstance(entry, left_out)]
    taken = [replace(entry, reading=None) if isinstance(entry, Settled) else entry for entry in taken]
    asked = {line.id: line for line in _requests(begun, taken, strategies)}
    texts = {each["id"]: each["prompt"] for each in record.entries("questions")}
    texts["end"] = f"{record.result.outcome}: {record.result.answer}"
    if any(asked.get(id, Line()).text != SECRETS.mask(text) for id, text in texts.items()):
        message = f"run {run_id} asks something else with the strategies of today"
        raise ConflictError(message, code="strategy_changed", run_id=run_id)
    # A preset changes defaults.
    usual = {} if begun.options.get("preset") else to_builtins(resolve(begun.strategy, strategies).options())
    own = {name: value for name, value in begun.options.items() if value != usual.get(name, UNSET)}
    lines = [Line(entry=replace(begun, options=own))]
    for entry in taken:
        if isinstance(entry, Settled) and entry.id is not None:
            lines.append(replace(asked[entry.id], reply=to_builtins(entry.event)))
        else:
            lines.append(Line(entry=entry))
    answered = {line.id for line in lines}
    return [*lines, *(line for line in asked.values() if line.id not in answered)]


def session_test(session: Mapping[str, Any], strategies: Registry) -> list[Line]:
    """Return an exported session as a test, with keys masked."""
    strategy, thoughts = session.get("strategy", "linear"), SECRETS.mask_data(session["thoughts"])
    lines = zip(_session_requests(strategy, thoughts, strategies), thoughts, strict=True)
    return [Line(entry=strategy), *(replace(line, reply=thought) for line, thought in lines)]
