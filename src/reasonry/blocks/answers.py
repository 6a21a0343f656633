"""Answers: how a strategy asks for an answer, verifies it, reviews it and repairs it.

An answer can be checked in two ways. A verifier gives proof: a refuted answer is never given, and a proved answer is
final. A review by the model that wrote the answer gives only doubt. After the last repair, the run gives the
corrected answer. If there is no correction, the run gives the doubted answer.

Rule 1: a run that has an answer gives that answer. If a review or the last question gets no readable reply, the best
        answer is given as `unchecked`. Other failures end the run as usual.
Rule 2: a refuted answer is never given, even if the model repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.bodies import Conclusion, EffectFailed, Move, Request, Thought, fail, go, request, stay
from ..core.effects import Ask, Verify
from ..core.events import UNREADABLE, Failed, Verified
from ..core.readings import AROUND, Unreadable
from ..core.type_schema import UNASKED, inlined_schema
from ..puzzles.equations import false_equations
from ..reading.form import read_form
from ..reading.vote import agree, normalise, says_the_same
from ..text import lazy_pattern, shorten, strip_blank_lines

REFUTED = "The answer {answer} was checked and is wrong."
MARKED: Final = f"Write the answer alone, complete and as asked for, {AROUND}."
"""The instruction to mark an answer, which may be a value, a text or a program."""

_MAX_INLINE = 120
F = TypeVar("F", bound=Struct)

Answer = Annotated[str | int | float, Meta(description="The answer alone.")]
"""An answer. Models that are asked for a text often reply with a number, which is then converted to text."""


def answer_text(answer: Answer | None) -> str:
    """Return an answer as text, without blank lines around it. Without an answer, return an empty text."""
    return "" if answer is None else strip_blank_lines(str(answer))


class AnswerReply(Struct, frozen=True, kw_only=True):
    """The answer, with its reasoning if the reply has any."""

    reasoning: Annotated[str, UNASKED] = ""
    answer: Answer

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("the answer is empty")

    @property
    def text(self) -> str:
        """The answer as text."""
        return answer_text(self.answer)


class ReasonedAnswer(AnswerReply, frozen=True, kw_only=True):
    """The answer after its reasoning."""

    reasoning: Annotated[str, Meta(description="The reasoning behind the answer, step by step.")] = ""
    answer: Answer

    @property
    def steps(self) -> tuple[str, ...]:
        """The paragraphs of the reasoning, without the step numbers that the author wrote."""
        return tuple(without_number(part) for part in self.reasoning.split("\n\n") if part.strip())


class CheckReply(Struct, frozen=True, kw_only=True):
    """The finding of a review. The reason precedes the verdict."""

    reason: Annotated[str, Meta(description="How it was checked, or what is wrong with it.")]
    correct: Annotated[bool, Meta(description="Whether the answer holds.")]
    answer: Annotated[Answer | None, Meta(description="The corrected answer, if it did not hold.")] = None

    @property
    def text(self) -> str:
        """The corrected answer as text. Empty if there is no correction."""
        return answer_text(self.answer)


class AnswerOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every strategy that settles on an answer. Subclasses add their own."""

    max_repairs: Annotated[int, Meta(ge=0, le=20, description="Further answers after a refuted answer.")] = 1
    verify: Annotated[bool, Meta(description="Let the run's verifier check the answer.")] = False


class FinalAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer of a run so far, and the results of its checks.

    Attributes:
        text: The answer. None before the first answer and after a refutation.
        verification: `doubted`: the last review found the answer wrong, and neither a correction nor a repair is left.
            `unchecked`: the answer is the best available answer, and no check of this answer succeeded.
        objections: The faults of earlier answers, and of a doubted answer.
        unchecked: The reason why the answer is unchecked.
        fallback: An answer that its author, but no verifier, found wrong. It is kept in case there is no better answer.
        refuted: The refuted answers.
    """

    text: str | None = None
    verification: Literal["open", "reviewed", "doubted", "unchecked", "proved"] = "open"
    objections: tuple[str, ...] = ()
    unchecked: str = ""
    fallback: str | None = None
    refuted: tuple[str, ...] = ()

    @property
    def can_be_given(self) -> bool:
        """Whether there is an answer to give, even if its author doubts it."""
        return self.text is not None or self.fallback is not None

    @property
    def document(self) -> dict[str, Any]:
        """The checks of the answer, as members of the result document."""
        why = {"unchecked": self.unchecked} if self.unchecked else {}
        return {"verification": self.verification, "objections": list(self.objections), **why}

    def propose(self, text: str) -> FinalAnswer:
        """Replace the answer with a new answer that is not checked yet."""
        return replace(self, text=text, verification="open", unchecked="")

    def leave_unchecked(self, why: str) -> FinalAnswer:
        """Mark the answer as unchecked, for the reason `why`."""
        return replace(self, verification="unchecked", unchecked=why)

    def fall_back(self, best: str | None, why: str) -> FinalAnswer | None:
        """Return the best available answer after all other attempts failed. If there is no answer, return None.

        Args:
            best: The strategy's result so far, if it is an answer.
            why: The reason why no other answer is available.
        """
        known = (text for text in (best, self.fallback) if text and not self._is_refuted(text))
        text = next(known, None)
        return None if text is None else replace(self, text=text).leave_unchecked(why)

    def apply_verdict(self, verdict: Verified | Failed) -> FinalAnswer:
        """Apply a verifier's verdict. An `unknown` verdict or a failed verifier changes nothing."""
        if isinstance(verdict, Failed) or verdict.verdict == "unknown":
            return self
        text = self.text or ""
        if verdict.verdict == "right":
            return replace(self, text=verdict.answer or text, verification="proved", unchecked="")
        objection = f"{REFUTED.format(answer=quotation(text))} {verdict.detail}".strip()
        objections, refuted = (*self.objections, objection), (*self.refuted, text)
        return FinalAnswer(objections=objections, fallback=self.fallback, refuted=refuted)

    def apply_review(self, reply: CheckReply, max_repairs: int) -> FinalAnswer:
        """Apply the author's review, which may correct the answer.

        After the last repair, a corrected answer is final without another check.
        """
        if reply.correct or (reply.text and says_the_same(reply.text, self.text or "")):
            return replace(self, verification="reviewed")
        objection = f"The answer {quotation(self.text or '')} did not pass the check: {reply.reason}"
        objections = (*self.objections, objection)
        corrected = reply.text if not self._is_refuted(reply.text) else ""
        if len(objections) <= max_repairs:
            return replace(self, text=corrected or None, objections=objections, fallback=self.text)
        if not corrected:
            return replace(self, verification="doubted", objections=objections)
        before = shorten(self.text or "", 200, one_line=True)
        why = f"it corrects {before}, which did not pass the last check allowed (max_repairs)"
        return replace(self, text=corrected, objections=objections).leave_unchecked(why)

    def _is_refuted(self, text: str) -> bool:
        return any(agree(normalise(text), normalise(wrong)) for wrong in self.refuted)


def quotation(answer: str) -> str:
    """Format an answer for a sentence: a short line in quotes, a longer text as a block."""
    is_line = "\n" not in answer and '"' not in answer and len(answer) <= _MAX_INLINE
    return f'"{answer}"' if is_line else f"\n<<<\n{answer}\n>>>\n"


