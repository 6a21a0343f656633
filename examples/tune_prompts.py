"""GEPA tunes the prompts of two stages; `compare` says how good each proposal is.

    pip install reasonry gepa
    python examples/tune_prompts.py arithmetic openai:gpt-6-luna

GEPA (arXiv:2507.19457) shows a model which answers were wrong, has it rewrite a prompt, and keeps what does better.
Each proposal becomes a strategy of its own, and a comparison runs it. The runs are in the store, so the same command
continues after Ctrl-C, and nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from typing import Any

import gepa
from gepa.core.adapter import EvaluationBatch
from msgspec import Struct
from msgspec.structs import replace

from reasonry import Conclusion, Stage, Strategy, Thought, solve_sync
from reasonry.app.participants import Participants
from reasonry.app.wiring import App
from reasonry.compare.comparison import Comparison, Terms
from reasonry.compare.datasets import DATASETS
from reasonry.core.answering import AnswerOptions, AnswerReply
from reasonry.core.effects import Ask
from reasonry.core.strategy import go, request

SEED = {"drafting": "Answer the problem.", "checking": "Check the draft and give the answer."}
FORM = 'Reply with JSON: {"answer": "…"}'


class State(Struct, frozen=True):
    """A draft, and the answer that comes of it."""

    problem: str
    options: AnswerOptions
    draft: str = ""
    answer: str = ""


def strategy_with(prompts: dict[str, str]) -> Strategy[Any, Any]:
    """Return the strategy whose stages ask with these prompts; other prompts, another name."""

    def draft(s):
        (reply,) = yield request(s, Ask(f"{s.problem}\n\n{prompts['drafting']} {FORM}"))
        return go(replace(s, draft=reply.value.text), "checking", Thought(reply.value.text))

    def check(s):
        question = f"{s.problem}\n\nDraft: {s.draft}\n\n{prompts['checking']} {FORM}"
        (reply,) = yield request(s, Ask(question))
        return go(replace(s, answer=reply.value.text), "final_response", Thought(reply.value.text))

    stages = (
        Stage("problem_reception", ("drafting",)),
        Stage("drafting", ("checking",), body=draft, reply=AnswerReply, example={"answer": "4"}),
        Stage("checking", ("final_response",), body=check, reply=AnswerReply, example={"answer": "4"}),
        Stage("final_response"),
    )
    return Strategy(
        name=f"tuned_{hashlib.sha256(repr(sorted(prompts.items())).encode()).hexdigest()[:10]}",
        title="Draft and check",
        source="examples/tune_prompts.py",
        summary="Answers, then checks the answer.",
        options=AnswerOptions,
        state=State,
        conclude=lambda s: Conclusion(s.answer or s.draft or None),
        stages=stages,
    )


class Evaluator:
    """What GEPA needs: the scores of a candidate on some problems, and what a model can learn from them."""

    propose_new_texts = None

    def __init__(self, dataset: str, model: str, store: str | None) -> None:
        self.dataset, self.model, self.store = DATASETS[dataset], model, store

    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """Return a score for each problem."""
        report = asyncio.run(self._compare(batch, candidate))
        trials = {trial.item: trial for trial in report.trials}
        found = [trials[str(item.id)] for item in batch]
        return EvaluationBatch(found, [float(trial.right is True) for trial in found], found)

    async def _compare(self, batch: list[Any], candidate: dict[str, str]) -> Any:
        async with App(self.store) as app:
            strategy = app.register(strategy_with(candidate))
            terms = Terms(dataset=self.dataset.name, judge=self.dataset.name)
            participants = Participants(model=self.model)
            unique = list({item.id: item for item in batch}.values())
            comparison = Comparison(
                app, unique, [strategy.name], participants, terms, judge=self.dataset.judge
            )
            return await comparison.run()

    def make_reflective_dataset(self, candidate: Any, evaluated: Any, components: list[str]) -> Any:
        """Return what a model is shown before it rewrites a prompt."""
        lessons = [
            {
                "Inputs": trial.problem,
                "Generated Outputs": trial.answer or "nothing",
                "Feedback": "right" if trial.right else f"wrong; {trial.why_no_answer}",
            }
            for trial in evaluated.outputs
        ]
        return dict.fromkeys(components, lessons)


def tune(dataset: str, model: str, calls: int, store: str | None = None) -> Any:
    """Tune the prompts on twenty problems, ten of them to learn from."""
    items = DATASETS[dataset].items(20)
    return gepa.optimize(
        seed_candidate=SEED,
        trainset=items[:10],
        valset=items[10:],
        adapter=Evaluator(dataset, model, store),
        reflection_lm=lambda prompt: (
            solve_sync(str(prompt), strategy="chain_of_thought", model=model, store=store).answer or ""
        ),
        max_metric_calls=calls,
    )


if __name__ == "__main__":
    best = tune(sys.argv[1], model=sys.argv[2], calls=100)
    print(f"{max(best.val_aggregate_scores):.0%} right, from {best.val_aggregate_scores[0]:.0%}")
    print(*(f"{stage}: {text}" for stage, text in best.best_candidate.items()), sep="\n")
