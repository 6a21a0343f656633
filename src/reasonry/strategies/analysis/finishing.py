"""Stages 5 to 7: going on or not, the synthesis, the focused answer."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...core.answering import UNREADABLE, AnswerReply, repair_or_fail, verify_answer
from ...core.bodies import Body, Move, Thought, fail, go
from ...core.effects import Ask
from ...core.events import Failed, Reply
from ...core.problem import subject_of
from ...reading import parse
from ...reading.fit import Unreadable
from .questions import (
    CAPTION_FIELD,
    DECIDE,
    FOCUS,
    NOTHING_ACCEPTED,
    SYNTHESIZE,
    DecisionReply,
    FocusReply,
    SynthesisReply,
    texts,
)
from .result import accepted_text
from .state import (
    COST_LIMIT,
    Iteration,
    State,
    affordable,
    ask,
    end_work,
    is_broke,
    question,
    room,
    with_iteration,
)
from .tasks import setbacks

NOTHING = "no result was accepted, so there is nothing to answer from"
UNDECIDED = "no reply to whether to go on could be read"


# -- stage 5: iteration


def decide(s: State) -> Body:
    """Go on from the first line, or not; not asked where that is settled or cannot be paid."""
    if s.ended is not None or not affordable(s, 1):
        return _close(s if s.ended else end_work(s, "cost_limit", COST_LIMIT))
    s, (answer,) = yield from ask(s, _decision(s))
    if isinstance(answer, Failed):
        if answer.code != UNREADABLE or not s.accepted:
            return fail(s, "error", answer.message, answer.code)
        s = replace(s, unchecked=f"{UNDECIDED}: {answer.message}")
        return _close(end_work(s, "success", UNDECIDED), Thought(f"Unchecked: {s.unchecked}"))
    reply: DecisionReply = answer.value
    text = decision_text(reply, s.number)
    s = with_iteration(replace(s, history=(*s.history, text)), decision=reply)
    thought = Thought(text, data={"continue_iterations": reply.continue_iterations})
    minimum, maximum = s.options.iterations
    enforced = s.options.enforce_iterations and s.number < minimum
    if not reply.continue_iterations and not enforced:
        detail = reply.decision_rationale or "the work was found to be sufficient"
        return _close(end_work(s, "quality_sufficient", detail), thought)
    if s.number >= maximum:
        return _close(end_work(s, "max_iterations", f"the limit of {maximum} iterations is reached"), thought)
    return _continue(s, thought)


def _decision(state: State) -> Ask:
    minimum, maximum = state.options.iterations
    wanted = f"; at least {minimum} are wanted" if minimum > state.number else ""
    worked = setbacks(state, (state.number,))
    task = DECIDE.format(number=state.number, most=maximum, wanted=wanted, setbacks=worked)
    return question(state, "decide", task)


def _continue(state: State, thought: Thought) -> Move:
    """Back to the first stage, if there is room for it and a plan."""
    sizes_up = state.options.complexity_analysis
    if room(state) < sizes_up + 1:
        return _close(end_work(state, "cost_limit", COST_LIMIT), thought)
    state = replace(state, iterations=(*state.iterations, Iteration()))
    return go(state, "complexity_analysis" if sizes_up else "plan_generation", thought)


def _close(state: State, *thoughts: Thought) -> Move:
    if is_broke(state):
        state = end_work(state, "cost_limit", COST_LIMIT)
    assert state.ended is not None, "set before the run closes"
    reason, detail = state.ended
    if state.accepted or (reason == "cost_limit" and not is_broke(state)):
        return go(state, "synthesis", *thoughts)
    ending = (
        fail(state, reason, detail) if reason == "cost_limit" else fail(state, "nothing_accepted", NOTHING)
    )
    return replace(ending, thoughts=thoughts)


def decision_text(reply: DecisionReply, number: int) -> str:
    """Return the feedback as the history has it."""
    parts = {
        f"Feedback after iteration {number}": reply.quality_summary or "none",
        "Why": reply.decision_rationale,
        "Recommendations": "; ".join(texts(reply.recommendations_for_next_iteration)),
    }
    return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)


# -- stage 6: synthesis


def synthesize(s: State) -> Body:
    """Findings, answer ← Synthesis(q, H); the answer is verified here unless it is still to be put into one value.

    The accepted results stand in for a synthesis that could not be paid, or not be read.
    """
    answer: Reply | Failed = Failed("cost_limit", COST_LIMIT)
    if not is_broke(s):
        none, field = "" if s.accepted else NOTHING_ACCEPTED, CAPTION_FIELD if s.options.image else ""
        task = _after_objections(s, SYNTHESIZE.format(none=none, field=field))
        s, (answer,) = yield from ask(s, question(s, "synthesis", task), closes=True)
    made = _stand_in(s, answer) if isinstance(answer, Failed) else answer.value
    before = s.unchecked
    if isinstance(answer, Failed) and answer.code == UNREADABLE:
        lost = f"the accepted results stand in for a synthesis that could not be read: {answer.message}"
        s = replace(s, unchecked="; ".join(filter(None, (before, lost))))
    if made is None:
        assert isinstance(answer, Failed), "a reply is a synthesis"
        return fail(s, "error", answer.message, answer.code)
    final, findings = str(made.final_answer), list(texts(made.key_findings))
    thought = Thought(synthesis_text(made), data={"final_answer": final, "key_findings": findings})
    s = replace(s, synthesis=made)
    if s.focus:
        return go(s, "focused_answer", thought)
    s = _propose(s, final)
    s, thoughts = yield from verify_answer(s, (str(made.answer),), thought, give_failures=True)
    if s.final.text is None:
        return repair_or_fail(replace(s, synthesis=None, unchecked=before), can_ask=room(s) >= 1)
    return go(s, "final_response", *thoughts)


def synthesis_text(made: SynthesisReply) -> str:
    """Return a synthesis as people read it: title, headline, the whole answer, the findings, the final answer."""
    findings = "\n".join(f"- {finding}" for finding in texts(made.key_findings))
    whole = "" if str(made.answer) == str(made.final_answer) else str(made.answer)
    parts = [
        "\n".join(filter(None, (made.title, made.headline))),
        whole,
        findings and f"Key findings:\n{findings}",
        f"Final answer: {made.final_answer}",
    ]
    return "\n\n".join(filter(None, parts))


def read_synthesis(state: State, _: Ask, replies: Sequence[str]) -> tuple[SynthesisReply, str] | Unreadable:
    """Read the synthesis; with an image, its caption has to be there."""
    subject = subject_of(state)
    reading = parse.read_form(replies[-1], SynthesisReply, subject=subject)
    if isinstance(reading, Unreadable) and not subject.is_open:
        reading = _from_prose(replies[-1]) or reading
    if isinstance(reading, Unreadable) or not state.options.image or (reading[0].image_caption or "").strip():
        return reading
    return Unreadable("image_caption is missing")


def _from_prose(text: str) -> tuple[SynthesisReply, str] | None:
    """Read prose as the whole answer, and what it states, else all of it, as the final one."""
    if text.lstrip().startswith(("{", "[")) or "```" in text:
        return None
    found = parse.read_form(text, AnswerReply)
    if isinstance(found, Unreadable):
        return None
    return SynthesisReply(answer=text.strip(), final_answer=found[0].text), found[1]


def _propose(state: State, text: str) -> State:
    """Return the state with an answer, unchecked where a reply before it could not be read."""
    final = state.final.propose(text)
    return replace(state, final=final.leave_unchecked(state.unchecked) if state.unchecked else final)


def _stand_in(state: State, failure: Failed) -> SynthesisReply | None:
    limited = state.ended is not None and state.ended[0] == "cost_limit"
    # After an answer proved wrong the results may say the same.
    unreadable = failure.code == UNREADABLE and not state.final.refuted
    results = accepted_text(state) if limited or unreadable else None
    return None if results is None else SynthesisReply(answer=results, final_answer=results)


# -- stage 7: the focused answer


def focus(s: State) -> Body:
    """One allowed value ← Focus(answer), which is then what is verified; without one the run has failed."""
    if is_broke(s):
        return fail(s, "focused_answer_failed", COST_LIMIT)
    s, (answer,) = yield from ask(s, _focus(s), closes=True)
    if isinstance(answer, Failed):
        value = _stated_value(s) if answer.code == UNREADABLE else None
        why = f"the value is the final answer's; no reply could be read: {answer.message}"
        final = None if value is None else s.final.fall_back(str(value), why)
        if final is None:
            detail = f"no focused answer was to be had: {answer.message}"
            return fail(s, "focused_answer_failed", detail, answer.code)
        s = replace(s, focused=value, final=final)
    else:
        value = answer.value
        s = _propose(replace(s, focused=value), str(value))
    thought = Thought(str(value), data={"value": value})
    reasoning = str(s.synthesis.answer) if s.synthesis else ""
    s, thoughts = yield from verify_answer(s, (reasoning,), thought, give_failures=True)
    if s.final.text is None:
        return repair_or_fail(replace(s, focused=None), can_ask=room(s) >= 0)
    return go(s, "final_response", *thoughts)


def _stated_value(state: State) -> str | int | float | None:
    """Return the value that the final answer is; None if it is none, or is itself unchecked."""
    if state.focus is None or state.synthesis is None or state.unchecked:
        return None
    return state.focus.value(str(state.synthesis.final_answer))


def _focus(state: State) -> Ask:
    assert state.focus is not None, "asked only where one is wanted"
    assert state.synthesis is not None, "the stage before brings it"
    made = state.synthesis
    whole = "" if str(made.answer) == str(made.final_answer) else f"{made.answer}\n\n"
    task = FOCUS.format(answer=f"{whole}{made.final_answer}", rule=state.focus.rule)
    task = _after_objections(state, task)
    facts = {"type": state.focus.kind, "words": list(state.focus.words)}
    form = state.focus.form
    return question(state, "focus", task, with_history=False, form=form, facts=facts)


def read_focus(state: State, _: Ask, replies: Sequence[str]) -> tuple[str | int | float, str] | Unreadable:
    """Read the value; anything but an allowed one is asked for again."""
    assert state.focus is not None, "asked only where one is wanted"
    reading = parse.read_form(replies[-1], FocusReply)
    value_text, mode = (
        (replies[-1], "text") if isinstance(reading, Unreadable) else (reading[0].value, reading[1])
    )
    value = state.focus.value(value_text)
    if value is None and mode in ("text", "plain", "stated", "lines"):
        value = state.focus.value_opening(str(value_text))
    return (value, mode) if value is not None else Unreadable(f"value must be {state.focus.rule}")


def _after_objections(state: State, task: str) -> str:
    return "\n\n".join([*state.final.objections, task])
