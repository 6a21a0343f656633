"""Which proxy, if any, the environment names for a host."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from ..errors import ModelError
from ..masking import SECRETS

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Proxy(Struct, frozen=True):
    """An HTTP proxy that tunnels; `authorization` is a header's value, or empty."""

    host: str
    port: int
    authorization: str = ""

    @property
    def shown(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Its URL, without a password."""
        return f"http://{self.shown}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers that only the proxy receives."""
        return {"Proxy-Authorization": self.authorization} if self.authorization else {}


def proxy_for(host: str, tls: bool) -> Proxy | None:
    """Return the proxy that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` name; None for the loopback.

    Raises:
        ModelError: It is of a kind that is not supported.
    """
    if is_loopback(host) or proxy_bypass(host):
        return None
    named = getproxies()
    url = named.get("https" if tls else "http") or named.get("all")
    if not url:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise ModelError(
            f"proxies of the kind {parts.scheme}:// are not supported; set an http:// proxy, or NO_PROXY"
        )
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        packed = base64.b64encode(pair.encode()).decode("ascii")
        SECRETS.keep_password(url)
        SECRETS.keep(packed)
        authorization = f"Basic {packed}"
    return Proxy(parts.hostname, parts.port or 80, authorization)


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine."""
    return host.lower() in _LOOPBACK or host.startswith("127.")
