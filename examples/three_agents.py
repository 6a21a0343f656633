"""Three agents at once, each with a session of its own: they do not see one another's thoughts.

python examples/three_agents.py
"""

from __future__ import annotations

import asyncio

from agent_loop import Generated, ScriptedBrain, generate_text

import reasonry

TASKS = {"architect": "Design API", "planner": "Plan tasks", "validator": "Review PR"}


async def run_agent(name: str, task: str) -> Generated:
    """Run one agent's loop."""
    tool = reasonry.thinking_tool(store="memory")
    brain = ScriptedBrain(*(f"{name} {number}" for number in (1, 2, 3)), answer=f"{task}: done")
    messages = [{"role": "user", "content": task}]
    return await generate_text(brain, {tool.name: tool}, messages, max_steps=10)


async def main() -> None:
    """Run all three side by side and show what each has thought."""
    agents = await asyncio.gather(*(run_agent(name, task) for name, task in TASKS.items()))
    for name, agent in zip(TASKS, agents, strict=True):
        assert agent.session_id is not None
        session = await reasonry.get_session(agent.session_id, store="memory")
        assert session is not None
        print(f"{name}: {', '.join(thought['thought'] for thought in session['thoughts'])}; {agent.text}")
    print(f"{len({agent.session_id for agent in agents})} sessions")


if __name__ == "__main__":
    asyncio.run(main())
