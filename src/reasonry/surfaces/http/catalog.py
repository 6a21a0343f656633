"""What a request may name: strategies, and the models, verifiers, tools and documents that the operator listed."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...core.describe import describe
from ...core.diagram import diagram
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
