"""Load the parts (such as strategies and tools) that installed packages and a user's folder add to the built-in parts.

The registry of built-in strategies does no input or output. So this module loads the other strategies and adds them.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..core.registry import LazyRegistry, Registry, add_strategies, find_strategy, strategies_at_hand
from ..core.strategy import Strategy
from ..errors import UsageError
from ..stages import from_mapping, to_mapping
from ..strategies import STRATEGIES
from ..system.plugins import installed_plugins, read_opener
from ..system.processes import read_regular_file
from .strategy_table import MAX_CHARS, describe, read_tables


def installed_strategies() -> Registry:
    """Return the strategies of Reasonry and of installed packages. A package's strategy loads on first use."""
    plugins = installed_plugins()
    return LazyRegistry(
        STRATEGIES,
        lambda: plugins.names("strategies"),
        lambda name: plugins.load("strategies", name, read_strategy),
    )


def read_strategies(folder: str, registry: Registry) -> Registry:
    """Return `registry` extended with the strategies in the `*.toml` and `*.json` files of a folder.

    A strategy that equals a strategy in the registry is skipped, since an exported mapping contains all strategies.

    Raises:
        UsageError: There is no such folder, it has only Python files, a file is unreadable, or a name is already used.
    """
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"there is no folder {folder!r} to read strategies from", option="strategies_dir")
    known, tables = registry, sorted((*path.glob("*.toml"), *path.glob("*.json")))
    if not tables and any(path.glob("*.py")):
        why = f"{folder!r} has no TOML or JSON table; install a strategy in Python as a plugin (docs/plugins.md)"
        raise UsageError(why, option="strategies_dir")
    for file in tables:
        try:
            data = read_regular_file(file, 4 * MAX_CHARS, label="table", option="strategies_dir")
            found = read_tables(data.decode("utf-8-sig"), str(file))
        except UnicodeDecodeError as error:
            raise UsageError(f"{file} cannot be read: {error}", option="strategies_dir") from None
        for strategy in found.values():
            names = (strategy.name, *strategy.aliases)
            taken = next((own for name in names if (own := find_strategy(name, registry))), None)
            if taken is None:
                registry = add_strategies(registry, {strategy.name: strategy})
            elif strategy not in _exports_of(taken, strategies_at_hand(known)):
                why = (
                    f"{file}: strategy {strategy.name!r}: {taken.name!r} already exists under one of its names; "
                    "give the other strategy another name"
                )
                raise UsageError(why, option="strategies_dir")
    return registry


def _exports_of(strategy: Strategy[Any, Any], known: Registry) -> Iterator[Strategy[Any, Any]]:
    """Export a strategy in each form. Read each export, and yield the strategy that it contains."""
    if strategy.name in known:
        mapping = to_mapping(known)
        for part in (mapping, {**mapping, "stageDescriptions": {}}):
            yield from_mapping(part)[strategy.name]
        yield from read_tables(json.dumps(describe(strategy)), f"{strategy.name}.json").values()


def describe_plugins() -> list[dict[str, Any]]:
    """Load all plugins of installed packages, and return a row for each plugin.

    Returns:
        [{`package`, `version`, `kind`, `name`, `place`, `loaded`, `why`}], sorted by name; `why` is the reason for a
        failure to load.
    """
    from ..tools.catalog import read_tools

    plugins, rows = installed_plugins(), list[dict[str, Any]]()
    readers: dict[str, Callable[[str, Any], Any]] = {"strategies": read_strategy, "tools": read_tools}
    for row in plugins.describe():
        why = ""
        try:
            plugins.load(row["kind"], row["name"], readers.get(row["kind"], read_opener))
        except UsageError as error:
            why = str(error.details.get("reason", error.message))
        rows.append({**row, "loaded": not why, "why": why})
    return rows


def read_strategy(name: str, value: Any) -> Strategy[Any, Any]:
    """Check a package's strategy, and return the strategy under `name` without aliases.

    Raises:
        UsageError: The value is not a strategy, or its options or forms cannot be described.
    """
    if not isinstance(value, Strategy):
        raise UsageError(f"it must be a Strategy, not {type(value).__name__}")
    if not (isinstance(value.options, type) and issubclass(value.options, Struct)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"its options must be a msgspec.Struct, not {value.options!r:.100}")
    strategy: Strategy[Any, Any] = replace(value, name=name, aliases=(), suits=())
    # A list of strategies describes each strategy. So a strategy that cannot be described is refused here, early.
    describe(strategy)
    return strategy
