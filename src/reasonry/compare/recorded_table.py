"""Recorded tables: a comparison as one file, from which anyone computes its table again without a model.

Rule 1: the file holds the settings, the problems with their right answers, and of each run its order, each question's
        digest with the reply, and all other events. To score it again, the events are folded through the strategies
        of today, and each answer is read and judged again. No clock, model, tool or store takes part.
Rule 2: each line ends with a seal, a digest of the line and of all lines before it, so a changed line is found. The
        seal cannot prove that the named model made the replies.
Rule 3: the answers are lines of a recording, so the model `recorded:FILE` plays the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from ..core.effects import Ask
from ..core.events import Answered, Failed
from ..core.registry import Registry
from ..engine.engine import Engine
from ..engine.journal import Begun, Ended, Entry, Settled
from ..engine.ports import Question
from ..engine.result import result_of
from ..engine.run import Run
from ..errors import ConflictError, ReasonryError, UsageError
from ..masking import SECRETS
from ..models.scripted import MAX_FILE_BYTES, Recording, RecordingLine, TableLine, digest
from ..system import read_regular_file
from .grading import Item
from .problem_set import find_judge
from .standings import Report, Trial, failure_of, trial_of

_SEAL = b',"seal":"'


class TablePlan(Struct, frozen=True):
    """The settings of a comparison, as in its report."""

    facts: dict[str, Any]
    strategies: list[str]


class RunStart(Struct, frozen=True):
    """The start of a run; the lines up to its trial are the run's."""

    item: str
    strategy: str
    run_id: str
    order: Begun


