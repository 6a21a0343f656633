"""Servers are started as agents do: one that works, and every way in which one does not."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reasonry.surfaces.setup.agents import EntryShape, Launch, Machine, find_agent, read_launch
from reasonry.surfaces.setup.checks import check_server, find_entries, surroundings

GOOD = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "good", "version": "2"}}
    elif message.get("method") == "tools/list":
        result = {"tools": [{"name": "one"}, {"name": "two"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def check(code: str, folder: Path, *, deadline_s: float = 10.0, **env: str) -> dict[str, Any]:
    launch = Launch(sys.executable, ("-c", code), env)
    return asyncio.run(check_server(launch, os.environ, folder, deadline_s=deadline_s))


def test_a_server_that_works_says_what_it_offers(tmp_path: Path) -> None:
    found = check(GOOD, tmp_path)
    assert found.pop("ms") > 0
    assert found == {"server": "good 2", "protocol": "2025-06-18", "tools": ["one", "two"]}


def test_the_entry_has_its_environment_and_its_folder(tmp_path: Path) -> None:
    code = GOOD.replace('"good"', "__import__('os').environ['MINE'] + __import__('os').getcwd()")
    assert check(code, tmp_path, MINE="mine")["server"] == f"mine{tmp_path} 2"


@pytest.mark.parametrize(
    ("launch", "problem"),
    [
        (Launch("no-such-command", ("mcp",)), "no-such-command is not there, or not on the PATH"),
        (Launch(sys.executable, ("a\0b",)), "null byte"),
    ],
    ids=["no command", "no argument"],
)
def test_what_cannot_be_started(launch: Launch, problem: str, tmp_path: Path) -> None:
    assert problem in asyncio.run(check_server(launch, os.environ, tmp_path))["problem"]


def test_arguments_that_are_none_are_no_launch() -> None:
    assert read_launch({"command": "reasonry", "args": 5}, EntryShape()) is None


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; print('no such option', file=sys.stderr); sys.exit(2)", "exit code 2"),
        ("print('Welcome!'); input()", "has text outside the protocol: 'Welcome!'"),
        (
            """print('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'); input()""",
            "refused initialize",
        ),
        ("import sys; sys.stdin.close(); sys.stdout.write('x' * 9_000_000)", "too long"),
    ],
)
def test_a_server_that_does_not_answer_rightly(code: str, problem: str, tmp_path: Path) -> None:
    found = check(code, tmp_path)
    assert problem in found["problem"]
    assert sys.executable in found["remedy"]


def test_a_server_that_fails_says_why(tmp_path: Path) -> None:
    found = check("raise SystemExit('the store is damaged' + 'x' * 10_000 + '\\nlast words')", tmp_path)
    assert found["stderr"][-1] == "last words"
    assert sum(map(len, found["stderr"])) <= 4000


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a group of processes is of POSIX")
def test_a_server_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('child', 'w').write(str(child.pid)); print('waiting', file=sys.stderr, flush=True); time.sleep(600)"
    )
    begun = time.monotonic()
    found = check(code, tmp_path, deadline_s=1.0)
    assert time.monotonic() - begun < 8
    assert "did not answer within 1 s" in found["problem"]
    assert found["stderr"] == ["waiting"]
    child = int((tmp_path / "child").read_text())
    while is_alive(child):
        assert time.monotonic() - begun < 20
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended may stand in the table until its parent looks."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_programs_that_no_shell_starts_give_little(tmp_path: Path) -> None:
    environ = {"PATH": "/opt/homebrew/bin", "HOME": "/h", "SECRET": "x", "USERPROFILE": "/h"}
    machine = Machine("Darwin", tmp_path, environ, tmp_path / "project")
    desktop, codex, claude = map(find_agent, ("claude-desktop", "codex", "claude"))
    environ_of_desktop, folder = surroundings(desktop, machine)
    assert environ_of_desktop["PATH"] == "/usr/bin:/bin:/usr/sbin:/sbin"
    assert folder == Path(tmp_path.anchor)
    assert "SECRET" not in environ_of_desktop
    environ_of_codex, _ = surroundings(codex, machine)
    assert "SECRET" not in environ_of_codex
    assert environ_of_codex["PATH"] == "/opt/homebrew/bin"
    assert surroundings(claude, machine) == (environ, tmp_path / "project")


def test_entries_are_found_whoever_wrote_them(tmp_path: Path) -> None:
    machine = Machine("Linux", tmp_path, {"PATH": ""}, tmp_path / "project")

    def write(name: str, text: str) -> None:
        path = machine.config_file(find_agent(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    servers = {
        "thinking": {"command": "uvx", "args": ["reasonry", "mcp"]},
        "windows": {"command": r"C:\tools\reasonry.exe", "args": ["mcp"]},
        "off": {"command": "reasonry", "disabled": True},
        "filled in": {"command": "reasonry", "args": ["${workspaceFolder}"]},
        "another": {"command": "npx", "args": ["-y", "other"]},
        "remote": {"url": "https://example.org"},
        "reasonry": {"url": "https://example.org"},
    }
    write("cursor", json.dumps({"mcpServers": servers}))
    write(
        "opencode",
        '{"mcp": {"r": {"type": "local", "command": ["reasonry", "mcp"], "environment": {"A": "b"}}}}',
    )
    write("goose", "extensions:\n  r:\n    cmd: reasonry\n    args: [mcp]\n    enabled: false\n")
    write("codex", "[mcp_servers\n")
    write("claude", '{"mcpServers": {"r": {"command": "reasonry", "cwd": "/x"}}}')
    found = find_entries(machine)
    entries = {(part.agent.name, part.name): part for part in found if part.name}
    assert set(entries) == {
        *(("cursor", name) for name in ("thinking", "windows", "off", "filled in", "reasonry")),
        *(("opencode", "r"), ("goose", "r"), ("claude", "r")),
    }
    assert entries["cursor", "off"].known == entries["goose", "r"].known == {"note": "it is switched off"}
    assert "variables" in entries["cursor", "filled in"].known["note"]
    assert entries["cursor", "reasonry"].launch is None
    assert entries["opencode", "r"].launch == Launch("reasonry", ("mcp",), {"A": "b"})
    assert entries["claude", "r"].folder == Path("/x")
    assert [part.agent.name for part in found if not part.name] == ["codex"]
