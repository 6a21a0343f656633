"""Models that reason by themselves are known by name, or told, and are not asked to think step by step."""

from typing import Any

import pytest

from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Usage
from reasonry.engine.engine import Engine
from reasonry.engine.policy import Performers
from reasonry.engine.ports import Model, OnText, Question
from reasonry.models.choose import open_model
from reasonry.models.known import SETTING, reasons_by_itself
from reasonry.stores import open_store
from reasonry.strategies import STRATEGIES

from ..engine.running import accept, drive, order_of


@pytest.mark.parametrize(
    "name",
    [
        "openai:o3",
        "openai:o4-mini",
        "openai:gpt-5-mini",
        "openai-compatible:http://127.0.0.1:8000/v1#deepseek-ai/DeepSeek-R1",
        "deepseek:deepseek-reasoner",
        "ollama:deepseek-r1:14b",
        "ollama:qwq:32b",
        "ollama:gpt-oss:20b",
        "openrouter:moonshotai/kimi-k2-thinking",
        "ollama:qwen3-4b-thinking-2507",
        "google:gemini-2.5-pro",
        "mistral:magistral-medium",
    ],
)
def test_models_that_reason_are_known_by_name(name: str) -> None:
    assert reasons_by_itself(name, {})
    assert not reasons_by_itself(name, {SETTING: "none"})


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-4o",
        "ollama:llama3.1:8b",
        "ollama:qwen2.5:7b",
        "anthropic:claude-haiku-4-5",
        "openai:gpt-5-chat-latest",
        "offline",
        "scripted:o3.jsonl.txt",
        "ollama:phi-4",
        "deepseek:deepseek-chat",
        "openrouter:x/y-non-thinking",
    ],
)
def test_others_are_told(name: str) -> None:
    assert not reasons_by_itself(name, {})
    assert reasons_by_itself(name, {SETTING: f"something, {name}"})


def test_the_setting_takes_the_name_alone() -> None:
    model = open_model("openai-compatible:http://127.0.0.1:1/v1#mine", {SETTING: "Mine"})
    assert getattr(model, "reasons", None) is True
    assert getattr(open_model("openai-compatible:http://127.0.0.1:1/v1#mine", {}), "reasons", None) is False


class Listening(Model):
    """Stands where a paid model would; keeps what it is asked."""

    name = "listening"

    def __init__(self, *, reasons: bool) -> None:
        self.reasons = reasons
        self.asked: list[Ask] = []

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        self.asked.append(question.ask)
        return Answered("3 + 4 = 7. <answer>7</answer>", usage=Usage())


@pytest.mark.anyio
@pytest.mark.parametrize("reasons", [False, True])
async def test_only_a_model_that_does_not_reason_is_asked_to_reason_step_by_step(reasons: bool) -> None:
    strategy: Any = STRATEGIES["self_consistency"]
    store, model = open_store("memory"), Listening(reasons=reasons)
    try:
        engine = Engine(store, STRATEGIES)
        order = order_of(strategy, "What is 3 + 4?", strategy.options(samples=1))
        result = await drive(engine, await accept(engine, order), Performers(model))
    finally:
        await store.close()
    assert result.answer == "7"
    (asked,) = model.asked
    assert ("step by step" in asked.prompt.lower()) is not reasons
    assert not asked.step_by_step
