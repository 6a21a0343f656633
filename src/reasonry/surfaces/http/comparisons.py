"""Comparisons in progress: the table, and repeated runs of a problem."""

from typing import Annotated, Any, TypedDict

from msgspec import Meta, Struct
from starlette.responses import Response

from ...app.participants import Participants
from ...compare.datasets import DATASETS
from ...compare.trial_table import Repeat, TrialTable, read_comparison
from ...errors import NotFoundError
from ...records import JobOptions
from .context import RequestContext
from .documents import reply
from .operations import Operation


class ComparisonDocument(TypedDict):
    """The current state of a comparison: the output of `compare --json`, with active runs and repeats."""

    id: str
    dataset: str
    complete: bool
    items: list[dict[str, Any]]
    strategies: list[dict[str, Any]]
    findings: list[str]
    trials: list[dict[str, Any]]
    running: list[dict[str, Any]]
    repeats: list[dict[str, Any]]


class RunAgain(Struct, frozen=True, forbid_unknown_fields=True):
    """A problem for all strategies of a comparison to solve again."""

    item: Annotated[str, Meta(min_length=1, max_length=400)]
    times: Annotated[int, Meta(ge=1, le=20)] = 5


async def show_comparison(context: RequestContext, comparison_id: str) -> Response:
    """Return the current table of a comparison."""
    return reply(await read_comparison(context.app, comparison_id))


async def run_again(context: RequestContext, comparison_id: str, body: RunAgain) -> Response:
    """Start another run of each strategy on a problem. Their agreement shows how stable the answers are."""
    app, table = context.app, TrialTable(context.app.store, comparison_id)
    report, _ = await table.read()
    if body.item not in {str(item.id) for item in report.items}:
        raise NotFoundError(f"the comparison has no problem {body.item[:60]!r}")
    dataset = DATASETS.get(report.facts["dataset"])
    own_tools = dataset.tools if dataset else ()
    # The driver of a job has the tools that the operator listed, and no others.
    job = None if own_tools else JobOptions()
    for trial in [trial for trial in report.trials if trial.item == body.item]:
        source = await app.engine.recorded_run(trial.run_id)
        for _ in range(body.times):
            order, performers = await app.order_fork(source, Participants(tools=own_tools), {}, None)
            run_id, _ = await context.supervisor.start(app, order, performers, source.fork(0), job=job)
            await table.add(Repeat(body.item, trial.strategy, run_id))
    return reply(await read_comparison(app, comparison_id), 201)


_COMPARISON = "/api/comparisons/{comparison_id}"

OPERATIONS = (
    Operation("GET", _COMPARISON, show_comparison, ComparisonDocument),
    Operation("POST", f"{_COMPARISON}/again", run_again, ComparisonDocument, 201),
)
