"""An agent sends out a sub-agent that explores: it has a session of its own and needs nothing of its parent's.

python examples/explore_sub_agent.py
"""

from __future__ import annotations

import asyncio

from agent_loop import Generated, ScriptedBrain, generate_text

import reasonry


async def code_search(query: str) -> dict[str, str]:
    """Another tool of the sub-agent; the script does not call it."""
    return {"sessionId": "", "found": query}


async def explore(query: str) -> Generated:
    """Explore a question in at most 5 steps; nobody has to keep the session's id."""
    tool = reasonry.thinking_tool(store="memory")
    brain = ScriptedBrain(
        f"Where would {query} be decided?", "In the settings, read once.", answer="settings.py"
    )
    tools = {tool.name: tool, "code_search": code_search}
    messages = [{"role": "user", "content": f"Analyze: {query}"}]
    return await generate_text(brain, tools, messages, max_steps=5)


async def main() -> None:
    """Think, send the sub-agent out in the middle of it, and go on with what it found."""
    tool = reasonry.thinking_tool(store="memory")
    step = {"totalThoughts": 2, "nextThoughtNeeded": True}
    parent = await tool(thought="I must know where the timeout is set.", thoughtNumber=1, **step)
    found = await explore("the timeout")
    parent = await tool(
        thought=f"The sub-agent says: {found.text}.",
        thoughtNumber=2,
        **step | {"nextThoughtNeeded": False},
        sessionId=parent["sessionId"],
    )
    assert found.session_id != parent["sessionId"]
    print(
        f"parent: {parent['thoughtHistoryLength']} thoughts; sub-agent: {len(found.tool_results)} of its own"
    )
    print(f"answer: {found.text}")


if __name__ == "__main__":
    asyncio.run(main())
