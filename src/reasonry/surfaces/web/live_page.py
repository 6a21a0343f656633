"""The files of the page that a server shows: the drawing of a single page, and the frame around it.

They lie under an address that names their version, so that a browser keeps each for as long as it is the one that is
served.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from .assets import MARK, asset_texts


class PageFile(NamedTuple):
    """A file of the page, and the same packed by gzip."""

    body: bytes
    packed: bytes
    media_type: str


class LivePage(NamedTuple):
    """The page and what it loads.

    Attributes:
        files: By name, as in `assets/VERSION/NAME`.
    """

    document: PageFile
    version: str
    files: Mapping[str, PageFile]


@cache
def live_page() -> LivePage:
    """Return the page."""
    texts = {name: text for name, text in asset_texts().items() if name.endswith((".js", ".css"))}
    del texts["main.js"]  # Where a page that is a file begins.
    version = hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:12]
    parts = {
        "version": version,
        "styles": _links("stylesheet", version, [name for name in texts if name.endswith(".css")]),
        "modules": _links("modulepreload", version, [name for name in texts if name.endswith(".js")]),
    }
    files = {
        name: _file(text, "css" if name.endswith(".css") else "javascript") for name, text in texts.items()
    }
    document = MARK.sub(lambda mark: parts[mark[1]], asset_texts()["live/index.html"])
    return LivePage(_file(document, "html"), version, files)


def _links(relation: str, version: str, names: list[str]) -> str:
    return "\n".join(f'<link rel="{relation}" href="assets/{version}/{name}">' for name in names)


def _file(text: str, kind: str) -> PageFile:
    # The type is not guessed from the system's tables: those of some name scripts text/plain, which no browser runs.
    body = text.encode()
    return PageFile(body, gzip.compress(body, mtime=0), f"text/{kind}; charset=utf-8")
