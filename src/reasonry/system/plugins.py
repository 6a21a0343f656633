"""Optional packages: the extras of this package, and plugins.

Plugins are packages that add strategies, tools, verifiers and models. Entry points declare these parts of a package.

Rule 1: the search for plugins reads only the metadata of installed packages. A package's code runs only when a user
        names a part of the package or lists all plugins.
Rule 2: a part that fails to load is refused with the reason, and affects no other part.
Rule 3: a part's full name is `PACKAGE/NAME`: the distribution's normalized name and the entry point's name. Therefore,
        no package can replace a built-in part or another package's part.
"""

import contextlib
import importlib.util
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from ..errors import MissingExtraError, UsageError
from ..text import did_you_mean, find_name

T = TypeVar("T")

KINDS: Final = {"strategies": "strategy", "tools": "tool", "verifiers": "verifier", "models": "model"}
"""Maps the last part of each entry point group's name to the noun for an entry of the group."""

_LOG = logging.getLogger("reasonry")

MAX_REASON_CHARS: Final = 500

_PART = r"[A-Za-z0-9](?:[\w.-]{0,62}[A-Za-z0-9_])?"
_WHOLE: Final = re.compile(rf"({_PART}/{_PART})(:(.*))?", re.DOTALL)


class Plugins:
    """The plugins of installed packages, each loaded once at first use."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[str, str], tuple[Any, str]] = {}
        """Maps a kind and a name to the loaded part and an empty text or, if loading failed, to None and the reason."""
        self._lock = threading.RLock()

    @cached_property
    def _points(self) -> dict[tuple[str, str], metadata.EntryPoint]:
        """The entry points by kind and full name, sorted by name."""
        found = [(f"{package}/{point.name}", point) for package, point in _find_points()]
        found.sort(key=lambda entry: (entry[0], entry[1].group))
        return {(point.group.removeprefix("reasonry."), name): point for name, point in found}

    def describe(self) -> list[dict[str, str]]:
        """Return a row for each entry point, sorted by package and name. No plugin is loaded.

        Returns:
            [{`kind` (one of `KINDS`), `name` (`PACKAGE/NAME`), `package`, `version`, `place` (`MODULE:ATTRIBUTE`)}]
        """
        columns, rows = ("kind", "name", "package", "version", "place"), list[dict[str, str]]()
        for (kind, name), point in self._points.items():
            version = point.dist.version if point.dist is not None else ""
            row = (kind, name, name.partition("/")[0], version, point.value)
            rows.append(dict(zip(columns, row, strict=True)))
        return rows

    def names(self, kind: str) -> list[str]:
        """Return the full names of all plugins of a kind. Illegal names are left out."""
        return [name for each, name in self._points if each == kind and split_plugin(name) == (name, "")]

    def load(self, kind: str, name: str, read: Callable[[str, Any], T]) -> T:
        """Load a plugin by its kind and name.

        Args:
            read: Converts the full name and the loaded object to the result. If `read` raises, loading has failed.

        Raises:
            UsageError: The name is unknown (`choices` has the names), or loading failed (code `plugin_failed`).
        """
        key = (kind, self.whole_name(kind, name))
        if key not in self._points:
            raise self._unknown(*key)

        def load_named() -> T:
            if split_plugin(key[1]) != (key[1], ""):
                raise UsageError("its name may have letters, digits, `_`, `.` and `-`, at most 64")
            return read(key[1], self._points[key].load())

        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = _attempt(load_named)
        return _usable(*key, *self._loaded[key])

    def open(self, kind: str, spec: str, wrap: Callable[[Any], T]) -> T:
        """Load the plugin of a spec `PACKAGE/NAME:TEXT`, and call the plugin with `TEXT`. The errors are as in `load`.

        Args:
            wrap: Converts the plugin's object. The result gets the spec as its `name`. If `wrap` raises, opening fails.
        """
        name, text = split_plugin(spec) or (spec, "")
        opener = self.load(kind, name, read_opener)
        whole = self.whole_name(kind, name)

        def open_named() -> Any:
            opened: Any = wrap(opener(text))
            opened.name = f"{whole}:{text}" if text else whole
            return opened

        return _usable(kind, whole, *_attempt(open_named))

    def whole_name(self, kind: str, name: str) -> str:
        """Return the full name of the plugin that matches `name`. If none or several match, return `name` itself."""
        return name if (kind, name) in self._points else find_name(name, self.names(kind)) or name

    def _unknown(self, kind: str, name: str) -> UsageError:
        word, names = KINDS[kind], self.names(kind)
        known = f"installed are: {', '.join(names)}" if names else "no installed package brings one"
        return UsageError(
            f"there is no {word} {name[:100]!r}.{did_you_mean(name, names)} `PACKAGE/NAME` is a {word} of an "
            f"installed package; {known}",
            option=word,
            choices=names,
        )


@cache
def installed_plugins() -> Plugins:
    """Return the plugins of installed packages."""
    return Plugins()


def _find_points() -> Iterator[tuple[str, metadata.EntryPoint]]:
    """Yield the entry points of installed packages, each with the normalized name of its package."""
    seen = set[str]()
    for package in metadata.distributions():
        try:
            points = package.entry_points
            found = [point for kind in KINDS for point in points.select(group=f"reasonry.{kind}")]
            # Reading the name takes several times as long as reading the entry points.
            name = re.sub(r"[-_.]+", "-", package.name or "unknown").lower() if found else ""
        except Exception as error:
            _LOG.warning("a package has files that cannot be read, so its plugins are missing: %s", error)
            continue
        # If several packages have the same name, Python imports the first.
        if name not in seen:
            yield from ((name, point) for point in found)
        seen.add(name)


def read_opener(name: str, value: Any) -> Callable[[str], Any]:
    """Return a plugin's callable, or raise UsageError. The callable takes the text after `PACKAGE/NAME:`."""
    if not callable(value):
        raise UsageError(f"it must be a callable that takes a text, not {type(value).__name__}")
    return value


