"""Tree of thoughts: a search goes on while there is something to ask, and asks nothing that decides nothing."""

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Failed, Verified
from reasonry.core.options import read_options
from reasonry.strategies.tree_of_thoughts import Options, State

from ..searching import TREE_OF_THOUGHTS, World, best, expanded, search, search_as_seed
from ..walking import Walked

WRONG = Verified("wrong", "it breaks a rule")
TRAVERSALS = ("best_first", "bfs", "dfs")


def asked(walked: Walked, kind: str) -> list[Ask]:
    return [ask for ask in walked.asks if ask.facts["kind"] == kind]


def formulated(walked: Walked) -> list[str]:
    """The last steps of the paths whose answer was asked for."""
    return [ask.facts["path"][-1] for ask in asked(walked, "answer")]


def state_of(walked: Walked) -> State:
    assert isinstance(walked.snapshot.state, State)
    return walked.snapshot.state


def answers_at(*solved: str) -> Any:
    """Answer where a path ends in one of these; else there is no answer."""

    def say(kind: str, facts: dict[str, Any]) -> Any:
        if kind != "answer":
            return None
        path = facts["path"]
        if path[-1] in solved:
            return {"reason": "It fits.", "answer": f"by {path[-1]}"}
        return {"reason": f"{path[-1]} breaks a rule.", "answer": None}

    return say


# -- a path without an answer


def test_one_false_1_does_not_end_the_search() -> None:
    world = World({"a": 0.9, "b": 0.5, "ab": 1.0}, otherwise=0.4, say=answers_at("bbb"))
    walked = search(world, max_nodes=1_000)
    assert formulated(walked)[0] == "ab", "what reached the threshold is tried first"
    assert walked.conclusion.answer == "by bbb"
    assert walked.snapshot.status == "done"
    assert best(walked) == "bbb"
    assert not any(text.startswith("ab") for text in expanded(walked)), "and is pruned with all below it"


def test_what_was_given_up_is_recorded_with_its_reason_and_never_shown_as_best() -> None:
    walked = search(World({"a": 0.9}, say=answers_at("b")), max_depth=1)
    refuted = [node for node in state_of(walked).nodes.values() if node.refuted]
    assert [(node.content, node.why) for node in refuted] == [("a", "a breaks a rule.")]
    assert ("continuation_decision", "Pruned: 1 (0.90): a") in [
        (one.stage, one.text) for one in walked.thoughts
    ]
    assert walked.conclusion.document["diagnostics"]["pruned"] == ["node_2"]
    assert best(walked) == "b"


@pytest.mark.parametrize(
    "said", ["b breaks a rule.\n\n<answer>null</answer>", {"reason": "b breaks a rule.", "answer": None}]
)
def test_a_path_without_an_answer_says_null_in_the_mark_or_in_data(said: Any) -> None:
    def say(kind: str, facts: dict[str, Any]) -> Any:
        return said if kind == "answer" and facts["path"] == ["b"] else None

    walked = search(World({"b": 0.9}, say=say), max_depth=1)
    refuted = [node for node in state_of(walked).nodes.values() if node.refuted]
    assert [(node.content, node.why) for node in refuted] == [("b", "b breaks a rule.")]
    assert (walked.conclusion.answer, best(walked)) == ("an answer", "a")


def test_the_answer_of_a_path_that_is_proved_is_its_last_step_where_none_can_be_written() -> None:
    world = World(verdicts={"b": Verified("right")}, say=answers_at())
    walked = search(world, verify=True)
    assert (walked.conclusion.answer, walked.conclusion.reason) == ("b", "verified")


@pytest.mark.parametrize("cap", [{"max_nodes": 4}, {"max_duration_ms": 15}])
def test_where_a_cap_is_reached_the_other_leaves_are_tried_and_nothing_is_expanded(
    cap: dict[str, Any],
) -> None:
    world = World({"a": 0.9, "b": 0.8, "c": 0.7}, say=answers_at("c"))
    walked = search(world, **cap)
    assert formulated(walked) == ["a", "b", "c"]
    assert walked.conclusion.answer == "by c"
    assert expanded(walked) == [""]


def test_what_was_valued_0_is_not_tried_while_there_is_anything_else() -> None:
    world = World({"a": 0.9, "b": 0.0, "c": 0.2}, say=answers_at("c"))
    assert formulated(search(world, max_depth=1)) == ["a", "c"]
    alone = World({"a": 0.0, "b": 0.0, "c": 0.0}, say=answers_at("a"))
    assert search(alone, max_depth=1).conclusion.answer == "by a", (
        "where that is all there is, the first is tried"
    )


