"""Use a recorded run as a test: build its requests again without a model, and compare them with the record.

Rule 1: A test is a fold over the events of the run. It needs no store, no network and no clock.
Rule 2: A test uses today's strategies, prompts, default options and reader of replies. All other options, the replies,
        and the results of tools and verifiers come from the record.
Rule 3: In the test of an agent's session, a request is the text that the agent gets at a stage.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import replace

from ..core.effects import Ask
from ..core.options import nested_options, read_options
from ..core.pending import Pending
from ..core.registry import Registry, resolve
from ..engine.journal import Begun, CallIntended, Ended, Entry, Settled
from ..engine.record import record_of
from ..engine.result import result_of
from ..engine.run import Run, requests_in
from ..errors import ConflictError, ReasonryError
from ..guided.transcripts import guidance_after
from ..models.scripted import read_lines
from ..strategies import STRATEGIES
from ..system.masking import SECRETS
from ..text import nearest_difference
from .installed import installed_strategies
from .prompts import read_prompts
from .requests import strategies_in


class ExportedLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line of a test: the beginning of the test, a request with its reply, or the end of the test.

    Attributes:
        digest: The digest of the whole request, including its form, role, tools and limits.
        reply: The reply's entry in the run's journal, or the session's thought.
    """

    stage: str = ""
    text: str = ""
    digest: str = ""
    id: str = ""
    reply: Entry | dict[str, Any] | None = None


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
        strategies: All strategies by name. Defaults to built-in strategies and strategies of installed packages.
        options: Options that replace recorded options. In the same way, `prompts` replace recorded prompts.
        tools: Tools that replace recorded tools. They are not called.

    Raises:
        AssertionError: A request or the end of the run differs from the record.
        UsageError: The file is not an exported run, or an option or a prompt is unknown.
    """
    from ..tools.catalog import Catalog

    __tracebackhide__ = True
    first, *recorded = read_lines(str(file), ExportedLine, "run")
    replies: list[Any] = [line.reply for line in recorded if line.reply is not None]
    known = installed_strategies() if strategies is None else strategies
    if isinstance(begun := first.reply, Begun):
        read_options(resolve(begun.strategy, known), options or {})
        begun = replace(begun, options={**begun.options, **(options or {})})
        today = {card.name: to_builtins(card) for card in Catalog(tools).cards()}
        for cards in filter(None, (level.get("tools") for level in nested_options(begun.options))):
            cards[:] = ({card["name"]: card for card in cards} | today).values()
        read = read_prompts(prompts or {}, strategies_in(begun, known))
        requests = _requests(replace(begun, prompts=begun.prompts | read), replies, known)
    else:
        requests = _session_requests(first.text, replies, known)
    then = {line.id: line for line in recorded if line.id}
    left, name = dict(then), Path(file).name
    try:
        for now in requests:
            left.pop(now.id, None)
            if (was := then.get(now.id, ExportedLine())) != replace(now, reply=was.reply):
                raise AssertionError(f"{name}: {_describe_change(was, now, then.values())}")
    except ReasonryError as error:
        was = next(iter(left.values()), ExportedLine())
        fault = f"stage {was.stage} does not ask {was.id} any more: {error.message}\n  recorded: {was.text}"
        raise AssertionError(f"{name}: {fault}") from None


def _describe_change(was: ExportedLine, now: ExportedLine, recorded: Iterable[ExportedLine]) -> str:
    texts = [was.text] if was.id else [line.text for line in recorded]
    place, *shown = nearest_difference(now.text, texts)
    where = "in stage, form, role, tools or limits" if was.text == now.text else f"at character {place}"
    how = "differs from the record" if was.id else "is new; the nearest text differs"
    lines = f"  recorded: {shown[0]}\n  now:      {shown[1]}"
    return f"{now.id} of stage {now.stage} {how} {where}\n{lines}"


def _requests(begun: Begun, entries: Sequence[Entry], strategies: Registry) -> Iterator[ExportedLine]:
    """Yield the requests of a run in order, and then a line for the end of the run."""
    run = Run(begun, strategies)
    yield from map(_request, requests_in(run, entries))
    end = result_of("", "", run)
    yield _line("end", run.snapshot.stage, f"{end.outcome}: {end.answer}")


def _request(pending: Pending) -> ExportedLine:
    effect = replace(pending.effect, about="")
    text = effect.text if isinstance(effect, Ask) else msgspec.json.encode(effect).decode()
    return _line(pending.id, pending.stage, text, effect)


def _line(id: str, stage: str, text: str, whole: Any = None) -> ExportedLine:
    return ExportedLine(stage, text, hashlib.sha256(msgspec.json.encode(whole or text)).hexdigest()[:24], id)


def _session_requests(strategy: str, thoughts: Sequence[Any], strategies: Registry) -> Iterator[ExportedLine]:
    for number, (stage, guidance) in enumerate(guidance_after(thoughts, resolve(strategy, strategies)), 1):
        yield _line(f"thought {number}", stage, msgspec.json.encode(guidance).decode())


def run_test(run_id: str, entries: Sequence[Entry], strategies: Registry) -> list[ExportedLine]:
    """Return a run as a test, with secrets masked. Options with default values are omitted.

    Raises:
        ConflictError: The run is active, or today's strategies make different requests (`strategy_changed`).
    """
    record, (begun, *taken) = record_of(entries[-1]), SECRETS.mask_data([*entries])
    if record is None or not isinstance(begun, Begun):
        raise ConflictError(f"run {run_id} is active; it becomes a test at its end", run_id=run_id)
    taken = [replace(entry, reading=None) if isinstance(entry, Settled) else entry for entry in taken]
    taken = [entry for entry in taken if not isinstance(entry, CallIntended | Ended)]
    asked = {line.id: line for line in _requests(begun, taken, strategies)}
    texts = {each["id"]: each["prompt"] for each in record.entries("questions")}
    texts["end"] = f"{record.result.outcome}: {record.result.answer}"
    if any(asked.get(id, ExportedLine()).text != SECRETS.mask(text) for id, text in texts.items()):
        message = f"run {run_id} asks something else with the strategies of today"
        raise ConflictError(message, code="strategy_changed", run_id=run_id)
    # A preset has defaults of its own.
    defaults = (
        {} if begun.options.get("preset") else to_builtins(resolve(begun.strategy, strategies).options())
    )
    own = {name: value for name, value in begun.options.items() if value != defaults.get(name, UNSET)}
    answered = [replace(asked.get(getattr(entry, "id", ""), ExportedLine()), reply=entry) for entry in taken]
    unanswered = asked.keys() - {line.id for line in answered}
    return [
        ExportedLine(reply=replace(begun, options=own)),
        *answered,
        *(asked[id] for id in asked if id in unanswered),
    ]


def session_test(session: Mapping[str, Any], strategies: Registry) -> list[ExportedLine]:
    """Return an exported session as a test, with secrets masked."""
    strategy, thoughts = (
        session.get("strategy", next(iter(STRATEGIES))),
        SECRETS.mask_data(session["thoughts"]),
    )
    lines = zip(_session_requests(strategy, thoughts, strategies), thoughts, strict=True)
    return [ExportedLine(text=strategy), *(replace(line, reply=thought) for line, thought in lines)]
