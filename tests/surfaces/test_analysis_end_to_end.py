"""The analysis from outside: a model behind HTTP, an MCP tool server, a document, a sandbox; one word comes out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reasonry
from reasonry.strategies.analysis.focus import WORDS, focus_of
from tests.in_process import run
from tests.servers import ChatRequest, ModelServer

from ..engine.answering import spelled_out
from . import analyst
from .mcp.raw import Raw
from .test_cli import Shell
from .weather import weather_command, weather_over_http

CLAIM = {"declarations": ["(declare-const days Int)"], "assumptions": ["(= days 22)"]}


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


def saying(*values: Any) -> Callable[[ChatRequest], Any]:
    """Play the analyst, but say these as focused answers, one after another, the last one for ever."""
    left = list(values)

    def reply(request: ChatRequest) -> Any:
        if "Now reason which value the answer comes to" not in json.dumps(request.body["messages"]):
            return analyst.play(request)
        return left.pop(0) if len(left) > 1 else left[0]

    return reply


def prompts(server: ModelServer) -> list[str]:
    return [body["messages"][-1]["content"] for body in server.bodies]


# -- the shell


def test_the_last_line_on_standard_output_is_the_word_alone(
    shell: Shell, server: ModelServer, weather: str
) -> None:
    done = shell.run(*words(server, weather=weather))
    assert (done.returncode, done.stdout) == (0, "Umbrella\n")
    assert "answered: " in done.stderr


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


def test_a_recording_of_it_plays_without_the_model(shell: Shell, server: ModelServer) -> None:
    first = shell.json(*words(server, "--record", "played.jsonl"))
    again = words(server)
    again[again.index(server.model)] = "recorded:played.jsonl"
    second = shell.json(*again)
    assert server.stats()["requests"] == 20
    assert (second["status"], second["answer"]) == ("done", "Umbrella")
    assert second["tasks"] == first["tasks"]


def test_a_checked_claim_goes_into_the_result(shell: Shell, server: ModelServer, weather: str) -> None:
    def reply(request: ChatRequest) -> Any:
        if "steps" not in (request.form or {}).get("properties", {}):
            return analyst.play(request)
        claim = {**CLAIM, "claim": "(> (* 2 days) 31)"}
        return {"steps": ["twice 22 is over 31"], "conclusion": "more than half", "formal_claim": claim}

    server.reset(reply=reply)
    document = shell.json(*words(server, weather=weather))
    assert document["tasks"][3]["result"]["check"]["verdict"] == "proved"


def test_a_program_that_fails_is_shown_its_error_and_corrected(
    shell: Shell, server: ModelServer, weather: str
) -> None:
    def reply(request: ChatRequest) -> Any:
        if "code" in (request.form or {}).get("properties", {}) and "went wrong" not in request.prompt:
            return {"code": "open('/etc/passwd').read()"}
        return analyst.play(request)

    server.reset(reply=reply)
    document = shell.json(*words(server, weather=weather))
    task = document["tasks"][2]
    assert (document["answer"], task["status"], task["attempts"]) == ("Umbrella", "ACCEPTED", 2)
    assert "root:" not in json.dumps(document)
    shown = next(prompt for prompt in prompts(server) if "What went wrong so far" in prompt)
    assert "open('/etc/passwd')" in shown


# -- Python and MCP


@pytest.mark.anyio
async def test_the_same_from_python(tmp_path: Path, server: ModelServer) -> None:
    (tmp_path / "packing.md").write_text(analyst.NOTES)
    result = await reasonry.solve(
        analyst.QUERY,
        strategy="analysis",
        model=server.model,
        options={"candidate_plans": 2, "focused_answer_type": analyst.FOCUS},
        mcp=[weather_command()],
        context=[str(tmp_path / "packing.md")],
        store="memory",
    )
    assert (result.status, result.answer) == ("done", "Umbrella")
    assert [one["status"] for one in result.details["tasks"]] == ["ACCEPTED"] * 4


def test_the_same_over_mcp_with_the_sandbox_as_its_tool(tmp_path: Path, server: ModelServer) -> None:
    with Raw(tmp_path / "s.db", REASONRY_MODEL=server.model) as raw:
        options = {"candidate_plans": 2, "focused_answer_type": analyst.FOCUS}
        document = raw.call("solve", problem=analyst.QUERY, strategy="analysis", options=options)
        assert (document["status"], document["answer"]) == ("done", "Umbrella")
        assert [one["resource_name"] for one in document["tasks"]] == ["knowledge", "py_executor"]
        assert document["tasks"][1]["result"]["output"]["value"] == round(20 / 31, 4)
        for wrong in ({"focused_answer_type": "maybe"}, {"votes": 2}, {"candidate_plans": 9}):
            result = raw.call("solve", problem=analyst.QUERY, strategy="analysis", options=wrong)
            assert result["error"]["code"] == "invalid_request"


# -- coached


def answered(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer the questions of a coached run as the analyst does."""
    return [
        {
            "id": one["id"],
            "answer": analyst.play(
                ChatRequest(one["prompt"], one["prompt"], one["answer_schema"], number=1, sample=0, body={})
            ),
        }
        for one in document["questions"]
    ]


