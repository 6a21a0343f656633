"""Runs over MCP: answered, listed, read, resumed, forked; and which run is meant where none is named."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from .raw import Raw, thought

SUM = "What is 17 + 25?"
LONG_SUM = f"{SUM} {'It is asked by a child, who wants to see how it is done. ' * 5}".strip()
PUZZLE = "Use 4, 9, 10 and 13 to make 24"
ANSWERS: dict[str, Any] = {
    "step_decomposition": {"steps": ["add"]},
    "sequential_reasoning": {"reasoning": "17 + 25 = 42", "answer": "42"},
    "solution_formulation": {"answer": "42"},
}


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    with Raw(tmp_path / "s.db", DISABLE_THOUGHT_LOGGING="true") as server:
        yield server


def start(raw: Raw, problem: str = SUM, strategy: str = "chain_of_thought", **more: Any) -> dict[str, Any]:
    return raw.call("coach", action="start", problem=problem, strategy=strategy, **more)


def answered(raw: Raw, shown: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Answer questions until the run has ended; the run is named only where `more` does."""
    while shown["status"] == "active":
        answers = [{"id": asked["id"], "answer": ANSWERS[asked["stage"]]} for asked in shown["questions"]]
        shown = raw.call("coach", action="answer", answers=answers, **more)
        assert "error" not in shown, shown
    return shown


def error(raw: Raw, **arguments: Any) -> dict[str, Any]:
    return raw.call("coach", **arguments)["error"]


# -- from the first question to the result


def test_a_coached_run_goes_from_questions_to_the_result_and_survives_the_server(tmp_path: Path) -> None:
    with Raw(tmp_path / "s.db") as raw:
        shown = start(raw)
        assert set(shown["questions"][0]) == {"id", "stage", "prompt", "answer_schema"}
    with Raw(tmp_path / "s.db") as raw:
        assert raw.call("coach", action="status", run_id=shown["run_id"]) == shown
        done = answered(raw, shown, run_id=shown["run_id"])
        assert (done["result"]["answer"], done["status"]) == ("42", "done")


def test_the_schema_of_the_tool_has_an_answer_that_is_refused_and_answers_may_be_a_text(raw: Raw) -> None:
    run_id = start(raw, "6 * 7", "self_consistency")["run_id"]
    answers = {"e1": 42, "e2": "No idea,\nsorry."}
    document = raw.call("coach", action="answer", run_id=run_id, answers=answers)
    assert document["error"]["code"] == "answer_refused"
    tools = raw.tools()
    assert set(tools) == {"sequentialthinking", "sessions", "coach", "show"}, "no model, no `solve`"
    Draft202012Validator(tools["coach"]["outputSchema"]).validate(document)
    text = json.dumps([{"id": "e2", "answer": "42"}])
    assert "error" not in raw.call("coach", action="answer", run_id=run_id, answers=text)


# -- which run is meant


def test_without_a_run_id_the_only_open_run_of_the_connection_is_meant(raw: Raw) -> None:
    shown = start(raw)
    assert raw.call("coach", action="status")["run_id"] == shown["run_id"]
    done = answered(raw, shown)
    assert (done["run_id"], done["result"]["answer"]) == (shown["run_id"], "42")
    assert raw.call("coach", action="resume")["status"] == "done"
    second = start(raw, "What is 1 + 1?")
    assert raw.call("coach", action="cancel", run_id=None)["run_id"] == second["run_id"]
    assert raw.call("coach", action="status", run_id="")["run_id"] == second["run_id"]


def test_with_several_open_the_error_lists_them_and_nothing_has_changed(raw: Raw) -> None:
    runs = [start(raw, f"What is {number} + 1?")["run_id"] for number in (1, 2)]
    for action in ({"action": "answer", "answers": []}, {"action": "status"}, {"action": "cancel"}):
        refused = error(raw, **action)
        assert refused["choices"] == runs
        assert all(run in refused["message"] for run in runs)
        assert "What is 2 + 1?" in refused["message"]
    assert {run["status"] for run in raw.call("coach", action="list")["runs"]} == {"active"}


