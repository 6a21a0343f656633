"""Comparisons in progress."""

from typing import Any, TypedDict

from starlette.responses import Response

from ...compare.trial_table import read_comparison
from .context import RequestContext
from .documents import reply
from .operations import Operation


class ComparisonDocument(TypedDict):
    """The current state of a comparison: the output of `compare --json`, with active runs."""

    id: str
    dataset: str
    complete: bool
    items: list[dict[str, Any]]
    strategies: list[dict[str, Any]]
    findings: list[str]
    trials: list[dict[str, Any]]
    running: list[dict[str, Any]]


async def show_comparison(context: RequestContext, comparison_id: str) -> Response:
    """Return the current table of a comparison."""
    return reply(await read_comparison(context.app, comparison_id))


OPERATIONS = (Operation("GET", "/api/comparisons/{comparison_id}", show_comparison, ComparisonDocument),)
