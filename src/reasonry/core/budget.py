"""The budget of a run: its limits, its usage so far, and the reservations for unfinished calls.

Rule 1: before a call, its estimated usage is reserved. After the call, the actual usage replaces the reservation. So
even concurrent calls never exceed the limit on the number of calls.
Rule 2: the tokens and dollars of a call are known only after the call. Calls run concurrently only if all of them
would fit even at twice their estimated usage. Otherwise, calls run one at a time. So at most one call exceeds the
limit, unless concurrent calls use more than twice their estimates.
Rule 3: a refusal is data (`Refusal`), not an exception. So a run that reaches its limit ends without an error.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Self

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..errors import UsageError
from .events import NOTHING, Usage

MAX_INT = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly."""

HEADROOM = 2.0
"""The factor by which an unfinished call may exceed its estimate."""

DEFAULT_CALLS = 30
"""The default limit on model calls of a run. Resuming a run that reached this limit grants this many calls again."""

Count = Annotated[int, Meta(ge=1, le=MAX_INT)]
Amount = Annotated[float, Meta(gt=0)]


class Budget(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The hard limits of a run. None means no limit.

    Args:
        calls: Requests to models, retries included. A request for several samples counts once; the limits on tokens and
            dollars count each sample.
        tokens: Input and output tokens together.
        usd: US dollars.
        seconds: Run time in seconds. At the limit, a call in flight is cut off.
        thoughts: How many thoughts the run may record.
        nodes: How many nodes a search may have.
        closes: Whether the run reserves part of its budget for a last question at the limit.

    Raises:
        UsageError: A limit is not a number above 0.
    """

    calls: Count | None = None
    tokens: Count | None = None
    usd: Amount | None = None
    seconds: Amount | None = None
    thoughts: Count | None = None
    nodes: Count | None = None
    closes: bool = True

    def __post_init__(self) -> None:
        for name, limit in msgspec.structs.asdict(self).items():
            amount, flag = name in ("usd", "seconds"), name == "closes"
            if limit is None and not flag:
                continue
            try:
                msgspec.convert(limit, bool if flag else Amount if amount else Count)
            except msgspec.ValidationError:
                wanted = "a number above 0" if amount else "a whole number from 1 up"
                wanted = "true or false" if flag else wanted
                raise UsageError(
                    f"the budget cannot be kept: {name} must be {wanted}, not {limit!r:.60}",
                    option="budget",
                    limit=name,
                ) from None


class Refusal(Struct, frozen=True):
    """A refused call. If `wait` is true, the call may become possible when unfinished calls end."""

    reason: str
    detail: str
    wait: bool = False


class Ledger(Struct, frozen=True):
    """A budget, the usage so far, and the reservations for unfinished calls."""

    budget: Budget = Budget()
    spent: Usage = NOTHING
    reserved: Usage = NOTHING
    largest: Usage = NOTHING
    """The largest usage of a call so far, which is the estimate for the next call."""
    closing: Usage = NOTHING
    """The usage that is reserved for the run's last question. Other calls cannot use it."""

    def estimate(self, tokens: int, samples: int = 1) -> Usage:
        """Estimate the usage of a request from the largest call so far, with at least `tokens` per sample."""
        usd = self.largest.usd
        return Usage(
            input_tokens=samples * max(tokens, self.largest.tokens),
            usd=None if usd is None else samples * usd,
        )

    def fitting(self, tokens: int, samples: int) -> int:
        """Return how many samples, from 1 to `samples`, fit the budget under rule 2.

        If tokens or dollars are limited, the result is 1 until the usage of a first call is known.
        """
        expected = self.estimate(tokens)
        for _, limit, _, count in self._limits():
            if self.largest.calls == 0:
                return 1
            room, each = (limit - count(self.spent)) / HEADROOM - count(self.reserved), count(expected)
            # Calls without a price cannot exceed a limit on dollars.
            samples = min(samples, int(room / each)) if each else samples
        return max(1, samples)

    def reserve(self, estimate: Usage) -> Self | Refusal:
        """Reserve the estimate, and return the new ledger. If a limit leaves no room, return a refusal."""
        calls, taken = self.budget.calls, self.spent + self.reserved
        if calls is not None and taken.calls + estimate.calls + self.closing.calls > calls:
            return Refusal("max_calls", f"reached the limit of {calls} call{'s' * (calls != 1)}")
        for reason, limit, whole, count in self._limits():
            spent = count(self.spent)
            if spent >= limit:
                return Refusal(reason, f"reached the limit of {whole} ({spent:g} spent)")
            unmeasured = self.largest.calls == 0 and self.reserved.calls > 0
            wanted = count(taken) - spent + count(estimate)
            if self.reserved.calls and (unmeasured or spent + HEADROOM * wanted > limit):
                return Refusal(reason, f"calls in flight may use up the {whole}", wait=True)
        return replace(self, reserved=self.reserved + estimate)

    def passed_by(self, coming: Usage) -> Refusal | None:
        """Return a refusal if `coming`, the usage of streaming replies, takes the run over a limit."""
        for reason, limit, whole, count in self._limits():
            if count(self.spent + coming) > limit:
                return Refusal(reason, f"the limit of {whole} was exceeded by a reply, which was cut off")
        return None

    def _limits(self) -> Iterator[tuple[str, float, str, Callable[[Usage], float]]]:
        """Yield (reason, limit, text, measure) for each token or dollar limit, with `closing` subtracted."""
        tokens, usd, closing = self.budget.tokens, self.budget.usd, self.closing
        if tokens is not None:
            yield "max_tokens", tokens - closing.tokens, f"{tokens:g} tokens", lambda usage: usage.tokens
        if usd is not None:
            yield "max_usd", usd - (closing.usd or 0), f"{usd:g} US dollars", lambda usage: usage.usd or 0

    def settle(self, estimate: Usage, actual: Usage) -> Self:
        """Return a ledger in which the actual usage replaces the reserved estimate."""
        returned = Usage(-estimate.calls, -estimate.tokens, usd=estimate.usd and -estimate.usd)
        return replace(
            self,
            spent=self.spent + actual,
            reserved=self.reserved + returned,
            largest=larger_usage(self.largest, actual),
        )


def larger_usage(first: Usage, second: Usage) -> Usage:
    """Return an estimate that covers both usages. If `second` has no tokens and no price, return `first`."""
    if second.tokens == 0 and second.usd is None:
        return first
    costs = [usd for usd in (first.usd, second.usd) if usd is not None]
    return Usage(calls=1, input_tokens=max(first.tokens, second.tokens), usd=max(costs) if costs else None)
