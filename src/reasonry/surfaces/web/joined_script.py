"""Modules as one script: a page fetches one file, and a file holds one."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:const|(?:async )?function\*?|class) (\w+)", re.MULTILINE)
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
        folder = posixpath.dirname(path)

        def declare(imported: re.Match[str]) -> str:
            source = posixpath.normpath(posixpath.join(folder, imported[2]))
            add(source)
            return f"const {imported[1]} = {_name(source)};"

        text = _IMPORT.sub(declare, files[path])
        names = ", ".join(_EXPORTED.findall(text))
        text = _EXPORT.sub("", text)
        joined[path] = f"const {_name(path)} = (() => {{\n{text}return {{ {names} }};\n}})();"

    add(first)
    return "\n".join(joined.values())


def _name(path: str) -> str:
    return "$" + path.removesuffix(".js").replace("/", "_")
