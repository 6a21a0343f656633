"""Tree of thoughts: options beyond the seed's, the verifier, what is asked and recorded, what goes wrong."""

from typing import Any

import pytest

from reasonry.core.effects import Verify
from reasonry.core.events import Failed, Verified
from reasonry.strategies.tree_of_thoughts.asks import (
    EVALUATION_PROMPT,
    FORMULATION_PROMPT,
    GENERATION_PROMPT,
)

from ..searching import FOREVER, World, best, expanded, search
from ..walking import Walked

RIGHT = Verified("right")


def stages(walked: Walked) -> list[str]:
    return [to for _, to in walked.edges]


def verified(walked: Walked) -> list[Verify]:
    return [one.effect for one in walked.performed if isinstance(one.effect, Verify)]


def diagnostics(walked: Walked) -> dict[str, Any]:
    return walked.conclusion.document["diagnostics"]


# -- what is asked


def test_what_to_do_is_readable_and_replaceable() -> None:
    walked = search()
    assert GENERATION_PROMPT in walked.asks[0].task
    assert walked.asks[1].task.startswith(EVALUATION_PROMPT)
    assert walked.asks[-1].task == FORMULATION_PROMPT
    walked = search(generation_prompt="Dream.", evaluation_prompt="Judge.", formulation_prompt="Close.")
    assert "this one. Dream. " in walked.asks[0].task
    assert walked.asks[1].task.startswith("Judge. ")
    assert walked.asks[-1].task == "Close."
    assert all('{"' in ask.task for ask in walked.asks[:2]), "the form of the reply is asked for all the same"


# -- options


def test_without_formulation_the_answer_is_the_best_thoughts_text() -> None:
    walked = search(World({"cc": 0.9}), max_depth=2, formulate_answer=False)
    assert walked.conclusion.answer == best(walked)
    assert "answer" not in [ask.facts["kind"] for ask in walked.asks]
    assert ("solution_formulation", "path_justification") in walked.edges


def test_several_samples_are_asked_side_by_side_and_averaged() -> None:
    values = iter([0.2, 0.4, 0.9] * 50)
    world = World(say=lambda kind, facts: {"scores": {"1": next(values)}} if kind == "value" else None)
    walked = search(world, branching_factor=1, max_depth=1, samples_per_evaluation=3, preset="seed")
    asked = [ask for ask in walked.asks if ask.facts["kind"] == "value"]
    assert [ask.sample for ask in asked] == [0, 1, 2]
    assert len({ask.prompt for ask in asked}) == 1
    assert walked.conclusion.document["best"]["score"] == pytest.approx(0.5)
    assert walked.snapshot.rounds == 3


def test_a_sample_that_cannot_be_read_leaves_the_others_their_say() -> None:
    said = iter([{"scores": {"1": 0.2}}, "?", {"scores": {"1": 0.4}}])
    world = World(say=lambda kind, facts: next(said) if kind == "value" else None)
    options = {"samples_per_evaluation": 3, "max_parse_retries": 0, "preset": "seed"}
    walked = search(world, branching_factor=1, max_depth=1, **options)
    assert walked.conclusion.document["best"]["score"] == pytest.approx(0.3)
    assert diagnostics(walked)["unscored"] == []
    assert diagnostics(walked)["parser_errors"] == ["scores_parse_failed"]


def test_several_nodes_are_expanded_side_by_side() -> None:
    walked = search(
        World(letters="ab"),
        expand_width=2,
        branching_factor=2,
        traversal_strategy="bfs",
        max_depth=3,
        **FOREVER,
    )
    assert walked.snapshot.rounds == 2 + 2 + 4 + 1, "root; a and b together; aa, ab, then ba, bb; the answer"
    assert expanded(walked) == ["", "a", "b", "aa", "ab", "ba", "bb"]
    assert [ask.facts["path"] for ask in walked.asks if ask.facts["kind"] == "value"][1:3] == [["a"], ["b"]]


def test_the_papers_breadth_5_search_is_a_configuration() -> None:
    options = {
        "traversal_strategy": "bfs",
        "beam_width": 5,
        "expand_width": 5,
        "branching_factor": 8,
        "max_depth": 3,
    }
    scores = {f"{a}{b}": (ord(b) - 96) / 10 for a in "abcdefgh" for b in "abcdefgh"}
    scores |= {letter: (ord(letter) - 96) / 10 for letter in "abcdefgh"}
    walked = search(World(scores, letters="abcdefgh"), **options, **FOREVER)
    assert walked.snapshot.rounds == 3 * 2 + 1
    assert expanded(walked)[1:6] == ["d", "e", "f", "g", "h"]
    assert sorted(expanded(walked)[6:]) == ["dh", "eh", "fh", "gh", "hh"]


