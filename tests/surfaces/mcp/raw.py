"""A raw JSON-RPC client over the pipes of a child process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.forked import ForkedProcess

COMMAND = [sys.executable, "-m", "reasonry.surfaces.mcp.serve"]
INFO = {"name": "raw", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": INFO,
}


class Raw:
    """One server and one client of it."""

    def __init__(
        self,
        store: str | Path = "memory",
        *,
        greet: str | None = "2025-11-25",
        capabilities: dict[str, Any] | None = None,
        command: Sequence[str] = COMMAND,
        start: type[subprocess.Popen[bytes]] | None = None,
        **environ: str,
    ) -> None:
        env = {**os.environ, "REASONRY_STORE": str(store), **environ}
        pipe = subprocess.PIPE
        start = start or (ForkedProcess if command is COMMAND else subprocess.Popen)
        self.process: subprocess.Popen[bytes] = start(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
        self._next_id = 0
        if greet is not None:
            self.greeting = self.ask("initialize", offer(greet, capabilities))["result"]
            self.line(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def __enter__(self) -> Raw:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def line(self, line: bytes) -> None:
        """Send a line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; return its id."""
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params or {}}
        self.line(json.dumps(message).encode())
        return self._next_id

    def hear(self) -> dict[str, Any]:
        """Return the next message of the server."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has gone"
        return json.loads(line)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return the answer to it."""
        id = self.send(method, params)
        while (answer := self.hear()).get("id") != id:
            pass
        return answer

    def ask_line(self, line: bytes) -> dict[str, Any]:
        """Send a line as it is and return what comes back."""
        self.line(line)
        return self.hear()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its document."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return document(answer)

    def tools(self) -> dict[str, dict[str, Any]]:
        """Return the tools by their names, in the order of the list."""
        return {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}

    def think(self, number: int = 1, total: int = 9, **more: Any) -> dict[str, Any]:
        """Hand in a thought; return the reply's document."""
        return self.call("sequentialthinking", **thought(number, total, **more))


def offer(version: str = "2025-06-18", capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the parameters of a handshake."""
    return {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": INFO}


def lines_of(*requests: tuple[str, dict[str, Any]]) -> list[bytes]:
    """Return requests as lines. Their ids are counted from 0."""
    return [
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        for id, (method, params) in enumerate(requests)
    ]


def thought(number: int = 1, total: int = 9, **more: Any) -> dict[str, Any]:
    """Return the arguments of a plain thought."""
    plain = {"thought": f"thought {number}", "nextThoughtNeeded": True}
    return {**plain, "thoughtNumber": number, "totalThoughts": total, **more}


async def told(client: Any, tool: str, arguments: dict[str, Any]) -> Any:
    """Call a tool by the official client; return its document."""
    return (await client.call_tool(tool, arguments)).structured_content


def document(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's document, having looked that text and structure agree, but for what the text leaves out."""
    result = answer["result"]
    structured = result["structuredContent"]
    told = json.loads(result["content"][0]["text"])
    assert told == _without_search(structured)
    assert result["isError"] is ("error" in structured)
    return structured


def _without_search(part: Any) -> Any:
    """Return a tool's document without what a text leaves out of the result of a run."""
    if not isinstance(part, dict):
        return part
    left_out = {"candidates", "tree", "diagnostics"} if "termination" in part else set[str]()
    kept = {name: member for name, member in part.items() if name not in left_out}
    return kept | {"result": _without_search(kept["result"])} if "result" in kept else kept


def call_line(arguments: bytes, id: int = 7) -> bytes:
    """Return the line of a call of the thinking tool whose arguments are given as bytes."""
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call",'
        b'"params":{"name":"sequentialthinking","arguments":%b}}' % (id, arguments)
    )
