"""Texts that exist already, compared on every surface: nothing is written in their place, and none is lost."""

import asyncio
import json
import re
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import reasonry
from reasonry.errors import UsageError

from ..in_process import call_command
from .http.serving import serve_in_thread
from .mcp.raw import Raw

PROBLEM = "Write a Python function add(a, b)."
WRONG, RIGHT = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
SAME, LONG = "# adds\ndef add(a,b):\n  return a+b\n", "def add(a, b):\n    return sum((a, b))\n"
TEXTS = {"wrong.py": WRONG, "right.py": RIGHT, "same.py": SAME, "long.py": LONG}
TESTS = "from answer import add\nassert add(2, 3) == 5, 'two and three'\n"


def select(folder: Path, *words: str, problem: str = PROBLEM, **texts: str) -> CompletedProcess[str]:
    for name, text in (texts or TEXTS).items():
        (folder / name).write_text(text, "utf-8")
    (folder / "check.py").write_text(TESTS, "utf-8")
    environ = {"REASONRY_STORE": "memory", "HOME": str(folder), "PATH": "", "OLLAMA_HOST": "127.0.0.1:9"}
    return call_command(["select", *words, f"--problem={problem}"], env=environ, cwd=folder)


def judge(folder: Path, *ratings: dict[str, int]) -> str:
    """Write the replies of a judge, and return the model that gives them in turn."""
    replies = [{"reason": "traced", "ratings": each} if len(each) > 1 else {"reason": "traced", "rating": 9}
               for each in ratings]  # fmt: skip
    lines = [json.dumps({"stage": "comparison", "reply": json.dumps(reply)}) for reply in replies]
    (folder / "judge.jsonl").write_text("\n".join(lines), "utf-8")
    return "--model=scripted:judge.jsonl"


def test_a_verifier_sees_all_candidates_first_and_decides_alone_where_no_model_is_set(tmp_path: Path) -> None:
    verifier = f"--verifier=command-unsandboxed:{sys.executable} check.py"
    done = select(tmp_path, *TEXTS, verifier, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["outcome"], document["answer"]) == ("solved", RIGHT)
    assert [row["candidate"] for row in document["ranking"]] == ["right.py", "long.py", "wrong.py"]
    assert document["ranking"][0]["same"] == ["same.py"]
    assert "two and three" in document["ranking"][2]["failed"]
    assert document["warnings"] == [
        "2 candidates passed, and no judge compared them: the answer is one of them"
    ]
    assert {WRONG, RIGHT, LONG} == {each["answer"] for each in document["drafts"]}


def test_the_table_names_the_files_and_the_best_text_alone_is_on_standard_output(tmp_path: Path) -> None:
    model = judge(tmp_path, {"A": 9, "B": 2}, {"A": 2, "B": 9})
    done = select(
        tmp_path, "a.txt", "b.txt", model, problem="Say hello.", **{"a.txt": "Hello.", "b.txt": "Hi!"}
    )
    assert done.returncode == 0, done.stderr
    best = done.stdout.strip()
    first, second = ("a.txt", "b.txt") if best == "Hello." else ("b.txt", "a.txt")
    assert re.search(
        rf"- 1\. {first} · score 1\.00 · traced \(A is .*- 2\. {second} · score 0\.00", done.stderr, re.S
    )
    assert "2 calls" in done.stderr


def test_one_candidate_is_judged_alone_and_criteria_replace_the_general_question(tmp_path: Path) -> None:
    model = judge(tmp_path, {"A": 9})
    criteria = ("--criteria", "brevity=Shorter is better.", "--criteria", "tone=It is friendly")
    done = select(tmp_path, "a.txt", model, *criteria, "--json", problem="Say hello.", **{"a.txt": "Hello."})
    document = json.loads(done.stdout)
    assert (document["outcome"], document["usage"]["calls"]) == ("answered", 1)
    assert document["ranking"] == [{"candidate": "a.txt", "score": 0.89, "reasons": ["traced"]}]
    assert document["comparisons"][0]["ratings"] == [9.0]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "at least one text"),
        (["a.txt", "empty.txt"], "empty.txt is empty"),
        (["a.txt", "binary.txt"], "'binary.txt' is not UTF-8 text"),
        (["a.txt", "none.txt"], "'none.txt' cannot be read: No such file"),
        (["a.txt", "nul.txt"], "nul.txt holds a NUL character"),
        (["a.txt", "long.txt"], "long.txt is too much"),
        ([f"{number}.txt" for number in range(65)], "64.txt is too much; at most 64 candidates"),
    ],
)
def test_bad_candidates_are_refused_by_name(tmp_path: Path, files: list[str], said: str) -> None:
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    texts = {f"{number}.txt": str(number) for number in range(65)}
    texts |= {"a.txt": "Hello.", "empty.txt": " \n", "nul.txt": "a\0b", "long.txt": "x" * 1_000_001}
    done = select(tmp_path, *files, "--model=offline", **texts)
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [([], "no model is set"), (["--model=offline"], "name a verifier, or a model that judges")],
)
def test_without_a_verifier_and_a_model_that_judges_nothing_is_run(
    tmp_path: Path, words: list[str], said: str
) -> None:
    done = select(tmp_path, "right.py", "wrong.py", *words)
    assert (done.returncode, said in done.stderr) == (2, True)


