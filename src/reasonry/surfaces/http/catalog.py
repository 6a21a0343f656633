"""What a request may name, and what was used.

Strategies, and the models, verifiers, tools and documents that the operator listed.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from ...core.describe import describe
from ...core.diagram import diagram
from ...records import UsageTotal
from .context import Context
from .documents import describe_reply, object_schema, reply

router = APIRouter(prefix="/api", tags=["catalog"])

_STRING, _OBJECTS = {"type": "string"}, {"type": "array", "items": {"type": "object"}}
_STRINGS = {"type": "array", "items": _STRING}
_LISTED = ("name", "title", "source", "summary", "aliases", "driven", "options")
_STRATEGY = object_schema(
    {
        "name": _STRING,
        "title": _STRING,
        "source": _STRING,
        "summary": _STRING,
        "aliases": _STRINGS,
        "options": _OBJECTS,
    }
)
_NAMED = object_schema({"name": _STRING})
_DAY_MS = 86_400_000
_TOTALS: dict[str, Any] = {
    "runs": {"type": "integer"},
    "calls": {"type": "integer"},
    "tokens": {"type": "integer"},
    "usd": {"type": "number"},
}


@router.get(
    "/strategies",
    responses={
        200: describe_reply(
            object_schema({"strategies": {"type": "array", "items": _STRATEGY}}), "All of them."
        )
    },
)
async def list_strategies(context: Context) -> Response:
    """List the strategies, with their options."""
    described = [describe(strategy) for strategy in context.app.strategies.values()]
    return reply({"strategies": [{name: entry[name] for name in _LISTED} for entry in described]})


@router.get(
    "/strategies/{name}",
    responses={200: describe_reply(_STRATEGY, "The strategy, with its stages and their diagram in Mermaid.")},
)
async def read_strategy(context: Context, name: str) -> Response:
    """Read a strategy: its stages, their edges and its options."""
    strategy = context.app.strategy(name)
    return reply({**describe(strategy), "diagram": diagram(strategy)})


@router.get(
    "/models",
    responses={
        200: describe_reply(
            object_schema(
                {"models": {"type": "array", "items": _NAMED}, "default": {"type": ["string", "null"]}},
                {"verifiers": _STRINGS, "tools": _STRINGS, "documents": _STRINGS},
            ),
            "Their names; what stands behind a name, the operator knows.",
        )
    },
)
async def list_models(context: Context) -> Response:
    """List the models, verifiers, tools and documents that a run may name."""
    allowed = context.access.allowed
    names = {spec: name for name, spec in allowed.models.items()}
    return reply(
        {
            "models": [{"name": name} for name in allowed.model_names],
            "default": names.get(allowed.default_model or ""),
            "verifiers": list(allowed.verifiers),
            "tools": list(allowed.tools),
            "documents": list(allowed.documents),
        }
    )


@router.get(
    "/usage",
    responses={
        200: describe_reply(
            object_schema(
                {
                    "since_ms": {"type": "integer"},
                    "total": object_schema(_TOTALS),
                    "by": _STRING,
                    "groups": {"type": "array", "items": object_schema({"group": _STRING, **_TOTALS})},
                    "usd_a_day": {"type": ["number", "null"]},
                    "usd_today": {"type": "number"},
                }
            ),
            "What the runs took, in all and by day, strategy or model, and the limit of a day.",
        )
    },
)
async def read_usage(
    context: Context,
    by: Literal["day", "strategy", "model"] = "day",
    days: Annotated[int, Query(ge=1, le=366)] = 30,
) -> Response:
    """Say what runs took in the last days, today included; days begin at midnight, UTC."""
    store, today = context.app.store, time.time_ns() // 1_000_000 // _DAY_MS * _DAY_MS
    since_ms = today - (days - 1) * _DAY_MS
    total, spent_today = await store.usage_since(since_ms), await store.usage_since(today)
    groups = [{"group": group.group, **_totals(group)} for group in await store.usage_by(by, since_ms)]
    return reply(
        {
            "since_ms": since_ms,
            "total": _totals(total),
            "by": by,
            "groups": groups,
            "usd_a_day": context.wiring.settings.usd_a_day_of(context.principal),
            "usd_today": spent_today.usd,
        }
    )


def _totals(total: UsageTotal) -> dict[str, Any]:
    return {name: getattr(total, name) for name in _TOTALS}
