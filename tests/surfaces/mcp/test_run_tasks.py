"""Runs as tasks: begun, looked at, asked about, ended; alike over both transports, and whatever dies meanwhile."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from reasonry.surfaces.mcp import run_tasks
from tests.forked import ForkedProcess
from tests.strategies.analysing import USUAL, plan, scores
from tests.surfaces.http.serving import script_model, serve_in_thread

from .raw import Raw, document
from .task_frames import CAPABILITIES, PUZZLE, TaskClient, local_client, web_client

pytestmark = pytest.mark.anyio
TRANSPORTS = ["stdio", "http"]
TOO_FEW = {**PUZZLE, "max_calls": 1}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve_in_thread() as serving:
        yield serving.url


@pytest.fixture(params=TRANSPORTS)
async def client(request: pytest.FixtureRequest, url: str) -> AsyncGenerator[TaskClient]:
    async with local_client() if request.param == "stdio" else web_client(url) as found:
        yield found


class PipeClient(TaskClient):
    """Of a process, over its pipes."""

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    async def send(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """See `TaskClient`."""
        return [await asyncio.to_thread(self._raw.ask, method, params)]


RESTLESS = """
from reasonry.supervisor import deaths
from reasonry.surfaces.mcp.serve import main
deaths.RESTS_S = (0.0,) * 4
main()
"""
"""Serves without a pause before a run whose process has died."""


@asynccontextmanager
async def raw_client(store: Path) -> AsyncGenerator[TaskClient]:
    """Be the client of a process that is killed at the end."""
    command = [sys.executable, "-c", RESTLESS]
    with Raw(store, greet=None, command=command, start=ForkedProcess, REASONRY_MODEL="offline") as raw:
        yield PipeClient(raw)


@asynccontextmanager
async def served_client(store: Path) -> AsyncGenerator[TaskClient]:
    """Be the client of a server over HTTP that is killed at the end."""
    words = [sys.executable, "-m", "reasonry", "serve", "--port", "0", "--json", "--store", str(store)]
    environ = {**os.environ, "REASONRY_MODEL": "offline"}
    with ForkedProcess(words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environ) as process:
        said = b"".join(process.stdout.readline() for _ in range(3))
        async with web_client(json.loads(said)["url"]) as client:
            yield client
        process.kill()


async def test_solve_is_a_task_that_comes_to_the_result_of_the_call(client: TaskClient) -> None:
    found = await client.ask("server/discover")
    assert found["result"]["capabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    task = await client.solve()
    done = await client.settled(task)
    assert done["status"] == "completed"
    assert done["statusMessage"].startswith("solved")
    client.capabilities = {}
    plain = (await client.ask("tools/call", name="solve", arguments=PUZZLE))["result"]
    assert plain["resultType"] == "complete"
    came, called = done["result"]["structuredContent"], plain["structuredContent"]
    assert came["run_id"] == task
    for name in ("answer", "outcome", "status", "strategy", "usage"):
        assert came[name] == called[name]
    assert document(done) == came


async def test_who_does_not_declare_tasks_has_none_and_is_told_what_is_missing(client: TaskClient) -> None:
    task = await client.solve()
    client.capabilities = {"elicitation": {}}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        error = (await client.ask(method, taskId=task, inputResponses={}))["error"]
        assert error["code"] == -32021
        assert error["data"] == {
            "requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        }


async def test_there_is_no_task_of_another_name_and_no_run_that_is_none(client: TaskClient) -> None:
    begun = await client.ask("tools/call", name="coach", arguments={"action": "start", "problem": "x"})
    run = begun["result"]["structuredContent"]["run_id"]
    for name in ("nobody", run):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            answer = await client.ask(method, taskId=name, inputResponses={})
            assert answer["error"]["code"] == -32602, answer
    assert (await client.ask("tasks/get"))["error"]["code"] == -32602


async def test_a_met_limit_asks_and_a_yes_goes_on_with_as_much_again(client: TaskClient) -> None:
    asked = await client.settled(await client.solve(**TOO_FEW))
    assert asked["status"] == "input_required"
    keys = list[str]()
    while asked["status"] == "input_required":
        (key,) = asked["inputRequests"]
        keys.append(key)
        message = asked["inputRequests"][key]["params"]["message"]
        assert message.startswith(f"{len(keys)} call{'s' * (len(keys) > 1)} used, ")
        assert message.endswith("; continue with 1 more?")
        assert await client.get(asked["taskId"]) == asked, "it is asked until it is answered"
        await client.tell(asked, {"nobody asked": {"action": "accept"}})
        wrong = {"taskId": asked["taskId"], "inputResponses": {key: {"action": "perhaps"}}}
        assert (await client.ask("tasks/update", **wrong))["error"]["code"] == -32602
        assert (await client.get(asked["taskId"]))["status"] == "input_required"
        await client.reply(asked, "accept")
        asked = await client.settled(asked["taskId"])
    assert len(set(keys)) == len(keys)
    assert asked["result"]["structuredContent"]["outcome"] == "solved"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_limit_that_is_not_raised_leaves_the_run_stopped_for_good(
    client: TaskClient, action: str
) -> None:
    asked = await client.settled(await client.solve(**TOO_FEW))
    await client.reply(asked, action)
    done = await client.get(asked["taskId"])
    result = done["result"]["structuredContent"]
    assert (done["status"], result["outcome"]) == ("completed", "stopped")
    assert result["termination"]["reason"] == "declined"
    assert result["best_answer"]
    await client.reply(asked, "accept")
    await client.cancel(asked["taskId"])
    assert await client.get(asked["taskId"]) == done, "an end does not change"


async def test_a_limit_that_nobody_answers_for_leaves_the_run_stopped(
    client: TaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await client.settled(await client.solve(**TOO_FEW))
    assert asked["status"] == "input_required"
    monkeypatch.setattr(run_tasks, "ASK_MS", -1)
    done = await client.get(asked["taskId"])
    monkeypatch.undo()
    assert done["result"]["structuredContent"]["termination"]["reason"] == "unanswered"
    await client.reply(asked, "accept")
    assert await client.get(asked["taskId"]) == done


async def test_a_client_that_cannot_ask_its_user_gets_the_best_so_far(client: TaskClient) -> None:
    client.capabilities = {"extensions": CAPABILITIES["extensions"]}
    done = await client.settled(await client.solve(**TOO_FEW))
    assert done["status"] == "completed"
    assert done["result"]["structuredContent"]["outcome"] == "stopped"


async def test_a_cancelled_task_stays_so_until_a_call_resumes_its_run(client: TaskClient) -> None:
    asked = await client.settled(await client.solve(**TOO_FEW))
    task = asked["taskId"]
    await client.cancel(task)
    gone = await client.get(task)
    assert gone["status"] == "cancelled"
    await client.reply(asked, "accept")
    await client.cancel(task)
    assert await client.get(task) == gone
    assert await client.solve(run_id=task, max_calls=60) == task
    assert (await client.settled(task))["result"]["structuredContent"]["outcome"] == "solved"
    assert await client.solve(run_id=task) == task
    assert (await client.get(task))["status"] == "completed"
    both = await client.ask("tools/call", name="solve", arguments={"run_id": task, **PUZZLE})
    assert both["result"]["structuredContent"]["error"]["field"] == "problem"


async def test_a_run_is_resumed_in_the_call_where_the_client_takes_no_tasks(client: TaskClient) -> None:
    client.capabilities = {}
    stopped = (await client.ask("tools/call", name="solve", arguments=TOO_FEW))["result"]
    run = stopped["structuredContent"]["run_id"]
    arguments = {"run_id": run, "max_calls": 60}
    resumed = (await client.ask("tools/call", name="solve", arguments=arguments))["result"]
    assert resumed["structuredContent"]["outcome"] == "solved"
    assert resumed["structuredContent"]["run_id"] == run


def analyst(folder: Path, question: str) -> str:
    """Return the model of an analysis whose one task is to ask the user."""
    replies: list[tuple[str, Any]] = [
        ("complexity_analysis", USUAL["complexity_analysis"]),
        ("plan_generation", plan(("ask_user", "Which date is meant?"))),
        ("plan_evaluation", scores(70)),
        ("query_conversion", {"tool_input": {"question": question}}),
        *(
            (stage, USUAL[stage])
            for stage in ("quality_evaluation", "iteration_decision", "synthesis")
            for _ in range(3)
        ),
    ]
    return script_model(folder / "script.jsonl", *((stage, json.dumps(reply)) for stage, reply in replies))


@asynccontextmanager
async def analysing(transport: str, folder: Path, question: str) -> AsyncGenerator[TaskClient]:
    environ = {"REASONRY_MODEL": analyst(folder, question)}
    if transport == "stdio":
        async with local_client(**environ) as client:
            yield client
        return
    with serve_in_thread(environ=environ) as serving:
        async with web_client(serving.url) as client:
            yield client


ANALYSIS = {
    "problem": "Is the date free?",
    "strategy": "analysis",
    "options": {"candidate_plans": 1, "enforce_task_counts": False},
}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_question_that_only_the_user_can_answer_is_put_to_them(
    transport: str, tmp_path: Path
) -> None:
    async with analysing(transport, tmp_path, "Which date do you mean?") as client:
        asked = await client.settled(await client.solve(**ANALYSIS))
        (question,) = asked["inputRequests"].values()
        assert question["params"]["message"] == asked["statusMessage"] == "Which date do you mean?"
        await client.reply(asked, "accept", answer="The 9th of May.")
        done = await client.settled(asked["taskId"])
        result = done["result"]["structuredContent"]
        assert result["outcome"] == "answered"
        assert "The 9th of May." in json.dumps(result["tasks"])


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_declined_question_stops_the_run(transport: str, tmp_path: Path) -> None:
    async with analysing(transport, tmp_path, "Which date do you mean?") as client:
        asked = await client.settled(await client.solve(**ANALYSIS))
        await client.reply(asked, "decline")
        done = await client.get(asked["taskId"])
        assert done["status"] == "completed"
        result = done["result"]["structuredContent"]
        assert (result["outcome"], result["termination"]["reason"]) == ("stopped", "declined")


async def test_an_unanswered_question_stops_the_run_and_so_does_a_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with analysing("stdio", tmp_path, "Which date do you mean?") as client:
        asked = await client.settled(await client.solve(**ANALYSIS))
        monkeypatch.setattr(run_tasks, "ASK_MS", -1)
        done = await client.get(asked["taskId"])
        assert done["result"]["structuredContent"]["termination"]["reason"] == "unanswered"
    async with analysing("stdio", tmp_path, "Which date do you mean?") as client:
        monkeypatch.undo()
        asked = await client.settled(await client.solve(**ANALYSIS))
        await client.cancel(asked["taskId"])
        assert (await client.get(asked["taskId"]))["status"] == "cancelled"


async def test_a_task_at_work_is_cancelled(tmp_path: Path) -> None:
    script = tmp_path / "slow.jsonl"
    script.write_text(json.dumps({"stage": "*", "reply": "42", "delay_ms": 60_000}) + "\n", "utf-8")
    async with local_client(REASONRY_MODEL=f"scripted:{script}") as client:
        task = await client.solve(problem="What is 6 * 7?", strategy="chain_of_thought")
        assert (await client.get(task))["status"] == "working"
        await client.cancel(task)
        assert (await client.settled(task))["status"] == "cancelled"


async def test_a_question_for_a_secret_never_reaches_the_user(tmp_path: Path) -> None:
    async with analysing("stdio", tmp_path, "What is your API key?") as client:
        done = await client.settled(await client.solve(**ANALYSIS))
        assert done["status"] == "completed"
        assert "not asked for secrets" in json.dumps(done["result"]["structuredContent"]["tasks"])


async def test_who_cannot_ask_has_an_analysis_without_questions(tmp_path: Path) -> None:
    async with analysing("stdio", tmp_path, "Which date do you mean?") as client:
        client.capabilities = {"extensions": CAPABILITIES["extensions"]}
        done = await client.settled(await client.solve(**ANALYSIS))
        assert "ask_user" not in json.dumps(done["result"]["structuredContent"]["tasks"])


async def test_two_clients_have_one_task_and_the_first_answer_counts(client: TaskClient) -> None:
    asked = await client.settled(await client.solve(**TOO_FEW))
    other = client.beside()
    assert await other.get(asked["taskId"]) == asked
    await asyncio.gather(*(each.reply(asked, "accept") for each in (client, other)))
    once = await client.settled(asked["taskId"])
    assert await other.settled(asked["taskId"]) == once
    assert "2 calls used" in once["statusMessage"], "the limit is raised once"
    await asyncio.gather(client.reply(once, "decline"), other.reply(once, "accept"))
    ends = [await each.settled(asked["taskId"]) for each in (client, other)]
    assert ends[0] == ends[1]
    assert ends[0]["status"] in ("completed", "input_required")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_life_of_a_task_whose_server_is_killed_after_every_reply(
    transport: str, tmp_path: Path
) -> None:
    start = raw_client if transport == "stdio" else served_client
    store = tmp_path / "s.db"
    async with start(store) as client:
        task = await client.solve(**PUZZLE, max_calls=2)
    asked = list[dict[str, Any]]()
    while True:
        async with start(store) as client:
            stands = await client.settled(task)
        if stands["status"] != "input_required":
            break
        asked.append(stands)
        async with start(store) as client:
            assert await client.get(task) == stands, "the question outlives the server"
            await client.reply(stands, "accept")
    assert stands["status"] == "completed"
    assert stands["result"]["structuredContent"]["outcome"] == "solved"
    assert asked
    async with start(store) as client:
        assert await client.get(task) == stands
        gone = await client.solve(**TOO_FEW)
        await client.cancel(gone)
        ended = await client.get(gone)
    async with start(store) as client:
        assert await client.get(gone) == ended
