"""Seed 004, "Jido.AI.Reasoning.TreeOfThoughts.Machine": what it says, quoted, and that it is so."""

import itertools
import json
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry import UsageError, machine, solve_sync, tree_machine
from reasonry.core.codec import dump_snapshot
from reasonry.core.machine import begin
from reasonry.core.options import read_options, with_coached_defaults
from reasonry.errors import ConflictError
from reasonry.machine import Answered, Failed
from reasonry.models.scripted import ScriptedModel
from reasonry.tree_machine import parse_scores, parse_thoughts

from ..playing import advance
from ..strategies.searching import (
    FOREVER,
    TREE_OF_THOUGHTS,
    World,
    best,
    expanded,
    search,
    search_as_seed,
    texts,
)

SEED = read_options(TREE_OF_THOUGHTS, {"preset": "seed"})
"""The options with the defaults of the seed."""


def phase(stage: str) -> str:
    return TREE_OF_THOUGHTS.phase(stage, "active")


def diagnostics(walked: Any) -> dict[str, Any]:
    return walked.conclusion.document["diagnostics"]


# "This module implements state transitions for a ToT agent without any side effects."


def test_a_transition_leaves_the_machine_it_came_from_as_it_was() -> None:
    step = begin(TREE_OF_THOUGHTS, "P", SEED)
    before = dump_snapshot(step.snapshot)
    first = advance(TREE_OF_THOUGHTS, step.snapshot, "e1", Answered('{"thoughts": ["a"]}'))
    second = advance(TREE_OF_THOUGHTS, step.snapshot, "e1", Answered('{"thoughts": ["a"]}'))
    assert dump_snapshot(step.snapshot) == before
    assert first == second


# "machine = Machine.new()", "{machine, directives} = Machine.update(machine, {:start, prompt, call_id}, env)"


def test_a_whole_tree_is_driven_by_hand_through_the_public_module() -> None:
    world = World({"b": 0.7, "bc": 0.9})
    step = machine.begin("P", options={"preset": "seed", "max_depth": 2})
    assert step.edges[0] == ("problem_reception", "approach_exploration"), "idle is left at once"
    seen = [machine.status(step.snapshot)]
    while waiting := machine.wanted_effects(step.snapshot):
        step = machine.advance(step.snapshot, waiting[0].id, world(waiting[0]))
        seen.append(machine.status(step.snapshot))
    assert seen == ["generating", "evaluating", "generating", "evaluating", "expanding", "completed"]
    assert step.snapshot.conclusion == search_as_seed(World({"b": 0.7, "bc": 0.9}), max_depth=2).conclusion


def test_a_machine_takes_the_options_by_name_and_refuses_others() -> None:
    with pytest.raises(UsageError) as caught:
        machine.begin("P", options={"branching": 3})
    assert "branching_factor" in caught.value.details["choices"]
    with pytest.raises(UsageError, match="empty"):
        machine.begin(" ")


# "States: idle, generating, evaluating, expanding, completed, error"


def test_the_statuses_are_a_view_of_the_stages_a_run_walks_through() -> None:
    walked = search_as_seed(**FOREVER)
    seen = [phase("problem_reception"), *(phase(to) for _, to in walked.edges)]
    assert seen[0] == "idle"
    assert seen[-1] == "completed"
    assert seen[1:4] == ["generating"] * 3
    assert set(seen) == {"idle", "generating", "evaluating", "expanding", "completed"}
    after = {(one, other) for one, other in itertools.pairwise(seen) if one != other}
    assert ("generating", "evaluating") in after
    assert ("evaluating", "expanding") in after
    assert ("expanding", "generating") in after


def test_error_is_the_status_and_the_reason_of_a_run_that_failed_and_the_prompt_is_never_an_answer() -> None:
    walked = search_as_seed(World(say=lambda kind, facts: Failed("provider_error", "down")))
    assert machine.status(walked.snapshot) == walked.conclusion.reason == "error"
    assert best(walked) is None
    assert walked.conclusion.answer is None
    assert walked.conclusion.document["candidates"] == []


# "The tree is stored as a map of nodes", "id, parent_id, content, score, children, depth"


