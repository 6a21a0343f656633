"""What all tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.assertion import rewrite
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


# How long an example takes says more of the machine than of the code; pytest's timeout ends what hangs.
settings.register_profile(
    "suite", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

ROOT = Path(__file__).parents[1]

# Where nothing compiled is kept, each process compiles all it imports: the SDK of a provider takes half a minute.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Until the tests are collected there is none, and looking for it takes a third of that time.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """Rewrite the assertions in a worker, each its share; who has workers does not collect the tests."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker:
        report_briefly(config)
        if config.getoption("assertmode") == "rewrite":
            rewrite_share(config, worker)
    elif config.getoption("numprocesses", None):
        gc.enable()


def rewrite_share(config: pytest.Config, worker: dict[str, Any]) -> None:
    """Rewrite a worker's share of the assertions and keep that, for all: else each worker rewrites all of them."""
    named = [Path(argument.partition("::")[0]) for argument in config.args]
    found = {one for path in named for one in (path.rglob("test_*.py") if path.is_dir() else [path])}
    modules = [path for path in found if path.suffix == ".py" and path.is_file()]
    largest_first = sorted(modules, key=lambda path: (-path.stat().st_size, path))
    for path in largest_first[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        folder = rewrite.get_cache_dir(path)
        kept = folder / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite.try_makedirs(folder) and rewrite._read_pyc(path, kept) is None:
            digest, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, kept)


def report_briefly(config: pytest.Config) -> None:
    """Keep from the process that has workers two reports in three: that the start or the end of a test went well."""
    worker = next(one for one in config.pluginmanager.get_plugins() if hasattr(one, "sendevent"))
    send = worker.sendevent

    def send_news(name: str, **event: Any) -> None:
        told: dict[str, Any] = event["data"] if name == "testreport" else {"when": "call"}
        if told["when"] == "call" or told["outcome"] != "passed" or told["duration"] > 0.1:
            send(name, **event)

    worker.sendevent = send_news


def pytest_xdist_auto_num_workers() -> int:
    """Return three workers for each processor: half of the time tests wait for processes, clocks and disks."""
    return 3 * (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """Look for garbage from here on, but seldom, and not among what was imported and collected."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin the share of each worker with modules that take long, so that no worker is left alone with one at the end.

    Nobody steals from there: each starts what the tests of a module share, such as a model, once.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    others = [item for item in items if item.get_closest_marker("slow") is None]
    slow = groupby((item for item in items if item.get_closest_marker("slow")), lambda item: item.path)
    modules = [list(module) for _, module in slow]
    rest, count = iter(others), len(items)
    items.clear()
    for number in range(workers):
        first = [item for module in modules[number::workers] for item in module]
        share = (count - len(items)) // (workers - number)
        items += [*first, *islice(rest, max(0, share - len(first)))]
    items += rest


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


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans that end in this process during a test."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        # A process has one, for good.
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    exporter = InMemorySpanExporter()
    processor = SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    yield exporter
    processor.shutdown()


@pytest.fixture(scope="session")
def _postgres(testrun_uid: str, worker_id: str) -> Iterator[tuple[str, Any]]:
    """A schema of this process in the PostgreSQL server of the whole run, and a connection that sees it."""
    if os.name == "nt":
        pytest.skip("there is no PostgreSQL server to install from a package for Windows")
    import psycopg

    from tests.servers.postgres import postgres_server

    with postgres_server(testrun_uid[:12]) as server:
        schema, url = f"tests_{worker_id}", server.url
        with psycopg.connect(url, autocommit=True, options=f"-csearch_path={schema}") as db:
            yield f"{url}&reasonry_schema={schema}", db


@pytest.fixture
def postgres_url(_postgres: tuple[str, Any]) -> str:
    """The URL of an empty store in PostgreSQL."""
    url, db = _postgres
    tables = db.execute(
        "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'migration'"
    )
    db.execute(";".join(["SELECT 1", *(f"DELETE FROM {table}" for (table,) in tables.fetchall())]))
    db.execute(f"DROP SCHEMA IF EXISTS {url.rpartition('=')[2]}_queue CASCADE")
    return url