def test_a_stop_after_a_path_was_given_up_has_the_best_of_the_others() -> None:
    world = World({"a": 0.9, "b": 0.8}, say=answers_at())
    walked = search(world, max_depth=1)
    assert walked.conclusion.answer is None
    assert (walked.conclusion.reason, walked.snapshot.status) == ("exhausted", "failed")
    assert "no path solves the problem" in walked.conclusion.detail


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from(TRAVERSALS),
    st.integers(1, 3),
    st.text("abc", min_size=3, max_size=3),
    st.sampled_from([{}, {"max_reasks": 0}]),
)
def test_a_solution_that_is_proposed_is_found(
    seed: int, traversal: str, width: int, solution: str, more: dict[str, Any]
) -> None:
    """No cap, no beam: however the steps are valued, the one path that has an answer is come to."""

    def say(kind: str, facts: dict[str, Any]) -> Any:
        if kind != "value":
            return answers_at(solution)(kind, facts)
        chance = [random.Random(f"{seed} {text}").uniform(0.05, 0.95) for text in facts["thoughts"]]
        return {"scores": {str(number): score for number, score in enumerate(chance, start=1)}}

    walked = search(
        World(say=say), traversal_strategy=traversal, expand_width=width, max_nodes=10_000, **more
    )
    assert walked.conclusion.answer == f"by {solution}"
    assert walked.conclusion.document["best"]["content"] == solution
    assert len(formulated(walked)) == len(set(formulated(walked)))


# -- a node all of whose steps are refuted


@dataclass
class Again:
    """Proposes `a`, `b`, `c` first, and other letters when it is asked again."""

    letters: str = "xyz"

    def __call__(self, kind: str, facts: dict[str, Any]) -> Any:
        if kind != "propose" or "refuted" not in facts:
            return None
        above = facts["path"][-1] if facts["path"] else ""
        return {"thoughts": [above + letter for letter in self.letters]}


def test_the_parent_is_asked_again_with_what_was_refuted_and_why() -> None:
    world = World(verdicts=dict.fromkeys("abc", WRONG), say=Again())
    walked = search(world, verify=True, max_depth=1)
    first, again = asked(walked, "propose")
    assert "Refuted" not in first.prompt
    for step in "abc":
        assert f"- {step}\n  Refuted: it breaks a rule" in again.prompt
    assert again.facts["refuted"] == ["a", "b", "c"]
    assert walked.conclusion.answer == "an answer"
    assert [one.branch for one in walked.thoughts if "node_id" in one.data] == ["1", "2", "3", "4", "5", "6"]


def test_a_step_that_was_refuted_is_not_taken_again() -> None:
    world = World(verdicts=dict.fromkeys("abc", WRONG), say=Again("aXb"))
    walked = search(world, verify=True, max_depth=1)
    assert [one.content for one in state_of(walked).nodes.values()] == ["P", "a", "b", "c", "X"]
    assert best(walked) == "X"


def test_a_node_that_has_no_more_steps_is_refuted_and_its_own_parent_asked() -> None:
    dead = {f"a{letter}": WRONG for letter in "abc"}
    world = World({"a": 0.9}, verdicts=dead | {"b": WRONG, "c": WRONG}, say=Again("abc"))
    walked = search(world, verify=True, max_depth=2, max_reasks=1)
    assert [ask.facts["path"] for ask in asked(walked, "propose")] == [[], ["a"], ["a"], []]
    assert "- a\n  Refuted: every step that was tried after it is refuted" in walked.asks[-1].prompt


def test_a_false_equation_refutes_a_step_without_a_call() -> None:
    steps = ["4736 × 8 = 37788", "4736 × 8 = 37888"]
    world = World(say=lambda kind, facts: {"thoughts": steps} if kind == "propose" else None)
    walked = search(world, max_depth=1)
    assert asked(walked, "value") == [], "one step is left, which is followed as it is"
    wrong = state_of(walked).nodes["node_2"]
    assert (wrong.refuted, wrong.why) == (True, "4736 × 8 is 37888, not 37788")
    assert best(walked) == steps[1]


# -- what leads nowhere, by the word of whoever values it


