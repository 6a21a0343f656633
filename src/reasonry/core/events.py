"""Events as plain frozen data. A run's journal is the list of its events.

`at_ms` is run time: milliseconds of work since the run began. Pauses do not count, such as the pause between a crash
and a resume. The core reads no clock; the code that creates an event does.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

UNREADABLE = "output_invalid"
"""The failure code of a question that got no readable reply."""

STOPPED = "stopped"
"""The failure code of an effect that was open when the run was stopped."""


class Usage(Struct, frozen=True, omit_defaults=True):
    """The usage of one or more calls. `usd` is None if the price is unknown.

    Args:
        estimated_tokens: How many of the tokens are estimates, not a provider's figures; see `engine.usage`.
        extra_samples: How many samples were requested in addition to the first sample of each request.
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
        """How many samples the calls requested. One call may request several samples."""
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


class Answered(Struct, frozen=True, tag="answered", omit_defaults=True, gc=False):
    """A model, an agent or a person answered an `Ask`."""

    text: str
    at_ms: int = 0
    usage: Usage = Usage()
    model: str = ""
    native: bool = False
    """Whether the provider enforced the form of the reply."""
    truncated: bool = False
    """Whether the reply was cut off at the provider's output limit."""
    refused: bool = False
    """Whether the model declined to answer."""
    tried: tuple[str, ...] = ()
    """The failures of earlier requests, as `code: message`, oldest first. `usage.calls` counts these requests too."""


class ToolReturned(Struct, frozen=True, tag="tool_returned", omit_defaults=True):
    """A tool returned a value: JSON data, shortened if the value exceeds the size limit."""

    value: Any
    at_ms: int = 0


class Verified(Struct, frozen=True, tag="verified", omit_defaults=True):
    """A verifier gave its verdict.

    `wrong` and `right` are proofs, not opinions: a wrong candidate is pruned, a right answer ends the search.
    """

    verdict: Literal["right", "wrong", "unknown"]
    detail: str = ""
    answer: str | None = None
    """The whole answer (such as an equation), if the verdict is `right` and the verifier can derive the answer."""
    at_ms: int = 0
    failed: bool = False
    """Whether the verdict is `unknown` because the verifier itself failed. `detail` then has the cause."""


class Failed(Struct, frozen=True, tag="failed", omit_defaults=True):
    """An effect failed for good, after all retries.

    A stage receives the failure with the `usage` of all tries, unusable replies included.
    """

    code: str
    message: str
    at_ms: int = 0
    usage: Usage = Usage(calls=0)
    replies: tuple[str, ...] = ()
    """The unusable replies to the question, oldest first."""
    tried: tuple[str, ...] = ()
    """The failures of the requests before the last request, as in `Answered.tried`."""


class Stopped(Struct, frozen=True, tag="stopped", omit_defaults=True):
    """The run was stopped from outside. `reason` is, for example, `max_calls`, `cancelled` or `poisoned`."""

    reason: str
    detail: str = ""
    at_ms: int = 0
    usage: Usage = Usage(calls=0)
    """The usage of the calls that were cut off."""


class Closing(Struct, frozen=True, tag="closing", omit_defaults=True):
    """The run must answer from its results so far, since a limit leaves room for only one more question."""

    reason: str
    detail: str = ""
    at_ms: int = 0
    number: int = 1
    """The index of this closing among all closings of the run, from 1. Closings that new limits revoked count too."""
    usage: Usage = Usage(calls=0)
    """The usage of the calls that were cut off."""


class Conclusion(Struct, frozen=True, omit_defaults=True):
    """The result of a run, or the best result so far if the run has not ended.

    `document` is the strategy's own part of the result document (`best`, `candidates`, `votes`, …).
    `why` is the reason for the answer. It is empty if the thought that ends in the answer is the reason. `rests_on`
    names the thoughts behind the reason by their stages or their `node_id`.
    """

    answer: str | None = None
    reason: str = "success"
    detail: str = ""
    document: dict[str, Any] = {}
    short: str | None = None
    """The bare answer for comparing votes, if `answer` contains additional text."""
    certainty: Literal["best_so_far", "given", "proved"] = "given"
    """`proved` by a verifier; `best_so_far` if a limit or a person ended the run before its answer; else `given`."""
    why: str = ""
    rests_on: tuple[str, ...] = ()

    def because(self, why: str = "", *rests_on: str) -> Self:
        """Add a reason for the answer. `rests_on` has the stage or `node_id` of each thought behind the reason."""
        return replace(self, why=why, rests_on=rests_on)


class Finished(Conclusion, frozen=True, tag="finished", omit_defaults=True, kw_only=True):
    """The conclusion of a child run that has ended. Only the machine creates this event.

    Journals do not contain it. If the child run was cut off, the status is `cancelled` and `answer` is the best so far.
    """

    status: Literal["done", "failed", "cancelled"]
    at_ms: int = 0
    code: str | None = None
    """The code of the failure that ended the child run."""


class Reply(Struct, frozen=True, tag="reply", omit_defaults=True, gc=False):
    """An answer, and the value read from its text. Only the machine creates replies, and journals have none."""

    value: Any
    text: str
    mode: str
    """The name of the method that read `text`: `native`, `json`, `fenced`, `embedded`, `repaired`, `list`, …"""
    tries: int = 1
    at_ms: int = 0
    usage: Usage = NOTHING
    """The usage of all tries."""


Event = Answered | ToolReturned | Verified | Failed | Stopped | Closing
"""The events that a journal records."""

Delivered = Reply | ToolReturned | Verified | Failed | Finished
"""The answer that a stage receives for an effect."""
