"""An agent's loop over MCP, as AI SDKs have it: the tools come from a server, and their results go back to the model.

    python examples/mcp_agent_loop.py

A program in TypeScript does the same with the MCP client of its SDK: start `reasonry mcp`, hand its tools to
`generateText`. Here a scripted brain stands where the model would.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agent_loop import ScriptedBrain, Tool, generate_text
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import reasonry

SERVER = StdioServerParameters(
    command=sys.executable,
    args=["-m", "reasonry", "mcp", "--store", "memory"],
    env={"DISABLE_THOUGHT_LOGGING": "true"},
)


def as_tool(client: Client, name: str) -> Tool:
    """Return a tool of the server as a function that the loop can await."""

    async def call(**arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(name, arguments)
        assert result.structured_content is not None
        return result.structured_content

    return call


async def main() -> None:
    """Start the server, take its tools, and let the brain think with them."""
    async with Client(stdio_client(SERVER), mode="auto") as client:
        listed = (await client.list_tools()).tools
        tools = {tool.name: as_tool(client, tool.name) for tool in listed}
        print("tools:", ", ".join(sorted(tools)))
        brain = ScriptedBrain(
            "What does a user have?",
            "An id, a name, an address.",
            "So three routes.",
            answer="GET, POST, PATCH",
        )
        messages = [{"role": "user", "content": "Design a REST API for user management"}]
        generated = await generate_text(brain, tools, messages, max_steps=reasonry.loop_limit("design"))
        print(f"{generated.text}: {generated.tool_results[-1]['summary']}")
        assert generated.session_id is not None
        kept = await tools["sessions"](action="get", session_id=generated.session_id)
        print(f"kept: {len(kept['thoughts'])} thoughts")


if __name__ == "__main__":
    asyncio.run(main())
