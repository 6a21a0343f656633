"""The policy of a run (concurrency, retries, time-outs, rate limits), and the performers of its effects."""

import math
import random
from typing import Any, Protocol

from msgspec import Struct, field

from ..core.effects import Ask
from ..core.pending import Pending
from ..errors import ModelError, UsageError
from ..text import repeats_itself
from .journal import ParticipantNames
from .ports import Model, Verifier
from .prices import Prices
from .rate_limits import RateLimits
from .run import Run
from .telemetry import Meter

MAX_ATTEMPTS = 4
"""The default limit of attempts at a question whose errors are retryable."""
REASONING_TOKENS = 24_576
"""Tokens added to the limit of a reply for hidden reasoning, if the model reasons before it replies."""


class Policy(Struct, frozen=True, kw_only=True):
    """Concurrency, retries, time-outs and rate limits of runs.

    Args:
        max_concurrency: How many effects of one run may be performed at once.
        max_attempts: The most requests for one question. Requests refused because of a rate limit do not count.
        call_timeout_s: Seconds until a call to a model is cut off and counts as failed.
        max_output_tokens: The most tokens of one reply, hidden reasoning included. Defaults to the limit of the stage.
        tool_timeout_s: Seconds until a tool call is cut off and counts as failed.
        backoff_s: The first pause between attempts, in seconds. The pause doubles each time and has full jitter.
        max_backoff_s: The longest pause between attempts, in seconds, even if `Retry-After` asks for more.
        cache_warmup: Whether the first of several calls with a long common prefix is sent alone, so that the other
            calls find the prefix in the provider's cache. Defaults to the model's `caches_prompts`.
        rates: The most calls and tokens in any minute, over all runs of this process that share this policy.
        meter: Counts the work of the runs that share this policy.

    Raises:
        UsageError: A number is not above 0, or a count is not a whole number.
    """

    max_concurrency: int = 8
    max_attempts: int = MAX_ATTEMPTS
    call_timeout_s: float = 120.0
    max_output_tokens: int | None = None
    tool_timeout_s: float = 30.0
    backoff_s: float = 0.5
    max_backoff_s: float = 60.0
    cache_warmup: bool | None = None
    rates: RateLimits = field(default_factory=RateLimits)
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        counts = ("max_concurrency", "max_attempts", "max_output_tokens")
        named = () if self.max_output_tokens is None else ("max_output_tokens",)
        for name in ("max_concurrency", "max_attempts", "call_timeout_s", "tool_timeout_s", *named):
            value = getattr(self, name)
            # A program may pass a value of any type.
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise UsageError(f"{name} must be above 0, got {value!r:.60}", option=name)
            if name in counts and not isinstance(value, int):
                raise UsageError(f"{name} must be a whole number, got {value!r:.60}", option=name)

    def pause_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Return the pause in seconds after a failed attempt. Attempts are counted from 1."""
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), self.max_backoff_s)
        return random.uniform(0, self.longest_pause_s(attempt))

    def longest_pause_s(self, failures: int) -> float:
        """Return the pause in seconds after this many consecutive failures, without jitter."""
        return min(self.backoff_s * 2 ** min(failures - 1, 30), self.max_backoff_s)

    def output_limit(self, pending: Pending, ask: Ask, model: Model) -> int | None:
        """Return the token limit of a reply. If an earlier reply to the question was cut off, double the limit."""
        limit = self.max_output_tokens or ask.max_output_tokens
        if limit is None:
            return None
        if self.max_output_tokens is None and getattr(model, "reasons", False):
            limit += REASONING_TOKENS
        was_cut = any(reply.truncated and not repeats_itself(reply.text) for reply in pending.replies)
        return limit * 2 if was_cut else limit


class Tools(Protocol):
    """The tools that a run may call. They are fixed when the run starts."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, or raise `ToolError`."""
        ...


class Performers(Struct, frozen=True):
    """The models, the verifier and the tools that perform a run's effects.

    Args:
        judge_model: The model that scores thoughts. Defaults to `model`.
        draft_model: The model that proposes thoughts, which a judge scores afterwards. Defaults to `model`.
        seats: The models of a panel, which answer in parallel. For a missing seat, `model` answers.
        callers_tools: The names of the caller's own tools. The drive ends once all other effects are performed.
        opened_s: How many seconds it took to open the performers. This time counts as run time.
    """

    model: Model
    judge_model: Model | None = None
    verifier: Verifier | None = None
    tools: Tools | None = None
    draft_model: Model | None = None
    prices: Prices = Prices()
    opened_s: float = 0.0
    callers_tools: frozenset[str] = frozenset()
    seats: tuple[Model, ...] = ()
    names: ParticipantNames = ParticipantNames()

    @property
    def models(self) -> list[Model]:
        """All models of the run."""
        return [*filter(None, (self.model, self.judge_model, self.draft_model, *self.seats))]

    def answering(self, by: str) -> Model:
        """Return the model that plays the role `by`: `writer`, `judge`, `drafter` or `seat-N`."""
        seats = {f"seat-{number}": model for number, model in enumerate(self.seats, 1)}
        return {"judge": self.judge_model, "drafter": self.draft_model, **seats}.get(by) or self.model

    def check_used(self, run: Run) -> None:
        """If the run has an answer, check that its models have used all lines of their scripts.

        Raises:
            ModelError: `script_left_over`: some lines are unused. The message names these lines and their stages.
        """
        ended = run.snapshot.conclusion
        if ended and ended.answer and ended.certainty != "best_so_far" and not run.snapshot.closing:
            for name in {model.name for model in self.models}:
                # Models with the same script share its lines.
                unused = [getattr(model, "left_over", ()) for model in self.models if model.name == name]
                if left := [line for line in unused[0] if all(line in lines for lines in unused)]:
                    raise ModelError(f"no question used {', '.join(left)} of {name}", code="script_left_over")


def rewind(performers: Performers, run: Run, known: ParticipantNames) -> None:
    """Make scripted models skip the replies that the run has already used."""
    seats = {f"seat-{number}": name for number, name in enumerate(known.seats, 1)}
    settled = {event.id for event in run.events}
    names = {"writer": known.model, "judge": known.judge_model, "drafter": known.draft_model, **seats}
    for model in {id(model): model for model in map(performers.answering, names)}.values():
        rewind = getattr(model, "rewind", None)
        asked = [by for by in names if performers.answering(by) is model]
        is_own = model.name in [names[by] or known.model for by in asked]
        if rewind is not None and (is_own or getattr(model, "rewinds_for_others", False)):
            mine = (each for each in run.asked.values() if run.asked_by[each.id] in asked)
            rewind([(each.stage, each.id in settled) for each in mine])
