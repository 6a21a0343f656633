"""Events: what happened, as plain frozen data. The journal of a run is the list of them.

`at_ms` is run time: milliseconds the run has been at work since it began, pauses between a crash and the resume not
counted. The core reads no clock; whoever makes the event does.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

UNREADABLE = "output_invalid"
"""Code of the failure of a question none of whose replies could be read."""

STOPPED = "stopped"
"""Code of the `Failed` a stage gets for what had not come in when the run was stopped."""


class Usage(Struct, frozen=True, omit_defaults=True):
    """The usage of a run. `usd` is None if the price is unknown.

    Args:
        estimated_tokens: Input and output tokens that no provider reported; see `engine.usage`.
        extra_samples: Samples beyond the first of requests that drew several.
    """

    calls: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    usd: float | None = None
    estimated_tokens: int = 0
    extra_samples: int = 0

    @property
    def samples(self) -> int:
        """Drawn replies. A request may draw several."""
        return self.calls + self.extra_samples

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        known = [usd for usd in (self.usd, other.usd) if usd is not None]
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            usd=sum(known) if known else None,
            estimated_tokens=self.estimated_tokens + other.estimated_tokens,
            extra_samples=self.extra_samples + other.extra_samples,
        )


NOTHING = Usage(calls=0)


class Answered(Struct, frozen=True, tag="answered", omit_defaults=True):
    """Someone answered an `Ask`."""

    text: str
    at_ms: int = 0
    usage: Usage = Usage()
    model: str = ""
    native: bool = False
    """Whether the provider itself held the reply to the form."""
    truncated: bool = False
    """Whether the reply was cut off at the provider's output limit."""
    refused: bool = False
    """Whether the model declined to answer."""
    tried: tuple[str, ...] = ()
    """What came of the requests before this one, `code: message`, oldest first; `usage.calls` counts them."""


class ToolReturned(Struct, frozen=True, tag="tool_returned", omit_defaults=True):
    """A tool returned; `value` is JSON data, cut to the run's size limit."""

    value: Any
    at_ms: int = 0


class Verified(Struct, frozen=True, tag="verified", omit_defaults=True):
    """A verifier gave its verdict.

    `wrong` and `right` are proofs, not opinions: what is wrong is pruned, what is right ends the search.
    """

    verdict: Literal["right", "wrong", "unknown"]
    detail: str = ""
    answer: str | None = None
    """With `right`: the whole answer in closed form, where the verifier can write it down."""
    at_ms: int = 0
    failed: bool = False
    """With `unknown`: whether the verifier itself failed, as `detail` says."""


class Failed(Struct, frozen=True, tag="failed", omit_defaults=True):
    """An effect could not be performed, for good: whatever could be tried again has been.

    As a stage gets it, `usage` is that of all tries together, unusable replies included.
    """

    code: str
    message: str
    at_ms: int = 0
    usage: Usage = Usage(calls=0)
    replies: tuple[str, ...] = ()
    """With `output_invalid`: the unusable replies, oldest first."""
    tried: tuple[str, ...] = ()
    """What came of the requests before the last one, as in `Answered`."""


class Stopped(Struct, frozen=True, tag="stopped", omit_defaults=True):
    """The run was ended from outside: a limit was reached (`max_calls`, …), it was `cancelled`, or `set_aside`."""

    reason: str
    detail: str = ""
    at_ms: int = 0
    usage: Usage = Usage(calls=0)
    """Calls that were cut off in flight."""


class Closing(Struct, frozen=True, tag="closing", omit_defaults=True):
    """The run is to come to its answer from what it has: a limit leaves room for the last question and no other."""

    reason: str
    detail: str = ""
    at_ms: int = 0
    number: int = 1
    """Which closing of the run it is; one that was lifted counts."""
    usage: Usage = Usage(calls=0)
    """Calls that were cut off in flight."""


class Conclusion(Struct, frozen=True, omit_defaults=True):
    """How far a run has got: at its end the result, before it the best so far.

    `document` holds the strategy's own part of the result document (`best`, `candidates`, `votes`, …).
    """

    answer: str | None = None
    reason: str = "success"
    detail: str = ""
    document: dict[str, Any] = {}
    short: str | None = None
    """The answer alone, where `answer` says more than that; what votes compare."""
    certainty: Literal["best_so_far", "given", "proved"] = "given"
    """`best_so_far`: a budget or a person ended the run before it gave its answer; `proved`: by a verifier."""


class Finished(Conclusion, frozen=True, tag="finished", omit_defaults=True, kw_only=True):
    """A strategy run inside this one has ended, with its conclusion. Made by the machine, never journaled.

    It is `cancelled` where the stop of the whole run cut it off; `answer` is then its best so far.
    """

    status: Literal["done", "failed", "cancelled"]
    at_ms: int = 0
    code: str | None = None
    """Of the failure that ended it."""


class Reply(Struct, frozen=True, tag="reply", omit_defaults=True):
    """An `Answered` as a stage gets it: read into the stage's form. Made by the machine, never journaled."""

    value: Any
    text: str
    mode: str
    """Which rung of the repair ladder read it: `native`, `json`, `fenced`, `embedded`, `repaired`, `list`, …"""
    tries: int = 1
    at_ms: int = 0
    usage: Usage = NOTHING
    """Of all tries together."""


Event = Answered | ToolReturned | Verified | Failed | Stopped | Closing
"""What is journaled."""

Delivered = Reply | ToolReturned | Verified | Failed | Finished
"""What a stage is sent, one for each effect of its request, in the order asked."""
