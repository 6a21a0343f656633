"""What comes from outside and is wrong: options, files, MCP servers. A clear error or a failed task, nothing lost."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.engine.policy import Policy
from reasonry.tools import mcp_client
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


# -- options and query


OPTIONS = [
    *("mode=slow", "mode=", "candidate_plans=0", "candidate_plans=6", "candidate_plans=2.5"),
    *("max_iterations=0", "max_iterations=6", "min_iterations=0", "min_iterations=6", "min_iterations=3"),
    *("enforce_iterations=perhaps", "execution_retry_limit=-1", "execution_retry_limit=11"),
    *("complexity_analysis=2", "concurrent_tasks=5", "image=some", "votes=0", "votes=2", "votes=17"),
    *("cost_limit=0", "cost_limit=-1", "cost_limit=nan", "cost_limit=inf", "cost_limit=much"),
    *("max_result_chars=99", "temperature=-0.1", "temperature=2.1", "temperature=nan", "tools=all"),
    *("no_such_option=1", "=1", "votes", "context=" + "x" * 400_001, "candidate_plans=" + "9" * 5_000),
]


def test_an_option_out_of_range_is_refused_by_name(shell: Shell) -> None:
    for option in OPTIONS:
        error = shell.error("--option", option)
        assert error["code"] == "invalid_request", option[:30]
        assert option.partition("=")[0] in error["message"]
    shell.untouched()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("maybe", "is one of: none; number; yes/no"),
        ("", "is one of: none; number; yes/no"),
        ("choice: Python", "at least two choices"),
        ("choice: a | A", "two choices are the same"),
    ],
    ids=["word", "none", "one choice", "twice"],
)
def test_an_unknown_focused_type_is_refused_with_the_legal_ones(shell: Shell, kind: str, why: str) -> None:
    code, document = shell.run(
        *("solve", analyst.QUERY, "--strategy", "analysis", "--model", shell.server.model),
        *("--option", f"focused_answer_type={kind}"),
    )
    assert code == 2
    assert why in document["error"]["message"]


# -- documents


def test_a_context_file_that_cannot_be_read_is_refused(shell: Shell) -> None:
    (shell.folder / "image.bin").write_bytes(os.urandom(5_000))
    (shell.folder / "broken.pdf").write_bytes(b"%PDF-1.7\n" + os.urandom(2_000))
    with (shell.folder / "huge.txt").open("wb") as file:
        file.truncate(100 * 2**20)
    reasons = {
        "missing.md": "'missing.md' cannot be read: No such file",
        "": "a directory, not a regular file",
        ".": "a directory, not a regular file",
        "image.bin": "neither UTF-8 text nor a PDF",
        "broken.pdf": "the PDF broken.pdf cannot be read",
        "huge.txt": "'huge.txt' is over 33,554,432 bytes",
        "/dev/zero": "a device, not a regular file",
        "a\0b": "a",
    }
    for name, reason in reasons.items():
        began = time.monotonic()
        assert reason in shell.refused("--context", name)["message"], name
        assert time.monotonic() - began < 5


def test_an_empty_context_file_has_nothing_to_say_and_does_no_harm(shell: Shell) -> None:
    (shell.folder / "empty.md").write_bytes(b"")
    code, document = shell.solve("--context", "empty.md")
    assert (code, document["answer"]) == (0, "Umbrella")
    assert document["tasks"][0]["result"]["passages"] == []


# -- MCP servers: before the run


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit('no licence')", "no licence"),
        ("print('Welcome'); import time; time.sleep(60)", "did not answer within 1 s"),
        ("while True: print('x' * 65536, end='')", "a message of over 16777216 bytes"),
        ("while True: print('noise')", "did not answer within 1 s"),
    ],
    ids=["dies", "hangs", "floods one line", "floods lines"],
)
def test_a_server_that_does_not_come_up_is_a_clear_error(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    patience = 1.0 if "within 1 s" in reason else 30.0
    monkeypatch.setattr(mcp_client, "OPEN_TIMEOUT_S", patience)
    path = shell.folder / "server.py"
    path.write_text(code)
    error = shell.refused("--mcp", f"{forking_python()} {path}")
    assert reason in error["message"]
    assert error["code"] in ("tool_error", "tool_timeout")


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


def test_a_flood_is_cut_and_judged(shell: Shell) -> None:
    code, document = shell.solve("--mcp", bad_server("result of 10 MB"))
    assert (code, document["answer"]) == (0, "Umbrella")
    task = document["tasks"][1]
    assert task["status"] == "ACCEPTED"
    assert len(task["result"]) < 70_000
    assert max(len(body["messages"][-1]["content"]) for body in shell.server.bodies) < 40_000


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


@pytest.mark.anyio
async def test_a_tool_that_hangs_for_ever_is_a_failed_task(tmp_path: Path, running: ModelServer) -> None:
    hanging = bad_server(f"hangs {tmp_path / 'called'}")
    running.reset(reply=analyst.play)
    async with App("memory", Policy(tool_timeout_s=1.0)) as app:
        participants = await app.equip(Participants(model=running.model, mcp=(hanging,)))
        options = {"candidate_plans": 1, "execution_retry_limit": 1}
        order, performers = app.order(
            RunRequest(
                problem=analyst.QUERY,
                strategy="analysis",
                options=options,
                budget=Budget(),
                participants=participants,
            )
        )
        result = await app.solve(order, performers)
    task = result.details["tasks"][1]
    assert (result.status, task["status"]) == ("done", "FAILED")
    assert task["errors"] == ["climate did not return within 1 s"] * 2


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
