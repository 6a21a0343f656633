"""Calls: how many questions, rounds and tokens each strategy takes where all goes well.

    uv run python bench/calls.py

Every strategy is played with its default options, and every question is answered as the example of its stage has it: what
is wanted, and nothing in vain. Tokens are characters / 4, of all questions and replies; rounds are the questions that
wait for one another. `docs/choosing.md` shows this table; `before` is 0.1.0, played the same way.
Target: no strategy takes more calls than before, and those that asked questions which decide nothing take fewer.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Answered, Event, ToolReturned, Verified
from reasonry.core.machine import Pending
from reasonry.core.strategy import Strategy
from reasonry.core.toolcard import ToolCard
from reasonry.strategies import STRATEGIES
from tests.filling import fill
from tests.playing import World, play

PROBLEM = "A train needs 2.5 hours for 150 kilometres. How long does it take for 210 kilometres?"

BEFORE = {}
"""Calls, rounds and tokens in 0.1.0."""

AT_MOST = {"chain_of_thought": 2, "step_back": 3}


@dataclass
class Exemplary(World):
    """Answers as the examples of the stages do."""

    calls: int = 0
    characters: int = 0

    def answer(self, one: Pending) -> Event:
        if isinstance(one.effect, Verify):
            return Verified("unknown")
        if not isinstance(one.effect, Ask):
            return ToolReturned("Trains of that line go at 60 kilometres an hour.")
        reply = json.dumps(self._said(one, one.effect), ensure_ascii=False)
        self.calls += 1
        self.characters += len(one.effect.system) + len(one.effect.prompt) + len(reply)
        return Answered(reply)

    def _said(self, one: Pending, ask: Ask) -> Any:
        example = dict(self.examples.get(one.stage) or fill(ask.form or {}, self.chance(one), whole=True))
        if one.stage == "branch_evaluation":
            example["scores"] = {str(place): 0.9 - place / 10 for place in range(1, 1 + len(ask.facts["candidates"]))}
        return example


def main() -> int:
    return 0


if __name__ == "__main__":
    sys.exit(main())
