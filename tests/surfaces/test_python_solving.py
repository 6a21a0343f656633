"""Typed output, streams and short strategies in Python programs, and models and tools of any make."""

import dataclasses
import functools
import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest

import reasonry
from reasonry import Budget, ask
from reasonry.app.participants import Participants
from reasonry.errors import UsageError, WorldError
from reasonry.ext import Observer, ScriptedModel
from reasonry.surfaces.python.streaming import BudgetEvent, CallEvent, EndEvent, ThoughtEvent, VerdictEvent
from reasonry.tools.python import PythonTool

pytestmark = pytest.mark.anyio

OSLO = {"city": "Oslo", "letters": 4}


class Model(pydantic.BaseModel):
    city: str
    letters: int = pydantic.Field(ge=1)


@dataclasses.dataclass
class Data:
    city: str
    letters: int


class Record(msgspec.Struct):
    city: str
    letters: int


class Typed(TypedDict):
    city: str
    letters: int


SCHEMA = {"type": "object", "properties": {"letters": {"type": "integer"}}, "required": ["letters"]}


@pytest.mark.parametrize("kind", [Model, Record, Data, Typed, SCHEMA])
async def test_an_answer_has_the_type_that_was_asked_for_and_is_asked_again_where_it_has_not(
    kind: Any,
) -> None:
    model = ScriptedModel.of(
        {"stage": "sequential_reasoning", "reply": {"reasoning": "It is by a fjord.", "answer": "Oslo"}},
        {"stage": "*", "reply": {"city": "Oslo", "letters": "many"}},
        {"stage": "*", "reply": OSLO},
    )
    result = await reasonry.solve(
        "Which city?", output_type=kind, strategy="chain_of_thought", model=model, store="memory"
    )
    assert result.output == (OSLO if kind in (Typed, SCHEMA) else kind(**OSLO))
    assert result.usage.calls == 3


def count_again(letters: int) -> int:
    if letters != 4:
        raise ValueError("count the letters again")
    return letters


class Checked(Model):
    _count = pydantic.field_validator("letters")(count_again)


@dataclasses.dataclass
class CheckedData(Data):
    def __post_init__(self) -> None:
        if self.letters != 4:
            raise KeyError("count the letters again")


@pydantic.dataclasses.dataclass
class CheckedByPydantic(Data):
    _count = pydantic.field_validator("letters")(count_again)


@pytest.mark.parametrize("kind", [Checked, CheckedData, CheckedByPydantic])
@pytest.mark.parametrize("answer", ["Oslo", '{"city": "Oslo", "letters": 5}'])
async def test_an_answer_that_its_type_refuses_is_asked_again_with_the_reason(
    kind: Any, answer: str, tmp_path: Any
) -> None:
    prompts = list[str]()

    class Spy(Observer):
        def asked(self, pending: Any) -> None:
            prompts.append(getattr(pending.effect, "text", ""))

    wrong = {"city": "Oslo", "letters": 5}
    first = {"stage": "sequential_reasoning", "reply": {"reasoning": "It is by a fjord.", "answer": answer}}
    replies = [wrong, OSLO] if answer == "Oslo" else [OSLO]
    model = ScriptedModel.of(first, *({"stage": "*", "reply": reply} for reply in replies))
    terms: dict[str, Any] = {"strategy": "chain_of_thought", "store": str(tmp_path / "runs.db")}
    result = await reasonry.solve("Which city?", output_type=kind, model=model, observer=Spy(), **terms)
    assert result.output == kind(**OSLO)
    assert "count the letters again" in "".join(prompts)
    async with reasonry.ext.App(terms["store"]) as app:
        assert (await app.engine.replay(result.run_id))["replay"]["identical"]

    model = ScriptedModel.of(first, *({"stage": "*", "reply": wrong} for _ in range(3)))
    lost = await reasonry.solve("Which city?", output_type=kind, model=model, **terms)
    assert (lost.outcome, lost.termination.code) == ("error", "output_invalid")
    with pytest.raises(WorldError):
        _ = lost.output


async def test_without_an_answer_there_is_no_output() -> None:
    result = await reasonry.solve(
        "x", output_type=Data, model=_critic, strategy=draft, budget=Budget(calls=1), store="memory"
    )
    assert (result.outcome, result.best_answer) == ("stopped", "first")
    with pytest.raises(WorldError):
        _ = result.output