class TablePart(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of a line: one of these."""

    plan: TablePlan | None = None
    problem: Item | None = None
    run: RunStart | None = None
    entry: Entry | None = None
    trial: Trial | None = None


def check_rescorable(judge: str) -> None:
    """Check that a recorded table can be judged again.

    Raises:
        UsageError: The judge is a model, or comes from another package.
    """
    if find_judge(judge) is None:
        message = f"a recorded table is judged again without a model, which the judge {judge} cannot do"
        raise UsageError(f"{message}; use --judge exact or numeric", option="judge")


# -- writing


async def recorded_table(engine: Engine, report: Report) -> str:
    """Return the file of a complete comparison."""
    lines: list[RecordingLine] = [_line(plan=TablePlan(report.facts, report.strategies))]
    lines += [_line(problem=item) for item in report.items]
    for trial in report.trials:
        begun, *entries = (await engine.recorded_run(trial.run_id)).entries
        assert isinstance(begun, Begun)
        lines.append(_line(run=RunStart(trial.item, trial.strategy, trial.run_id, begun)))
        lines += _lines_of_run(Run(begun, engine.strategies), entries)
        lines.append(_line(trial=trial))
    return "".join(_seal_lines(lines))


def _line(**part: Any) -> TableLine:
    return TableLine(msgspec.Raw(msgspec.json.encode(TablePart(**part))))


def _lines_of_run(run: Run, entries: Iterable[Entry]) -> Iterator[RecordingLine]:
    for entry in entries:
        if isinstance(entry, Settled):
            entry = replace(entry, reading=None)
        if isinstance(entry, Settled) and isinstance(entry.event, Answered):
            asked = _open_question(run, entry.id or "")
            yield Recording(asked.stage, digest(asked), asked.ask.sample, entry.event, asked.id)
        elif not isinstance(entry, Ended):
            yield _line(entry=entry)
        run.apply(entry)


def _open_question(run: Run, effect_id: str) -> Question:
    """Return an open question as `recorded:FILE` would be asked it.

    Raises:
        ConflictError: The run does not ask it.
    """
    for pending in run.open_effects:
        if pending.id == effect_id and isinstance(pending.effect, Ask):
            return Question(pending.id, pending.stage, pending.effect.spelled_out())
    raise ConflictError(f"{run.strategy.name} does not ask the question {effect_id}")


def _seal_lines(lines: Iterable[RecordingLine]) -> Iterator[str]:
    seal = b""
    for line in lines:
        body = SECRETS.mask(msgspec.json.encode(line).decode()).encode().rpartition(_SEAL)[0]
        seal = _digest(seal, body)
        yield (body + _SEAL + seal + b'"}\n').decode()


def _digest(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).hexdigest()[:16].encode()


# -- scoring again


def rescore(path: str, strategies: Registry) -> Report:
    """Compute the report of a recorded table again.

    Raises:
        UsageError: The file cannot be read, or is no recorded table.
        ConflictError: `recording_changed`: a line has changed since, or leads to another trial with the strategies of
            today. `line` is its number.
    """
    data = read_regular_file(path, MAX_FILE_BYTES, label="table", option="rescore")
    number, scoring = 0, _Scoring(strategies)
    for number, line in enumerate(_check_seals(data.splitlines(keepends=True), path), 1):
        try:
            scoring.take(line)
        except (ReasonryError, msgspec.MsgspecError, AttributeError, LookupError) as error:
            raise _change_at(path, number, str(error)) from error
    if scoring.plan is None:
        raise UsageError(f"{path} is no table that `reasonry compare --record` wrote", option="rescore")
    report = Report(
        facts=scoring.plan.facts,
        strategies=scoring.plan.strategies,
        items=[*scoring.items.values()],
        keys=[""] * (len(scoring.items) * len(scoring.plan.strategies)),
        found=scoring.found,
        reused=len(scoring.found),
    )
    if not report.complete:
        raise _change_at(path, number + 1, "the table ends here, before its last run")
    return report


def _check_seals(lines: Sequence[bytes], path: str) -> Iterator[RecordingLine]:
    decode, seal = partial(msgspec.json.decode, type=RecordingLine), b""
    for number, line in enumerate(lines, 1):
        body, _, end = line.rpartition(_SEAL)
        seal = _digest(seal, body)
        if end != seal + b'"}\n':
            raise _change_at(path, number, "it is not as it was recorded")
        try:
            yield decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise _change_at(path, number, str(error)) from error


def _change_at(path: str, number: int, why: str) -> ConflictError:
    message = f"line {number} of {path} cannot be scored again: {why}"
    return ConflictError(message, code="recording_changed", line=number, file=path)


class _Scoring:
    """The fold of a recorded table, line by line."""

    plan: TablePlan | None = None
    start: RunStart
    run: Run

    def __init__(self, strategies: Registry) -> None:
        self.strategies = strategies
        self.items: dict[str, Item] = {}
        self.found: dict[tuple[str, str], Trial] = {}

    def take(self, line: RecordingLine) -> None:
        if isinstance(line, Recording):
            asked = _open_question(self.run, line.id)
            if (asked.stage, digest(asked), asked.ask.sample) != (line.stage, line.digest, line.sample):
                raise ConflictError(f"the stage {asked.stage} asks another question today; record it again")
            self.run.apply(Settled(line.id, line.answer))
            return
        part = msgspec.json.decode(line.part, type=TablePart)
        if part.plan is not None:
            self.plan, self.judge = part.plan, find_judge(part.plan.facts["judge"])
        elif part.problem is not None:
            self.items[str(part.problem.id)] = part.problem
        elif part.run is not None:
            self.start, self.run = part.run, Run(part.run.order, self.strategies)
            if self.run.begun.problem != self.items[part.run.item].problem:
                raise ConflictError(f"the run is not about the problem {part.run.item}")
        elif part.entry is not None:
            self.run.apply(part.entry)
        elif part.trial is not None:
            self._judge(part.trial)

    def _judge(self, recorded: Trial) -> None:
        start, run = self.start, self.run
        failures = [each.event.code for each in run.events if isinstance(each.event, Failed)]
        result = result_of(start.run_id, "", run)
        trial = trial_of(self.items[start.item], start.strategy, run, result, self.judge)
        trial = replace(trial, code=failure_of(result, failures))
        if trial != recorded:
            was, now = asdict(recorded), asdict(trial)
            names = ", ".join(
                f"{name} {was[name]!r:.80} → {now[name]!r:.80}" for name in was if was[name] != now[name]
            )
            raise ConflictError(f"{start.strategy} on {start.item} comes out differently: {names}")
        self.found[trial.item, trial.strategy] = trial
