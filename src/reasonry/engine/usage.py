"""The usage of a call: the provider's figures if they are plausible, otherwise an estimate.

Rule 1: the lengths of prompt and reply give an estimate. A figure is implausible below a quarter of the estimate (three
fifths for several samples, since some servers count only the first sample). A figure is also implausible above one
token per byte plus `MOST_HIDDEN_TOKENS` for hidden reasoning and a provider's additions to the prompt.
Rule 2: an estimate replaces an implausible or unusable figure (absent, negative, text, …) and is marked as estimated.
Rule 3: a list price replaces a cost that is missing, off by over a factor of `MOST_OFF`, or based on estimated tokens.
"""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..core.events import NOTHING, Answered, Usage
from ..errors import ModelError
from ..text import lazy_pattern
from .ports import BrokenReplyError, Model, Question, is_rate_limit
from .prices import PriceOf, Prices, no_price

CHARS_PER_TOKEN = 4
"""Characters of English text per token. A non-ASCII character counts as three, as other languages take more tokens."""

BELIEVED, BELIEVED_OF_MANY = 0.25, 0.6
"""The share of the estimate that a stated figure must reach, for one reply and for several samples together."""

MOST_HIDDEN_TOKENS = 1_000_000
"""An upper bound for the tokens of hidden reasoning before a reply, and of a provider's additions to a prompt."""

MOST_OFF = 100
"""The factor by which the cost of a call may differ from its list price, due to discounts, tiers and fees."""

_RUN = lazy_pattern(r"(.)\1{3,}", re.DOTALL)


class Stated(Struct, frozen=True):
    """The unchecked usage that a provider states for a call."""

    input_tokens: Any = None
    output_tokens: Any = None
    cached_input_tokens: Any = None
    usd: Any = None


def weigh(text: str) -> int:
    """Return the weight of a text for `tokens_of`. The weights of several texts may be added."""
    beyond = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return len(text) + 2 * beyond