def test_the_map_of_nodes_is_in_the_result_with_the_names_of_the_seed() -> None:
    walked = search_as_seed(World({"b": 0.7}), max_depth=1)
    tree = walked.conclusion.document["tree"]
    assert tree["root_id"] == "node_1"
    assert tree["nodes"]["node_3"] == {
        "id": "node_3",
        "parent_id": "node_1",
        "content": "b",
        "score": 0.7,
        "children": [],
        "depth": 1,
        "status": "leaf",
    }
    assert tree["nodes"]["node_1"]["children"] == ["node_2", "node_3", "node_4"]
    assert tree["nodes"]["node_1"]["status"] == "expanded"


def test_each_node_says_what_has_become_of_it() -> None:
    step = machine.begin("P", options={"preset": "seed", "branching_factor": 3})
    step = machine.advance(step.snapshot, "e1", Answered('{"thoughts": ["a", "1 + 1 = 3", "c"]}'))

    def statuses() -> list[str]:
        outcome = TREE_OF_THOUGHTS.conclude(step.snapshot.state)
        return [each["status"] for each in outcome.document["tree"]["nodes"].values()]

    assert statuses() == ["open", "proposed", "pruned", "proposed"]
    step = machine.advance(step.snapshot, "e2", Answered('{"scores": {"1": 0.2, "2": 0.6}}'))
    assert statuses() == ["expanded", "open", "pruned", "open"]
    assert machine.result(step.snapshot)["tree"]["frontier"] == ["node_2"]
    assert step.snapshot.state.expanding == ("node_4",)


# "find_best_leaf/1, find_leaves/1, get_children/2, get_node/2, get_path_to_node/2"


def test_the_tree_can_be_read_by_pure_functions() -> None:
    ended = perform_all(("start", "P", "c"), World({"b": 0.7, "bc": 0.9}), max_depth=2)
    leaf = tree_machine.find_best_leaf(ended)
    assert leaf is not None
    assert leaf["content"] == "bc"
    assert [each["content"] for each in tree_machine.find_leaves(ended)] == ["a", "c", "ba", "bb", "bc"]
    assert [each["content"] for each in tree_machine.get_children(ended, "node_3")] == ["ba", "bb", "bc"]
    assert [each["content"] for each in tree_machine.get_path_to_node(ended, leaf["id"])] == ["P", "b", "bc"]
    assert tree_machine.get_node(ended, leaf["id"]) == leaf
    assert tree_machine.get_node(ended, "node_99") is None
    assert (
        tree_machine.get_children(ended, "node_99") == tree_machine.get_path_to_node(ended, "node_99") == []
    )
    assert tree_machine.find_best_leaf(tree_machine.new()) is None


def test_the_result_so_far_is_there_at_any_time_and_for_any_strategy() -> None:
    walked = search_as_seed(World({"b": 0.7, "bc": 0.9}), max_depth=2)
    assert machine.result(walked.snapshot) == walked.conclusion.document
    begun = machine.begin("P").snapshot
    assert machine.result(begun)["best"] is None
    assert list(machine.result(begun)["tree"]["nodes"]) == ["node_1"]
    plain = machine.begin("P", "chain_of_thought").snapshot
    assert machine.status(plain) == "active"
    assert "tree" not in machine.result(plain)


# "Options": "(default: …)"


def test_the_defaults_are_the_seeds() -> None:
    options = msgspec.structs.asdict(SEED)
    assert {name: options[name] for name in list(options)[:12]} == {
        "branching_factor": 3,
        "max_depth": 3,
        "traversal_strategy": "best_first",
        "top_k": 3,
        "min_depth": 2,
        "max_nodes": 100,
        "max_duration_ms": None,
        "beam_width": None,
        "early_success_threshold": 1.0,
        "convergence_window": 2,
        "min_score_improvement": 0.02,
        "max_parse_retries": 1,
    }


def test_branching_factor_is_the_number_of_thoughts_asked_for_at_each_node() -> None:
    walked = search_as_seed(World(letters="abcdefgh"), branching_factor=5, max_depth=2)
    assert [ask.facts["count"] for ask in walked.asks if ask.facts["kind"] == "propose"] == [5, 5]


@pytest.mark.parametrize("top_k", [1, 2, 9])
def test_top_k_is_the_number_of_ranked_candidates(top_k: int) -> None:
    world = World({"a": 0.1, "b": 0.9, "c": 0.5})
    assert texts(search_as_seed(world, top_k=top_k, max_depth=1)) == ["b", "c", "a"][:top_k]