def test_errors_say_where_to_look_in_the_tools_of_an_agent(raw: Raw) -> None:
    shown = start(raw)
    beyond = error(raw, action="fork", run_id=shown["run_id"], at=99)
    assert "a number from 0 to 0" in beyond["message"]
    assert "choices" not in beyond
    unknown = error(raw, action="start", problem=SUM, sessionId="no-such-session")
    assert unknown["code"] == "not_found"
    assert "`sessions list`" in unknown["message"]
    refused = raw.call("sequentialthinking", **{**thought(1), "sessionId": shown["session_id"]})["error"]
    assert "`coach` with `answer`" in refused["message"]
    assert "reasonry" not in refused["message"]


def test_the_first_answer_of_a_new_connection_is_replied_to_in_full(tmp_path: Path) -> None:
    options = {"samples": 2, "window": 1, "stop": "full"}
    with Raw(tmp_path / "s.db") as raw:
        shown = start(raw, strategy="self_consistency", options=options)
        run_id, first = shown["run_id"], shown["questions"][0]["id"]
        again = raw.call("coach", action="answer", answers={first: "42"})
        assert not again.get("shared")
    with Raw(tmp_path / "s.db") as raw:
        fork = raw.call("coach", action="fork", run_id=run_id, at=0)["run_id"]
    with Raw(tmp_path / "s.db") as raw:
        whole = raw.call("coach", action="answer", run_id=fork, answers={first: "42"})
        assert whole["shared"] == shown["shared"]
        assert "[#id]" in whole["note"]


def test_a_new_connection_names_the_runs_that_wait(tmp_path: Path) -> None:
    with Raw(tmp_path / "s.db") as raw:
        run_id = start(raw)["run_id"]
    with Raw(tmp_path / "s.db") as raw:
        refused = error(raw, action="answer", answers=[])
        assert refused["code"] == "invalid_request"
        assert refused["choices"] == [run_id]
        for wrong in (5, [run_id], {"id": run_id}, True):
            refused = error(raw, action="status", run_id=wrong)
            assert refused["field"] == "run_id"
            assert run_id in refused["message"]
        raw.call("coach", action="answer", run_id=run_id, answers=[])
        assert raw.call("coach", action="status")["run_id"] == run_id


def test_a_run_is_named_by_the_beginning_of_its_id_or_as_the_last(tmp_path: Path) -> None:
    with Raw(tmp_path / "s.db", REASONRY_MODEL="offline") as raw:
        driven = raw.call("solve", problem=PUZZLE)["run_id"]
        assert raw.call("coach", action="status", run_id="last")["run_id"] == driven
        first, second = (start(raw, f"What is {number} + 1?")["run_id"] for number in (1, 2))
        assert raw.call("coach", action="status", run_id="last")["run_id"] == second
        raw.call("coach", action="answer", run_id=first, answers=[])
        assert raw.call("coach", action="status", run_id="last")["run_id"] == first
        assert raw.call("coach", action="status", run_id=second[:-1].upper())["run_id"] == second
        assert {first, second} <= set(error(raw, action="cancel", run_id=first[:4])["choices"])
        assert error(raw, action="status", run_id="beef")["code"] == "not_found"
    with Raw(tmp_path / "s.db") as raw:
        assert raw.call("coach", action="status", run_id="last")["run_id"] == second


def test_an_empty_store_says_how_a_run_begins(raw: Raw) -> None:
    refused = error(raw, action="status")
    assert "`start`" in refused["message"]
    assert refused["choices"] == []
    assert raw.call("coach", action="list") == {"runs": [], "next_cursor": None}


# -- one run read


def test_a_run_is_read_in_pages_with_all_that_was_asked_and_replied(raw: Raw) -> None:
    shown = start(raw, LONG_SUM, options={"decompose": True})
    answered(raw, shown)
    whole = raw.call("coach", action="read", run_id=shown["run_id"])
    assert whole["problem"] == LONG_SUM
    assert whole["options"]["decompose"] is True
    assert whole["answer"] == "42"
    assert whole["path"][0] == "problem_reception"
    assert whole["path"][-1] == "final_response"
    assert "42" in whole["questions"][-1]["reply"]
    assert [asked["fork_at"] for asked in whole["questions"]] == list(range(len(whole["questions"])))
    exported = raw.call("sessions", action="get", sessionId=whole["session_id"])
    assert [thought["thought"] for thought in whole["thoughts"]] == [
        thought["thought"] for thought in exported["thoughts"]
    ]
    pages = [raw.call("coach", action="read", limit=1)]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(raw.call("coach", action="read", limit=1, cursor=cursor))
    assert ["problem" in page for page in pages] == [True] + [False] * (len(pages) - 1)
    assert all(len(page["thoughts"]) <= 1 for page in pages)
    assert [one for page in pages for one in page["thoughts"]] == whole["thoughts"]
    assert [one for page in pages for one in page["questions"]] == whole["questions"]


