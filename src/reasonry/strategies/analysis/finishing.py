"""Stages 5 to 7 of an analysis (iteration decision, synthesis, focused answer), and its result so far."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import asdict, replace

from ...blocks.answers import UNREADABLE
from ...blocks.why import quote
from ...core.bodies import Body, Conclusion, Move, Thought, fail, go, request
from ...core.effects import Ask
from ...core.events import Failed
from ...core.readings import AROUND, Unreadable
from ...core.strategy import AnswerDetails
from ...reading.form import read_form
from ...text import lazy_pattern
from .forms import DecisionReply, FocusReply, SynthesisReply, result_text
from .state import Iteration, State, iteration_id, plan_id
from .tasks import setbacks

# Stage 5, iteration decision.
OVER = "Iteration {number} of at most {most} is over{wanted}."
DECIDE = """Now decide whether another iteration is worth it: are aspects of the query still open, did results raise \
new questions, is there an error to correct? Reply with one JSON object:
{"quality_summary": "…", "decision_rationale": "…", "continue_iterations": true or false, \
"recommendations_for_next_iteration": "…"}"""

# Stage 6, synthesis.
SYNTHESIZE = """Now bring all accepted results together and answer the query: first reason, from the results alone, to \
the whole answer.{none}"""
NOTHING_ACCEPTED = " Nothing was accepted, so say plainly how far the answer can be relied upon."
BESIDE = """Before the answer write the key findings, one to a line, with <key_findings> before them and \
</key_findings> after them; a title with <title> before it and </title> after it; the upshot in one line with \
<headline> before it and </headline> after it{caption}."""
CAPTION = (
    "; the caption of an image that shows it with <image_caption> before it and </image_caption> after it"
)
FINAL = f"Write the final answer for the user, complete in itself (a text or code whole), {AROUND}."

# Stage 7, focused answer.
FOUND = "The analysis came to this answer:\n{answer}"
FOCUS = "Now reason which value the answer comes to."
VALUE = f"Write the value that a program can branch on, {{rule}}, {AROUND}."

NOTHING = "no result was accepted, so there is nothing to answer from"
UNDECIDED = "no reply to whether to go on could be read"

_BESIDE = lazy_pattern(
    r"<(?P<name>key_findings|title|headline|image_caption)>(?P<text>.{0,4000}?)</(?P=name)(?:>|\s*\Z)",
    re.DOTALL,
)
"""Matches a part of a synthesis with its tags. Every part except the answer has its own tags."""


# -- stage 5: iteration


def decide(s: State) -> Body:
    """Start another iteration, or stop. If the decision is already settled, do not ask the model."""
    if s.ended is not None:
        return _close(s)
    minimum, maximum = s.options.iterations
    wanted = f"; at least {minimum} are wanted" if minimum > s.number else ""
    worked = setbacks(s, (s.number,))
    over = OVER.format(number=s.number, most=maximum, wanted=wanted)
    (answer,) = yield request(s, s.question("decide", DECIDE, over, worked), give_failures=True)
    if isinstance(answer, Failed):
        if answer.code != UNREADABLE or not s.accepted:
            return fail(s, "error", answer.message, answer.code)
        s = replace(s, unchecked=f"{UNDECIDED}: {answer.message}")
        return _close(s.end_work("success", UNDECIDED), Thought(f"Unchecked: {s.unchecked}"))
    reply: DecisionReply = answer.value
    text = decision_text(reply, s.number)
    s = replace(s, history=(*s.history, text)).with_iteration(decision=reply)
    thought = Thought(text, data={"continue_iterations": reply.continue_iterations})
    enforced = s.options.enforce_iterations and s.number < minimum
    if not reply.continue_iterations and not enforced:
        detail = reply.decision_rationale or "the work was found to be sufficient"
        return _close(s.end_work("quality_sufficient", detail), thought)
    if s.number >= maximum:
        return _close(s.end_work("max_iterations", f"reached the limit of {maximum} iterations"), thought)
    s = replace(s, iterations=(*s.iterations, Iteration()))
    return go(s, "complexity_analysis" if s.options.complexity_analysis else "plan_generation", thought)


def _close(state: State, *thoughts: Thought) -> Move:
    if state.accepted:
        return go(state, "synthesis", *thoughts)
    return replace(fail(state, "nothing_accepted", NOTHING), thoughts=thoughts)


def decision_text(reply: DecisionReply, number: int) -> str:
    """Format the decision after an iteration as an entry of the analysis history."""
    parts = {
        f"Feedback after iteration {number}": reply.quality_summary or "none",
        "Why": reply.decision_rationale,
        "Recommendations": reply.recommendations_for_next_iteration,
    }
    return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)


# -- stage 6: synthesis


def synthesize(s: State) -> Body:
    """Ask for a synthesis of history H for query q: (findings, answer) ← Synthesis(q, H).

    If no reply can be read, use the accepted results as the answer. Verify the answer unless a focused value follows.
    """
    task = SYNTHESIZE.format(none="" if s.accepted else NOTHING_ACCEPTED)
    mark = f"{BESIDE.format(caption=CAPTION if s.options.image else '')} {FINAL}"
    question = s.question(
        "synthesis", task, *s.final.objections, mark=mark, wants_value=s.options.verify and not s.focus
    )
    (answer,) = yield request(s, question, give_failures=True)
    before = s.unchecked
    if isinstance(answer, Failed):
        # After a refuted answer, the accepted results may contain the same answer.
        results = accepted_text(s) if answer.code == UNREADABLE and not s.final.refuted else None
        if results is None:
            return fail(s, "error", answer.message, answer.code)
        lost = f"the accepted results stand in for a synthesis that could not be read: {answer.message}"
        s = replace(s, unchecked="; ".join(filter(None, (before, lost))))
        made = SynthesisReply(answer=results, final_answer=results)
    else:
        made = answer.value
    final, findings = str(made.final_answer), list(made.key_findings)
    thought = Thought(synthesis_text(made), data={"final_answer": final, "key_findings": findings})
    s = replace(s, synthesis=made)
    if s.focus:
        return go(s, "focused_answer", thought)
    s = _propose(s, final)
    s, thoughts = yield from s.verify_answer((str(made.answer),), thought, give_failures=True)
    if s.final.text is None:
        return replace(s, synthesis=None, unchecked=before).repair_or_fail()
    return go(s, "final_response", *thoughts)


def synthesis_text(made: SynthesisReply) -> str:
    """Format a synthesis for display: the title, the headline, the whole answer, the findings and the final answer."""
    findings = "\n".join(f"- {finding}" for finding in made.key_findings)
    whole = "" if str(made.answer) == str(made.final_answer) else str(made.answer)
    parts = [
        "\n".join(filter(None, (made.title, made.headline))),
        whole,
        findings and f"Key findings:\n{findings}",
        f"Final answer: {made.final_answer}",
    ]
    return "\n\n".join(filter(None, parts))


def read_synthesis(state: State, _: Ask, replies: Sequence[str]) -> tuple[SynthesisReply, str] | Unreadable:
    """Read the synthesis from JSON or tagged text. With the option `image`, a caption is required."""
    reading = read_form(replies, SynthesisReply)
    if isinstance(reading, Unreadable):
        return reading
    made, mode = reading
    before, end, after = str(made.answer).rpartition(str(made.final_answer))
    if mode in ("marked", "stated", "whole") and end and not after:
        beside: dict[str, Any] = {each["name"]: each["text"].strip() for each in _BESIDE.finditer(before)}
        if lines := beside.get("key_findings", "").splitlines():
            beside["key_findings"] = tuple(filter(None, (line.strip().removeprefix("- ") for line in lines)))
        made = replace(made, answer=_BESIDE.sub("", before).strip() or made.final_answer, **beside)
    if state.options.image and not (made.image_caption or "").strip():
        return Unreadable("image_caption is missing")
    return made, mode


def _propose(state: State, text: str) -> State:
    """Set the answer. If the decision or the synthesis was unreadable, mark the answer as unchecked."""
    final = state.final.propose(text)
    return replace(state, final=final.leave_unchecked(state.unchecked) if state.unchecked else final)


# -- stage 7: the focused answer


def focus(s: State) -> Body:
    """Reduce the answer to one allowed value: value ← Focus(answer). Then verify the value."""
    wanted, made = s.focus, s.synthesis
    assert wanted is not None, "asked only where one is wanted"
    assert made is not None, "the stage before brings it"
    whole = "" if str(made.answer) == str(made.final_answer) else f"{made.answer}\n\n"
    question = s.question(
        "focus",
        FOCUS,
        FOUND.format(answer=f"{whole}{made.final_answer}"),
        *s.final.objections,
        with_history=False,
        form=wanted.form,
        mark=VALUE.format(rule=wanted.rule),
        wants_value=True,
    )
    (answer,) = yield request(s, question, give_failures=True)
    if isinstance(answer, Failed):
        # An unchecked final answer must not decide the value.
        is_unread = answer.code == UNREADABLE and not s.unchecked
        value = wanted.value(str(made.final_answer)) if is_unread else None
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
    s, thoughts = yield from s.verify_answer((str(made.answer),), thought, give_failures=True)
    if s.final.text is None:
        return replace(s, focused=None).repair_or_fail()
    return go(s, "final_response", *thoughts)


def read_focus(state: State, _: Ask, replies: Sequence[str]) -> tuple[str | int | float, str] | Unreadable:
    """Read the focused value. If the value is not allowed, the model is asked again."""
    assert state.focus is not None, "asked only where one is wanted"
    reading = read_form(replies, FocusReply)
    if isinstance(reading, Unreadable):
        alone = state.focus.value(replies[-1])
        return reading if alone is None else (alone, "text")
    value = state.focus.value(reading[0].value)
    return (value, reading[1]) if value is not None else Unreadable(f"value must be {state.focus.rule}")


# -- the end at a limit that allows only one more question


def close(s: State) -> Move:
    """Use the last question to ask for the focused value if one is wanted, otherwise for the synthesis."""
    made, s = s.synthesis, s.end_work("limit", "no call was left to go on")
    if s.focus is None:
        return go(s, "synthesis")
    results = accepted_text(s) or NOTHING
    made = made or SynthesisReply(answer=results, final_answer=results)
    return go(replace(s, synthesis=made), "focused_answer")


# -- the result


def accepted_text(state: State) -> str | None:
    """Join the accepted results into one text. If no result is accepted, return None."""
    results = (
        f"{task.task_query}\n{result_text(task.resource_name, task.result)}" for task in state.accepted
    )
    return "\n\n".join(results) or None


def conclude(state: State) -> Conclusion:
    """Return the result so far. If a focused value is wanted, only this value counts as the answer."""
    made, (reason, detail) = state.synthesis, state.ended or ("success", "")
    answer = accepted_text(state) if made is None else state.final.text
    if state.focus is not None:
        answer = None if state.focused is None else str(state.focused)
    certainty = "proved" if state.final.verification == "proved" else "given"
    conclusion = Conclusion(answer, reason, detail, document(state), certainty=certainty)
    found = quote(made.headline or made.final_answer) if made else ""
    tasks = f"{len(state.accepted)} of {len(state.tasks)} tasks were accepted{found and '; the synthesis says'}{found}"
    return conclusion.because(tasks if state.tasks else "", "quality_evaluation", "synthesis")


class AnalysisDetails(AnswerDetails):
    """The details of a result."""

    complexity: Annotated[dict[str, Any] | None, Meta(description="How complex the query is, and why.")]
    plans: Annotated[list[dict[str, Any]], Meta(description="The last plans, with their scores.")]
    selected_plan: Annotated[str | None, Meta(description="The letter of the chosen plan.")]
    tasks: Annotated[list[dict[str, Any]], Meta(description="All tasks, with their results.")]
    iterations: Annotated[list[dict[str, Any]], Meta(description="Plans and decision of each iteration.")]
    synthesis: Annotated[dict[str, Any] | None, Meta(description="The `answer` and its `key_findings`.")]
    final_answer: Annotated[str | None, Meta(description="The answer written from the synthesis.")]
    focused_answer: Annotated[dict[str, Any] | None, Meta(description="Its `type` and `value`.")]
    title: Annotated[str | None, Meta(description="A title for the answer.")]
    headline: Annotated[str | None, Meta(description="A headline for the answer.")]
    image_caption: Annotated[str | None, Meta(description="A caption, if an image is wanted.")]


def document(state: State) -> dict[str, Any]:
    """Return the details of the analysis for the result document."""
    made, focus, focused = state.synthesis, state.focus, state.focused
    iterations = [_iteration(n, iteration) for n, iteration in enumerate(state.iterations, 1)]
    warnings = [each.unscored for each in state.iterations if each.unscored]
    sized_up = (each["complexity"] for each in reversed(iterations) if each["complexity"])
    return {
        "complexity": next(sized_up, None),
        "plans": iterations[-1]["plans"],
        "selected_plan": iterations[-1]["selected_plan"],
        "tasks": [task.document for task in state.tasks],
        "iterations": iterations,
        "synthesis": made and {"answer": str(made.answer), "key_findings": list(made.key_findings)},
        "final_answer": made and str(made.final_answer),
        "title": made and made.title,
        "headline": made and made.headline,
        "image_caption": made.image_caption if made and state.options.image else None,
        "focused_answer": {"type": focus.kind, "value": focused} if focus and focused is not None else None,
        **state.final.document,
        "diagnostics": {
            "dropped_plans": [why for iteration in state.iterations for why in iteration.dropped],
            **({"warnings": warnings} if warnings else {}),
        },
    }


def _iteration(number: int, iteration: Iteration) -> dict[str, Any]:
    found, decision = iteration.complexity, iteration.decision
    return {
        "id": iteration_id(number),
        "iteration": number,
        "complexity": found and {**_data(found), "suggested_tasks": found.suggested_tasks},
        "plans": [
            {
                "id": plan_id(number, plan.name),
                "plan": plan.name,
                "tasks": [
                    {"resource_name": task.resource_name, "task_query": task.task_query}
                    for task in plan.tasks
                ],
                "overall_score": plan.score,
                "reason": plan.reason,
            }
            for plan in iteration.plans
        ],
        "selected_plan": None if iteration.selected is None else iteration.plans[iteration.selected].name,
        "decision": decision and {"continue_iterations": decision.continue_iterations, **_data(decision)},
    }


def _data(reply: Any) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(reply).items()}