# "termination_reason :: :success | :threshold | :max_depth | :max_nodes | :max_duration | :converged | :error"


@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("threshold", {"early_success_threshold": 0.5}),
        ("max_depth", {"min_score_improvement": 0}),
        ("max_nodes", {"max_nodes": 4}),
        ("max_duration", {"max_duration_ms": 15}),
        ("converged", {}),
    ],
)
def test_a_search_ends_for_the_reason_that_came_first(reason: str, options: dict[str, Any]) -> None:
    walked = search_as_seed(**options)
    assert walked.conclusion.reason == reason
    assert walked.snapshot.status == "done"
    assert walked.conclusion.detail


ALL_AT_ONCE = {
    "max_nodes": 4,
    "max_duration_ms": 1,
    "early_success_threshold": 0.5,
    "min_depth": 1,
    "convergence_window": 2,
    "min_score_improvement": 1,
    "max_depth": 1,
}
LATER = {"max_nodes": 100, "max_duration_ms": None, "early_success_threshold": 1.0}


@pytest.mark.parametrize(
    ("lifted", "reason"),
    [(0, "max_nodes"), (1, "max_duration"), (2, "threshold"), (3, "max_depth")],
)
def test_the_order_in_which_the_reasons_are_looked_at(lifted: int, reason: str) -> None:
    options = ALL_AT_ONCE | dict(list(LATER.items())[:lifted])
    assert search_as_seed(**options).conclusion.reason == reason


def test_convergence_is_looked_at_before_depth() -> None:
    assert search_as_seed(max_depth=2).conclusion.reason == "converged"


# "max_nodes - Hard cap on explored nodes", the root included, looked at after an evaluation


@pytest.mark.parametrize(("cap", "nodes"), [(1, 4), (4, 4), (5, 7), (7, 7), (8, 10)])
def test_max_nodes_is_looked_at_after_an_evaluation(cap: int, nodes: int) -> None:
    walked = search_as_seed(max_nodes=cap, min_score_improvement=0, max_depth=9)
    assert walked.conclusion.reason == "max_nodes"
    assert walked.conclusion.document["tree"]["node_count"] == nodes
    assert walked.conclusion.answer == "an answer"


# "max_duration_ms - Optional wall-time cap in milliseconds"


@pytest.mark.parametrize(("cap", "rounds"), [(20, 1), (21, 2), (40, 2), (41, 3)])
def test_max_duration_is_run_time_looked_at_after_an_evaluation(cap: int, rounds: int) -> None:
    walked = search_as_seed(World(ms=10), max_duration_ms=cap, min_score_improvement=0, max_depth=9)
    assert walked.conclusion.reason == "max_duration"
    assert len(expanded(walked)) == rounds


# "early_success_threshold - Score threshold for early completion", "min_depth - Minimum depth before early success"


def test_on_threshold_the_best_qualifying_child_wins_not_the_first() -> None:
    walked = search_as_seed(World({"a": 0.5, "b": 0.85, "c": 0.95}), early_success_threshold=0.8, min_depth=1)
    assert walked.conclusion.reason == "threshold"
    assert best(walked) == "c"
    assert walked.asks[-1].facts["path"] == ["c"]
    assert texts(walked)[0] == "c"


def test_min_depth_binds_the_threshold() -> None:
    walked = search_as_seed(World({"a": 0.95}, otherwise=0.9), early_success_threshold=0.9)
    assert walked.conclusion.reason == "threshold"
    assert walked.conclusion.document["best"]["depth"] == 2


def test_on_threshold_the_node_that_qualified_is_the_best_even_beside_a_better_one_that_was_too_shallow() -> (
    None
):
    world = World({"a": 0.98, "b": 0.95, "aa": 0.91}, otherwise=0.1)
    walked = search_as_seed(world, early_success_threshold=0.9)
    assert walked.conclusion.reason == "threshold"
    assert best(walked) == texts(walked)[0] == "aa"
    assert texts(walked)[1] == "b"


def test_a_score_equal_to_the_threshold_is_enough() -> None:
    walked = search_as_seed(World({"a": 0.7}), early_success_threshold=0.7, min_depth=1)
    assert walked.conclusion.reason == "threshold"


