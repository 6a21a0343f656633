"""What an operator decides about the server."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from msgspec import Struct

from ...errors import UsageError

OPERATOR = ""
"""The principal of all requests where no tokens are set, and of what other surfaces do."""


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Settings of a server; the sizes are bounds on what one request may bring.

    Attributes:
        tokens: Principals by the SHA-256 of their token; none: whoever reaches the server is the operator.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Mapping[bytes, str] = {}
    max_body_bytes: int = 4 << 20

    def check(self) -> None:
        """Make sure that the server is safe to start.

        Raises:
            UsageError: Others could reach it, and there is no token.
        """
        if not (self.tokens or is_loopback(self.host)):
            raise UsageError(
                f"{self.host} can be reached from other machines, so tokens must be set: REASONRY_TOKENS or "
                "--tokens-file",
                option="host",
            )


def is_loopback(host: str) -> bool:
    """Whether a name or an address is of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
