"""Owners who wait take turns, however many runs each of them has, and nobody waits for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine

from reasonry.queues import queue_tables as tables

OWNERS = st.lists(st.sampled_from("abc"), min_size=1, max_size=40)


@given(OWNERS, st.integers(0, 10))
def test_a_newcomer_waits_for_one_run_of_each_other_owner_at_most(owners: list[str], begun: int) -> None:
    with create_engine("sqlite://").begin() as connection:
        tables.create(connection)
        turns = [tables.next_turns(connection, "q", 5, owner, 1) for owner in owners]
        # Each owner's own runs keep their order.
        for owner in "abc":
            own = [turn for turn, whose in zip(turns, owners, strict=True) if whose == owner]
            assert own == sorted(set(own))
        waiting = sorted(zip(turns, owners, strict=True))
        for turn, _ in waiting[:begun]:
            tables.begin_turn(connection, "q", 5, turn)
        last = max((turn for turn, _ in waiting[:begun]), default=0)
        newcomer = tables.next_turns(connection, "q", 5, "new", 1)
        before = [owner for turn, owner in waiting[begun:] if turn <= newcomer]
        assert newcomer == last + 1
        assert all(before.count(owner) <= 2 for owner in "abc")
