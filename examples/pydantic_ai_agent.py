"""The thinking tool in an agent of pydantic-ai, as it is.

pip install "reasonry[providers]"
python examples/pydantic_ai_agent.py
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import reasonry


def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand where a model would: think twice, then answer."""
    number = sum(isinstance(message, ModelResponse) for message in messages) + 1
    if number > 2:
        return ModelResponse([TextPart("GET, POST, PATCH")])
    call = {"thought": f"Step {number}.", "thoughtNumber": number, "totalThoughts": 2}
    return ModelResponse([ToolCallPart("sequentialthinking", {**call, "nextThoughtNeeded": number < 2})])


async def main() -> None:
    """Let the agent think, and show what it thought."""
    agent = Agent(FunctionModel(play), tools=[reasonry.thinking_tool("api", store="memory")])
    answer = await agent.run("Design a REST API for users")
    session = await reasonry.get_session("api", store="memory")
    assert session is not None
    print(*(thought["thought"] for thought in session["thoughts"]), answer.output)


asyncio.run(main())