def test_what_is_read_is_bounded_and_says_what_it_cut(raw: Raw) -> None:
    shown = start(raw, "x" * 90_000, "self_consistency", options={"samples": 20})
    document = raw.call("coach", action="read", limit=100)
    assert "(90,000 characters in all)" in document["problem"]
    assert len(json.dumps(document)) < 60_000
    assert document["questions"]
    assert document["next_cursor"] is None or int(document["next_cursor"]) >= 1
    assert shown["status"] == "active"


def test_an_active_run_is_read_as_it_stands(raw: Raw) -> None:
    start(raw)
    document = raw.call("coach", action="read")
    assert document["status"] == "active"
    assert "reply" not in document["questions"][0]
    assert "fork_at" not in document["questions"][0]


# -- what is not listed is not brought in


def test_resume_and_fork_bring_in_no_verifier_and_no_tool_that_is_not_listed_now(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("{}")
    (tmp_path / "calc.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    for name in ("one.md", "two.md"):
        (tmp_path / name).write_text("Herons nest in April.")
    listed = {
        "REASONRY_VERIFIERS": f"fits=json-schema:{tmp_path}/schema.json",
        "REASONRY_TOOLS": f"sum={tmp_path}/calc.py:add",
        "REASONRY_DOCUMENTS": f"one={tmp_path}/one.md,two={tmp_path}/two.md",
    }
    with Raw(tmp_path / "s.db", **listed) as raw:
        checked = start(raw, verifier="fits")["run_id"]
        armed = start(raw, strategy="react", tools=["sum"])["run_id"]
        reading = start(raw, strategy="analysis", documents=["one", "two"])["run_id"]
    with Raw(tmp_path / "s.db", REASONRY_DOCUMENTS=f"one={tmp_path}/one.md") as raw:
        for action in ({"action": "resume"}, {"action": "fork", "at": 0}):
            refused = error(raw, run_id=checked, **action)
            assert "REASONRY_VERIFIERS" in refused["message"]
            assert "its operator can continue" in refused["message"]
            assert "add" in json.dumps(error(raw, run_id=armed, **action))
            assert "search_documents" in json.dumps(error(raw, run_id=reading, **action))
            assert "tools" in json.dumps(error(raw, run_id=armed, tools=["sum"], **action))
        assert len(raw.call("coach", action="list")["runs"]) == 3
    with Raw(tmp_path / "s.db", **listed) as raw:
        assert raw.call("coach", action="resume", run_id=checked)["questions"]
        assert raw.call("coach", action="fork", run_id=armed, at=0, tools=["sum"])["questions"]
        assert raw.call("coach", action="fork", run_id=armed, at=0)["questions"]
        assert raw.call("coach", action="fork", run_id=reading, at=0)["questions"]


def test_the_operators_verifiers_check_what_the_agent_answers(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "object", "required": ["sum"]}')
    with Raw(tmp_path / "s.db", REASONRY_VERIFIERS=f"fits=json-schema:{tmp_path}/schema.json") as raw:
        shown = start(raw, PUZZLE, "tree_of_thoughts", verifier="arithmetic:24")
        thoughts = [
            {"thought": "4 + 9 = 14 (left: 10 13 14)", "score": 0.9},
            {"thought": "(10 - 4) * (13 - 9) = 24", "score": 0.1},
        ]
        answers = [{"id": shown["questions"][0]["id"], "answer": {"thoughts": thoughts}}]
        done = raw.call("coach", action="answer", answers=answers)
        assert done["result"]["termination"]["reason"] == "verified"
        shown = start(raw, "The sum as JSON", verifier="fits")
        answers = [{"id": shown["questions"][0]["id"], "answer": {"reasoning": "17 + 25", "answer": "42"}}]
        shown = raw.call("coach", action="answer", answers=answers)
        assert shown["status"] == "active"
        assert "sum" in shown["questions"][0]["prompt"]


# -- one question, for the sub-agent that answers it


def test_a_sub_agent_reads_its_question_whole_and_answers_it(tmp_path: Path) -> None:
    with Raw(tmp_path / "s.db") as agent, Raw(tmp_path / "s.db") as sub_agent:
        shown = agent.call("coach", action="refute", problem=LONG_SUM, claims=["It is 42.", "A child asks."])
        run_id, asked = shown["run_id"], [question["id"] for question in shown["questions"]]
        read = [sub_agent.call("coach", action="question", run_id=run_id, id=each) for each in asked]
        assert [each["id"] for each in read] == asked
        assert all(LONG_SUM in each["prompt"] and "[#" not in each["prompt"] for each in read)
        assert read[0]["answer_schema"]["type"] == "object"
        vote = {"quote": "17 + 25", "reason": "It was counted.", "verdict": "holds"}
        sub_agent.call("coach", action="answer", run_id=run_id, answers={asked[0]: vote})
        for gone in (asked[0], "e99"):
            refused = error(agent, action="question", run_id=run_id, id=gone)
            assert (refused["code"], refused["choices"]) == ("conflict", asked[1:])
            assert ", ".join(asked[1:]) in refused["message"]
        unknown = error(agent, action="question", run_id="0" * 32, id=asked[1])
        assert unknown["choices"] == [run_id]
        assert run_id in unknown["message"]


def test_equal_questions_are_read_under_their_one_id_and_under_their_own(raw: Raw) -> None:
    shown = start(raw, LONG_SUM, "self_consistency", options={"samples": 3, "stop": "full"})
    (asked,) = shown["questions"]
    assert asked["id"] == "e1,e2,e3"
    whole = raw.call("coach", action="question", id="e1,e2,e3")
    assert whole["prompt"] == raw.call("coach", action="question", id="e2")["prompt"]
    assert LONG_SUM in whole["prompt"]


def test_a_review_says_how_much_it_asks_and_33_claims_of_3_things_take_12_questions_at_most(
    raw: Raw,
) -> None:
    claims = [f"Claim {number % 3}, worded for the time {number}." for number in range(33)]
    shown = raw.call("coach", action="refute", problem=LONG_SUM, claims=claims)
    assert re.search(r"At most 100 questions, about [\d,]+ tokens with their answers", shown["note"])
    assert "1. Claim 0, worded" in json.dumps(shown["shared"])
    asked = 0
    while shown["status"] == "active":
        answers: dict[str, Any] = {}
        for question in shown["questions"]:
            asked += 1
            prompt = raw.call("coach", action="question", id=question["id"])["prompt"]
            vote = {"quote": "17 + 25", "reason": "shown", "verdict": "unsure"}
            groups = {"groups": [[*range(kind + 1, 34, 3)] for kind in range(3)]}
            answers[question["id"]] = groups if "1. Claim" in prompt else vote
        assert len(json.dumps(shown)) <= 12_000
        shown = raw.call("coach", action="answer", answers=answers)
    assert asked == 10
    assert len(json.dumps(shown)) <= 12_000
    assert [len(claim["also"]) for claim in shown["result"]["claims"]] == [10, 10, 10]


def test_the_verdict_on_a_claim_is_told_at_each_of_its_places(raw: Raw) -> None:
    texts = [
        "The copy takes 28 hours.",
        "It runs 28 hours.",
        "We start it.",
        "It is long.",
        "28 hours is all.",
    ]
    for number, text in enumerate(texts, 1):
        session = raw.think(number, thought=text)["sessionId"]
    shown = raw.call("coach", action="refute", session_id=session, claims=texts)
    (group,) = shown["questions"]
    grouped = {group["id"]: {"groups": [[1, 2, 5], [3], [4]]}}
    shown = raw.call("coach", action="answer", run_id=shown["run_id"], answers=grouped)
    while shown["status"] == "active":
        vote = {"quote": "28 hours", "reason": "It takes 30.", "verdict": "fails"}
        answers = {question["id"]: vote for question in shown["questions"]}
        shown = raw.call("coach", action="answer", run_id=shown["run_id"], answers=answers)
    reply = raw.think(6, thought="Now what?")
    told = [notice["message"] for notice in reply["notices"] if notice["reason"] == "refuted"]
    assert {message.partition(",")[0] for message in told} == {f"Thought {number}" for number in range(1, 6)}
