"""Packages that bring strategies, tools, verifiers and models: found by their entry points, loaded when they are named.

Rule 1: finding reads the metadata of installed packages alone. A package's code runs only when something of it is
        named, or when all is listed.
Rule 2: what cannot be loaded is refused with its reason, whatever went wrong inside, and hurts nothing else.
Rule 3: a name is `PACKAGE/NAME`: the distribution as package indexes write it, and the name of the entry point. So no
        package can stand in for a built-in part or for another package's.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .errors import UsageError
from .names import did_you_mean, find_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

SETTING: Final = "REASONRY_PLUGINS"
KINDS: Final = {"strategies": "strategy", "tools": "tool", "verifiers": "verifier", "models": "model"}
"""The last part of each entry point group, and what one of its entries is."""

MAX_REASON_CHARS: Final = 500

_PART = r"[A-Za-z0-9](?:[\w.-]{0,62}[A-Za-z0-9_])?"
_NAME: Final = re.compile(_PART)
_WHOLE: Final = re.compile(rf"({_PART}/{_PART})(:(.*))?", re.DOTALL)
_OFF: Final = {"off", "0", "false", "no"}
_ON: Final = {"", "on", "1", "true", "yes"}


class Plugins:
    """What installed packages bring; each is loaded once, when it is first asked for.

    Args:
        find: Returns the entry points of installed packages; called once, when something is asked for.
    """

    def __init__(self, find: Callable[[], Iterable[EntryPoint]]) -> None:
        self._find = find
        self._loaded: dict[tuple[str, str], tuple[Any, str]] = {}
        """With the reason why it cannot be used."""
        self._lock = threading.RLock()

    @cached_property
    def _points(self) -> dict[tuple[str, str], list[EntryPoint]]:
        """The entry points by kind and whole name, sorted; more than one of a name cannot be told apart."""
        points: dict[tuple[str, str], list[EntryPoint]] = {}
        for point in self._find():
            kind = point.group.removeprefix("reasonry.")
            points.setdefault((kind, f"{_distribution(point)[0]}/{point.name}"), []).append(point)
        return dict(sorted(points.items(), key=lambda entry: entry[0][::-1]))

    def describe(self) -> list[dict[str, str]]:
        """Return a row for each that was found, by package and name; nothing is loaded.

        Returns:
            [{`kind` (one of `KINDS`), `name` (`PACKAGE/NAME`), `package`, `version`, `place` (`MODULE:ATTRIBUTE`)}]
        """
        columns = ("kind", "name", "package", "version", "place")
        return [
            dict(zip(columns, (*key, *_distribution(point), point.value), strict=True))
            for key, points in self._points.items()
            for point in points
        ]

    def names(self, kind: str) -> list[str]:
        """Return the whole names of one kind, but of those that no name can tell apart."""
        return [name for each, name in self._points if each == kind and not self._naming_fault(each, name)]

    def _naming_fault(self, kind: str, name: str) -> str:
        """Return why something cannot go by its name; empty if it can, or is not there."""
        points = self._points.get((kind, name), ())
        if len(points) > 1:
            return f"{len(points)} entry points of the package have this name"
        if points and not (_NAME.fullmatch(points[0].name) and _WHOLE.fullmatch(name)):
            return "its name may have letters, digits, `_`, `.` and `-`, at most 64"
        return ""

    def load(self, kind: str, name: str, read: Callable[[str, Any], T]) -> T:
        """Return what a name stands for.

        Args:
            read: Makes of the name and what the entry point names what is wanted, once; what it raises is why it
                cannot be used.

        Raises:
            UsageError: There is no such name (`choices` has them), or, as `plugin_failed`, it cannot be used.
        """
        key = (kind, self.whole_name(kind, name))
        if key not in self._points:
            raise self._unknown(*key)
        with self._lock:
            if key not in self._loaded:
                fault = self._naming_fault(*key)
                self._loaded[key] = (
                    (None, fault) if fault else _attempt(lambda: read(key[1], self._points[key][0].load()))
                )
        loaded, fault = self._loaded[key]
        if fault:
            raise _failure(*key, fault)
        return loaded

    def open(self, kind: str, spec: str, wrap: Callable[[Any], T]) -> T:
        """Return what the opener of a `PACKAGE/NAME:TEXT` returns for the text, under the name that it was opened by.

        Args:
            wrap: Makes of it what is wanted; what it raises is why it cannot be used.

        Raises:
            UsageError: As `load`; or it cannot be opened.
        """
        name, text = split_plugin(spec) or (spec, "")
        opener = self.load(kind, name, read_opener)
        whole = self.whole_name(kind, name)

        def open_named() -> Any:
            opened: Any = wrap(opener(text))
            opened.name = f"{whole}:{text}" if text else whole
            return opened

        opened, fault = _attempt(open_named)
        if fault:
            raise _failure(kind, whole, fault)
        return opened

    def whole_name(self, kind: str, name: str) -> str:
        """Return the name that a text spells, or the text itself."""
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


def installed_plugins(environ: Mapping[str, str] | None = None) -> Plugins:
    """Return what installed packages bring; nothing where `REASONRY_PLUGINS` is `off`.

    Args:
        environ: None: that of the process.

    Raises:
        UsageError: The setting is neither `on` nor `off`.
    """
    setting = (os.environ if environ is None else environ).get(SETTING, "").strip().lower()
    if setting in _OFF:
        return Plugins(tuple)
    if setting not in _ON:
        raise UsageError(
            f"{SETTING} is `on` or `off`, not {setting[:40]!r}", option=SETTING, choices=["on", "off"]
        )
    return _find_installed()


def read_opener(name: str, value: Any) -> Callable[[str], Any]:
    """Return what opens a model or a verifier: a callable that takes the text behind the name's colon.

    Raises:
        UsageError: It cannot be called.
    """
    if not callable(value):
        raise UsageError(f"it must be a callable that takes a text, not {type(value).__name__}")
    return value


def split_plugin(spec: str) -> tuple[str, str] | None:
    """Return the whole name in `PACKAGE/NAME:TEXT`, and the text, which may be missing; None for another form."""
    found = _WHOLE.fullmatch(spec.strip())
    return None if found is None else (found[1], found[3] or "")


@cache
def _find_installed() -> Plugins:
    def find() -> list[EntryPoint]:
        from importlib.metadata import entry_points

        found = entry_points()
        return [point for kind in KINDS for point in found.select(group=f"reasonry.{kind}")]

    return Plugins(find)


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """Return the name of a package as indexes write it, and its version."""
    name = point.dist.name if point.dist is not None else ""
    version = point.dist.version if point.dist is not None else ""
    return re.sub(r"[-_.]+", "-", name or "unknown").lower(), version


def _attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """Return what the code of a package comes to, or why it cannot be used."""
    try:
        # Standard output belongs to the command's document, or to a protocol.
        with contextlib.redirect_stdout(sys.stderr):
            return work(), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, _reason(error)


def _failure(kind: str, name: str, why: str) -> UsageError:
    word = KINDS[kind]
    return UsageError(
        f"the {word} {name} cannot be used: {why}; `reasonry plugins` lists what is installed",
        code="plugin_failed",
        option=word,
        plugin=name,
        reason=why,
    )


def _reason(error: BaseException) -> str:
    try:
        text = error.message if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
    except Exception:
        # An error that cannot even say what it is.
        text = type(error).__name__
    return " ".join(text.rstrip(": ").split())[:MAX_REASON_CHARS]
