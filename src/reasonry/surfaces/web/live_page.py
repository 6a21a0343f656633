"""The files of the page that a server shows: the drawing of a single page, and the frame around it.

They lie under an address that names their version, so that a browser keeps each for as long as it is the one that is
served. What a browser has no use for is left out.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from .html_page import MARK
from .joined_script import join_modules
from .lean import lean_script, lean_style


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
    folder = resources.files("reasonry.surfaces.web").joinpath("assets")
    texts = {**_texts_in(folder), **_texts_in(folder.joinpath("live"), "live/")}
    styles = sorted(
        (name for name in texts if name.endswith(".css")), key=lambda name: (name.count("/"), name)
    )
    style = lean_style("\n".join(texts[name] for name in styles))
    script = lean_script(join_modules("live/main.js", texts))
    version = hashlib.sha256(f"{style}\0{script}".encode()).hexdigest()[:12]
    document = MARK.sub(version, texts["live/index.html"])
    return LivePage(
        _file(document, "html"),
        version,
        {"style.css": _file(style, "css"), "script.js": _file(script, "javascript")},
    )


def _texts_in(folder: Traversable, prefix: str = "") -> dict[str, str]:
    return {
        prefix + entry.name: entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.is_file()
    }


def _file(text: str, kind: str) -> PageFile:
    # The type is not guessed from the system's tables: those of some name scripts text/plain, which no browser runs.
    body = text.encode()
    return PageFile(body, gzip.compress(body, mtime=0), f"text/{kind}; charset=utf-8")
