"""The interfaces through which the engine reaches models, verifiers and tools. Higher-level packages implement them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from ..core.effects import Ask, Verify
from ..core.events import Answered, Usage, Verified
from ..errors import ModelError

NOT_FAILURES = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
"""Exceptions to pass on. Any other exception, even SystemExit, counts as a failed call and must not end the process."""

OnText = Callable[[str], None]
"""A function that receives each piece of a text as it streams in."""


class Question(Struct, frozen=True):
    """A question to a model: the `Ask`, with the id of its effect and its stage in the run."""

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
    """Whether a provider refused a request only because of a rate limit, so that the same request may succeed later."""
    if not isinstance(error, ModelError) or not error.retryable:
        return False
    return error.code == "rate_limited" or (
        error.details.get("status") == 503 and error.retry_after_s is not None
    )


class BrokenReplyError(ModelError):
    """An unusable or incomplete reply. Its `usage` is booked, because the reply costs tokens all the same."""

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

    - `caches_prompts = True`: its provider caches prompts, so the first of several similar calls is sent alone.
    - `price`, an `engine.prices.PriceOf`: if it returns None, a run with a limit on dollars needs a price from the
      user. A model without `price` states the dollars with its answers.
    - `is_free = True`: its answers cost nothing. For any other model, an estimate replaces a missing or impossible
      usage if the model has a `price`, or if a limit on tokens or dollars applies.
    - `reasons = True`: it reasons by itself before it replies, so no question asks it to think step by step.
    - `takes_tools = True`: it accepts the tools of a question, and writes its tool calls as `with_calls` does.
    - `rewind`: a method that skips the lines of its file that a run has used; see `models.scripted`.
    - `rewinds_for_others = True`: answers that other models gave to the run also use up lines of its file.
    - `left_over`: the unused lines of its file; see `models.scripted`.

    A model that draws several samples in one request is a `SamplingModel`.

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
            BrokenReplyError: The reply is unusable. Its usage is booked.
        """
        ...

    async def close(self) -> None:
        """Close connections and files."""


class SamplingModel(Model, Protocol):
    """A model that may draw several independent samples of one question in one request."""

    @property
    def takes_n(self) -> bool:
        """Whether the server can draw several samples in one request. If False, the engine calls only `answer`."""
        ...

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        """Draw at least one and at most `samples` answers to a question in one request.

        The usage of the first answer has `calls` 1, the prompt's tokens and all usage that cannot be split. Each other
        answer has `calls` 0 and its share of the output. Together, they add up to the usage of the request.

        Raises:
            ModelError: As in `answer`.
        """
        ...


def provider_of(model: str) -> str:
    """Return the provider of a model: `openai` for `openai:NAME`, the part before the `#` for `…:URL#NAME`."""
    head, mark, _ = model.rpartition("#")
    return head if mark else model.partition(":")[0]


class Verifier(Protocol):
    """Proves candidates right or wrong, in code.

    Attributes:
        name: The name as a user would write it after `--verifier`.
    """

    name: str

    async def verify(self, claim: Verify) -> Verified:
        """Check a candidate. If this is not possible, return `unknown`, with `failed` and the reason as `detail`."""
        ...


class Tool(Protocol):
    """A tool that a run can call.

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