def tokens_of(weight: int) -> int:
    """Return the estimated tokens for a weight from `weigh`."""
    return -(-weight // CHARS_PER_TOKEN)


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text."""
    return tokens_of(weigh(text))


def meter(
    stated: Stated, prompt: str, replies: Sequence[str], *, reasoning: str = "", price: PriceOf = no_price
) -> Usage:
    """Return the usage to record for one request.

    Args:
        replies: The texts of all samples, even of unused samples.
        reasoning: Reasoning text that is not part of the replies. Some providers count its tokens.
    """
    taken, guessed = _count_or_guess(stated.input_tokens, prompt)
    parts = max(1, len(replies))
    share = BELIEVED_OF_MANY if sum(map(bool, replies)) > 1 else BELIEVED
    made, guessed_reply = _count_or_guess(stated.output_tokens, "".join(replies), reasoning, parts, share)
    estimated = guessed + guessed_reply
    cached = 0 if guessed else _cached_count(stated.cached_input_tokens, taken)
    usd, listed = dollars(stated.usd), price(taken, made, cached) if taken + made else None
    is_off = bool(listed and usd is not None and not listed / MOST_OFF <= usd <= listed * MOST_OFF)
    if usd is None or is_off or (listed is not None and estimated):
        usd = listed
    return Usage(1, taken, made, cached, usd, estimated)


def estimate_usage(prompt: str, reply: str, price: PriceOf = no_price) -> Usage:
    """Return the estimated usage of a request, from the lengths of prompt and reply."""
    return guess(estimate_tokens(prompt), estimate_tokens(reply), price)


def guess(taken: int, made: int, price: PriceOf) -> Usage:
    """Return the usage of a request with estimated input tokens (`taken`) and output tokens (`made`)."""
    usd = price(taken, made, 0)
    return Usage(input_tokens=taken, output_tokens=made, usd=usd, estimated_tokens=taken + made)


def check_usage(usage: Usage, prompt: str, reply: str, price: PriceOf = no_price) -> Usage:
    """Check the usage that a model states. Return the usage, with estimates for missing and impossible figures."""
    silent = (usage.input_tokens, usage.output_tokens) == (0, 0)
    figures = ((usage.input_tokens, prompt), (usage.output_tokens, reply))
    if not silent and all(_count_up_to(figure, _most(text)) is not None for figure, text in figures):
        cached = _cached_count(usage.cached_input_tokens, usage.input_tokens)
        return replace(usage, cached_input_tokens=cached, usd=dollars(usage.usd))
    nothing = Stated(usd=usage.usd) if silent else Stated(usage.input_tokens, usage.output_tokens)
    return replace(meter(nothing, prompt, [reply], price=price), calls=usage.calls)


def dollars(stated: Any) -> float | None:
    """Return the cost that a provider states, or None if the stated value is not a possible cost."""
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return None
    return float(stated) if 0 <= stated < 1_000_000 else None


def _count_or_guess(
    stated: Any, text: str, unseen: str = "", parts: int = 1, share: float = BELIEVED
) -> tuple[int, int]:
    """Return a token count, and how many of the counted tokens are estimated."""
    count, shown = _count_up_to(stated, _most(text + unseen, parts)), text.strip()
    # One token may stand for many repetitions of the same character.
    fewest = max(min(1, len(shown)), int(estimate_tokens(_RUN.sub(r"\1", shown)) * share))
    guessed = estimate_tokens(text + unseen)
    return (guessed, guessed) if count is None or count < fewest else (count, 0)


def _cached_count(stated: Any, taken: int) -> int:
    return min(_count_up_to(stated, 1_000_000_000) or 0, taken)


def _count_up_to(stated: Any, maximum: int) -> int | None:
    if isinstance(stated, float) and stated.is_integer():
        stated = int(stated)
    if isinstance(stated, bool) or not isinstance(stated, int):
        return None
    return stated if 0 <= stated <= maximum else None


def _most(text: str, parts: int = 1) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + parts * MOST_HIDDEN_TOKENS


class Booking:
    """Determines the usage to record for one request.

    Args:
        prices: The user's prices, which override the prices of the model.
        is_limited: Whether a limit depends on the usage. If not, a program's own model may omit the usage.
    """

    def __init__(self, model: Model, question: Question, prices: Prices, is_limited: bool) -> None:
        self.prompt = question.prompt
        self._named, self._price = prices.of(model), prices.price_of(model)
        is_free = bool(getattr(model, "is_free", False))
        self._estimates = not is_free and (is_limited or hasattr(model, "price"))
        self._prompt_tokens = estimate_tokens(self.prompt) if self._estimates else 0
        self._weight = 0

    def hear(self, piece: str) -> None:
        """Add a streamed piece of the reply."""
        self._weight += weigh(piece)

    @property
    def so_far(self) -> Usage:
        """The estimated usage of the request so far."""
        if not self._estimates:
            return Usage()
        return guess(self._prompt_tokens, tokens_of(self._weight), self._price)

    def of_failure(self, error: BaseException) -> Usage:
        """Return the usage to record for a request without an answer.

        A request that the provider refused counts as a call without tokens, but a refusal because of a rate limit does
        not count at all. A request that was cut off costs its prompt and the pieces of the reply so far.
        """
        stated = error.usage if isinstance(error, BrokenReplyError) else NOTHING
        if isinstance(error, ModelError) and not stated.tokens and not self._weight:
            return NOTHING if is_rate_limit(error) else Usage()
        so_far = self.so_far
        known = stated.tokens > 0 and (stated.estimated_tokens == 0 or stated.tokens >= so_far.tokens)
        return self._with_price(stated if known else so_far)

    def of_answers(self, answers: Sequence[Answered], wanted: int) -> list[Answered]:
        """Return the first `wanted` answers. The first answer also gets the usage of surplus answers."""
        kept, surplus = list(answers[:wanted]), answers[wanted:]
        extra = sum((answer.usage for answer in surplus), NOTHING)
        kept[0] = replace(kept[0], usage=kept[0].usage + replace(extra, calls=0))
        if self._estimates:
            whole = sum((answer.usage for answer in kept), NOTHING)
            text = "".join(answer.text for answer in answers)
            usage = check_usage(whole, self.prompt, text, self._price)
            if usage != whole:
                others = [replace(answer, usage=NOTHING) for answer in kept[1:]]
                kept = [replace(kept[0], usage=usage), *others]
        beside = max(0, len(answers) - sum(answer.usage.calls for answer in answers[:wanted]))
        kept[0] = replace(kept[0], usage=replace(kept[0].usage, extra_samples=beside))
        return [replace(answer, usage=self._with_price(answer.usage)) for answer in kept]

    def _with_price(self, usage: Usage) -> Usage:
        if self._named is None:
            return usage
        usd = self._named(usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)
        return replace(usage, usd=usd)
