"""The interfaces through which the engine calls models, verifiers and tools. Higher-level packages implement these."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from ..core.effects import Ask, Verify
from ..core.events import Answered, Usage, Verified
from ..errors import ModelError

NOT_FAILURES = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
"""Exceptions that are raised again. Any other exception in a call, even SystemExit, only makes the call fail."""

OnText = Callable[[str], None]
"""A function that receives each piece of a text while the text streams in."""


class Question(Struct, frozen=True):
    """A question to a model: an `Ask`, the id of its effect, and the stage of the run that asks."""

    id: str
    stage: str
    ask: Ask
    timeout_s: float | None = None
    on_hidden: OnText | None = None
    """A function that receives streamed pieces that cost tokens but are no part of the answer, such as reasoning."""

    @property
    def prompt(self) -> str:
        """The whole text of the question, for an estimate of its tokens."""
        return self.ask.text


def is_rate_limit(error: BaseException) -> bool:
    """Whether an error is a refusal because of a rate limit. The same request may succeed later."""
    if not isinstance(error, ModelError) or not error.retryable:
        return False
    return error.code == "rate_limited" or (
        error.details.get("status") == 503 and error.retry_after_s is not None
    )


class BrokenReplyError(ModelError):
    """The error for an unusable or incomplete reply. The run still pays for the `usage` of the reply."""

    def __init__(self, error: ModelError, usage: Usage) -> None:
        super().__init__(
            error.message,
            code=error.code,
            retryable=error.retryable,
            retry_after_s=error.retry_after_s,
            **error.details,
        )
        self.usage = usage


class Model(Protocol):
    """The interface of a model, which answers questions.

    A model may have these optional attributes:

    - `caches_prompts = True`: the provider caches prompts, so the first of several similar calls is sent alone.
    - `price`, an `engine.prices.PriceOf`: if `price` returns None, a run with a limit on dollars needs a price from the
      user. A model without `price` states the dollars with its answers.
    - `is_free = True`: the answers cost nothing. For any other model, an estimate replaces a missing or impossible
      usage if the model has a `price`, or if a limit on tokens or dollars applies.
    - `reasons = True`: the model reasons before it replies, so no question asks the model to think step by step.
    - `takes_tools = True`: the model accepts tools as data, and writes tool calls in the format of `with_calls`.
    - `rewind`: a method that skips the lines of the model's file that a run has used; see `models.scripted`.
    - `rewinds_for_others = True`: answers that other models gave to the run also use up lines of this model's file.
    - `left_over`: the unused lines of the model's file; see `models.scripted`.

    A model that can return several samples for one request is a `SamplingModel`.

    Attributes:
        name: The name as a user would write it after `--model`.
    """

    name: str

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer one question. The answer has `at_ms` 0 and `usage.calls` 1.

        Raises:
            ModelError: There is no answer. `retryable` and `retry_after_s` say whether and when to try again. If the
                details contain `degraded=True`, the model will repeat the request in another form, and the failed
                request does not count as an attempt.
            BrokenReplyError: The reply is unusable, but has used tokens.
        """
        ...

    async def close(self) -> None:
        """Close connections and files."""


class SamplingModel(Model, Protocol):
    """A model that may return several independent samples (answers to the same question) for one request."""

    @property
    def takes_n(self) -> bool:
        """Whether the server can return several samples for one request. If False, the engine calls only `answer`."""
        ...

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        """Send one request. Return at least one and at most `samples` independent answers to the question.

        The usage of the first answer has `calls` 1, the prompt's tokens and all usage that cannot be split. Each other
        answer has `calls` 0 and its share of the output. All these usages add up to the usage of the request.

        Raises:
            ModelError: As in `answer`.
        """
        ...


def provider_of(model: str) -> str:
    """Return the provider of a model: `openai` for `openai:NAME`, and `KIND:URL` for `KIND:URL#NAME`."""
    head, mark, _ = model.rpartition("#")
    return head if mark else model.partition(":")[0]


class Verifier(Protocol):
    """The interface of a verifier: code that proves candidates right or wrong.

    Attributes:
        name: The name as a user would write it after `--verifier`.
    """

    name: str

    async def verify(self, claim: Verify) -> Verified:
        """Check a candidate. If that is impossible, return `unknown` with `failed=True` and the reason as `detail`."""
        ...


class Tool(Protocol):
    """The interface of a tool that a run can call.

    Attributes:
        name: The name, unique in the catalog of tools.
        description: The description that the model reads.
        parameters: JSON schema of the arguments object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Do the work and return JSON data.

        Raises:
            ToolError: The work failed. The message may be shown to a model.
        """
        ...
