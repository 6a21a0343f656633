"""One record, whoever thinks and whatever happens: driven, coached, handed over, or resumed after a crash."""

from collections.abc import Hashable
from itertools import product
from typing import Any, NamedTuple

import pytest

from reasonry.core.strategy import Strategy
from reasonry.engine import journal
from reasonry.engine.engine import Engine
from reasonry.engine.journal import ParticipantNames, Settled
from reasonry.strategies import STRATEGIES

from ..playing import World
from ..test_every_strategy import DRIVEN, each_driven, options, world
from .answering import WorldModel, after_crash, coach_on, engine, is_same, order, performers_of, record
from .running import accept, drive, resume, trace_of

pytestmark = pytest.mark.anyio

SEEDS = range(12)


async def driven(
    strategy: Strategy[Any, Any], seed: int, answers: World, free: bool = True
) -> tuple[Engine, str]:
    engines = engine()
    run_id = await accept(engines, order(strategy, options(strategy, seed)))
    result = await drive(engines, run_id, performers_of(answers, free))
    assert result.status in ("done", "failed")
    return engines, run_id


class Example(NamedTuple):
    """A run, the world that answered it, what it shows, and how many lines its journal has."""

    seed: int
    answers: World
    engines: Engine
    run_id: str
    shown: set[Hashable]
    lines: int


async def examples(strategy: Strategy[Any, Any], *hostilities: float, free: bool = True) -> list[Example]:
    """Return runs that together show all that the runs of these seeds do, in as few lines as can soon be found."""
    played = list[Example]()
    for hostility, seed in product(hostilities, SEEDS):
        answers = world(strategy, seed, hostility)
        engines, run_id = await driven(strategy, seed, answers, free)
        shown, lines = await features(engines, run_id), await engines.store.lines(run_id)
        played.append(Example(seed, answers, engines, run_id, shown, len(lines)))
    missing, chosen = set[Hashable]().union(*(one.shown for one in played)), list[Example]()
    while missing:
        chosen.append(max(played, key=lambda one: len(one.shown & missing) / one.lines))
        missing -= chosen[-1].shown
    return chosen


async def features(engines: Engine, run_id: str) -> set[Hashable]:
    """Return the edges a run took, how it ended, and, by stage, the answers it had and how they were read."""
    trace = await trace_of(engines, run_id)
    stages = {effect["id"]: effect["stage"] for effect in trace["effects"]}
    entries = (await engines.recorded_run(run_id)).entries
    settled = [entry for entry in entries if isinstance(entry, Settled)]
    return {
        trace["termination"]["reason"],
        *map(tuple, trace["path"]),
        *(
            (
                stages.get(entry.id),
                type(entry.event),
                getattr(entry.event, "code", None),
                bool(entry.reading and entry.reading.refusal),
            )
            for entry in settled
        ),
    }


@pytest.mark.slow
@each_driven
async def test_a_crash_after_any_line_of_the_journal_changes_nothing_and_asks_nothing_twice(
    strategy: Strategy[Any, Any],
) -> None:
    for _, answers, engines, run_id, *_ in await examples(strategy, 0.0, 0.15, free=False):
        whole, lines = await record(engines, run_id), await engines.store.lines(run_id)
        calls = (await engines.result(run_id)).usage.calls
        entries, _ = journal.read(run_id, lines)
        # The last event and all lines to the end of the run, such as calls that it cuts off, are written together.
        last = max(count for count, entry in enumerate(entries) if isinstance(entry, Settled))
        for count in range(1, last + 1):
            found = await after_crash(engines.store, run_id, lines[:count])
            entries, _ = journal.read(run_id, lines[:count])
            recorded = {entry.id for entry in entries if isinstance(entry, Settled)}
            participants = performers_of(answers)
            result = await resume(found, run_id, participants)
            left = await record(found, run_id)
            assert is_same(left, whole)
            assert isinstance(participants.model, WorldModel)
            assert not recorded & set(participants.model.asked)
            assert set(participants.model.asked.values()) <= {1}
            assert (await found.replay(run_id))["replay"]["identical"] is True
            assert result.usage.calls == calls or left["cut"] or whole["cut"]


@each_driven
async def test_a_coached_run_leaves_the_record_of_a_driven_one(strategy: Strategy[Any, Any]) -> None:
    for seed, answers, engines, run_id, *_ in await examples(strategy, 0.0):
        coached = engine()
        other = await accept(coached, order(strategy, options(strategy, seed)))
        shown = await coach_on(coached, other, answers)
        assert is_same(await record(coached, other), await record(engines, run_id))
        assert shown["result"]["answer"] == (await engines.result(run_id)).answer
        assert (await coached.replay(other))["replay"]["identical"] is True


@pytest.mark.slow
@pytest.mark.parametrize("strategy", DRIVEN, ids=[one.name for one in DRIVEN])
async def test_a_run_may_be_handed_from_its_caller_to_a_model_at_any_point(
    strategy: Strategy[Any, Any],
) -> None:
    answers = world(strategy, 3, 0.0)
    engines, run_id = await driven(strategy, 3, answers)
    whole, asked = await record(engines, run_id), len((await trace_of(engines, run_id))["questions"])
    for count in range(asked):
        handed = engine()
        other = await accept(handed, order(strategy, options(strategy, 3)))
        await coach_on(handed, other, answers, most=count)
        participants = performers_of(answers, free=True)
        await resume(handed, other, participants, participants=ParticipantNames("world"))
        assert isinstance(participants.model, WorldModel)
        left = await record(handed, other)
        assert is_same(left, whole)
        assert participants.model.asked.total() == asked - count or left["cut"] or whole["cut"]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", DRIVEN, ids=[one.name for one in DRIVEN])
async def test_a_run_may_be_handed_from_a_model_to_its_caller_at_any_point(
    strategy: Strategy[Any, Any],
) -> None:
    answers = world(strategy, 5, 0.0)
    engines, run_id = await driven(strategy, 5, answers)
    whole, lines = await record(engines, run_id), await engines.store.lines(run_id)
    for count in range(1, len(lines) - 1):
        handed = await after_crash(engines.store, run_id, lines[:count])
        await coach_on(handed, run_id, answers)
        assert is_same(await record(handed, run_id), whole)


def test_the_strategies_tested_are_all_there_are() -> None:
    assert {one.name for one in DRIVEN} == {name for name, one in STRATEGIES.items() if one.is_driven}
    assert len(DRIVEN) >= 10
