"""Writes pages: self-contained HTML files, each with a document and the script that draws the document.

A server shows the same drawing in its live page. The URLs of the live page's files contain a version, so that browsers
can cache the files forever.

The content security policy of a file allows only the file's own script and style, by their digests. Whatever the data
contains, no other script can run, and the page cannot reach any address. In the data, characters that could end the
HTML element are escaped. The script joins the modules in `assets`. Only the owner can read pages in the default folder.
"""

import base64
import contextlib
import hashlib
import html
import os
import posixpath
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...errors import UsageError
from ...text import escape_json, escape_unseen
from .page import PageDocument

_MARK = re.compile(r"@@(\w+)@@")
"""A placeholder in a template."""
_LINK = re.compile(r'^(?:import \{[^}]*\} from "(\.[^"]+)";\n|export )', re.MULTILINE)
"""Matches an import statement, with the imported module as a group, or the word that marks an export."""
_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}

KEPT_S = 24 * 60 * 60
"""Seconds to keep a page in the default folder. The next write removes older pages."""


@cache
def asset_texts() -> Mapping[str, str]:
    """Return the text of each text file in the folder `assets`, by path."""
    folder = resources.files("reasonry.surfaces.web").joinpath("assets")
    parts = (("", folder), ("live/", folder.joinpath("live")))
    font = base64.b64encode(folder.joinpath("inter.woff2").read_bytes()).decode()
    return {
        prefix + entry.name: entry.read_text(encoding="utf-8").replace("@@font@@", font)
        for prefix, part in parts
        for entry in sorted(part.iterdir(), key=lambda entry: entry.name)
        if entry.is_file() and not entry.name.endswith(".woff2")
    }


def one_script(first: str) -> str:
    """Join a JavaScript module and all modules that it needs into one script. Imported modules come first.

    No two modules define the same top-level name, so that all modules can share one scope. A test checks this.
    """
    texts = asset_texts()
    joined: dict[str, str] = {}

    def add(path: str) -> None:
        for imported in filter(None, _LINK.findall(texts[path])):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), imported))
            if target not in joined:
                add(target)
        joined[path] = _LINK.sub("", texts[path])

    add(first)
    return "\n".join(joined.values())


def html_page(page: PageDocument | Mapping[str, Any] | None) -> str:
    """Return the text of the HTML file that shows a page.

    Args:
        page: A page, or the document of a comparison. With None, the HTML file waits for its host to send a document.
    """
    title = page.title if isinstance(page, PageDocument) else f"Comparison: {page['dataset']}" if page else ""
    title = html.escape(escape_unseen(f"{title} · Reasonry")) if title else "Reasonry"
    parts = {**_parts(), "title": title, "document": embedded_json(page)}
    return _MARK.sub(lambda mark: parts[mark[1]], asset_texts()["page.html"])


def embedded_json(document: object) -> str:
    """Return a document as JSON that is safe inside an HTML element."""
    text = escape_json(msgspec.json.encode(document).decode())
    for character, escape in _MARKUP.items():
        text = text.replace(character, escape)
    return text


@cache
def _parts() -> Mapping[str, str]:
    texts = asset_texts()
    style = "\n".join(texts[name] for name in texts if name.endswith(".css") and "/" not in name)
    script = one_script("main.js")
    sources = f"script-src {_digest(script)}; style-src {_digest(style)}; font-src data:; img-src data:"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    return {"style": style, "script": script, "policy": policy}


def _digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


# -- the page that a server shows


class LivePage(NamedTuple):
    """The live page: the web page that a server shows, its version, and the files that it loads.

    Attributes:
        files: Maps the name of each file to its text. The server serves a file at `assets/VERSION/NAME`.
    """

    document: str
    version: str
    files: Mapping[str, str]


@cache
def live_page() -> LivePage:
    """Return the live page without any data. Its scripts load runs and sessions from the server later."""
    files = {name: text for name, text in asset_texts().items() if name.endswith((".js", ".css"))}
    del files["main.js"]  # Only the pages that are written as files start with this script.
    version = hashlib.sha256("\0".join(files.values()).encode()).hexdigest()[:12]
    parts = {
        "version": version,
        "styles": _links("stylesheet", version, [name for name in files if name.endswith(".css")]),
        "modules": _links("modulepreload", version, [name for name in files if name.endswith(".js")]),
    }
    document = _MARK.sub(lambda mark: parts[mark[1]], asset_texts()["live/index.html"])
    return LivePage(document, version, files)


def _links(relation: str, version: str, names: list[str]) -> str:
    return "\n".join(f'<link rel="{relation}" href="assets/{version}/{name}">' for name in names)


# -- as files


def page_folder(environ: Mapping[str, str]) -> Path:
    """Return the default folder for pages: the folder that `REASONRY_PAGES` names, or one in the user's cache."""
    if named := environ.get("REASONRY_PAGES"):
        return Path(named)
    import platformdirs

    return platformdirs.user_cache_path("reasonry", appauthor=False) / "pages"


def write_page(page: PageDocument | Mapping[str, Any], folder: Path) -> Path:
    """Write a page to a file in `folder`, or raise UsageError. Return the file's path. Remove pages over a day old."""
    stem = f"{page.kind}-{page.id}" if isinstance(page, PageDocument) else page["id"]
    path = folder / f"{stem}.html"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for pattern in ("run-*.html", "session-*.html", "comparison-*.html", ".page-*.tmp"):
            for entry in folder.glob(pattern):
                with contextlib.suppress(OSError):
                    if entry.lstat().st_mtime < time.time() - KEPT_S:
                        entry.unlink()
        descriptor, name = tempfile.mkstemp(prefix=".page-", suffix=".tmp", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(html_page(page))
        os.replace(name, path)
    except OSError as error:
        message = f"the page cannot be written to {folder}: {error.strerror}; name a file with --output"
        raise UsageError(message, path=str(folder)) from None
    return path.absolute()


def can_show(environ: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether a graphical browser is available. A text browser does not count: it would occupy the terminal."""
    if environ.get("BROWSER"):
        return True
    if platform in ("win32", "darwin"):
        return not environ.get("SSH_CONNECTION")
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))
