"""What a thinker is told of a thought that was taken, though something in the call may not be as it was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..reading.arguments import unknown_arguments
from ..records import ThoughtRow
from .lines import ThoughtLine
from .thinking_tool import Notice, ThinkingCall, tool_schema


def call_notices(
    call: ThinkingCall,
    unknown: Sequence[str],
    line: ThoughtLine | None,
    numbered: Callable[[int], Sequence[ThoughtRow]],
) -> Iterator[Notice]:
    """Yield what is to be said.

    Args:
        unknown: The arguments of which nothing was made.
        line: Where the thought's line stood before it; None: it begins the session.
        numbered: Returns the earlier thoughts of the session that bear a number.
    """
    if not call.thought.strip() and not call.data:
        yield Notice("empty_thought", "The thought is empty; it was kept as it is.")
    known = tool_schema(ThinkingCall)["properties"]
    for sentence in unknown_arguments("sequentialthinking", unknown, known):
        yield Notice("unknown_argument", f"{sentence} It was not kept; a stage's fields go into data.")
    if line is not None:
        yield from _number_notices(call, line, numbered)


def _number_notices(
    call: ThinkingCall, line: ThoughtLine, numbered: Callable[[int], Sequence[ThoughtRow]]
) -> Iterator[Notice]:
    number = call.thought_number
    if number == line.number:
        if not call.is_revision and call.revises_thought is None:
            message = f"This line has a thought {number} already; both are kept. The next is {number + 1}."
            yield Notice("number_repeated", message)
    elif number > 1 and number - 1 != line.number and not numbered(number - 1):
        message = f"Taken as thought {number}, though no thought here has number {number - 1}."
        yield Notice("number_gap", f"{message} The latest on this line is {line.number}.")