def test_a_coached_analysis_runs_to_its_end_from_the_shell(
    shell: Shell, weather: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shell.folder)
    monkeypatch.setenv("REASONRY_STORE", shell.environ["REASONRY_STORE"])
    tools = ["--mcp", weather, "--context", "packing.md"]

    def tell(*arguments: str) -> tuple[int, dict[str, Any]]:
        # In this process: a shell's would be the same, and sixteen of them slow.
        code = run(["coach", *arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    shown = shell.json(
        *("coach", "start", analyst.QUERY, "--strategy", "analysis", "--option", "complexity_analysis=false"),
        *("--option", "candidate_plans=1", "--option", f"focused_answer_type={analyst.FOCUS}", *tools),
    )
    stages: list[str] = []
    answers = shell.folder / "answers.json"
    while shown["questions"][0]["stage"] != "focused_answer":
        stages += [one["stage"] for one in shown["questions"]]
        answers.write_text(json.dumps({"answers": answered(shown)}))
        given = ["answer", shown["run_id"], "--answers", str(answers)]
        if stages[-1] == "synthesis":
            code, refused = tell(*given)
            assert (code, "climate" in refused["error"]["tools"]) == (2, True), "its tools are not named"
        code, shown = tell(*given, *tools)
        assert code == 0
    text = json.dumps({"answers": answered(shown)})
    done = shell.run("coach", "answer", shown["run_id"], *tools, text=text)
    assert (done.returncode, done.stdout) == (0, "Umbrella\n")
    result = shell.json("coach", "status", shown["run_id"])["result"]
    assert result["tasks"][1]["result"]["rain_days"] == 22
    assert result["tasks"][2]["result"]["output"]["value"] == round(22 / 31, 4)
    assert set(stages) == analyst.STAGES - {"complexity_analysis", "plan_evaluation", "focused_answer"}


def test_a_coached_analysis_runs_to_its_end_over_mcp(tmp_path: Path) -> None:
    with Raw(tmp_path / "s.db") as raw:
        options = {"candidate_plans": 2, "focused_answer_type": analyst.FOCUS}
        shown = raw.call("coach", action="start", problem=analyst.QUERY, strategy="analysis", options=options)
        stages: set[str] = set()
        shared: dict[str, Any] = {}
        while shown["status"] == "active":
            shared |= shown.get("shared", {})
            asked = {"questions": spelled_out(shown["questions"], shared)}
            stages |= {one["stage"] for one in asked["questions"]}
            shown = raw.call("coach", action="answer", run_id=shown["run_id"], answers=answered(asked))
        assert "tasks" not in shown["result"]
        shown = raw.call("coach", action="status", run_id=shown["run_id"])
    assert (shown["status"], shown["result"]["answer"]) == ("done", "Umbrella")
    assert stages == analyst.STAGES - {"query_conversion"}, "the built-in resources take the query as it is"
    assert shown["result"]["tasks"][1]["result"]["output"]["status"] == "ok"


@pytest.mark.anyio
async def test_a_coached_analysis_runs_to_its_end_from_python(tmp_path: Path) -> None:
    (tmp_path / "packing.md").write_text(analyst.NOTES)
    async with await reasonry.coach(
        analyst.QUERY,
        strategy="analysis",
        options={"candidate_plans": 1, "focused_answer_type": "yes/no", "complexity_analysis": False},
        mcp=[weather_command()],
        context=[str(tmp_path / "packing.md")],
        store="memory",
    ) as coaching:
        while coaching.questions:
            given = {one["id"]: one["answer"] for one in answered(coaching.document)}
            last = coaching.questions[0]["stage"] == "focused_answer"
            await coaching.answer(dict.fromkeys(given, "yes") if last else given)
    assert coaching.document["result"]["answer"] == "Yes"
    assert coaching.document["result"]["tasks"][0]["result"]["passages"]


# -- focused answers

KINDS = [*WORDS, "number", "choice: Umbrella | Hat"]


def right(kind: str) -> Any:
    focus = focus_of(kind)
    assert focus is not None
    return focus.words[0] if focus.words else 22.5


async def focused(server: ModelServer, kind: str) -> reasonry.Result:
    return await reasonry.solve(
        analyst.QUERY,
        strategy="analysis",
        model=server.model,
        options={"candidate_plans": 1, "complexity_analysis": False, "focused_answer_type": kind},
        store="memory",
    )


@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS)
async def test_a_focused_answer_right_wrong_at_first_and_never_right(server: ModelServer, kind: str) -> None:
    server.reset(reply=saying({"value": right(kind)}))
    result = await focused(server, kind)
    calls = result.usage.calls
    assert (result.status, result.details["focused_answer"]["value"]) == ("done", right(kind))
    assert result.answer == str(right(kind))

    server.reset(reply=saying({"value": [right(kind)]}))
    result = await focused(server, kind)
    assert (result.answer, result.usage.calls) == (str(right(kind)), calls)

    server.reset(reply=saying({"value": "hard to say"}, "I would rather not say", {"value": right(kind)}))
    result = await focused(server, kind)
    assert (result.status, result.answer) == ("done", str(right(kind)))
    assert result.usage.calls == calls + 2
    assert "Value must be" in json.dumps(server.bodies[-1]["messages"])

    for stubborn in (
        {"value": "hard to say"},
        "Umbrella or Hat, Yes or True",
        {"value": None},
        {"value": ["Yes", "No"]},
    ):
        server.reset(reply=saying(stubborn))
        result = await focused(server, kind)
        assert result.usage.calls == calls + 1, "the same reply twice ends the asking"
        assert (result.status, result.answer) == ("failed", None)
        assert (result.termination.reason, result.termination.code) == (
            "focused_answer_failed",
            "output_invalid",
        )
        assert result.details["focused_answer"] is None


@pytest.mark.parametrize(("kind", "printed"), [("yes/no", "Yes"), ("number", "22.5")])
def test_a_script_can_branch_on_it(
    shell: Shell, server: ModelServer, weather: str, kind: str, printed: str
) -> None:
    server.reset(reply=saying({"value": right(kind)}))
    done = shell.run(*words(server, focus=kind, weather=weather))
    assert (done.returncode, done.stdout) == (0, f"{printed}\n")

    server.reset(reply=saying({"value": "it depends"}))
    done = shell.run(*words(server, focus=kind, weather=weather))
    assert (done.returncode, done.stdout) == (8, "")
    assert "error: " in done.stderr
    done = shell.run(*words(server, "--json", focus=kind, weather=weather))
    document = json.loads(done.stdout)
    assert (done.returncode, document["status"], document["answer"]) == (8, "failed", None)
    assert document["focused_answer"] is None
    assert document["final_answer"] == "Share: 0.7097"
