"""Laws of runs that meet their limit on calls, for every strategy and every number of calls up to the usual one."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from reasonry.core.effects import Ask, Verify
from reasonry.core.events import Closing, Event, Stopped, Verified
from reasonry.core.machine import Pending, Snapshot, begin, last_questions, open_effects
from reasonry.core.strategy import Strategy
from reasonry.strategies import STRATEGIES

from .playing import World, advance
from .test_every_strategy import each_driven, options, world

MOST = 16
PROBLEM = "Use 4, 6 and 1 to make 24"


@dataclass
class Played:
    """A run that met its limit, or did not."""

    snapshot: Snapshot
    asked: list[str] = field(default_factory=list[str])
    """Its questions up to the closing."""
    calls: int = 0
    closings: int = 0

    @property
    def outcome(self) -> str:
        """As the engine has it."""
        end = self.snapshot.conclusion
        if self.snapshot.error:
            return "error"
        if self.snapshot.status == "cancelled" or end is None or end.certainty == "best_so_far":
            return "stopped"
        return "unsolved" if end.answer is None else "solved" if end.certainty == "proved" else "answered"


def judge(claim: Verify, seed: int) -> Verified:
    """Rule by the candidate alone."""
    verdict = random.Random(f"{seed} {claim.path[-1]}").choice(["right", "wrong", "unknown"])
    return Verified(verdict, answer="42" if verdict == "right" else None)  # pyright: ignore[reportArgumentType]


def play(strategy: Strategy[Any, Any], seed: int, limit: int | None) -> Played:
    """Ask while calls are left beside those of the last questions; then close the run, and at last stop it."""
    chosen, replies = options(strategy, seed), world(strategy, seed, 0.0)
    played = Played(begin(strategy, PROBLEM, chosen, strategies=STRATEGIES).snapshot)
    while played.snapshot.status == "active":
        played.snapshot = _next(played, strategy, replies, limit)
    return played


def _next(played: Played, strategy: Strategy[Any, Any], replies: World, limit: int | None) -> Snapshot:
    snapshot = played.snapshot
    waiting = sorted(open_effects(snapshot), key=lambda one: isinstance(one.effect, Ask))
    last = last_questions(strategy, snapshot, STRATEGIES)
    one: Pending | None = waiting[0]
    event: Event = replies.answer(waiting[0])
    if isinstance(waiting[0].effect, Verify):
        event = judge(waiting[0].effect, replies.seed)
    elif isinstance(waiting[0].effect, Ask) and limit is not None and played.calls + len(last or ()) >= limit:
        one, event = None, Stopped("max_calls", "limit")
        if last is not None:
            played.closings += 1
            event = Closing("max_calls", "limit", number=played.closings)
    elif isinstance(waiting[0].effect, Ask):
        played.calls += 1
        played.asked += [] if played.closings else [waiting[0].id]
    return advance(strategy, snapshot, one and one.id, event, strategies=STRATEGIES).snapshot


@each_driven
@pytest.mark.parametrize("seed", range(3))
def test_more_calls_only_add_to_the_way_and_what_was_proved_stays(
    strategy: Strategy[Any, Any], seed: int
) -> None:
    asked, proved = list[str](), None
    for limit in range(1, min(play(strategy, seed, None).calls, MOST) + 1):
        played = play(strategy, seed, limit)
        assert played.asked[: len(asked)] == asked
        end = played.snapshot.conclusion
        assert proved is None or (end and end.answer == proved)
        asked = played.asked
        if played.outcome == "solved" and not played.closings and end:
            proved = end.answer
