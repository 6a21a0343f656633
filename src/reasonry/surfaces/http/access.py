"""Who may come in: tokens and their principals.

Rule: what needs no token is listed here; every other address does, whether it is there or not.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from ...errors import UsageError
from .settings import OPERATOR

OPEN_PATHS = frozenset({"/", "/healthz"})
"""What is answered without a token, besides the page's own files."""
OPEN_FOLDER = "/assets/"


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