def split_plugin(spec: str) -> tuple[str, str] | None:
    """Split `PACKAGE/NAME:TEXT` into the name and the optional text. Return None for any other form."""
    found = _WHOLE.fullmatch(spec.strip())
    return None if found is None else (found[1], found[3] or "")


def _attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """Run code of a plugin. Return the result and an empty text, or None and the reason for the failure."""
    try:
        # Only the command's document or a protocol may use standard output.
        with contextlib.redirect_stdout(sys.stderr):
            return work(), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        try:
            text = error.message if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
        except Exception:
            # The error cannot be converted to text.
            text = type(error).__name__
        return None, " ".join(text.rstrip(": ").split())[:MAX_REASON_CHARS]


def _usable(kind: str, name: str, part: Any, why: str) -> Any:
    """Return the loaded `part` of a plugin. If `why` is not empty, raise an error with this reason."""
    if not why:
        return part
    word = KINDS[kind]
    message = f"the {word} {name} cannot be used: {why}; `reasonry plugins` lists what is installed"
    raise UsageError(message, code="plugin_failed", option=word, plugin=name, reason=why)


EXTRAS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("models of Anthropic", "pydantic_ai anthropic"),
    "documents": ("PDF files as documents", "pypdf"),
    "google": ("models of Google", "pydantic_ai google.genai"),
    "gym": ("problems of reasoning-gym for compare", "reasoning_gym"),
    "logic": ("claims checked with Z3", "z3"),
    "mcp": ("tools of other MCP servers, and MCP over HTTP", "mcp"),
    "providers": ("models of other providers", "pydantic_ai"),
    "sandbox": ("code in the Monty sandbox", "pydantic_monty"),
    "server": (
        "the page, the API and stores in PostgreSQL",
        "starlette uvicorn httptools sse_starlette prometheus_client mcp procrastinate psycopg",
    ),
    "telemetry": ("traces for OpenTelemetry", "opentelemetry.distro"),
}
"""Maps each extra of this package to its purpose and to the modules that are all present if it is installed."""


def has_extra(extra: str) -> bool:
    """Whether an extra is installed. Its modules are looked up, but not imported."""
    try:
        return all(importlib.util.find_spec(module) is not None for module in EXTRAS[extra][1].split())
    except ImportError:
        return False


def install_hint(extra: str) -> str:
    """Return the command that adds an extra to this installation. The command depends on how Reasonry was installed."""
    origin = read_origin()
    if origin.get("dir_info", {}).get("editable"):
        return f"uv sync --inexact --extra {extra}"
    source = unquote(urlsplit(origin.get("url", "")).path) or "reasonry"
    is_tool = Path(sys.prefix).parts[-3:-1] == ("uv", "tools")
    return f"{'uv tool install --force' if is_tool else 'pip install'} '{source}[{extra}]'"


def read_origin() -> dict[str, Any]:
    """Return the origin of this installation from `direct_url.json`. Without this file, return an empty mapping."""
    try:
        return json.loads(metadata.distribution("reasonry").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return {}


def check_extra(extra: str, purpose: str) -> None:
    """Check that an extra is installed, or raise MissingExtraError.

    Args:
        purpose: The feature that needs the extra. The error message begins with this text.
    """
    if not has_extra(extra):
        message = f"{purpose} needs a part that is not installed: {install_hint(extra)}"
        raise MissingExtraError(message, extra=extra)