# "convergence_window", "min_score_improvement - Minimum best-score improvement required across convergence window"


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [(0.6, 0.62, "max_depth"), (0.8, 0.82, "max_depth"), (0.8, 0.81, "converged"), (0.8, 0.2, "converged")],
)
def test_convergence_is_a_gain_below_the_least_without_float_noise(
    first: float, second: float, reason: str
) -> None:
    walked = search_as_seed(World({"a": first, "aa": second}, otherwise=0.0), max_depth=2)
    assert walked.conclusion.reason == reason


def test_convergence_compares_the_best_so_far_not_the_best_leaf() -> None:
    world = World({"a": 0.5, "aa": 0.3, "b": 0.2, "ba": 0.6}, otherwise=0.0)
    walked = search_as_seed(world, convergence_window=3, max_depth=4)
    assert diagnostics(walked)["convergence"]["recent_best_scores"] == [0.5, 0.5, 0.5]


def test_a_window_of_1_never_converges() -> None:
    assert search_as_seed(convergence_window=1).conclusion.reason == "max_depth"


# "traversal_strategy - :bfs, :dfs, or :best_first"


def test_best_first_follows_the_best_score_and_ends_at_the_first_expansion_that_reaches_max_depth() -> None:
    walked = search_as_seed(
        World({"b": 0.9, "c": 0.8, "ba": 0.1}, otherwise=0.1), min_score_improvement=0, max_depth=2
    )
    assert expanded(walked) == ["", "b"]
    assert walked.conclusion.reason == "max_depth"
    assert best(walked) == "c"


def test_best_first_turns_back_to_an_older_node_that_scores_higher() -> None:
    walked = search_as_seed(World({"b": 0.9, "c": 0.8}, otherwise=0.1), min_score_improvement=0)
    assert expanded(walked)[:3] == ["", "b", "c"]


def test_bfs_expands_level_by_level_in_generation_order() -> None:
    walked = search_as_seed(World({"b": 0.9}, letters="ab"), traversal_strategy="bfs", **FOREVER)
    assert expanded(walked) == ["", "a", "b", "aa", "ab", "ba", "bb"]
    assert walked.conclusion.reason == "max_depth"


def test_dfs_expands_in_generation_order_and_backtracks() -> None:
    walked = search_as_seed(World({"b": 0.9}, letters="ab"), traversal_strategy="dfs", **FOREVER)
    assert expanded(walked) == ["", "a", "aa", "ab", "b", "ba", "bb"]
    tree = walked.conclusion.document["tree"]
    assert {name: tree[name] for name in tree if name != "nodes"} == {
        "node_count": 15,
        "frontier_size": 0,
        "traversal_strategy": "dfs",
        "max_depth": 3,
        "branching_factor": 3,
        "root_id": "node_1",
        "frontier": [],
    }


# "beam_width - Optional frontier cap for best-first expansion"


def test_the_beam_keeps_the_best_scoring_of_the_frontier_in_best_first_alone() -> None:
    world = World({"a": 0.2, "b": 0.8, "c": 0.5}, otherwise=0.1)
    options = {"beam_width": 2, "max_depth": 2, **FOREVER}
    kept = expanded(search_as_seed(world, **options))
    assert (kept[1], "a" in kept) == ("b", False)
    for traversal in ("bfs", "dfs"):
        assert expanded(search_as_seed(world, traversal_strategy=traversal, **options)) == ["", "a", "b", "c"]
        without_preset = search(world, traversal_strategy=traversal, expand_width=1, **options)
        assert "a" not in expanded(without_preset)


# "parse_thoughts(text): Parses numbered thoughts", "parse_scores(text, thoughts)": both with their mode


def test_thoughts_and_scores_are_parsed_by_public_pure_functions() -> None:
    assert parse_thoughts("1. one\n2) two\n3: three\n   goes on") == (
        ["one", "two", "three\ngoes on"],
        "list",
    )
    assert parse_scores("1: 0.7\n2: 0.4", ["one", "two"]) == ({"t1": 0.7, "t2": 0.4}, "list")
    entries = [{"id": "x", "content": "one"}]
    assert parse_scores('{"scores": {"x": 0.7}}', entries) == ({"x": 0.7}, "json")


