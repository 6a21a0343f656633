"""The interfaces through which the engine reaches models, verifiers and tools; packages above implement them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from ..core.effects import Ask, Verify
from ..core.events import Answered, Usage, Verified
from ..errors import ModelError

NOT_FAILURES = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
"""Exceptions to pass on; any other, even SystemExit, is a failure of the performer and must not end the process."""

OnText = Callable[[str], None]
"""Called with each piece of text as it streams in."""


class Question(Struct, frozen=True):
    """One call to a model: the ask, and its place in the run."""

    id: str
    stage: str
    ask: Ask
    timeout_s: float | None = None
    on_hidden: OnText | None = None
    """Called with pieces of a streamed answer that cost tokens but are no part of its text, such as reasoning."""

    @property
    def prompt(self) -> str:
        """The whole text of the question, to estimate its tokens."""
        return self.ask.text


def is_rate_limit(error: BaseException) -> bool:
    """Whether a provider has refused a request only because of its rate: the same request succeeds later."""
    if not isinstance(error, ModelError) or not error.retryable:
        return False
    return error.code == "rate_limited" or (
        error.details.get("status") == 503 and error.retry_after_s is not None
    )


class BrokenReplyError(ModelError):
    """The fault of an unusable reply, or of part of a reply, that still has its cost."""

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
    """Answers questions.

    A model may have further attributes:

    - `caches_prompts = True`: its provider caches prompts, so the first call of a fan-out goes alone.
    - `price`, an `engine.prices.PriceOf`: if it returns None, a run with a limit on dollars needs a price from the
      user. A model without `price` states the dollars with its answers.
    - `is_free = True`: its answers cost nothing. For other models, an estimate replaces an impossible usage, and a
      missing usage in a run with a limit on tokens or dollars.
    - `reasons = True`: it reasons by itself before it replies, so no question asks it to think step by step.
    - `takes_tools = True`: it passes the tools of a question on, and returns calls as `with_calls` writes them.
    - `rewind`: it keeps its place in a file; see `models.scripted`.
    - `rewinds_for_others = True`: answers of other models too stand for lines of its file.
    - `left_over`: the unused lines of its file; see `models.scripted`.

    A model that draws several samples in one request is a `SamplingModel`.

    Attributes:
        name: As a user would write it after `--model`.
    """

    name: str

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer one question. `at_ms` is left 0; `usage.calls` is 1.

        Raises:
            ModelError: There is no answer; `retryable` and `retry_after_s` say whether and when to try again. With
                `degraded=True` in its details the model will send another form of request, which does not count as an
                attempt.
            BrokenReplyError: The reply is no answer; its usage is booked.
        """
        ...

    async def close(self) -> None:
        """Close connections and files."""


class SamplingModel(Model, Protocol):
    """A model that may draw several independent samples of one question in one request."""

    @property
    def takes_n(self) -> bool:
        """Whether the server supports that; once False, the engine uses only `answer`."""
        ...

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        """Answer a question in one request, at least once and at most `samples` times.

        The first answer's usage has `calls` 1, the prompt's tokens and all usage that cannot be split; the others have
        `calls` 0 and their share of the output, so that they add up to the usage of the request.

        Raises:
            ModelError: As `answer`.
        """
        ...


def provider_of(model: str) -> str:
    """Return the provider of a model: `openai` for `openai:NAME`, the part before the `#` for `…:URL#NAME`."""
    head, mark, _ = model.rpartition("#")
    return head if mark else model.partition(":")[0]


class Verifier(Protocol):
    """Proves candidates right or wrong, in code.

    Attributes:
        name: As a user would write it after `--verifier`.
    """

    name: str

    async def verify(self, claim: Verify) -> Verified:
        """Check a candidate. A failure is the verdict `unknown` with `failed`, and the reason as `detail`."""
        ...


class Tool(Protocol):
    """A tool that a run can call.

    Attributes:
        name: Unique in its catalog.
        description: For the model.
        parameters: JSON schema of the arguments object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Do the work and return JSON data.

        Raises:
            ToolError: The work failed; the message is fit to be shown to a model.
        """
        ...
