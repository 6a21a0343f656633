"""What comes from outside and is wrong: options, files, MCP servers. A clear error or a failed task, nothing lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forked import forking_python
from tests.in_process import run
from tests.servers import ChatRequest, ModelServer

from ..tools import hostile_server
from . import analyst
from .weather import weather_command


class Shell:
    """The command line in this process, with a model server and a store of its own."""

    def __init__(self, folder: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.server, self.capsys = folder, server, capsys
        self.store = folder / "store.db"

    def run(self, *words: str) -> tuple[int, Any]:
        code = run([*words, "--store", str(self.store), "--json"])
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        assert "internal error" not in out
        return code, json.loads(out)

    def solve(self, *more: str, query: str = analyst.QUERY) -> tuple[int, Any]:
        words = ["solve", query, "--strategy", "analysis", "--model", self.server.model]
        return self.run(*words, "--option", "focused_answer_type=" + analyst.FOCUS, *more)

    def error(self, *more: str, query: str = analyst.QUERY) -> dict[str, Any]:
        """Solve; return the error."""
        code, document = self.solve(*more, query=query)
        error = document["error"]
        assert code == (9 if error["code"].startswith("tool") else 2)
        return error

    def refused(self, *more: str, query: str = analyst.QUERY) -> dict[str, Any]:
        """Solve; return the error, having looked that nothing was asked and nothing written."""
        error = self.error(*more, query=query)
        self.untouched()
        return error

    def untouched(self) -> None:
        """Look that nothing was asked and nothing written."""
        assert self.server.stats()["requests"] == 0
        assert self.run("runs", "list")[1]["runs"] == []
        assert self.run("sessions", "list")[1]["sessions"] == []


def bad_server(kind: str) -> str:
    return f"{forking_python()} {hostile_server.__file__} '{kind}'"


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer(reply=analyst.play) as server:
        yield server


@pytest.fixture
def shell(
    tmp_path: Path,
    running: ModelServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    monkeypatch.chdir(tmp_path)
    running.reset(reply=analyst.play)
    return Shell(tmp_path, running, capsys)


# -- MCP servers: before the run


def test_a_server_that_does_not_come_up_is_a_clear_error(shell: Shell) -> None:
    path = shell.folder / "server.py"
    path.write_text("import sys; sys.exit('no licence')")
    error = shell.refused("--mcp", f"{forking_python()} {path}")
    assert "no licence" in error["message"]
    assert error["code"] == "tool_error"


# -- MCP servers: in the middle of the run


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("dies", "no memory left"), ("result of 70 MB", "a message of over 16777216 bytes")],
)
def test_a_server_that_goes_away_costs_its_task_and_not_the_run(shell: Shell, kind: str, reason: str) -> None:
    code, document = shell.solve("--mcp", bad_server(kind))
    assert (code, document["status"], document["answer"]) == (0, "done", "Umbrella")
    task = document["tasks"][1]
    assert (task["resource_name"], task["status"], task["result"]) == ("climate", "FAILED", None)
    assert reason in task["errors"][0]
    assert len(task["errors"]) == 2


def test_a_server_that_changes_its_tools_gives_the_run_no_other(shell: Shell) -> None:
    def reply(request: ChatRequest) -> Any:
        # From the second iteration on, ask for the tool that has gone.
        found = analyst.play(request)
        if request.form and "tasks" in found and "Iteration 1" in request.prompt:
            found["tasks"].append({"resource_name": "climate", "task_query": "Bergen in July"})
        return found

    shell.server.reset(reply=reply)
    code, document = shell.solve("--mcp", bad_server("serves once"), "--option", "candidate_plans=1")
    assert (code, document["answer"]) == (0, "Umbrella")
    by_place = [(one["resource_name"], one["status"]) for one in document["tasks"]]
    assert by_place[1] == ("climate", "ACCEPTED")
    assert by_place[-1] == ("climate", "FAILED")
    program = document["tasks"][2]
    assert (program["resource_name"], program["result"]["output"]["sandbox"]) == ("py_executor", "monty")
    assert "owned" not in json.dumps(document)
    systems = {body["messages"][0]["content"] for body in shell.server.bodies}
    assert len(systems) == 1, "no question ever offers another tool"


def test_a_tool_that_hangs_is_cut_off_at_the_limit_and_the_run_goes_on_with_a_better_server(
    shell: Shell,
) -> None:
    called = shell.folder / "called"
    # The first limit that is enough, on this machine, for coming as far as the tool.
    for seconds in (1, 4, 16, 64):
        shell.server.reset(reply=analyst.play)
        limit = ("--max-seconds", str(seconds), "--option", "candidate_plans=1")
        began = time.monotonic()
        code, document = shell.solve("--mcp", bad_server(f"hangs {called}"), *limit)
        if called.exists():
            break
    assert (code, document["outcome"], document["termination"]["reason"]) == (10, "stopped", "max_seconds")
    assert time.monotonic() - began < seconds + 13
    assert document["tasks"][0]["status"] == "ACCEPTED"
    more = ["--max-seconds", "100", "--mcp", weather_command()]
    refused_code, refused = shell.run("runs", "resume", document["run_id"], "--max-seconds", "100")
    assert (refused_code, refused["error"]["tools"]) == (2, ["climate"])
    code, document = shell.run("runs", "resume", document["run_id"], *more)
    assert (code, document["answer"]) == (0, "Umbrella")
    assert document["tasks"][1]["result"]["rain_days"] == 22
    assert document["usage"]["calls"] == shell.server.stats()["requests"]


def test_two_servers_of_one_name_keep_their_tools_apart(shell: Shell) -> None:
    def reply(request: ChatRequest) -> Any:
        properties = (request.form or {}).get("properties", {})
        if "tasks" in properties:
            return {"tasks": [{"resource_name": "python2.climate", "task_query": "Bergen in October"}] * 2}
        if "tool_input" in properties:
            return {"tool_input": {"city": "Bergen", "month": "October"}}
        if analyst.SYNTHESIZE in request.prompt:
            return "It rains.\n<answer>Share: 0.7</answer>"
        return analyst.play(request)

    shell.server.reset(reply=reply)
    servers = ["--mcp", bad_server("dies"), "--mcp", weather_command()]
    code, document = shell.solve(*servers, "--option", "candidate_plans=1")
    assert (code, document["answer"]) == (0, "Umbrella")
    assert document["tasks"][0]["result"]["rain_days"] == 22
