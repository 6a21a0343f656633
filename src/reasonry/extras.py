"""The optional parts of an installation, and the error for a missing part."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .errors import MissingExtraError

EXTRAS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("models of Anthropic", "pydantic_ai anthropic"),
    "documents": ("PDF files as documents", "pypdf"),
    "google": ("models of Google", "pydantic_ai google.genai"),
    "gym": ("problems of reasoning-gym for compare", "reasoning_gym"),
    "logic": ("claims checked with Z3", "z3"),
    "mcp": ("tools of other MCP servers, and MCP over HTTP", "mcp"),
    "providers": ("models of other providers", "pydantic_ai"),
    "sandbox": ("code in the Monty sandbox", "pydantic_monty"),
    "server": (
        "the page, the API and stores in PostgreSQL",
        "starlette uvicorn httptools sse_starlette prometheus_client mcp procrastinate psycopg",
    ),
    "telemetry": ("traces for OpenTelemetry", "opentelemetry.distro"),
}
"""The extras of the package: their purposes, and the modules that show that an extra is installed."""


def has_extra(extra: str) -> bool:
    """Whether an optional part is installed. Does not import it."""
    try:
        return all(importlib.util.find_spec(module) is not None for module in EXTRAS[extra][1].split())
    except ImportError:
        return False


def install_hint(extra: str) -> str:
    """Return the command that adds an optional part to this kind of installation."""
    origin = read_origin()
    if origin.get("dir_info", {}).get("editable"):
        return f"uv sync --inexact --extra {extra}"
    source = unquote(urlsplit(origin.get("url", "")).path) or "reasonry"
    is_tool = Path(sys.prefix).parts[-3:-1] == ("uv", "tools")
    return f"{'uv tool install --force' if is_tool else 'pip install'} '{source}[{extra}]'"


def read_origin() -> dict[str, Any]:
    """Return the origin of the installation from `direct_url.json`; empty without that file."""
    try:
        return json.loads(metadata.distribution("reasonry").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return {}


def check_extra(extra: str, purpose: str) -> None:
    """Check that an optional part is installed.

    Args:
        purpose: The feature that needs it, for the beginning of the message.

    Raises:
        MissingExtraError: The part is not installed.
    """
    if not has_extra(extra):
        message = f"{purpose} needs a part that is not installed: {install_hint(extra)}"
        raise MissingExtraError(message, extra=extra)
