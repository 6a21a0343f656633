"""Valuing: what is proven wrong is pruned, what is proven right ends the search, the rest gets a score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ...core.effects import Ask, Effect, Verify
from ...core.events import Failed, Reply, Verified
from ...core.parse import Unreadable
from ...core.score import parse_scores
from ...core.search import has_converged
from ...core.strategy import Move, Thought, fail, go, stay
from ...core.tree import Node, grown, ranked
from . import prompts
from .state import ROOT, State, noted

UNKNOWN = 0.5
"""The score of a thought whose score could not be read."""

Answers = tuple[Any, ...]


def ask_for_scores(state: State) -> Sequence[Effect]:
    """Put the new thoughts to the verifier, where there is one; then ask how promising the others are."""
    if state.options.verify and not state.checked:
        return [Verify(state.problem, (*state.texts(one.parent or ROOT), one.content)) for one in state.fresh]
    return [
        prompts.evaluation(
            state.options,
            state.problem,
            state.texts(parent),
            state.nodes[parent].depth,
            [one.content for one in group],
            sample,
        )
        for parent, group, sample in _evaluations(state)
    ]


def _evaluations(state: State) -> Iterator[tuple[str, list[Node], int]]:
    """Yield what is asked in a round: a node, those of its children that are to be valued, the sample."""
    for parent in state.expanding:
        group = [one for one in state.fresh if one.parent == parent and not one.refuted]
        if group:
            yield from ((parent, group, sample) for sample in range(state.options.samples_per_evaluation))


def read_scores(state: State, ask: Ask, texts: Sequence[str]) -> tuple[list[float], str] | Unreadable:
    """Read a score for every candidate; a later reply may fill in what an earlier one left out."""
    thoughts: list[str] = ask.facts["thoughts"]
    latest, mode = parse_scores(texts[-1], thoughts)
    scores = _scores_in(thoughts, texts[:-1]) | latest
    missing = [str(number) for number in range(1, len(thoughts) + 1) if f"t{number}" not in scores]
    if missing:
        return Unreadable(f"there is no score from 0 to 1 in it for candidate {', '.join(missing)}")
    return [scores[f"t{number}"] for number in range(1, len(thoughts) + 1)], mode


def _scores_in(thoughts: Sequence[str], unusable: Sequence[str]) -> dict[str, float]:
    """Return what scores there are in replies that could not be used as a whole, later ones before earlier ones."""
    scores: dict[str, float] = {}
    for text in unusable:
        found, mode = parse_scores(text, thoughts)
        # Such a reply may have been cut off in the middle of a number; what was put right could be half of one.
        if mode != "repaired":
            scores |= found
    return scores


def take_scores(state: State, answers: Answers) -> Move:
    """Fold verdicts in, then scores; then see whether the search has ended."""
    if state.options.verify and not state.checked:
        return _take_verdicts(state, answers)
    state = noted(state, "evaluation", answers)
    given: dict[str, list[float]] = {}
    for (_, group, _), answer in zip(_evaluations(state), answers, strict=True):
        for one, score in _given(group, answer):
            given.setdefault(one.id, []).append(score)
    failed = [answer for answer in answers if isinstance(answer, Failed)]
    fatal = next((one for one in failed if one.code != "output_invalid"), None)
    fresh = [_valued(one, given.get(one.id), guess=fatal is None) for one in state.fresh]
    if fatal is not None:
        return fail(_planted(state, fresh), "error", fatal.message, fatal.code)
    if failed:
        state = replace(state, errors=(*state.errors, *(["scores_parse_failed"] * len(failed))))
    return _end_of_round(state, fresh)


def _given(group: Sequence[Node], answer: Reply | Failed) -> Iterator[tuple[Node, float]]:
    """Yield the scores of one answer; from replies that could not be read whole, those that could be read."""
    if isinstance(answer, Reply):
        yield from zip(group, answer.value, strict=True)
        return
    scores = _scores_in([one.content for one in group], answer.replies)
    yield from ((one, scores[f"t{n}"]) for n, one in enumerate(group, start=1) if f"t{n}" in scores)


def _valued(one: Node, scores: Sequence[float] | None, *, guess: bool) -> Node:
    if one.refuted:
        return one
    if scores:
        return replace(one, score=sum(scores) / len(scores))
    return replace(one, score=UNKNOWN, guessed=True) if guess else one


def _take_verdicts(state: State, answers: Answers) -> Move:
    state = noted(state, "verification", answers)
    failed = next((answer for answer in answers if isinstance(answer, Failed)), None)
    verdicts = [
        (one, Verified("unknown") if isinstance(it, Failed) else it)
        for one, it in zip(state.fresh, answers, strict=True)
    ]
    fresh = tuple(
        replace(one, refuted=True, score=0.0) if it.verdict == "wrong" else one for one, it in verdicts
    )
    state = replace(state, fresh=fresh, checked=failed is None)
    for one, it in verdicts:
        if it.verdict == "right":
            solved = [replace(each, score=1.0) if each.id == one.id else each for each in fresh]
            closed = "closed" if it.answer is not None else ""
            state = replace(state, reason="verified", winner=one.id, answer=it.answer, settled=closed)
            return _end_of_round(state, solved)
    if failed is not None:
        return fail(state, "error", failed.message, failed.code)
    return stay(state) if any(not one.refuted for one in fresh) else _end_of_round(state, fresh)


def _planted(state: State, fresh: Sequence[Node]) -> State:
    """Put the new thoughts that are valued or refuted into the tree."""
    ended = bool(state.reason)
    ready = [one for one in fresh if ended or one.score is not None]
    left = tuple(one for one in fresh if not ended and one.score is None)
    return replace(state, nodes=grown(state.nodes, ready), fresh=left)


def _end_of_round(state: State, fresh: Sequence[Node]) -> Move:
    state = _planted(state, fresh)
    alive = [one for one in fresh if not one.refuted]
    if alive:
        best = max(
            (*state.best_scores[-1:], *(one.score for one in alive if one.score is not None)), default=0.0
        )
        state = replace(state, best_scores=(*state.best_scores, best))
    if not state.reason:
        reason, winner = _why_stop(state, alive)
        state = replace(state, reason=reason, winner=winner)
    return go(state, "branch_selection", *_valuations(state, fresh))


def _why_stop(state: State, alive: Sequence[Node]) -> tuple[str, str | None]:
    """Return why the search ends after this round, and the node that ended it; nothing if it goes on.

    A round in which everything was refuted has valued nothing, so that only the caps can end the search after it.
    """
    options = state.options
    if len(state.nodes) >= options.max_nodes:
        return "max_nodes", None
    if options.max_duration_ms is not None and state.at_ms >= options.max_duration_ms:
        return "max_duration", None
    threshold, depth = options.early_success_threshold, options.min_depth
    if winners := ranked(one for one in alive if (one.score or 0) >= threshold and one.depth >= depth):
        return "threshold", winners[0].id
    if alive and has_converged(state.best_scores, options.convergence_window, options.min_score_improvement):
        return "converged", None
    if options.traversal_strategy == "best_first" and any(one.depth >= options.max_depth for one in alive):
        return "max_depth", None
    return "", None


def _valuations(state: State, fresh: Sequence[Node]) -> Iterator[Thought]:
    """Yield, for every node of the round, how its children were valued."""
    for parent in state.expanding:
        group = [one for one in fresh if one.parent == parent]
        scores = {state.branch(one.id) or "": one.score for one in group}
        said = [
            f"{name}: {'refuted' if one.refuted else 'not valued' if one.score is None else f'{one.score:.2f}'}"
            for name, one in zip(scores, group, strict=True)
        ]
        best = max((one.score for one in group if one.score is not None), default=None)
        yield Thought(
            "Scores: " + ", ".join(said), branch=state.branch(parent), score=best, data={"scores": scores}
        )
