"""The folded state that is kept of a run: a fold that begins with it comes to the same as one from the first line."""

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.core.events import Answered
from reasonry.engine.journal import Begun, CallIntended, Settled
from reasonry.engine.run import Run, fold_from
from reasonry.strategies import STRATEGIES

from ..playing import play
from ..test_every_strategy import DRIVEN, options, world


@pytest.mark.parametrize("strategy", DRIVEN, ids=[strategy.name for strategy in DRIVEN])
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_a_fold_from_a_checkpoint_is_the_fold_from_the_first_line(strategy, seed: int) -> None:
    chosen, rng = options(strategy, seed), random.Random(seed)
    problem = "Use 4, 6 and 1 to make 24"
    played = play(strategy, world(strategy, seed, 0.1), STRATEGIES, chosen, problem=problem)
    begun = Begun(strategy.name, problem, msgspec.to_builtins(chosen), version=strategy.version)
    whole, entries = Run(begun, STRATEGIES), list[Settled | CallIntended]()
    at = rng.randrange(len(played.events)) if played.events else 0
    kept: bytes | None = None
    for number, (effect_id, event) in enumerate(played.events):
        if number == at:
            state = whole.checkpoint()
            assert state is not None
            kept, entries = msgspec.json.encode(state), []
        if isinstance(event, Answered) and rng.random() < 0.5:
            entries.append(CallIntended(effect_id or "", 7, 0.5))
            whole.apply(entries[-1])
        whole.take(Settled(effect_id, event))
        entries.append(whole.events[-1])
    if kept is None:
        return
    again = fold_from(kept, entries, STRATEGIES)
    assert again is not None
    assert not again.is_whole or at == 0
    assert again.snapshot == whole.snapshot
    assert (again.usage, again.ledger, again.counts) == (whole.usage, whole.ledger, whole.counts)
    assert again.branches == whole.branches
    assert [one.id for one in again.open_effects] == [one.id for one in whole.open_effects]


def test_a_checkpoint_of_another_version_or_of_none_is_passed_over() -> None:
    strategy = STRATEGIES["scratchpad"]
    whole = Run(Begun("scratchpad", "P", {}, version=strategy.version), STRATEGIES)
    state = whole.checkpoint()
    assert state is not None
    other = msgspec.structs.replace(state, strategy_version=strategy.version + 1)
    for kept in (b"", b"{}", b"[", msgspec.json.encode(other)):
        assert fold_from(kept, [], STRATEGIES) is None
    assert fold_from(msgspec.json.encode(state), [], STRATEGIES) is not None