@reasonry.strategy
def draft(problem: str):
    """Draft, and mend until a critic is content."""
    text = yield ask(f"Write: {problem}")
    for _ in range(3):
        fault = yield ask(f"Name the worst fault, or reply OK.\n\n{text}", name="critic")
        if fault == "OK":
            break
        text = yield ask(f"Mend it: {fault}\n\n{text}", name="mend")
    return text


async def _critic(messages: list[dict[str, str]]) -> str:
    prompt = messages[-1]["content"]
    if prompt.startswith("Name"):
        return "OK" if "second" in prompt else "It is too short."
    return "second" if prompt.startswith("Mend") else "first"


async def test_a_short_strategy_is_recorded_step_by_step_and_resumed_where_it_stood(tmp_path: Any) -> None:
    store = str(tmp_path / "runs.db")
    cut = await reasonry.solve("a poem", strategy=draft, model=_critic, store=store, budget=Budget(calls=2))
    async with reasonry.ext.App(store) as app:
        app.register(draft)
        result = await app.resume(cut.run_id, Participants(model=_critic), Budget(calls=9))
        record = await app.engine.record(cut.run_id)
    assert (result.answer, result.outcome, result.usage.calls) == ("second", "answered", 4)
    names = [thought.data["ask"] for thought in record.thoughts() if thought.data]
    assert names == ["ask", "critic", "mend", "critic"]


async def test_replies_of_a_short_strategy_have_types_and_come_side_by_side() -> None:
    @reasonry.strategy
    def vote(problem: str):
        first, second = yield from reasonry.ask_all(
            *(ask(f"{problem} {place}", reply=Data) for place in "ab")
        )
        return f"{first.city} {second.letters}"

    model = ScriptedModel.of({"stage": "loop", "reply": OSLO}, {"stage": "loop", "reply": OSLO})
    result = await reasonry.solve("Which city?", strategy=vote, model=model, store="memory")
    assert (result.answer, result.rounds) == ("Oslo 4", 1)


async def test_a_reply_of_a_short_strategy_that_its_type_refuses_is_asked_again() -> None:
    @reasonry.strategy
    def name(problem: str):
        city = yield from ask(problem, reply=Checked)
        return city.city

    wrong = {"city": "Oslo", "letters": 5}
    model = ScriptedModel.of({"stage": "loop", "reply": wrong}, {"stage": "loop", "reply": OSLO})
    result = await reasonry.solve("Which city?", strategy=name, model=model, store="memory")
    assert (result.answer, result.usage.calls) == ("Oslo", 2)


@pytest.mark.parametrize(
    ("reason", "answer"), [("It is longer.", "second"), ("right", "second"), (None, "first")]
)
async def test_a_verifier_has_a_short_strategy_ask_again_with_its_reason(
    reason: str | None, answer: str
) -> None:
    @reasonry.strategy
    def one(problem: str):
        return (yield ask(problem))

    async def model(messages: list[dict[str, str]]) -> str:
        return "second" if reason and messages[-1]["content"].endswith(reason) else "first"

    def check(problem: str, path: list[str]) -> str | None:
        return reason if reason and path[-1] == "first" else None

    result = await reasonry.solve("a poem", strategy=one, model=model, verifier=check, store="memory")
    assert (result.answer, result.outcome) == (answer, "answered")
    lost = await reasonry.solve(
        "a poem", strategy=one, model=model, verifier=lambda *_: False, store="memory"
    )
    assert (lost.outcome, lost.termination.reason) == ("unsolved", "verification_failed")


async def test_a_stream_has_typed_events_and_the_result_last() -> None:
    events = [
        event
        async for event in reasonry.stream(
            "Use 4, 9, 10 and 13 to make 24", model="offline", strategy="tree_of_thoughts", store="memory"
        )
    ]
    *others, end = events
    assert isinstance(end, EndEvent)
    assert end.result.outcome == "solved"
    assert {event.run_id for event in events} == {end.run_id}
    assert {CallEvent, ThoughtEvent, VerdictEvent, BudgetEvent} <= {*map(type, others)}


async def test_a_stream_that_is_closed_cancels_its_run(tmp_path: Any) -> None:
    store = str(tmp_path / "runs.db")
    stream = reasonry.stream("a poem", strategy=draft, model=_critic, store=store)
    first = await anext(stream)
    await stream.aclose()
    async with reasonry.ext.App(store) as app:
        assert (await app.store.run(first.run_id)).status == "cancelled"
    with pytest.raises(UsageError):
        await anext(reasonry.stream("a poem", strategy="none", model=_critic, store="memory"))


