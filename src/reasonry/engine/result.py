"""The result of a run, the same on every surface (Python, command line, HTTP, MCP)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..blocks.data_types import read_as
from ..blocks.drafts import drawn_parts
from ..blocks.reply import UNMARKED_MODE
from ..blocks.why import Why, explain
from ..core.bodies import Conclusion
from ..core.events import Answered, Failed, Usage, Verified
from ..core.pending import Snapshot
from ..core.problem import without_quoted
from ..core.registry import Registry
from ..errors import SandboxError, WorldError
from ..records import ANSWERED, Outcome, RunRow, SessionRow, now_ms
from ..text import shorten
from .journal import CALLER, HEAD_CHARS
from .open_questions import waiting_calls
from .run import Run

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")

_NODES = ("root_id", "frontier", "nodes")
"""Members of a tree's document that grow with the tree."""


class Termination(Struct, frozen=True, omit_defaults=True):
    """How a run ended: `reason` is for programs, `detail` is for display. `code` is set if an error ended the run."""

    reason: str
    detail: str = ""
    code: str | None = None


class Result(Struct, Generic[T], frozen=True):
    """The result of a run.

    Args:
        answer: The answer. None unless the outcome is `solved` or `answered`.
        outcome: How the run ended, in one word. None while the run works or is paused.
        rounds: How many rounds of model calls had to follow one another. Concurrency cannot reduce this count.
        duration_ms: The run time in milliseconds, without pauses.
        details: The strategy's own part of the result, of the type `Strategy.details`.
        warnings: Problems that did not end the run but may matter to its result.
        best_answer: The best answer so far, if the run has ended but is neither `solved` nor `answered`.
        output_type: The type of `output`. None means that `output` is the text of the answer.
        why: The reason for the result. None before the run has ended.
    """

    answer: str | None
    outcome: Outcome | None
    status: Literal["active", "done", "failed", "cancelled"]
    termination: Termination
    strategy: str
    model: str
    usage: Usage
    rounds: int
    duration_ms: int
    session_id: str
    run_id: str
    details: Any
    warnings: tuple[str, ...] = ()
    best_answer: str | None = None
    output_type: Any = None
    why: Why | None = None

    @property
    def output(self) -> T:
        """The answer, converted to `output_type`.

        Raises:
            WorldError: There is no answer, or the type's own checks refuse the answer.
        """
        if self.answer is None:
            why = self.termination.detail or self.termination.reason
            message = f"the run ended without an answer: {why}"
            raise WorldError(message, code="output_invalid", run_id=self.run_id)
        if self.output_type is None:
            return self.answer  # pyright: ignore[reportReturnType]
        try:
            return read_as(self.output_type, msgspec.json.decode(self.answer))
        except ValueError as error:
            message = f"the answer does not fit: {error}"
            raise WorldError(message, code="output_invalid", run_id=self.run_id) from error

    def document(self, *, nodes: bool = True) -> dict[str, Any]:
        """Return the result as JSON data. The members of `details` are at the top level.

        If `nodes` is False, leave out drafts, samples, and the nodes and the frontier of a tree.
        """
        usage, details = self.usage, dict(self.details)
        ending: dict[str, Any] = details.pop("termination", {})
        if not nodes and isinstance(tree := details.get("tree"), dict):
            details["tree"] = {name: part for name, part in tree.items() if name not in _NODES}
        if not nodes:
            details = {name: part for name, part in details.items() if name not in ("drafts", "samples")}
        return {
            "answer": self.answer,
            "outcome": self.outcome,
            "why": msgspec.to_builtins(self.why),
            "status": self.status,
            "termination": {"reason": self.termination.reason, "detail": self.termination.detail}
            | ({"code": self.termination.code} if self.termination.code else {})
            | ending,
            "strategy": self.strategy,
            "model": self.model,
            "usage": {
                "calls": usage.calls,
                "samples": usage.samples,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "total_tokens": usage.tokens,
                "cached_input_tokens": usage.cached_input_tokens,
                "usd": usage.usd,
            },
            "rounds": self.rounds,
            "duration_ms": self.duration_ms,
            "session_id": self.session_id,
            "run_id": self.run_id,
            "best": None,
            "candidates": [],
            "tree": None,
            "diagnostics": {},
            "warnings": list(self.warnings),
            **({"best_answer": self.best_answer} if self.best_answer else {}),
            **details,
        }


