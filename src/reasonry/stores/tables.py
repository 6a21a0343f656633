"""A user's own strategies, kept as TOML tables in a folder."""

from __future__ import annotations

from pathlib import Path

from ..core.registry import Registry, add_strategies
from ..core.table import MAX_CHARS, read_table
from ..errors import UsageError
from ..regular_files import read_regular_file


def read_strategies(folder: str, registry: Registry) -> Registry:
    """Return the registry with the strategies that a folder has as tables (`*.toml`).

    Raises:
        UsageError: There is no such folder, a table in it is not valid, or its name is already used.
    """
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"there is no folder {folder!r} to read strategies from", option="strategies_dir")
    for file in sorted(path.glob("*.toml")):
        try:
            data = read_regular_file(file, 4 * MAX_CHARS, label="table", option="strategies_dir")
            strategy = read_table(data.decode("utf-8"), str(file))
        except UnicodeDecodeError as error:
            raise UsageError(f"{file} cannot be read: {error}", option="strategies_dir") from None
        if strategy.name in registry:
            raise UsageError(f"{file}: strategy {strategy.name!r} already exists", option="strategies_dir")
        registry = add_strategies(registry, {strategy.name: strategy})
    return registry