def test_an_empty_proposal_closes_its_node_which_may_still_be_the_answer() -> None:
    def say(kind: str, facts: dict[str, Any]) -> Any:
        is_complete = kind == "propose" and facts["path"] == ["a"]
        return 'Nothing is left to do.\n\n{"thoughts": []}' if is_complete else None

    walked = search(World({"a": 0.9}, otherwise=0.0, say=say))
    assert [ask.facts["path"] for ask in asked(walked, "propose")].count(["a"]) == 1, "it is not asked again"
    assert walked.conclusion.answer == "an answer"
    assert walked.asks[-1].facts["path"] == ["a"]
    assert walked.conclusion.document["diagnostics"]["parse_retries"]["generation"] == 0


@pytest.mark.parametrize("scored", [False, True])
def test_where_no_first_step_is_proposed_the_search_is_exhausted(scored: bool) -> None:
    world = World(say=lambda kind, facts: {"thoughts": []} if kind == "propose" else None)
    walked = search(world, score_with_proposals=scored)
    assert (walked.conclusion.reason, walked.snapshot.error) == ("exhausted", None)
    assert len(walked.asks) == 2, "before the first step it is asked once more"


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(TRAVERSALS), st.integers(1, 3), st.sampled_from([None, 3]))
def test_what_was_valued_0_is_asked_only_where_nothing_else_is_left(
    seed: int, traversal: str, width: int, beam: int | None
) -> None:
    """Before a node valued 0 is expanded, all others are, and the root has been asked as often as it may be."""

    def say(kind: str, facts: dict[str, Any]) -> Any:
        if kind == "answer":
            return {"reason": "No.", "answer": None}
        chance = random.Random(f"{seed} {facts}")
        if kind == "propose":
            above = facts["path"][-1] if facts["path"] else ""
            return {"thoughts": [above + letter for letter in chance.sample("abcdef", 3)]}
        scores = {str(n): chance.choice([0, 0, 0.3, 0.6]) for n in range(1, len(facts["thoughts"]) + 1)}
        return {"scores": scores}

    options = {"traversal_strategy": traversal, "expand_width": width, "beam_width": beam}
    walked = search(World(say=say), max_depth=2, max_nodes=60, **options)
    nodes = state_of(walked).nodes
    valued = {node.content: node.score for node in nodes.values()}
    order = [(ask.facts["path"] or [""])[-1] for ask in asked(walked, "propose")]
    hopeless = [place for place, text in enumerate(order) if text and valued[text] == 0]
    if hopeless:
        before = order[: hopeless[0]]
        assert before.count("") == 1 + Options().max_reasks
        born = {text for text in before if text}
        open_then = [
            node
            for node in nodes.values()
            if node.parent and node.score and node.depth < 2 and node.content[:-1] in {"", *born}
        ]
        assert all(node.asked or node.dropped for node in open_then)


def test_where_all_leads_nowhere_the_first_step_is_looked_at_before_the_last() -> None:
    dead = World({"a": 0.9, "b": 0.5}, otherwise=0.0, say=Again())
    walked = search(dead, max_depth=2, max_reasks=1)
    paths = [ask.facts["path"] for ask in asked(walked, "propose")]
    assert paths[:4] == [[], ["a"], ["b"], []]
    again = asked(walked, "propose")[3].prompt
    assert "- a\n  Nothing that was tried after it led on." in again
    assert "- c\n  It was valued 0: no solution can be reached from it." in again


# -- a single candidate


def test_a_step_that_is_the_only_one_open_is_not_valued() -> None:
    walked = search(World(letters="a"), max_depth=3)
    assert [ask.facts["kind"] for ask in walked.asks] == ["propose"] * 3 + ["answer"]
    assert walked.asks[-1].facts["path"] == ["a", "aa", "aaa"]
    assert walked.conclusion.document["best"]["score"] is None
    assert walked.conclusion.document["diagnostics"]["unscored"] == []
    assert walked.conclusion.answer == "an answer"
    assert asked(search_as_seed(World(letters="a"), min_score_improvement=0), "value"), "seed 004 values it"


def test_a_single_step_is_valued_where_something_competes_with_it() -> None:
    def say(kind: str, facts: dict[str, Any]) -> Any:
        return {"thoughts": ["aa"]} if kind == "propose" and facts["path"] == ["a"] else None

    walked = search(World({"a": 0.9}, say=say), expand_width=1)
    assert ["aa"] in [ask.facts["thoughts"] for ask in asked(walked, "value")]


# -- steps that cannot be read


def test_a_node_whose_steps_cannot_be_read_stays_a_leaf() -> None:
    def say(kind: str, facts: dict[str, Any]) -> Any:
        return "no idea" if kind == "propose" and facts["path"] else None

    walked = search(World({"b": 0.9}, say=say), expand_width=2)
    assert walked.conclusion.answer == "an answer"
    assert walked.asks[-1].facts["path"] == ["b"]
    assert "thoughts_parse_failed" in walked.conclusion.document["diagnostics"]["parser_errors"]


