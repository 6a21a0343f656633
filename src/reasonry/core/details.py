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

    votes: Annotated[list[dict[str, Any]], Meta(description="Each `answer` with its `count`.")]
    samples: Annotated[list[dict[str, Any]], Meta(description="`id`, `number`, `answer`, `vote`, `dropped`.")]
    samples_used: Annotated[int, Meta(description="Drafts written.")]


class ProveAndRefuteDetails(Details, total=False):
    """What the details of a result have: proofs if there are solvers, else claims."""

    proofs: Annotated[list[dict[str, Any]], Meta(description="`answer`, `verdict`, `votes`, `holes`, …")]
    revisions: Annotated[int, Meta(description="Revisions made.")]
    claims: Annotated[list[dict[str, Any]], Meta(description="`claim`, `verdict`, `reason`, …")]
    refutation_rate: Annotated[float, Meta(description="Share of the claims that were refuted.")]
    warning: Annotated[str, Meta(description="That every claim was refuted.")]
