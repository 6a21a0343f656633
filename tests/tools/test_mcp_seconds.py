"""The seconds of a run bound the opening of its tool servers too; closing is soon over, whatever a server does."""

import asyncio
import math
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp as _mcp  # noqa: F401 - loaded before anything is timed
import pytest
from msgspec.structs import replace

import reasonry
from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.core.budget import Budget
from reasonry.errors import ToolError, UsageError
from reasonry.surfaces.present import exit_code
from reasonry.tools.mcp_transport import GRACE_S
from tests.engine.crashing import ALL
from tests.engine.playing import CountingModel
from tests.engine.running import order_and_solve

from . import hostile_server

pytestmark = pytest.mark.anyio

FOR_EVER = 600
SLACK_S = 10
"""What a busy machine may take on top; less than servers are given where a run has no limit."""


class Bench:
    """A server's command, and its process."""

    def __init__(self, folder: Path) -> None:
        self.pid_file = folder / "pid"

    def command(self, how: str, seconds: float = FOR_EVER) -> str:
        return f"{sys.executable} {hostile_server.__file__} 'waits {self.pid_file} {how} {seconds}'"

    async def is_gone(self) -> bool:
        for _ in range(100):
            try:
                os.kill(int(self.pid_file.read_text()), 0)
            except (ProcessLookupError, FileNotFoundError):
                return True
            await asyncio.sleep(0.02)
        return False


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@asynccontextmanager
async def takes(least_s: float, most_s: float) -> AsyncIterator[None]:
    began = time.monotonic()
    yield
    assert least_s <= time.monotonic() - began <= most_s + SLACK_S


async def solved(bench: Bench, how: str, budget: Budget, server_s: float = FOR_EVER, **model: Any) -> Any:
    async with App("memory", strategies=ALL) as app:
        participants = Participants(model=CountingModel(**model), mcp=(bench.command(how, server_s),))
        participants = await app.equip(participants, budget)
        assert [one.name for one in participants.tools] == ["climate"]
        return await order_and_solve(
            app,
            "count",
            "loop",
            options={"steps": 2},
            budget=budget,
            participants=replace(participants, tools=()),
        )


async def test_a_server_that_never_answers_is_given_up_when_the_time_is_up(bench: Bench) -> None:
    async with takes(0.6, 0.6):
        with pytest.raises(
            ToolError, match="time of the run was up before its tool servers were open"
        ) as caught:
            await solved(bench, "opens", Budget(seconds=0.6))
    assert (caught.value.code, exit_code(caught.value.code)) == ("deadline_exceeded", 7)
    assert await bench.is_gone()


async def test_python_bounds_it_too_and_writes_nothing(bench: Bench, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    async with takes(0.5, 0.5):
        with pytest.raises(ToolError, match="time of the run was up"):
            await reasonry.solve(
                "2 + 2?",
                model="offline",
                mcp=[bench.command("opens")],
                budget=Budget(seconds=0.5),
                store=str(store),
            )
    async with App(str(store)) as app:
        assert await app.store.runs() == []


async def test_the_time_it_took_to_open_is_gone_for_the_run(bench: Bench) -> None:
    async with App("memory", strategies=ALL) as app:
        model = CountingModel(latency_s=FOR_EVER)
        participants = await app.equip(
            Participants(model=model, mcp=(bench.command("opens", 0.3),)), Budget(seconds=FOR_EVER)
        )
        assert 0.3 <= participants.opened_s < FOR_EVER
        # As if it had taken nearly all of the time.
        participants = replace(participants, tools=(), opened_s=FOR_EVER - 0.2)
        async with takes(0.2, 0.2):
            result = await order_and_solve(
                app,
                "count",
                "loop",
                options={"steps": 2},
                budget=Budget(seconds=FOR_EVER),
                participants=participants,
            )
    assert result.termination.reason == "max_seconds"
    assert result.duration_ms >= FOR_EVER * 1_000
    assert result.usage.calls == 1


async def test_a_server_that_will_not_end_is_killed(bench: Bench) -> None:
    async with takes(2 * GRACE_S, 2 * GRACE_S):
        result = await solved(bench, "closes", Budget(seconds=60))
    assert result.termination.reason == "success"
    assert await bench.is_gone()


async def test_servers_of_a_comparison_take_none_of_the_time_of_a_run(bench: Bench) -> None:
    async with App("memory") as app:
        named = Participants(mcp=(bench.command("well"),))
        assert (await app.equip(named, Budget(seconds=60), shared=True)).opened_s == 0.0


async def test_a_run_that_goes_on_has_what_it_has_left(bench: Bench) -> None:
    async with App("memory", strategies=ALL) as app:
        run = await order_and_solve(
            app, "count", "loop", budget=Budget(seconds=0.4), model=CountingModel(latency_s=60.0)
        )
        assert run.termination.reason == "max_seconds"
        named = Participants(mcp=(bench.command("opens"),))
        async with takes(0.0, 0.1):
            with pytest.raises(ToolError) as caught:
                await app.resume(run.run_id, named)
        assert caught.value.code == "deadline_exceeded"
        async with takes(0.45, 0.5):
            with pytest.raises(ToolError, match="time of the run was up"):
                await app.resume(run.run_id, named, Budget(seconds=run.duration_ms / 1_000 + 0.5))


async def test_a_budget_that_is_none_is_refused_before_a_server_is_started(bench: Bench) -> None:
    async with App("memory") as app:
        with pytest.raises(UsageError):
            await app.equip(Participants(mcp=(bench.command("well"),)), "soon")  # pyright: ignore[reportArgumentType]
    for seconds in (-1, math.nan):
        with pytest.raises(UsageError):
            Budget(seconds=seconds)
    assert not bench.pid_file.exists()
