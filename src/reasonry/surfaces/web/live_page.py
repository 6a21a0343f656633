"""The files of the page that a server shows: the drawing of a single page, and the frame around it.

They lie under an address that names their version, so that a browser keeps each for as long as it is the one that is
served. What a browser has no use for is left out.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from .html_page import MARK
from .lean import lean_script, lean_style

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";$', re.MULTILINE)
_FIRST = "live/main.js"
_STYLE = "style.css"


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
    loaded = {name: lean_script(texts[name]) for name in _modules_from(_FIRST, texts)}
    styles = sorted(
        (name for name in texts if name.endswith(".css")), key=lambda name: (name.count("/"), name)
    )
    loaded[_STYLE] = lean_style("\n".join(texts[name] for name in styles))
    version = hashlib.sha256("\0".join(f"{name}\0{loaded[name]}" for name in loaded).encode()).hexdigest()[
        :12
    ]
    # Named at once, the modules are fetched side by side, however deep one imports the other.
    links = [
        f'<link rel="modulepreload" href="assets/{version}/{name}">' for name in loaded if name != _STYLE
    ]
    script = f'<script type="module" src="assets/{version}/{_FIRST}"></script>'
    parts = {"version": version, "modules": "\n".join([*links, script])}
    document = MARK.sub(lambda mark: parts[mark[1]], texts["live/index.html"])
    return LivePage(
        _file(document, "html"),
        version,
        {name: _file(text, "css" if name == _STYLE else "javascript") for name, text in loaded.items()},
    )


def _texts_in(folder: Traversable, prefix: str = "") -> dict[str, str]:
    return {
        prefix + entry.name: entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.is_file()
    }


def _modules_from(first: str, texts: Mapping[str, str]) -> list[str]:
    """Return the names of a module and all it imports."""
    found: dict[str, None] = {first: None}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        room = name.rpartition("/")[0]
        for imported in _IMPORT.findall(texts[name]):
            in_room = imported.removeprefix("./").removeprefix("../")
            named = f"{room}/{in_room}" if imported.startswith("./") and room else in_room
            if named not in found:
                found[named] = None
                waiting.append(named)
    return [*found]


def _file(text: str, kind: str) -> PageFile:
    # The type is not guessed from the system's tables: those of some name scripts text/plain, which no browser runs.
    body = text.encode()
    return PageFile(body, gzip.compress(body, mtime=0), f"text/{kind}; charset=utf-8")
