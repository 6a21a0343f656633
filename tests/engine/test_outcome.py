"""The outcome of a run: one rule for all strategies, however far a run has got and however it ends."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonry.core.bodies import Conclusion
from reasonry.core.events import Stopped
from reasonry.core.strategy import Strategy
from reasonry.engine.journal import Begun, Settled
from reasonry.engine.result import result_of, row_after
from reasonry.engine.run import Run
from reasonry.records import RunRow
from reasonry.strategies import STRATEGIES

from ..test_every_strategy import each_driven, options, seeds, world

few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def play(strategy: Strategy[Any, Any], seed: int, events: int) -> Run:
    """Play a run for so many events."""
    answers, rng = world(strategy, seed, 0.2 if seed % 3 == 0 else 0.0), random.Random(seed)
    chosen = msgspec.json.decode(msgspec.json.encode(options(strategy, seed)))
    run = Run(Begun(strategy.name, "What is 6 times 7?", chosen, created_at_ms=1), STRATEGIES)
    for _ in range(events):
        if not run.open_effects:
            break
        waiting = rng.choice(run.open_effects)
        run.take(Settled(waiting.id, answers.answer(waiting)))
    return run


@each_driven
@few
@given(seeds, st.integers(0, 120), st.sampled_from(["max_calls", "cancelled"]))
def test_only_a_run_that_came_to_its_own_end_has_an_answer(
    strategy: Strategy[Any, Any], seed: int, events: int, reason: str
) -> None:
    run = play(strategy, seed, events)
    is_cut = run.snapshot.status == "active"
    if is_cut:
        assert result_of("r", "s", run).outcome is None
        run.take(Settled(None, Stopped(reason, "it was enough", run.snapshot.at_ms)))
    result, ended = result_of("r", "s", run), run.snapshot.conclusion or Conclusion()
    is_answered = result.outcome in ("solved", "answered")
    assert (result.answer is not None) == is_answered
    assert not (is_answered and result.best_answer)
    assert result.outcome in (
        {"stopped", "solved"} if is_cut else {"solved", "answered", "unsolved", "stopped", "error"}
    )
    assert (result.outcome == "error") == (run.snapshot.error is not None)
    assert (ended.certainty == "proved") or result.outcome != "solved"
    row = row_after(RunRow("r", "s", strategy.name, "m", "p", "active", 1, 1), run, 2)
    assert (row.outcome, row.reason) == (result.outcome, result.termination.reason)
