"""A talk that the tests of a module share."""

from collections.abc import Iterator

import pytest

from ....servers import ModelServer
from .talking import Talk, reply, talking


@pytest.fixture(scope="module")
def talk() -> Iterator[Talk]:
    """A server over a store in memory, with a model that answers at once."""
    with ModelServer(reply=reply) as model, talking(model) as found:
        yield found
