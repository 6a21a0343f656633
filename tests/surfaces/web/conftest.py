"""The page in a real browser: the system's Chromium, without any network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reasonry.surfaces.web.html_page import embedded_json, html_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# The shell without windows takes two thirds of the processor time of the others.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)


class Shown:
    """One window for a whole module: a document after the other is opened in it."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.path = path
        self.noisy = False
        self.opened = 0
        self.troubles: list[str] = []
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", lambda said: self.noisy or self.troubles.append(f"{said.type}: {said.text}"))
        page.on("request", lambda sent: sent.url.startswith(path.as_uri()) or self.troubles.append(sent.url))

    def __call__(
        self,
        document: Any,
        at: str = "",
        size: tuple[int, int] = (1440, 900),
        theme: Any = "light",
        noisy: bool = False,
    ) -> Page:
        """Opens a document as a file, as a reader does."""
        self.noisy = noisy
        # A page without its document, and the document put in: those of the tests need not be complete.
        marks = '<script type="application/json" id="page-data">'
        text = html_page(None).replace(f"{marks}null<", f"{marks}{embedded_json(document)}<")
        return self.open_file(text, at, size, theme)

    def open_file(
        self, text: str, at: str = "", size: tuple[int, int] = (1440, 900), theme: Any = "light"
    ) -> Page:
        self.path.write_text(text, "utf-8", newline="\n")
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.page.emulate_media(color_scheme=theme, media="screen")
        # Else another `#…` of the same file would not be read again.
        self.opened += 1
        self.page.goto(f"{self.path.as_uri()}?{self.opened}{at}")
        return self.page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module: while it is there, no other event loop runs in this process."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        # A process that imitates a graphics card draws what nobody looks at, for a third of the browser's time.
        flags = ["--no-sandbox", "--disable-gpu", "--in-process-gpu", "--no-zygote"]
        browser = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def window(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    page = browser.new_page()
    yield Shown(page, tmp_path_factory.mktemp("page") / "page.html")
    page.close()


@pytest.fixture
def show(window: Shown) -> Iterator[Shown]:
    """The window; an error, a word on the console or a request of the page fails the test."""
    window.troubles.clear()
    yield window
    assert window.troubles == []
