"""What all tests share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from compileall import compile_dir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more of the machine than of the code; pytest's timeout ends what hangs.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Compile what tests start as processes, once: else each of them does, where PYTHONDONTWRITEBYTECODE is set."""
    if not hasattr(config, "workerinput"):
        for folder in ("src", "tests"):
            compile_dir(ROOT / folder, quiet=2, rx=re.compile(r"[/\\]test_\w+\.py$"))


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are processors: a third of the time tests wait for processes and disks."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: what a killed process leaves behind is the same, only sooner."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as name:
        yield Path(name)
