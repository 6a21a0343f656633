"""The guard: under any concurrency no call goes out that the budget does not cover."""

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.core.budget import Budget, Ledger
from reasonry.core.effects import Ask
from reasonry.core.events import Usage
from reasonry.engine.budget_guard import LEAST_ROOM, BudgetExhausted, BudgetGuard, limits_calls
from reasonry.engine.ports import Question

pytestmark = pytest.mark.anyio

QUESTION = Question("e1", "stage", Ask("?"))
PROMPT_TOKENS = 1


def guard(**limits: float) -> BudgetGuard:
    return BudgetGuard(Ledger(Budget(**limits)))  # pyright: ignore


async def wait(waiting: Awaitable[bool]) -> bool:
    return await waiting


async def reserve(guard: BudgetGuard, question: Question = QUESTION) -> Usage:
    return await guard.reserve(question, 1, wait)


async def spend(guard: BudgetGuard, usage: Usage, latency_s: float = 0.0) -> bool:
    """Make one call; return whether the budget covered it."""
    try:
        estimate = await reserve(guard)
    except BudgetExhausted:
        return False
    await asyncio.sleep(latency_s)
    guard.settle(estimate, [usage])
    return True


@pytest.mark.parametrize("used", [Usage(output_tokens=10), Usage()], ids=["answered", "failed"])
async def test_the_first_call_goes_alone_where_its_price_is_not_known(used: Usage) -> None:
    limited = guard(tokens=1000)
    first = await reserve(limited)
    second = asyncio.create_task(reserve(limited))
    await asyncio.sleep(0.005)
    assert not second.done()
    limited.settle(first, [used])
    assert (await asyncio.wait_for(second, 1)).tokens == max(used.tokens, PROMPT_TOKENS)
    if used.tokens:
        assert (await asyncio.wait_for(reserve(limited), 1)).tokens == 10


async def test_a_long_prompt_is_estimated_by_its_length() -> None:
    estimate = await reserve(
        guard(tokens=10_000), Question("e1", "stage", Ask("x" * 4_000, system="y" * 400))
    )
    assert estimate.tokens == 1_101


async def test_only_limits_that_a_crash_could_forget_are_written_down() -> None:
    assert limits_calls(Budget(calls=1))
    assert limits_calls(Budget(tokens=1))
    assert limits_calls(Budget(usd=1))
    assert not limits_calls(Budget(seconds=1, thoughts=1, nodes=1))


@settings(max_examples=60, deadline=None)
@given(
    limit=st.integers(1, 300),
    prices=st.lists(st.integers(1, 60), min_size=1, max_size=40),
    width=st.integers(1, 20),
)
def test_calls_of_one_price_pass_a_limit_of_tokens_by_one_call_at_most(
    limit: int, prices: list[int], width: int
) -> None:
    price = prices[0]

    async def run() -> None:
        limited, slots = guard(tokens=limit), asyncio.Semaphore(width)

        async def one() -> None:
            async with slots:
                await spend(limited, Usage(output_tokens=price))

        await asyncio.wait_for(asyncio.gather(*(one() for _ in prices)), 10)
        spent = limited.ledger.spent
        assert spent.tokens < limit + price
        assert spent.tokens >= min(limit - LEAST_ROOM - PROMPT_TOKENS, price * len(prices))
        assert limited.ledger.reserved.calls == 0

    asyncio.run(run())
