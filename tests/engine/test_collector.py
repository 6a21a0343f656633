"""The collector pauses while any thread folds a long journal, and a program's own settings of it stay."""

from __future__ import annotations

import gc
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from reasonry.engine.collector import pause_collector


@pytest.fixture(autouse=True)
def collector() -> Generator[None]:
    # A server that another test has started froze what was there.
    gc.unfreeze()
    gc.enable()
    yield
    gc.unfreeze()
    gc.enable()


def test_it_is_paused_until_the_last_thread_is_done() -> None:
    entered, leave = Event(), Event()

    def hold() -> None:
        with pause_collector():
            entered.set()
            leave.wait(10)

    with ThreadPoolExecutor(1) as pool:
        with pause_collector():
            other = pool.submit(hold)
            assert entered.wait(10)
        assert not gc.isenabled()
        leave.set()
        other.result()
    assert gc.isenabled()


def test_it_goes_on_after_an_error_and_what_was_made_is_in_the_oldest_generation() -> None:
    made = list[list[int]]()

    def fold() -> None:
        with pause_collector():
            made.extend([number] for number in range(20_000))
            raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        fold()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert any(entry is made[-1] for entry in gc.get_objects(generation=2))


def test_a_program_that_disabled_it_or_froze_objects_is_left_alone() -> None:
    gc.disable()
    with pause_collector():
        assert not gc.isenabled()
    assert not gc.isenabled()
    gc.enable()
    gc.freeze()
    with pause_collector():
        assert gc.isenabled()
    assert gc.get_freeze_count()
