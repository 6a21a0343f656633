"""A server of models, and the ways to ask it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from reasonry.engine.ports import Model, OnText
from tests.servers import ModelServer

from .asking import model_over


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(params=["own", "pydantic-ai"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[None, lambda text: None], ids=["whole", "streamed"])
def watch(request: pytest.FixtureRequest) -> OnText | None:
    return request.param


@pytest.fixture
async def model(server: ModelServer, transport: str) -> AsyncIterator[Model]:
    async with model_over(server, transport) as opened:
        yield opened