# "parse_thoughts", "parse_scores": on what is no text the modes `none` and `default`; here `none` for both

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(ANYTHING, st.lists(ANYTHING, max_size=3))
def test_the_parsers_never_raise(said: Any, thoughts: list[Any]) -> None:
    found, mode = parse_thoughts(said)
    assert isinstance(found, list)
    scores, way = parse_scores(said, thoughts)
    assert all(0 <= score <= 1 for score in scores.values())
    if not isinstance(said, str):
        assert (found, mode, scores, way) == ([], "none", {}, "none")


def test_numbers_of_candidates_that_are_no_plain_numbers_raise_nothing() -> None:
    for number in ("²", "9" * 5_000):
        said = json.dumps([{"id": "0", "score": 0.5}, {"id": number, "score": 0.5}])
        assert parse_scores(said, ["a", "b"])[1] in ("json", "none")


@pytest.mark.parametrize(
    ("said", "score"), [("0.7/1.0", 0.7), ("90%", 0.9), (0, 0.0), (0.0, 0.0), ("0", 0.0), (1, 1.0)]
)
def test_a_score_is_read_by_its_scale_and_0_stays_0(said: Any, score: float) -> None:
    world = World({"a": said}, otherwise=0.0, letters="a")
    shown = search_as_seed(world, max_depth=1, early_success_threshold=1).conclusion.document["best"]
    assert shown["score"] == score
    assert shown["content"] == "a"


@pytest.mark.parametrize("said", [85, "85", 1.2, -0.5, None, True, False, "high", "110%", []])
def test_a_score_out_of_range_is_asked_for_again_and_never_clamped(said: Any) -> None:
    walked = search_as_seed(World({"a": said}, otherwise=0.3), max_depth=1)
    asked = [one for one in walked.performed if one.stage == "branch_evaluation"]
    assert [one.id for one in asked] == ["e2", "e2.2"]
    assert "candidate 1" in walked.asks[2].text
    by_text = {one["content"]: one["score"] for one in walked.conclusion.document["candidates"]}
    assert by_text == {"a": 0.5, "b": 0.3, "c": 0.3}
    assert diagnostics(walked)["unscored"] == ["node_2"]
    assert diagnostics(walked)["parser_errors"] == ["evaluation_parse_retry", "scores_parse_failed"]


def test_garbage_counts_as_a_parse_failure_for_scores_too() -> None:
    walked = search_as_seed(
        World(say=lambda kind, facts: "All fine!" if kind == "value" else None), max_depth=1
    )
    assert diagnostics(walked)["unscored"] == ["node_2", "node_3", "node_4"]
    assert {one["score"] for one in walked.conclusion.document["candidates"]} == {0.5}


def test_what_one_reply_leaves_out_the_next_may_fill_in() -> None:
    replies = iter([{"scores": {"1": 0.1, "2": 0.9}}, {"scores": {"3": 0.4}}])
    walked = search_as_seed(
        World(say=lambda kind, facts: next(replies) if kind == "value" else None), max_depth=1
    )
    assert [one["score"] for one in walked.conclusion.document["candidates"]] == [0.9, 0.4, 0.1]
    assert diagnostics(walked)["unscored"] == []


# "max_parse_retries - Number of parser repair retries per phase (default: 1)": per phase and node, so decided


def test_the_retries_are_counted_for_each_phase_and_node() -> None:
    seen: set[str] = set()

    def say(kind: str, facts: dict[str, Any]) -> Any:
        key = f"{kind} {facts['path']}"
        if kind == "answer" or key in seen:
            return None
        seen.add(key)
        return "I am not sure."

    walked = search_as_seed(World({"a": 0.6, "aa": 0.7, "aaa": 0.8}, say=say))
    assert walked.conclusion.answer == "an answer"
    assert diagnostics(walked)["parse_retries"] == {"generation": 3, "evaluation": 3}
    assert diagnostics(walked)["parser_errors"] == ["generation_parse_retry", "evaluation_parse_retry"] * 3


