"""Modules as one script: a page fetches one file, and a file holds one.

What modules declare has a name of its own in the whole script, so that they can stand one behind the other.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def join_modules(first: str, files: Mapping[str, str]) -> str:
    """Return a module and all it imports as one, each after those it imports.

    Args:
        files: Texts by path; imports are relative to the path of the module they stand in.
    """
    joined: dict[str, str] = {}

    def add(path: str) -> None:
        if path in joined:
            return
        for imported in _IMPORT.findall(files[path]):
            add(posixpath.normpath(posixpath.join(posixpath.dirname(path), imported)))
        joined[path] = _EXPORT.sub("", _IMPORT.sub("", files[path]))

    add(first)
    return "\n".join(joined.values())
