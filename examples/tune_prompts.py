"""GEPA tunes what two stages ask; `compare` says how good each proposal is.

    pip install reasonry gepa
    python examples/tune_prompts.py arithmetic openai:gpt-6-luna

GEPA (arXiv:2507.19457) shows a model which answers were wrong, has it rewrite an instruction, and keeps what does
better. Every run is in the store, so the same command continues after Ctrl-C and pays for no answer twice.
"""

# gepa need not be installed where this file is checked.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import sys
from itertools import groupby
from typing import Any

from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything

from reasonry import Budget, solve_sync
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison
from reasonry.compare.datasets import DATASETS
from reasonry.compare.problem_set import ProblemSet
from reasonry.ext import App

STRATEGY = "step_back"
SEED = {"abstraction": "Name the principle.", "step_by_step_solution": "Solve the problem."}
"""The instruction that follows the strategy's own question, by stage."""
BUDGET = Budget(calls=10, tokens=20_000)
"""Of each run; a small model that runs away ends at it."""


def tune(dataset: str, model: str, calls: int, store: str | None = None, size: int = 20) -> Any:
    """Tune the instructions on some problems, half of them to learn from.

    Args:
        calls: How often a problem is solved, at most.
    """
    items = DATASETS[dataset].items(size)

    async def compare(instructions: dict[str, str], drawn: list[Any]) -> list[Any]:
        prompts = {f"{STRATEGY}.{stage}": f"{{prompt}}\n\n{text}" for stage, text in instructions.items()}
        asked = RunRequest(prompts=prompts, budget=BUDGET, participants=Participants(model=model))
        # GEPA may draw a problem twice.
        unique = ProblemSet(
            dataset, list({item.id: item for item in drawn}.values()), DATASETS[dataset].judge
        )
        async with App(store) as app:
            report = await Comparison(app, unique, [STRATEGY], asked).run()
        trials = {trial.item: trial for trial in report.trials}
        return [
            (
                float(trials[item.id].right is True),
                {"problem": item.problem, "verdict": trials[item.id].verdict},
            )
            for item in drawn
        ]

    def evaluate(pairs: list[Any]) -> list[Any]:
        scores: list[Any] = []
        for instructions, group in groupby(pairs, lambda pair: pair[0]):
            scores += asyncio.run(compare(instructions, [item for _, item in group]))
        return scores

    def reflect(prompt: Any) -> str:
        asked = solve_sync(
            str(prompt),
            strategy="chain_of_thought",
            options={"style": "plan"},
            model=model,
            store=store,
            budget=BUDGET,
        )
        # Without an answer the instruction stays as it is: the question begins with it.
        return asked.answer or f"```{str(prompt).split('```')[1]}```"

    engine, reflection = EngineConfig(max_metric_calls=calls), ReflectionConfig(reflection_lm=reflect)
    return optimize_anything(
        SEED,
        batch_evaluator=evaluate,
        dataset=items[: size // 2],
        valset=items[size // 2 :],
        config=GEPAConfig(engine=engine, reflection=reflection),
    )


if __name__ == "__main__":
    best = tune(sys.argv[1], model=sys.argv[2], calls=100)
    print(f"{max(best.val_aggregate_scores):.0%} right, from {best.val_aggregate_scores[0]:.0%}")
    print(*(f"{stage}: {text}" for stage, text in best.best_candidate.items()), sep="\n")
