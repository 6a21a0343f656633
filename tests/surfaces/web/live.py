"""A window of a browser on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Live:
    """A window on a server; what a page must not do is kept in `troubles`."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.troubles: list[str] = []
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", self._hear)
        page.on("request", lambda sent: sent.url.startswith(url) or self.troubles.append(sent.url))

    def _hear(self, said: Any) -> None:
        # The browser itself tells of each status of 400 and above, and of a server that is not there.
        if not said.text.startswith("Failed to load resource"):
            self.troubles.append(f"{said.type}: {said.text}")

    def open(self, address: str = "#/") -> Page:
        """Go to an address, as somebody does who has the page open."""
        if self.page.url.startswith(self.url):
            self.page.evaluate("(address) => (location.hash = address)", address)
        else:
            self.page.goto(f"{self.url}/{address}")
        return self.page
