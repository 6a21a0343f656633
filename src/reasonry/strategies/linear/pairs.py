"""The state of linear thinking and its pure pairs, in the algorithm's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...core import parse
from ...core.answering import rule
from ...core.closing import Closing, ask_for
from ...core.effects import Ask, Effect, Verify
from ...core.events import Reply
from ...core.parse import Unreadable
from ...core.strategy import Move, Outcome, Thought, go, stay
from .questions import (
    DECIDE,
    FINALIZE,
    REVISE,
    SYSTEM,
    TEST,
    THINK,
    Approach,
    Decision,
    Evaluation,
    Options,
    Trial,
)


class State(Struct, frozen=True, omit_defaults=True):
    """The thoughts as the session has them, and what is being done with them."""

    problem: str
    options: Options
    log: tuple[Thought, ...] = ()
    """Everything recorded; thought n of the session is `log[n - 1]`."""
    expected: int = 1
    generated: int = 0
    latest: int = 0
    """Number of the latest thought that was generated or revised."""
    revising: int = 0
    decision: Decision | None = None
    branch: str | None = None
    leaves: str | None = None
    branches: int = 0
    hypothesis: str | None = None
    hypotheses: int = 0
    looked_at: bool = False
    """Whether the verifier has looked at the hypothesis."""
    holds: bool = False
    closing: Closing = Closing()


def keep_plan(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the approach and the first estimate."""
    reply: Approach = answers[0].value
    state = replace(state, expected=reply.total_thoughts)
    return _record(state, "thought_generation", reply.approach, data={"totalThoughts": reply.total_thoughts})


def ask_thought(state: State) -> tuple[Effect, ...]:
    """Ask for t_n."""
    number = state.generated + 1
    return (_question(state, "think", THINK.format(number=number, total=max(number, state.expected))),)


def keep_thought(state: State, answers: tuple[Any, ...]) -> Move:
    """Take t_n."""
    state = replace(state, generated=state.generated + 1, latest=len(state.log) + 1)
    return _record(state, "thought_evaluation", answers[0].value.thought)


def read_evaluation(state: State, _: Ask, texts: Sequence[str]) -> tuple[Evaluation, str] | Unreadable:
    """Read an evaluation; the thoughts it names have to be there."""
    reading = parse.read_form(texts[-1], Evaluation)
    if isinstance(reading, Unreadable):
        return reading
    fault = _missing(state, reading[0].revises_thought) or _unplaced(state, reading[0].then)
    return fault or reading


def keep_evaluation(state: State, answers: tuple[Any, ...]) -> Move:
    """Revise what does not hold, or go on."""
    reply: Evaluation = answers[0].value
    decision = reply.then if reply.sound else None
    state = replace(state, decision=decision, revising=reply.revises_thought or state.latest)
    to = "continuation_decision" if reply.sound else "thought_revision"
    text = reply.reason or ("It holds." if reply.sound else "It does not hold.")
    return _record(state, to, text, data={"sound": reply.sound})


def ask_revision(state: State) -> tuple[Effect, ...]:
    """Ask for what replaces t_k."""
    return (_question(state, "revise", REVISE.format(number=state.revising)),)


def keep_revision(state: State, answers: tuple[Any, ...]) -> Move:
    """Put it in the place of t_k."""
    state = replace(state, latest=len(state.log) + 1)
    return _record(state, "continuation_decision", answers[0].value.thought, revises=state.revising)


def ask_decision(state: State) -> tuple[Effect, ...]:
    """Ask how to go on, unless that is known or the thoughts are used up."""
    known = state.decision is not None or _is_spent(state)
    return () if known else (_question(state, "decide", DECIDE),)


def read_decision(state: State, _: Ask, texts: Sequence[str]) -> tuple[Decision, str] | Unreadable:
    """Read a decision; the thought a branch leaves has to be there."""
    reading = parse.read_form(texts[-1], Decision)
    return reading if isinstance(reading, Unreadable) else _unplaced(state, reading[0]) or reading


def decide(state: State, answers: tuple[Any, ...]) -> Move:
    """Think on, branch, or conclude."""
    decision: Decision | None = answers[0].value if answers else state.decision
    if decision is None or _is_spent(state):
        decision = Decision(
            "hypothesis_generation", f"{state.generated} thoughts have been thought: time to conclude."
        )
    state = replace(state, decision=decision)
    return _record(
        state, decision.next, decision.reason or f"Next: {decision.next}.", data={"next": decision.next}
    )


def adjust(state: State, _: tuple[Any, ...]) -> Move:
    """Write down how many thoughts are expected now."""
    wanted = state.decision.total_thoughts if state.decision else None
    expected = max(wanted or state.expected, state.generated + 1)
    state = replace(state, expected=expected, decision=None)
    return _record(
        state, "thought_generation", f"{expected} thoughts are expected.", data={"totalThoughts": expected}
    )