@pytest.mark.parametrize("model", ["--model=offline", "--model=scripted:judge.jsonl"])
def test_where_nothing_tells_candidates_apart_the_run_is_unsolved(tmp_path: Path, model: str) -> None:
    lines = [json.dumps({"stage": "comparison", "reply": "Both are good."})] * 12
    (tmp_path / "judge.jsonl").write_text("\n".join(lines), "utf-8")
    done = select(tmp_path, "right.py", "wrong.py", model, "--verifier=arithmetic:24", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["outcome"], document["answer"]) == (11, "unsolved", None)
    assert document["termination"]["detail"].startswith("nothing decided between 2 candidates")
    assert (document["usage"]["calls"] == 0) == (model == "--model=offline")


def test_a_pair_that_a_judge_has_no_room_for_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    texts = {"a.txt": "Hello.", "b.txt": "x" * 60_000, "c.txt": "y" * 60_000}
    done = select(tmp_path, *texts, judge(tmp_path, {"A": 9, "B": 1}), "--json", **texts)
    document = json.loads(done.stdout)
    assert done.returncode == 2
    assert document["termination"]["detail"].startswith("b.txt and c.txt have 120,000 characters")
    assert document["usage"]["calls"] == 0


def test_python_selects_among_64_within_what_the_budget_pays_whatever_the_judge_sees_first() -> None:
    asked: list[str] = []

    async def prefers_the_first(messages: Any) -> str:
        asked.append(str(messages))
        labels = re.findall(r"Candidate (\w+):", asked[-1])
        return json.dumps({"reason": "seen", "ratings": {name: 10 - at for at, name in enumerate(labels)}})

    texts = {f"text {number}": f"A text about the number {number}." for number in range(64)}
    result = asyncio.run(reasonry.select("Say something.", texts, model=prefers_the_first, store="memory"))
    assert (result.outcome, result.usage.calls) == ("answered", 18)
    assert len(result.details["ranking"]) == 64
    # Each heat is judged in both orders, so that a judge who prefers what comes first prefers nobody.
    assert result.answer == texts["text 0"]
    assert "length and tone included" in asked[0]
    with pytest.raises(UsageError, match="at least one text"):
        asyncio.run(reasonry.select("Say something.", [], model="offline", store="memory"))


def test_an_agent_is_the_judge_over_mcp_and_is_shown_code_without_what_is_around_it(tmp_path: Path) -> None:
    wrapped = f"You can use:\n\n```python\n{RIGHT}```\n"
    with Raw(tmp_path / "s.db", DISABLE_THOUGHT_LOGGING="true") as server:
        options = {"candidates": {"first": WRONG, "second": wrapped}}
        shown = server.call("coach", action="start", problem=PROBLEM, strategy="best_of_n", options=options)
        while shown["status"] == "active":
            answers: list[dict[str, Any]] = []
            for asked in shown["questions"]:
                reply: Any = {"calls": ["add(1, 2)"]}
                if asked["stage"] == "comparison":
                    text = asked["prompt"] + str(shown.get("shared"))
                    assert "You can use" not in text
                    assert "```" not in text
                    reply = {"reason": "traced", "ratings": {"A": 5, "B": 5}}
                answers.append({"id": asked["id"], "answer": reply})
            shown = server.call("coach", action="answer", answers=answers)
        result = shown["result"]
    assert {row["candidate"] for row in result["ranking"]} == {"first", "second"}
    assert result["outcome"] == "answered"


def test_a_request_selects_over_http() -> None:
    with serve_in_thread() as serving:
        client = serving.client()
        options = {"candidates": ["17 + 25 = 42", "25 - 17 = 8"], "criteria": {"truth": "It is true."}}
        body = {"problem": "Use 17 and 25 to make 42", "strategy": "best_of_n", "mode": "coached"}
        reply = client.post("/api/runs", json={**body, "options": options})
        assert reply.status_code == 201, reply.text
        run = reply.json()
        assert "Judge by these criteria alone: truth: It is true. Then rate" in run["questions"][0]["prompt"]
        ratings = {"reason": "traced", "ratings": {"A": 9, "B": 9}}
        answers = {each["id"]: ratings for each in run["questions"]}
        client.post(f"/api/runs/{run['run_id']}/answers", json={"answers": answers})
        ended = client.get(f"/api/runs/{run['run_id']}").json()
    assert [row["candidate"] for row in ended["ranking"]] == ["candidate 2", "candidate 1"]
