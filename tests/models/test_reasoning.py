"""Models that reason by themselves are known by name, or told, and are not asked to think step by step."""

from __future__ import annotations

import pytest

from reasonry.models.choose import open_model
from reasonry.models.reasoning import SETTING, reasons_by_itself


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
