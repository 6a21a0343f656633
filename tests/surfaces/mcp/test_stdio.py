"""The server as a child process, spoken to in raw JSON-RPC."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ...contracts.without_posix import without_posix
from .raw import COMMAND, Raw, lines_of, offer, thought

each_wire = pytest.mark.parametrize(
    "command",
    [COMMAND, without_posix("reasonry.surfaces.mcp.serve")],
    ids=["as it is", "without POSIX"],
)


def test_nothing_heavy_is_loaded_whatever_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONRY_STORE", "memory")
    code = (
        "import sys, os, atexit\n"
        "from reasonry.surfaces.cli import run\n"
        "run(['mcp'])\n"
        "heavy = {'aiohttp', 'mcp', 'mcp_types', 'pydantic', 'httpx', 'httpx2', 'rich', 'starlette', 'anyio'}\n"
        "heavy |= {'cyclopts', 'attr', 'http.client', 'jsonschema', 'ruamel', 'json_repair'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    lines = [
        *lines_of(
            ("initialize", offer()),
            *((f"{kind}/list", {}) for kind in ("tools", "prompts", "resources")),
            ("tools/call", {"name": "sequentialthinking", "arguments": thought()}),
            ("completion/complete", {}),
            ("tools/list", {"cursor": 5}),
        ),
        b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        b'{"jsonrpc":"2.0","id":8,"result":{}}\n',
    ]
    given = b"\n".join(lines)
    done = subprocess.run([COMMAND[0], "-c", code], input=given, capture_output=True, check=True)
    assert len(done.stdout.splitlines()) == 7
    assert done.stderr.decode().splitlines()[-1] == "HEAVY []"


@each_wire
def test_it_leaves_within_a_second_when_the_client_has_gone(command: list[str]) -> None:
    began = time.monotonic()
    with Raw(command=command) as raw:
        raw.think()
        started_s = time.monotonic() - began
        assert raw.process.stdin is not None
        raw.process.stdin.close()
        began = time.monotonic()
        assert raw.process.wait(timeout=60) == 0
        # The end takes no longer than the start, on a machine that is slow at both.
        assert time.monotonic() - began < max(1, started_s)


def test_a_file_serves_as_standard_input(tmp_path: Path) -> None:
    script = tmp_path / "frames"
    script.write_text('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}\n')
    with script.open("rb") as source:
        done = subprocess.run(COMMAND, stdin=source, capture_output=True, timeout=30, check=True)
    assert b'"code":-32600' in done.stdout


@each_wire
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: signal.Signals, command: list[str]) -> None:
    with Raw(command=command) as raw:
        raw.think()
        raw.process.send_signal(number)
        assert raw.process.wait(timeout=30) == 0
        assert raw.process.stderr is not None
        assert b"Traceback" not in raw.process.stderr.read()


def test_a_client_that_does_not_read_loses_nothing(tmp_path: Path) -> None:
    with Raw(tmp_path / "store.db", DISABLE_THOUGHT_LOGGING="true") as raw:
        sent = [raw.send("prompts/get", {"name": "linear"}) for _ in range(400)]
        time.sleep(0.2)
        heard = [raw.hear()["id"] for _ in sent]
    assert sorted(heard) == sent


def test_nobody_reading_standard_error_holds_nothing_up() -> None:
    with Raw() as raw:
        for number in range(1, 40):
            assert "error" not in raw.think(number, 40, thought="x" * 8_000)


def test_thoughts_are_drawn_on_standard_error() -> None:
    with Raw() as raw:
        raw.think(1, 2, thought="two\nlines of 日本語 \x1b[2J")
        raw.think(2, 2, isRevision=True, revisesThought=1)
        raw.think(2, 2, branchFromThought=1, branchId="other")
        drawn = _standard_error(raw)
    assert "💭 Thought 1/2" in drawn
    assert "🔄 Revision 2/2 (revising thought 1)" in drawn
    assert "🌿 Branch 2/2 (from thought 1, ID: other)" in drawn
    assert "\x1b" not in drawn
    assert "\\u001b[2J" in drawn


@pytest.mark.parametrize("value", ["true", "TRUE", "True"])
def test_drawing_can_be_turned_off(value: str) -> None:
    with Raw(DISABLE_THOUGHT_LOGGING=value) as raw:
        raw.think()
        assert _standard_error(raw) == ""


def _standard_error(raw: Raw) -> str:
    assert raw.process.stdin is not None
    assert raw.process.stderr is not None
    raw.process.stdin.close()
    raw.process.wait(timeout=5)
    return raw.process.stderr.read().decode()


def test_standard_output_carries_protocol_only_whatever_prints() -> None:
    code = (
        "import os, sys\n"
        "from reasonry.surfaces.mcp import mcp_catalog\n"
        "from reasonry.surfaces.mcp.serve import main\n"
        "from reasonry.surfaces.mcp.tools import McpTool\n"
        "async def shout(arguments, caller):\n"
        "    print('stray', flush=True); os.system('echo child; cat')\n"
        "    return {'ok': True}\n"
        "schema = {'type': 'object', 'properties': {}}\n"
        "tool = McpTool('shout', 'Shout', 'Shouts.', schema, schema, shout)\n"
        "mcp_catalog.page_tool = lambda app: tool\n"
        "main('memory')\n"
    )
    frames = b"\n".join(lines_of(("initialize", offer()), ("tools/call", {"name": "shout"})))
    done = subprocess.run([COMMAND[0], "-c", code], input=frames, capture_output=True, timeout=30, check=True)
    assert [line[:15] for line in done.stdout.splitlines()] == [b'{"jsonrpc":"2.0'] * 2
    assert b"stray" in done.stderr
    assert b"child" in done.stderr


@pytest.mark.slow
def test_every_acknowledged_thought_survives_kill_9(tmp_path: Path) -> None:
    session, acknowledged = None, 0
    for round in range(25):
        with Raw(tmp_path / "store.db") as raw:
            more: dict[str, Any] = {} if session is None else {"sessionId": session}
            reply = raw.think(acknowledged + 1, 999, **more)
            assert reply["thoughtHistoryLength"] >= acknowledged + 1
            session, acknowledged = reply["sessionId"], reply["thoughtHistoryLength"]
            for number in range(round % 3):
                reply = raw.think(acknowledged + 1, 999, sessionId=session)
                acknowledged = reply["thoughtHistoryLength"]
                assert number < 3
            # One more is on its way, heard of or not, when the end comes.
            arguments = thought(acknowledged + 1, 999, sessionId=session)
            raw.send("tools/call", {"name": "sequentialthinking", "arguments": arguments})
            raw.process.send_signal(signal.SIGKILL)
    with Raw(tmp_path / "store.db") as raw:
        kept = raw.call("sessions", action="get", sessionId=session, limit=500)
        assert raw.think(1, 9, sessionId=session)["sessionId"] == session
    assert len(kept["thoughts"]) >= acknowledged
    assert [one["seq"] for one in kept["thoughts"]] == list(range(1, len(kept["thoughts"]) + 1))
