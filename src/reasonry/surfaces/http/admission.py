"""Which requests are let in, decided before anything is read or begun for them.

In this order: whom it is for and from, and who asks (`access`), how often (`request_rates`), whether there is a
place for it, whether the store answers (`health`), whether there is a place for the run that it begins.

Rule: a request takes a place once its body has arrived, so that a slow client takes none from others. A request that
needs no token takes no place, and counts against nobody's rate.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator, Mapping
from typing import Any

from ...errors import OverloadedError, TooLargeError, UsageError, WorldError
from .access import check_host, check_origin, find_principal, is_open
from .context import PRINCIPAL, Wiring
from .documents import KEY
from .protocol import MAX_HEAD_BYTES
from .request_rates import RequestRates

NEEDS_STORE = ("/api/", "/v1/", "/mcp")
_BEGINS_RUN = frozenset({"/v1/chat/completions", "/v1/responses"})


class Admission:
    """Lets requests in, and counts those that are worked on."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring, self._settings = wiring, wiring.settings
        self._rates = RequestRates(self._settings.requests_per_minute)
        self._held = Counter[str]()
        """Places that each principal holds."""
        places = self._settings.max_in_flight
        self._most_of_one = max(1, places // 2) if len({*self._settings.tokens.values()}) > 1 else places

    def let_in(self, scope: Any) -> Mapping[str, str]:
        """Let a request in, and note whose it is.

        Returns:
            Its headers by name; of those that are there twice, the first.

        Raises:
            ReasonryError: It is turned away.
        """
        settings, path, headers = self._settings, scope["path"], _headers(scope)
        check_host(headers.get("host"), settings)
        check_origin(headers)
        scope[PRINCIPAL] = principal = find_principal(settings.tokens, path, headers.get("authorization"))
        if not is_open(path):
            self._rates.check(principal)
            self._rates.count(principal)
            self._check_place(principal)
        if path.startswith(NEEDS_STORE):
            self._wiring.health.check()
        if path in _BEGINS_RUN and scope["method"] == "POST" and KEY not in headers:
            # One with a key may have begun its run before.
            self._wiring.supervisor.check_room()
        return headers

    @contextlib.contextmanager
    def place(self, scope: Any) -> Generator[None]:
        """Hold a place for a request whose body has arrived, while it is worked on.

        Raises:
            ReasonryError: There is none.
        """
        principal = scope[PRINCIPAL]
        if is_open(scope["path"]):
            yield
            return
        self._check_place(principal)
        self._wiring.in_flight += 1
        self._held[principal] += 1
        try:
            yield
        finally:
            self._wiring.in_flight -= 1
            self._held[principal] -= 1

    def _check_place(self, principal: str) -> None:
        if self._wiring.in_flight >= self._settings.max_in_flight:
            raise OverloadedError(
                "the server is at work on as many requests as it takes", retryable=True, retry_after_s=1
            )
        if self._held[principal] >= self._most_of_one:
            raise WorldError(
                f"the server is at work on {self._most_of_one} of your requests, and takes no more at once",
                code="rate_limited",
                retryable=True,
                retry_after_s=1,
            )


def _headers(scope: Any) -> Mapping[str, str]:
    """Return the headers of a request by name.

    Raises:
        TooLargeError: They are too long.
        UsageError: There are two hosts.
    """
    headers: dict[str, str] = {}
    size = len(scope["path"])
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name == b"host" and "host" in headers:
            raise UsageError("the header Host is there twice", field="Host")
        headers.setdefault(name.decode("latin-1"), value.strip(b" \t").decode("latin-1"))
    if size > MAX_HEAD_BYTES:
        raise TooLargeError("the headers are too long", code="headers_too_large", limit=MAX_HEAD_BYTES)
    return headers
