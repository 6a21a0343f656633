"""One HTML file that holds a page document and all that draws it, and loads nothing.

The policy in the file names its script and its style by their digests: nothing else runs, whatever the data says, and
no address can be reached. The data is JSON in which no character can end its element.
"""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from typing import NamedTuple

import msgspec

from ...core.text import escaped_json
from .assets import MARK, asset_texts, one_script
from .page import PageDocument

_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class _Assets(NamedTuple):
    template: str
    style: str
    script: str
    policy: str


def html_page(page: PageDocument | None) -> str:
    """Return the file as text.

    Args:
        page: None: the page waits for its document from the host it is embedded in.
    """
    assets = _assets()
    parts = {
        "policy": assets.policy,
        "title": "Reasonry" if page is None else html.escape(f"{page.title} · Reasonry"),
        "style": assets.style,
        "document": embedded_json(page),
        "script": assets.script,
    }
    return MARK.sub(lambda mark: parts[mark[1]], assets.template)


def embedded_json(document: object) -> str:
    """Return a document as JSON that can stand inside an element of a page: no character of it is markup."""
    text = escaped_json(msgspec.json.encode(document).decode())
    for character, escape in _MARKUP.items():
        text = text.replace(character, escape)
    return text


@cache
def _assets() -> _Assets:
    texts = asset_texts()
    style = "\n".join(texts[name] for name in texts if name.endswith(".css") and "/" not in name)
    script = one_script("main.js")
    sources = f"script-src {_digest(script)}; style-src {_digest(style)}; img-src data:"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    return _Assets(texts["page.html"], style, script, policy)


def _digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
