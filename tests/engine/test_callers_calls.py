"""Calls that the caller of a run makes, while a model drives it."""

import json
from pathlib import Path

import pytest

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.blocks.toolcard import ToolCard
from reasonry.core.budget import Budget
from reasonry.engine.drive import drive_run
from reasonry.engine.open_questions import result_events, waiting_calls
from reasonry.engine.ports import Question
from reasonry.errors import ConflictError, UsageError
from reasonry.tools.catalog import CallersTool

from .playing import CountingModel
from .running import order_and_solve, request_of

pytestmark = pytest.mark.anyio

WEATHER = ToolCard(
    "weather", "Today's weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)
CITIES = ("Rome", "Oslo")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def reply(question: Question) -> str:
    """Ask for the weather of both cities and a sum; then answer with what came back."""
    prompt = question.ask.prompt
    if "Observation" in prompt:
        return json.dumps({"thought": "now I know", "answer": f"sunny in {prompt.count('sunny')}"})
    calls = [{"tool": "weather", "arguments": {"city": city}} for city in CITIES]
    return json.dumps({"thought": "ask", "actions": [*calls, {"tool": "add", "arguments": {"a": 1, "b": 2}}]})


async def begin(app: App, model: CountingModel, budget: Budget | None = None) -> str:
    participants = Participants(model=model, tools=[CallersTool(WEATHER), add])
    result = await order_and_solve(
        app, "Where is it warm?", "react", budget=budget, participants=participants
    )
    assert (result.status, result.answer) == ("active", None)
    return result.run_id


async def test_a_run_waits_for_its_caller_alone_and_goes_on_in_another_process(tmp_path: Path) -> None:
    """What the server can do is done; the caller's calls stay open, over a restart too, under the same ids."""
    store, model = str(tmp_path / "a.sqlite"), CountingModel(reply=reply)
    async with App(store, environ={}) as app:
        run_id = await begin(app, model)
        run = (await app.engine.read(run_id)).run
        waiting = waiting_calls(run)
        assert [(call.id, call.effect.arguments) for call in waiting] == [  # pyright: ignore
            ("e2", {"city": "Rome"}),
            ("e3", {"city": "Oslo"}),
        ]
        assert [settled.id for settled in run.events] == ["e1", "e4"]
    async with App(store, environ={}) as app:
        # Taken up again, as a server does at its start: there is nothing to do, and nothing is asked twice.
        assert (await app.resume(run_id, Participants(model=model, tools=[add]))).status == "active"
        assert model.calls == 1
        for results in ({"e2": "rain"}, {"e3": "sunny"}):
            async with app.engine.open(run_id) as opened:
                await opened.take_answers(result_events(opened.run, results, 5))
                performers = await app.reopen(opened, Participants(model=model, tools=[add]))
                result = await drive_run(opened, performers)
        assert (result.status, result.answer, model.calls) == ("done", "sunny in 1", 2)
        assert (await app.engine.replay(run_id))["replay"]["identical"]


async def test_a_result_is_taken_once_and_only_where_it_is_waited_for() -> None:
    model = CountingModel(reply=reply)
    async with App("memory", environ={}) as app:
        run_id = await begin(app, model)
        async with app.engine.open(run_id) as opened:
            for wrong in ("e1", "e4", "e9", ""):
                with pytest.raises(ConflictError) as caught:
                    result_events(opened.run, {"e2": "rain", wrong: "3"}, 0)
                assert caught.value.details["choices"] == ["e2", "e3"]
            await opened.take_answers(result_events(opened.run, {"e2": "rain"}, 0))
            assert [call.id for call in waiting_calls(opened.run)] == ["e3"]
            assert result_events(opened.run, {"e2": "rain"}, 0) == []
            with pytest.raises(ConflictError, match="another result"):
                result_events(opened.run, {"e2": "snow"}, 0)


async def test_the_caller_s_tools_may_not_be_named_like_another() -> None:
    async with App("memory", environ={}) as app:
        participants = Participants(model=CountingModel(), tools=[CallersTool(ToolCard("add")), add])
        with pytest.raises(UsageError, match="two tools"):
            app.order(request_of("x", "react", participants=participants))