@pytest.mark.parametrize("retries", [0, 1, 2])
@pytest.mark.parametrize("said", ["no idea", {"thoughts": ["", "  "]}])
def test_without_thoughts_after_all_retries_the_run_ends_in_error(retries: int, said: Any) -> None:
    tries = count(1)

    def say(kind: str, facts: dict[str, Any]) -> Any:
        if kind != "propose":
            return None
        return f"{said} ({next(tries)})" if isinstance(said, str) else {**said, "try": next(tries)}

    walked = search_as_seed(World(say=say), max_parse_retries=retries)
    assert walked.conclusion.reason == "error"
    assert walked.snapshot.error == "output_invalid"
    assert len(walked.asks) == retries + 1
    assert diagnostics(walked)["parser_errors"] == ["generation_parse_retry"] * retries + [
        "thoughts_parse_failed"
    ]


def test_an_empty_list_of_thoughts_is_an_error_and_is_not_asked_for_again() -> None:
    walked = search_as_seed(World(say=lambda kind, facts: {"thoughts": []} if kind == "propose" else None))
    assert len(walked.asks) == 1
    assert (walked.conclusion.reason, walked.snapshot.error) == ("error", "output_invalid")
    assert walked.conclusion.detail == "it proposes no thought"
    assert diagnostics(walked)["parser_errors"] == ["thoughts_parse_failed"]


def test_a_coached_run_asks_for_thoughts_and_for_scores_in_two_questions() -> None:
    options = with_coached_defaults(TREE_OF_THOUGHTS, {"preset": "seed"})
    kinds = [ask.facts["kind"] for ask in search(**options, max_depth=1).asks]
    assert kinds == ["propose", "value", "answer"]
    (proposal, *_) = search(**options).asks
    assert "score" not in proposal.text
    assert with_coached_defaults(TREE_OF_THOUGHTS, {})["score_with_proposals"] is True


# "result": best, candidates, tree, diagnostics


def test_a_candidate_has_its_path() -> None:
    walked = search_as_seed(World({"b": 0.7, "bc": 0.9}), max_depth=2)
    assert walked.conclusion.document["best"] == {
        "node_id": "node_7",
        "content": "bc",
        "score": 0.9,
        "depth": 2,
        "path_ids": ["node_1", "node_3", "node_7"],
        "path_text": ["P", "b", "bc"],
    }


def test_candidates_are_leaves_by_score_then_depth_then_age() -> None:
    walked = search_as_seed(World({"b": 0.9}), top_k=9, max_depth=2, min_score_improvement=0)
    assert texts(walked) == ["ba", "bb", "bc", "a", "c"]
    assert "b" not in texts(walked), "an expanded node is no candidate"


def test_diagnostics_say_how_replies_were_read_and_how_the_best_score_went() -> None:
    walked = search_as_seed(
        World(say=lambda kind, facts: "1. a\n2. b" if kind == "propose" else None), formulate_answer=False
    )
    assert diagnostics(walked)["parser_mode"] == "json"
    assert diagnostics(walked)["convergence"] == {
        "window": 2,
        "min_score_improvement": 0.02,
        "recent_best_scores": [0.5, 0.5],
    }


# "Busy, stale and finished": messages that do not fit


def test_an_answer_that_is_not_pending_is_an_error_and_changes_nothing() -> None:
    step = begin(TREE_OF_THOUGHTS, "P", SEED)
    for effect_id in ("e2", "e0", "e1.2", "nonsense"):
        with pytest.raises(ConflictError):
            advance(TREE_OF_THOUGHTS, step.snapshot, effect_id, Answered('{"thoughts": ["stale"]}'))
    step = advance(TREE_OF_THOUGHTS, step.snapshot, "e1", Answered('{"thoughts": ["a"]}'))
    with pytest.raises(ConflictError):
        advance(TREE_OF_THOUGHTS, step.snapshot, "e1", Answered('{"thoughts": ["again"]}'))
    assert [one.content for one in step.snapshot.state.fresh] == ["a"]


def test_a_second_problem_never_gets_the_first_ones_answer() -> None:
    one = search_as_seed(World(answer="first"), problem="P1")
    other = search_as_seed(World(answer="second"), problem="P2")
    assert (one.conclusion.answer, other.conclusion.answer) == ("first", "second")
    with pytest.raises(ConflictError, match="has ended"):
        advance(TREE_OF_THOUGHTS, one.snapshot, "e1", Answered("{}"))


# "to_map/1, from_map/1"


