"""A pure function that finds the first difference between the records of two runs, and compares the results.

Rule 1: requests to models, tools and verifiers are matched by their effect ids. Ids are numbered in the order of the
        requests. So two runs of one strategy have the same ids until they diverge, in whatever order answers arrived.
Rule 2: the runs diverge at the first effect that differs in its question or its answer, or that only one run has.
        Times and prices make no difference.
Rule 3: the comparison of a fork with the run that it copied starts at the fork point. Before this point, the answers
        are equal, but questions may have other words, because the fork has other options.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from ..errors import UsageError
from .record import Record

Document = dict[str, Any]

NO_DIFFERENCE: Final = frozenset({"at_ms", "usage", "model", "lost", "native", "value"})
"""Members of an event that do not count as a difference: its time, usage, model and reading."""
_DESCRIBED: Final = (
    "run_id",
    "session_id",
    "strategy",
    "model",
    "outcome",
    "status",
    "created_at_ms",
    "warnings",
)
_SPENT: Final = ("calls", "samples", "rounds", "input_tokens", "output_tokens", "usd", "seconds", "thoughts")


def diff_runs(first: Record, second: Record) -> Document:
    """Compare two runs. Return a JSON document, in which `a` is the first run and `b` is the second run.

    Returns:
        `runs`: a description of each run. `fork`: {`of` (the run that was copied: `a` or `b`), `at` (how many events
        were copied)}, or None. `problem` and `answer`: {`same`, `a`, `b`}. `asked`: {`alike` (how many effects precede
        the first difference), `a` and `b` (how many effects each run has)}. `parting`: the first difference, or None:
        {`what` (`question`, `outcome`, `only_a`, `only_b`, `strategy` or `end`), `id`, `stage`, `a`, `b`}. `spend`, and
        `terms` (the strategy, models, options and limits that differ): [{`name`, `a`, `b`}].

    Raises:
        UsageError: Both records belong to the same run.
    """
    runs = (first, second)
    traces: list[Document] = [{**run.result.document(), **run.head} for run in runs]
    if first.result.run_id == second.result.run_id:
        raise UsageError(f"both are the run {first.result.run_id}; name two runs", option="run_id")
    asked = [_effects(run) for run in runs]
    fork, shared = None, set[str]()
    for side, run, other in (("a", second, first), ("b", first, second)):
        if run.head["forked_from"] == other.result.run_id:
            at: int = run.head.get("forked_at") or 0
            # The effects whose answers the fork copied.
            shared = {event["id"] for event in islice(run.entries("events"), at)}
            fork = {"of": side, "at": at}
    alike, parting = _part(traces, asked, shared)
    ends = [{name: trace["termination"][name] for name in ("reason", "detail")} for trace in traces]
    described = [{name: trace[name] for name in _DESCRIBED} for trace in traces]
    return {
        "runs": _sides([start | end for start, end in zip(described, ends, strict=True)]),
        "fork": fork,
        **{
            name: {"same": traces[0][name] == traces[1][name], **_sides([trace[name] for trace in traces])}
            for name in ("problem", "answer")
        },
        "asked": {"alike": alike, **_sides([len(effects) for effects in asked])},
        "parting": parting,
        "spend": _rows([_spend(*each) for each in zip(traces, runs, strict=True)]),
        "terms": [row for row in _rows([_terms(trace) for trace in traces]) if row["a"] != row["b"]],
    }


def _sides(values: Sequence[Any]) -> Document:
    return {"a": values[0], "b": values[1]}


def _rows(named: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Return a row for each name, with the values of both sides."""
    names = dict.fromkeys(chain(*named))
    return [{"name": name, **_sides([each.get(name) for each in named])} for name in names]


# -- the first difference


def _effects(run: Record) -> dict[str, Document]:
    """Map each effect id of a run to the request and its result."""
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
    """Return a sort key for an effect id, which puts `e2` before `e10`, and `e1/e2` between `e1` and `e2`."""
    return tuple((int(number or 0), text) for text, number in re.findall(r"(\D+)(\d*)", effect_id))


def _part(
    traces: Sequence[Document], asked: Sequence[Mapping[str, Document]], shared: Collection[str]
) -> tuple[int, Document | None]:
    """Return how many effects come before the first difference, and the difference, if any."""
    nowhere, strategies = {"id": None, "stage": None}, [trace["strategy"] for trace in traces]
    if strategies[0] != strategies[1]:
        return 0, {"what": "strategy", **nowhere, **_sides(strategies)}
    every = sorted({*asked[0], *asked[1]}, key=_place)
    for alike, effect_id in enumerate(every):
        a, b = (effects.get(effect_id) for effects in asked)
        if effect_id not in shared and (difference := _difference(a, b)) is not None:
            shown = _sides([_side(a, difference), _side(b, difference)])
            return alike, {"what": difference, "id": effect_id, "stage": (a or b or {}).get("stage"), **shown}
    ends = [f"{trace['outcome'] or trace['status']}: {trace['termination']['reason']}" for trace in traces]
    is_same = ends[0] == ends[1] and traces[0]["answer"] == traces[1]["answer"]
    return len(every), None if is_same else {"what": "end", **nowhere, **_sides(ends)}


def _difference(a: Document | None, b: Document | None) -> str | None:
    if a is None or b is None:
        return "only_b" if a is None else "only_a"
    # A record that was made from events alone has no questions.
    asks = [(effect["stage"], effect["prompt"]) for effect in (a, b) if "prompt" in effect]
    # The kinds differ if one run asked a model and the other run called a tool.
    kinds = {effect.get("outcome", {}).get("type") for effect in (a, b)} - {None, "failed"}
    if len({*asks}) > 1 or len(kinds) > 1:
        return "question"
    return "outcome" if a.get("outcome") != b.get("outcome") else None


def _side(effect: Document | None, difference: str) -> Any:
    if effect is None:
        return None
    outcome = effect.get("outcome")
    if difference != "outcome" and "prompt" in effect:
        return effect["prompt"]
    if outcome is not None and isinstance(outcome.get("text"), str):
        return outcome["text"]
    return outcome


# -- spend and terms


def _spend(trace: Document, run: Record) -> Document:
    times = {"seconds": trace["duration_ms"] / 1000, "thoughts": sum(1 for _ in run.entries("thoughts"))}
    spent = {**trace["usage"], "rounds": trace["rounds"], **times}
    return {name: spent[name] for name in _SPENT}


def _terms(trace: Document) -> Document:
    groups = (("crew", ""), ("options", "options."), ("budget", "budget."))
    found = {f"{start}{name}": value for group, start in groups for name, value in trace[group].items()}
    return {"strategy": trace["strategy"], **found}
