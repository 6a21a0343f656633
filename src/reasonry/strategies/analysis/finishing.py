"""Stages 5 to 7: going on or not, the synthesis, the focused answer; and the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ...core import parse
from ...core.answering import claim
from ...core.closing import propose, ruled
from ...core.effects import Ask, Effect
from ...core.events import Failed, Verified
from ...core.evidence import evidence_text
from ...core.parse import Unreadable
from ...core.strategy import Move, Outcome, Thought, fail, go, stay
from .forms import DecisionReply, FocusReply, SynthesisReply, texts
from .planning import plans_due
from .prompts import CAPTION_FIELD, DECIDE, FOCUS, NOTHING_ACCEPTED, SYNTHESIZE
from .state import (
    COST_LIMIT,
    Iteration,
    Plan,
    State,
    affordable,
    at_work,
    is_broke,
    paid,
    question,
    room,
    setbacks,
    stopped,
    with_iteration,
)

NOTHING = "no result was accepted, so there is nothing to answer from"


# -- stage 5: iteration


def ask_decision(state: State) -> tuple[Effect, ...]:
    """Ask whether to go on, unless that is settled or cannot be paid."""
    if state.ended is not None or not affordable(state, 1):
        return ()
    fewest, most = state.options.iterations
    wanted = f"; at least {fewest} are wanted" if fewest > state.number else ""
    worked = setbacks(state, (state.number,))
    return (
        question(
            state, "decide", DECIDE.format(number=state.number, most=most, wanted=wanted, setbacks=worked)
        ),
    )


def decide(state: State, answers: tuple[Any, ...]) -> Move:
    """Go on, or to the synthesis; the limits overrule the decision."""
    if not answers:
        return _close(state if state.ended else stopped(state, "cost_limit", COST_LIMIT))
    reply: DecisionReply = answers[0].value
    text = decision_text(reply, state.number)
    state = paid(with_iteration(replace(state, history=(*state.history, text)), decision=reply), answers)
    thought = Thought(text, data={"continue_iterations": reply.continue_iterations})
    fewest, most = state.options.iterations
    enforced = state.options.enforce_iterations and state.number < fewest
    if not reply.continue_iterations and not enforced:
        detail = reply.decision_rationale or "the work was found to be sufficient"
        return _close(stopped(state, "quality_sufficient", detail), thought)
    if state.number >= most:
        return _close(stopped(state, "max_iterations", f"the limit of {most} iterations is reached"), thought)
    return _again(state, thought)


def _again(state: State, thought: Thought) -> Move:
    """Back to the first stage, if there is room for all of them."""
    state = replace(state, iterations=(*state.iterations, Iteration()))
    sizes_up = state.options.complexity_analysis
    if plans_due(state) and room(state) >= sizes_up + 1:
        return go(state, "complexity_analysis" if sizes_up else "plan_generation", thought)
    state = replace(state, iterations=state.iterations[:-1])
    return _close(stopped(state, "cost_limit", COST_LIMIT), thought)


def _close(state: State, *thoughts: Thought) -> Move:
    if is_broke(state):
        state = stopped(state, "cost_limit", COST_LIMIT)
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


def ask_synthesis(state: State) -> tuple[Effect, ...]:
    """Ask for all that was found in one piece, unless nothing is left to pay for it; then have it looked at."""
    if state.synthesis is not None:
        return _claim(state, str(state.synthesis.answer))
    if is_broke(state):
        return ()
    task = SYNTHESIZE.format(
        none="" if state.accepted else NOTHING_ACCEPTED, field=CAPTION_FIELD if state.options.image else ""
    )
    return (question(state, "synthesis", _after_objections(state, task), kept=1),)


def read_synthesis(state: State, _: Ask, replies: Sequence[str]) -> tuple[SynthesisReply, str] | Unreadable:
    """Read the synthesis; with an image, its caption has to be there."""
    reading = parse.read_form(replies[-1], SynthesisReply)
    if isinstance(reading, Unreadable) or not state.options.image or (reading[0].image_caption or "").strip():
        return reading
    return Unreadable("image_caption is missing")


def synthesize(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the synthesis; at the cost limit the accepted results stand in for one that is not to be had."""
    if state.synthesis is not None:
        return _ruled(state, answers[0], replace(state, synthesis=None), kept=1)
    state = paid(state, answers)
    failure = next((one for one in answers if isinstance(one, Failed)), None)
    reply: SynthesisReply | None = answers[0].value if answers and failure is None else None
    if reply is None:
        limited = state.ended is not None and state.ended[0] == "cost_limit"
        if not limited or not state.accepted:
            failure = failure or Failed("cost_limit", COST_LIMIT)
            return fail(state, "error", failure.message, failure.code)
        results = collected(state) or ""
        reply = SynthesisReply(results, results)
    state = replace(state, synthesis=reply)
    answer = str(reply.final_answer)
    thought = Thought(
        str(reply.answer), data={"final_answer": answer, "key_findings": list(texts(reply.key_findings))}
    )
    return go(state, "focused_answer", thought) if state.focus else _given(state, answer, thought)


def collected(state: State) -> str | None:
    """Return the accepted results as they are: the best there is before a synthesis."""
    return "\n\n".join(f"{task.task_query}\n{evidence_text(task.result)}" for task in state.accepted) or None


# -- stage 7: the focused answer


def ask_focus(state: State) -> tuple[Effect, ...]:
    """Ask for the one value; then have it looked at."""
    if state.focused is not None:
        return _claim(state, str(state.synthesis.answer) if state.synthesis else "")
    if state.focus is None or state.synthesis is None or is_broke(state):
        return ()
    task = FOCUS.format(answer=state.synthesis.final_answer, rule=state.focus.rule)
    task = _after_objections(state, task)
    facts = {"type": state.focus.kind, "words": list(state.focus.words)}
    return (question(state, "focus", task, kept=2, form=state.focus.form, facts=facts),)


