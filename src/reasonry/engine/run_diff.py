"""Where two runs part, and what came of it: a pure function over two records.

Rule 1: what a run asked of models, tools and verifiers is aligned by the ids of the effects. They are counted in the
        order asked, so two runs of one strategy have the same ids for as long as they go the same way, whatever the
        order in which the answers arrived.
Rule 2: the first effect that differs is where they part: it was asked something else, was answered otherwise, or only
        one of the runs asked it. Times and prices make no difference there.
Rule 3: a fork is compared with its run from the point on where it was forked: the answers that it took over are alike,
        though other options may have worded their questions otherwise.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ..errors import UsageError
from .record import Record

Document = dict[str, Any]

NO_DIFFERENCE: Final = frozenset({"at_ms", "usage", "model", "lost", "native", "value"})
"""Members of an event that say when it came, what it took and how it was read, not what it says."""


def diff_runs(first: Record, second: Record) -> Document:
    """Return where two runs part and what differs between them, as one document of JSON data; `a` is the first.

    Returns:
        `runs`: what each is; `fork`: {`of`: `a` or `b`, `at`: its event}, or None; `problem`, `answer`: {`same`, `a`,
        `b`}; `path`: {`alike`: edges, `a`, `b`: the first edges that differ}; `asked`: {`alike`, `a`, `b`} counts
        of questions, tool calls and claims; `parting`: None or {`what`: `question`, `outcome`, `only_a`, `only_b`,
        `strategy` or `end`, `id`, `stage`, `a`, `b`}; `spend`: [{`name`, `a`, `b`}]; `terms`: [{`name`, `a`, `b`}] of
        the strategy, model, options and limits that are not the same.

    Raises:
        UsageError: They are the same run.
    """
    runs = (first, second)
    if first.result.run_id == second.result.run_id:
        raise UsageError(f"both are the run {first.result.run_id}; name two runs", option="run_id")
    asked, paths = [_effects(run) for run in runs], [list(run.entries("path")) for run in runs]
    fork = _fork(first, second)
    events = (second if fork and fork["of"] == "a" else first).entries("events")
    # The effects whose answers a fork took over.
    shared = {event["id"] for event in itertools.islice(events, (fork["at"] or 0) if fork else 0)}
    alike, parting = _part(runs, asked, shared)
    edges = next(
        (number for number, (a, b) in enumerate(zip(*paths, strict=False)) if a != b), min(map(len, paths))
    )
    answers, problems = [run.result.answer for run in runs], [run.head["problem"] for run in runs]
    return {
        "runs": _sides([_describe(run) for run in runs]),
        "fork": fork,
        "problem": {"same": problems[0] == problems[1], **_sides(problems)},
        "answer": {"same": answers[0] == answers[1], **_sides(answers)},
        "path": {
            "alike": edges,
            **_sides([path[edges] if edges < len(path) else None for path in paths]),
        },
        "asked": {"alike": alike, **_sides([len(effects) for effects in asked])},
        "parting": parting,
        "spend": _rows([_spend(run) for run in runs]),
        "terms": [row for row in _rows([_terms(run) for run in runs]) if row["a"] != row["b"]],
    }


def _sides(values: list[Any]) -> Document:
    return {"a": values[0], "b": values[1]}


def _rows(named: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Return what the sides have under each name that one of them knows."""
    names = dict.fromkeys(itertools.chain(*named))
    return [{"name": name, **_sides([each.get(name) for each in named])} for name in names]


def _describe(run: Record) -> Document:
    result, end = run.result, run.result.termination
    named = ("run_id", "session_id", "strategy", "model", "outcome", "status")
    return {
        **{name: getattr(result, name) for name in named},
        "reason": end.reason,
        "detail": end.detail,
        "created_at_ms": run.head["created_at_ms"],
        "warnings": list(result.warnings),
    }


def _fork(first: Record, second: Record) -> Document | None:
    for side, run, other in (("a", second, first), ("b", first, second)):
        if run.head.get("forked_from") == other.result.run_id:
            return {"of": side, "at": run.head.get("forked_at")}
    return None


# -- where they part


def _effects(run: Record) -> dict[str, Document]:
    """Return what was asked and what came of it, by the ids of the effects."""
    found = {
        entry["id"]: {"stage": entry["stage"], "prompt": entry["prompt"]}
        for entry in run.entries("questions")
    }
    for event in run.entries("events"):
        if event["id"] is not None:
            content = {name: value for name, value in event.items() if name not in (*NO_DIFFERENCE, "id")}
            found.setdefault(event["id"], {}).update(outcome=content)
    return found


def _place(effect_id: str) -> tuple[tuple[int, str], ...]:
    """Return what ids are sorted by: `e2` before `e10`, `e1/e2` within `e1`."""
    return tuple((int(number or 0), text) for text, number in re.findall(r"(\D+)(\d*)", effect_id))


def _part(
    runs: Sequence[Record], asked: Sequence[Mapping[str, Document]], shared: Collection[str]
) -> tuple[int, Document | None]:
    """Return how many effects are alike, and what the first difference is."""
    (a, b), results = asked, [run.result for run in runs]
    nowhere = {"id": None, "stage": None}
    if results[0].strategy != results[1].strategy:
        return 0, {"what": "strategy", **nowhere, **_sides([run.strategy for run in results])}
    every = sorted({*a, *b}, key=_place)
    for alike, effect_id in enumerate(every):
        sides = [a.get(effect_id), b.get(effect_id)]
        difference = None if effect_id in shared else _difference(*sides)
        if difference is not None:
            stage = (sides[0] or sides[1] or {}).get("stage")
            shown = [_side(effect, difference) for effect in sides]
            return alike, {"what": difference, "id": effect_id, "stage": stage, **_sides(shown)}
    if len({(run.outcome, run.termination.reason, run.answer) for run in results}) == 1:
        return len(every), None
    ends = [f"{run.outcome or run.status}: {run.termination.reason}" for run in results]
    return len(every), {"what": "end", **nowhere, **_sides(ends)}


def _difference(a: Document | None, b: Document | None) -> str | None:
    if a is None or b is None:
        return "only_b" if a is None else "only_a"
    # A run that is shown from its events alone has no questions.
    asks = [(effect["stage"], effect["prompt"]) for effect in (a, b) if "prompt" in effect]
    # Of different kinds: a model was asked, and a tool called.
    kinds = {effect.get("outcome", {}).get("type") for effect in (a, b)} - {None, "failed"}
    if len({*asks}) > 1 or len(kinds) > 1:
        return "question"
    return "outcome" if a.get("outcome") != b.get("outcome") else None


def _side(effect: Document | None, difference: str) -> Any:
    """Return what there is to show of one side."""
    if effect is None:
        return None
    outcome = effect.get("outcome")
    if difference != "outcome" and "prompt" in effect:
        return effect["prompt"]
    if outcome is not None and isinstance(outcome.get("text"), str):
        return outcome["text"]
    return outcome


# -- spend and terms


def _spend(run: Record) -> dict[str, Any]:
    usage = run.result.usage
    return {
        "calls": usage.calls,
        "rounds": run.result.rounds,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": usage.usd,
        "seconds": run.result.duration_ms / 1000,
        "thoughts": sum(1 for _ in run.entries("thoughts")),
    }


def _terms(run: Record) -> dict[str, Any]:
    named = {"strategy": run.result.strategy}
    for group, prefix in (("crew", ""), ("options", "options."), ("budget", "budget.")):
        named |= {f"{prefix}{name}": value for name, value in run.head[group].items()}
    return named
