"""Best of five at a limit on calls: how good the answer is where the tournament is not over.

    uv run python bench/unfinished.py [--runs 150] [--noise 1]

A draft has a quality u ~ U(0, 1); a judge rates it 10 u + N(0, noise). The last questions of a run are asked as the
engine asks them, when no call is left beside those.
Target, with noise 1: a mean quality of at least 0.65 at 10 calls, 0.75 at 14 and 0.78 at 17.
"""

import argparse
import json
import random
import re
import statistics
import sys

from reasonry.blocks.reply import read_reply
from reasonry.core.events import Answered, Closing, Event, Stopped
from reasonry.core.machine import advance, begin, last_questions
from reasonry.core.options import read_options
from reasonry.core.pending import Pending, open_effects
from reasonry.strategies import STRATEGIES

BEST_OF_N = STRATEGIES["best_of_n"]
TARGETS = {10: 0.65, 14: 0.75, 17: 0.78}
LIMITS = (2, 4, 6, 8, 10, 12, 14, 17)


class Mind:
    """Writes drafts of any quality, and judges them."""

    def __init__(self, seed: int, noise: float) -> None:
        self.chance, self.noise, self.qualities = random.Random(seed), noise, dict[str, float]()

    def reply(self, one: Pending) -> Answered:
        """Return a draft, or the ratings of those that are shown."""
        if getattr(one.effect, "by", "") != "judge":
            draft = f"draft-{len(self.qualities) + 1}"
            self.qualities[draft] = self.chance.random()
            return Answered(f"It is written.\n<answer>{draft}</answer>")
        shown = re.findall(r"draft-\d+", getattr(one.effect, "prompt", ""))
        rated = (10 * self.qualities[draft] + self.chance.gauss(0, self.noise) for draft in shown)
        ratings = {label: min(10, max(1, rating)) for label, rating in zip("ABCDE", rated, strict=False)}
        return Answered(json.dumps({"reason": "as rated", "ratings": ratings}))


def quality_at(limit: int, seed: int, noise: float) -> float:
    """Return the quality of the answer of a run with so many calls."""
    mind, calls, closings = Mind(seed, noise), 0, 0
    snapshot = begin(BEST_OF_N, "Which?", read_options(BEST_OF_N, {"n": 5}), strategies=STRATEGIES).snapshot
    while snapshot.status == "active":
        one, last = open_effects(snapshot)[0], last_questions(BEST_OF_N, snapshot, STRATEGIES)
        effect_id: str | None = None
        event: Event
        if calls + len(last or ()) < limit:
            calls += 1
            effect_id, event = one.id, mind.reply(one)
        elif last is None:
            event = Stopped("max_calls")
        else:
            closings += 1
            event = Closing("max_calls", number=closings)
        snapshot = advance(
            BEST_OF_N, snapshot, effect_id, event, strategies=STRATEGIES, read=read_reply
        ).snapshot
    answer = snapshot.conclusion.answer if snapshot.conclusion else None
    return mind.qualities.get(answer or "", 0.0)


def main() -> int:
    """Print the table; return 1 where a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--noise", type=float, default=1.0)
    given = parser.parse_args()
    good = True
    for limit in LIMITS:
        quality = statistics.mean(quality_at(limit, seed, given.noise) for seed in range(given.runs))
        good &= given.noise != 1 or quality >= TARGETS.get(limit, 0)
        print(f"{limit:3} calls   {quality:.3f}")
    print("\ntarget met" if good else "\nTARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
