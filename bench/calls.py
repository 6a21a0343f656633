"""Calls: how many questions, rounds and tokens each strategy takes where all goes well.

    uv run python bench/calls.py

Every strategy is played with its default options by a mind that answers each question as the example of its stage
does: three thoughts where thoughts are listed, an action and then the answer where tools are called, drafts that differ
where a judge compares them, and so on. Tokens are characters / 4, of all questions and replies; rounds are the calls
that wait for one another. `docs/choosing.md` shows the table.
Target: no strategy takes more calls than `MOST_CALLS` says, and none more tokens than `MOST_TOKENS`.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

sys.path.append(str(Path(__file__).parents[1]))

from reasonry.blocks.reply import read_reply
from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Answered, Event, ToolReturned, Verified
from reasonry.core.machine import Pending, advance, begin, open_effects
from reasonry.core.strategy import Strategy
from reasonry.strategies import STRATEGIES
from tests.filling import fill

PROBLEM = "A train needs 2.5 hours for 150 kilometres. How long does it take for 210 kilometres?"
SEARCH = {
    "name": "search",
    "description": "Finds passages.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
PASSAGE = "Trains of that line go at 60 kilometres an hour."


class Cost(NamedTuple):
    calls: int
    rounds: int
    tokens: int


MOST_CALLS = {
    "linear": 10,
    "direct": 1,
    "chain_of_thought": 1,
    "planned_thinking": 3,
    "react": 2,
    "rewoo": 4,
    "scratchpad": 3,
    "self_ask": 3,
    "self_consistency": 5,
    "step_back": 3,
    "tree_of_thoughts": 99,
    "analysis": 18,
    "best_of_n": 15,
    "refine": 8,
    "program_of_thought": 4,
    "council": 7,
    "cascade": 2,
    "prove_and_refute": 4,
    "recursive": 7,
    "chain_of_verification": 9,
    "least_to_most": 8,
    "skeleton": 7,
}
"""A tree searches as long as its options let it, and is measured by what it finds, in `game24`."""
MOST_TOKENS = {"analysis": 5_636, "chain_of_thought": 100, "planned_thinking": 775}


class Mind:
    """Answers as the examples of the stages do; what a run has to repeat, it does three times."""

    def __init__(self, strategy: Strategy[Any, Any]) -> None:
        self.strategy = strategy
        self.asked = Counter[str]()
        self.calls = self.characters = 0

    def answer(self, pending: Pending) -> Event:
        effect = pending.effect
        if isinstance(effect, Verify):
            return Verified("unknown")
        if not isinstance(effect, Ask):
            return ToolReturned(PASSAGE)
        self.asked[pending.stage] += 1
        put = effect.spelled_out()
        data = self._reply(pending.stage, put)
        is_text = put.form is None and data.keys().isdisjoint({"program", "actions"})
        marked = _in_free_text(data)
        reply = marked if is_text else json.dumps(data, ensure_ascii=False)
        self.calls += 1
        self.characters += len(put.text) + len(reply)
        return Answered(reply)

    def _reply(self, stage: str, ask: Ask) -> dict[str, Any]:
        tables = (self.strategy, *STRATEGIES.values())
        examples = (table.by_name[stage].example for table in tables if stage in table.by_name)
        example = next((example for example in examples if example is not None), None)
        data = dict(example or fill(ask.form or {}, random.Random(1), whole=True))
        revise = REVISIONS.get((self.strategy.name, stage))
        data |= revise(self.asked[stage], ask) if revise else {}
        known = {name.casefold() for name in (ask.form or {}).get("properties", data)}
        return {name: value for name, value in data.items() if name.casefold() in known}


def _in_free_text(data: dict[str, Any]) -> str:
    """Return a reply that reasons, and ends with its answer in the mark, or with its next question."""
    told = {name: value for name, value in data.items() if value is not None and not isinstance(value, bool)}
    name, answer = told.popitem()
    end = json.dumps({name: answer}) if name == "subQuestion" else f"<answer>{answer}</answer>"
    written = (value if isinstance(value, str) else json.dumps(value) for value in told.values())
    return "\n\n".join([*written, end])


def _thoughts(count: int, _: Ask) -> dict[str, Any]:
    return {"thoughts": [f"Way {count}.{place}: 150 / 2.5 = 60" for place in (1, 2, 3)]}


def _scores(_: int, ask: Ask) -> dict[str, Any]:
    candidates = ask.facts.get("candidates") or (1, 2, 3)
    return {"scores": {str(place): round(0.7 - 0.1 * place, 2) for place in range(1, 1 + len(candidates))}}


def _other_answer(count: int, _: Ask) -> dict[str, Any]:
    return {"answer": f"{count} hours"}


def _plan(count: int, _: Ask) -> dict[str, Any]:
    results = [("Speed", "60 km/h"), ("Time", "3.5 hours"), ("Conclusion", "3.5 hours")]
    steps = [
        {"description": name, "status": "Done" if place <= count else "Pending", "result": result}
        for place, (name, result) in enumerate(results, 1)
    ]
    return {
        "evaluation": "Correct.",
        "current_thinking": f"210 / 60 = 3.5 (thought {count})",
        "planning": steps,
        "next_thought_needed": count < 3,
    }


REVISIONS: dict[tuple[str, str], Callable[[int, Ask], dict[str, Any]]] = {
    ("best_of_n", "sequential_reasoning"): _other_answer,
    ("refine", "sequential_reasoning"): _other_answer,
    ("council", "sequential_reasoning"): _other_answer,
    ("best_of_n", "comparison"): lambda count, ask: {
        "ratings": {
            label: max(1, 10 - number)
            for label, number in zip(ask.facts["labels"], ask.facts["candidates"], strict=True)
        }
    },
    ("refine", "answer_check"): lambda count, ask: {
        "rating": 4,
        "ratings": dict.fromkeys(ask.facts["labels"], 4),
    },
    ("cascade", "answer_check"): lambda count, ask: {"rating": 9},
    ("prove_and_refute", "claim_attack"): lambda count, ask: {"quote": "2.5 hours for 150 kilometres"},
    ("tree_of_thoughts", "approach_exploration"): _thoughts,
    ("tree_of_thoughts", "branch_development"): _thoughts,
    ("tree_of_thoughts", "branch_evaluation"): _scores,
    ("planned_thinking", "think"): _plan,
    ("react", "reasoning_update"): lambda count, ask: {
        "thought": "210 / 60 = 3.5",
        "actions": [],
        "answer": "3.5 hours",
    },
    ("linear", "thought_evaluation"): lambda count, ask: {
        "next": "thought_adjustment" if count < 3 else "hypothesis_generation"
    },
    ("linear", "continuation_decision"): lambda count, ask: {"next": "hypothesis_generation"},
    ("scratchpad", "iterative_calculation"): lambda count, ask: {
        "calculation": "150 / 2.5 = 60\n210 / 60 = 3.5",
        "finished": True,
    },
}
"""By strategy and stage: what the n-th reply says otherwise than the example."""


def cost(strategy: Strategy[Any, Any]) -> tuple[Cost, str | None]:
    """Play a strategy; return what it took, and its answer."""
    given = {"tools": [SEARCH]} if strategy.name in ("react", "rewoo") else {}
    options = msgspec.convert(given, strategy.options)
    mind, step = Mind(strategy), begin(strategy, PROBLEM, options, strategies=STRATEGIES)
    while waiting := open_effects(step.snapshot):
        step = advance(
            strategy,
            step.snapshot,
            waiting[0].id,
            mind.answer(waiting[0]),
            strategies=STRATEGIES,
            read=read_reply,
        )
    conclusion = step.snapshot.conclusion
    return Cost(mind.calls, step.snapshot.rounds, mind.characters // 4), conclusion and conclusion.answer


def main() -> int:
    print(f"{'':<18} {'calls':>6} {'most':>6} {'rounds':>7} {'tokens':>7}")
    missed: list[str] = []
    for name, strategy in STRATEGIES.items():
        if not strategy.is_driven:
            continue
        now, answer = cost(strategy)
        most = MOST_CALLS[name]
        if answer is None or now.calls > most or now.tokens > MOST_TOKENS.get(name, now.tokens):
            missed.append(name)
        row = f"{name:<18} {now.calls:>6} {most:>6} {now.rounds:>7} {now.tokens:>7}"
        print(f"{row}{'   MISSED' if name in missed else ''}")
    print("\ntarget met" if not missed else "\nTARGET MISSED")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