def result_of(run_id: str, session_id: str, run: Run) -> Result:
    """Return the result of a run, ended or not."""
    snapshot, name = run.snapshot, outcome_of(run)
    is_answered = name in ANSWERED
    conclusion = snapshot.conclusion or run.strategy.conclude(snapshot.state)
    if snapshot.status == "active":
        reason = "paused" if run.paused else "active"
        document = _with_drafts_at_work(conclusion.document, snapshot, run.strategies)
        conclusion = Conclusion(None, reason, f"at the stage {snapshot.stage}", document)
    details = dict(conclusion.document)
    if phase := run.strategy.phase(snapshot.stage, snapshot.status):
        ending = {"status": phase, **details.get("termination", {}), "duration_ms": snapshot.at_ms}
        details["termination"] = ending
    if chosen := run.begun.why:
        details["diagnostics"] = {**details.get("diagnostics", {}), "strategy_chosen": chosen}
    return Result(
        answer=conclusion.answer if is_answered else None,
        outcome=name,
        status=snapshot.status,
        termination=Termination(conclusion.reason, conclusion.detail, snapshot.error),
        strategy=snapshot.strategy,
        model=run.participants.model,
        usage=run.usage,
        rounds=snapshot.rounds,
        duration_ms=snapshot.at_ms,
        session_id=session_id,
        run_id=run_id,
        details=details,
        warnings=tuple(_warnings(run, conclusion)),
        best_answer=None if is_answered else _best_of(run),
        why=explain(conclusion, run.thoughts, snapshot.options) if snapshot.status != "active" else None,
    )


def _with_drafts_at_work(
    document: dict[str, Any], snapshot: Snapshot, strategies: Registry
) -> dict[str, Any]:
    """Return the document of an active run, with the drafts or samples that are still in progress."""
    document = dict(document)
    for waiting in snapshot.pending:
        kind, _, number = waiting.effect.about.rpartition("-")
        if (child := waiting.child) is not None and kind in ("draft", "sample") and number.isdecimal():
            reached = strategies[child.strategy].conclude(child.state).document
            inside = drawn_parts(_with_drafts_at_work(reached, child, strategies))
            at_work = {"id": waiting.effect.about, "number": int(number), "inside": inside}
            document[f"{kind}s"] = [*document.get(f"{kind}s", ()), at_work]
    return document


def outcome_of(run: Run) -> Outcome | None:
    """Return the outcome of a run in one word, or None while the run works or is paused."""
    snapshot = run.snapshot
    if snapshot.status == "active":
        # It is the caller's turn if only effects of the caller are open.
        calls = waiting_calls(run) if run.participants.callers_tools else []
        is_callers_turn = run.participants.model == CALLER or 0 < len(calls) == len(run.open_effects)
        return "waiting" if is_callers_turn else None
    if snapshot.error:
        return "error"
    ended = snapshot.conclusion
    if snapshot.status == "cancelled" or ended is None or ended.certainty == "best_so_far":
        return "stopped"
    if ended.answer is None:
        return "unsolved"
    return "solved" if ended.certainty == "proved" else "answered"


def _best_of(run: Run) -> str | None:
    """Return the best text of an ended run, preferably its answer. Skip texts that a verifier refuted."""
    snapshot = run.snapshot
    if snapshot.status == "active":
        return None
    wrong = {
        run.performed[settled.id].text
        for settled in run.events
        if isinstance(settled.event, Verified) and settled.event.verdict == "wrong" and settled.id
    }
    ended = snapshot.conclusion
    if ended and ended.answer and ended.answer not in wrong:
        return ended.answer
    known = run.strategy.conclude(snapshot.state).answer, run.unmarked
    return next((text for text in known if text and text not in wrong), None)