# -- laws over worlds


@dataclass
class Chance(World):
    """Scores, verdicts, answers, false steps and replies that cannot be read, by chance."""

    seed: int = 0

    def __call__(self, one: Any) -> Any:
        chance = random.Random(f"{self.seed} {one.id}")
        if isinstance(one.effect, Verify):
            verdict = chance.choices(["wrong", "right", "unknown"], [5, 1 if one.effect.final else 0, 4])[0]
            return Verified(verdict, "by chance" if verdict == "wrong" else "")
        facts = one.effect.facts
        if chance.random() < 0.05:
            return Failed("output_invalid", "unreadable")
        match facts["kind"]:
            case "propose":
                above = facts["path"][-1] if facts["path"] else ""
                letters = chance.sample("abcdef", facts["count"])
                self.say = lambda kind, facts: {"thoughts": [above + letter for letter in letters]}
            case "value":
                scores = {
                    str(n): chance.choice([0, 0.3, 0.6, 1]) for n in range(1, len(facts["thoughts"]) + 1)
                }
                self.say = lambda kind, facts: {"checks": {}, "scores": scores}
            case _:
                answer = "yes" if chance.random() < 0.1 else None
                self.say = lambda kind, facts: {"reason": "so", "answer": answer}
        return super().__call__(one)


@settings(deadline=None, max_examples=120)
@given(
    st.integers(0, 10**6),
    st.fixed_dictionaries(
        {
            "traversal_strategy": st.sampled_from(TRAVERSALS),
            "expand_width": st.integers(1, 3),
            "branching_factor": st.integers(1, 3),
            "max_depth": st.integers(1, 3),
            "max_reasks": st.integers(0, 2),
            "max_nodes": st.sampled_from([5, 30, 60]),
            "verify": st.booleans(),
            "beam_width": st.sampled_from([None, None, 2]),
            "convergence_window": st.sampled_from([1, 2]),
        }
    ),
)
def test_every_search_ends_and_without_an_answer_only_where_nothing_is_left_to_ask(
    seed: int, options: dict[str, Any]
) -> None:
    walked = search(Chance(seed=seed), **options)
    state = state_of(walked)
    nodes = state.nodes
    assert walked.snapshot.error in (None, "output_invalid")
    for node in nodes.values():
        assert node.asked <= 1 + options["max_reasks"]
        assert not node.refuted or node.why
    paths = [tuple(ask.facts["path"]) for ask in asked(walked, "answer")]
    assert len(paths) == len(set(paths)), "no path is asked for its answer twice"
    if walked.conclusion.answer is None and walked.snapshot.error is None:
        assert not [leaf for leaf in state.candidates if leaf.score != 0]
        capped = len(nodes) >= options["max_nodes"]
        dead = [
            node
            for node in nodes.values()
            if node.children and all(nodes[one].refuted for one in node.children)
        ]
        assert capped or all(nodes[waiting.id].refuted for waiting in state.frontier)
        assert capped or all(node.asked == 1 + options["max_reasks"] for node in dead)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(TRAVERSALS))
def test_a_deeper_leaf_is_never_passed_over_for_a_score(seed: int, width: int, traversal: str) -> None:
    walked = search(Chance(seed=seed), expand_width=width, traversal_strategy=traversal, max_nodes=12)
    promising = [leaf for leaf in state_of(walked).candidates if leaf.score != 0]
    depths = [leaf.depth for leaf in promising]
    assert depths == sorted(depths, reverse=True)


# -- prompts and presets


def test_convergence_is_off_and_two_nodes_are_expanded_by_default() -> None:
    assert (Options().convergence_window, Options().expand_width) == (1, 2)
    assert search().conclusion.reason == "max_depth"


def test_a_preset_stands_for_what_is_not_given() -> None:
    seed = read_options(TREE_OF_THOUGHTS, {"preset": "seed"})
    assert (seed.convergence_window, seed.expand_width, seed.max_reasks) == (2, 1, 0)  # type: ignore[attr-defined]
    given_too = read_options(TREE_OF_THOUGHTS, {"preset": "seed", "expand-width": "2"})
    assert (given_too.expand_width, given_too.convergence_window) == (2, 2)  # type: ignore[attr-defined]
    again = read_options(
        TREE_OF_THOUGHTS, {name: getattr(given_too, name) for name in Options.__struct_fields__}
    )
    assert again == given_too
