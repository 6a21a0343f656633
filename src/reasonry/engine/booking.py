"""What each request is booked with: what its provider states, where that can be, else an estimate."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..core.budget import NOTHING, Usage
from ..core.events import Answered
from ..core.metering import check_usage, estimate_tokens, guess, tokens_of, weigh
from ..errors import ModelError
from .named_prices import Prices
from .ports import BrokenReplyError, Model, Question


class Booking:
    """The booking of one request.

    Args:
        prices: Those the user named; they hold whatever the provider says.
        limited: Whether a limit depends on it. Without one a program's own model may keep its usage to itself.
    """

    def __init__(self, model: Model, question: Question, prices: Prices, limited: bool) -> None:
        self.prompt = question.prompt
        self._named, self._price = prices.of(model), prices.price_of(model)
        is_free = bool(getattr(model, "is_free", False))
        self._estimates = not is_free and (limited or hasattr(model, "price"))
        self._prompt_tokens = estimate_tokens(self.prompt) if self._estimates else 0
        self._weight = 0

    def hear(self, piece: str) -> None:
        """Note what streams in."""
        self._weight += weigh(piece)

    @property
    def so_far(self) -> Usage:
        """What the request is estimated to have taken until now."""
        if not self._estimates:
            return Usage()
        return guess(self._prompt_tokens, tokens_of(self._weight), self._price)

    def of_failure(self, error: BaseException) -> Usage:
        """Return what to book for a request that was sent and brought no answer.

        What a provider refuses costs nothing; what was cut off in time has cost its prompt, and what came until then.
        """
        stated = error.usage if isinstance(error, BrokenReplyError) else NOTHING
        if isinstance(error, ModelError) and not stated.tokens and not self._weight:
            return Usage()
        so_far = self.so_far
        known = stated.tokens > 0 and (stated.estimated_tokens == 0 or stated.tokens >= so_far.tokens)
        return self._with_price(stated if known else so_far)

    def of_answers(self, answers: Sequence[Answered], wanted: int) -> list[Answered]:
        """Return the answers that were wanted, with the usage of all that came."""
        kept, surplus = list(answers[:wanted]), answers[wanted:]
        extra = sum((answer.usage for answer in surplus), NOTHING)
        kept[0] = replace(kept[0], usage=kept[0].usage + replace(extra, calls=0))
        if self._estimates:
            kept = self._correct_usage(kept, "".join(answer.text for answer in answers))
        return [replace(answer, usage=self._with_price(answer.usage)) for answer in kept]

    def _correct_usage(self, answers: list[Answered], text: str) -> list[Answered]:
        whole = sum((answer.usage for answer in answers), NOTHING)
        usage = check_usage(whole, self.prompt, text, self._price)
        if usage == whole:
            return answers
        first, *others = answers
        return [replace(first, usage=usage), *(replace(answer, usage=NOTHING) for answer in others)]

    def _with_price(self, usage: Usage) -> Usage:
        if self._named is None:
            return usage
        usd = self._named(usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)
        return replace(usage, usd=usd)
