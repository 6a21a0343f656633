"""The page that a server shows: the drawing of a single page, and the frame around it.

Its files lie under an address that names their version, so that a browser keeps each for as long as it is the one that
is served.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from .html_page import MARK, asset_texts


class LivePage(NamedTuple):
    """The page and what it loads.

    Attributes:
        files: By name, as in `assets/VERSION/NAME`.
    """

    document: str
    version: str
    files: Mapping[str, str]


@cache
def live_page() -> LivePage:
    """Return the page."""
    files = {name: text for name, text in asset_texts().items() if name.endswith((".js", ".css"))}
    del files["main.js"]  # Where a page that is a file begins.
    version = hashlib.sha256("\0".join(files.values()).encode()).hexdigest()[:12]
    parts = {
        "version": version,
        "styles": _links("stylesheet", version, [name for name in files if name.endswith(".css")]),
        "modules": _links("modulepreload", version, [name for name in files if name.endswith(".js")]),
    }
    document = MARK.sub(lambda mark: parts[mark[1]], asset_texts()["live/index.html"])
    return LivePage(document, version, files)


def _links(relation: str, version: str, names: list[str]) -> str:
    return "\n".join(f'<link rel="{relation}" href="assets/{version}/{name}">' for name in names)
