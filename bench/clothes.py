"""Clothes: what it costs a strategy that a model writes as mid-sized models do, and not as it is asked to.

    uv run python bench/clothes.py [--runs 40] [--rate 0.6]

Every strategy is played twice on the same replies: once as each form is asked for, and once with that share of the
replies in other clothes: other keys, YAML, Python, fences, sentences around them, words for truth values, text for
lists and numbers, choices in other spelling. A run succeeds if it comes to an answer. Calls are counted where the run
with plain replies succeeds: the same unusable reply twice ends the asking, and in other clothes it is not the same.
Targets: at least 95 % of the success with plain replies, and at most 1.1 times the calls.
"""

import argparse
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Event
from reasonry.core.machine import Pending
from reasonry.strategies import STRATEGIES
from tests.filling import fill
from tests.playing import World, play
from tests.reading.clothes import SAME_MEANING

LEAST_SUCCESS, MOST_CALLS = 0.95, 1.1


@dataclass
class Writer(World):
    """Answers by seed and question; a share of the replies in other clothes."""

    rate: float = 0.0
    calls: int = 0

    def answer(self, one: Pending) -> Event:
        if not isinstance(one.effect, Ask):
            return super().answer(one)
        self.calls += 1
        question = one.id.partition(".")[0]
        rng, form = random.Random(f"{self.seed} {question}"), one.effect.form or {}
        example = self.examples.get(one.stage)
        data: Any = example if example is not None and rng.random() < 0.5 else fill(form, rng, whole=True)
        if isinstance(data, str):
            return Answered(data)
        clothes = random.Random(f"{self.seed} {one.id} clothes")
        change = SAME_MEANING[clothes.choice(list(SAME_MEANING))] if clothes.random() < self.rate else None
        return Answered((change(data, form) if change else None) or json.dumps(data))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rate", type=float, default=0.6)
    settings = parser.parse_args()
    print(f"{'':<20} {'answers':>8} {'dressed':>8} {'calls':>7} {'dressed':>8} {'ratio':>6}")
    good = True
    for name, strategy in STRATEGIES.items():
        examples = {stage.name: stage.example for stage in strategy.stages if stage.example is not None}
        answers, calls = [0, 0], [0, 0]
        for seed in range(settings.runs if strategy.is_driven else 0):
            taken = [0, 0]
            for place, rate in enumerate((0.0, settings.rate)):
                writer = Writer(seed, examples=examples, rate=rate)
                options = {"samples": 8} if "samples" in strategy.options.__struct_fields__ else {}
                played = play(strategy, writer, STRATEGIES, strategy.options(**options))
                conclusion = played.snapshot.conclusion
                is_answered = conclusion is not None and conclusion.answer is not None
                answers[place] += is_answered
                taken[place] = writer.calls
                if place == 0 and not is_answered:
                    break
            else:
                calls = [before + each for before, each in zip(calls, taken, strict=True)]
        ratio = calls[1] / (calls[0] or 1)
        kept = answers[1] >= LEAST_SUCCESS * answers[0] and ratio <= MOST_CALLS
        good = good and kept
        print(
            f"{name:<20} {answers[0]:>8} {answers[1]:>8} {calls[0]:>7} {calls[1]:>8} {ratio:>6.2f}"
            f"{'' if kept else '   MISSED'}"
        )
    print("\ntarget met" if good else "\nTARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
