"""GEPA tunes the prompts of two stages; `compare` says how good each proposal is.

    pip install reasonry gepa
    python examples/tune_prompts.py arithmetic openai:gpt-6-luna

GEPA (arXiv:2507.19457) shows a model which answers were wrong, has it rewrite a prompt, and keeps what does better.
Each proposal is a strategy of its own, and its runs are in the store: the same command continues after Ctrl-C.
"""

import asyncio
import hashlib
import sys
from itertools import groupby

from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything
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


class State(Struct, frozen=True):
    """The problem, and the answer so far."""

    problem: str
    options: AnswerOptions
    answer: str = ""


def strategy_with(prompts):
    """Return the strategy whose stages ask with these prompts; other prompts, another name."""

    def asking(stage, then):
        def ask(s):
            draft = f"Draft: {s.answer}\n\n" if s.answer else ""
            task = f'{prompts[stage]} Reply with JSON: {{"answer": "…"}}'
            (reply,) = yield request(s, Ask(f"{s.problem}\n\n{draft}{task}"))
            return go(replace(s, answer=reply.value.text), then, Thought(reply.value.text))

        return Stage(stage, (then,), body=ask, reply=AnswerReply, example={"answer": "4"})

    drafting, checking = asking("drafting", "checking"), asking("checking", "final_response")
    return Strategy(
        name=f"tuned_{hashlib.sha256(repr(sorted(prompts.items())).encode()).hexdigest()[:10]}",
        title="Draft and check",
        source="examples/tune_prompts.py",
        summary="Answers, then checks the answer.",
        options=AnswerOptions,
        state=State,
        conclude=lambda s: Conclusion(s.answer or None),
        stages=(Stage("problem_reception", ("drafting",)), drafting, checking, Stage("final_response")),
    )


def tune(dataset, model, calls, store=None):
    """Tune the prompts on twenty problems, ten of them to learn from."""
    items = DATASETS[dataset].items(20)

    async def compare(prompts, items):
        async with App(store) as app:
            strategy = app.register(strategy_with(prompts))
            terms = Terms(dataset=dataset, judge=dataset)
            # GEPA may draw a problem twice.
            drawn = list({item.id: item for item in items}.values())
            report = await Comparison(app, drawn, [strategy.name], Participants(model=model), terms).run()
            scores = {
                trial.item: (float(trial.right is True), {"answer": trial.answer}) for trial in report.trials
            }
            return [scores[item.id] for item in items]

    def evaluate(pairs):
        scores = []
        for prompts, group in groupby(pairs, lambda pair: pair[0]):
            scores += asyncio.run(compare(prompts, [item for _, item in group]))
        return scores

    def reflect(prompt):
        return solve_sync(str(prompt), strategy="plan_and_solve", model=model, store=store).answer or ""

    engine, reflection = EngineConfig(max_metric_calls=calls), ReflectionConfig(reflection_lm=reflect)
    config = GEPAConfig(engine=engine, reflection=reflection)
    return optimize_anything(
        SEED, batch_evaluator=evaluate, dataset=items[:10], valset=items[10:], config=config
    )


if __name__ == "__main__":
    best = tune(sys.argv[1], model=sys.argv[2], calls=100)
    print(f"{max(best.val_aggregate_scores):.0%} right, from {best.val_aggregate_scores[0]:.0%}")
    print(*(f"{stage}: {text}" for stage, text in best.best_candidate.items()), sep="\n")
