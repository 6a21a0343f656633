"""The codec: snapshots to JSON bytes and back."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.core.codec import dump_snapshot, load_snapshot
from reasonry.core.machine import begin
from reasonry.core.registry import resolve
from reasonry.errors import StoreError
from reasonry.strategies import STRATEGIES
from reasonry.strategies.tree_of_thoughts import State

from ..playing import World, play


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_every_snapshot_of_a_search_survives_json(seed: int) -> None:
    strategy = resolve("tree_of_thoughts", STRATEGIES)
    for snapshot in play(strategy, World(seed, 0.1), STRATEGIES).snapshots:
        loaded = load_snapshot(dump_snapshot(snapshot), STRATEGIES)
        assert loaded == snapshot
        assert isinstance(loaded.state, State)


def data(**changes: Any) -> bytes:
    document = json.loads(dump_snapshot(begin(resolve("tree_of_thoughts", STRATEGIES), "P").snapshot))
    return json.dumps(document | changes).encode()


BROKEN = {
    "empty": b"",
    "no member": b"{}",
    "no text": b"\xff\xfe",
    "nested": b"[" * 100_000,
    "no snapshot": b"3",
    "foreign state": data(state={"options": 7}),
    "unknown strategy": data(strategy="no_such_strategy"),
    "no effect": data(pending=[{"id": 1}]),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=[*BROKEN])
def test_what_is_no_snapshot_is_refused_as_corrupt(broken: bytes) -> None:
    with pytest.raises(StoreError) as error:
        load_snapshot(broken, STRATEGIES)
    assert error.value.code == "store_corrupt"
