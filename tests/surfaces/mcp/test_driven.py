"""Coached and driven runs over MCP, with the raw client and the official one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from .raw import Raw

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
REPLIES = {
    "approach_exploration": {
        "thoughts": [{"thought": "walk", "score": 0.4}, {"thought": "run", "score": 0.7}]
    },
    "continuation_decision": {"answer": "run"},
}


def call(raw: Raw, name: str, **arguments: Any) -> Any:
    return raw.ask("tools/call", {"name": name, "arguments": arguments})["result"]


def test_a_coached_run_goes_from_questions_to_the_result_and_survives_the_server(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with Raw(store) as raw:
        shown = call(
            raw,
            "coach",
            action="start",
            problem="Get there",
            strategy="tree_of_thoughts",
            options={"max_depth": 1},
        )
        shown = shown["structuredContent"]
        assert set(shown["questions"][0]) == {"id", "stage", "prompt", "answer_schema"}
    with Raw(store) as raw:
        run_id = shown["run_id"]
        assert call(raw, "coach", action="status", run_id=run_id)["structuredContent"] == shown
        while shown["status"] == "active":
            answers = [{"id": one["id"], "answer": REPLIES[one["stage"]]} for one in shown["questions"]]
            shown = call(raw, "coach", action="answer", run_id=run_id, answers=answers)["structuredContent"]
        assert (shown["result"]["answer"], shown["status"]) == ("run", "done")


def test_the_schema_of_the_tool_has_an_answer_that_is_refused_and_answers_may_be_a_text() -> None:
    with Raw() as raw:
        started = call(raw, "coach", action="start", problem="6 * 7", strategy="self_consistency")
        shown = started["structuredContent"]
        answers = {"e1": 42, "e2": "No idea,\nsorry."}
        document = raw.call("coach", action="answer", run_id=shown["run_id"], answers=answers)
        assert document["error"]["code"] == "answer_refused"
        tools = {tool["name"]: tool for tool in raw.ask("tools/list")["result"]["tools"]}
        Draft202012Validator(tools["coach"]["outputSchema"]).validate(document)
        text = json.dumps([{"id": "e2", "answer": "42"}])
        result = call(raw, "coach", action="answer", run_id=shown["run_id"], answers=text)
        assert not result["isError"]


def test_solve_is_there_only_where_a_model_is_and_tells_its_progress() -> None:
    with Raw() as raw:
        names = {tool["name"] for tool in raw.ask("tools/list")["result"]["tools"]}
        assert names == {"sequentialthinking", "sessions", "coach", "show"}
    with Raw(REASONRY_MODEL="offline") as raw:
        tools = raw.ask("tools/list")["result"]["tools"]
        assert {tool["name"] for tool in tools} == {
            "sequentialthinking",
            "sessions",
            "coach",
            "solve",
            "show",
        }
        result = call(raw, "solve", problem=PUZZLE)["structuredContent"]
        assert result["answer"].endswith("= 24")
        assert result["usage"]["calls"] > 0
