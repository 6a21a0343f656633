"""The analysis from outside: a model behind HTTP, an MCP tool server, a document, a sandbox; one word comes out."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ChatRequest, ModelServer

from ..engine.answering import spelled_out
from . import analyst
from .mcp.raw import Raw
from .test_cli import Shell
from .weather import weather_command, weather_over_http


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with ModelServer(reply=analyst.play) as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.reset(reply=analyst.play)
    return running


@pytest.fixture(scope="module")
def weather() -> Iterator[str]:
    """A tool server that is there for all commands: a coached run would start one of its own seventeen times."""
    with weather_over_http() as url:
        yield url


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "packing.md").write_text(analyst.NOTES)
    return Shell(tmp_path)


def words(server: ModelServer, *more: str, focus: str = analyst.FOCUS, weather: str = "") -> list[str]:
    """Return a command of an analysis.

    Args:
        weather: Where the tool server is; empty: the command starts one.
    """
    return [
        *("solve", analyst.QUERY, "--strategy", "analysis", "--model", server.model),
        *("--mcp", weather or weather_command(), "--context", "packing.md"),
        *("--option", "candidate_plans=2", "--option", f"focused_answer_type={focus}", *more),
    ]


def saying(value: Any) -> Callable[[ChatRequest], Any]:
    """Play the analyst, but say this as the focused answer."""
    asks = "Now reason which value the answer comes to"
    return lambda request: (
        {"value": value} if asks in json.dumps(request.body["messages"]) else analyst.play(request)
    )


def prompts(server: ModelServer) -> list[str]:
    return [body["messages"][-1]["content"] for body in server.bodies]


# -- the shell


def test_each_tool_has_really_run_and_its_result_went_on(shell: Shell, server: ModelServer) -> None:
    done = shell.run(*words(server, "--json"))
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert document["answer"] == "Umbrella"
    assert document["focused_answer"] == {"type": analyst.FOCUS, "value": "Umbrella"}
    assert document["usage"]["calls"] == server.stats()["requests"] == 20
    assert [(one["resource_name"], one["status"]) for one in document["tasks"]] == [
        ("knowledge", "ACCEPTED"),
        ("climate", "ACCEPTED"),
        ("py_executor", "ACCEPTED"),
        ("logic_kernel", "ACCEPTED"),
    ]
    knowledge, climate, program, _ = (one["result"] for one in document["tasks"])
    assert knowledge["answer"] == "More than half of the days [1]."
    assert (knowledge["passages"][0]["source"], knowledge["passages"][0]["line"]) == ("packing.md", 1)
    assert climate == {"city": "Bergen", "month": "October", "high_c": 11, "rain_days": 22}
    assert program["output"]["value"] == round(22 / 31, 4)
    assert program["output"]["sandbox"] == "monty"
    assert [one["selected_plan"] for one in document["iterations"]] == ["B", "B"]
    assert "rain_days: 22" in prompts(server)[-2]


# -- coached


def answer(question: dict[str, Any]) -> Any:
    """Answer a question of a coached run as the analyst does."""
    asked, form = question["prompt"], question["answer_schema"]
    return analyst.play(ChatRequest(asked, asked, form, number=1, sample=0, body={}))


def test_a_coached_analysis_runs_to_its_end_over_mcp(tmp_path: Path) -> None:
    with Raw(tmp_path / "s.db") as raw:
        options = {"candidate_plans": 2, "focused_answer_type": analyst.FOCUS}
        shown = raw.call("coach", action="start", problem=analyst.QUERY, strategy="analysis", options=options)
        stages: set[str] = set()
        shared: dict[str, Any] = {}
        while shown["status"] == "active":
            shared |= shown.get("shared", {})
            asked = spelled_out(shown["questions"], shared)
            stages |= {one["stage"] for one in asked}
            answers = {one["id"]: answer(one) for one in asked}
            shown = raw.call("coach", action="answer", run_id=shown["run_id"], answers=answers)
        assert "tasks" not in shown["result"]
        shown = raw.call("coach", action="status", run_id=shown["run_id"])
    assert (shown["status"], shown["result"]["answer"]) == ("done", "Umbrella")
    assert stages == analyst.STAGES - {"query_conversion"}, "the built-in resources take the query as it is"
    assert shown["result"]["tasks"][1]["result"]["output"]["status"] == "ok"


# -- focused answers


@pytest.mark.parametrize(("kind", "value", "printed"), [("yes/no", "yes", "Yes"), ("number", 22.5, "22.5")])
def test_a_script_can_branch_on_it(
    shell: Shell, server: ModelServer, weather: str, kind: str, value: Any, printed: str
) -> None:
    server.reset(reply=saying(value))
    done = shell.run(*words(server, focus=kind, weather=weather))
    assert (done.returncode, done.stdout) == (0, f"{printed}\n")

    server.reset(reply=saying("it depends"))
    done = shell.run(*words(server, focus=kind, weather=weather))
    assert (done.returncode, done.stdout) == (8, "")
    assert "error: " in done.stderr
    document = shell.json("runs", "show", "last")
    assert (document["status"], document["answer"]) == ("failed", None)
    assert document["focused_answer"] is None
    assert document["final_answer"] == "Share: 0.7097"