def rows_of(run_id: str, run: Run, session_id: str = "") -> tuple[RunRow, SessionRow]:
    """Return the rows of a new run and of its session. A session named by `session_id` does not expire."""
    asked, strategy, now = without_quoted(run.begun.problem), run.begun.strategy, run.begun.created_at_ms
    session = SessionRow(
        session_id or run_id,
        strategy,
        now,
        now,
        pinned=session_id != "",
        thoughts=len(run.thoughts),
        purpose=shorten(asked, HEAD_CHARS, one_line=True),
        run_id=run_id,
    )
    row = RunRow(run_id, session.session_id, strategy, "", asked[:HEAD_CHARS], "active", now, now)
    return row_after(row, run, now_ms()), session


def row_after(row: RunRow, run: Run, now_ms: int) -> RunRow:
    """Return a run's row, updated to the state after the run's latest entry."""
    snapshot, usage = run.snapshot, run.usage
    conclusion, best = snapshot.conclusion or Conclusion(reason=""), _best_of(run)
    return replace(
        row,
        status=snapshot.status,
        model=run.participants.model,
        updated_at_ms=now_ms,
        outcome=outcome_of(run),
        reason=conclusion.reason or None,
        detail=conclusion.detail[:HEAD_CHARS],
        answer=None if best is None else best[:HEAD_CHARS],
        calls=usage.calls,
        samples=usage.samples,
        tokens=usage.tokens,
        usd=usage.usd,
        paused=run.paused and snapshot.status == "active",
    )


def _warnings(run: Run, conclusion: Conclusion) -> Iterator[str]:
    closing = run.snapshot.closing
    if closing is not None and outcome_of(run) in ANSWERED:
        way_on = f"{closing.detail}; to let it work further, resume it with a higher limit"
        yield f"answered from what was known by then: {way_on}"
    if any(asked.read == UNMARKED_MODE for asked in run.asked.values()):
        yield "unmarked: a reply never said where its answer is, so it was taken whole"
    yield from (f"a reply was taken in part: {lost}" for lost in run.in_part)
    yield from run.begun.warnings
    if why := conclusion.document.get("unchecked"):
        yield f"the answer is unchecked: {why}"
    yield from conclusion.document.get("diagnostics", {}).get("warnings", ())
    events = [settled.event for settled in run.events]
    verdicts = [event for event in events if isinstance(event, Verified)]
    if failed := [verdict for verdict in verdicts if verdict.failed]:
        name = f" {run.participants.verifier}" if run.participants.verifier else ""
        times = f"{len(failed)} of {len(verdicts)} times"
        yield f"the verifier{name} gave no verdict {times}; the last: {failed[-1].detail}"
    unrun = [each for each in events if isinstance(each, Failed) and each.code == SandboxError.default_code]
    if unrun:
        yield f"{len(unrun)} of the programs could not be run, through no fault of theirs; {unrun[-1].message}"
    yield from _warn_of_usage(run)


def _warn_of_usage(run: Run) -> Iterator[str]:
    usages = [settled.event.usage for settled in run.events if isinstance(settled.event, Answered | Failed)]
    unpriced = sum(usage.tokens > 0 and usage.usd is None for usage in usages)
    if run.budget.usd is not None and unpriced:
        yield (
            f"the limit of {run.budget.usd:g} US dollars does not count {unpriced} answers whose price is not "
            "known: name it with price IN/OUT (--price)"
        )
    if guessed := run.usage.estimated_tokens:
        yield (
            f"{guessed:,} of the {run.usage.tokens:,} tokens are estimates from the length of prompts and replies: "
            "for some calls the provider reported no usage, or an impossible one"
        )
