"""Who may come in: whom a request is for and from, as browsers tell it, and whose it is.

Rule 1: `Host` names this server, in the form of a host, or nothing is answered. With rule 2 it is the defence against
        pages of other sites and DNS rebinding.
Rule 2: a request that a browser sends for a page has that page's `Origin`, which must be this server's own.
Rule 3: what needs no token is listed here; every other address does, whether it is there or not.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping

from ...errors import ReasonryError, UsageError
from .settings import OPERATOR, ServerSettings, is_loopback

OPEN_PATHS = frozenset({"/", "/healthz"})
"""What is answered without a token, besides the page's own files."""
OPEN_FOLDER = "/assets/"

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,253}[a-z0-9_])?\.?)(?::[0-9]{1,5})?")
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_OWN_SITES = frozenset({"same-origin", "none"})
_CROSSED = (
    "requests of pages of other sites are not answered; have that site's own server send them, with a token"
)


def check_host(host: str | None, settings: ServerSettings) -> None:
    """Make sure that a request is meant for this server.

    Raises:
        UsageError: `Host` is missing or not in the form of a host; `misdirected_host`: it is another's.
    """
    match = _HOST.fullmatch(host.lower()) if host else None
    if match is None:
        raise UsageError("the header Host is missing or malformed", field="Host")
    name = match[1].rstrip(".")
    if name in _OWN_NAMES or name in settings.allowed_hosts:
        return
    if not settings.allowed_hosts and not is_loopback(settings.host):
        # Every request needs a token, which pages of others do not have; which names the machine has is not known.
        return
    raise UsageError(
        "this server is not called so; its operator can allow the name (REASONRY_ALLOWED_HOSTS)",
        code="misdirected_host",
    )


def check_origin(headers: Mapping[str, str]) -> None:
    """Make sure that no page of another site sent a request.

    Raises:
        ReasonryError: `forbidden_origin`.
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is not None:
        scheme, _, place = origin.lower().partition("://")
        if scheme not in ("http", "https") or place != host.lower():
            raise ReasonryError(_CROSSED, code="forbidden_origin")
    elif headers.get("sec-fetch-site", "none") not in _OWN_SITES and not _opens_page(headers):
        raise ReasonryError(_CROSSED, code="forbidden_origin")


def _opens_page(headers: Mapping[str, str]) -> bool:
    """Whether a person follows a link that is on another page."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def is_open(path: str) -> bool:
    """Whether an address is answered without a token."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def find_principal(tokens: Mapping[bytes, str], path: str, authorization: str | None) -> str:
    """Return whose request it is.

    Args:
        tokens: Principals by the digest of their token.
        authorization: The header of this name.

    Raises:
        UsageError: `unauthorized`: tokens are set, and the request has none of them.
    """
    if not tokens or is_open(path):
        return OPERATOR
    scheme, _, token = (authorization or "").partition(" ")
    digest = hashlib.sha256(token.strip(" ").encode("latin-1", "replace")).digest()
    found: str | None = None
    for known, principal in tokens.items():
        # All are compared, so that how long it takes tells nothing.
        if hmac.compare_digest(known, digest):
            found = principal
    if found is None or scheme.lower() != "bearer":
        reason = "this server does not know the token that was sent" if token else "a token is needed"
        raise UsageError(f"{reason}: send the header Authorization: Bearer TOKEN", code="unauthorized")
    return found
