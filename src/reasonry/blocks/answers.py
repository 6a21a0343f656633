"""Answering: an answer is asked for, verified, reviewed, asked for again with the objection, and settled.

Two may look at an answer. A verifier proves: what it finds wrong is never given, what it finds right is settled. The
thinker who reviews its own answer only doubts: when its repairs are used up, the corrected answer is given, or, where
there is none, the doubted one.

Rule 1: a run that has an answer ends with it. Where a review or the last question brings no reply that can be read, the
        best answer there is is given and said to be `unchecked`; other failures end the run as they always do.
Rule 2: what a verifier proved wrong is never given, whoever says it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.bodies import Conclusion, EffectFailed, Move, Request, Thought, fail, go, request, stay
from ..core.effects import Ask, Verify
from ..core.events import UNREADABLE, Failed, Verified
from ..core.readings import AROUND, Unreadable
from ..core.type_schema import UNASKED, inlined_schema
from ..patterns import lazy_pattern
from ..puzzles.equations import false_equations
from ..reading import parse
from ..reading.vote import agree, normalise, says_the_same
from ..text import first_words

REFUTED = "The answer {answer} was checked and is wrong."
MARKED: Final = f"Write the answer alone, in the form the problem asks for (a text or code whole), {AROUND}."
"""How an answer is marked, be it a value, a text or a program."""

_MAX_INLINE = 120
F = TypeVar("F", bound=Struct)

Answer = Annotated[str | int | float, Meta(description="The answer alone.")]
"""Models that are asked for a number often give one; it is taken as the text they would have written."""


def check_answer(answer: Answer) -> None:
    """Raise ValueError if an answer is empty."""
    if not str(answer).strip():
        raise ValueError("the answer is empty")


class AnswerReply(Struct, frozen=True, kw_only=True):
    """The answer, and what leads to it where a reply says so."""

    reasoning: Annotated[str, UNASKED] = ""
    answer: Answer

    def __post_init__(self) -> None:
        check_answer(self.answer)

    @property
    def text(self) -> str:
        """The answer as text."""
        return str(self.answer).strip()


class ReasonedAnswer(AnswerReply, frozen=True, kw_only=True):
    """The answer, after the reasoning that leads to it."""

    reasoning: Annotated[str, Meta(description="The reasoning behind the answer, step by step.")] = ""
    answer: Answer

    @property
    def steps(self) -> tuple[str, ...]:
        """The paragraphs of the reasoning, without the numbers that their writer gave them."""
        return tuple(without_number(part) for part in self.reasoning.split("\n\n") if part.strip())


class CheckReply(Struct, frozen=True, kw_only=True):
    """What a review of an answer found; the reason stands before the verdict."""

    reason: Annotated[str, Meta(description="How it was checked, or what is wrong with it.")]
    correct: Annotated[bool, Meta(description="Whether the answer holds.")]
    answer: Annotated[Answer | None, Meta(description="The corrected answer, if it did not hold.")] = None

    @property
    def text(self) -> str:
        """The corrected answer as text; empty if there is none."""
        return "" if self.answer is None else str(self.answer).strip()


class AnswerOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every strategy that settles on an answer; subclasses add their own."""

    max_repairs: Annotated[int, Meta(ge=0, le=20, description="Further answers after a refuted answer.")] = 1
    verify: Annotated[bool, Meta(description="Let the run's verifier check the answer.")] = False


class FinalAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer of a run, from when it is proposed until it is given, and what is known of it.

    Attributes:
        text: None before there is an answer, and after one was proved wrong.
        verification: `doubted`: the last review found it wrong, and neither a correction nor a repair is left.
            `unchecked`: it is the best there is, and the check that was wanted failed.
        objections: The faults of earlier answers, and with a doubted one.
        unchecked: With `unchecked`: why.
        fallback: An answer found wrong by its author alone, for want of a better one.
        refuted: The answers that were proved wrong.
    """

    text: str | None = None
    verification: Literal["open", "reviewed", "doubted", "unchecked", "proved"] = "open"
    objections: tuple[str, ...] = ()
    unchecked: str = ""
    fallback: str | None = None
    refuted: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """What a result says of its answer; `unchecked` also goes into its warnings."""
        why = {"unchecked": self.unchecked} if self.unchecked else {}
        return {"verification": self.verification, "objections": list(self.objections), **why}

    def propose(self, text: str) -> FinalAnswer:
        """Return a new answer in place of this one; nobody has looked at it yet."""
        return replace(self, text=text, verification="open", unchecked="")

    def leave_unchecked(self, why: str) -> FinalAnswer:
        """Return the answer as the best there is, with the reason why nobody has looked at it."""
        return replace(self, verification="unchecked", unchecked=why)

    def fall_back(self, best: str | None, why: str) -> FinalAnswer | None:
        """Return the best answer there is where no other can be had; None if there is none.

        Args:
            best: What the strategy has worked out so far, if that is an answer.
            why: Why no other answer can be had.
        """
        known = (text for text in (best, self.fallback) if text and not self._is_refuted(text))
        text = next(known, None)
        return None if text is None else replace(self, text=text).leave_unchecked(why)

    def apply_verdict(self, verdict: Verified | Failed) -> FinalAnswer:
        """Return the answer after a verifier has looked at it; one that failed has said nothing."""
        if isinstance(verdict, Failed) or verdict.verdict == "unknown":
            return self
        text = self.text or ""
        if verdict.verdict == "right":
            return replace(self, text=verdict.answer or text, verification="proved", unchecked="")
        objection = f"{REFUTED.format(answer=quotation(text))} {verdict.detail}".strip()
        return FinalAnswer(
            objections=(*self.objections, objection),
            fallback=self.fallback,
            refuted=(*self.refuted, text),
        )

    def apply_review(self, reply: CheckReply, max_repairs: int) -> FinalAnswer:
        """Return the answer after its author's review, or the corrected one.

        With the repairs used up a corrected answer is final, though nobody has looked at it.
        """
        if reply.correct or (reply.text and says_the_same(reply.text, self.text or "")):
            return replace(self, verification="reviewed")
        objections = (
            *self.objections,
            f"The answer {quotation(self.text or '')} did not pass the check: {reply.reason}",
        )
        corrected = reply.text if not self._is_refuted(reply.text) else ""
        if len(objections) <= max_repairs:
            return replace(self, text=corrected or None, objections=objections, fallback=self.text)
        if not corrected:
            return replace(self, verification="doubted", objections=objections)
        before = first_words(self.text or "", 200)
        why = f"it corrects {before}, which did not pass the last check allowed (max_repairs)"
        return replace(self, text=corrected, objections=objections).leave_unchecked(why)

    def _is_refuted(self, text: str) -> bool:
        return any(agree(normalise(text), normalise(wrong)) for wrong in self.refuted)


def quotation(answer: str) -> str:
    """Return an answer as a sentence shows it: a short line in quotes, anything else in a block of its own."""
    is_line = "\n" not in answer and '"' not in answer and len(answer) <= _MAX_INLINE
    return f'"{answer}"' if is_line else f"\n<<<\n{answer}\n>>>\n"


def claim(problem: str, thoughts: Iterable[str], answer: str) -> Verify:
    """Return the effect that has an answer looked at."""
    return Verify(problem, (*thoughts, answer), final=True)


class AnswerState(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The state of a strategy that settles on an answer; subclasses add their options, and what they know besides."""

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
        """Return a question: the problem, the facts so far, the faults of earlier answers, and the task.

        Args:
            mark: How the answer is marked, where the reply reasons towards one: `MARKED` as a rule.
            name: What the problem is called.
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
        """Ask, and return the state with what was read; where no reply can be read, with the best answer, and None.

        Args:
            best: What the strategy has worked out so far, if that is an answer.
            name: What was asked, as the reason for the answer's being unchecked has it.
            thoughts: To record.
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
        """Ask for an answer; where no reply can be read, take the best there is."""
        state, found = yield from self.ask_or_fall_back(question, best, "the last question")
        if found is None:
            return state, (Thought(state.final.unchecked, data={"answer": state.final.text}),)
        why = found.reason if isinstance(found, CheckReply) else found.reasoning
        thought = Thought(why or found.text, data={"answer": found.text})
        return replace(state, final=state.final.propose(found.text)), (thought,)

    def settle_answer(
        self,
        question: Callable[[Self], Ask],
        path: Sequence[str],
        *,
        review: Callable[[Self], Ask] | None = None,
        best: str | None = None,
    ) -> Generator[Request, Any, Move]:
        """Ask for the answer, have it verified and reviewed; stay for another one as long as repairs are left.

        The tail of a stage: `return (yield from s.settle_answer(…))`. An answer that is there already is not asked for.
        Ends the run as `verification_failed` when every answer within the repairs was proved wrong, and as
        `output_invalid` when no reply can be read and there is no answer to fall back on.

        Args:
            question: From the state to the question for an answer, or for another one after `final.objections`.
            path: The thoughts that led to the answer, oldest first, as the verifier is shown them.
            review: From the state to the question whether its answer holds; None: it is not reviewed.
            best: What to answer where no reply to the question can be read, if the strategy has anything.
        """
        state, thoughts = self, tuple[Thought, ...]()
        if state.final.text is None:
            state, thoughts = yield from state.ask_for_answer(question(state), best)
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
        """Settle the answer, as `settle_answer` does, that its author reviews where the option `check` is set.

        Args:
            ask: From the state, the kind of a question and its task to the question.
            check: The task of the review, with a place for the `answer`; its reply is a `CheckReply`.
            repair: The task of another answer, a `ReasonedAnswer` in its mark.
        """

        def question(s: Self) -> Ask:
            return replace(ask(s, "repair", repair), mark=MARKED, form=inlined_schema(ReasonedAnswer))

        def review(s: Self) -> Ask:
            return ask(s, "check", check.format(answer=quotation(s.final.text or "")))

        return (yield from self.settle_answer(question, path, review=review if self.options.check else None))

    def _review_answer(
        self, question: Ask, thoughts: tuple[Thought, ...]
    ) -> Generator[Request, Any, tuple[Self, tuple[Thought, ...]]]:
        """Have the author look at the answer; where no reply can be read, it stays as it is, unchecked."""
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
        """Have the answer verified, where that is wanted and it is not proved yet; return the state after it.

        An answer that is proved wrong is gone from the state, see `repair_or_fail`.

        Args:
            thoughts: To record; those returned with the state are not recorded yet.
            short: The answer alone, where its text says more than that.
            give_failures: Take a verifier that failed as one that said nothing, instead of ending the run.
        """
        if not self.options.verify or self.final.verification == "proved":
            return self, thoughts
        effect = claim(self.problem, path, short or self.final.text or "")
        (verdict,) = yield request(self, *thoughts, effect, give_failures=give_failures)
        return replace(self, final=self.final.apply_verdict(verdict)), ()

    def close_unchecked(self) -> Move:
        """Give the answer as it is, where no question is left to check it with."""
        final = self.final.leave_unchecked("no call was left for its check")
        return go(replace(self, final=final), "final_response")

    def repair_or_fail(self, *, can_ask: bool = True) -> Move:
        """Stay, to ask for another answer after one that was proved wrong; fail when the repairs are used up.

        Args:
            can_ask: Whether another answer can be asked for at all.
        """
        objection = self.final.objections[-1]
        thought = Thought(objection, data={"correct": False})
        if can_ask and len(self.final.objections) <= self.options.max_repairs:
            return stay(self, thought)
        return replace(fail(self, "verification_failed", objection), thoughts=(thought,))

    def conclude(
        self, document: dict[str, Any], *, so_far: str | None = None, cut: tuple[str, str] | None = None
    ) -> Conclusion:
        """Return the conclusion that rests on the answer; where it is doubted, it says that its repairs are used up.

        Args:
            so_far: What to give before there is an answer, if anything.
            cut: The reason and the detail of a strategy that was cut short, which do not count where its answer is
                proved.
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
    """Return a step without the number that its writer gave it, as in `Step 1: …`; it is numbered where it is shown."""
    return _NUMBERED.sub("", step.strip()) or step


def read_calculation(
    problem: str, ask: Ask, texts: Sequence[str], form: type[F], work: Callable[[F], str]
) -> tuple[F, str] | Unreadable:
    """Read a reply; refuse one with false equations, unless an earlier one had some or no further try is left.

    Args:
        texts: The replies to the question so far, oldest first.
        work: From a reply to what it works out.
    """

    def find_faults(reading: tuple[F, str] | Unreadable) -> list[str]:
        return [] if isinstance(reading, Unreadable) else false_equations(work(reading[0]), about=problem)

    *before, reading = (parse.read_form(texts[: place + 1], form) for place in range(len(texts)))
    faults = find_faults(reading) if len(texts) <= ask.retries else []
    if not faults or any(map(find_faults, before)):
        return reading
    return Unreadable("; ".join(faults[:5]), is_doubt=True)


def read_reasoning(
    state: AnswerState, ask: Ask, texts: Sequence[str]
) -> tuple[ReasonedAnswer, str] | Unreadable:
    """Read an answer after the reasoning that leads to it; refuse a false equation, once."""
    return read_calculation(state.problem, ask, texts, ReasonedAnswer, lambda reply: reply.reasoning)


_NUMBERED: Final = lazy_pattern(
    r"\A(?:[*_#>-]+\s*)?(?:step\s*#?\d{1,3}\s*[:.)–-]|\d{1,3}[.)](?=\s))[*_]*\s*", re.IGNORECASE
)


def read_check(state: AnswerState, ask: Ask, texts: Sequence[str]) -> tuple[CheckReply, str] | Unreadable:
    """Read a review, which corrects an answer only where it is wrong; or a corrected answer, where one is missing."""
    if state.final.text is None:
        repaired = parse.read_form(texts, ReasonedAnswer)
        if isinstance(repaired, Unreadable):
            return repaired
        return CheckReply(reason=repaired[0].reasoning, correct=False, answer=repaired[0].text), repaired[1]
    reading = parse.read_form(texts[-1], CheckReply)
    if isinstance(reading, Unreadable):
        return reading
    reply, answer = reading[0], state.final.text or ""
    if reply.correct and reply.text and not says_the_same(reply.text, answer):
        return Unreadable(
            "`correct` is true, but `answer` is not the answer that was checked: set `correct` to false if that one is "
            "wrong, or leave `answer` out"
        )
    return reading