def read_focus(state: State, _: Ask, replies: Sequence[str]) -> tuple[str | int | float, str] | Unreadable:
    """Read the value; anything but an allowed one is asked for again."""
    assert state.focus is not None, "asked only where one is wanted"
    reading = parse.read_form(replies[-1], FocusReply)
    given, mode = (replies[-1], "text") if isinstance(reading, Unreadable) else (reading[0].value, reading[1])
    value = state.focus.value(given)
    return (value, mode) if value is not None else Unreadable(f"value must be {state.focus.rule}")


def focus(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the value; without one the run has failed."""
    if state.focused is not None:
        return _ruled(state, answers[0], replace(state, focused=None), kept=2)
    if not answers:
        return fail(state, "focused_answer_failed", COST_LIMIT)
    state = paid(state, answers)
    if isinstance(answers[0], Failed):
        detail = f"no focused answer was to be had: {answers[0].message}"
        return fail(state, "focused_answer_failed", detail, answers[0].code)
    value: str | int | float = answers[0].value
    return _given(replace(state, focused=value), str(value), Thought(str(value), data={"value": value}))


# -- what the verifier says of the answer


def _given(state: State, answer: str, thought: Thought) -> Move:
    state = replace(state, closing=propose(state.closing, answer))
    return stay(state, thought) if state.options.verify else go(state, "final_response", thought)


def _claim(state: State, reasoning: str) -> tuple[Effect, ...]:
    return (claim(state.problem, (reasoning,), state.closing.answer or ""),)


def _ruled(state: State, verdict: Verified | Failed, without: State, kept: int) -> Move:
    """Apply the verdict; an answer proved wrong is asked for again, as long as repairs and the cost limit allow."""
    closing = ruled(state.closing, verdict)
    if closing.answer is not None:
        return go(replace(state, closing=closing), "final_response")
    objection = closing.objections[-1]
    state, thought = replace(without, closing=closing), Thought(objection, data={"correct": False})
    if len(closing.objections) > state.options.max_repairs or room(state) + kept < 1:
        return replace(fail(state, "verification_failed", objection), thoughts=(thought,))
    return stay(state, thought)


def _after_objections(state: State, task: str) -> str:
    return "\n\n".join([*state.closing.objections, task])


# -- the result


def outcome(state: State) -> Outcome:
    """Return the focused value, else the final answer; before there is one, the accepted results."""
    if state.focus is not None:
        answer = None if state.focused is None else str(state.focused)
    else:
        answer = collected(state) if state.synthesis is None else state.closing.answer
    reason, detail = state.ended or ("success", "")
    return Outcome(answer, reason, detail, document(state))


def document(state: State) -> dict[str, Any]:
    """Return the analysis as the result document has it."""
    made, focused = state.synthesis, state.focused
    now = state.now
    found = next((one.complexity for one in reversed(state.iterations) if one.complexity), None)
    return {
        "complexity": _data(found),
        "plans": [_plan(n, plan) for n, plan in enumerate(now.plans, 1)],
        "selected_plan": None if now.selected is None else _plan(now.selected + 1, now.plans[now.selected]),
        "tasks": [task.document for task in state.tasks],
        "iterations": [_iteration(n, one) for n, one in enumerate(state.iterations, 1)],
        "synthesis": None
        if made is None
        else {"answer": str(made.answer), "key_findings": list(texts(made.key_findings))},
        "final_answer": None if made is None else str(made.final_answer),
        "focused_answer": None
        if focused is None or state.focus is None
        else {"type": state.focus.kind, "value": focused},
        "title": None if made is None else made.title,
        "headline": None if made is None else made.headline,
        "image_caption": made.image_caption if made is not None and state.options.image else None,
        **state.closing.document,
        "diagnostics": {"dropped_plans": [why for one in state.iterations for why in one.dropped]},
    }


def _iteration(number: int, one: Iteration) -> dict[str, Any]:
    return {
        "iteration": number,
        "complexity": _data(one.complexity),
        "plans": [_plan(n, plan) for n, plan in enumerate(one.plans, 1)],
        "selected_plan": None if one.selected is None else one.selected + 1,
        "decision": _data(one.decision),
    }


def _plan(number: int, plan: Plan) -> dict[str, Any]:
    tasks = [{"resource_name": task.resource_name, "task_query": task.task_query} for task in plan.tasks]
    reason = " ".join(dict.fromkeys(plan.reasons))
    return {"number": number, "tasks": tasks, "overall_score": plan.score, "reason": reason}


def _data(reply: Any) -> dict[str, Any] | None:
    if reply is None:
        return None
    values = {name: getattr(reply, name) for name in reply.__struct_fields__}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def progress(state: State) -> dict[str, Any]:
    """Return where the analysis stands, small enough to be shown at each step."""
    now = state.now
    return {
        "iteration": state.number,
        "max_iterations": state.options.iterations[1],
        "complexity_level": now.complexity.complexity_level if now.complexity else None,
        "plans": [plan.score for plan in now.plans],
        "selected_plan": None if now.selected is None else now.selected + 1,
        "tasks": [
            {
                "resource_name": task.resource_name,
                "query": task.task_query[:80],
                "status": task.status,
                "at": task.step,
            }
            for task in at_work(state)
        ],
        "accepted": len(state.accepted),
        "spent_usd": round(state.spent_usd, 6),
    }
