"""What every durable store promises of leases: one holder of a run at a time, and nothing written by a former one.

A holder that hangs is an event loop that stands still.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from math import inf
from pathlib import Path

import pytest

from reasonry.errors import ConflictError
from reasonry.records import Line, Store
from reasonry.stores import open_store
from tests.forked import ForkedProcess

from .samples import line, refused, run_row

pytestmark = pytest.mark.anyio

BRIEF_S, RENEWED_S = 0.2, 3.0
Opens = Callable[[], Store]


@contextmanager
def lasting(seconds: float) -> Iterator[None]:
    """Have the leases that are taken or renewed meanwhile last so long.

    All others last longer than any test, so that none is lost because a machine is slow.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reasonry.stores.leases.LEASE_S", seconds)
        yield


@pytest.fixture(params=["sqlite", "postgres"])
async def another(request: pytest.FixtureRequest, path: Path) -> Opens:
    """Return a function that opens another store object over the same data, in which there is a run."""
    name = request.getfixturevalue("postgres_url") if request.param == "postgres" else str(path)
    await open_store(name).create_run(run_row("r"), [line(1)])
    return partial(open_store, name)


class Hanging:
    """A store object that holds run `r` on an event loop that continues only while `do` is running.

    Args:
        seconds: The length of its lease.
    """

    def __init__(self, store: Store, seconds: float = BRIEF_S) -> None:
        self.store, self.seconds = store, seconds
        self.loop = asyncio.new_event_loop()
        self.held: AbstractAsyncContextManager[int] = store.drive("r")

    async def do(self, work: Callable[[], object]) -> None:
        async def awaited() -> None:
            await work()  # type: ignore[misc]

        await asyncio.to_thread(self.loop.run_until_complete, awaited())

    async def __aenter__(self) -> Hanging:
        with lasting(self.seconds):
            await self.do(self.held.__aenter__)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.do(lambda: self.held.__aexit__(None, None, None))
        self.loop.close()


@asynccontextmanager
async def driving_soon(store: Store, run_id: str = "r") -> AsyncIterator[None]:
    """Drive a run as soon as its holder lets it go."""
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(ConflictError):
                    await stack.enter_async_context(store.drive(run_id))
                    break
                await asyncio.sleep(0.02)
        yield


async def check_taken(store: Store, run_id: str = "r") -> None:
    with refused("conflict"):
        await store.drive(run_id).__aenter__()


async def test_a_lease_that_is_renewed_is_nobody_elses_however_long_it_is_held(another: Opens) -> None:
    store, other = another(), another()
    with lasting(RENEWED_S):
        async with store.drive("r"):
            for _ in range(2):
                await asyncio.sleep(RENEWED_S * 0.55)
                await check_taken(other)
                for one in (store, other):
                    assert await one.find_driven(["r", "unknown"]) == {"r"}
            await store.append("r", [line(2)])
    async with driving_soon(other):
        await check_taken(store)


async def test_a_run_written_by_who_drives_it_is_nobody_elses_from_its_first_line_on(another: Opens) -> None:
    store, other = another(), another()
    await store.create_run(run_row("new"), [line(1)], drive=True)
    await check_taken(other, "new")
    async with store.drive("new"):
        await store.append("new", [line(2)])
        await check_taken(other, "new")
    async with driving_soon(other, "new"):
        await check_taken(store, "new")


async def test_who_drives_a_run_it_has_written_only_when_another_has_taken_it_writes_nothing(
    another: Opens,
) -> None:
    store, other = another(), another()
    with lasting(BRIEF_S):
        await store.create_run(run_row("new"), [line(1)], drive=True)
    async with driving_soon(other, "new"):
        async with store.drive("new"):
            with refused("lease_lost"):
                await store.append("new", [line(2)])
        await other.append("new", [line(2)])
    async with driving_soon(store, "new"):
        await store.append("new", [line(3)])
    assert await store.lines("new") == [line(1), line(2), line(3)]


async def test_one_that_hangs_loses_its_run_and_writes_nothing_more(another: Opens) -> None:
    store, outsider = another(), another()
    began = time.monotonic()
    async with AsyncExitStack() as holding:
        async with Hanging(another()) as hanging:
            await holding.enter_async_context(driving_soon(store))
            assert time.monotonic() - began >= BRIEF_S, "it lost the run before its time was over"
            await store.append("r", [line(2)])
            for write in (
                lambda: hanging.store.append("r", [line(3)]),
                lambda: hanging.store.append("r", [], run_row("r", status="failed")),
                lambda: hanging.store.save_checkpoint("r", Line(1, b"old", line(1).digest)),
            ):
                with refused("lease_lost"):
                    await hanging.do(write)
            # It does not get the run back either while the drive that lost it has not ended.
            await hanging.do(lambda: check_taken(hanging.store))
        await store.append("r", [line(3)])
        await outsider.append("r", [line(4)], run_row("r", status="cancelled"))
        assert await store.lines("r") == [line(seq) for seq in range(1, 5)]
        assert (await store.tail("r"))[0] is None
        assert (await store.run("r")).status == "cancelled"
        await check_taken(outsider)