class AnswerState(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The state of a strategy that settles on an answer. Subclasses add their options and their own state."""

    problem: str
    options: Any
    final: FinalAnswer = FinalAnswer()

    def build_question(
        self,
        system: str,
        kind: str,
        known: Iterable[str],
        task: str = "",
        *,
        mark: str = "",
        name: str = "Problem",
    ) -> Ask:
        """Build a question: the problem, the facts so far, the faults of earlier answers, and the task.

        Args:
            mark: The instruction to mark the answer, for a reply with reasoning; usually `MARKED`.
        """
        return Ask(
            "\n\n".join(filter(None, (f"{name}: {self.problem}", *known, *self.final.objections))),
            system,
            mark,
            task,
            wants_value=self.options.verify,
            facts={"kind": kind, "problem": self.problem},
        )

    def ask_or_fall_back(
        self, question: Ask, best: str | None, name: str, *thoughts: Thought
    ) -> Generator[Request, Any, tuple[Self, Any]]:
        """Ask a question. Return (state, reply), or (new state, None) after a fallback to the best answer.

        Args:
            best: The strategy's result so far, if it is an answer. It is used if no reply is readable.
            name: The name of the question, for the reason why an answer is unchecked.
        """
        try:
            (reply,) = yield request(self, *thoughts, question)
        except EffectFailed as lost:
            why = f"no reply to {name} could be read: {lost.failure.message}"
            final = self.final.fall_back(best, why) if lost.failure.code == UNREADABLE else None
            if final is None:
                raise
            return replace(self, final=final), None
        return self, reply.value

    def ask_for_answer(
        self, question: Ask, best: str | None
    ) -> Generator[Request, Any, tuple[Self, tuple[Thought, ...]]]:
        """Ask for an answer. If no reply is readable, take the best available answer."""
        state, found = yield from self.ask_or_fall_back(question, best, "the last question")
        if found is None:
            return state, (Thought(state.final.unchecked, data={"answer": state.final.text}),)
        why = found.reason if isinstance(found, CheckReply) else found.reasoning
        thought = Thought(why or found.text, data={"answer": found.text})
        return replace(state, final=state.final.propose(found.text)), (thought,)

    def settle_answer(
        self,
        question: Ask,
        path: Sequence[str],
        *,
        review: Callable[[Self], Ask] | None = None,
        best: str | None = None,
    ) -> Generator[Request, Any, Move]:
        """Ask for the answer, verify it and review it. Ask again after a wrong answer, while repairs are left.

        A stage ends with this call: `return (yield from s.settle_answer(…))`. If there is an answer, nothing is asked.
        The run ends as `verification_failed` if every answer is refuted, and as `output_invalid` if no reply is
        readable and there is no other answer to give.

        Args:
            question: The question that asks for an answer, or for another answer after the objections in `final`.
            path: The thoughts before the answer, oldest first, for the verifier.
            review: A function that builds the question whether the answer is right. None means no review.
            best: The strategy's result so far, if it is an answer.
        """
        state, thoughts = self, tuple[Thought, ...]()
        if state.final.text is None:
            state, thoughts = yield from state.ask_for_answer(question, best)
        state, thoughts = yield from state.verify_answer(path, *thoughts)
        if state.final.text is None:
            return state.repair_or_fail()
        if review is not None and state.final.verification not in ("proved", "unchecked"):
            state, thoughts = yield from state._review_answer(review(state), thoughts)
            if state.final.verification == "open":
                return stay(state, *thoughts)
        return go(state, "final_response", *thoughts)

    def settle_checked_answer(
        self, ask: Callable[[Self, str, str], Ask], path: Sequence[str], *, check: str, repair: str
    ) -> Generator[Request, Any, Move]:
        """Settle the answer like `settle_answer`. If the option `check` is set, the author reviews the answer.

        Args:
            ask: A function that builds a question from the state, the kind of question and the task.
            check: The task of the review, with the placeholder `{answer}`. The reply is a `CheckReply`.
            repair: The task of the question for another answer. The reply is a marked `ReasonedAnswer`.
        """
        question = replace(ask(self, "repair", repair), mark=MARKED, form=inlined_schema(ReasonedAnswer))

        def review(s: Self) -> Ask:
            return ask(s, "check", check.format(answer=quotation(s.final.text or "")))

        return (yield from self.settle_answer(question, path, review=review if self.options.check else None))

    def _review_answer(
        self, question: Ask, thoughts: tuple[Thought, ...]
    ) -> Generator[Request, Any, tuple[Self, tuple[Thought, ...]]]:
        """Let the author review the answer. If no reply is readable, the answer counts as unchecked."""
        state, found = yield from self.ask_or_fall_back(question, self.final.text, "its check", *thoughts)
        if found is None:
            return state, (Thought(f"Unchecked: {state.final.unchecked}"),)
        final = state.final.apply_review(found, state.options.max_repairs)
        data: dict[str, Any] = {"correct": final.verification == "reviewed"}
        if final.verification == "unchecked":
            data["answer"] = final.text
        return replace(state, final=final), (Thought(found.reason or str(found.correct), data=data),)

    def verify_answer(
        self, path: Sequence[str], *thoughts: Thought, short: str = "", give_failures: bool = False
    ) -> Generator[Request, Any, tuple[Self, tuple[Thought, ...]]]:
        """Verify the answer if there is a verifier and the answer is not proved yet.

        A refuted answer is removed from the state; see `repair_or_fail`.

        Args:
            thoughts: The thoughts to record. The returned thoughts are not recorded yet.
            short: The bare answer to verify, if the text of the answer contains more.
            give_failures: Whether a failed verifier leaves the answer unverified instead of ending the run.
        """
        if not self.options.verify or self.final.verification == "proved":
            return self, thoughts
        effect = Verify(self.problem, (*path, short or self.final.text or ""), final=True)
        (verdict,) = yield request(self, *thoughts, effect, give_failures=give_failures)
        return replace(self, final=self.final.apply_verdict(verdict)), ()

    def close_unchecked(self) -> Move:
        """End a run that has no call left: give the best answer as unchecked, or fail if there is no answer to give."""
        why = "no call was left for its check"
        if self.final.text is None:
            why = "it did not pass its check, and no call was left for another"
        final = self.final.fall_back(self.final.text, why)
        if final is None:
            return self.repair_or_fail(can_ask=False)
        return go(replace(self, final=final), "final_response")

    def repair_or_fail(self, *, can_ask: bool = True) -> Move:
        """Return the move after a refutation. If a repair is left, ask for another answer. Otherwise, fail.

        Args:
            can_ask: Whether the run can ask another question. If not, the run fails.
        """
        objection = self.final.objections[-1]
        thought = Thought(objection, data={"correct": False})
        if can_ask and len(self.final.objections) <= self.options.max_repairs:
            return stay(self, thought)
        return replace(fail(self, "verification_failed", objection), thoughts=(thought,))

    def conclude(
        self, document: dict[str, Any], *, so_far: str | None = None, cut: tuple[str, str] | None = None
    ) -> Conclusion:
        """Return the conclusion of the run: the answer, its certainty, and the reason for the end.

        Args:
            so_far: The best result before the first answer, if any.
            cut: The reason and the detail, if the strategy was cut short. Ignored if the answer is proved or doubted.
        """
        final = self.final
        if final.text is None and not final.objections:
            return Conclusion(so_far or None, document=document)
        if final.verification == "proved":
            return Conclusion(final.text, document=document, certainty="proved")
        if final.verification == "doubted":
            cut = "max_repairs", final.objections[-1]
        return Conclusion(final.text, *(cut or ("success", "")), document, certainty="given")


def without_number(step: str) -> str:
    """Remove the number at the beginning of a step, such as `Step 1:`."""
    return _NUMBERED.sub("", step.strip()) or step


def read_calculation(
    problem: str,
    ask: Ask,
    texts: Sequence[str],
    read: Callable[[Sequence[str]], tuple[F, str] | Unreadable],
    work: Callable[[F], str],
) -> tuple[F, str] | Unreadable:
    """Read the latest reply. Refuse the first reply with false equations if another try is left.

    Args:
        read: A function that reads the latest of several replies as data.
        work: A function that returns the calculation in a reply.
    """

    def find_faults(reading: tuple[F, str] | Unreadable) -> list[str]:
        return [] if isinstance(reading, Unreadable) else false_equations(work(reading[0]), about=problem)

    *before, reading = (read(texts[: place + 1]) for place in range(len(texts)))
    faults = find_faults(reading) if len(texts) <= ask.retries else []
    if not faults or any(map(find_faults, before)):
        return reading
    return Unreadable("; ".join(faults[:5]), is_doubt=True)


def read_reasoning(
    state: AnswerState, ask: Ask, texts: Sequence[str]
) -> tuple[ReasonedAnswer, str] | Unreadable:
    """Read an answer and its reasoning. Refuse the first reply with a false equation if another try is left."""
    read = partial(read_form, form=ReasonedAnswer)
    return read_calculation(state.problem, ask, texts, read, lambda reply: reply.reasoning)


_NUMBERED: Final = lazy_pattern(
    r"\A(?:[*_#>-]+\s*)?(?:step\s*#?\d{1,3}\s*[:.)–-]|\d{1,3}[.)](?=\s))[*_]*\s*", re.IGNORECASE
)


def read_check(state: AnswerState, ask: Ask, texts: Sequence[str]) -> tuple[CheckReply, str] | Unreadable:
    """Read the reply to a check: a review of the answer or, if the state has no answer to review, a new answer."""
    if state.final.text is None:
        repaired = read_form(texts, ReasonedAnswer)
        if isinstance(repaired, Unreadable):
            return repaired
        return CheckReply(reason=repaired[0].reasoning, correct=False, answer=repaired[0].text), repaired[1]
    reading = read_form(texts[-1], CheckReply)
    if isinstance(reading, Unreadable):
        return reading
    reply, answer = reading[0], state.final.text or ""
    if reply.correct and reply.text and not says_the_same(reply.text, answer):
        return Unreadable(
            "`correct` is true, but `answer` is not the answer that was checked: set `correct` to false if that one is "
            "wrong, or leave `answer` out"
        )
    return reading
