"""Rate limits: so many calls and tokens in any minute, in the order they came."""

from __future__ import annotations

import asyncio
import time

import pytest

from reasonry.runtime import rate
from reasonry.runtime.rate import RateLimit

pytestmark = pytest.mark.anyio

WINDOW_S = 0.1


@pytest.fixture(autouse=True)
def short_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "WINDOW_S", WINDOW_S)


async def instants(limit: RateLimit, *tokens: int) -> list[float]:
    """Return when each of these calls, all wanted at once, may go out."""
    went: dict[int, float] = {}

    async def call(number: int, count: int) -> None:
        await limit.wait(count)
        went[number] = time.monotonic()

    began = time.monotonic()
    await asyncio.gather(*(call(number, count) for number, count in enumerate(tokens)))
    assert list(went) == sorted(went)
    return [went[number] - began for number in range(len(tokens))]


def most_in_a_window(went: list[float]) -> int:
    # The window slides; a hair is left for the clock.
    return max(sum(start <= one < start + WINDOW_S * 0.95 for one in went) for start in went)


async def test_no_minute_holds_more_calls_than_the_limit() -> None:
    went = await instants(RateLimit(requests=3), *[1] * 8)
    assert most_in_a_window(went) == 3
    assert went[2] < WINDOW_S / 2
    assert 2 * WINDOW_S <= went[-1] < 4 * WINDOW_S


async def test_no_minute_holds_more_tokens_than_the_limit() -> None:
    went = await instants(RateLimit(tokens=100), 60, 40, 10, 90)
    assert went[1] < WINDOW_S / 2
    assert WINDOW_S <= went[2] < went[3] < 2 * WINDOW_S


async def test_a_call_larger_than_the_limit_goes_out_alone_rather_than_never() -> None:
    went = await instants(RateLimit(tokens=100), 500, 10)
    assert went[0] < WINDOW_S / 2
    assert went[1] >= WINDOW_S


async def test_without_a_limit_nothing_waits() -> None:
    assert max(await instants(RateLimit(), *[1] * 50)) < WINDOW_S


async def test_one_who_gives_up_waiting_takes_no_turn() -> None:
    limit = RateLimit(requests=1)
    await limit.wait(1)
    gives_up = asyncio.create_task(limit.wait(1))
    stays = asyncio.create_task(limit.wait(1))
    await asyncio.sleep(0)
    gives_up.cancel()
    await asyncio.gather(gives_up, return_exceptions=True)
    await asyncio.wait_for(stays, 2 * WINDOW_S)
