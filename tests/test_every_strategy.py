"""Laws that every strategy of the registry keeps."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reasonry.app.prompts import stages_asking
from reasonry.app.strategy_table import describe, diagram
from reasonry.blocks.answers import AnswerOptions
from reasonry.blocks.toolcard import ToolCard
from reasonry.blocks.why import explain
from reasonry.core.codec import dump_snapshot
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Event, Failed, Usage, Verified
from reasonry.core.machine import Pending, Snapshot, open_effects
from reasonry.core.options import read_options
from reasonry.core.readings import Unreadable
from reasonry.core.strategy import Strategy
from reasonry.errors import UsageError
from reasonry.reading.form import read_form
from reasonry.strategies import STRATEGIES

from .playing import Played, World, advance, check_reason, play, stop

DRIVEN = [one for one in STRATEGIES.values() if one.is_driven]
each = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
each_driven = pytest.mark.parametrize("strategy", DRIVEN, ids=[one.name for one in DRIVEN])
seeds = st.integers(0, 10**6)
few = settings(max_examples=12, deadline=None)

CARDS = (
    ToolCard("search", "Finds things.", {"type": "object", "properties": {"query": {"type": "string"}}}),
)


def world(strategy: Strategy[Any, Any], seed: int, hostility: float) -> World:
    asking = [*inside(strategy), strategy]
    examples = {
        stage.name: stage.example for one in asking for stage in one.stages if stage.example is not None
    }
    more = MORE_TO_DO.get(strategy.name, {}) if seed % 2 else {}
    return World(seed, hostility, {**examples, **more}, RETURNS.get(strategy.name, {}))


RETURNS: dict[str, dict[str, list[Any]]] = {
    "recursive": {
        "py_executor": [
            {"status": "ok", "stdout": "\n<<signal>>('final', '42')\n"},
            {
                "status": "error",
                "stdout": "\n<<signal>>('ask', 'How many?', [[0, 3], 'all'])\n",
                "error": "it waits",
            },
            {"status": "ok", "stdout": "5 lines"},
        ]
    }
}
"""What the tools return that a strategy needs in a form of its own."""


def inside(strategy: Strategy[Any, Any]) -> list[Strategy[Any, Any]]:
    """Return the strategies that one runs inside it by default, the innermost first."""
    over = getattr(strategy.options(), "over", None)
    return [*inside(STRATEGIES[over]), STRATEGIES[over]] if over else []


_STEPS = [
    {"description": "Add", "status": "Done", "result": "42"},
    {"description": "Double", "status": "Pending"},
]
MORE_TO_DO: dict[str, dict[str, Any]] = {
    "planned_thinking": {
        "think": {
            "evaluation": "Correct.",
            "current_thinking": "17 + 25 is 42.",
            "planning": [*_STEPS, {"description": "Conclusion", "status": "Pending"}],
            "next_thought_needed": True,
        }
    },
    "self_ask": {
        "answer_integration": {"thought": "One is missing.", "subQuestion": "When?", "answer": None}
    },
    "scratchpad": {
        "iterative_calculation": {
            "calculation": "9 + 7 = 16",
            "stateVariables": {"carry": 1},
            "finished": False,
        }
    },
}
"""Replies after which a loop goes round once more; the examples end theirs."""


SMALL: dict[str, dict[str, Callable[[random.Random], Any]]] = {
    "best_of_n": {
        "n": lambda rng: rng.randint(1, 4),
        "judge": lambda rng: rng.choice([None, "heats", "points"]),
    },
    "self_consistency": {
        "weigh": lambda rng: rng.random() < 0.3,
        "group": lambda rng: rng.random() < 0.3,
    },
    "cascade": {
        "models": lambda rng: ("a", "b", "c")[: rng.randint(2, 3)],
        "samples": lambda rng: rng.randint(1, 3),
    },
    "council": {"seats": lambda rng: rng.randint(2, 4), "synthesis": lambda rng: rng.random() < 0.7},
    "program_of_thought": {
        "programs": lambda rng: rng.randint(1, 3),
        "rounds": lambda rng: rng.randint(1, 4),
    },
    "prove_and_refute": {
        "solvers": lambda rng: rng.choice([0, 1, 2]),
        "revisions": lambda rng: rng.randint(0, 3),
    },
    "refine": {
        "rounds": lambda rng: rng.randint(1, 4),
        "critique": lambda rng: rng.choice([None, True]),
    },
}
"""Options, by strategy, that lead everywhere and keep a play short."""


def options(strategy: Strategy[Any, Any], seed: int) -> Any:
    """Return random legal options, small enough to play."""
    rng = random.Random(seed)
    names = strategy.options.__struct_fields__
    given: dict[str, Any] = {"tools": CARDS} if "tools" in names else {}
    if "verify" in names and rng.random() < 0.3:
        given["verify"] = True
    given |= {name: pick(rng) for name, pick in SMALL.get(strategy.name, {}).items()}
    if strategy.name == "tree_of_thoughts":
        given["traversal_strategy"] = rng.choice(["bfs", "dfs", "best_first"])
        given["expand_width"] = rng.randint(1, 3)
        given["convergence_window"] = rng.choice([1, 2, 5])
    if strategy.name == "analysis":
        given |= _analysis(rng, is_long=seed % 8 == 0)
        given |= {"enforce_task_counts": seed % 10 == 0}
    return msgspec.convert(given, strategy.options)


def _analysis(rng: random.Random, *, is_long: bool) -> dict[str, Any]:
    """Return options of an analysis; a short one has one plan and one iteration, so that laws are quick."""
    return {
        "complexity_analysis": rng.random() < 0.7,
        "candidate_plans": rng.randint(2, 3) if is_long else 1,
        "max_iterations": 2 if is_long else 1,
        "concurrent_tasks": rng.random() < 0.5,
        "focused_answer_type": rng.choice(["none", "yes/no", "number", "choice: Python | JavaScript"]),
        "execution_retry_limit": rng.randint(0, 1),
        "image": rng.random() < 0.3,
        "tools": (
            *CARDS,
            ToolCard("fetch", "Fetches."),
            ToolCard("count", "Counts."),
            ToolCard("py_executor"),
        ),
    }


@each
def test_every_stage_is_described(strategy: Strategy[Any, Any]) -> None:
    for stage in strategy.stages:
        assert stage.description, stage.name
        assert stage.guidance, stage.name


@each
def test_it_begins_with_the_problem_and_ends_with_the_response(strategy: Strategy[Any, Any]) -> None:
    assert strategy.first == "problem_reception"
    assert [stage.name for stage in strategy.stages if not stage.to] == ["final_response"]


@each
def test_its_document_and_its_diagram_show_every_stage_and_edge(strategy: Strategy[Any, Any]) -> None:
    document = json.loads(json.dumps(describe(strategy)))
    told = [
        (row["name"], to) for row in document["stages"] for to in [row["name"]] * row["repeats"] + row["to"]
    ]
    assert told == list(strategy.edges)
    drawn = diagram(strategy)
    for stage, to in strategy.edges:
        assert re.search(rf"\b{stage}\b.*-->.*\b{to}\b", drawn)


@dataclass
class Listener(World):
    """A world that keeps what it was asked."""

    asked: list[Ask] = field(default_factory=list)

    def answer(self, one: Pending) -> Event:
        if isinstance(one.effect, Ask):
            self.asked.append(one.effect)
        return super().answer(one)


@each_driven
def test_no_example_in_a_question_contains_the_verdict(strategy: Strategy[Any, Any]) -> None:
    """Small models copy examples: where a reply decides, its form leaves the choice open."""
    examples = {stage.name: stage.example for stage in strategy.stages if stage.example is not None}
    decided = set[str]()
    for seed in range(6):
        listener = Listener(seed, 0.0, examples)
        play(strategy, listener, STRATEGIES, options(strategy, seed))
        for ask in listener.asked:
            for name, schema in (ask.form or {}).get("properties", {}).items():
                if schema.get("type") != "boolean" and "enum" not in schema:
                    continue
                shown = re.findall(rf'"{name}": ("[^"]*"|[\w.]+)( or )?', ask.question)
                decided |= {f"{name}: {value}" for value, choice in shown if not choice and value != '"…"'}
    # Of planned thinking a whole thought is shown, and one that continues.
    assert decided <= {"next_thought_needed: true"}


def _references(node: Any) -> list[str]:
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    found = [str(node["$ref"])] if isinstance(node, dict) and "$ref" in node else []
    return found + [one for part in parts for one in _references(part)]


@each
def test_no_schema_it_hands_out_refers_to_what_is_not_there(strategy: Strategy[Any, Any]) -> None:
    assert _references(json.loads(json.dumps(describe(strategy)))) == []
    for option in describe(strategy)["options"]:
        with pytest.raises(UsageError) as error:
            read_options(strategy, {option["name"]: object()})
        assert _references(json.loads(json.dumps(error.value.details))) == []


@each_driven
def test_every_asking_stage_has_a_legal_example(strategy: Strategy[Any, Any]) -> None:
    for stage in strategy.stages:
        if stage.reply is None:
            continue
        assert stage.example is not None, stage.name
        assert not isinstance(read_form(json.dumps(stage.example), stage.reply), Unreadable), stage.name


@each_driven
@few
@given(seeds, st.sampled_from([0.0, 0.05, 0.3, 1.0]))
def test_every_run_ends_in_a_hostile_world(strategy: Strategy[Any, Any], seed: int, hostility: float) -> None:
    played = play(strategy, world(strategy, seed, hostility), STRATEGIES, options(strategy, seed))
    assert played.snapshot.status in ("done", "failed")
    assert played.snapshot.conclusion is not None
    assert (played.snapshot.status == "done") == (played.snapshot.conclusion.answer is not None)
    assert played.snapshot.conclusion.reason
    assert set(played.edges) <= set(strategy.edges)
    json.dumps(msgspec.to_builtins(played.snapshot.conclusion))
    for concluded in (played.snapshot.conclusion, strategy.conclude(played.snapshots[0].state)):
        details = msgspec.to_builtins(concluded.document)
        assert msgspec.convert(details, strategy.details) == details


@each_driven
@few
@given(seeds, st.sampled_from([0.0, 0.1, 1.0]))
def test_every_run_ended_or_stopped_says_why(
    strategy: Strategy[Any, Any], seed: int, hostility: float
) -> None:
    played = play(strategy, world(strategy, seed, hostility), STRATEGIES, options(strategy, seed))
    stopped = [stop(strategy, snapshot, STRATEGIES) for snapshot in played.snapshots[-9:-1]]
    for snapshot in (played.snapshot, *stopped):
        end = snapshot.conclusion
        assert end is not None
        why = explain(end, played.thoughts, snapshot.options)
        check_reason(why, played.thoughts, end)
        assert explain(end, played.thoughts, snapshot.options) == why
        has_answer = end.answer is not None and end.certainty != "best_so_far"
        assert has_answer is not why.text.startswith(("There is no answer", "The run was stopped"))


@each_driven
@few
@given(seeds, seeds)
def test_the_order_of_arrival_changes_nothing(strategy: Strategy[Any, Any], seed: int, order: int) -> None:
    chosen, shuffled = options(strategy, seed), random.Random(order)
    one = play(strategy, world(strategy, seed, 0.1), STRATEGIES, chosen)
    other = play(strategy, world(strategy, seed, 0.1), STRATEGIES, chosen, pick=shuffled.randrange)
    if any(snapshot.has_enough for snapshot in one.snapshots):
        # Which answers come too late to count depends on the order; what they would have changed does not.
        assert _ending(one) == _ending(other)
        return
    assert dump_snapshot(one.snapshot) == dump_snapshot(other.snapshot)
    assert one.edges == other.edges


def _ending(played: Played) -> tuple[Any, ...]:
    conclusion = played.snapshot.conclusion
    assert conclusion is not None
    return played.snapshot.status, conclusion.answer, conclusion.certainty, conclusion.reason


@each_driven
@few
@given(seeds, st.sampled_from([0.0, 0.3]), st.sampled_from(["right", "wrong", "unknown"]))
def test_no_stage_is_answered_more_than_twenty_times_between_two_moves(
    strategy: Strategy[Any, Any], seed: int, hostility: float, verdict: str
) -> None:
    usual = world(strategy, seed, hostility)
    judged = Judged(usual.seed, usual.hostility, usual.examples, usual.returns)
    judged.verdict = verdict
    most = {"max_repairs": 20, "execution_retry_limit": 10, "verify": True}
    names = strategy.options.__struct_fields__
    chosen = replace(options(strategy, seed), **{name: most[name] for name in most if name in names})
    played = play(strategy, judged, STRATEGIES, chosen)
    assert max(len(snapshot.rounds_had) for snapshot in played.snapshots) < 20


@each_driven
@few
@given(seeds, seeds)
def test_a_stop_counts_what_came_in_as_if_the_rest_had_failed(
    strategy: Strategy[Any, Any], seed: int, order: int
) -> None:
    """A stop never yields less than what its answered questions support, and takes nothing from a later resume."""
    chosen, shuffled = options(strategy, seed), random.Random(order)
    played = play(strategy, world(strategy, seed, 0.1), STRATEGIES, chosen, pick=shuffled.randrange)
    for snapshot in played.snapshots[:-1]:
        ended = stop(strategy, snapshot, STRATEGIES)
        assert ended.conclusion is not None
        json.dumps(msgspec.to_builtins(ended.conclusion))
        assert ended.state == snapshot.state
        without = strategy.conclude(snapshot.state).answer
        assert without is None or ended.conclusion.answer is not None
        if any(one.settled for one in snapshot.pending):
            rest_failed = _rest_failed(strategy, snapshot)
            counted = rest_failed.conclusion or stop(strategy, rest_failed, STRATEGIES).conclusion
            assert counted is not None
            assert counted.answer is None or ended.conclusion.answer is not None


def _rest_failed(strategy: Strategy[Any, Any], snapshot: Snapshot) -> Snapshot:
    """Return where a run stands once everything its stage still waits for has failed."""
    first = snapshot.pending[0].id
    while snapshot.status == "active" and snapshot.pending and snapshot.pending[0].id == first:
        waiting, down = open_effects(snapshot)[0], Failed("provider_error", "down")
        snapshot = advance(strategy, snapshot, waiting.id, down, strategies=STRATEGIES).snapshot
    return snapshot


class Judged(World):
    """A world whose verifier says the same of everything that claims to be the answer."""

    verdict: Any = "unknown"

    def answer(self, one: Pending) -> Event:
        if isinstance(one.effect, Verify):
            return Verified(self.verdict if one.effect.final else "unknown")
        return super().answer(one)


ANSWERING = [strategy for strategy in DRIVEN if issubclass(strategy.options, AnswerOptions)]
"""Those whose answer can be looked at; verdicts on given claims are no answer to a problem."""


@pytest.mark.parametrize("strategy", ANSWERING, ids=[strategy.name for strategy in ANSWERING])
@few
@given(seeds, st.sampled_from(["right", "wrong", "unknown"]))
def test_a_verifier_closes_the_answer_of_every_strategy(
    strategy: Strategy[Any, Any], seed: int, verdict: str
) -> None:
    usual = world(strategy, seed, 0.0)
    judged = Judged(usual.seed, usual.hostility, usual.examples, usual.returns)
    judged.verdict = verdict
    played = play(strategy, judged, STRATEGIES, replace(options(strategy, seed), verify=True))
    looked_at = any(isinstance(event, Verified) for _, event in played.events)
    assert played.snapshot.conclusion is not None
    if verdict == "wrong":
        assert played.snapshot.conclusion.answer is None
    else:
        assert looked_at or played.snapshot.conclusion.answer is None


@each_driven
@few
@given(seed=seeds)
def test_a_users_prompt_stands_once_in_every_question_of_its_stage(
    strategy: Strategy[Any, Any], seed: int
) -> None:
    asking = stages_asking([*inside(strategy), strategy])
    prompts = {name: f"<{name}> {{prompt}}" for name in asking}
    run = play(strategy, world(strategy, seed, 0.3), STRATEGIES, options(strategy, seed), prompts=prompts)
    plain = play(strategy, world(strategy, seed, 0.3), STRATEGIES, options(strategy, seed))
    assert (run.edges, run.snapshot.conclusion) == (plain.edges, plain.snapshot.conclusion)
    for one in (one for snapshot in run.snapshots for one in open_effects(snapshot)):
        if isinstance(one.effect, Ask):
            marks = re.findall(r"<(\w+\.\w+)> ", one.effect.question)
            assert [name.partition(".")[2] for name in marks] == [one.stage]


def test_usage_adds_up() -> None:
    assert Usage(usd=0.5) + Usage(input_tokens=2) == Usage(calls=2, input_tokens=2, usd=0.5)
