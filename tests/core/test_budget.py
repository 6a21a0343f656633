"""Laws of the ledger: what is spent and what is reserved never pass a limit on calls; nothing is lost or invented."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.budget import Budget, Ledger, Refusal, larger_usage
from reasonry.core.events import NOTHING, Usage
from reasonry.errors import UsageError

usages = st.builds(
    Usage,
    calls=st.just(1),
    input_tokens=st.integers(0, 1000),
    output_tokens=st.integers(0, 1000),
    usd=st.none() | st.integers(0, 100).map(lambda cents: cents / 100),
)


@given(usages, usages, usages)
def test_usage_adds_up_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    assert a + b == b + a
    left, right = (a + b) + c, a + (b + c)
    assert (left.calls, left.tokens) == (right.calls, right.tokens) == (3, a.tokens + b.tokens + c.tokens)
    assert (left.usd is None) == (right.usd is None)
    assert left.usd is None or left.usd == pytest.approx(right.usd)
    assert a + NOTHING == a


def test_dollars_stay_unknown_only_as_long_as_no_price_is_known() -> None:
    assert (Usage() + Usage()).usd is None
    assert (Usage() + Usage(usd=0.5)).usd == 0.5


@given(usages, usages)
def test_the_dearer_of_two_covers_both(a: Usage, b: Usage) -> None:
    both = larger_usage(larger_usage(NOTHING, a), b)
    assert both.tokens >= max((one.tokens for one in (a, b) if one.tokens or one.usd is not None), default=0)
    assert both.usd == max((one.usd for one in (a, b) if one.usd is not None), default=None)
    assert larger_usage(both, Usage()) == both


# Each step either asks for a call or brings the oldest one in flight back, with what it took.
steps = st.lists(st.none() | usages, max_size=60)
budgets = st.builds(
    Budget,
    calls=st.none() | st.integers(1, 20),
    tokens=st.none() | st.integers(1, 5000),
    usd=st.none() | st.floats(0.01, 5),
)


@given(budgets, steps)
def test_no_order_of_calls_and_answers_passes_the_limit_on_calls(
    budget: Budget, steps: list[Usage | None]
) -> None:
    ledger, flying, answered = Ledger(budget), list[Usage](), list[Usage]()
    for step in steps:
        if step is None:
            estimate = ledger.estimate(1)
            outcome = ledger.reserve(estimate)
            if isinstance(outcome, Refusal):
                check_refusal(outcome, ledger)
                continue
            ledger = outcome
            flying.append(estimate)
        elif flying:
            ledger = ledger.settle(flying.pop(0), step)
            answered.append(step)
        assert ledger.reserved.calls == len(flying)
        assert ledger.spent.calls == len(answered)
        assert ledger.spent.tokens == sum(one.tokens for one in answered)
        if budget.calls is not None:
            assert ledger.spent.calls + ledger.reserved.calls <= budget.calls
    for estimate in flying:
        ledger = ledger.settle(estimate, NOTHING)
    assert (ledger.reserved.calls, ledger.reserved.tokens) == (0, 0)
    assert (ledger.reserved.usd or 0) == pytest.approx(0, abs=1e-9)


def check_refusal(refusal: Refusal, ledger: Ledger) -> None:
    """A refusal names a limit that is there; waiting helps only while something is in flight."""
    assert refusal.reason in ("max_calls", "max_tokens", "max_usd")
    assert getattr(ledger.budget, refusal.reason.removeprefix("max_")) is not None
    assert refusal.detail
    if refusal.wait:
        assert ledger.reserved.calls > 0


@given(st.integers(1, 2000), st.integers(1, 100), st.lists(st.integers(1, 20), min_size=1, max_size=20))
def test_a_request_for_several_samples_passes_the_limit_by_no_more_than_single_ones(
    limit: int, price: int, rounds: list[int]
) -> None:
    ledger, sizes = Ledger(Budget(tokens=limit, usd=10.0**6)), list[int]()
    for wanted in [*rounds, *[20] * 2000]:
        size = ledger.fitting(1, wanted)
        outcome = ledger.reserve(ledger.estimate(1, size))
        if isinstance(outcome, Refusal):
            break
        assert 1 <= size <= wanted
        sizes.append(size)
        held = ledger.estimate(1, size)
        ledger = outcome
        for number in range(size):
            one = Usage(calls=int(number == 0), output_tokens=price, usd=0.01)
            ledger = ledger.settle(NOTHING if number else held, one)
    assert limit <= ledger.spent.tokens < limit + price
    assert sizes[0] == 1


@given(budgets, usages, st.integers(1, 20))
def test_samples_share_a_request_without_bound_where_no_limit_can_bind_and_one_by_one_where_all_is_spent(
    budget: Budget, spent: Usage, wanted: int
) -> None:
    ledger = Ledger(budget, spent=spent, largest=Usage(calls=1, input_tokens=10, usd=0.1))
    size = ledger.fitting(1, wanted)
    if (budget.tokens, budget.usd) == (None, None):
        assert size == wanted
    elif isinstance(ledger.reserve(ledger.estimate(1)), Refusal) and budget.calls is None:
        assert size == 1


@pytest.mark.parametrize(
    "bad",
    [{"calls": 0}, {"calls": -1}, {"tokens": 0}, {"usd": 0}, {"usd": -1.0}, {"seconds": 0}, {"nodes": 0},
     {"thoughts": 0}, {"calls": 1.5}, {"minutes": 1}],
)  # fmt: skip
def test_a_limit_must_leave_room_for_something(bad: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, Budget)


def test_whether_a_budget_closes_a_run_is_true_or_false() -> None:
    with pytest.raises(UsageError, match="closes must be true or false, not 'no'"):
        Budget(closes="no")  # pyright: ignore[reportArgumentType]
