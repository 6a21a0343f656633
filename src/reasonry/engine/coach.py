"""Coached runs: the engine runs the algorithm, and the caller answers the questions.

A coached run has the same journal and machine as a driven run; the only difference is that the caller answers each
`Ask`. So a caller can hand a run over to a model at any point, and can take a run over from a model.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from msgspec import Struct

from ..core.effects import Ask, Effect
from ..core.events import Answered
from ..core.pending import Pending
from ..errors import AnswerRefusedError, ConflictError, ModelError
from ..reading.mark import find_ending
from ..records import now_ms
from ..system.masking import SECRETS
from .coach_input import read_answers
from .compact_replies import HOW_TO_READ, compact_questions, compact_result, equal_questions, pieces_of
from .drive import drive_run
from .engine import Engine
from .fork import Fork
from .journal import CALLER, Begun
from .open_questions import handed_out, questions
from .open_run import OpenRun
from .policy import Performers
from .ports import OnText, Question
from .prices import no_price
from .run import Run
from .usage import estimate_tokens

_TOKENS_BESIDE = 400
"""The estimated tokens of an answer and of its question together, without the problem."""
NOTHING_ASKED = (
    "Nothing is asked now: tools or checks are at work, or their process died. In that case an answer call "
    "with no answers continues them, and so does taking the run over."
)


class Coach(Struct, frozen=True):
    """Starts and continues coached runs. If `brief` is True, replies are compact; see `compact_replies`."""

    engine: Engine
    brief: bool = False

    async def start(self, order: Begun, performers: Performers, fork: Fork | None = None) -> dict[str, Any]:
        """Accept a run, or a fork of another run, and return its first questions.

        Returns:
            {`run_id`, `session_id`, `status`, `strategy`, `questions`: [{`id`, `stage`, `prompt`, `answer_schema`}],
            `progress`}. Warnings or hints add a `note`, and the end of the run adds a `result`.
        """
        async with self.engine.begin(order, performers, fork) as opened:
            return await self.proceed(opened, performers)

    async def answer(
        self,
        run_id: str,
        answers: Any,
        open_performers: Callable[[Run], Awaitable[Performers]],
        *,
        says_all: bool = False,
    ) -> dict[str, Any]:
        """Record answers. Return the run's state in the format of `start`; `refuted` lists newly refuted thoughts.

        Args:
            answers: {id: answer}, or another shape that `read_answers` accepts. An answer is text, or data that fits
                the question's `answer_schema`.
            open_performers: Opens the performers of all effects except questions.
            says_all: Whether the reply repeats all texts, because the caller may have lost earlier texts.

        Raises:
            AnswerRefusedError: Some answers cannot be read. Their questions stay open under the same ids; the other
                answers are recorded.
            ConflictError: An answer names a question that is not open, or another process drives the run. The error
                is `retryable` if the run was busy with other answers for too long. No answer is recorded.
            UsageError: The answers have no known shape. No answer is recorded.
        """
        async with self.engine.open(run_id, whole=False) as opened:
            handed, before = handed_out(opened.run), opened.run.snapshot.state
            waiting = equal_questions(handed)
            forms = {name: _form_of(equal[0]) for name, equal in waiting.items()}
            events = _events(opened.run, handed, read_answers(answers, forms))
            answered = {
                name: equal for name, equal in waiting.items() if any(each.id in events for each in equal)
            }
            known = compact_questions(answered)[1] if self.brief and answered and not says_all else None
            performers = await open_performers(opened.run)
            refused = await opened.take_answers([*events.items()], refusing=True)
            shown = await self.proceed(opened, performers, known)
            if wrong := _proved_wrong(opened.run, opened.run.snapshot.state):
                earlier = _proved_wrong(opened.run, before)
                found = [thought for node, thought in wrong.items() if node not in earlier]
                shown |= {"refuted": found} if found else {}
        if not refused:
            return shown
        reasons = "; ".join(f"{effect_id}: {reason}" for effect_id, reason in refused.items())
        taken = len(events) - len(refused)
        others = f" The other {taken} {'was' if taken == 1 else 'were'} taken." if taken else ""
        raise AnswerRefusedError(
            f"not taken, answer under the same id: {reasons}.{others}",
            [{"id": effect_id, "reason": reason} for effect_id, reason in refused.items()],
            shown,
        )

    async def status(self, run_id: str) -> dict[str, Any]:
        """Return the state of a run in the format of `start`."""
        return self._document(await self.engine.read(run_id, whole=False))

    async def question(self, run_id: str, effect_id: str) -> dict[str, Any]:
        """Return an open question in full. For equal questions, `effect_id` may be all their ids, joined by commas.

        Raises:
            ConflictError: The question is not open; `choices` lists the open questions.
        """
        run = (await self.engine.read(run_id, whole=False)).run
        joined = equal_questions(handed_out(run))
        found = {pending.id: pending for equal in joined.values() for pending in equal}
        found |= {name: equal[0] for name, equal in joined.items()}
        if effect_id not in found:
            raise ConflictError(_why_not(run, effect_id, joined), effect=effect_id, choices=list(joined))
        return {"run_id": run_id, **_question(found[effect_id]), "id": effect_id}

    async def proceed(
        self, opened: OpenRun, performers: Performers, known: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Perform all effects of a run except questions, and return the run's state. For `known`, see `_document`."""
        await drive_run(opened, performers, coached=True)
        return self._document(opened, known)

    def _document(self, read: OpenRun, known: Collection[str] | None = None) -> dict[str, Any]:
        """Return the state of a run. A compact reply omits the texts whose ids are in `known`."""
        if not self.brief:
            return document(read)
        asked, texts = compact_questions(equal_questions(handed_out(read.run)))
        whole = document(read, asked)
        shared = {text_id: text for text_id, text in texts.items() if text_id not in (known or ())}
        questions_shown = {"shared": shared, "questions": asked} if shared else {"questions": asked}
        if known is None:
            if shared:
                whole = {**whole, "note": " ".join(filter(None, (HOW_TO_READ, whole.get("note"))))}
            how = {name: whole[name] for name in ("note",) if name in whole}
            return {**how, **{name: whole[name] for name in whole if name != "questions"}, **questions_shown}
        kept = {name: whole[name] for name in ("run_id", "status", "note") if name in whole}
        result = {"result": compact_result(whole["result"])} if "result" in whole else {}
        return {**kept, **questions_shown, **result}


