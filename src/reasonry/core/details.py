"""Details: the strategy's own part of a result, one type for each strategy, in its table and file."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from msgspec import Meta


class Details(TypedDict, total=False):
    """What the details of any result may have."""

    diagnostics: Annotated[dict[str, Any], Meta(description="Why `auto` chose the strategy, and more.")]
    unchecked: Annotated[str, Meta(description="Why the answer is unchecked.")]


class AnswerDetails(Details):
    """What they have where an answer was settled."""

    verification: Annotated[str, Meta(description="`open`, `reviewed`, `doubted`, `unchecked` or `proved`.")]
    objections: Annotated[list[str], Meta(description="The faults of earlier answers.")]


class DraftsDetails(Details):
    """What they have where drafts were compared."""

    votes: Annotated[list[dict[str, Any]], Meta(description="`answer`, `count` and, if weighed, `weight`.")]
    samples: Annotated[
        list[dict[str, Any]], Meta(description="`id`, `number`, `answer`, `vote`, `dropped`, `inside`.")
    ]
    samples_used: Annotated[int, Meta(description="Drafts written.")]
