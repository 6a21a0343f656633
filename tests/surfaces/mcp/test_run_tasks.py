"""Runs as tasks: begun, looked at, ended; alike over both transports, and whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from tests.forked import ForkedProcess
from tests.surfaces.http.serving import serve_in_thread

from .raw import Raw, document
from .task_frames import DETAILED, PUZZLE, TaskClient, local_client, web_client

pytestmark = pytest.mark.anyio
TRANSPORTS = ["stdio", "http"]
TOO_FEW = {**PUZZLE, "max_calls": 1}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve_in_thread() as serving:
        yield serving.url


def connected(transport: str, url: str) -> AbstractAsyncContextManager[TaskClient]:
    return local_client() if transport == "stdio" else web_client(url)


class PipeClient(TaskClient):
    """Of a process, over its pipes."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    async def send(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """See `TaskClient`."""
        return [await asyncio.to_thread(self._raw.ask, method, params)]


RESTLESS = """
from reasonry.supervisor import deaths
from reasonry.surfaces.mcp.serve import main
deaths.RESTS_S = (0.0,) * 4
main()
"""
"""Serves without a pause before a run whose process has died."""


@asynccontextmanager
async def raw_client(store: Path) -> AsyncGenerator[TaskClient]:
    """Be the client of a process that is killed at the end."""
    command = [sys.executable, "-c", RESTLESS]
    with Raw(store, greet=None, command=command, start=ForkedProcess, REASONRY_MODEL="offline") as raw:
        yield PipeClient(raw)


@asynccontextmanager
async def served_client(store: Path) -> AsyncGenerator[TaskClient]:
    """Be the client of a server over HTTP that is killed at the end."""
    words = [sys.executable, "-m", "reasonry", "serve", "--port", "0", "--json", "--store", str(store)]
    environ = {**os.environ, "REASONRY_MODEL": "offline"}
    with ForkedProcess(words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environ) as process:
        said = b"".join(process.stdout.readline() for _ in range(3))
        async with web_client(json.loads(said)["url"]) as client:
            yield client
        process.kill()


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_solve_is_a_task_that_comes_to_the_result_of_the_call(transport: str, url: str) -> None:
    async with connected(transport, url) as client:
        found = await client.ask("server/discover")
        assert found["result"]["capabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}
        task = await client.solve()
        done = await client.settled(task)
        assert done["status"] == "completed"
        assert done["statusMessage"].startswith("solved")
        client.capabilities = {}
        plain = (await client.ask("tools/call", name="solve", arguments=PUZZLE))["result"]
        assert plain["resultType"] == "complete"
        came, called = done["result"]["structuredContent"], plain["structuredContent"]
        assert came["run_id"] == task
        same = ("answer", "outcome", "status", "termination", "strategy", "usage")
        assert {name: came[name] for name in same} == {name: called[name] for name in same} | {
            "termination": came["termination"]
        }
        assert document(done) == came


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_who_does_not_declare_tasks_has_none_and_is_told_what_is_missing(
    transport: str, url: str
) -> None:
    async with connected(transport, url) as client:
        task = await client.solve()
        client.capabilities = {}
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            error = (await client.ask(method, taskId=task))["error"]
            assert error["code"] == -32021
            assert error["data"] == {
                "requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            }
        heard = await client.told("subscriptions/listen", notifications={"taskIds": [task]})
        assert heard[0]["error"]["code"] == -32021


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_there_is_no_task_of_another_name_and_no_run_that_is_none(transport: str, url: str) -> None:
    async with connected(transport, url) as client:
        begun = await client.ask("tools/call", name="coach", arguments={"action": "start", "problem": "x"})
        run = begun["result"]["structuredContent"]["run_id"]
        for name in ("nobody", run):
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                answer = await client.ask(method, taskId=name)
                assert answer["error"]["code"] == -32602, answer
        assert (await client.ask("tasks/get"))["error"]["code"] == -32602


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_task_at_a_limit_ends_with_the_best_so_far(transport: str, url: str) -> None:
    async with connected(transport, url) as client:
        done = await client.settled(await client.solve(**TOO_FEW))
        result = done["result"]["structuredContent"]
        assert (done["status"], result["outcome"]) == ("completed", "stopped")
        assert result["best_answer"]


@asynccontextmanager
async def slow_client(transport: str, folder: Path) -> AsyncGenerator[TaskClient]:
    """Be the client of a server whose model takes a minute for a reply."""
    script = folder / "slow.jsonl"
    script.write_text(json.dumps({"stage": "*", "reply": "42", "delay_ms": 60_000}) + "\n", "utf-8")
    environ = {"REASONRY_MODEL": f"scripted:{script}"}
    if transport == "stdio":
        async with local_client(**environ) as client:
            yield client
        return
    with serve_in_thread(environ=environ) as serving:
        async with web_client(serving.url) as client:
            yield client


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_cancelled_task_stays_so_until_a_call_resumes_its_run(transport: str, tmp_path: Path) -> None:
    async with slow_client(transport, tmp_path) as client:
        task = await client.solve()
        assert (await client.get(task))["status"] == "working"
        await client.cancel(task)
        gone = await client.get(task)
        assert gone["status"] == "cancelled"
        await client.cancel(task)
        assert await client.get(task) == gone
        assert await client.solve(run_id=task, model="offline") == task
        assert (await client.settled(task))["result"]["structuredContent"]["outcome"] == "answered"
        assert await client.solve(run_id=task) == task
        assert (await client.get(task))["status"] == "completed"
        both = await client.ask("tools/call", name="solve", arguments={"run_id": task, **PUZZLE})
        assert both["result"]["structuredContent"]["error"]["field"] == "problem"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_who_listens_is_told_of_each_change_until_the_end(transport: str, tmp_path: Path) -> None:
    async with slow_client(transport, tmp_path) as client:
        task, other = await client.solve(), client.beside()
        wanted = {"taskIds": [task, "nobody"]}
        listening = asyncio.ensure_future(client.told("subscriptions/listen", notifications=wanted))
        await asyncio.sleep(0.05)
        await other.cancel(task)
        first, *changes, last = await listening
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"taskIds": [task]}
        assert {change["method"] for change in changes} == {"notifications/tasks"}
        for change in changes:
            DETAILED.validate(change["params"])
        assert [change["params"]["status"] for change in changes] == ["working", "cancelled"]
        key = "io.modelcontextprotocol/subscriptionId"
        assert {message["params"]["_meta"][key] for message in (first, *changes)} == {last["id"]}
        assert last["result"]["_meta"][key] == last["id"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_run_is_resumed_in_the_call_where_the_client_takes_no_tasks(transport: str, url: str) -> None:
    async with connected(transport, url) as client:
        client.capabilities = {}
        stopped = (await client.ask("tools/call", name="solve", arguments=TOO_FEW))["result"]
        run = stopped["structuredContent"]["run_id"]
        arguments = {"run_id": run, "max_calls": 60}
        resumed = (await client.ask("tools/call", name="solve", arguments=arguments))["result"]
        assert resumed["structuredContent"]["outcome"] == "solved"
        assert resumed["structuredContent"]["run_id"] == run


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_life_of_a_task_whose_server_is_killed_after_every_reply(
    transport: str, tmp_path: Path
) -> None:
    start = raw_client if transport == "stdio" else served_client
    store = tmp_path / "s.db"
    async with start(store) as client:
        task = await client.solve()
    async with start(store) as client:
        stands = await client.settled(task)
    assert stands["status"] == "completed"
    assert stands["result"]["structuredContent"]["outcome"] == "solved"
    async with start(store) as client:
        assert await client.get(task) == stands
        gone = await client.solve(**TOO_FEW)
        await client.cancel(gone)
        ended = await client.get(gone)
    async with start(store) as client:
        assert await client.get(gone) == ended
