"""Adapts the thinking tool to agent loops: as a plain function, for OpenAI's API, or for Anthropic's API.

If a call is refused, the model gets an error document, so that it can correct the call. No provider library is needed.
"""

import functools
import json
from typing import Any, cast

from ...errors import ReasonryError, UsageError
from ..present import error_document
from .tool import Document, ThinkingTool


def return_errors(tool: ThinkingTool) -> ThinkingTool:
    """Wrap the tool so that it returns error documents. A raised error would stop some agent loops."""

    async def think(**arguments: Any) -> Document:
        document, _ = await _perform(tool, arguments)
        return document

    return cast(ThinkingTool, functools.update_wrapper(think, tool))


def openai_tool(tool: ThinkingTool) -> Document:
    """Return the tool's entry for the argument `tools=` of OpenAI's chat completions API."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


async def answer_openai(tool: ThinkingTool, call: Any) -> Document:
    """Perform one of the `tool_calls` in a message. Return the tool's reply as a new message."""
    document, _ = await _perform(tool, call.function.arguments)
    return {"role": "tool", "tool_call_id": call.id, "content": json.dumps(document)}


def anthropic_tool(tool: ThinkingTool) -> Document:
    """Return the tool's entry for the argument `tools=` of Anthropic's messages API."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


async def answer_anthropic(tool: ThinkingTool, block: Any) -> Document:
    """Perform a `tool_use` block and return its `tool_result` block."""
    document, failed = await _perform(tool, block.input)
    return {
        "type": "tool_result",
        "tool_use_id": block.id,
        "content": json.dumps(document),
        "is_error": failed,
    }


async def _perform(tool: ThinkingTool, arguments: Any) -> tuple[Document, bool]:
    """Call the tool. Return its reply or an error document, and whether the call failed."""
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(read, dict):
            raise UsageError("the arguments must be a JSON object")
        return await tool(**{str(name): value for name, value in read.items()}), False
    except ReasonryError as error:
        return error_document(error), True
    except (ValueError, RecursionError):
        return error_document(UsageError("the arguments are not valid JSON")), True
