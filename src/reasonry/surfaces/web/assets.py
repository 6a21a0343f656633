"""The files that draw a page, as they are written; a page that is one file has its modules one behind the other."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

MARK = re.compile(r"@@(\w+)@@")
"""What a template leaves open."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@cache
def asset_texts() -> Mapping[str, str]:
    """Return all files, by their paths in `assets`; those in `live` are the frame that a server shows."""
    folder = resources.files("reasonry.surfaces.web").joinpath("assets")
    parts = (("", folder), ("live/", folder.joinpath("live")))
    return {
        prefix + entry.name: entry.read_text(encoding="utf-8")
        for prefix, part in parts
        for entry in sorted(part.iterdir(), key=lambda entry: entry.name)
        if entry.is_file()
    }


def one_script(first: str) -> str:
    """Return a module and all it imports as one, each after those it imports.

    No two modules declare the same name at their top, so that they can stand in one scope; a test sees to it.
    """
    texts = asset_texts()
    joined: dict[str, str] = {}

    def add(path: str) -> None:
        for imported in _IMPORT.findall(texts[path]):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), imported))
            if target not in joined:
                add(target)
        joined[path] = _EXPORT.sub("", _IMPORT.sub("", texts[path]))

    add(first)
    return "\n".join(joined.values())
