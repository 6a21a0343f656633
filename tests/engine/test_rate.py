"""Rate limits: so many calls and tokens in any minute, in the order they came."""

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from reasonry.app.app import App
from reasonry.engine import rate_limits
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Policy
from reasonry.engine.rate_limits import CountedCall, RateLimit, RateLimits
from reasonry.errors import UsageError

from .playing import LOOP, STRATEGIES, CountingModel
from .running import request_of

pytestmark = pytest.mark.anyio

WINDOW_S = 0.1
T = TypeVar("T")


@pytest.fixture(autouse=True)
def short_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "WINDOW_S", WINDOW_S)


class IdleClock(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still but where all wait for it: how fast the machine is changes nothing."""

    now_s = 0.0

    def __init__(self) -> None:
        super().__init__()
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def pass_time(timeout_s: float | None) -> Any:
            self.now_s += timeout_s or 0.0
            return select(0 if timeout_s is not None else None)

        selector.select = pass_time

    def time(self) -> float:
        return self.now_s


def run_idle(monkeypatch: pytest.MonkeyPatch, work: Coroutine[Any, Any, T]) -> T:
    """Carry out work that does nothing but wait for the clock."""
    loop = IdleClock()
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=loop.time))
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


async def instants(limit: RateLimit, *tokens: int) -> list[float]:
    """Return when each of these calls, all wanted at once, may go out."""
    went: dict[int, float] = {}

    async def call(number: int, count: int) -> None:
        await limit.wait(count)
        went[number] = asyncio.get_running_loop().time()

    await asyncio.gather(*(call(number, count) for number, count in enumerate(tokens)))
    assert list(went) == sorted(went)
    return [went[number] for number in range(len(tokens))]


def most_in_a_window(went: list[float]) -> int:
    # The window slides; a hair is left for the clock.
    return max(sum(start <= one < start + WINDOW_S * 0.95 for one in went) for start in went)


@pytest.mark.parametrize(
    ("limit", "calls", "windows"),
    [
        ({"requests": 3}, [1] * 8, [0, 0, 0, 1, 1, 1, 2, 2]),
        ({"tokens": 100}, [60, 40, 10, 90], [0, 0, 1, 1]),
        ({"tokens": 100}, [500, 10], [0, 1]),
        ({}, [1] * 50, [0] * 50),
    ],
    ids=["calls", "tokens", "a call larger than the limit goes out alone", "no limit"],
)
def test_no_minute_holds_more_than_the_limit(
    limit: dict[str, int], calls: list[int], windows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    went = run_idle(monkeypatch, instants(RateLimit(**limit), *calls))
    assert went == pytest.approx([WINDOW_S * window for window in windows])


def test_one_who_gives_up_waiting_takes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait() -> float:
        limit = RateLimit(requests=1)
        await limit.wait(1)
        gives_up = asyncio.create_task(limit.wait(1))
        stays = asyncio.create_task(limit.wait(1))
        await asyncio.sleep(0)
        gives_up.cancel()
        await asyncio.gather(gives_up, return_exceptions=True)
        await stays
        return asyncio.get_running_loop().time()

    assert run_idle(monkeypatch, wait()) == pytest.approx(WINDOW_S)


def test_tokens_count_as_stated_once_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait() -> list[float]:
        limit, loop = RateLimit(tokens=100), asyncio.get_running_loop()
        sent = await limit.wait(90)
        sent.tokens = 10
        await limit.wait(90)
        went = [loop.time()]
        (await limit.wait(0)).tokens = 1_000
        await limit.wait(1)
        return [*went, loop.time()]

    assert run_idle(monkeypatch, wait()) == pytest.approx([0, WINDOW_S])


@pytest.mark.parametrize(
    ("limits", "model", "expected"),
    [
        (None, "openai:gpt", None),
        (7, "openai:gpt", 7),
        ({"openai": 5}, "openai:gpt", 5),
        ({"openai": 5}, "anthropic:claude", None),
        ({"openai": 5, "*": 3}, "anthropic:claude", 3),
        ({"openai-compatible": 5}, "openai-compatible:http://h/v1#m", 5),
        ({"openai-compatible": 5, "openai-compatible:http://h/v1": 6}, "openai-compatible:http://h/v1#m", 6),
        ({"openai": 5}, "openai", 5),
    ],
)
async def test_each_provider_has_its_own_limit_which_its_models_share(
    limits: Any, model: str, expected: int | None
) -> None:
    rates = RateLimits(limits, limits)
    found = rates.of(model)
    assert (found.requests, found.tokens) == (expected, expected)
    assert found is rates.of(f"{model}-2" if ":" in model else f"{model}:b")
    assert found is not rates.of("mistral:a")
    assert rates.of("openai-compatible:http://h/v1#a") is not rates.of("openai-compatible:http://g/v1#a")


@pytest.mark.parametrize("bad", [0, -1, {"openai": 0}, "5", {"openai": "x"}, True, 1.5, float("nan"), [3]])
async def test_what_is_no_limit_is_refused(bad: Any) -> None:
    for given in ({"requests": bad}, {"tokens": bad}):
        with pytest.raises(UsageError, match="from 1 up"):
            RateLimits(**given)


async def test_all_runs_of_an_app_share_the_limit_and_who_waits_is_told_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, went = list[str](), list[float]()

    def count(instant_s: float, tokens: int) -> CountedCall:
        went.append(instant_s)
        return CountedCall(instant_s, tokens)

    monkeypatch.setattr(rate_limits, "CountedCall", count)

    class Watching(Observer):
        def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
            assert 0 < delay_s <= WINDOW_S
            told.append(reason)

    model = CountingModel()
    async with App("memory", Policy(rates=RateLimits(requests=3)), strategies=STRATEGIES) as app:
        orders = [
            app.order(request_of("count", LOOP, options={"steps": 1, "width": 3}, model=model))
            for _ in range(3)
        ]
        results = await asyncio.gather(*(app.solve(*one, Watching()) for one in orders))
    assert [one.status for one in results] == ["done"] * 3
    assert (model.calls, len(went), most_in_a_window(went)) == (9, 9, 3)
    assert set(told) == {"the rate limit of counting is reached"}
