"""Problems: text that can be stored, shown and sent."""

from __future__ import annotations

from ..errors import TooLargeError, UsageError

MAX_PROBLEM_CHARS = 100_000


def check_problem(problem: object) -> None:
    """Check that a problem can be stored, shown and sent.

    Raises:
        UsageError: It is no text, is empty, or holds NUL or half a character.
        TooLargeError: It is over the limit.
    """
    if not isinstance(problem, str):
        raise UsageError(f"the problem must be text, got {type(problem).__name__}")
    if not problem.strip():
        raise UsageError("the problem is empty; say what is to be solved")
    if len(problem) > MAX_PROBLEM_CHARS:
        raise TooLargeError(
            f"the problem has {len(problem):,} characters; the limit is {MAX_PROBLEM_CHARS:,}",
            limit=MAX_PROBLEM_CHARS,
        )
    if "\0" in problem:
        raise UsageError("the problem holds a NUL character; remove it")
    if any("\ud800" <= char <= "\udfff" for char in problem):
        raise UsageError("the problem holds a lone surrogate, so it is not valid Unicode text")
