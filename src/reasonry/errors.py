"""Every exception of Reasonry: `UsageError` if the caller broke a rule, `WorldError` if something outside failed.

Every exception has a stable `code`, a message that says what to do, and `details`, such as the legal choices. If a
model or a tool fails during a run, the engine turns the exception into a `Failed` event of the run.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class ReasonryError(Exception):
    """The base of all errors of this package.

    Attributes:
        code: A stable lower-case code for programs.
        retryable: Whether the same request may succeed later.
        details: More facts about the error as plain JSON data, such as `choices`, `option` or `line`.
    """

    default_code: ClassVar[str] = "internal_error"

    def __init__(
        self, message: str, *, code: str | None = None, retryable: bool = False, **details: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.retryable = retryable
        self.details: dict[str, Any] = details

    def document(self) -> dict[str, Any]:
        """Return the error as the JSON document that every surface (CLI, HTTP, MCP) shows."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            **self.details,
        }

    @property
    def is_operators(self) -> bool:
        """Whether only the operator may see the error, because it names one of the operator's files or packages.

        An error about a strategy from a package is not hidden, since the caller named the strategy.
        """
        names_package = "plugin" in self.details and self.details.get("option") != "strategy"
        return names_package or "file" in self.details

    def beside(self) -> dict[str, Any]:
        """Return fields to show next to the error, such as the result of a part that succeeded. Empty by default."""
        return {}


class UsageError(ReasonryError):
    """The caller broke a rule. Nothing has changed."""

    default_code = "invalid_request"


class InvalidStrategyError(UsageError):
    """A strategy's table is inconsistent. The message names the stage and the reason."""


class IllegalTransitionError(UsageError):
    """The strategy's table has no edge to the requested stage. `choices` has the legal stages."""


class NotFoundError(UsageError):
    """No object has the requested name or id."""

    default_code = "not_found"


class ConflictError(UsageError):
    """The state of the object does not permit the request."""

    default_code = "conflict"


class MissingExtraError(UsageError):
    """An optional part of the installation is missing. `extra` names the part. The message has the install command."""

    default_code = "extra_missing"


class AnswerRefusedError(UsageError):
    """Some answers to a coached run were unreadable and were refused. The other answers of the call were accepted.

    Args:
        refused: The questions that stay open, each with the reason: [{`id`, `reason`}].
        status: The state of the run, in the same format as the result of a call.
    """

    default_code = "answer_refused"

    def __init__(self, message: str, refused: Sequence[Mapping[str, str]], status: dict[str, Any]) -> None:
        super().__init__(message, refused=[dict(entry) for entry in refused])
        self.status = status

    def beside(self) -> dict[str, Any]:
        """Return the state of the run."""
        return self.status


class TooLargeError(UsageError):
    """An input exceeds a limit. `limit` is the maximum."""

    default_code = "payload_too_large"


class WorldError(ReasonryError):
    """Something outside the program failed.

    Attributes:
        retry_after_s: How many seconds the failed service asked the caller to wait. None if the service did not say.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after_s = retry_after_s


class ModelError(WorldError):
    """A model could not answer. The code is `provider_error`, `provider_timeout`, `provider_auth` or a similar code."""

    default_code = "provider_error"


class ToolError(WorldError):
    """A tool failed."""

    default_code = "tool_error"


class SandboxError(WorldError):
    """Code could not be run safely, so it was not run."""

    default_code = "sandbox_unavailable"


class StoreError(WorldError):
    """A store failed. The code is `store_unavailable`, `store_busy`, `store_full`, `store_corrupt` or `store_newer`."""

    default_code = "store_unavailable"


class OverloadedError(WorldError):
    """The server is at its limit or shutting down. Nothing was started; retry later."""

    default_code = "overloaded"

    def __init__(self, message: str, *, retry_after_s: float = 1.0, **details: Any) -> None:
        super().__init__(message, retryable=True, retry_after_s=retry_after_s, **details)
