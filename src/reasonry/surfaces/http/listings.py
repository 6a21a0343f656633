"""HTTP operations that list the names a run may use, report the usage of runs, and show the state of the server.

The names belong to strategies, models, verifiers, tools and documents. The state is the health, jobs and metrics.
"""

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta, Struct
from starlette.responses import Response

from ...app.allow_list import AllowList
from ...app.composition import read_composition
from ...app.strategy_table import describe, diagram
from ...core.registry import Registry, resolve, strategies_at_hand
from ...errors import NotFoundError, UsageError
from ...records import DAY_MS, QueueStatus, UsageGroup, UsageTotal, now_ms
from ...strategies.choice import AUTO
from .context import RequestContext
from .documents import reply
from .operations import Operation


class StrategyHeadDocument(TypedDict):
    """A strategy, with its options."""

    name: str
    title: str
    source: str
    summary: str
    aliases: list[str]
    driven: bool
    calls: int
    """How many model calls a typical run makes."""
    options: list[dict[str, Any]]


class StrategyDocument(StrategyHeadDocument):
    """A strategy, with its stages and their diagram in Mermaid."""

    stages: list[dict[str, Any]]
    diagram: str


class StrategyListDocument(TypedDict):
    """All strategies."""

    strategies: list[StrategyHeadDocument]


class ListedNamesDocument(TypedDict):
    """The names that a run may use. Only the operator knows the model behind a `name`."""

    models: list[dict[str, str]]
    default: str | None
    verifiers: list[str]
    tools: list[str]
    documents: list[str]


class UsageReportDocument(TypedDict):
    """The usage of runs, in total and by strategy, model or outcome."""

    since_ms: int
    total: UsageTotal
    by: str
    groups: list[UsageTotal]


class UsageQuery(Struct, frozen=True):
    """The query parameters of a usage report: how many days to report, and how to group the usage."""

    by: UsageGroup = "strategy"
    days: Annotated[int, Meta(ge=1, le=366)] = 30


async def list_strategies(context: RequestContext) -> Response:
    """List the strategies, with their options."""
    described, shown = map(describe, context.app.strategies.values()), StrategyHeadDocument.__annotations__
    return reply({"strategies": [{name: entry[name] for name in shown} for entry in described]})


async def read_strategy(context: RequestContext, name: str) -> Response:
    """Return a strategy: its stages, the allowed steps from stage to stage, and its options."""
    try:
        strategy = context.app.strategy(name)
    except UsageError as error:
        raise NotFoundError(error.message, **error.details) from None
    return reply({**describe(strategy), "diagram": diagram(strategy)})


async def list_names(context: RequestContext) -> Response:
    """List the models, verifiers, tools and documents that a run may name."""
    allowed = context.app.rights.allowed
    names = {spec: name for name, spec in allowed.models.items()}
    document: ListedNamesDocument = {
        "models": [{"name": name} for name in allowed.model_names],
        "default": names.get(allowed.default_model or ""),
        "verifiers": list(allowed.verifiers),
        "tools": list(allowed.tools),
        "documents": list(allowed.documents),
    }
    return reply(document)


async def read_usage(context: RequestContext, query: UsageQuery) -> Response:
    """Return the usage of runs in the last `days` days, including today. A day begins at midnight UTC."""
    store, since_ms = context.app.store, (now_ms() // DAY_MS - query.days + 1) * DAY_MS
    total, groups = await store.usage_since(since_ms), await store.usage_by(query.by, since_ms)
    return reply({"since_ms": since_ms, "total": total, "by": query.by, "groups": groups})


# -- strategies as models, for OpenAI's clients


class ModelDocument(TypedDict):
    """A name that a request may give as its `model`."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelListDocument(TypedDict):
    """All models."""

    object: Literal["list"]
    data: list[ModelDocument]


def _driven(registry: Registry) -> list[str]:
    return [AUTO, *(each.name for each in strategies_at_hand(registry).values() if each.is_driven)]


def model_ids(strategies: Registry, allowed: AllowList) -> list[str]:
    """Return the names that a request may give as its model: each `STRATEGY`, then each `STRATEGY@MODEL`.

    `STRATEGY` uses the default model. A request may also name that model, or `offline`, which solves some puzzles.
    """
    names, by_spec = _driven(strategies), dict[str, str]()
    for model, spec in allowed.models.items():
        by_spec.setdefault(spec, model)
    by_spec.pop(allowed.default_model or "", None)
    return [*names, *(f"{name}@{model}" for model in by_spec.values() for name in names)]


def read_name(name: str, strategies: Registry, allowed: AllowList) -> tuple[str, str | None]:
    """Split `STRATEGY` or `STRATEGY@MODEL` into its parts. Without `@MODEL`, the model is None (the default model).

    Raises:
        NotFoundError: The strategy is unknown or is only for agents, or the model is not listed (`model_not_found`).
    """
    strategy, at, model = (part.strip() for part in name.partition("@"))
    try:
        if strategy.lower() != AUTO and not resolve(read_composition(strategy).name, strategies).is_driven:
            raise UsageError(f"{strategy} is for thinking by hand alone.", choices=_driven(strategies))
        if at:
            allowed.model(model)
    except UsageError as error:
        message = f"{error.message.rstrip('.')}. A model is named STRATEGY@MODEL."
        choices = error.details.get("choices")
        raise NotFoundError(message, code="model_not_found", field="model", choices=choices) from None
    return strategy, model if at else None


async def list_models(context: RequestContext) -> Response:
    """List the model names: `STRATEGY` for the default model, and `STRATEGY@MODEL` for every other listed model."""
    names = model_ids(context.app.strategies, context.app.rights.allowed)
    return reply({"object": "list", "data": [_model_document(name) for name in names]})


async def read_model(context: RequestContext, name: str) -> Response:
    """Return one model by its name."""
    read_name(name, context.app.strategies, context.app.rights.allowed)
    return reply(_model_document(name))


def _model_document(name: str) -> ModelDocument:
    return {"id": name, "object": "model", "created": 0, "owned_by": "reasonry"}


# -- the server itself


class HealthDocument(TypedDict):
    """The health of the server and its store."""

    status: Literal["ok"]


async def check_health(context: RequestContext) -> Response:
    """Check that the server and its store answer."""
    context.wiring.health.writes.check()
    return reply({"status": "ok"})


async def read_queue(context: RequestContext) -> Response:
    """Return how many jobs of all owners wait, how long the oldest has waited, and how many workers drive jobs."""
    return reply(context.wiring.health.jobs)


async def read_metrics(context: RequestContext) -> Response:
    """Return the server's metrics in Prometheus' text format."""
    text, media_type = context.wiring.metrics.text()
    return Response(text, media_type=media_type)


OPERATIONS = (
    Operation("GET", "/api/strategies", list_strategies, StrategyListDocument),
    Operation("GET", "/api/strategies/{name}", read_strategy, StrategyDocument),
    Operation("GET", "/api/models", list_names, ListedNamesDocument),
    Operation("GET", "/api/usage", read_usage, UsageReportDocument),
)

MODELS = (
    Operation("GET", "/v1/models", list_models, ModelListDocument),
    Operation("GET", "/v1/models/{name:path}", read_model, ModelDocument),
)

HEALTH = (
    Operation("GET", "/healthz", check_health, HealthDocument),
    Operation("GET", "/api/queue", read_queue, QueueStatus),
    Operation("GET", "/metrics", read_metrics, media_type="text/plain"),
)