@pytest.mark.parametrize(("preset", "named"), [(None, "aa"), ("seed", "b")])
def test_a_leaf_that_was_cut_off_competes_with_deeper_ones_only_under_the_preset(
    preset: str | None, named: str
) -> None:
    world = World({"a": 0.8, "b": 0.7}, otherwise=0.1)
    walked = search(world, beam_width=1, max_depth=2, branching_factor=2, preset=preset, **FOREVER)
    assert expanded(walked) == ["", "a"]
    assert best(walked) == named
    assert walked.asks[-1].facts["path"][-1] == named


# -- proposals


def test_identical_candidates_are_one_thought_and_valued_once() -> None:
    world = World(
        say=lambda kind, facts: (
            {"thoughts": ["x", "X ", "y"]} if kind == "propose" and not facts["path"] else None
        )
    )
    walked = search(world, max_depth=1)
    assert walked.asks[1].facts["thoughts"] == ["x", "y"]
    assert walked.conclusion.document["tree"]["node_count"] == 3


# -- the verifier


def test_a_proof_ends_the_search_at_any_depth_and_may_bring_the_answer() -> None:
    world = World(verdicts={"b": Verified("right", answer="closed form")})
    walked = search(world, verify=True, min_depth=5)
    assert walked.conclusion.answer == "closed form"
    assert walked.conclusion.reason == "verified"
    assert best(walked) == "b"
    assert walked.conclusion.document["best"]["score"] == 1.0
    assert [ask.facts["kind"] for ask in walked.asks] == ["propose"]
    assert diagnostics(walked)["unscored"] == ["node_2", "node_4"]
    assert stages(walked)[-3:] == ["solution_formulation", "path_justification", "final_response"]


def test_a_proof_without_a_closed_answer_is_formulated_and_the_answer_verified() -> None:
    walked = search(World(verdicts={"b": RIGHT}), verify=True)
    assert walked.conclusion.answer == "an answer"
    assert verified(walked)[-1] == Verify("P", ("b", "an answer"), final=True, about="node_3")
    plain = search(World(verdicts={"b": RIGHT}), verify=True, formulate_answer=False)
    assert plain.conclusion.answer == "b"
    assert not any(claim.final for claim in verified(plain)), (
        "what is proven is not put to the verifier again"
    )


# -- failures, limits


def test_of_nodes_expanded_side_by_side_one_failure_keeps_the_scores_of_the_others() -> None:
    def say(kind: str, facts: dict[str, Any]) -> Any:
        return Failed("provider_error", "down") if kind == "value" and facts["path"] == ["b"] else None

    walked = search(World({"ac": 0.9}, say=say), expand_width=3, convergence_window=1)
    assert walked.snapshot.error == "provider_error"
    assert best(walked) == "ac"
    assert diagnostics(walked)["unscored"] == ["node_8", "node_9", "node_10"]


# -- what is recorded and shown


def test_each_candidate_is_a_thought_on_its_own_branch() -> None:
    walked = search(World({"b": 0.6, "bc": 0.9}), max_depth=2)
    proposed = [
        (one.text, one.branch, one.leaves, one.stage) for one in walked.thoughts if "node_id" in one.data
    ]
    assert proposed[1] == ("b", "2", None, "approach_exploration")
    assert proposed[5] == ("bc", "2.3", "2", "branch_development")


def test_scores_selection_answer_and_justification_are_recorded() -> None:
    walked = search(World({"b": 0.6, "bc": 0.9}), max_depth=2, expand_width=1)
    by_stage = {one.stage: one for one in walked.thoughts}
    assert by_stage["branch_evaluation"].text == "Scores: 2.1: 0.50, 2.2: 0.50, 2.3: 0.90"
    assert by_stage["branch_evaluation"].score == 0.9
    assert by_stage["branch_selection"].text == "Best: 2.3 (0.90): bc"
    assert by_stage["solution_formulation"].text == "an answer"
    justification = by_stage["path_justification"].text
    assert "1. b (0.60)\n2. bc (0.90)" in justification
    assert "a" in justification.rpartition("beside it: ")[2]


def test_more_thoughts_than_asked_for_are_left_out() -> None:
    world = World(say=lambda kind, facts: {"thoughts": list("abcdefg")} if kind == "propose" else None)
    assert search(world, max_depth=1, branching_factor=2).asks[1].facts["thoughts"] == ["a", "b"]


def test_turning_to_another_branch_goes_by_way_of_branch_creation() -> None:
    walked = search(World({"a": 0.9, "b": 0.8}, otherwise=0.1), expand_width=1, **FOREVER)
    jumps = zip(expanded(walked)[1:], expanded(walked)[2:], strict=False)
    assert expanded(walked)[:3] == ["", "a", "b"]
    assert stages(walked).count("branch_creation") == 1 + sum(
        not later.startswith(one) for one, later in jumps
    )
    assert ("continuation_decision", "branch_development") in walked.edges
