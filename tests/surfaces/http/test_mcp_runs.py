"""Runs that MCP calls begin: they are told of while they work, can be asked for later, and end as the protocol says."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from reasonry.surfaces.mcp import driven, http_server
from tests.servers import ModelServer

from ..mcp.raw import told
from ..mcp.task_frames import messages_in, posted
from .serving import Serving, serve_in_thread
from .test_mcp import connected


@pytest.fixture(scope="module")
def slow() -> Iterator[tuple[Serving, ModelServer]]:
    """A server whose model takes 0.2 s for an answer."""
    with (
        ModelServer(latency_ms=200) as model,
        serve_in_thread(environ={"REASONRY_MODEL": model.model}) as server,
    ):
        yield server, model


SUM = {"problem": "What is 6 * 7?", "strategy": "chain_of_thought"}
LONG = {"problem": "What is 6 * 7?", "strategy": "self_consistency", "options": {"samples": 4}}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_that_takes_progress_is_told_of_the_run_and_waits_for_its_end(
    slow: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driven, "BEAT_S", 0.05)
    monkeypatch.setattr(http_server, "PATIENCE_S", 0.01)
    heard = list[tuple[float, str]]()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))

    async with connected(slow[0], mode) as client:
        result = await client.call_tool("solve", SUM, progress_callback=note)
        document = result.structured_content
        assert document["status"] == "done", document
        assert document["answer"]
        numbers = [number for number, _ in heard]
        assert numbers == sorted(set(numbers)), "progress only grows"
        assert len(heard) >= 3, "silence is broken while the model thinks"
        assert [document["run_id"] in message for _, message in heard] == [True] + [False] * (len(heard) - 1)
        status = await told(client, "coach", {"action": "status", "run_id": document["run_id"]})
        assert status["result"]["answer"] == document["answer"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_without_progress_is_answered_in_time_and_the_run_goes_on(
    slow: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "PATIENCE_S", 0.05)
    async with connected(slow[0], mode) as client:
        document = await told(client, "solve", SUM)
        assert document["status"] == "active"
        assert document["answer"] is None
        monkeypatch.setattr(http_server, "PATIENCE_S", 20)
        status = await told(client, "coach", {"action": "status", "run_id": document["run_id"]})
        assert status["result"]["status"] == "done", "`status` waits for the end"


@pytest.mark.anyio
async def test_cancel_ends_a_run_that_is_at_work(slow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "PATIENCE_S", 0.05)
    async with connected(slow[0], "2026-07-28") as client:
        run_id = (await told(client, "solve", LONG))["run_id"]
        gone = await told(client, "coach", {"action": "cancel", "run_id": run_id})
        assert gone["status"] == "cancelled"


@pytest.mark.anyio
@pytest.mark.parametrize(("version", "becomes"), [("2026-07-28", "cancelled"), ("2025-11-25", "done")])
async def test_who_closes_the_stream_cancels_where_the_protocol_says_so(
    slow: Any, version: str, becomes: str
) -> None:
    server, _model = slow
    request = posted("tools/call", {"name": "solve", "arguments": SUM}, mcp_protocol_version=version)
    request["json"]["params"]["_meta"]["progressToken"] = "t"
    async with httpx2.AsyncClient(base_url=server.url, timeout=20) as client:
        async with client.stream("POST", **request) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    message = json.loads(line.removeprefix("data: "))["params"]["message"]
                    break
        run_id = message.split()[1].rstrip(":")
        until = time.monotonic() + 10
        while (row := await _row(client, run_id))["status"] == "active" and time.monotonic() < until:
            await asyncio.sleep(0.02)
        assert row["status"] == becomes


async def _row(client: httpx2.AsyncClient, run_id: str) -> dict[str, Any]:
    request = posted("tools/call", {"name": "coach", "arguments": {"action": "list"}})
    (answer,) = messages_in((await client.post(**request)).text)
    return next(row for row in answer["result"]["structuredContent"]["runs"] if row["run_id"] == run_id)
