"""How an agent starts this very installation: agents have another PATH and another current folder."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import Struct

from ...extras import EXTRAS, has_extra
from .agents import NAME, EntryShape

_UV_PARTS = {"archive-v0", "environments-v2", "builds-v0"}
"""Folders of uv's cache in which the environments of `uvx` live until the cache is cleaned."""


class Launch(Struct, frozen=True):
    """A command, its arguments, and what its environment has besides the agent's."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}

    def entry(self, shape: EntryShape, name: str) -> dict[str, Any]:
        """Return it as an agent writes it down."""
        entry: dict[str, Any] = {
            key: name if value == "{name}" else value for key, value in shape.fixed.items()
        }
        if shape.args:
            entry |= {shape.command: self.command, shape.args: list(self.args)}
        else:
            entry[shape.command] = [self.command, *self.args]
        if self.env:
            entry[shape.env] = dict(self.env)
        return entry


def read_launch(entry: Any, shape: EntryShape) -> Launch | None:
    """Return how an entry of an agent's file starts its server; None where it is none that starts one."""
    if not isinstance(entry, dict):
        return None
    found: Any = entry.get(shape.command)
    words: list[Any] = found if isinstance(found, list) else [found]
    if shape.args:
        words = [found, *(entry.get(shape.args) or ())]
    env: Any = entry.get(shape.env) or {}
    if not words or not all(isinstance(word, str) for word in words) or not isinstance(env, dict):
        return None
    return Launch(words[0], tuple(words[1:]), {str(key): str(value) for key, value in env.items()})


def starts_reasonry(launch: Launch) -> bool:
    """Whether a command, or a word after it, is Reasonry."""
    words = (launch.command, *launch.args)
    return any(
        path(word).stem == NAME or word.startswith("reasonry.")
        for word in words
        for path in (PurePosixPath, PureWindowsPath)
    )


def this_installation() -> Launch:
    """Return what starts the MCP server of the installation that is running."""
    prefix = Path(sys.prefix)
    suffix = ".exe" if os.name == "nt" else ""
    uvx = _find_uvx(suffix) if _UV_PARTS & set(prefix.parts) else None
    if uvx is not None:
        return Launch(uvx, (*_uvx_source(), "reasonry", "mcp"))
    script = Path(sysconfig.get_path("scripts")) / f"reasonry{suffix}"
    if not script.is_file():
        return Launch(str(Path(sys.executable).absolute()), ("-m", "reasonry", "mcp"))
    on_path = shutil.which("reasonry")
    if on_path and Path(on_path).resolve() == script.resolve():
        # A link of a tool installer outlives the environment it leads to.
        script = Path(on_path)
    return Launch(str(script.absolute()), ("mcp",))


def _find_uvx(suffix: str) -> str | None:
    """Return the path of `uvx`: beside the `uv` that has started this, or on PATH."""
    uv = os.environ.get("UV")
    if uv and (beside := Path(uv).with_name(f"uvx{suffix}")).is_file():
        return str(beside.absolute())
    found = shutil.which("uvx")
    return str(Path(found).absolute()) if found else None


def _uvx_source() -> Sequence[str]:
    """Return what `uvx` has to be given where more than the package from the index is wanted."""
    extras = [name for name in EXTRAS if has_extra(name)]
    package = f"reasonry[{','.join(extras)}]" if extras else "reasonry"
    text = metadata.distribution("reasonry").read_text("direct_url.json")
    if text is None:
        return ("--from", package) if extras else ()
    origin = json.loads(text)
    url = str(origin["url"])
    vcs = origin.get("vcs_info")
    if vcs:
        revision = vcs.get("requested_revision")
        url = f"{vcs['vcs']}+{url}" + (f"@{revision}" if revision else "")
    return ("--from", f"{package} @ {url}" if extras else url)


def server_options(
    store: str | None, model: str | None, models: Sequence[str], folder: Path
) -> tuple[str, ...]:
    """Return the options of `reasonry mcp` that an entry passes on; a path is made one that holds in every folder.

    Raises:
        UsageError: There is no such store, or a model cannot be what it is listed as.
    """
    from ...app.allow_list import AllowList
    from ...stores import open_store

    open_store(store)
    AllowList.from_environ({"REASONRY_MODEL": model or "", "REASONRY_MODELS": ",".join(models)})
    options: list[str] = []
    if store is not None:
        is_path = store != "memory" and "://" not in store
        path = folder / Path(store.removeprefix("sqlite:")).expanduser()
        options += ["--store", str(path) if is_path else store]
    if model is not None:
        options += ["--model", model]
    for spec in models:
        options += ["--models", spec]
    return tuple(options)
