"""An agent of any other system, as a class: `think` begins, `continue_thinking` goes on in the same session.

python examples/external_agent.py
"""

from __future__ import annotations

import asyncio

from agent_loop import ScriptedBrain, generate_text

import reasonry


class MyCustomAgent:
    """Keeps the id of its session, and nothing else."""

    def __init__(self) -> None:
        self.session_id: str | None = None

    async def think(self, problem: str) -> str:
        """Think about a problem."""
        return await self._generate(
            ScriptedBrain("What is asked?", "It is a matter of order.", answer="First the order."), problem
        )

    async def continue_thinking(self, thought: str) -> str:
        """Think on, with a thought from outside; the tool is made anew and bound to the session."""
        return await self._generate(
            ScriptedBrain(f"Then: {thought}", answer="The order stands.", first=3), thought
        )

    async def _generate(self, brain: ScriptedBrain, content: str) -> str:
        tool = reasonry.thinking_tool(self.session_id, store="memory")
        messages = [{"role": "user", "content": content}]
        generated = await generate_text(brain, {tool.name: tool}, messages, max_steps=10)
        self.session_id = generated.session_id or self.session_id
        return generated.text


async def main() -> None:
    """Let the agent think twice, and show that it was one session."""
    agent = MyCustomAgent()
    print(await agent.think("In which order do we migrate the tables?"))
    print(await agent.continue_thinking("the largest table last"))
    assert agent.session_id is not None
    session = await reasonry.get_session(agent.session_id, store="memory")
    assert session is not None
    print(f"one session with {len(session['thoughts'])} thoughts")


if __name__ == "__main__":
    asyncio.run(main())
