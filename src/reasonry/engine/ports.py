"""Ports: what the engine needs of the world. Folders above implement them; nothing here does anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from ..core.effects import Ask, Verify
from ..core.events import Answered, Usage, Verified
from ..errors import ModelError

NOT_FAILURES = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)
"""Exceptions that pass; any other, SystemExit too, is a failure of the performer and must not end the process."""


OnText = Callable[[str], None]
"""Called with each piece of text as it streams in."""


class Question(Struct, frozen=True):
    """One call to a model: the ask, and where in the run it stands."""

    id: str
    stage: str
    ask: Ask
    timeout_s: float | None = None
    on_hidden: OnText | None = None
    """Told, of an answer that streams in, what is paid for and not part of its text: reasoning, above all."""

    @property
    def prompt(self) -> str:
        """All that is asked, for its length."""
        return self.ask.text


def is_rate_limit(error: BaseException) -> bool:
    """Whether a provider has refused a request only because of its rate: the same request succeeds later."""
    if not isinstance(error, ModelError) or not error.retryable:
        return False
    return error.code == "rate_limited" or (
        error.details.get("status") == 503 and error.retry_after_s is not None
    )


class BrokenReplyError(ModelError):
    """A reply came, in part or whole, that is no answer: it has to be paid all the same.

    Args:
        error: What is wrong with it.
        usage: What it took.
    """

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
    """Who answers questions.

    A model whose provider keeps prompts in a cache may say so with an attribute `caches_prompts = True`: then the first
    call of a fan-out goes alone. One that draws several samples in one request is a `SamplingModel`. One that keeps its
    place in a file may have `rewind`; see `models.scripted`.

    One may have `price`, a `engine.prices.PriceOf`: where it does not know, no run that it works on takes a limit on
    dollars, unless the user names a price. One without it states the dollars with its answers. One that answers for
    nothing has `is_free = True`. Of others the usage is an estimate where it cannot be right, and where there is none
    in a run with a limit on tokens or dollars.

    One that reasons by itself before it replies has `reasons = True`: it is not told to think step by step. One that
    gives its provider the tools of a question has `takes_tools = True`, and returns calls as `with_calls` writes them.

    Attributes:
        name: As a user would write it after `--model`.
    """

    name: str

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer one question. `at_ms` is left 0; `usage.calls` is 1.

        Raises:
            ModelError: There is no answer; `retryable` and `retry_after_s` say whether and when to try again;
                with `degraded=True` in its details the model will send something else then, which takes no attempt.
            BrokenReplyError: A reply came that is no answer; what it took is booked.
        """
        ...

    async def close(self) -> None:
        """Close connections and files, where there are any."""


class SamplingModel(Model, Protocol):
    """A model that may draw several independent samples of one question in one request."""

    @property
    def takes_n(self) -> bool:
        """Whether it does; False once the server has shown otherwise, and then nothing but `answer` is used."""
        ...

    async def answer_many(self, question: Question, samples: int) -> list[Answered]:
        """Answer a question several times in one request; at least once, perhaps fewer times than asked.

        The first answer's usage has `calls` 1, the prompt's tokens and whatever cannot be split; the others have
        `calls` 0 and their share of what was written, so that the sum is what the request took.

        Raises:
            ModelError: As `answer`.
        """
        ...


def provider_of(model: str) -> str:
    """Return who serves a model of that name: `openai` for `openai:NAME`, all before the `#` for `…:URL#NAME`."""
    head, mark, _ = model.rpartition("#")
    return head if mark else model.partition(":")[0]


class Verifier(Protocol):
    """Proves candidates right or wrong, in code.

    Attributes:
        name: As a user would write it after `--verifier`.
    """

    name: str

    async def verify(self, claim: Verify) -> Verified:
        """Look at a candidate. What goes wrong inside is the verdict `unknown` with `failed`, and why as `detail`."""
        ...


class Tool(Protocol):
    """Something a run can call.

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
            ToolError: It could not be done; the message is fit to be shown to a model.
        """
        ...
