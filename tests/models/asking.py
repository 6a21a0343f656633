"""What the tests of models share: questions, and models over a loopback server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from reasonry.core.effects import Ask
from reasonry.engine.ports import Model, Question
from reasonry.models.openai_compatible import OpenAICompatibleModel
from reasonry.models.providers import ProviderModel
from tests.servers import ModelServer

KEY = "sk-CANARY0123456789abcdef"
FORM = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
OPEN_FORM = {
    "type": "object",
    "properties": {"scores": {"type": "object", "additionalProperties": {"type": "number"}}},
    "required": ["scores"],
}


def question(prompt: str = "Which?", timeout_s: float = 10, **ask: Any) -> Question:
    return Question("q-1", "some_stage", Ask(prompt, **ask), timeout_s=timeout_s)


def everything_of(error: BaseException | None) -> str:
    """All that an error and those behind it hold."""
    told = ""
    while error is not None:
        told += f"{error!r} {error} {error.args} {vars(error)}\n"
        error = error.__cause__ or error.__context__
    return told


@asynccontextmanager
async def model_over(server: ModelServer, transport: str = "own", key: str = KEY) -> AsyncIterator[Model]:
    model: Model
    if transport == "own":
        model = OpenAICompatibleModel(server.url, "gpt-5-mini", api_key=key)
    else:
        kept = {name: os.environ.get(name) for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
        os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY=key)
        try:
            model = ProviderModel("openai-chat:gpt-5-mini")
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
    try:
        yield model
    finally:
        await model.close()