async def test_a_clock_that_is_set_back_does_not_keep_the_lease_of_one_that_hangs(another: Opens) -> None:
    store = another()
    async with Hanging(another(), seconds=3_600) as hanging:
        assert await store.deaths_of("r") == (0, inf)
        async with store.drive("r"):
            await store.append("r", [line(2)])
            with pytest.raises(ConflictError, match="taken over"):
                await hanging.do(lambda: hanging.store.append("r", [line(3)]))


async def test_a_holder_on_another_computer_has_not_died(another: Opens) -> None:
    store, there = another(), another()
    there._leases.holder = "1 another/computer token"  # type: ignore[attr-defined]
    async with there.drive("r"):
        assert await store.deaths_of("r") == (0, inf)


async def test_a_run_that_was_lost_can_be_driven_again_by_the_one_that_lost_it(another: Opens) -> None:
    store, late = another(), another()
    async with AsyncExitStack() as holding, Hanging(late):
        await holding.enter_async_context(driving_soon(store))
    async with driving_soon(late):
        await late.append("r", [line(2)])


async def test_the_write_that_ends_a_run_gives_its_lease_back_and_more_is_written_until_another_has_it(
    another: Opens,
) -> None:
    store, other = another(), another()
    async with store.drive("r"):
        await store.append("r", [line(2)], run_row("r", status="done"))
        await store.append("r", [line(3)])
        async with other.drive("r"):
            await other.append("r", [line(4)], run_row("r"))
        with refused("lease_lost"):
            await store.append("r", [line(5)])
    assert await store.lines("r") == [line(seq) for seq in range(1, 5)]


async def test_the_lease_of_a_store_that_was_closed_is_free(another: Opens) -> None:
    closed, store = another(), another()
    async with closed.drive("r"):
        await closed.close()
        assert not await store.find_driven(["r"])
        async with store.drive("r"):
            await store.append("r", [line(2)])


async def test_a_deleted_run_leaves_no_lease_to_one_of_the_same_name(another: Opens) -> None:
    store, other = another(), another()
    async with store.drive("r"):
        await store.delete_run("r")
        await other.create_run(run_row("r"), [line(1)])
        async with other.drive("r"):
            with refused("lease_lost"):
                await store.append("r", [line(2)])
    assert await store.lines("r") == [line(1)]


async def test_no_timer_is_left_when_nothing_is_held(another: Opens) -> None:
    store = another()
    async with store.drive("r"):
        pass
    assert not [
        handle
        for handle in asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        if not handle.cancelled() and "Leases" in repr(handle)
    ]


async def test_a_lease_counts_who_died_with_it_until_the_run_gets_further(another: Opens) -> None:
    abandoned = list[AbstractAsyncContextManager[int]]()

    async def die() -> int:
        """Take the lease and never give it back; return the deaths it counts."""
        store = another()
        while True:
            drive = store.drive("r")
            abandoned.append(drive)
            try:
                with lasting(BRIEF_S):
                    deaths = await drive.__aenter__()
            except ConflictError:
                await asyncio.sleep(0.02)
            else:
                # The dead renew nothing.
                for pulse in store._leases._pulses.values():  # type: ignore[attr-defined]
                    pulse.task.cancel()
                return deaths

    assert [await die() for _ in range(3)] == [0, 1, 2]
    store = another()
    while (await store.deaths_of("r"))[0] < 3:
        await asyncio.sleep(0.02)
    async with driving_soon(store):
        # The last one may have died here; the two before it did so where the run stood then.
        assert await store.count_deaths("r", 7) == 1
    # One that gives it back has not died.
    assert await store.deaths_of("r") == (1, inf)
    assert [await die() for _ in range(2)] == [1, 2]
    async with driving_soon(store):
        assert await store.count_deaths("r", 7) == 3
    for drive in abandoned:
        with contextlib.suppress(ConflictError, StopAsyncIteration, RuntimeError):
            await drive.__aexit__(None, None, None)


HOLDING = """
import asyncio, sys
from reasonry.stores import open_store
async def main():
    async with open_store(sys.argv[1]).drive('r'):
        print('driving', flush=True); await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_the_run_of_a_killed_process_is_free_at_once(another: Opens) -> None:
    store = another()
    with ForkedProcess(
        [sys.executable, "-c", HOLDING, store.name], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "driving\n"
        with pytest.raises(ConflictError) as caught:
            async with store.drive("r"):
                pytest.fail("driven twice")
        assert caught.value.details["pid"] in (child.pid, None)
        child.kill()
        child.wait()
        # PostgreSQL's server notices within some milliseconds.
        async with driving_soon(store):
            await store.append("r", [line(2)])
