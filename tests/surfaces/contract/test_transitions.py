"""The tables of stages hold on every surface: of all pairs of stages, the edges are taken and the others refused."""

from itertools import pairwise
from typing import Any

import pytest

import reasonry.stores
from reasonry.core.strategy import Strategy
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES
from tests.guided.walking import filled

from .surface import Surface
from .uses import NAMES, THOUGHT

FLOWS = (
    "linear",
    "chain_of_thought",
    "react",
    "rewoo",
    "scratchpad",
    "self_ask",
    "self_consistency",
    "step_back",
    "tree_of_thoughts",
)
"""The strategies whose tables the design of the flow engine has."""


class KeptStore(MemoryStore):
    """A store that one command leaves open for the next: to open one takes longer than all else of a command."""

    async def close(self) -> None:
        """Leave it open."""


@pytest.mark.parametrize("name", NAMES)
def test_of_the_562_pairs_of_stages_the_74_edges_are_taken_and_the_others_refused(
    name: str, surfaces: dict[str, Surface], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "cli":
        kept = KeptStore()
        monkeypatch.setattr(reasonry.stores, "open_store", lambda spec: kept)
    starts = [(STRATEGIES[flow], start) for flow in FLOWS for start in STRATEGIES[flow].by_name]
    walked = [_walk_from(surfaces[name], strategy, start) for strategy, start in starts]
    assert (sum(taken for taken, _ in walked), sum(refused for _, refused in walked)) == (74, 488)


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_names_the_path_that_is_taken_in_its_place(name: str, surfaces: dict[str, Surface]) -> None:
    surface, strategy = surfaces[name], STRATEGIES["chain_of_thought"]
    begun = surface.call("think", {**_thought(strategy, "problem_reception", 1), "strategy": strategy.name})
    last = _thought(strategy, "final_response", 2)
    last |= {"session": begun.session_id, "next_thought_needed": False}
    refused = surface.call("think", last)
    assert refused.code == "invalid_request"
    path = refused.document["error"]["instead"]["stage"]
    assert path == [*strategy.by_name][1:]
    data = {stage: filled(strategy.by_name[stage]) for stage in path}
    stage = ",".join(path) if name == "cli" else path
    taken = surface.call("think", {**last, "stage": stage, "data": data})
    assert (taken.code, taken.document["stage"], _length(taken.document)) == ("", "final_response", 2)


def _walk_from(surface: Surface, strategy: Strategy[Any, Any], start: str) -> tuple[int, int]:
    """Try each other stage after a first one; return how many were taken and how many refused."""
    begun = surface.call("think", {**_thought(strategy, start, 1), "strategy": strategy.name})
    assert not begun.code
    assert ("stages_skipped" in _notices(begun.document)) is (start != strategy.first)
    session, edges = {"session": begun.session_id}, strategy.by_name[start].to
    others = [stage for stage in strategy.by_name if stage not in (start, *edges)]
    for to in others:
        reply = surface.call("think", {**_thought(strategy, to, 2), **session})
        assert reply.code == "invalid_request", (start, to)
        error = reply.document["error"]
        assert error["message"].startswith(f"Invalid transition from {start} to {to}. Legal next stages: ")
        assert (error["stage"], error["choices"]) == (start, list(edges))
        path = error.get("instead", {}).get("stage", [])
        assert bool(path) is _is_reachable(strategy, start, to)
        assert set(pairwise([start, *path])) <= set(strategy.edges)
        assert not path or path[-1] == to
    stayed = surface.call("think", {**_thought(strategy, start, 2), **session})
    assert _length(stayed.document) == 2, "what was refused has changed nothing"
    for count, to in enumerate(edges, 3):
        # From the thought that stands at the stage, however the session has moved since.
        reply = surface.call("think", {**_thought(strategy, to, 2), **session, "branch_from_thought": 1})
        assert (reply.code, reply.document["stage"], _length(reply.document)) == ("", to, count), (start, to)
    return len(edges), len(others)


def _is_reachable(strategy: Strategy[Any, Any], start: str, to: str) -> bool:
    reached = set(strategy.by_name[start].to)
    while new := {there for stage in reached for there in strategy.by_name[stage].to} - reached:
        reached |= new
    return to in reached


def _thought(strategy: Strategy[Any, Any], stage: str, number: int) -> dict[str, Any]:
    data = filled(strategy.by_name[stage])
    plain = {**THOUGHT, "thought_number": number, "total_thoughts": 3, "stage": stage}
    return plain | ({"data": data} if data else {})


def _notices(document: dict[str, Any]) -> list[str]:
    return [notice["reason"] for notice in document.get("notices", [])]


def _length(document: dict[str, Any]) -> int:
    return document.get("thought_history_length") or document["thoughtHistoryLength"]
