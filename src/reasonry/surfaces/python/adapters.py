"""The thinking tool in the forms that agent loops take: pydantic-ai, OpenAI, Anthropic, LangChain.

What the tool refuses goes back to the model as an error document, so that it can do better. No library is
imported until its adapter is used; the OpenAI and Anthropic forms need none.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ...errors import ReasonryError, UsageError
from ...extras import check_extra
from .tool import Document, ThinkingTool

if TYPE_CHECKING:
    from pydantic_ai.toolsets import FunctionToolset


def pydantic_ai_toolset(tool: ThinkingTool) -> FunctionToolset[Any]:
    """Return a toolset for `Agent(…, toolsets=[…])`."""
    check_extra("providers", "a toolset for pydantic-ai")
    from pydantic_ai import Tool
    from pydantic_ai.toolsets import FunctionToolset

    made = Tool[Any].from_schema(_answering(tool), tool.name, tool.description, tool.input_schema)
    return FunctionToolset([made])


def openai_tool(tool: ThinkingTool) -> Document:
    """Return the entry for `tools=` of OpenAI's chat completions."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


async def answer_openai(tool: ThinkingTool, call: Any) -> Document:
    """Perform one entry of a message's `tool_calls` and return the message that answers it."""
    document, _ = await _perform(tool, call.function.arguments)
    return {"role": "tool", "tool_call_id": call.id, "content": json.dumps(document)}


def anthropic_tool(tool: ThinkingTool) -> Document:
    """Return the entry for `tools=` of Anthropic's messages."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


async def answer_anthropic(tool: ThinkingTool, block: Any) -> Document:
    """Perform one `tool_use` block and return the `tool_result` block that answers it."""
    document, failed = await _perform(tool, block.input)
    return {
        "type": "tool_result",
        "tool_use_id": block.id,
        "content": json.dumps(document),
        "is_error": failed,
    }


def langchain_tool(tool: ThinkingTool) -> Any:
    """Return a LangChain `StructuredTool`, to be awaited."""
    from langchain_core.tools import StructuredTool  # pyright: ignore[reportMissingImports]

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        coroutine=_answering(tool),
    )


def _answering(tool: ThinkingTool) -> Callable[..., Awaitable[Document]]:
    async def think(**arguments: Any) -> Document:
        document, _ = await _perform(tool, arguments)
        return document

    return think


async def _perform(tool: ThinkingTool, arguments: Any) -> tuple[Document, bool]:
    """Call the tool; return its document, or the error's, and whether it is an error."""
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(read, dict):
            raise UsageError("the arguments must be a JSON object")
        return await tool(**{str(name): value for name, value in read.items()}), False
    except ReasonryError as error:
        return {"error": error.document()}, True
    except (ValueError, RecursionError):
        return {"error": UsageError("the arguments are not valid JSON").document()}, True
