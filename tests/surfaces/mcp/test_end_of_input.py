"""The end of input: every request that was read is answered, and what cannot be done in time is told."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reasonry.surfaces.mcp.serve import GRACE_S
from tests.forked import forking_python
from tests.servers.model_server import ModelServer

from .raw import COMMAND, offer

SERVER = """
import asyncio, sys
from reasonry.surfaces.mcp import mcp_catalog
from reasonry.surfaces.mcp.serve import main
from reasonry.surfaces.mcp.tools import McpTool
async def nap(arguments, context):
    await asyncio.sleep(arguments["seconds"])
    return {"napped": arguments["seconds"]}
schema = {"type": "object", "properties": {}}
mcp_catalog.page_tool = lambda app: McpTool("nap", "Nap", "Naps.", schema, schema, nap)
main("memory")
"""
HELLO = {"id": 0, "method": "initialize", "params": offer()}


def nap(id: Any, seconds: float) -> dict[str, Any]:
    params = {"name": "nap", "arguments": {"seconds": seconds}}
    return {"id": id, "method": "tools/call", "params": params}


def written(requests: Sequence[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps({"jsonrpc": "2.0", **one}).encode() for one in (HELLO, *requests))


def run(*words: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([forking_python(), *words], capture_output=True, timeout=60, check=True, **how)


def converse(*requests: dict[str, Any]) -> tuple[dict[Any, list[dict[str, Any]]], str, float]:
    """Send requests, the last without an end of its line, and end the input; return answers by id, stderr, seconds."""
    began = time.monotonic()
    done = run("-c", SERVER, input=written(requests))
    answers: dict[Any, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        answers.setdefault(answer["id"], []).append(answer)
    return answers, done.stderr.decode(), time.monotonic() - began


def results(answers: list[dict[str, Any]]) -> list[Any]:
    return [answer["result"]["structuredContent"] for answer in answers]


def test_every_request_is_answered_once_whatever_its_id() -> None:
    requests = [nap(id, 0.1 * number) for number, id in enumerate([1, "1", 2, 3, "x"])]
    listing: list[dict[str, Any]] = [
        {"id": 10, "method": "tools/list"},
        {"id": 11, "method": "no/such"},
        {"id": 12, "method": "resources/list"},
        {"id": 13, "method": "tools/call", "params": {"name": "no_such"}},
    ]
    answers, said, seconds = converse(*requests, *listing, nap(14, 0.3), nap(14, 0.2))
    assert {key: len(found) for key, found in answers.items() if len(found) != 1} == {14: 2}
    assert answers.keys() == {0, 1, "1", 2, 3, "x", 10, 11, 12, 13, 14}
    assert said == ""
    assert seconds < 30


def test_a_last_line_without_an_end_is_read() -> None:
    answers, _, _ = converse({"id": 1, "method": "ping"})
    assert [answer["result"] for answer in answers[1]] == [{}]


def test_what_takes_longer_is_answered_with_an_error_and_told_on_standard_error() -> None:
    requests = [nap(1, 600), nap("two\x1b[2J", 600), nap(3, 1.5)]
    answers, said, seconds = converse(*requests)
    assert results(answers[3]) == [{"napped": 1.5}]
    (error,) = [one["error"] for one in results(answers[1])]
    assert (error["code"], error["retryable"]) == ("deadline_exceeded", True)
    assert "3 s after the input ended" in error["message"]
    (error,) = [one["error"] for one in results(answers["two\x1b[2J"])]
    assert "3 s after the input ended" in error["message"]
    (line,) = said.splitlines()
    assert "2 requests were not done" in line
    assert "1 (tools/call nap)" in line
    assert r"two\u001b[2J (tools/call nap)" in line
    assert GRACE_S <= seconds < GRACE_S + 25


def test_after_a_signal_calls_have_the_same_time() -> None:
    pipe, command = subprocess.PIPE, [forking_python(), "-c", SERVER]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(written([nap(1, 600), nap(3, 1.5), {"id": 2, "method": "ping"}]) + b"\n")
    process.stdin.flush()
    heard = [json.loads(process.stdout.readline())["id"] for _ in range(2)]
    assert heard == [0, 2]
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert b'{"napped":1.5}' in out
    assert "a signal came" in out.decode()
    assert b"1 (tools/call nap)" in err
    assert process.returncode == 0


def test_a_run_that_was_not_done_is_recorded_as_cancelled(tmp_path: Path) -> None:
    with ModelServer(latency_ms=20_000) as server:
        env = {**os.environ, "REASONRY_MODEL": server.model, "REASONRY_STORE": str(tmp_path / "store.db")}
        order = {"name": "solve", "arguments": {"problem": "x", "strategy": "self_ask"}}
        request = {"id": 1, "method": "tools/call", "params": order}
        done = run(*COMMAND[1:], input=written([request]), env=env)
    assert b"1 (tools/call solve)" in done.stderr
    assert b"Traceback" not in done.stderr
    listed = run("-m", "reasonry", "runs", "list", "--json", env=env)
    assert [run["status"] for run in json.loads(listed.stdout)["runs"]] == ["cancelled"]