def open_branch(state: State, _: tuple[Any, ...]) -> Move:
    """Let the thoughts that follow leave t_k."""
    left = (state.decision.branch_from_thought if state.decision else None) or state.latest
    name = f"branch-{state.branches + 1}"
    move = _record(
        replace(state, decision=None, branches=state.branches + 1),
        "thought_generation",
        f"{name} leaves thought {left}.",
        data={"branchId": name, "branchFromThought": left},
    )
    return replace(move, state=replace(move.state, branch=name, leaves=state.log[left - 1].branch))


def keep_hypothesis(state: State, answers: tuple[Any, ...]) -> Move:
    """Take h."""
    text: str = answers[0].value.hypothesis
    state = replace(state, hypothesis=text, hypotheses=state.hypotheses + 1, decision=None, looked_at=False)
    return _record(state, "hypothesis_verification", text, data={"hypothesis": text})


def ask_test(state: State) -> tuple[Effect, ...]:
    """Have h looked at by the verifier; what it cannot tell, its author tests."""
    if state.options.verify and not state.looked_at:
        # The answer is put into its form later: a hypothesis is on the way to it.
        return (Verify(state.problem, (*(one.text for one in state.log[:-1]), str(state.hypothesis))),)
    return (_question(state, "test", TEST),)


def keep_test(state: State, answers: tuple[Any, ...]) -> Move:
    """Take what verifier or author found; a proof settles the answer with the hypothesis."""
    if isinstance(answers[0], Reply):
        return _tested(state, answers[0].value)
    ruling = rule(str(state.hypothesis), answers[0])
    if ruling.proved:
        closing = Closing(ruling.answer, proved=True, looked_at=True)
        return _tested(replace(state, closing=closing), Trial(True, "The verifier proved it."))
    if ruling.answer is None:
        return _tested(replace(state, hypothesis=None), Trial(False, ruling.objection))
    return stay(replace(state, looked_at=True))


def _tested(state: State, trial: Trial) -> Move:
    """Finalize h if it holds, or if there is no room for another."""
    ends = trial.holds or state.hypotheses >= state.options.max_hypotheses
    text = trial.reason or ("It holds." if trial.holds else "It does not hold.")
    to = "solution_finalization" if ends else "continuation_decision"
    return _record(replace(state, holds=trial.holds), to, text, data={"holds": trial.holds})


def ask_solution(state: State) -> tuple[Effect, ...]:
    """Ask for y, then have it looked at."""
    return ask_for(state, [one.text for one in state.log], _question(state, "finalize", FINALIZE))


def outcome(state: State) -> Outcome:
    """Return the answer; before there is one, the latest hypothesis or thought."""
    closing = state.closing
    counts = {"thought_count": state.generated, "branches": state.branches, "hypotheses": state.hypotheses}
    document = {**counts, "hypothesis": state.hypothesis, "holds": state.holds, **closing.document}
    if closing.answer is None and not closing.objections:
        thought = state.log[state.latest - 1].text if state.latest else None
        return Outcome(state.hypothesis or thought, document=document)
    if not state.holds and not closing.proved:
        detail = f"none of {state.hypotheses} hypotheses held; the last one was settled for"
        return Outcome(closing.answer, "max_hypotheses", detail, document)
    return Outcome(closing.answer, document=document)


def progress(state: State) -> dict[str, Any]:
    """Return how many thoughts there are."""
    return {"thoughts": state.generated, "max_thoughts": state.options.max_thoughts}


def _is_spent(state: State) -> bool:
    return state.generated >= state.options.max_thoughts


def _missing(state: State, number: int | None) -> Unreadable | None:
    if number is None or 1 <= number <= len(state.log):
        return None
    return Unreadable(f"there is no thought {number}; there are thoughts 1 to {len(state.log)}")


def _unplaced(state: State, decision: Decision | None) -> Unreadable | None:
    if decision is None or decision.next != "branch_creation":
        return None
    return _missing(state, decision.branch_from_thought)


def _record(
    state: State, to: str, text: str, revises: int | None = None, data: dict[str, Any] | None = None
) -> Move:
    thought = Thought(text, branch=state.branch, leaves=state.leaves, revises=revises, data=data or {})
    return go(replace(state, log=(*state.log, thought)), to, thought)


def asks(kind: str, task: str) -> Callable[[State], tuple[Effect, ...]]:
    """Return an `ask` that puts one question, the same in every state."""

    def ask(state: State) -> tuple[Effect, ...]:
        return (_question(state, kind, task),)

    return ask


def _question(state: State, kind: str, task: str) -> Ask:
    lines = [f"{_label(number, thought)}: {thought.text}" for number, thought in enumerate(state.log, 1)]
    prompt = "\n\n".join([f"Problem: {state.problem}", *lines, *state.closing.objections, task])
    facts = {"kind": kind, "problem": state.problem, "thoughts": [one.text for one in state.log]}
    return Ask(prompt, SYSTEM, {**facts, "hypothesis": state.hypothesis})


def _label(number: int, thought: Thought) -> str:
    notes = [thought.branch] if thought.branch else []
    if thought.revises is not None:
        notes.append(f"replaces thought {thought.revises}")
    return f"Thought {number} ({', '.join(notes)})" if notes else f"Thought {number}"
