"""Stage 3: the plans are scored, and one is selected.

By default all plans are judged side by side in one question; with `judge_plans=alone` each in a question of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...core.bodies import Body, Thought
from ...core.effects import Ask
from ...core.events import Failed, Reply
from ...core.strategy import inlined_schema
from ...patterns import lazy_pattern
from ...reading import parse
from ...reading.fit import Unreadable, fit, unwrap
from ...reading.json_in_text import json_values
from ...reading.vote import tally
from .planning import plan_branch, questions_of_a_round, select_plan
from .questions import EVALUATE, EVALUATE_ALONE, EvaluationReply, ScoreReply
from .state import (
    State,
    affordable,
    ask,
    plan_id,
    plan_letter,
    question,
    resources_shown,
    votes_due,
    with_iteration,
)
from .tasks import move_on

Scores = Mapping[int, ScoreReply]
"""What a round of scores says of the plans, by their numbers."""

_LETTER = lazy_pattern(r"\W*(?:(?:candidate|plan)\W*)*(?P<letter>[A-Z]|\d{1,2})\W*", re.IGNORECASE)
_LIST_NAMES = frozenset({"evaluations", "evaluation", "scores", "plans", "ratings", "results"})


def choose_plan(s: State) -> Body:
    """P ← argmax_i score(P_i), the first of equals; each round of scores votes for its highest, and most votes win."""
    ballots: list[str] = []
    drawn, size = 0, questions_of_a_round(s, len(s.now.plans))
    while due := affordable(s, votes_due(s, ballots, drawn) * size) // size:
        rounds = range(drawn, drawn + due)
        s, replies = yield from ask(s, *(each for sample in rounds for each in _questions(s, sample)))
        drawn += due
        for start in range(0, len(replies), size):
            scores = _scores_of_round(replies[start : start + size])
            s = _book_scores(s, scores)
            # The first of equals is the one of the lowest number.
            best = max(sorted(scores), key=lambda number: scores[number].overall_score, default=None)
            ballots += [] if best is None else [str(best)]
    votes = tally(ballots)
    s = select_plan(s, int(votes[0].answer) - 1 if votes else 0)
    return move_on(s, "plan_evaluation", *(_verdicts(s) if drawn else ()))


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


def _questions(state: State, sample: int) -> list[Ask]:
    """Return the questions of one round of scores."""
    if state.options.judge_plans == "together":
        return [_question_of_all(state, sample)]
    return [_question_of_one(state, number, sample) for number in range(1, len(state.now.plans) + 1)]


def _question_of_all(state: State, sample: int) -> Ask:
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
    facts, form = {"candidates": count}, _form_of_all(count)
    return question(state, "score", task, sample=sample, by="judge", form=form, facts=facts)


def _form_of_all(count: int) -> dict[str, Any]:
    form = inlined_schema(EvaluationReply)
    evaluations = form["properties"]["evaluations"]
    evaluations["minItems"] = evaluations["maxItems"] = count
    evaluations["items"]["properties"]["plan"]["enum"] = [plan_letter(n) for n in range(1, count + 1)]
    return form


def _question_of_one(state: State, number: int, sample: int) -> Ask:
    plan = state.now.plans[number - 1]
    task = EVALUATE_ALONE.format(resources=resources_shown(state), plan=plan.text)
    form, facts = inlined_schema(ScoreReply), {"candidate": number}
    about = plan_id(state.number, plan.draft) if plan.draft else ""
    return question(state, "score", task, sample=sample, by="judge", form=form, facts=facts, about=about)


# -- the replies


def read_scores(
    _: State, ask: Ask, replies: Sequence[str]
) -> tuple[ScoreReply | tuple[ScoreReply, ...], str] | Unreadable:
    """Read the score of one plan, or those of all in the plans' order; every plan has to have one."""
    if "candidates" not in ask.facts:
        return parse.read_form(replies[-1], ScoreReply)
    count = ask.facts["candidates"]
    reading = parse.read_form(replies[-1], EvaluationReply)
    if isinstance(reading, Unreadable):
        reading = _scores_by_letter(replies[-1], count) or reading
    if isinstance(reading, Unreadable):
        return reading
    found: dict[int, ScoreReply] = {}
    for verdict in reading[0].evaluations:
        number = _number_of(verdict.plan, count)
        if number is None:
            letters = ", ".join(map(plan_letter, range(1, count + 1)))
            return Unreadable(f"there is no plan {verdict.plan[:60]!r}; the plans are: {letters}")
        if number in found:
            return Unreadable(f"plan {plan_letter(number)} has two scores")
        found[number] = ScoreReply(reason=verdict.reason, overall_score=verdict.overall_score)
    missing = [plan_letter(number) for number in range(1, count + 1) if number not in found]
    if missing:
        return Unreadable(f"no score for plan {', '.join(missing)}; each plan needs one")
    return tuple(found[number] for number in range(1, count + 1)), reading[1]


def _number_of(name: str, count: int) -> int | None:
    """Return the number of the plan that a name means: `B`, `Plan B`, `2`."""
    match = _LETTER.fullmatch(name)
    if match is None:
        return None
    letter = match["letter"].upper()
    number = int(letter) if letter.isdigit() else ord(letter) - ord("A") + 1
    return number if 1 <= number <= count else None


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


# -- booking them


def _scores_of_round(replies: Sequence[Reply | Failed]) -> Scores:
    """Return what a round says, by the plans' numbers; what failed says nothing."""
    scores: dict[int, ScoreReply] = {}
    for number, reply in enumerate(replies, 1):
        if isinstance(reply, Reply):
            verdict = reply.value
            scores |= dict(enumerate(verdict, 1)) if isinstance(verdict, tuple) else {number: verdict}
    return scores


def _book_scores(state: State, scores: Scores) -> State:
    plans = [
        replace(
            plan,
            scores=(*plan.scores, scores[number].overall_score),
            reasons=(*plan.reasons, scores[number].reason),
        )
        if number in scores
        else plan
        for number, plan in enumerate(state.now.plans, 1)
    ]
    return with_iteration(state, plans=tuple(plans))
