"""Diagrams: Mermaid text that says what the table says."""

from __future__ import annotations

import re

from reasonry.app.strategy_table import diagram
from reasonry.core.registry import resolve
from reasonry.core.strategy import Stage, Strategy
from reasonry.strategies import STRATEGIES


def test_the_diagram_has_every_stage_once_and_every_edge_once() -> None:
    strategy = resolve("tree_of_thoughts", STRATEGIES)
    lines = diagram(strategy).splitlines()
    assert lines[0] == "flowchart TD"
    arrows = [tuple(line.strip().split(" --> ")) for line in lines if "-->" in line]
    assert arrows == list(strategy.edges)
    assert len(lines) == 1 + len(strategy.stages) + len(strategy.edges)


def test_ends_are_round_and_decisions_are_rhombi() -> None:
    drawn = diagram(resolve("tree-of-thoughts", STRATEGIES))
    assert 'problem_reception(["problem_reception"])' in drawn
    assert 'final_response(["final_response"])' in drawn
    assert 'continuation_decision{"continuation_decision"}' in drawn
    assert 'branch_selection["branch_selection"]' in drawn


def test_names_that_mermaid_would_misread_get_ids_of_their_own() -> None:
    odd = Strategy(
        "odd", "Odd", "", "", (Stage("graph", ('say "x" -->',)), Stage('say "x" -->', ("end",)), Stage("end"))
    )
    drawn = diagram(odd)
    assert re.findall(r"^    (\S+) --> (\S+)$", drawn, re.MULTILINE) == [
        ("stage_1", "stage_2"),
        ("stage_2", "stage_3"),
    ]
    assert '["say #quot;x#quot; -->"]' in drawn
