"""Finding an Ollama server on this machine, quickly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

PROBE_S = 0.2
DEFAULT_PORT = 11434
_MAX_LIST_BYTES = 1_000_000


def base_url(environ: Mapping[str, str]) -> str:
    """Return the base URL of the server that `OLLAMA_BASE_URL` or `OLLAMA_HOST` names, or the default one."""
    stated = environ.get("OLLAMA_BASE_URL", "").strip()
    if stated:
        return stated.rstrip("/")
    host = environ.get("OLLAMA_HOST", "").strip() or "127.0.0.1"
    parts = urlsplit(host if "://" in host else f"http://{host}")
    scheme = parts.scheme if parts.scheme == "https" else "http"
    name = parts.hostname or "127.0.0.1"
    # A server bound to all addresses is reached at the loopback one.
    name = "127.0.0.1" if name in ("0.0.0.0", "::") else f"[{name}]" if ":" in name else name
    return f"{scheme}://{name}:{parts.port or DEFAULT_PORT}/v1"


def installed_models(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the models a running server has, last used first; none if none runs."""
    # Loaded when it is used: no command of an agent that names its model asks here.
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    try:
        parts = urlsplit(base_url(environ))
        secure = parts.scheme == "https"
        kind = HTTPSConnection if secure else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=PROBE_S)
        try:
            connection.request("GET", parts.path.removesuffix("/v1") + "/api/tags")
            answer = connection.getresponse()
            document: Any = msgspec.json.decode(answer.read(_MAX_LIST_BYTES)) if answer.status == 200 else {}
        finally:
            connection.close()
        return [model["name"] for model in document["models"] if isinstance(model["name"], str)]
    except (OSError, ValueError, HTTPException, msgspec.MsgspecError, KeyError, TypeError):
        return []
