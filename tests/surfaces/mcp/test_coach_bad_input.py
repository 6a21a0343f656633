"""Whatever the arguments of `coach` and `solve` are, the reply is a document or a clear error."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.app.agent_calls import COACH_ACTIONS
from reasonry.app.app import App
from reasonry.engine.coach import Coach
from reasonry.errors import UsageError
from reasonry.surfaces.mcp.driven import run_tools
from reasonry.surfaces.mcp.run_tasks import RunTasks
from reasonry.surfaces.mcp.tools import CallContext

PUZZLE = "Use 4, 9, 10 and 13 to make 24"
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["", " ", "\0", "\ud800", "0" * 36, "../x", "open.", "other.x", "e1", "x" * 300]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
NAMES = sorted({name for form in COACH_ACTIONS.values() for name in form.__struct_encode_fields__})
COACH = st.fixed_dictionaries(
    {"action": st.sampled_from(list(COACH_ACTIONS)) | JSON},
    optional=dict.fromkeys(NAMES, JSON) | {"problem": JSON | st.just("Why?")},
)
SOLVE = st.dictionaries(st.sampled_from([*NAMES, "model", "max_usd"]), JSON, max_size=5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.just("coach"), COACH) | st.tuples(st.just("solve"), SOLVE), max_size=8))
def test_every_call_is_answered_or_refused(calls: list[tuple[str, Any]]) -> None:
    async def play() -> None:
        async with App("memory", environ={"REASONRY_MODEL": "offline"}) as app:
            tools = {tool.name: tool for tool in run_tools(RunTasks(app.for_agents()))}
            context = CallContext()
            begun = await tools["coach"].call({"action": "start", "problem": PUZZLE}, CallContext())
            for name, arguments in calls:
                try:
                    document = await tools[name].call(arguments, context)
                except UsageError:
                    continue
                assert isinstance(document, dict)
            # It is no run of this connection, and nobody has named it.
            assert (await Coach(app.engine).status(begun["run_id"]))["status"] == "active"

    asyncio.run(play())


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_answers_of_any_shape_are_answered_or_refused(answers: Any) -> None:
    async def play() -> None:
        async with App("memory", environ={}) as app:
            (coach,) = run_tools(RunTasks(app.for_agents()))
            context = CallContext()
            begun = await coach.call({"action": "start", "problem": PUZZLE}, context)
            before = await Coach(app.engine).status(begun["run_id"])
            try:
                await coach.call({"action": "answer", "answers": answers}, context)
            except UsageError:
                assert await Coach(app.engine).status(begun["run_id"]) == before

    asyncio.run(play())
