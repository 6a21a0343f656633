"""The outcome of a run: one rule for all strategies, however far a run has got and however it ends."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonry.core.bodies import Conclusion
from reasonry.core.effects import Verify
from reasonry.core.events import Stopped, Verified
from reasonry.core.options import read_options
from reasonry.core.strategy import Strategy
from reasonry.engine.engine import Engine
from reasonry.engine.journal import Begun, Settled
from reasonry.engine.policy import Performers
from reasonry.engine.result import Result, result_of, row_after
from reasonry.engine.run import Run
from reasonry.records import RunRow
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES

from ..test_every_strategy import each_driven, options, seeds, world
from .playing import CountingModel
from .running import accept, drive, order_of

pytestmark = pytest.mark.anyio

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


PROSE = ("Bridges fail where steel tires.", "That is all of it.", "Bridges fail, since steel remembers.")


class Undecided:
    """A verifier that cannot say."""

    name = "undecided"

    async def verify(self, claim: Verify) -> Verified:
        return Verified("unknown")


async def answered_in_prose(**options: Any) -> Result:
    """Return the result of a run whose model never says where its answer is."""
    engine, strategy = Engine(MemoryStore(), STRATEGIES), STRATEGIES["chain_of_thought"]
    replies = iter(PROSE)
    model = CountingModel(reply=lambda question: next(replies))
    order = order_of(
        strategy, "Why do bridges fail?", read_options(strategy, options), warnings=("a notice",)
    )
    result = await drive(engine, await accept(engine, order), Performers(model, verifier=Undecided()))
    assert model.calls == len(PROSE)
    return result


async def test_a_text_without_its_mark_is_taken_whole_but_where_a_verifier_wants_a_value() -> None:
    result, checked = await answered_in_prose(), await answered_in_prose(verify=True)
    assert (result.outcome, result.answer) == ("answered", PROSE[-1])
    assert result.warnings[0] == "unmarked: a reply never said where its answer is, so it was taken whole"
    assert result.warnings[1:] == checked.warnings == ("a notice",)
    assert (checked.outcome, checked.termination.code) == ("error", "output_invalid")
    assert (checked.answer, checked.best_answer) == (None, PROSE[-1])