class Caller:
    """Stands in for the model of a coached run, because the caller gives the answers."""

    name = CALLER
    price = staticmethod(no_price)

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Raise ModelError, since a coached drive leaves questions to the caller."""
        raise ModelError(f"question {question.id} is the caller's to answer")

    async def close(self) -> None:
        """Close nothing."""


def document(read: OpenRun, questions: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the state of a coached run as data. By default, it includes the full text of each open question."""
    run, snapshot = read.run, read.run.snapshot
    shown: dict[str, Any] = {
        "run_id": read.row.run_id,
        "session_id": read.row.session_id,
        "status": snapshot.status,
        "strategy": snapshot.strategy,
        "questions": [*map(_question, handed_out(run))] if questions is None else questions,
        "progress": {
            "stage": snapshot.stage,
            "answered": run.counts.answered,
            "thoughts": run.counts.thoughts,
            "rounds": snapshot.rounds,
        },
    }
    if snapshot.status != "active":
        shown["result"] = read.result.document(nodes=False)
        return shown
    notes = () if run.counts.answered else run.begun.warnings
    if at_most := not run.counts.answered and run.strategy.conclude(snapshot.state).document.get("at_most"):
        tokens = at_most * (estimate_tokens(run.begun.problem) + _TOKENS_BESIDE)
        notes = (*notes, f"At most {at_most} questions, about {tokens:,} tokens with their answers")
    notes = (*notes, *(() if shown["questions"] else (NOTHING_ASKED,)))
    return {**shown, "note": "; ".join(notes)} if notes else shown


def _proved_wrong(run: Run, state: Any) -> dict[str, dict[str, str]]:
    """Return the refuted thoughts of a run and the reasons, by the id of the search node."""
    nodes = run.strategy.conclude(state).document.get("tree", {}).get("nodes", {})
    return {
        name: {"thought": node["content"], "reason": node["why"]}
        for name, node in nodes.items()
        if node.get("why")
    }


def _question(pending: Pending) -> dict[str, Any]:
    prompt = "\n\n".join(pieces_of(pending))
    return {"id": pending.id, "stage": pending.stage, "prompt": prompt, "answer_schema": _form_of(pending)}


def _form_of(pending: Pending) -> dict[str, Any]:
    assert isinstance(pending.effect, Ask)
    return pending.effect.form or {"type": "string"}


def _events(run: Run, handed: Sequence[Pending], answers: Sequence[tuple[str, str]]) -> dict[str, Answered]:
    """Turn answers to handed-out questions into events, in the order in which the questions were asked."""
    if not answers:
        return {}
    if run.snapshot.status != "active":
        raise ConflictError(f"the run has ended ({run.snapshot.status}); it takes no more answers")
    effects = {pending.id: pending.effect for pending in handed}
    at_ms = max(run.snapshot.at_ms, now_ms() - run.begun.created_at_ms)
    events: dict[str, Answered] = {}
    for effect_id, text in answers:
        if effect_id not in effects or effect_id in events:
            raise ConflictError(_why_not(run, effect_id, effects), effect=effect_id, choices=list(effects))
        events[effect_id] = Answered(SECRETS.mask(_mark_answer(effects[effect_id], text)), at_ms)
    return {effect_id: events[effect_id] for effect_id in effects if effect_id in events}


def _mark_answer(effect: Effect, text: str) -> str:
    """Enclose a bare one-line answer in `<answer>` tags, if the question asks for these tags."""
    line = text.strip()
    is_bare = bool(line) and "\n" not in line and not line.startswith("{") and find_ending(line) is None
    wants_mark = isinstance(effect, Ask) and bool(effect.mark) and "<answer>" not in line.lower()
    return f"<answer>{line}</answer>" if wants_mark and is_bare else text


def _why_not(run: Run, effect_id: str, asked: Collection[str]) -> str:
    waiting = ", ".join(asked) or "none"
    if effect_id in asked:
        return f"question {effect_id} is answered twice in one call; one answer each"
    if effect_id in (pending.id for pending in questions(run)):
        return f"question {effect_id} is not handed out, for the budget does not cover it; questions waiting: {waiting}"
    return f"question {effect_id[:60]!r} has been answered already, or was never asked; questions waiting: {waiting}"
