"""The surfaces that the tests of a module share."""

from collections.abc import Iterator

import pytest

from .cli import CommandLine
from .http import Api
from .mcp import Tools
from .python import Package
from .surface import Surface
from .uses import Contents


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Surface]]:
    """The surfaces, each over a store of its own."""
    folder = tmp_path_factory.mktemp("contract")
    tools, api = Tools(folder), Api(folder)
    yield {each.name: each for each in (CommandLine(folder), tools, api, Package(folder))}
    tools.close()
    api.close()


@pytest.fixture(scope="module")
def stores(surfaces: dict[str, Surface]) -> dict[str, Contents]:
    """What the store of each surface has."""
    return {name: Contents(surface) for name, surface in surfaces.items()}
