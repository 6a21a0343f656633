"""A recorded table is a comparison in one file. Anyone can compute the table again from the file, without a model.

Rule 1: the file contains the settings, the problems with their right answers, the events of each run, and a digest of
        each question. To score a file again, the current strategies replay the events, and each answer is read and
        judged again. The replay uses no clock, model, tool or store.
Rule 2: each line ends with a seal. The seal is a digest of this line and all earlier lines, so it reveals a changed
        line. A seal cannot prove that the named model made the replies.
Rule 3: the answers are stored as lines of a recording, so the model `recorded:FILE` can replay the file.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from ..core.effects import Ask
from ..core.events import NOTHING, Answered, Closing, Stopped
from ..core.pending import Pending
from ..core.registry import Registry
from ..engine.engine import Engine
from ..engine.journal import Begun, Ended, Entry, Settled
from ..engine.ports import Model, Question
from ..engine.result import result_of
from ..engine.run import Run, requests_in
from ..errors import ConflictError, ModelError, ReasonryError
from ..models.scripted import MAX_FILE_BYTES, RecordedModel, Recording, RecordingLine, TableLine, digest
from ..system.masking import SECRETS
from ..system.processes import read_regular_file
from .grading import Item, Judge
from .problem_set import find_judge
from .standings import Report, Trial, trial_of

_SEAL = b',"seal":"'
_KINDS: dict[str, Any] = {"plan": Report, "problem": Item, "entry": Entry, "trial": Trial}
"""The types of the parts of a table. The plan is a report that has no problems and trials."""


async def recorded_table(engine: Engine, report: Report) -> str:
    """Return the text of the file that records a complete comparison."""
    plan = replace(report, items=[], found={}, reused=0, spent=NOTHING)
    lines: list[RecordingLine] = [_line("plan", plan), *(_line("problem", item) for item in report.items)]
    for trial in report.trials:
        _, _, entries, begun, *_ = await engine.recorded_run(trial.run_id)
        asked = _questions(requests_in(Run(begun, engine.strategies), entries[1:]))
        for entry in entries:
            if isinstance(entry, Settled) and isinstance(entry.event, Answered):
                lines.append(replace(asked[entry.id], answer=entry.event))
            elif not isinstance(entry, Ended):
                lines.append(_line("entry", entry))
        lines.append(_line("trial", trial))
    sealed, seal = list[bytes](), b""
    for line in lines:
        body = SECRETS.mask(msgspec.json.encode(line).decode()).encode().rpartition(_SEAL)[0]
        seal = _digest(seal, body)
        sealed.append(body + _SEAL + seal + b'"}\n')
    return b"".join(sealed).decode()


def _line(kind: str, part: Any) -> TableLine:
    return TableLine({kind: msgspec.Raw(msgspec.json.encode(part))})


def _questions(requests: Iterable[Pending]) -> dict[str | None, Recording]:
    """Return a recording for each question in `requests`, by the question's id. The answers are still empty."""
    found = dict[str | None, Recording]()
    for request in requests:
        if isinstance(request.effect, Ask):
            asked = Question(request.id, request.stage, request.effect.spelled_out())
            found[asked.id] = Recording(
                asked.stage, digest(asked), asked.ask.sample, Answered(""), id=asked.id
            )
    return found


async def check_all_asked(engine: Engine, report: Report, models: Iterable[Model]) -> None:
    """Check that a complete comparison used every line of its recorded models.

    If a limit ended one of the runs, the recordings may have unused lines, so nothing is checked.

    Raises:
        ModelError: `script_left_over`: a recording has unused lines. The message has the lines and their stages.
    """
    recordings = [model for model in models if isinstance(model, RecordedModel)]
    asked = set[Any]()
    for trial in report.trials if recordings else ():
        _, _, entries, begun, *_ = await engine.recorded_run(trial.run_id)
        if any(isinstance(getattr(entry, "event", None), Closing | Stopped) for entry in entries):
            return
        requests = requests_in(Run(begun, engine.strategies), entries[1:])
        asked |= {line.question for line in _questions(requests).values()}
    for model in recordings:
        lines = enumerate(model.lines, 1)
        if left := [f"reply {n} ({line.stage})" for n, line in lines if line.question not in asked]:
            raise ModelError(f"no question used {', '.join(left)} of {model.name}", code="script_left_over")


def _digest(before: bytes, body: bytes) -> bytes:
    return hashlib.sha256(before + body).hexdigest()[:16].encode()


def score_again(path: str, strategies: Registry) -> Report:
    """Compute the report of a recorded table again.

    Raises:
        UsageError: The file cannot be read.
        ConflictError: `recording_changed`: a line has changed, or the current strategies lead to a different trial.
            The error's `line` is the position of the first bad line, counted from 1.
    """
    lines = read_regular_file(path, MAX_FILE_BYTES, label="table", option="rescore").splitlines(keepends=True)
    table, seal, number = _Scoring(strategies), b"", 1
    try:
        for line in lines:
            body, _, end = line.rpartition(_SEAL)
            seal = _digest(seal, body)
            if end != seal + b'"}\n':
                raise ConflictError("it is not as it was recorded")
            table.take(msgspec.json.decode(line, type=RecordingLine))
            number += 1
        report = replace(
            table.plan, items=[*table.items.values()], found=table.found, reused=len(table.found)
        )
        if not report.complete:
            raise ConflictError("the table ends before its last run")
        return report
    except (ReasonryError, msgspec.MsgspecError, AttributeError, LookupError, ValueError) as error:
        message = f"line {number} of {path} cannot be scored again: {error}"
        raise ConflictError(message, code="recording_changed", line=number, file=path) from error


class _Scoring:
    """Reads a recorded table line by line, replays the runs of the table, and checks their trials."""

    plan: Report
    run: Run

    def __init__(self, strategies: Registry) -> None:
        self.strategies = strategies
        self.items, self.found = dict[str, Item](), dict[tuple[str, str], Trial]()

    def take(self, line: RecordingLine) -> None:
        if isinstance(line, Recording):
            if _questions(self.run.open_effects).get(line.id) != replace(line, answer=Answered(""), seal=""):
                message = f"stage {line.stage} does not ask the question {line.id} today; record it again"
                raise ConflictError(message)
            self.run.apply(Settled(line.id, line.answer))
            return
        ((kind, part),) = line.part.items()
        match msgspec.json.decode(part, type=_KINDS[kind]):
            case Report() as plan:
                self.plan = plan
            case Item() as item:
                self.items[str(item.id)] = item
            case Trial() as trial:
                judge = find_judge(self.plan.facts["judge"])
                _check_trial(trial, self.items[trial.item], self.run, judge)
                self.found[trial.item, trial.strategy] = trial
            case Begun() as begun:
                self.run = Run(begun, self.strategies)
            case entry:
                self.run.apply(entry)


def _check_trial(recorded: Trial, item: Item, run: Run, judge: Judge | None) -> None:
    """Check that a replayed run still leads to its recorded trial.

    Raises:
        ConflictError: The run is about another problem, or its trial differs. The message lists the differences.
    """
    if run.begun.problem != item.problem:
        raise ConflictError(f"the run is not about the problem {recorded.item}")
    trial = trial_of(item, recorded.strategy, run, result_of(recorded.run_id, "", run), judge)
    was, now = asdict(recorded), asdict(trial)
    differ = [f"{name} {was[name]!r:.80} → {now[name]!r:.80}" for name in was if was[name] != now[name]]
    if differ:
        raise ConflictError(f"{recorded.strategy} comes out differently: {', '.join(differ)}")
