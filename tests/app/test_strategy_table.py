"""Strategies of one's own, as TOML or JSON: what holds together is read, what does not says where and why."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.app.installed import read_strategies
from reasonry.app.strategy_table import describe, diagram, read_tables
from reasonry.core.registry import resolve
from reasonry.core.strategy import Stage, Strategy
from reasonry.errors import InvalidStrategyError, UsageError
from reasonry.stages import to_mapping
from reasonry.strategies import STRATEGIES

GOOD = """
name = "code_review"
summary = "Reads a change and weighs it."
aliases = ["review"]

[[stages]]
name = "reading"
description = "Take the change in."
to = ["faults", "verdict"]

[[stages]]
name = "faults"
to = ["verdict"]
fields = { severity = { type = "string", enum = ["low", "high"] }, where = { type = "string" } }
optional = ["where"]

[[stages]]
name = "verdict"
"""


def test_a_table_becomes_a_strategy_for_guided_use() -> None:
    (strategy,) = read_tables(GOOD).values()
    assert strategy.edges == (("reading", "faults"), ("reading", "verdict"), ("faults", "verdict"))
    assert (strategy.first, strategy.title, strategy.is_driven) == ("reading", "Code review", False)
    fields = {one.name: one.required for one in strategy.by_name["faults"].fields}
    assert fields == {"severity": True, "where": False}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('to = ["verdict"]', 'to = ["nowhere"]', "'faults' leads to 'nowhere'"),
        ('to = ["faults", "verdict"]', 'to = ["verdict"]', "'faults' cannot be reached"),
        ('to = ["verdict"]', 'to = ["faults"]', "end 'verdict' cannot be reached from stage 'faults'"),
        ('name = "faults"', 'name = "reading"', "stands twice"),
        ('name = "verdict"', 'name = "verdict"\nto = ["reading"]', "exactly one stage without a way out"),
        ('name = "code_review"', 'name = "Code Review"', "`$.name`"),
        ('optional = ["where"]', 'optional = ["when"]', "'faults' names 'when' as optional"),
        ("description", "descripton", "descripton"),
        ("[[stages]]", "[[stages", "t.toml"),
        ('summary = "', "summary = ", "t.toml"),
    ],
)
def test_what_does_not_hold_together_says_which_stage_and_why(old: str, new: str, why: str) -> None:
    with pytest.raises(InvalidStrategyError) as error:
        read_tables(GOOD.replace(old, new), "t.toml")
    assert why in error.value.message
    assert "t.toml" in error.value.message


@given(st.text(), st.sampled_from(["t.toml", "t.json"]))
def test_any_text_is_a_table_or_a_clear_error(text: str, where: str) -> None:
    with pytest.raises(InvalidStrategyError, match=where):
        read_tables(text, where)


def rows(strategy: Strategy[Any, Any]) -> list[tuple[Any, ...]]:
    """Return all that a table says of the stages of a strategy."""
    members = ("name", "to", "description", "guidance", "repeats", "compares", "tested_by")
    return [
        (
            *(getattr(stage, member) for member in members),
            *((field.name, dict(field.schema), field.required) for field in stage.fields),
        )
        for stage in strategy.stages
    ]


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=list(STRATEGIES))
def test_a_strategy_as_it_is_printed_is_a_table_with_nothing_lost(strategy: Strategy[Any, Any]) -> None:
    (read,) = read_tables(json.dumps(describe(strategy)), "printed.json").values()
    assert rows(read) == rows(strategy)
    names = ("name", "title", "source", "summary", "aliases", "edges")
    assert [getattr(read, name) for name in names] == [getattr(strategy, name) for name in names]
    assert not read.is_driven


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"name": "x", "stages": [{"name": "a", "too": ["b"]}, {"name": "b"}]}', "`too`"),
        ('{"name": "x", "stages": [{"name": "a", "to": ["c"]}, {"name": "b"}]}', "leads to 'c'"),
        ('{"stageTransitions": {"x": {"a": ["b"], "c": []}}}', "leads to 'b'"),
        ('{"stageTransitions": {"x": ["a", "b"]}}', "no mapping of strategies"),
        (
            '{"stageTransitions": {}, "strategyStages": {"x": ["a", "b"]}}',
            "exactly one stage without a way out",
        ),
        ('{"stageTransitions": {"Not a Name": {"a": ["b"], "b": []}}}', "no mapping of strategies"),
        ("[]", "object"),
        ('{"name": ', "m.json"),
    ],
)
def test_json_that_is_no_table_is_an_error_that_names_the_file(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(text, "utf-8")
    with pytest.raises(UsageError) as error:
        read_strategies(str(tmp_path), STRATEGIES)
    assert why in error.value.message
    assert "m.json" in error.value.message


def test_a_folder_with_python_files_alone_is_an_error_that_names_the_way(tmp_path: Path) -> None:
    assert read_strategies(str(tmp_path), STRATEGIES) == STRATEGIES
    (tmp_path / "mine.py").write_text("", "utf-8")
    with pytest.raises(UsageError, match="install a strategy in Python as a plugin"):
        read_strategies(str(tmp_path), STRATEGIES)
    (tmp_path / "mine.toml").write_text(GOOD, "utf-8")
    assert "code_review" in read_strategies(str(tmp_path), STRATEGIES)


TWO_STAGES = "stages = [{name = 'one', to = ['two']}, {name = 'two'}]"
REVIEW = {"reading": ["faults", "verdict"], "faults": ["faults", "verdict"], "verdict": []}


def test_a_folder_may_hold_a_mapping_with_strategies_of_ones_own_beside_the_others(tmp_path: Path) -> None:
    mapping = to_mapping()
    mapping["stageTransitions"]["code_review"] = REVIEW
    (tmp_path / "strategy-stages-mapping.json").write_text(json.dumps(mapping), "utf-8")
    read = read_strategies(str(tmp_path), STRATEGIES)
    assert [*read] == [*STRATEGIES, "code_review"]
    assert read["code_review"].edges == tuple((stage, to) for stage in REVIEW for to in REVIEW[stage])
    assert all(read[name] is strategy for name, strategy in STRATEGIES.items())
    mapping["stageTransitions"]["linear"]["problem_reception"] += ["thought_generation"]
    (tmp_path / "strategy-stages-mapping.json").write_text(json.dumps(mapping), "utf-8")
    with pytest.raises(UsageError, match="'linear' already exists"):
        read_strategies(str(tmp_path), STRATEGIES)


def test_a_file_of_a_known_strategy_is_passed_over_only_if_nothing_in_it_was_edited(tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    table, mapping = describe(STRATEGIES["linear"]), to_mapping()
    for exported in (table, mapping, {"stageTransitions": mapping["stageTransitions"]}):
        file.write_text(json.dumps(exported), "utf-8")
        assert read_strategies(str(tmp_path), STRATEGIES) == STRATEGIES
    first, *others = table["stages"]
    described = {**mapping["stageDescriptions"], "thought_generation": "Mine."}
    for edited in (
        {**table, "title": "Mine"},
        {**table, "stages": [{**first, "guidance": "Mine."}, *others]},
        {**table, "stages": [{**first, "fields": {"mine": {"type": "string"}}}, *others]},
        {**mapping, "stageDescriptions": described},
    ):
        file.write_text(json.dumps(edited), "utf-8")
        with pytest.raises(UsageError, match=r"own\.json: strategy 'linear': 'linear' already exists"):
            read_strategies(str(tmp_path), STRATEGIES)


def test_an_alias_that_is_the_name_of_another_strategy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(GOOD.replace('["review"]', '["cot"]'), "utf-8")
    with pytest.raises(UsageError, match="'chain_of_thought' already exists"):
        read_strategies(str(tmp_path), STRATEGIES)
    renamed = {**describe(STRATEGIES["chain_of_thought"]), "name": "chain_of_ours"}
    (tmp_path / "t.toml").unlink()
    (tmp_path / "t.json").write_text(json.dumps(renamed), "utf-8")
    with pytest.raises(UsageError, match="'chain_of_thought' already exists"):
        read_strategies(str(tmp_path), STRATEGIES)


# -- drawn


def test_the_diagram_has_every_stage_and_edge_once_round_ends_and_decisions_as_rhombi() -> None:
    strategy = resolve("tree_of_thoughts", STRATEGIES)
    drawn = diagram(strategy)
    lines = drawn.splitlines()
    assert lines[0] == "flowchart TD"
    arrows = [tuple(line.strip().split(" --> ")) for line in lines if "-->" in line]
    assert arrows == list(strategy.edges)
    assert len(lines) == 1 + len(strategy.stages) + len(strategy.edges)
    assert 'problem_reception(["problem_reception"])' in drawn
    assert 'final_response(["final_response"])' in drawn
    assert 'continuation_decision{"continuation_decision"}' in drawn
    assert 'branch_selection["branch_selection"]' in drawn


def test_names_that_mermaid_would_misread_get_ids_of_their_own() -> None:
    odd = Strategy(
        "odd", "Odd", "", "", (Stage("graph", ('say "x" -->',)), Stage('say "x" -->', ("end",)), Stage("end"))
    )
    drawn = diagram(odd)
    arrows = re.findall(r"^    (\S+) --> (\S+)$", drawn, re.MULTILINE)
    assert arrows == [("stage_1", "stage_2"), ("stage_2", "stage_3")]
    assert '["say #quot;x#quot; -->"]' in drawn
