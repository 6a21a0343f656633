"""Limits of a provider that all processes of a store in PostgreSQL share."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.engine.policy import Policy
from reasonry.errors import UsageError
from reasonry.queues import postgres_store
from reasonry.stores.postgres import PostgresStore, jobs
from reasonry.stores.postgres import provider_limits as limits
from reasonry.stores.postgres.provider_limits import ProviderLimit, read_provider_limits
from tests.forked import ForkedProcess

from ..engine.playing import CountingModel
from ..engine.test_calls import ask, calls
from .working import worker_process, working

pytestmark = pytest.mark.anyio


def silent(pause_s: float) -> None:
    pass


def age(store: PostgresStore, by_ms: int, table: str, column: str) -> Any:
    return store.write(lambda tx: tx.execute(f"UPDATE {table} SET {column} = {column} - {by_ms}"))


def test_limits_are_read_as_users_write_them() -> None:
    read = read_provider_limits(["openai=120/min,16", "openai-compatible:http://h/v1=7/min"])
    assert read == {"openai": (120, 16), "openai-compatible:http://h/v1": (7, None)}
    assert [*map(str, read.values())] == ["120/min,16", "7/min"]
    for wrong in (
        "=1/min",
        *(f"openai{limit}" for limit in ("", "=", "=0/min", "=120", "=120/s", "=1/min,0")),
    ):
        with pytest.raises(UsageError, match="such as openai=120/min,16"):
            read_provider_limits([wrong])


async def test_calls_in_flight_of_all_processes_stay_under_the_limit(postgres_url: str) -> None:
    model, other = CountingModel(latency_s=0.01), CountingModel()
    other.name = "free"
    async with App(postgres_url, Policy(), environ={}) as one, App(postgres_url, Policy(), environ={}) as two:
        await postgres_store(one.store).provider_limits.declare({"counting": ProviderLimit(1_000, 2)})
        asks = [
            ask(calls(model, app.engine.policy), *(Ask(f"{app} {n}") for n in range(8))) for app in (one, two)
        ]
        answers = [answer for answers in await asyncio.gather(*asks) for answer in answers]
        assert [type(answer) for answer in answers] == [Answered] * 16
        assert (model.calls, model.most_in_flight) == (16, 2)
        # Another provider has no limit.
        await ask(calls(other, two.engine.policy), *(Ask(f"{n}") for n in range(8)))
        assert other.most_in_flight == 8


async def test_a_minute_counts_the_calls_of_all_processes(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses, slept = list[float](), asyncio.Event()

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        slept.set()
        await asyncio.Event().wait()

    async with App(postgres_url, environ={}) as one, App(postgres_url, environ={}) as two:
        first, second = postgres_store(one.store), postgres_store(two.store)
        await first.provider_limits.declare({"openai": ProviderLimit(3, 2)})
        held = AsyncExitStack()
        assert await held.enter_async_context(second.provider_limits("openai", 60, silent))
        async with first.provider_limits("openai", 60, silent) as place:
            assert place
        assert await held.enter_async_context(second.provider_limits("openai:of-a-kind", 60, silent))
        monkeypatch.setattr(limits, "asyncio", SimpleNamespace(sleep=sleep, Lock=asyncio.Lock))
        waiting = asyncio.create_task(second.provider_limits("openai", 60, silent).__aenter__())
        await slept.wait()
        waiting.cancel()
        assert 0 < pauses[0] <= 60
        # The minute is over, and a call of a process that has died counts no longer.
        await age(first, 60_000, "provider_call", "sent_at_ms")
        await age(first, 65_000, "provider_call", "until_ms")
        assert await held.enter_async_context(first.provider_limits("openai", 60, silent))


async def test_of_two_workers_limits_the_lower_one_holds_and_a_worker_without_one_reads_it(
    postgres_url: str,
) -> None:
    async with App(postgres_url, environ={}) as one, App(postgres_url, environ={}) as two:
        first, second = (postgres_store(app.store).provider_limits for app in (one, two))
        assert await first.declare({"openai": ProviderLimit(120, 16)}) == {}
        assert await second.declare({"openai": ProviderLimit(120, 16)}) == {}
        assert await second.declare({"openai": ProviderLimit(200, 8)}) == {"openai": (120, 8)}
        assert await first.declare({"openai": ProviderLimit(60, None)}) == {"openai": (60, 8)}
        async with second("openai", 60, silent) as place:
            assert place
        # Long after, with a worker at work, and then with none.
        async with working(one):
            while not (await one.store.queue_status()).workers:
                await asyncio.sleep(0.02)
            await age(postgres_store(one.store), 60_000, "provider_limit", "set_at_ms")
            assert await first.declare({"openai": ProviderLimit(600, 99)}) == {"openai": (60, 8)}
        await age(postgres_store(one.store), jobs.DEAD_S * 1_000, "provider_limit", "set_at_ms")
        assert await first.declare({"openai": ProviderLimit(600, 99)}) == {}


def test_a_worker_says_which_limit_holds(postgres_url: str) -> None:
    options = "--provider-limit", "openai=90/min"
    with worker_process(postgres_url, "offline", "--provider-limit", "openai=60/min,4"):
        command = [sys.executable, "-m", "reasonry", "worker", "--store", postgres_url, *options]
        with ForkedProcess(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            process.kill()
    assert said == "warning: other workers name another limit of openai; the lower one holds: 60/min,4\n"
