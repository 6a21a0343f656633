"""Stage 3: the plans are scored side by side, in one question, and one is selected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ...core.bodies import Body, Thought
from ...core.effects import Ask
from ...core.events import Reply
from ...core.strategy import inlined_schema
from ...patterns import lazy_pattern
from ...reading import parse
from ...reading.fit import Unreadable, fit, unwrap
from ...reading.json_in_text import json_values
from ...reading.vote import tally
from .planning import plan_branch, select_plan
from .questions import EVALUATE, EvaluationReply, PlanScore
from .state import (
    State,
    affordable,
    ask,
    plan_letter,
    question,
    resources_shown,
    votes_due,
    with_iteration,
)
from .tasks import move_on

_LETTER = lazy_pattern(r"\W*(?:(?:candidate|plan)\W*)*(?P<letter>[A-Z]|\d{1,2})\W*", re.IGNORECASE)
_LIST_NAMES = frozenset({"evaluations", "evaluation", "scores", "plans", "ratings", "results"})


def choose_plan(s: State) -> Body:
    """P ← argmax_i score(P_i), the first of equals; each round of scores votes for its highest, and most votes win."""
    ballots: list[str] = []
    drawn = 0
    while due := affordable(s, votes_due(s, ballots, drawn)):
        s, replies = yield from ask(s, *(_question(s, sample) for sample in range(drawn, drawn + due)))
        drawn += due
        for reply in replies:
            if isinstance(reply, Reply):
                scores: tuple[PlanScore, ...] = reply.value
                s = _book_scores(s, scores)
                ballots.append(str(max(range(len(scores)), key=lambda place: scores[place].overall_score)))
    votes = tally(ballots)
    s = select_plan(s, int(votes[0].answer) if votes else 0)
    return move_on(s, "plan_evaluation", *(_verdicts(s) if drawn else ()))


def _book_scores(state: State, scores: Sequence[PlanScore]) -> State:
    plans = [
        replace(plan, scores=(*plan.scores, score.overall_score), reasons=(*plan.reasons, score.reason))
        for plan, score in zip(state.now.plans, scores, strict=True)
    ]
    return with_iteration(state, plans=tuple(plans))


def _verdicts(state: State) -> list[Thought]:
    """Return what was said of each plan, and which was selected."""
    thoughts = [
        Thought(
            f"Plan {plan_letter(number)}: {plan.shown_score}. {' '.join(dict.fromkeys(plan.reasons))}".strip(),
            score=plan.score,
            branch=plan_branch(state, number),
        )
        for number, plan in enumerate(state.now.plans, 1)
    ]
    assert state.now.selected is not None, "selected before"
    selected = state.now.plans[state.now.selected]
    selection = f"Selected plan {plan_letter(state.now.selected + 1)}: {selected.shown_score}"
    return [*thoughts, Thought(selection, data={"selected_plan": state.now.selected + 1})]


# -- the questions


def _question(state: State, sample: int) -> Ask:
    """Ask for all plans; each vote is shown them in another order, since judges favour places."""
    count = len(state.now.plans)
    order = [(place + sample) % count + 1 for place in range(count)]
    plans = "\n\n".join(f"Plan {plan_letter(n)}:\n{state.now.plans[n - 1].text}" for n in order)
    reasons = ["strengths and weaknesses in a sentence", *(["…"] * (count - 1))]
    shown = (
        f'{{"plan": "{plan_letter(n)}", "reason": "{reason}", "overall_score": 0 to 100}}'
        for n, reason in zip(order, reasons, strict=True)
    )
    wanted = f'{{"evaluations": [{", ".join(shown)}]}}'
    task = EVALUATE.format(resources=resources_shown(state), count=count, plans=plans, form=wanted)
    facts, form = {"candidates": count}, _form(count)
    return question(state, "score", task, sample=sample, by="judge", form=form, facts=facts)


def _form(count: int) -> dict[str, Any]:
    form = inlined_schema(EvaluationReply)
    evaluations = form["properties"]["evaluations"]
    evaluations["minItems"] = evaluations["maxItems"] = count
    evaluations["items"]["properties"]["plan"]["enum"] = [plan_letter(n) for n in range(1, count + 1)]
    return form


# -- the replies


def read_scores(_: State, ask: Ask, replies: Sequence[str]) -> tuple[tuple[PlanScore, ...], str] | Unreadable:
    """Read the scores of all plans, in the plans' order; every plan has to have one."""
    count = ask.facts["candidates"]
    reading = parse.read_form(replies[-1], EvaluationReply)
    if isinstance(reading, Unreadable):
        reading = _scores_by_letter(replies[-1], count) or reading
    if isinstance(reading, Unreadable):
        return reading
    found: dict[str, PlanScore] = {}
    letters = [plan_letter(number) for number in range(1, count + 1)]
    for verdict in reading[0].evaluations:
        letter = _letter_of(verdict.plan)
        if letter not in letters:
            return Unreadable(f"there is no plan {verdict.plan[:60]!r}; the plans are: {', '.join(letters)}")
        if letter in found:
            return Unreadable(f"plan {letter} has two scores")
        found[letter] = replace(verdict, plan=letter)
    if missing := [letter for letter in letters if letter not in found]:
        return Unreadable(f"no score for plan {', '.join(missing)}; each plan needs one")
    return tuple(found[letter] for letter in letters), reading[1]


def _letter_of(name: str) -> str:
    """Return the letter of the plan that a name means: `B`, `Plan B`, `2`; empty if it means none."""
    match = _LETTER.fullmatch(name)
    letter = match["letter"].upper() if match else ""
    return plan_letter(int(letter)) if letter.isdigit() else letter


def _scores_by_letter(reply: str, count: int) -> tuple[EvaluationReply, str] | None:
    """Read scores by plan (`{"A": 78, …}`, `{"Plan A": {…}, …}`), or a list of them in the order of the plans."""
    for value, mode in reversed(list(json_values(reply))):
        listed = fit({"evaluations": _entries(value, count)}, EvaluationReply)
        if not isinstance(listed, Unreadable):
            return listed, mode
    return None


def _entries(value: Any, count: int) -> list[dict[str, Any]]:
    inner = unwrap(value, _LIST_NAMES)
    if isinstance(inner, dict):
        named = (item for key, item in inner.items() if str(key).casefold() in _LIST_NAMES)
        inner = next(named, inner)
    if isinstance(inner, list) and len(inner) == count:
        inner = {plan_letter(place): item for place, item in enumerate(inner, 1)}
    if not isinstance(inner, dict):
        return []
    return [
        {"plan": str(key), **item} if isinstance(item, dict) else {"plan": str(key), "overall_score": item}
        for key, item in inner.items()
    ]