async def test_an_observer_that_fails_is_logged_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Observer):
        def stepped(self, run: Any, step: Any) -> None:
            raise KeyError("a slip")

    with caplog.at_level(logging.ERROR):
        result = await reasonry.solve(
            "a poem", strategy=draft, model=_critic, store="memory", observer=Failing()
        )
    assert result.answer == "second"
    assert "stepped" in caplog.text


class Box(pydantic.BaseModel):
    w: int
    h: int = pydantic.Field(ge=1)


class Shop:
    def area(
        self,
        box: Box,
        scale: Annotated[int, pydantic.Field(description="By how much", le=9)],
        unit: str = "m",
    ) -> str:
        """Return the area."""
        return f"{box.w * box.h * scale} {unit}"


@pytest.mark.parametrize("tool", [Shop().area, functools.partial(Shop().area, unit="cm")])
async def test_tools_take_models_bounds_methods_and_partials(tool: Any) -> None:
    made = PythonTool(tool)
    shown = made.parameters["properties"]
    assert (made.name, made.description) == ("area", "Return the area.")
    assert shown["scale"] == {"type": "integer", "maximum": 9, "description": "By how much"}
    assert shown["box"]["properties"]["h"]["minimum"] == 1
    assert (await made.call({"box": {"w": 2, "h": 3}, "scale": 2})).startswith("12 ")
    call = {
        "thought": "I ask.",
        "actions": [{"tool": "area", "arguments": {"box": {"w": 2, "h": 3}, "scale": 2}}],
    }
    model = ScriptedModel.of(
        {"stage": "initial_reasoning", "reply": call},
        {"stage": "*", "reply": {"thought": "Now I know.", "answer": "12"}},
    )
    result = await reasonry.solve("Which area?", strategy="react", tools=[tool], model=model, store="memory")
    assert (result.answer, result.warnings) == ("12", ())


async def test_a_model_of_pydantic_ai_or_langchain_is_a_model() -> None:
    from pydantic_ai.models.test import TestModel

    class Chat:
        model_name = "mine"

        async def ainvoke(self, messages: Any) -> Any:
            return type("Reply", (), {"content": [{"text": "OK"}], "usage_metadata": {"input_tokens": 9}})()

    for model, name in ((TestModel(custom_output_text="OK"), "test:test"), (Chat(), "langchain:mine")):
        result = await reasonry.solve("a poem", strategy=draft, model=model, store="memory")
        assert (result.answer, result.model) == ("OK", name)


async def test_the_thinking_tool_goes_into_pydantic_ai_as_it_is() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    model = TestModel(call_tools=[])
    await Agent(model, tools=[reasonry.thinking_tool(store="memory")]).run("Think.")
    (tool,) = model.last_model_request_parameters.function_tools  # pyright: ignore[reportOptionalMemberAccess]
    assert tool.name == "sequentialthinking"
    assert {"thought", "thoughtNumber", "sessionId"} <= set(tool.parameters_json_schema["properties"])


# -- what is refused, and what is taken up


async def test_an_output_type_that_is_no_data_is_refused() -> None:
    for kind in (object(), object, {"type": "x"}):
        with pytest.raises(UsageError):
            await reasonry.solve("x", output_type=kind, model="offline", store="memory")  # pyright: ignore


@pytest.mark.parametrize("name", ["tools", "mcp", "context"])
async def test_a_text_or_a_number_where_a_list_is_wanted_is_refused(name: str) -> None:
    for value in ("one text", 5):
        with pytest.raises(UsageError, match=f"{name} must be a list"):
            await reasonry.solve("x", model="offline", store="memory", **{name: value})  # pyright: ignore


async def test_a_run_is_taken_up_with_its_own_strategy_and_verifier(tmp_path: Path) -> None:
    store, own = str(tmp_path / "s.db"), replace(reasonry.STRATEGIES["scratchpad"], name="my_own", aliases=())
    given: dict[str, Any] = {"store": store, "verifier": lambda problem, path: True}
    async with await reasonry.coach("x", strategy=own, **given) as coaching:
        document = coaching.document
    run_id = document["run_id"]
    async with await reasonry.coach(run_id=run_id, strategy=own, **given) as coaching:
        assert coaching.document == document
    with pytest.raises(UsageError, match="pass it again"):
        await reasonry.coach(run_id=run_id, strategy=own, store=store)
    for kept in ({"strategy": "react"}, {"options": {"max_steps": 2}}):
        with pytest.raises(UsageError, match="keeps its strategy and options"):
            await reasonry.coach(run_id=run_id, **kept, **given)  # pyright: ignore