def test_a_map_is_plain_data_and_brings_the_machine_back() -> None:
    world = World({"b": 0.7})
    step = machine.begin("P", options={"preset": "seed"})
    step = machine.advance(step.snapshot, "e1", world(step.effects[0]))
    saved = json.loads(json.dumps(machine.to_map(step.snapshot)))
    assert machine.from_map(saved) == step.snapshot
    saved["unknown_key"] = 1
    assert machine.from_map(saved) == step.snapshot, "unknown keys are passed over"


SAVED = machine.to_map(machine.begin("P").snapshot)


@pytest.mark.parametrize(
    "saved",
    [
        {},
        [],
        None,
        SAVED | {"stage": "nowhere"},
        SAVED | {"strategy": "nobody"},
        SAVED | {"state": 1},
        SAVED | {"status": "idle"},
        {"stage": object()},
    ],
)
def test_what_is_no_map_of_a_machine_is_refused_and_says_what_makes_one(saved: Any) -> None:
    with pytest.raises(UsageError, match="`to_map` makes such a dict"):
        machine.from_map(saved)


# "usage: input_tokens, output_tokens, total_tokens"; "termination: reason, status, depth_reached, node_count"


def test_the_result_has_what_ended_it_and_what_it_took_in_one_place_each() -> None:
    usage = {"input_tokens": 10, "output_tokens": 5}
    script = [
        {"stage": "approach_exploration", "reply": {"thoughts": ["a", "b"]}, "usage": usage},
        {"stage": "branch_evaluation", "reply": {"scores": {"1": 0.9, "2": 0.1}}, "usage": usage},
        {"stage": "continuation_decision", "reply": {"reason": "so", "answer": "a"}, "usage": usage},
    ]
    options = {"max_depth": 1}
    result = solve_sync(
        "P",
        strategy="tree_of_thoughts",
        model=ScriptedModel.of(*script),
        options=options,
        store="memory",
    )
    document = result.document()
    ending = document["termination"]
    assert ending == {
        "reason": "max_depth",
        "detail": "the search reached the depth of 1",
        "status": "completed",
        "depth_reached": 1,
        "node_count": 3,
        "duration_ms": document["duration_ms"],
    }
    assert (document["usage"]["total_tokens"], result.usage.tokens) == (45, 45)
    brief = result.document(nodes=False)
    assert brief["tree"]["node_count"] == 3
    assert not {"nodes", "frontier"} & set(brief["tree"])


# "default_generation_prompt/0, default_evaluation_prompt/0, generate_call_id/0, generate_node_id/0"


def test_the_default_prompts_are_public_and_ids_are_unique() -> None:
    assert "candidates" in tree_machine.default_generation_prompt()
    assert "1 means" in tree_machine.default_evaluation_prompt()
    for generate in (tree_machine.generate_call_id, tree_machine.generate_node_id):
        assert len({generate() for _ in range(100)}) == 100


# -- the program of its page: "The machine is used by the ToT strategy", which performs the directives


def perform_all(start: tuple[str, str, str], world: World, **options: Any) -> tree_machine.TreeMachine:
    """Drive a machine to its end; a world proposes and scores."""
    made, (directive,) = tree_machine.update(tree_machine.new(**options), start)
    while True:
        (pending,) = machine.wanted_effects(made.snapshot)  # pyright: ignore[reportArgumentType]
        reply = world(pending)
        message = ("llm_result", directive[1], ("ok", {"text": reply.text}))
        made, directives = tree_machine.update(made, message)
        if not directives:
            return made
        (directive,) = directives


