"""Models that a Python program provides: functions of messages, and model objects of pydantic-ai and LangChain."""

from collections.abc import Callable, Sequence
from typing import Any

from ..core.events import Answered
from ..engine.ports import Model, OnText, Question
from ..engine.prices import no_price
from ..engine.usage import Stated, meter
from ..errors import UsageError


class FunctionModel(Model):
    """A model that calls a function `async (messages) -> str`. Each message has `role` and `content`.

    The function may also return an object such as a reply of LangChain or pydantic-ai, with the text as `content` or
    `text`, and the usage as `usage_metadata` or `usage`. Missing usage is estimated.
    """

    price = staticmethod(no_price)

    def __init__(self, function: Callable[[list[dict[str, str]]], Any], name: str) -> None:
        self.function, self.name = function, name

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Call the function. Exceptions of the function are not caught."""
        reply = await self.function([{"role": role, "content": text} for role, text in question.ask.messages])
        text = _text_of(reply)
        if on_text is not None:
            on_text(text)
        stated = getattr(reply, "usage_metadata", None) or getattr(reply, "usage", None)
        figures = stated if isinstance(stated, dict) else vars(stated) if stated else {}
        took = Stated(figures.get("input_tokens") or None, figures.get("output_tokens") or None)
        return Answered(text, usage=meter(took, question.prompt, [text]), model=self.name)


def as_model(value: Any) -> Model:
    """Turn a function or another library's model into a `Model`, or raise UsageError. Return a `Model` unchanged."""
    if all(hasattr(value, name) for name in ("name", "answer", "close")):
        return value
    named = getattr(value, "model_name", None) or getattr(value, "__name__", type(value).__name__)
    if hasattr(value, "ainvoke"):
        return FunctionModel(value.ainvoke, f"langchain:{named}")
    if hasattr(value, "request") and hasattr(value, "system"):
        return FunctionModel(lambda messages: _ask_pydantic_ai(value, messages), f"{value.system}:{named}")
    if callable(value) and not isinstance(value, type):
        return FunctionModel(value, f"python:{named}")
    raise UsageError(
        f"model is text, an async function of messages, a model of pydantic-ai or LangChain, or an object with `name`, "
        f"`answer` and `close`; got {type(value).__name__}",
        option="model",
    )


async def _ask_pydantic_ai(model: Any, messages: list[dict[str, str]]) -> Any:
    from pydantic_ai.direct import model_request

    return await model_request(model, model_messages([(each["role"], each["content"]) for each in messages]))


def model_messages(messages: Sequence[tuple[str, str]]) -> list[Any]:
    """Convert a conversation to the messages of pydantic-ai."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    kinds = {"system": SystemPromptPart, "user": UserPromptPart}
    return [
        ModelResponse([TextPart(text)]) if role == "assistant" else ModelRequest([kinds[role](text)])
        for role, text in messages
    ]


def _text_of(reply: Any) -> str:
    text = reply if isinstance(reply, str) else getattr(reply, "content", None) or getattr(reply, "text", "")
    if isinstance(text, list):
        text = "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in text)
    return str(text() if callable(text) else text)
