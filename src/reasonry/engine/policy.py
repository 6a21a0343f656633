"""How a run is performed, and by whom."""

from __future__ import annotations

import math
from typing import Any, Protocol

from msgspec import Struct, field

from ..core.effects import Ask, CallTool, Effect
from ..core.machine import Pending
from ..errors import UsageError
from ..reading.repetition import repeats_itself
from .journal import ParticipantNames, Run
from .named_prices import Prices
from .ports import Model, Verifier
from .rate import RateLimits

REASONING_TOKENS = 24_576
"""What a model that reasons by itself may take besides its reply."""


class Policy(Struct, frozen=True, kw_only=True):
    """Concurrency, retries, time-outs and rate limits of runs.

    Args:
        max_concurrency: Effects of one run performed at once.
        max_attempts: Requests for one question, the first included.
        call_timeout_s: Until a call to a model counts as lost.
        max_output_tokens: Of one reply, hidden reasoning included; None: as many as its stage has room for.
        tool_timeout_s: Until a tool counts as failed.
        backoff_s: First pause between attempts; doubles, with full jitter.
        max_backoff_s: No pause is longer, whatever `Retry-After` says.
        cache_warmup: Whether the first call of a fan-out with a long common prefix goes alone, so that the others find
            it in the provider's cache; None: where the model says that its provider has one.
        rates: Calls and tokens in any minute, over all runs of this process that share this policy.

    Raises:
        UsageError: A number is not above 0, or not a whole one where it counts something.
    """

    max_concurrency: int = 8
    max_attempts: int = 4
    call_timeout_s: float = 120.0
    max_output_tokens: int | None = None
    tool_timeout_s: float = 30.0
    backoff_s: float = 0.5
    max_backoff_s: float = 60.0
    cache_warmup: bool | None = None
    rates: RateLimits = field(default_factory=RateLimits)

    def __post_init__(self) -> None:
        counts = ("max_concurrency", "max_attempts", "max_output_tokens")
        named = () if self.max_output_tokens is None else ("max_output_tokens",)
        for name in ("max_concurrency", "max_attempts", "call_timeout_s", "tool_timeout_s", *named):
            value = getattr(self, name)
            # A program may hand over anything.
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise UsageError(f"{name} must be above 0, got {value!r:.60}", option=name)
            if name in counts and not isinstance(value, int):
                raise UsageError(f"{name} must be a whole number, got {value!r:.60}", option=name)

    def output_limit(self, pending: Pending, ask: Ask, model: Model) -> int | None:
        """Return how many tokens a reply may take; after one that was cut off, twice as many."""
        limit = self.max_output_tokens or ask.max_output_tokens
        if limit is None:
            return None
        if self.max_output_tokens is None and getattr(model, "reasons", False):
            limit += REASONING_TOKENS
        was_cut = any(reply.truncated and not repeats_itself(reply.text) for reply in pending.replies)
        return limit * 2 if was_cut else limit


class Tools(Protocol):
    """The tools a run may call, fixed when it starts."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call one. Raises ToolError."""
        ...


class Performers(Struct, frozen=True):
    """Who does what in a run.

    Args:
        judge: Values thoughts; None: the model does.
        draft: Proposes thoughts that are valued afterwards; None: the model does.
        prices: Those the user named.
        callers_tools: The tools that the caller of the run calls: the drive ends when nothing else is left to perform.
        opened_s: Seconds of the run's time that went into opening them.
    """

    model: Model
    judge: Model | None = None
    verifier: Verifier | None = None
    tools: Tools | None = None
    draft: Model | None = None
    prices: Prices = Prices()
    opened_s: float = 0.0
    callers_tools: frozenset[str] = frozenset()

    def leaves_to_caller(self, effect: Effect) -> bool:
        """Whether an effect is a call that the caller of the run makes."""
        return isinstance(effect, CallTool) and effect.tool in self.callers_tools

    @property
    def models(self) -> list[Model]:
        """All who may be asked."""
        return [model for model in (self.model, self.judge, self.draft) if model is not None]

    def of(self, ask: Ask) -> Model:
        """Return the model that a question goes to."""
        return self.answering(ask.by)

    def answering(self, by: str) -> Model:
        """Return the model that answers what is asked `by` the writer, the judge or the drafter."""
        return {"judge": self.judge, "drafter": self.draft}.get(by) or self.model


def rewind(performers: Performers, run: Run, known: ParticipantNames) -> None:
    """Tell models that keep their place in a file which questions of the run they have answered."""
    names = {"writer": known.model, "judge": known.judge_model, "drafter": known.draft_model}
    for model in {id(model): model for model in map(performers.answering, names)}.values():
        rewind = getattr(model, "rewind", None)
        asked = [by for by in names if performers.answering(by) is model]
        if rewind is not None and model.name in [names[by] or known.model for by in asked]:
            rewind(run.asked_stages(asked))