class Strategy:
    """The strategy around the machine: performs a directive, and returns the message for it."""

    def __init__(self, *, replies: bool = False) -> None:
        self.replies = replies
        self.log: list[str] = []

    def perform(self, directive: tuple[Any, ...]) -> tuple[Any, ...]:
        step = len(self.log)
        self.log.append(directive[0])
        match directive:
            case ("generate_thoughts", call_id, context, count):
                assert [turn["role"] for turn in context] == ["system", "user"]
                thoughts = [f"step {step}.{place}" for place in range(1, count + 1)]
                lines = "\n".join(f"{place}. {thought}" for place, thought in enumerate(thoughts, 1))
                return self.message("thoughts_generated", call_id, thoughts, lines, (10, 5, 15))
            case ("evaluate_thoughts", call_id, entries):
                scores = {
                    each["id"]: round(0.9 - 0.2 * place + 0.01 * step, 3)
                    for place, each in enumerate(entries)
                }
                text = json.dumps({"scores": scores})
                return self.message("thoughts_evaluated", call_id, scores, text, (7, 3, 10))
            case ("call_llm_stream", call_id, context):
                assert "No thoughts could be read from it" in context[-1]["content"]
                return "llm_result", call_id, ("ok", {"text": "1. mended\n2. also mended\n3. third"})
            case _:
                raise AssertionError(directive)

    def message(
        self, kind: str, call_id: str, data: Any, text: str, tokens: tuple[int, int, int]
    ) -> tuple[Any, ...]:
        if not self.replies:
            return kind, call_id, data
        usage = dict(zip(("input_tokens", "output_tokens", "total_tokens"), tokens, strict=True))
        return "llm_result", call_id, ("ok", {"text": text, "usage": usage})

    def drive(
        self, made: tree_machine.TreeMachine, directives: list[tuple[Any, ...]]
    ) -> tuple[tree_machine.TreeMachine, list[str]]:
        seen = [made.status]
        while directives:
            (directive,) = directives
            made, directives = tree_machine.update(made, self.perform(directive))
            seen.append(made.status)
            stored = json.loads(json.dumps(tree_machine.to_map(made)))
            assert tree_machine.from_map(stored) == made
            made = tree_machine.from_map(stored)
        return made, seen


def test_the_program_of_its_page_runs_a_whole_search() -> None:
    idle = tree_machine.new()
    assert (idle.status, idle.branching_factor, idle.convergence_window) == ("idle", 3, 2)
    started, directives = tree_machine.update(idle, ("start", "Plan a garden", "call_1"), {})
    assert directives[0][:2] == ("generate_thoughts", "call_1")
    assert directives[0][3] == 3
    strategy = Strategy()
    ended, seen = strategy.drive(started, directives)
    assert seen == ["generating", "evaluating"] * 3 + ["completed"]
    assert strategy.log == ["generate_thoughts", "evaluate_thoughts"] * 3
    assert ended.termination_reason == "max_depth"
    assert ended.solution_path == ["node_1", "node_2", "node_5", "node_8"]
    path = tree_machine.get_path_to_node(ended, ended.solution_path[-1])
    assert [each["content"] for each in path] == ["Plan a garden", "step 0.1", "step 2.1", "step 4.1"]
    assert len(ended.nodes) == 10
    assert ended.nodes["node_2"] == {
        "id": "node_2",
        "parent_id": "node_1",
        "content": "step 0.1",
        "score": 0.91,
        "children": ["node_5", "node_6", "node_7"],
        "depth": 1,
    }
    assert ended.result is not None
    assert ended.result["best"]["path_ids"] == ended.solution_path
    assert (ended.result["answer"], ended.current_call_id, ended.root_id) == ("step 4.1", None, "node_1")


def test_the_program_of_its_page_hands_in_replies_and_has_their_usage_summed() -> None:
    made, directives = tree_machine.update(
        tree_machine.new(max_depth=2, branching_factor=2), ("start", "P", "c")
    )
    ended, _ = Strategy(replies=True).drive(made, directives)
    assert ended.usage == {"input_tokens": 34, "output_tokens": 16, "total_tokens": 50}
    assert ended.result is not None
    assert ended.result["usage"] == ended.usage
    assert ended.parser_mode == "json"


def test_the_program_of_its_page_mends_a_reply_that_cannot_be_read() -> None:
    made, _ = tree_machine.update(tree_machine.new(max_depth=1), ("start", "P", "c"))
    made, (again,) = tree_machine.update(made, ("llm_result", "c", ("ok", {"text": "garbage"})))
    assert (again[0], made.status) == ("call_llm_stream", "generating")
    assert made.parse_retries == {"generation": 1, "evaluation": 0}
    assert made.parser_errors == ["generation_parse_retry"]
    made, (evaluate,) = tree_machine.update(made, Strategy().perform(again))
    assert evaluate[0] == "evaluate_thoughts"
    assert [entry["content"] for entry in evaluate[2]] == ["mended", "also mended", "third"]
    assert made.parse_retries == {"generation": 1, "evaluation": 0}, "counted once"
